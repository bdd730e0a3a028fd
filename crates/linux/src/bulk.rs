//! Many changes in few system calls.
//!
//! Requests are packed many to a send. Only the last of a pack asks for an
//! acknowledgement: the kernel reports every failure anyway, so a request
//! that was not named in one before the acknowledgement has succeeded.

use std::io;

use netlink::message::{flag, kind, messages};

use crate::error::{Error, Refusal, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Bytes of requests in a send.
const PACK_BYTES: usize = 32 * 1024;
/// Requests in a send: so many failures always fit the receive buffer.
const PACK_REQUESTS: usize = 128;
/// Asked for; where the host's limit is lower, the pack is still small
/// enough for the default of 208 KiB.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Where the low byte of `nlmsg_flags` stands in a message's header.
const FLAGS_AT: usize = 6 + cfg!(target_endian = "big") as usize;

/// Applies changes in order. `changes` append one netlink message each to
/// the buffer, with the sequence number they are given; `done` hears of
/// each by its place in the order. A refusal does not stop the rest.
pub fn apply<E>(
    namespace: &Namespace,
    changes: impl IntoIterator<Item = E>,
    done: &mut dyn FnMut(usize, Result<(), Refusal>),
) -> Result<(), Error>
where
    E: FnOnce(u32, &mut Vec<u8>),
{
    let socket = Socket::open(namespace)?;
    socket.set_receive_buffer(RECEIVE_BUFFER)?;
    let mut bulk = Bulk {
        socket,
        pack: Vec::with_capacity(PACK_BYTES + 4096),
        last_at: 0,
        first: 0,
        packed: 0,
        buffer: vec![0; DATAGRAM_BYTES],
    };
    for change in changes {
        bulk.add(change);
        if bulk.packed == PACK_REQUESTS || bulk.pack.len() >= PACK_BYTES {
            bulk.flush(done)?;
        }
    }
    bulk.flush(done)
}

struct Bulk {
    socket: Socket,
    pack: Vec<u8>,
    /// Where the pack's last message starts.
    last_at: usize,
    /// Place of the pack's first change.
    first: usize,
    packed: usize,
    buffer: Vec<u8>,
}

impl Bulk {
    fn add(&mut self, change: impl FnOnce(u32, &mut Vec<u8>)) {
        self.last_at = self.pack.len();
        change(self.packed as u32 + 1, &mut self.pack);
        self.packed += 1;
    }

    fn flush(&mut self, done: &mut dyn FnMut(usize, Result<(), Refusal>)) -> Result<(), Error> {
        if self.packed == 0 {
            return Ok(());
        }
        self.ask_for_acknowledgement();
        self.socket.send(&self.pack)?;
        let mut heard = 0;
        while heard < self.packed {
            let (upto, refusal) = self.next_answer()?;
            let refused = refusal.is_some();
            for place in heard..upto {
                let last = place + 1 == upto;
                if !(last && refused) {
                    done(self.first + place, Ok(()));
                }
            }
            if let Some(refusal) = refusal {
                done(self.first + upto - 1, Err(refusal));
            }
            heard = upto;
        }
        self.first += self.packed;
        self.packed = 0;
        self.pack.clear();
        Ok(())
    }

    fn ask_for_acknowledgement(&mut self) {
        if let Some(flags) = self.pack.get_mut(self.last_at + FLAGS_AT) {
            *flags |= flag::ACK as u8;
        }
    }

    /// The sequence number of the next answer, and its refusal if it is one.
    fn next_answer(&mut self) -> Result<(usize, Option<Refusal>), Error> {
        loop {
            let len = match self.socket.receive(&mut self.buffer, "a change")? {
                Received::Bytes(len) => len,
                Received::Nothing | Received::Overrun => {
                    return Err(Error::System {
                        what: "receive acknowledgements",
                        source: io::Error::other("the receive buffer overflowed"),
                    });
                }
            };
            for message in messages(&self.buffer[..len]) {
                let message = message?;
                if message.kind != kind::ERROR {
                    continue;
                }
                return Ok((message.sequence as usize, refusal(&message)?));
            }
        }
    }
}
