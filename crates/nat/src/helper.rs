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
//! entry in [`REGISTRY`], and a branch: of TCP in `connection.rs`, of UDP in
//! the engine's `help_datagram`.

mod bounded;
pub(crate) mod calling;
mod calls;
mod connection;
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

use packet::tcp;

use bounded::Bounded;
use calling::Calling;
use connection::{Connection, Of};
use segment::{Segment, rewrite};
use sequence::{Refused, Text};

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
pub(crate) const EXPECTED_MILLIS: u64 = 60_000;
/// The beginning of a line or message that is kept until the rest comes.
const MAX_HEAD: usize = 16;

/// Gives an alias to what is announced: the engine's part. `None`: no port
/// is free.
pub type Give<'a> = &'a mut dyn FnMut(Wanted) -> Option<(Ipv4Addr, u16)>;

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

#[cfg(test)]
mod tests;
