//! What `ip monitor` and `bridge monitor` share: a socket that hears events,
//! or a file of them. Called by these two.

use std::fs::File;
use std::io::{Read as _, Write};
use std::time::Duration;

use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::message::{Message, messages};
use table::{Change, Writer};

use super::session::{Session, complain};
use super::stop::{FAILED, Stop, reason};

/// What the socket holds while its reader does something else; as `ip` has
/// it.
const BUFFER_BYTES: usize = 1 << 20;
/// How long a wait lasts at most before it begins again.
const WAIT: Duration = Duration::from_secs(3600);
/// The longest message that a file may have.
const MAX_MESSAGE: usize = 64 << 10;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

/// A socket that hears the groups which `join` joins.
pub fn subscribe(
    session: &Session,
    join: impl FnOnce(&Socket) -> Result<(), linux::Error>,
) -> Result<Socket, Stop> {
    let socket = Socket::open(&session.namespace)?;
    socket.set_receive_buffer(BUFFER_BYTES)?;
    join(&socket)?;
    Ok(socket)
}

/// Hands on each message, and `None` where some were lost, until somebody
/// ends it. What is left to do is to read, to write, and to ask for links.
pub fn hear<W: Write>(
    session: &Session,
    socket: &Socket,
    out: &mut W,
    mut tell: impl FnMut(&Session, Option<&Message<'_>>, &mut W) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if !session.is_batch {
        crate::ask::give_up(session.options.netns.is_some())?;
    }
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        match socket.try_receive(&mut buffer)? {
            Received::Nothing => {
                out.flush()?;
                socket.wait(WAIT)?;
            }
            Received::Overrun => {
                out.flush()?;
                complain("netlink receive error No buffer space available (105): events were lost");
                tell(session, None, out)?;
            }
            Received::Bytes(len) => {
                for message in messages(buffer.get(..len).unwrap_or_default()) {
                    let Ok(message) = message else { break };
                    tell(session, Some(&message), out)?;
                }
            }
        }
    }
}

/// Hands on each message of a file that `rtmon` or a capture has written, and
/// is read without rights: whose it is, nobody knows.
pub fn from_file(
    session: &Session,
    path: &str,
    tell: &mut dyn FnMut(&Session, &Message<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut file = File::open(path)
        .map_err(|error| Stop::wrong(format!("Cannot fopen: {}", reason(&error))))?;
    if !session.is_batch {
        crate::ask::give_up(session.options.netns.is_some())?;
    }
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        let head = read(&mut file, buffer.get_mut(..HEADER).unwrap_or_default())?;
        if head == 0 {
            return Ok(());
        }
        let len = match buffer.first_chunk() {
            Some(len) if head == HEADER => u32::from_ne_bytes(*len) as usize,
            _ => return Err(cut_off()),
        };
        let padded = len.next_multiple_of(4);
        if !(HEADER..=MAX_MESSAGE).contains(&padded) {
            return Err(Stop::Left {
                status: FAILED,
                text: format!("!!!malformed message: len={len}"),
            });
        }
        let rest = buffer.get_mut(HEADER..padded).unwrap_or_default();
        if read(&mut file, rest)? < padded - HEADER {
            return Err(cut_off());
        }
        for message in messages(buffer.get(..padded).unwrap_or_default()) {
            let Ok(message) = message else { break };
            tell(session, &message)?;
        }
    }
}

fn cut_off() -> Stop {
    Stop::Left {
        status: FAILED,
        text: "rtnl-from_file: truncated message".to_owned(),
    }
}

/// Fills a buffer as far as the file goes.
fn read(file: &mut File, buffer: &mut [u8]) -> Result<usize, Stop> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

/// The links that are there now.
pub fn list_links(session: &Session, writer: &mut Writer) -> Result<(), Stop> {
    *writer = Writer::default();
    for link in linux::once::links(&session.namespace)?.iter() {
        let put = writer.apply(Change::PutLink((**link).clone()));
        put.map_err(|full| Stop::Broken(full.into()))?;
    }
    Ok(())
}
