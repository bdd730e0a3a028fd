//! What an engine is told at its start, and the settings that may change
//! later. For its callers.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crate::blocks::{Blocks, SubscriberConfig};
use crate::fragment;
use crate::helper::{self, Helped};
use crate::{AddressRange, PcpConfig, State};

/// Everything an engine is told at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The outside addresses, at most [`Config::MAX_ADDRESSES`]. With none,
    /// outgoing packets pass as they are.
    pub addresses: Vec<Ipv4Addr>,
    /// Which of several addresses a host gets.
    pub pooling: Pooling,
    /// The range that alias ports and query identifiers are taken from.
    pub ports: RangeInclusive<u16>,
    /// Which port of the range a flow gets.
    pub port_choice: PortChoice,
    /// How TCP is mapped and filtered.
    pub tcp: Behaviour,
    /// How UDP is mapped and filtered.
    pub udp: Behaviour,
    /// What is done with a packet from inside to an outside address of ours.
    pub hairpin: Hairpin,
    /// The modes.
    pub mode: Mode,
    /// Where unknown incoming packets go, if not denied: a host inside, or
    /// nobody (`None`: they pass as they are, to this machine).
    pub target: Option<Ipv4Addr>,
    /// How long a flow lives unused.
    pub timeouts: Timeouts,
    /// Whether packets that come in count as use, too (RFC 4787 REQ-6, RFC
    /// 7857 §7): without it only the inside keeps its mappings alive.
    pub inbound_refresh: bool,
    /// How long the port of a shared UDP mapping that lets everybody in is
    /// not given to another one, seconds (RFC 6888 REQ-8, whose exceptions
    /// are all other ports). Where hardly any other is free, it is.
    pub hold_down_secs: u32,
    /// Whether what comes in to an address that is neither an alias nor
    /// private passes although unknown packets are refused: for a router,
    /// which has other addresses and hosts with addresses of their own.
    pub passes_foreign: bool,
    /// Who the subscribers are, and what each may have.
    pub subscribers: SubscriberConfig,
    /// Whether each subscriber has alias ports of its own; `None`: all share
    /// them.
    pub blocks: Option<Blocks>,
    /// Destinations that are not translated (RFC 6888 REQ-6): packets to and
    /// from them pass as they are. Flows that are there stay.
    pub exempt: Vec<AddressRange>,
    /// Whether inside hosts may ask for ports by PCP and NAT-PMP.
    pub pcp: PcpConfig,
    /// Which protocols are helped.
    pub helpers: Helped,
    /// How large the tables may become.
    pub limits: Limits,
    /// Seed of the hashes and of the port choice. From outside nobody may
    /// guess it: give random bits, or what a test wants to see again.
    pub seed: u64,
}

impl Config {
    /// Most alias addresses of one engine.
    pub const MAX_ADDRESSES: usize = 65_536;
    /// The range of alias ports that libalias takes: 32768 to 65535.
    pub const PORTS: RangeInclusive<u16> = 0x8000..=0xffff;

    /// Masquerading behind some addresses: address and port dependent,
    /// shared ports, unknown incoming packets refused.
    pub fn new(addresses: &[Ipv4Addr]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            pooling: Pooling::Paired,
            ports: Self::PORTS,
            port_choice: PortChoice::Random,
            tcp: Behaviour::SYMMETRIC,
            udp: Behaviour::SYMMETRIC,
            hairpin: Hairpin::Engine,
            mode: Mode {
                deny_incoming: true,
                ..Mode::default()
            },
            target: None,
            timeouts: Timeouts::default(),
            inbound_refresh: true,
            hold_down_secs: 120,
            passes_foreign: false,
            subscribers: SubscriberConfig::default(),
            blocks: None,
            exempt: Vec::new(),
            pcp: PcpConfig::default(),
            helpers: Helped::USUAL,
            limits: Limits::default(),
            seed: 0,
        }
    }
}

/// On what of the remote a mapping or a filter depends (RFC 4787 §4, §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependence {
    /// On nothing: one mapping for an inside endpoint, whatever the remote.
    Endpoint,
    /// On the remote's address.
    Address,
    /// On the remote's address and port.
    AddressAndPort,
}

/// How a protocol is mapped and filtered.
///
/// A filter wider than its mapping has no meaning where ports are shared:
/// the engine filters as narrowly as it maps, or narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// What shares an outside port (RFC 4787 §4.1).
    pub mapping: Dependence,
    /// Which remotes may send in (RFC 4787 §5).
    pub filtering: Dependence,
}

impl Behaviour {
    /// Address and port dependent in both: an outside port serves any number
    /// of remotes, and only the remote of a flow may answer.
    pub const SYMMETRIC: Self = Self {
        mapping: Dependence::AddressAndPort,
        filtering: Dependence::AddressAndPort,
    };
    /// Endpoint independent in both ("full cone").
    pub const FULL_CONE: Self = Self {
        mapping: Dependence::Endpoint,
        filtering: Dependence::Endpoint,
    };
}

/// Which of several outside addresses a host gets (RFC 4787 REQ-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Always the same one; without a port there the flow is refused.
    Paired,
    /// The same one as long as it has ports, then the next ones (at most
    /// eight are tried for a packet).
    Arbitrary,
}

/// Which alias port a new flow gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortChoice {
    /// Any free port of the range, at random (RFC 6056).
    Random,
    /// The inside port where it is free, in the range or not; else any.
    Same,
}

/// What is done with a packet from inside to one of the outside addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hairpin {
    /// It is translated on both sides in one call: [`crate::Verdict::Hairpinned`],
    /// and the caller sends it back inside (RFC 4787 REQ-9).
    Engine,
    /// It is translated outward only, and the caller hands it to
    /// `translate_in`, as users of libalias do.
    Caller,
}

/// The modes, by libalias's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// Refuse incoming packets without a flow or a rule.
    pub deny_incoming: bool,
    /// Translate only private sources (RFC 1918); others pass as they are.
    pub unregistered_only: bool,
    /// As `unregistered_only`, and carrier-grade addresses (RFC 6598) as well.
    pub carrier_grade: bool,
    /// Forget all flows when the alias addresses change.
    pub reset_on_address_change: bool,
    /// Swap the directions: "in" is translated as "out" and back.
    pub reverse: bool,
    /// Translate only what a proxy rule takes.
    pub proxy_only: bool,
}

/// How long a flow lives unused, in seconds, by protocol and state. A flow
/// is never translated later than this and one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP, the handshake not done (RFC 5382 REQ-5: at least 4 minutes).
    pub tcp_opening_secs: u32,
    /// TCP established (RFC 5382 REQ-5: at least 2 hours 4 minutes).
    pub tcp_established_secs: u32,
    /// TCP after a FIN of one side (RFC 5382 REQ-5: at least 4 minutes).
    pub tcp_half_closed_secs: u32,
    /// TCP after the FINs of both sides: what TIME-WAIT takes.
    pub tcp_closed_secs: u32,
    /// TCP after a reset in its window (RFC 7857 §2.2).
    pub tcp_reset_secs: u32,
    /// UDP without an answer yet (RFC 4787 REQ-5: at least 2 minutes).
    pub udp_unreplied_secs: u32,
    /// UDP with an answer (RFC 4787 REQ-5: 5 minutes).
    pub udp_secs: u32,
    /// ICMP queries (RFC 5508 REQ-2: at least 60 s).
    pub icmp_secs: u32,
    /// PPTP's and other GRE.
    pub gre_secs: u32,
    /// Any other protocol.
    pub other_secs: u32,
    /// UDP from or to port 53, answered (RFC 4787 REQ-5a).
    pub dns_secs: u32,
}

impl Timeouts {
    /// Of a flow in a state, seconds.
    pub fn secs(&self, state: State) -> u32 {
        let mut copy = *self;
        *copy.place(state)
    }

    /// Sets how long a flow in a state lives unused, seconds.
    pub fn set(&mut self, state: State, secs: u32) {
        *self.place(state) = secs;
    }

    fn place(&mut self, state: State) -> &mut u32 {
        match state {
            State::TcpOpening => &mut self.tcp_opening_secs,
            State::TcpEstablished => &mut self.tcp_established_secs,
            State::TcpHalfClosed => &mut self.tcp_half_closed_secs,
            State::TcpClosed => &mut self.tcp_closed_secs,
            State::TcpReset => &mut self.tcp_reset_secs,
            State::UdpUnreplied => &mut self.udp_unreplied_secs,
            State::Udp => &mut self.udp_secs,
            State::Icmp => &mut self.icmp_secs,
            State::Gre => &mut self.gre_secs,
            State::Other => &mut self.other_secs,
            State::Dns => &mut self.dns_secs,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            tcp_opening_secs: 240,
            tcp_established_secs: 7_440,
            tcp_half_closed_secs: 240,
            tcp_closed_secs: 120,
            tcp_reset_secs: 240,
            udp_unreplied_secs: 120,
            udp_secs: 300,
            icmp_secs: 60,
            gre_secs: 600,
            other_secs: 120,
            dns_secs: 10,
        }
    }
}

/// How large the tables may become, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Flows that memory is made ready for at the start.
    pub initial_flows: usize,
    /// Most flows, at most [`Limits::MOST_FLOWS`]. Address space for them is
    /// reserved at the start; memory is taken as flows come.
    pub max_flows: usize,
    /// What happens to a new flow when there are `max_flows`.
    pub at_cap: AtCap,
    /// Events kept for the caller, 48 bytes each; with the ring full, new ones
    /// are counted and dropped. 0: no events.
    pub events: usize,
    /// Events of subscribers and blocks kept for the caller, 40 bytes each;
    /// as `events`.
    pub block_events: usize,
    /// Flows that go to a proxy instead; about 100 bytes each beside the
    /// flow. A further one is refused.
    pub proxied: usize,
    /// What helpers remember.
    pub helpers: helper::Limits,
    /// What is remembered of fragments.
    pub fragments: fragment::Limits,
}

impl Limits {
    /// Most flows of one engine: a flow's name has 24 bits.
    pub const MOST_FLOWS: usize = (1 << 24) - 2;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            initial_flows: 4_096,
            max_flows: 1 << 20,
            at_cap: AtCap::Refuse,
            events: 0,
            block_events: 0,
            proxied: 65_536,
            helpers: helper::Limits::default(),
            fragments: fragment::Limits::default(),
        }
    }
}

/// What happens to a new flow when the table is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCap {
    /// It is refused.
    Refuse,
    /// It takes the place of the least valuable of some: one that is
    /// closing, else one without a reply yet, else it is refused. An
    /// established flow is never evicted.
    Evict,
}
