//! Protocol helpers (ALGs): connections that name addresses and ports in
//! what they carry. For the engine alone, which hands over the packets of
//! the flows that it has marked, before it translates them.
//!
//! What a helper remembers lies here, beside the flow table, and is bounded:
//! [`Limits`]. A packet that must grow is refused when there is no room
//! behind it; one that cannot be rewritten soundly is refused as well, and
//! comes again ([`Refusal`]).
//!
//! A helper is a module that reads and writes the bytes of its protocol, an
//! entry in [`REGISTRY`], and a branch: of TCP in [`Connection::edits`], of
//! UDP in the engine's `help_datagram`.

mod bounded;
pub(crate) mod calling;
mod calls;
mod datagram;
mod edit;
pub(crate) mod ftp;
mod irc;
mod named;
pub(crate) mod nbt;
mod pna;
mod pptp;
mod rtsp;
mod saved;
mod segment;
mod sequence;
mod sip;
mod skinny;
pub mod stream;
mod switches;
pub(crate) mod tftp;

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use packet::{protocol, tcp};

use bounded::Bounded;
use calling::Calling;
use edit::{Edit, MAX_EDITS};
use named::{Form, Named, Nameds};
use segment::{Segment, rewrite};
use sequence::{Refused, Sequence, Text};

pub use calls::Calls;
pub use switches::{Entry, Helped, REGISTRY};

/// What a helper is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// FTP's control connection (RFC 959, RFC 2428).
    Ftp,
    /// PPTP's control connection (RFC 2637).
    Pptp,
    /// A connection to a proxy that is told by its first bytes where it was
    /// meant to go.
    Proxied,
    /// IRC, whose clients offer each other connections (DCC).
    Irc,
    /// TFTP (RFC 1350), whose servers answer from another port.
    Tftp,
    /// RTSP (RFC 2326) and PNA, which name the ports of media.
    Rtsp,
    /// Skinny, by which phones speak with their call manager.
    Skinny,
    /// NetBIOS's names and datagrams over UDP (RFC 1002).
    Nbt,
    /// SIP over UDP (RFC 3261), with the sessions that it describes.
    Sip,
}

impl Kind {
    /// By its number in a saved state, which never changes.
    fn of(number: u8) -> Option<Self> {
        let all = [
            Self::Ftp,
            Self::Pptp,
            Self::Proxied,
            Self::Irc,
            Self::Tftp,
            Self::Rtsp,
            Self::Skinny,
            Self::Nbt,
            Self::Sip,
        ];
        all.get(usize::from(number)).copied()
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// How much helpers remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections; about 3 KiB each. A further one goes without help.
    pub connections: usize,
    /// PPTP calls; about 100 bytes each. A further one is refused.
    pub calls: usize,
    /// Ends that calls by SIP have named; about 40 bytes each. A further one
    /// gets another alias each time that it is named.
    pub ends: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            calls: 16_384,
            ends: 16_384,
        }
    }
}

/// Why a helper's packet is dropped, and nothing of it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It must grow, and there is no room behind it.
    #[error("no room behind the packet for what a helper writes")]
    NoRoom,
    /// No port (or call identifier) is free for what it names.
    #[error("no alias port is free for what a connection names")]
    NoPort,
    /// Data came before what lies in front of it; it will come again.
    #[error("data out of order in a connection with a helper")]
    OutOfOrder,
    /// Too much was changed that is not acknowledged yet; it will come again.
    #[error("too many changes that are not acknowledged")]
    Unacknowledged,
    /// The sender has sent something else under the same numbers.
    #[error("retransmitted data that differs")]
    Inconsistent,
    /// It names more ends than one packet may.
    #[error("more ends in one packet than are looked at")]
    TooMany,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unacknowledged => Self::Unacknowledged,
            Refused::Inconsistent => Self::Inconsistent,
        }
    }
}

/// A connection with a helper, as its inside host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ControlKey {
    /// The inside host.
    pub inside: Ipv4Addr,
    /// Its port.
    pub inside_port: u16,
    /// The other end.
    pub remote: Ipv4Addr,
    /// The other end's port.
    pub remote_port: u16,
}

/// What a connection has announced: another one, or a call, that needs an
/// alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The inside host.
    pub inside: Ipv4Addr,
    /// The protocol.
    pub protocol: u8,
    /// The port where it waits.
    pub inside_port: u16,
    /// How many ports in a row.
    pub ports: u16,
    /// Whether anybody may come, since nobody knows who will; else only the
    /// other end of the connection that has announced it.
    pub from_anybody: bool,
    /// The first alias port that it was given before.
    pub again: Option<u16>,
    /// How long it is waited for.
    pub wait_millis: u64,
}

/// Nobody outside is let in to a privileged port because a packet says so.
pub const LEAST_PORT: u16 = 1_024;
/// How long what a connection has announced is waited for.
const EXPECTED_MILLIS: u64 = 60_000;
/// The beginning of a line or message that is kept until the rest comes.
const MAX_HEAD: usize = 16;

/// Gives an alias to what is announced: the engine's part. `None`: no port
/// is free.
pub type Give<'a> = &'a mut dyn FnMut(Wanted) -> Option<(Ipv4Addr, u16)>;

/// Whose data is read: a connection, and its alias end.
struct Of<'a> {
    key: &'a ControlKey,
    alias: (Ipv4Addr, u16),
}

/// What is remembered of a connection.
#[derive(Debug, Clone)]
struct Connection {
    kind: Kind,
    out: Sequence,
    incoming: Sequence,
    /// Up to here the inside's data was looked at.
    seen: Option<u32>,
    /// The beginning of a line, or of a message's header, whose end has not
    /// come.
    head: ArrayVec<u8, MAX_HEAD>,
    /// That line is too long to be kept; or what came is no message.
    head_lost: bool,
    /// Bytes of a message that are still to come, and are not looked at.
    left: u32,
    /// What a proxy is told.
    told: Text,
    /// Whose SYN was seen, the inside's and the remote's: without both there
    /// may be no connection, and nothing is opened for it.
    opened: [bool; 2],
    last_used_millis: u64,
}

/// A connection that was not used for so long, and in which nothing was
/// changed, may make room.
const IDLE_MILLIS: u64 = 60_000;
/// One with changes would break without them: it may when it has expired by any
/// measure (RFC 5382 REQ-5: 2 hours 4 minutes).
const CHANGED_IDLE_MILLIS: u64 = 7_440_000;

/// What helpers remember of all connections.
#[derive(Debug, Default)]
pub struct Helpers {
    connections: Bounded<ControlKey, Box<Connection>>,
    calls: Calls,
    calling: Calling,
}

impl Helpers {
    /// Nothing remembered yet, so much at most. Allocates nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            connections: Bounded::new(limits.connections),
            calls: Calls::new(limits.calls),
            calling: Calling::new(limits.ends),
        }
    }

    /// Connections remembered.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.connections.len() == 0
    }

    /// PPTP's calls: for the engine's GRE packets.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The same, to translate by them.
    pub fn calls_mut(&mut self) -> &mut Calls {
        &mut self.calls
    }

    /// What calls by SIP have named: for the engine's datagrams.
    pub fn calling_mut(&mut self) -> &mut Calling {
        &mut self.calling
    }

    /// The sequence and acknowledgement numbers of a segment that went through
    /// a connection, on the side that it came from: for errors about it.
    /// `left`: it went out. O(changes).
    pub fn numbers_before(&self, key: &ControlKey, left: bool, numbers: (u32, u32)) -> (u32, u32) {
        let Some(connection) = self.connections.get(key) else {
            return numbers;
        };
        let (from, to) = if left {
            (&connection.out, &connection.incoming)
        } else {
            (&connection.incoming, &connection.out)
        };
        let (sequence, acknowledgement) = numbers;
        (from.backward(sequence), to.forward(acknowledgement))
    }

    /// A new flow of this kind. Whether it is remembered: with the table
    /// full of connections in use it is not, and goes without help. O(1).
    pub fn open(&mut self, kind: Kind, key: ControlKey, now_millis: u64) -> bool {
        let fresh = Connection::new(kind, Text::new(), now_millis);
        self.connections
            .insert(key, Box::new(fresh), |known| known.is_idle(now_millis))
    }

    /// A new flow to a proxy that is to be told where it was meant to go.
    pub fn open_proxied(
        &mut self,
        key: ControlKey,
        meant: (Ipv4Addr, u16),
        now_millis: u64,
    ) -> bool {
        let told = stream::destination(meant.0, meant.1);
        let fresh = Connection::new(Kind::Proxied, told, now_millis);
        self.connections
            .insert(key, Box::new(fresh), |known| known.is_idle(now_millis))
    }

    /// The flow has ended.
    pub fn close(&mut self, key: &ControlKey) {
        self.connections.remove(key);
    }

    /// A packet from inside, not translated yet, of a flow whose alias end is
    /// `alias`, in a buffer that reaches to the end of its room. O(bytes of
    /// its payload).
    pub fn outgoing(
        &mut self,
        key: &ControlKey,
        alias: (Ipv4Addr, u16),
        bytes: &mut [u8],
        give: Give<'_>,
        now_millis: u64,
    ) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get_mut(key) else {
            return Ok(());
        };
        let Some(segment) = Segment::read(bytes) else {
            return Ok(());
        };
        connection.last_used_millis = now_millis;
        if connection.kind == Kind::Pptp {
            return self
                .calls
                .announce(key, alias.0, bytes, &segment, now_millis);
        }
        if segment.has(tcp::SYN) {
            connection.begin(&segment);
            return Ok(());
        }
        connection.advance(&segment);
        let of = Of { key, alias };
        let edits = connection.edits(&of, &segment, segment.payload(bytes), give)?;
        let acknowledged = segment.has(tcp::ACK).then_some(segment.acknowledgement);
        if let Some(number) = acknowledged {
            let number = connection.incoming.backward(number);
            connection.incoming.acknowledge(number);
        }
        if edits.is_empty() && connection.is_plain() {
            return Ok(());
        }
        let sequence = connection.out_number(&segment);
        rewrite(bytes, &segment, &edits, sequence, &connection.incoming)
    }

    /// A packet from outside, not translated yet, of a flow as above. O(bytes
    /// of its payload).
    pub fn incoming(
        &mut self,
        key: &ControlKey,
        alias: Ipv4Addr,
        bytes: &mut [u8],
        now_millis: u64,
    ) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Some(segment) = Segment::read(bytes) else {
            return;
        };
        connection.last_used_millis = now_millis;
        if segment.has(tcp::SYN) {
            let [inside, _] = connection.opened;
            connection.opened = [inside && segment.has(tcp::ACK), true];
        }
        if connection.kind == Kind::Pptp {
            self.calls.answer(key, alias, bytes, &segment, now_millis);
            return;
        }
        if segment.has(tcp::ACK) {
            let number = connection.out.backward(segment.acknowledgement);
            connection.out.acknowledge(number);
        }
        if connection.is_plain() {
            return;
        }
        let sequence = connection.incoming.forward(segment.sequence);
        // Without edits nothing grows, so that nothing is refused.
        let _ = rewrite(bytes, &segment, &[], sequence, &connection.out);
    }
}

impl Connection {
    fn new(kind: Kind, told: Text, now_millis: u64) -> Self {
        Self {
            kind,
            out: Sequence::default(),
            incoming: Sequence::default(),
            seen: None,
            head: ArrayVec::new(),
            head_lost: false,
            left: 0,
            told,
            opened: [false; 2],
            last_used_millis: now_millis,
        }
    }

    /// Whether it may make room for another.
    fn is_idle(&self, now_millis: u64) -> bool {
        let idle = now_millis.saturating_sub(self.last_used_millis);
        idle >= CHANGED_IDLE_MILLIS || idle >= IDLE_MILLIS && self.is_plain()
    }

    fn is_plain(&self) -> bool {
        self.out.is_plain() && self.incoming.is_plain()
    }

    /// A SYN: all begins anew.
    fn begin(&mut self, segment: &Segment) {
        self.out = Sequence::default();
        self.incoming = Sequence::default();
        self.seen = Some(segment.sequence.wrapping_add(1));
        let [_, remote] = self.opened;
        self.opened = [true, remote && segment.has(tcp::ACK)];
        self.head.clear();
        self.head_lost = false;
        self.left = 0;
    }

    fn advance(&mut self, segment: &Segment) {
        self.out.advance(segment.sequence);
        if segment.has(tcp::ACK) {
            self.incoming.advance(segment.acknowledgement);
        }
    }

    /// The number that a segment goes on with. One without data comes behind
    /// what was put in before it.
    fn out_number(&self, segment: &Segment) -> u32 {
        if segment.len() == 0 {
            self.out.forward(segment.sequence)
        } else {
            self.out.forward_start(segment.sequence)
        }
    }

    /// What is to be replaced in a payload: what was replaced before, when
    /// it comes again, and what new data names.
    fn edits(
        &mut self,
        of: &Of<'_>,
        segment: &Segment,
        payload: &[u8],
        give: Give<'_>,
    ) -> Result<ArrayVec<Edit, MAX_EDITS>, Refusal> {
        if payload.is_empty() {
            return Ok(ArrayVec::new());
        }
        let seen = *self.seen.get_or_insert(segment.sequence);
        // How much of it was seen before; a gap is far more than it holds.
        let known = seen.wrapping_sub(segment.sequence) as i32;
        if known < 0 {
            return Err(Refusal::OutOfOrder);
        }
        let known = (known as usize).min(payload.len());
        if let Some(new) = payload.get(known..).filter(|new| !new.is_empty()) {
            let at = segment.sequence.wrapping_add(known as u32);
            self.read(of, new, at, give)?;
            self.seen = Some(segment.next());
        }
        let mut edits = ArrayVec::new();
        for change in self.out.within(segment.sequence, segment.next()) {
            edits
                .try_push(edit(change, segment, payload.len()))
                .map_err(|_| Refusal::Unacknowledged)?;
        }
        Ok(edits)
    }

    /// Looks at new data, the first byte of which has the number `at`.
    fn read(&mut self, of: &Of<'_>, new: &[u8], at: u32, give: Give<'_>) -> Result<(), Refusal> {
        let key = of.key;
        match self.kind {
            Kind::Ftp => {
                let speaker = match key.inside_port == ftp::PORT {
                    true => ftp::Speaker::Server,
                    false => ftp::Speaker::Client,
                };
                let read = |line: &[u8]| ftp::read(line, speaker).into_iter().collect();
                self.read_lines(of, new, at, &read, give)
            }
            Kind::Irc if key.remote_port == irc::PORT => {
                let read = |line: &[u8]| irc::read(line).into_iter().collect();
                self.read_lines(of, new, at, &read, give)
            }
            Kind::Rtsp => {
                let is_server = rtsp::PORTS.contains(&key.inside_port);
                if !is_server && new.starts_with(pna::GREETING) {
                    let place = |offset: usize| at.wrapping_add(offset as u32);
                    return self.change(of, &pna::read(new), &place, give);
                }
                let read = |line: &[u8]| rtsp::read(line, is_server);
                self.read_lines(of, new, at, &read, give)
            }
            Kind::Skinny => self.read_messages(of, new, at, give),
            Kind::Proxied => self.tell(at),
            Kind::Pptp | Kind::Irc | Kind::Tftp | Kind::Nbt | Kind::Sip => Ok(()),
        }
    }

    /// Looks for endpoints in the messages of new data. One that is cut by
    /// the end of a segment stays as it is, and those behind it are read.
    fn read_messages(
        &mut self,
        of: &Of<'_>,
        new: &[u8],
        at: u32,
        give: Give<'_>,
    ) -> Result<(), Refusal> {
        let (mut head, mut left) = (self.head.clone(), self.left as usize);
        let mut from = 0;
        while let Some(rest) = new.get(from..).filter(|rest| !rest.is_empty()) {
            if self.head_lost {
                break;
            }
            if left > 0 {
                let passed = left.min(rest.len());
                (from, left) = (from + passed, left - passed);
                continue;
            }
            if !head.is_empty() {
                let more = (skinny::HEADER_LEN - head.len()).min(rest.len());
                head.extend(rest.iter().take(more).copied());
                from += more;
                if head.len() == skinny::HEADER_LEN {
                    let len = skinny::len(&head);
                    self.head_lost = len.is_none();
                    left = len.unwrap_or(0).saturating_sub(skinny::HEADER_LEN);
                    head.clear();
                }
                continue;
            }
            match skinny::read(rest, of.key.inside) {
                skinny::Message::Whole(len, nameds) => {
                    let place = |offset: usize| at.wrapping_add((from + offset) as u32);
                    self.change(of, &nameds, &place, give)?;
                    from += len;
                }
                skinny::Message::Begun(len) => left = len,
                skinny::Message::Short => {
                    head.extend(rest.iter().copied());
                    from = new.len();
                }
                skinny::Message::Foreign => self.head_lost = true,
            }
        }
        (self.head, self.left) = (head, left as u32);
        Ok(())
    }

    /// Looks for endpoints in the lines of new data, each by `read`.
    fn read_lines(
        &mut self,
        of: &Of<'_>,
        new: &[u8],
        at: u32,
        read: &dyn Fn(&[u8]) -> Nameds,
        give: Give<'_>,
    ) -> Result<(), Refusal> {
        let (mut head, mut head_lost) = (self.head.clone(), self.head_lost);
        let mut from = 0;
        while let Some(rest) = new.get(from..).filter(|rest| !rest.is_empty()) {
            let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
                head_lost |= head.try_extend_from_slice(rest).is_err();
                break;
            };
            let line = rest.get(..len).unwrap_or_default();
            if !head_lost {
                let place = |offset: usize| at.wrapping_add((from + offset) as u32);
                self.change(of, &named(&head, line, read), &place, give)?;
            }
            head.clear();
            head_lost = false;
            from += len + 1;
        }
        (self.head, self.head_lost) = (head, head_lost);
        Ok(())
    }

    /// Writes other endpoints where a line or message names some; `place` says
    /// the number of a byte in it.
    fn change(
        &mut self,
        of: &Of<'_>,
        nameds: &Nameds,
        place: &dyn Fn(usize) -> u32,
        give: Give<'_>,
    ) -> Result<(), Refusal> {
        // What one line names twice is one thing.
        let mut given = None;
        for named in nameds {
            let (start, end) = (place(named.start), place(named.end));
            if !self.is_ours(of.key, named) || self.out.made(start).is_some() {
                continue;
            }
            if !self.out.has_room() {
                return Err(Refusal::Unacknowledged);
            }
            let (address, port) = match given {
                _ if named.form.is_of_connection() => of.alias,
                Some((of, given)) if of == named.port => given,
                _ => give(self.wanted(of.key, named)).ok_or(Refusal::NoPort)?,
            };
            given = Some((named.port, (address, port)));
            let text = named::write(named.form, address, port);
            self.out.change(start, end, text)?;
        }
        Ok(())
    }

    /// Whether an end is the inside's own, and may be opened where that is
    /// asked for.
    fn is_ours(&self, key: &ControlKey, named: &Named) -> bool {
        let is_own = named.address.is_none_or(|address| address == key.inside);
        let may_open = named.port >= LEAST_PORT && self.opened == [true; 2];
        is_own && (may_open || named.form.is_of_connection())
    }

    /// What a connection announces by naming a port.
    fn wanted(&self, key: &ControlKey, named: &Named) -> Wanted {
        let is_media = matches!(self.kind, Kind::Rtsp | Kind::Skinny);
        Wanted {
            inside: key.inside,
            protocol: if is_media {
                protocol::UDP
            } else {
                protocol::TCP
            },
            inside_port: named.port,
            // RTCP's lies behind RTP's (RFC 3550 §11); PNA has none.
            ports: if is_media && named.form != Form::Port {
                2
            } else {
                1
            },
            from_anybody: matches!(self.kind, Kind::Irc | Kind::Skinny),
            again: None,
            wait_millis: EXPECTED_MILLIS,
        }
    }

    /// Puts in front of the first data where it was meant to go.
    fn tell(&mut self, at: u32) -> Result<(), Refusal> {
        if !self.told.is_empty() {
            self.out.change(at, at, std::mem::take(&mut self.told))?;
        }
        Ok(())
    }
}

/// The endpoints of a line that may have begun in an earlier segment; their
/// places are within `line`.
fn named(head: &[u8], line: &[u8], read: &dyn Fn(&[u8]) -> Nameds) -> Nameds {
    if head.is_empty() {
        return read(line);
    }
    let mut whole = ArrayVec::<u8, { 8 * MAX_HEAD }>::new();
    let is_whole =
        whole.try_extend_from_slice(head).is_ok() && whole.try_extend_from_slice(line).is_ok();
    if !is_whole {
        return Nameds::new();
    }
    let within = |named: Named| {
        // What was sent already cannot be changed any more.
        Some(Named {
            start: named.start.checked_sub(head.len())?,
            end: named.end.checked_sub(head.len())?,
            ..named
        })
    };
    read(&whole).into_iter().filter_map(within).collect()
}

/// A change as an edit of a segment that has to do with it: one that begins
/// in its midst has nothing of it, one that ends there has it whole.
fn edit(change: &sequence::Change, segment: &Segment, len: usize) -> Edit {
    let start = change.start.wrapping_sub(segment.sequence) as i32;
    let end = change.end.wrapping_sub(segment.sequence) as usize;
    let text = if start < 0 {
        Text::new()
    } else {
        change.text.clone()
    };
    Edit {
        start: start.max(0) as usize,
        end: end.min(len),
        text,
    }
}

#[cfg(test)]
mod tests;
