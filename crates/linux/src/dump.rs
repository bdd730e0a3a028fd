//! A table of the kernel, streamed row by row.
//!
//! The kernel writes the rows while it is being read, 32 KiB at most at a
//! time. A short table is read and handled in turn; for a long one a
//! second thread reads while the caller's handles, so that the whole takes
//! hardly longer than the kernel's part.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Instant;

use netlink::message::{Message, flag, kind, messages};
use netlink::request::Dump;

use crate::error::{Error, Refusal, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Datagrams handled in turn before a second thread is worth its start.
const INLINE_DATAGRAMS: usize = 8;
/// Datagrams that may wait to be handled: 2 MiB.
const QUEUE: usize = 32;

/// How a dump ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpEnd {
    /// The table changed meanwhile in a way that may have left rows out or
    /// shown them twice (`flag::DUMP_INTR`).
    pub interrupted: bool,
    /// The caller broke off.
    pub broken_off: bool,
}

/// Streams a table of a namespace through `each`, in the kernel's order.
/// Memory: 2 MiB of buffers at most, whatever the table's size.
pub fn dump(
    namespace: &Namespace,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, Error> {
    dump_on(&Socket::open(namespace)?, request, each)
}

/// The same on a socket that is used for nothing else meanwhile. After an
/// error or a break the socket still holds the rest: drop it.
pub fn dump_on(
    socket: &Socket,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, Error> {
    let mut bytes = Vec::with_capacity(128);
    request.encode(SEQUENCE, &mut bytes);
    ask(socket, &bytes, &mut { each })
}

/// Who takes in an answer.
pub(crate) trait Rows {
    /// A datagram of it, before its messages, and when the kernel had just
    /// written it.
    fn datagram(&mut self, _: &[u8], _written: Instant) {}
    /// A message of it, but for the last.
    fn message(&mut self, message: &Message<'_>) -> ControlFlow<()>;
}

impl<F: FnMut(&Message<'_>) -> ControlFlow<()>> Rows for F {
    fn message(&mut self, message: &Message<'_>) -> ControlFlow<()> {
        self(message)
    }
}

/// The same for any request that is answered like a dump, and has
/// [`SEQUENCE`] as its number.
///
/// The kernel writes a part of the answer in the call that asks for it
/// (`send`, or the `recv` of the part before), and may have waited for its
/// lock of links first: the end of that call is when the part was written.
pub(crate) fn ask(socket: &Socket, request: &[u8], rows: &mut dyn Rows) -> Result<DumpEnd, Error> {
    let mut handler = Handler::of(rows);
    if let Some(written) = in_turn(socket, request, &mut handler, INLINE_DATAGRAMS)? {
        in_parallel(socket, &mut handler, written)?;
    }
    Ok(handler.end)
}

/// The same on the caller's thread alone: for rows that take less time than
/// waking another thread for a datagram of them.
pub(crate) fn ask_alone(
    socket: &Socket,
    request: &[u8],
    rows: &mut dyn Rows,
) -> Result<DumpEnd, Error> {
    let mut handler = Handler::of(rows);
    in_turn(socket, request, &mut handler, usize::MAX)?;
    Ok(handler.end)
}

/// Handles so many datagrams as they come; gives when the next was written,
/// if that was not the end.
fn in_turn(
    socket: &Socket,
    request: &[u8],
    handler: &mut Handler<'_>,
    most: usize,
) -> Result<Option<Instant>, Error> {
    socket.send(request)?;
    let mut written = Instant::now();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    for _ in 0..most {
        let len = receive(socket, &mut buffer)?;
        let next = Instant::now();
        if handler.datagram(&buffer[..len], written)?.is_break() {
            return Ok(None);
        }
        written = next;
    }
    Ok(Some(written))
}

/// Every dump has a socket's whole conversation: one number will do.
pub(crate) const SEQUENCE: u32 = 1;

struct Handler<'a> {
    rows: &'a mut dyn Rows,
    end: DumpEnd,
}

impl<'a> Handler<'a> {
    fn of(rows: &'a mut dyn Rows) -> Self {
        let end = DumpEnd::default();
        Self { rows, end }
    }

    /// Breaks at the end of the dump.
    fn datagram(&mut self, datagram: &[u8], written: Instant) -> Result<ControlFlow<()>, Error> {
        self.rows.datagram(datagram, written);
        for message in messages(datagram) {
            let message = message?;
            if message.sequence != SEQUENCE {
                continue;
            }
            self.end.interrupted |= message.flags & flag::DUMP_INTR != 0;
            match message.kind {
                kind::DONE | kind::ERROR => {
                    return end_of(&message).map(|()| ControlFlow::Break(()));
                }
                _ if self.rows.message(&message).is_break() => {
                    self.end.broken_off = true;
                    return Ok(ControlFlow::Break(()));
                }
                _ => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Whether a listing ended well, by its last message.
pub(crate) fn end_of(message: &Message<'_>) -> Result<(), Error> {
    match refusal(message)? {
        None => Ok(()),
        Some(Refusal { source, message }) => Err(Error::Refused {
            what: "list a table",
            source,
            message,
        }),
    }
}

fn receive(socket: &Socket, buffer: &mut [u8]) -> Result<usize, Error> {
    match socket.receive(buffer, "a dump")? {
        Received::Bytes(len) => Ok(len),
        Received::Nothing | Received::Overrun => Err(Error::System {
            what: "receive a dump",
            source: io::Error::other("the receive buffer overflowed"),
        }),
    }
}

/// A part of an answer: the buffer, how much of it is filled, and when it was
/// written.
type Filled = Result<(Vec<u8>, usize, Instant), Error>;

fn in_parallel(socket: &Socket, handler: &mut Handler<'_>, written: Instant) -> Result<(), Error> {
    let (filled, to_handle) = sync_channel::<Filled>(QUEUE);
    let (handled, to_fill) = channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("dump".into())
            .spawn_scoped(scope, move || read_all(socket, written, &filled, &to_fill))
            .map_err(Error::system("start a thread to read a dump"))?;
        let result = handle_all(handler, &to_handle, &handled);
        // Lets a reader that still has rows to deliver end.
        drop(to_handle);
        result
    })
}

fn read_all(
    socket: &Socket,
    mut written: Instant,
    filled: &SyncSender<Filled>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut buffer = empty.try_recv().unwrap_or_else(|_| vec![0; DATAGRAM_BYTES]);
        let received = receive(socket, &mut buffer);
        let next = Instant::now();
        let last = match &received {
            Ok(len) => has_end(&buffer[..*len]),
            Err(_) => true,
        };
        let sent = filled.send(received.map(|len| (buffer, len, written)));
        if last || sent.is_err() {
            return;
        }
        written = next;
    }
}

fn has_end(datagram: &[u8]) -> bool {
    messages(datagram).any(|message| match message {
        Ok(message) => matches!(message.kind, kind::DONE | kind::ERROR),
        Err(_) => true,
    })
}

fn handle_all(
    handler: &mut Handler<'_>,
    to_handle: &Receiver<Filled>,
    handled: &Sender<Vec<u8>>,
) -> Result<(), Error> {
    while let Ok(received) = to_handle.recv() {
        let (buffer, len, written) = received?;
        if handler.datagram(&buffer[..len], written)?.is_break() {
            return Ok(());
        }
        // The reader may be gone already: then the buffer is not wanted.
        let _ = handled.send(buffer);
    }
    Ok(())
}
