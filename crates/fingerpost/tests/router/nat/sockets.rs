//! Servers that say who asks them, and who asks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab::Netns;

/// For an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How often a server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A server in a namespace, until it is dropped. By TCP it says first whom it
/// sees, a line, and sends back all that comes; by UDP it answers with whom
/// it sees, a blank and what has come.
pub struct Server {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn tcp(netns: &Netns, at: &str) -> Self {
        let listener = netns.inside(|| TcpListener::bind(at)).unwrap().unwrap();
        listener.set_nonblocking(true).unwrap();
        Self::run(move || match listener.accept() {
            // What becomes of it the other side sees.
            Ok((stream, from)) => drop(thread::spawn(move || serve(&stream, from))),
            Err(_) => thread::sleep(LOOK),
        })
    }

    pub fn udp(netns: &Netns, at: &str) -> Self {
        let socket = netns.inside(|| UdpSocket::bind(at)).unwrap().unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let mut room = [0; 8_192];
        Self::run(move || {
            if let Ok((len, from)) = socket.recv_from(&mut room) {
                let mut answer = format!("{from} ").into_bytes();
                answer.extend(&room[..len]);
                // As above.
                let _ = socket.send_to(&answer, from);
            }
        })
    }

    fn run(mut turn: impl FnMut() + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            while !is_over.load(Relaxed) {
                turn();
            }
        });
        Self {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(mut stream: &TcpStream, from: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(3 * ANSWER))?;
    writeln!(stream, "{from}")?;
    io::copy(&mut &*stream, &mut &*stream)?;
    stream.shutdown(Shutdown::Write)
}

/// A connection to such a server.
pub struct Call {
    reader: BufReader<TcpStream>,
    /// Who the server says that it sees.
    pub seen: SocketAddr,
}

impl Call {
    pub fn open(netns: &Netns, to: &str) -> io::Result<Self> {
        Self::within(netns, to, ANSWER)
    }

    /// The same with less patience, where it may be that nobody answers.
    pub fn within(netns: &Netns, to: &str, patience: Duration) -> io::Result<Self> {
        let to = to.parse().unwrap();
        let connect = || TcpStream::connect_timeout(&to, patience);
        let stream = netns.inside(connect).unwrap()?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let seen = line.trim().parse().map_err(io::Error::other)?;
        Ok(Self { reader, seen })
    }

    /// Sends, and gets the same back meanwhile.
    pub fn echo(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sending = self.reader.get_ref().try_clone()?;
        let mut back = vec![0; bytes.len()];
        thread::scope(|scope| {
            let sent = scope.spawn(move || sending.write_all(bytes));
            self.reader.read_exact(&mut back)?;
            sent.join().unwrap()
        })?;
        assert!(back == bytes, "what came back is something else");
        Ok(())
    }

    /// Ends it on both sides.
    pub fn close(mut self) -> io::Result<()> {
        self.reader.get_ref().shutdown(Shutdown::Write)?;
        let left = self.reader.read_to_end(&mut Vec::new())?;
        assert_eq!(left, 0);
        Ok(())
    }

    /// Breaks it off.
    pub fn reset(self) {
        let stream = self.reader.get_ref();
        rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
    }
}

/// Bytes by which one sees what is wrong.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// A socket for questions to a server.
pub fn asking(netns: &Netns, to: &str) -> UdpSocket {
    let socket = netns.inside(|| UdpSocket::bind("0.0.0.0:0"));
    let socket = socket.unwrap().unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(ANSWER)).unwrap();
    socket
}

/// Asks by it: whom the server sees.
pub fn ask(socket: &UdpSocket, question: &[u8]) -> io::Result<SocketAddr> {
    socket.send(question)?;
    let mut room = [0; 8_192];
    let len = socket.recv(&mut room)?;
    let mut parts = room[..len].splitn(2, |byte| *byte == b' ');
    let seen = String::from_utf8_lossy(parts.next().unwrap()).into_owned();
    assert!(parts.next() == Some(question), "another answer");
    seen.parse().map_err(io::Error::other)
}
