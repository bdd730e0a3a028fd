//! Many changes in few system calls.
//!
//! Requests are packed many to a send. Only the last of a pack asks for an
//! acknowledgement: the kernel reports every failure anyway, so a request
//! that was not named in one before the acknowledgement has succeeded. The
//! kernel works on a pack before the send returns, so a second pack in
//! flight would wait for nothing; what bounds a pack is that all its
//! answers fit the receive buffer.
//!
//! [`apply`] is the short way; [`Bulk`] hears echoes, may be stopped
//! between packs and tells how long each took. For the program, and for
//! [`crate::links`].

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netlink::message::{Message, flag, kind, messages};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Refusal, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Bytes of requests in a send.
const PACK_BYTES: usize = 32 * 1024;
/// Requests in a send, at most.
pub const PACK_REQUESTS: usize = 128;
/// Asked for; where the host's limit is lower, packs are made smaller.
const RECEIVE_BUFFER: usize = 1 << 20;
/// What a refusal takes of the receive buffer, with the kernel's words and
/// its own bookkeeping.
const REFUSAL_BYTES: usize = 1024;
/// The same of an echoed link: a page, and bookkeeping.
const ECHO_BYTES: usize = 5 * 1024;

/// Where the low byte of `nlmsg_flags` stands in a message's header.
const FLAGS_AT: usize = 6 + cfg!(target_endian = "big") as usize;

/// How often a send is tried for which the kernel had no memory, and the
/// time between: one second together.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

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
    let mut bulk = Bulk::open(namespace, Options::default())?;
    bulk.run(changes, &mut |heard| match heard {
        Heard::Done(place) => done(place, Ok(())),
        Heard::Refused(place, refusal) => done(place, Err(refusal)),
        Heard::Lost(place) => done(place, Err(lost())),
        Heard::Echo(..) | Heard::Sent(_) => {}
    })?;
    Ok(())
}

fn lost() -> Refusal {
    Refusal {
        source: Errno::NOBUFS.into(),
        message: Some("the kernel's answer was lost; look whether it was done".into()),
    }
}

fn too_long() -> Refusal {
    Refusal {
        source: Errno::MSGSIZE.into(),
        message: Some("it does not fit a netlink message".into()),
    }
}

/// How changes are sent.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Requests in a send, at most; 1 waits for each by itself.
    pub pack: usize,
    /// Requests carry `flag::ECHO`: the answers need more room.
    pub echo: bool,
    /// Set from elsewhere (Ctrl-C): nothing more is sent. Looked at between
    /// packs.
    pub stop: Option<&'a AtomicBool>,
    /// Bytes of receive buffer to ask for.
    pub receive_buffer: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            pack: PACK_REQUESTS,
            echo: false,
            stop: None,
            receive_buffer: RECEIVE_BUFFER,
        }
    }
}

/// What is heard of changes. Places count from the start of a run; each
/// gets one of `Done`, `Refused` and `Lost`, in order within a pack.
#[derive(Debug)]
pub enum Heard<'a> {
    /// What the kernel made of a request that asked for an echo; before
    /// its `Done`.
    Echo(usize, Message<'a>),
    /// It is done.
    Done(usize),
    /// The kernel refused it.
    Refused(usize, Refusal),
    /// The answer was lost (`ENOBUFS`): whether it was done must be read.
    Lost(usize),
    /// A pack is through.
    Sent(Sent),
}

/// A pack that is through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The places of its requests.
    pub places: Range<usize>,
    /// From the send to the acknowledgement.
    pub took: Duration,
    /// As much of it this thread did not run: the kernel waited, for
    /// grace periods or for others.
    pub waited: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// So many changes were sent and heard of.
    pub sent: usize,
    /// It was told to stop before all were.
    pub stopped: bool,
}

/// A connection for changes, for any number of runs.
#[derive(Debug)]
pub struct Bulk<'a> {
    socket: Socket,
    stop: Option<&'a AtomicBool>,
    most: usize,
    pack: Vec<u8>,
    packed: usize,
    /// Place of the pack's last message, and where it starts: it asks for
    /// the acknowledgement.
    last: Option<(usize, usize)>,
    /// Places of changes that made no message, being too long for one.
    unsaid: Vec<usize>,
    /// Sequence number of the pack's first request.
    sequence: u32,
    buffer: Vec<u8>,
}

/// What became of the requests of a pack.
#[derive(Default)]
struct Answers {
    refused: Vec<(usize, Refusal)>,
    overrun: bool,
    acknowledged: bool,
}

impl<'a> Bulk<'a> {
    /// Opens one in a namespace.
    pub fn open(namespace: &Namespace, options: Options<'a>) -> Result<Self, Error> {
        let socket = Socket::open(namespace)?;
        let room = socket.set_receive_buffer(options.receive_buffer)?;
        let answer = if options.echo {
            ECHO_BYTES
        } else {
            REFUSAL_BYTES
        };
        Ok(Self {
            socket,
            stop: options.stop,
            most: options.pack.min(room / answer).clamp(1, PACK_REQUESTS),
            pack: Vec::with_capacity(PACK_BYTES + 4096),
            packed: 0,
            last: None,
            unsaid: Vec::new(),
            sequence: 1,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Requests in a send, as the receive buffer allows.
    pub fn pack(&self) -> usize {
        self.most
    }

    /// Sends changes in order, as [`apply`] does. Memory: a pack.
    pub fn run<E>(
        &mut self,
        changes: impl IntoIterator<Item = E>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Ended, Error>
    where
        E: FnOnce(u32, &mut Vec<u8>),
    {
        let mut first = 0;
        let mut changes = changes.into_iter();
        loop {
            let stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if stopped || !self.fill(&mut changes) {
                return Ok(Ended {
                    sent: first,
                    stopped,
                });
            }
            let packed = self.packed;
            self.flush(first, heard)?;
            first += packed;
        }
    }

    /// Packs what comes next; false when nothing does.
    fn fill<E>(&mut self, changes: &mut impl Iterator<Item = E>) -> bool
    where
        E: FnOnce(u32, &mut Vec<u8>),
    {
        self.pack.clear();
        self.packed = 0;
        self.last = None;
        self.unsaid.clear();
        while self.packed < self.most && self.pack.len() < PACK_BYTES {
            let Some(change) = changes.next() else {
                break;
            };
            let start = self.pack.len();
            let sequence = self.sequence.wrapping_add(self.packed as u32);
            change(sequence, &mut self.pack);
            if self.pack.len() > start {
                self.last = Some((self.packed, start));
            } else {
                self.unsaid.push(self.packed);
            }
            self.packed += 1;
        }
        self.packed > 0
    }

    fn flush(&mut self, first: usize, heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Error> {
        let (began, ran) = (Instant::now(), cpu());
        let mut answers = Answers::default();
        if let Some((_, start)) = self.last {
            if let Some(flags) = self.pack.get_mut(start + FLAGS_AT) {
                *flags |= flag::ACK as u8;
            }
            self.send()?;
            answers = self.hear(first, heard)?;
        }
        let unsaid = self.unsaid.iter().map(|place| (*place, too_long()));
        answers.refused.extend(unsaid);
        answers.refused.sort_by_key(|(place, _)| *place);
        let took = began.elapsed();
        let waited = took.saturating_sub(cpu().saturating_sub(ran));
        let packed = self.packed;
        tell(first, packed, answers, heard);
        heard(Heard::Sent(Sent {
            places: first..first + packed,
            took,
            waited,
        }));
        self.sequence = self.sequence.wrapping_add(packed as u32);
        Ok(())
    }

    /// Sends the pack; waits a little for memory where the kernel has none.
    fn send(&self) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            match self.socket.send(&self.pack) {
                Err(Error::System { source, .. }) if tries < TRIES && is_no_memory(&source) => {
                    tries += 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                result => return result,
            }
        }
    }

    /// Reads the pack's answers. After an overrun those that are there.
    fn hear(&mut self, first: usize, heard: &mut dyn FnMut(Heard<'_>)) -> Result<Answers, Error> {
        let mut answers = Answers::default();
        while !answers.acknowledged {
            let received = if answers.overrun {
                self.socket.try_receive(&mut self.buffer)?
            } else {
                self.socket.receive(&mut self.buffer, "a change")?
            };
            match received {
                Received::Bytes(len) => {
                    for message in messages(&self.buffer[..len]) {
                        self.answer(&message?, first, &mut answers, heard)?;
                    }
                }
                Received::Overrun => answers.overrun = true,
                Received::Nothing => break,
            }
        }
        Ok(answers)
    }

    fn answer(
        &self,
        message: &Message<'_>,
        first: usize,
        answers: &mut Answers,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Error> {
        let place = message.sequence.wrapping_sub(self.sequence) as usize;
        if place >= self.packed {
            // A late answer of a pack that an overrun broke off.
            return Ok(());
        }
        if message.kind != kind::ERROR {
            heard(Heard::Echo(first + place, *message));
            return Ok(());
        }
        answers.acknowledged |= self.last.is_some_and(|(last, _)| place == last);
        if let Some(refusal) = refusal(message)? {
            answers.refused.push((place, refusal));
        }
        Ok(())
    }
}

fn tell(first: usize, packed: usize, answers: Answers, heard: &mut dyn FnMut(Heard<'_>)) {
    let mut refused = answers.refused.into_iter().peekable();
    for place in 0..packed {
        if let Some((_, refusal)) = refused.next_if(|(at, _)| *at == place) {
            heard(Heard::Refused(first + place, refusal));
        } else if answers.overrun {
            heard(Heard::Lost(first + place));
        } else {
            heard(Heard::Done(first + place));
        }
    }
}

fn is_no_memory(error: &io::Error) -> bool {
    [Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Time this thread has run.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
