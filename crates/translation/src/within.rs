//! A socket that is read and written until a moment, however little comes or
//! goes at a time. For both ends of a control socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A socket, and until when; both directions share the moment.
#[derive(Debug)]
pub struct Within<'a> {
    stream: &'a UnixStream,
    /// `None`: however long it takes.
    until: Option<Instant>,
}

impl<'a> Within<'a> {
    /// From now on, so long.
    pub fn new(stream: &'a UnixStream, patience: Option<Duration>) -> Self {
        let until = patience.map(|patience| Instant::now() + patience);
        Self { stream, until }
    }

    /// What is left of the time; an error: nothing.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(until) = self.until else {
            return Ok(None);
        };
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

/// The kernel says of a time that is over that it would wait.
fn timed(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Within<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(into).map_err(timed)
    }
}

impl Write for Within<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(timed)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::thread;

    use super::*;

    const SHORT: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn who_says_a_byte_now_and_then_does_not_hold_it_up() {
        let (near, far) = UnixStream::pair().unwrap();
        let dribbles = thread::spawn(move || {
            // Until nobody reads it, and at most for a minute.
            for _ in 0..6_000 {
                if (&far).write_all(b" ").is_err() {
                    return true;
                }
                thread::sleep(Duration::from_millis(10));
            }
            false
        });
        let mut line = Vec::new();
        let read = BufReader::new(Within::new(&near, SHORT)).read_until(b'\n', &mut line);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        drop(near);
        assert!(dribbles.join().unwrap());
    }

    #[test]
    fn who_takes_nothing_does_not_hold_it_up() {
        let (near, far) = UnixStream::pair().unwrap();
        let written = Within::new(&near, SHORT).write_all(&vec![0; 64 << 20]);
        assert_eq!(written.unwrap_err().kind(), ErrorKind::TimedOut);
        drop(far);
    }

    #[test]
    fn without_a_moment_it_waits() {
        let (near, far) = UnixStream::pair().unwrap();
        // One that was set before is taken away.
        near.set_read_timeout(SHORT).unwrap();
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            (&far).write_all(b"x").unwrap();
        });
        assert_eq!(Within::new(&near, None).read(&mut [0; 4]).unwrap(), 1);
        late.join().unwrap();
    }
}
