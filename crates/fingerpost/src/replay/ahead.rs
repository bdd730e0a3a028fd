//! A stream that is read ahead: one thread unpacks while another takes in
//! what came of it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Octets of a block, and blocks that wait at most.
const BLOCK_BYTES: usize = 256 << 10;
const BLOCKS: usize = 8;

/// What is read.
type Stream = Box<dyn Read + Send>;

/// What comes of a stream, in its order.
pub struct Ahead {
    /// Until the first is read: a thread that began before this process has
    /// given up its privileges would keep them.
    from: Option<Stream>,
    blocks: Option<Receiver<io::Result<Vec<u8>>>>,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    /// Begins with the first read. The thread ends with the stream, or when
    /// nobody reads this any more.
    pub fn of(from: Stream) -> Self {
        Self {
            from: Some(from),
            blocks: None,
            block: Vec::new(),
            at: 0,
        }
    }

    /// The next block; `None`: the thread has ended, and the stream before
    /// it.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(from) = self.from.take() {
            let (to, blocks) = sync_channel(BLOCKS);
            let reads = move || read_all(from, &to);
            thread::Builder::new().name("unpack".into()).spawn(reads)?;
            self.blocks = Some(blocks);
        }
        let next = self.blocks.as_ref().and_then(|blocks| blocks.recv().ok());
        next.transpose()
    }
}

fn read_all(mut from: Stream, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let read = from
            .by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut block);
        let is_over = block.is_empty() || read.is_err();
        // What came before an error is told before it.
        let told = block.is_empty() || to.send(Ok(block)).is_ok();
        let failed = read.err().map(|error| to.send(Err(error)));
        if is_over || failed.is_some() || !told {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let Some(block) = self.next()? else {
                return Ok(0);
            };
            (self.block, self.at) = (block, 0);
        }
        let rest = self.block.get(self.at..).unwrap_or_default();
        let len = rest.len().min(to.len());
        to[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives some bytes, then an error.
    struct Fails(usize);

    impl Read for Fails {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let len = self.0.min(to.len());
            self.0 -= len;
            to[..len].fill(7);
            match len {
                0 => Err(io::Error::other("cut")),
                len => Ok(len),
            }
        }
    }

    #[test]
    fn all_is_read_and_an_error_comes_behind_what_was_before_it() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 5)
            .map(|at| (at % 251) as u8)
            .collect();
        let mut read = Vec::new();
        let mut ahead = Ahead::of(Box::new(io::Cursor::new(bytes.clone())));
        ahead.read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
        let mut read = Vec::new();
        let mut ahead = Ahead::of(Box::new(Fails(BLOCK_BYTES + 9)));
        let error = ahead.read_to_end(&mut read).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), read.len()),
            ("cut", BLOCK_BYTES + 9)
        );
        // One that nobody reads to its end does not wait for ever.
        let mut ahead = Ahead::of(Box::new(io::repeat(1)));
        assert_eq!(ahead.read(&mut [0; 9]).unwrap(), 9);
    }
}
