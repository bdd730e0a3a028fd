//! A TCP connection with a helper: what was looked at of it, what was changed
//! in it, and what new data names. For [`super::Helpers`] alone.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use packet::{protocol, tcp};

use super::edit::{Edit, MAX_EDITS};
use super::named::{self, Form, Named, Nameds};
use super::segment::Segment;
use super::sequence::{self, Sequence, Text};
use super::{
    ControlKey, EXPECTED_MILLIS, Give, Kind, LEAST_PORT, MAX_HEAD, Refusal, Wanted, ftp, irc, pna,
    rtsp, skinny,
};

/// Whose data is read: a connection, and its alias end.
pub struct Of<'a> {
    /// The connection.
    pub key: &'a ControlKey,
    /// Its alias end.
    pub alias: (Ipv4Addr, u16),
}

/// What is remembered of a connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// What it is of.
    pub kind: Kind,
    /// What was changed on the way out.
    pub out: Sequence,
    /// And on the way in: nothing yet.
    pub incoming: Sequence,
    /// Up to here the inside's data was looked at.
    pub seen: Option<u32>,
    /// The beginning of a line, or of a message's header, whose end has not
    /// come.
    pub head: ArrayVec<u8, MAX_HEAD>,
    /// That line is too long to be kept; or what came is no message.
    pub head_lost: bool,
    /// Bytes of a message that are still to come, and are not looked at.
    pub left: u32,
    /// What a proxy is told.
    pub told: Text,
    /// Whose SYN was seen, the inside's and the remote's: without both there
    /// may be no connection, and nothing is opened for it.
    pub opened: [bool; 2],
    /// When a packet of it was seen last.
    pub last_used_millis: u64,
}

/// A connection that was not used for so long, and in which nothing was
/// changed, may make room.
pub const IDLE_MILLIS: u64 = 60_000;
/// One with changes would break without them: it may when it has expired by any
/// measure (RFC 5382 REQ-5: 2 hours 4 minutes).
pub const CHANGED_IDLE_MILLIS: u64 = 7_440_000;

impl Connection {
    /// A new one.
    pub fn new(kind: Kind, told: Text, now_millis: u64) -> Self {
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
    pub fn is_idle(&self, now_millis: u64) -> bool {
        let idle = now_millis.saturating_sub(self.last_used_millis);
        idle >= CHANGED_IDLE_MILLIS || idle >= IDLE_MILLIS && self.is_plain()
    }

    /// Whether nothing was changed in it.
    pub fn is_plain(&self) -> bool {
        self.out.is_plain() && self.incoming.is_plain()
    }

    /// A SYN: all begins anew.
    pub fn begin(&mut self, segment: &Segment) {
        self.out = Sequence::default();
        self.incoming = Sequence::default();
        self.seen = Some(segment.sequence.wrapping_add(1));
        let [_, remote] = self.opened;
        self.opened = [true, remote && segment.has(tcp::ACK)];
        self.head.clear();
        self.head_lost = false;
        self.left = 0;
    }

    /// A segment of the inside's: what lies far behind is forgotten.
    pub fn advance(&mut self, segment: &Segment) {
        self.out.advance(segment.sequence);
        if segment.has(tcp::ACK) {
            self.incoming.advance(segment.acknowledgement);
        }
    }

    /// The number that a segment goes on with. One without data comes behind
    /// what was put in before it.
    pub fn out_number(&self, segment: &Segment) -> u32 {
        if segment.len() == 0 {
            self.out.forward(segment.sequence)
        } else {
            self.out.forward_start(segment.sequence)
        }
    }

    /// What is to be replaced in a payload: what was replaced before, when
    /// it comes again, and what new data names.
    pub fn edits(
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
                self.change(of, &ends_of(&head, line, read), &place, give)?;
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
fn ends_of(head: &[u8], line: &[u8], read: &dyn Fn(&[u8]) -> Nameds) -> Nameds {
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
