//! A record: one thing that happened to a subscriber or a session.

use std::net::{IpAddr, Ipv4Addr};

use nat::{BlockEvent, BlockEventKind, Event, EventKind, QuotaKind};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The translation began: nobody has a port.
    Started,
    /// It ended.
    Stopped,
    /// A subscriber has a block from now on.
    Taken,
    /// It has it no more.
    GivenBack,
    /// It has it still.
    Held,
    /// No port was to be had for a subscriber.
    Exhausted,
    /// A subscriber wanted more than its quota.
    Quota(QuotaKind),
    /// A session, or a mapping that sessions share, was made.
    SessionMade,
    /// It ended.
    SessionEnded,
    /// The translation pauses: who goes on from its state has all as it was.
    Suspended,
    /// It goes on from a state: all is as it was.
    Resumed,
    /// It goes on after a failure: blocks are whose they were, and rest;
    /// sessions are gone.
    Recovered,
}

impl What {
    const ALL: [Self; 16] = [
        Self::Started,
        Self::Stopped,
        Self::Taken,
        Self::GivenBack,
        Self::Held,
        Self::Exhausted,
        Self::Quota(QuotaKind::Ports),
        Self::Quota(QuotaKind::Sessions),
        Self::Quota(QuotaKind::HalfOpen),
        Self::Quota(QuotaKind::NewMappings),
        Self::Quota(QuotaKind::Blocks),
        Self::SessionMade,
        Self::SessionEnded,
        Self::Suspended,
        Self::Resumed,
        Self::Recovered,
    ];

    /// Its number in a journal: it never changes.
    pub fn number(self) -> u8 {
        let at = Self::ALL.iter().position(|what| *what == self);
        at.map_or(u8::MAX, |at| at as u8)
    }

    /// What a number stands for.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Taken => "block-taken",
            Self::GivenBack => "block-given-back",
            Self::Held => "block-held",
            Self::Exhausted => "exhausted",
            Self::Quota(QuotaKind::Ports) => "quota-ports",
            Self::Quota(QuotaKind::Sessions) => "quota-sessions",
            Self::Quota(QuotaKind::HalfOpen) => "quota-half-open",
            Self::Quota(QuotaKind::NewMappings) => "quota-new-mappings",
            Self::Quota(QuotaKind::Blocks) => "quota-blocks",
            Self::SessionMade => "session-made",
            Self::SessionEnded => "session-ended",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Recovered => "recovered",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds since 1970.
    pub at_millis: u64,
    /// What.
    pub what: What,
    /// Leading bits of the inside address that tell the subscriber; 32: it
    /// is one address.
    pub bits: u8,
    /// The subscriber's first address, or a session's inside address.
    pub inside: Ipv4Addr,
    /// The alias address.
    pub alias: Ipv4Addr,
    /// First and last alias port; zeros where it is about none.
    pub ports: (u16, u16),
    /// A session's protocol, inside port, and other end.
    pub protocol: u8,
    /// See `protocol`.
    pub inside_port: u16,
    /// See `protocol`.
    pub remote: Ipv4Addr,
    /// See `protocol`.
    pub remote_port: u16,
}

impl Record {
    /// About no subscriber.
    pub fn mark(at_millis: u64, what: What) -> Self {
        Self {
            at_millis,
            what,
            bits: 32,
            inside: Ipv4Addr::UNSPECIFIED,
            alias: Ipv4Addr::UNSPECIFIED,
            ports: (0, 0),
            protocol: 0,
            inside_port: 0,
            remote: Ipv4Addr::UNSPECIFIED,
            remote_port: 0,
        }
    }

    /// About a subscriber or block.
    pub fn of_block(at_millis: u64, event: &BlockEvent) -> Self {
        let what = match event.kind {
            BlockEventKind::Taken => What::Taken,
            BlockEventKind::GivenBack => What::GivenBack,
            BlockEventKind::Held => What::Held,
            BlockEventKind::Exhausted => What::Exhausted,
            BlockEventKind::Quota(kind) => What::Quota(kind),
        };
        let hosts = event.subscriber.count().trailing_zeros();
        Self {
            bits: 32_u32.saturating_sub(hosts) as u8,
            inside: event.subscriber.first,
            alias: event.alias,
            ports: event.ports,
            ..Self::mark(at_millis, what)
        }
    }

    /// About a session.
    pub fn of_session(at_millis: u64, event: &Event) -> Self {
        let what = match event.kind {
            EventKind::Made => What::SessionMade,
            EventKind::Ended(_) => What::SessionEnded,
        };
        let flow = &event.flow;
        Self {
            inside: ipv4(flow.inside),
            alias: ipv4(flow.alias),
            ports: (flow.alias_port, flow.alias_port),
            protocol: flow.protocol,
            inside_port: flow.inside_port,
            remote: ipv4(flow.remote),
            remote_port: flow.remote_port,
            ..Self::mark(at_millis, what)
        }
    }

    /// Whether it is about a session.
    pub fn is_session(&self) -> bool {
        matches!(self.what, What::SessionMade | What::SessionEnded)
    }

    /// Whether a block or session is somebody's from then on.
    pub fn begins(&self) -> bool {
        matches!(self.what, What::Taken | What::Held | What::SessionMade)
    }

    /// Whether it is about ports that somebody has or had.
    pub fn has_ports(&self) -> bool {
        self.begins() || matches!(self.what, What::GivenBack | What::SessionEnded)
    }

    /// Whether an inside address is the subscriber's.
    pub fn is_of(&self, inside: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
        inside.to_bits() & mask == self.inside.to_bits() & mask
    }
}

/// The engine's flows are of IPv4.
fn ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
