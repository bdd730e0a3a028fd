//! A flow as its owner's callers see it: a copy, not the table's entry.

use std::net::IpAddr;

use crate::clock::millis;
use crate::flow::Ends;
use crate::{AddressRange, SubscriberCounts};

/// How far a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// TCP: the handshake is not done.
    TcpOpening,
    /// TCP: established.
    TcpEstablished,
    /// TCP: one side has sent its FIN.
    TcpHalfClosed,
    /// TCP: both sides have sent their FINs.
    TcpClosed,
    /// TCP: reset.
    TcpReset,
    /// UDP, without an answer yet.
    UdpUnreplied,
    /// UDP, answered.
    Udp,
    /// ICMP query.
    Icmp,
    /// GRE.
    Gre,
    /// Any other protocol.
    Other,
    /// UDP from or to port 53, answered: most questions of DNS have a port of
    /// their own, and one answer.
    Dns,
}

impl State {
    /// All states, in the order of their numbers.
    pub(crate) const ALL: [Self; 11] = [
        Self::TcpOpening,
        Self::TcpEstablished,
        Self::TcpHalfClosed,
        Self::TcpClosed,
        Self::TcpReset,
        Self::UdpUnreplied,
        Self::Udp,
        Self::Icmp,
        Self::Gre,
        Self::Other,
        Self::Dns,
    ];

    /// The state of a number that [`State`] was made into.
    pub(crate) fn of(number: u8) -> Self {
        let state = Self::ALL.get(usize::from(number));
        state.copied().unwrap_or(Self::Other)
    }

    /// Whether a flow in this state is one that was answered and is not
    /// closed: shared mappings count these.
    pub(crate) fn lives_long(self) -> bool {
        matches!(self, Self::TcpEstablished | Self::TcpHalfClosed | Self::Udp)
    }

    /// Whether all was said: what may still come is late.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::TcpClosed | Self::TcpReset | Self::Dns)
    }

    /// Whether it is one of the other states of TCP and UDP.
    pub(crate) fn lives_short(self) -> bool {
        !self.lives_long() && !matches!(self, Self::Icmp | Self::Gre | Self::Other)
    }

    /// Whether a flow of a protocol can be in it.
    pub(crate) fn is_of(self, protocol: u8) -> bool {
        match Self::first(protocol) {
            Self::TcpOpening => matches!(
                self,
                Self::TcpOpening
                    | Self::TcpEstablished
                    | Self::TcpHalfClosed
                    | Self::TcpClosed
                    | Self::TcpReset
            ),
            Self::UdpUnreplied => matches!(self, Self::UdpUnreplied | Self::Udp | Self::Dns),
            first => self == first,
        }
    }

    /// The state a flow of a protocol begins with.
    pub(crate) fn first(protocol: u8) -> Self {
        match protocol {
            packet::protocol::TCP => Self::TcpOpening,
            packet::protocol::UDP | packet::protocol::UDP_LITE => Self::UdpUnreplied,
            packet::protocol::ICMP => Self::Icmp,
            packet::protocol::GRE => Self::Gre,
            _ => Self::Other,
        }
    }
}

/// A flow. Ports are in host order; for ICMP queries `inside_port` and
/// `alias_port` are identifiers, for protocols without ports all are 0. The
/// addresses are of IPv4 as long as the engine translates nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowView {
    /// Protocol number.
    pub protocol: u8,
    /// How far it is.
    pub state: State,
    /// The host inside.
    pub inside: IpAddr,
    /// Its port.
    pub inside_port: u16,
    /// The outside address that stands for it.
    pub alias: IpAddr,
    /// The outside port.
    pub alias_port: u16,
    /// The other end.
    pub remote: IpAddr,
    /// The other end's port.
    pub remote_port: u16,
    /// Milliseconds since its last packet, in steps of 256.
    pub idle_millis: u64,
    /// Milliseconds that it would still live without a packet.
    pub expires_millis: u64,
}

/// A flow at one moment, in memory order and ticks: what an event keeps of
/// it until it is read, because a [`FlowView`] with its addresses of either
/// family is more than twice as large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub ends: Ends,
    pub state: State,
    /// Ticks since its last packet.
    pub idle: u32,
    /// Ticks that it would still live.
    pub left: u32,
}

impl From<Seen> for FlowView {
    fn from(seen: Seen) -> Self {
        let Seen { ends, state, .. } = seen;
        let address = |word: u32| IpAddr::from(word.to_ne_bytes());
        Self {
            protocol: ends.protocol,
            state,
            inside: address(ends.inside),
            inside_port: u16::from_be(ends.inside_port),
            alias: address(ends.alias),
            alias_port: u16::from_be(ends.alias_port),
            remote: address(ends.remote),
            remote_port: u16::from_be(ends.remote_port),
            idle_millis: millis(seen.idle),
            expires_millis: millis(seen.left),
        }
    }
}

/// An outside endpoint that several flows of an inside one share
/// (endpoint-independent and address-dependent mapping, RFC 4787 §4.1). Ports
/// are in host order; addresses as in [`FlowView`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingView {
    /// Protocol number.
    pub protocol: u8,
    /// The host inside.
    pub inside: IpAddr,
    /// Its port.
    pub inside_port: u16,
    /// The outside address that stands for it.
    pub alias: IpAddr,
    /// The outside port.
    pub alias_port: u16,
    /// The remote address it is for; `None`: any.
    pub remote: Option<IpAddr>,
    /// Flows that belong to it, with expired ones that are not swept yet.
    pub flows: u32,
    /// Milliseconds that it would still live if none of them had a packet.
    pub expires_millis: u64,
}

/// A subscriber: what counts for it. Counts are of TCP, UDP, and ICMP with
/// all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriberView {
    /// Its place in the engine's table, as long as it is one.
    pub place: u32,
    /// Its addresses.
    pub subscriber: AddressRange,
    /// Its alias address, where it has one for itself.
    pub alias: Option<IpAddr>,
    /// Mappings.
    pub ports: [u32; 3],
    /// Flows.
    pub sessions: [u32; 3],
    /// Flows without an answer, of TCP and UDP.
    pub half_open: [u32; 2],
    /// Blocks, without one that can be reckoned.
    pub blocks: u8,
    /// What was counted for it, where that is asked for.
    pub counted: Option<SubscriberCounts>,
}

/// A block that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockView {
    /// Who.
    pub subscriber: AddressRange,
    /// The alias address.
    pub alias: IpAddr,
    /// First and last port; `None`: they are shuffled by a key.
    pub ports: Option<(u16, u16)>,
    /// Whether it can be reckoned whose it is.
    pub is_deterministic: bool,
    /// Mappings that have a port of it, and flows without a shared one.
    pub used: u32,
    /// How long it has been its subscriber's, milliseconds.
    pub held_millis: u64,
    /// How long it has been without any; `None`: it has some.
    pub idle_millis: Option<u64>,
}

/// An alias address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolView {
    /// The address.
    pub alias: IpAddr,
    /// Whether it is of the pool; else what is there of it ends by itself.
    pub is_open: bool,
    /// Blocks that can be given of it; 0 where none was given yet, or there
    /// are no blocks.
    pub blocks: u32,
    /// Those of them that are free.
    pub free_blocks: u32,
}

impl PoolView {
    pub(crate) fn without_blocks(alias: IpAddr) -> Self {
        Self {
            alias,
            is_open: true,
            blocks: 0,
            free_blocks: 0,
        }
    }
}

/// A place in the walk over all flows, mappings, subscribers, blocks or alias
/// addresses. What is made or ended meanwhile may be seen or not; what stays
/// is seen once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(pub(crate) u32);

impl Cursor {
    /// At a place: for who has written one down.
    pub fn at(place: u32) -> Self {
        Self(place)
    }

    /// The place.
    pub fn place(self) -> u32 {
        self.0
    }
}
