//! One change after the other, each known to be done or refused before the
//! next is sent: for lines of which none may be done after one that failed.
//!
//! The kernel works on a request of rtnetlink before the send returns, and
//! a refusal waits in the receive buffer by then. So no acknowledgement
//! needs to be asked for: an empty buffer after the send means that it is
//! done. For the program; [`crate::bulk`] is faster where the order of
//! failures does not matter.

use netlink::message::{flag, messages};

use crate::error::{Error, Refusal, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Where `nlmsg_flags` stands in a message's header.
const FLAGS_AT: usize = 6;

/// A connection for changes.
#[derive(Debug)]
pub struct Step {
    socket: Socket,
    message: Vec<u8>,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Step {
    /// Opens one in a namespace.
    pub fn open(namespace: &Namespace) -> Result<Self, Error> {
        Ok(Self {
            socket: Socket::open(namespace)?,
            message: Vec::new(),
            buffer: vec![0; DATAGRAM_BYTES],
            sequence: 0,
        })
    }

    /// Sends the message that `change` appends, with the sequence number it
    /// is given. Two system calls.
    pub fn apply(
        &mut self,
        change: impl FnOnce(u32, &mut Vec<u8>),
    ) -> Result<Result<(), Refusal>, Error> {
        self.start(change);
        self.socket.send(&self.message)?;
        match self.socket.try_receive(&mut self.buffer)? {
            Received::Nothing => Ok(Ok(())),
            Received::Bytes(len) => self.answer(len),
            Received::Overrun => Err(lost()),
        }
    }

    /// The same, waiting for the kernel's acknowledgement.
    pub fn acknowledged(
        &mut self,
        change: impl FnOnce(u32, &mut Vec<u8>),
    ) -> Result<Result<(), Refusal>, Error> {
        self.start(change);
        if let Some(flags) = self.message.get_mut(FLAGS_AT..FLAGS_AT + 2) {
            let told = u16::from_ne_bytes([flags[0], flags[1]]) | flag::ACK;
            flags.copy_from_slice(&told.to_ne_bytes());
        }
        self.socket.send(&self.message)?;
        match self.socket.receive(&mut self.buffer, "a change")? {
            Received::Bytes(len) => self.answer(len),
            Received::Nothing | Received::Overrun => Err(lost()),
        }
    }

    fn start(&mut self, change: impl FnOnce(u32, &mut Vec<u8>)) {
        self.message.clear();
        self.sequence = self.sequence.wrapping_add(1).max(1);
        change(self.sequence, &mut self.message);
    }

    fn answer(&self, len: usize) -> Result<Result<(), Refusal>, Error> {
        for message in messages(self.buffer.get(..len).unwrap_or_default()) {
            let message = message?;
            if message.sequence == self.sequence
                && let Some(refusal) = refusal(&message)?
            {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(()))
    }
}

fn lost() -> Error {
    Error::System {
        what: "receive the kernel's answer",
        source: std::io::Error::other("it was lost; look whether the change was made"),
    }
}
