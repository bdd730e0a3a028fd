//! What the floors under changes have in common (`bare-links`,
//! `bare-routes`): reading answers and keeping nothing of them.

use std::io;

use anyhow::{Context, Result, bail};
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::message::{kind, messages};

/// Reads up to the acknowledgement of a request and throws echoes away; the
/// first refusal ends it all.
pub fn answered(socket: &Socket, sequence: u32) -> Result<()> {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        let len = match socket.receive(&mut buffer, "a change")? {
            Received::Bytes(len) => len,
            Received::Nothing | Received::Overrun => bail!("an answer was lost"),
        };
        for message in messages(buffer.get(..len).unwrap_or_default()) {
            let message = message?;
            if message.kind != kind::ERROR {
                continue;
            }
            let errno = message.payload.first_chunk::<4>();
            match i32::from_ne_bytes(*errno.context("a short answer")?) {
                0 if message.sequence == sequence => return Ok(()),
                0 => {}
                errno => bail!(
                    "request {}: {}",
                    message.sequence,
                    io::Error::from_raw_os_error(-errno)
                ),
            }
        }
    }
}
