//! What a worker counts: packets of each node, and of each reason for which
//! one ended. Owned by the worker; others ask it for a copy.

/// The stations of a packet's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Node {
    /// The Ethernet header: for us, tagged, which protocol.
    Ethernet,
    /// The checks of RFC 1812 §5.2.
    Ipv4,
    /// The checks of RFC 8200.
    Ipv6,
    /// Packets that another worker translates, on their way to it.
    Handoff,
    /// Translation of addresses.
    Nat,
    /// Longest-prefix match.
    Fib,
    /// Next hop to header.
    Neighbour,
    /// Length, hops left, header.
    Output,
    /// ICMP errors of our own.
    Icmp,
    /// What is the kernel's.
    Host,
}

impl Node {
    /// All nodes, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Ethernet,
        Self::Ipv4,
        Self::Ipv6,
        Self::Handoff,
        Self::Nat,
        Self::Fib,
        Self::Neighbour,
        Self::Output,
        Self::Icmp,
        Self::Host,
    ];

    /// Its name, as counters are printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Handoff => "handoff",
            Self::Nat => "nat",
            Self::Fib => "fib",
            Self::Neighbour => "neighbour",
            Self::Output => "output",
            Self::Icmp => "icmp",
            Self::Host => "host",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident, $node:ident, $name:literal;)*) => {
        /// Why a packet did not go on as it came.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All reasons, in the order of their numbers.
            pub const ALL: [Self; [$(Self::$reason),*].len()] = [$(Self::$reason),*];

            /// The node that found it.
            pub fn node(self) -> Node {
                match self {
                    $(Self::$reason => Node::$node,)*
                }
            }

            /// Its name, as counters are printed.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// Shorter than an Ethernet header and its tag.
    FrameShort, Ethernet, "frame-short";
    /// To another station's address.
    OtherStation, Ethernet, "other-station";
    /// A VLAN that no port has.
    NoVlan, Ethernet, "no-vlan";
    /// Neither IP nor the host's business.
    UnknownProtocol, Ethernet, "unknown-protocol";
    /// Shorter than an IPv4 header, or than its header says (RFC 1812
    /// §5.2.2 (1), (4), (5)).
    Ipv4Length, Ipv4, "length";
    /// Not version 4 (RFC 1812 §5.2.2 (3)).
    Ipv4Version, Ipv4, "version";
    /// A wrong header checksum (RFC 1812 §5.2.2 (2)).
    Ipv4Checksum, Ipv4, "checksum";
    /// A source that no host may have (RFC 1812 §5.3.7).
    Ipv4MartianSource, Ipv4, "martian-source";
    /// A destination that is not forwarded to (RFC 1812 §5.3.7).
    Ipv4MartianDestination, Ipv4, "martian-destination";
    /// Sent to all stations of the link, and not to a group (RFC 1812
    /// §5.3.4).
    Ipv4LinkBroadcast, Ipv4, "link-broadcast";
    /// With a source route (RFC 7126 §4.3, §4.4).
    Ipv4SourceRoute, Ipv4, "source-route";
    /// Options that do not add up (RFC 1812 §4.2.2.6).
    Ipv4Options, Ipv4, "options";
    /// Shorter than an IPv6 header, or than its header says (RFC 8200 §3).
    Ipv6Length, Ipv6, "length";
    /// Not version 6 (RFC 8200 §3).
    Ipv6Version, Ipv6, "version";
    /// A source that no host may have (RFC 4291 §2.5.2, §2.5.3, §2.7).
    Ipv6MartianSource, Ipv6, "martian-source";
    /// A destination that is not forwarded to (RFC 4291 §2.5.3).
    Ipv6MartianDestination, Ipv6, "martian-destination";
    /// A link-local source that would leave its link (RFC 4291 §2.5.6).
    Ipv6Scope, Ipv6, "beyond-scope";
    /// Sent to all stations of the link, and not to a group.
    Ipv6LinkBroadcast, Ipv6, "link-broadcast";
    /// The ring to the worker that translates it is full.
    HandoffFull, Handoff, "ring-full";
    /// A fragment, kept until its first one says which worker's it is.
    HandoffHeld, Handoff, "fragment-held";
    /// A fragment without its first one, and no room to keep it.
    HandoffNoRoom, Handoff, "fragment-no-room";
    /// Incoming, without a flow or rule.
    NatNoMapping, Nat, "no-mapping";
    /// Denied by a mode or rule.
    NatDenied, Nat, "denied";
    /// No room for another flow.
    NatTableFull, Nat, "table-full";
    /// No port is left.
    NatPortsExhausted, Nat, "ports-exhausted";
    /// Its subscriber has what it may have.
    NatOverQuota, Nat, "over-quota";
    /// Its headers cannot be translated.
    NatMalformed, Nat, "malformed";
    /// Kept by the engine until its first fragment comes.
    NatFragmentHeld, Nat, "fragment-held";
    /// A helper could not rewrite it.
    NatHelper, Nat, "helper-refused";
    /// A protocol that has no translation.
    NatUnsupported, Nat, "unsupported";
    /// No route.
    NoRoute, Fib, "no-route";
    /// Its source is not routed by where it came from (RFC 3704).
    SourceNotRouted, Fib, "source-not-routed";
    /// A blackhole route.
    Blackhole, Fib, "blackhole";
    /// An unreachable route.
    Unreachable, Fib, "unreachable";
    /// A prohibit route.
    Prohibited, Fib, "prohibited";
    /// A group of next hops whose member is none.
    NoMember, Neighbour, "no-member";
    /// Waits until its neighbour is resolved; sent then, or counted again.
    Held, Neighbour, "held";
    /// The neighbour's queue, or all room for waiting packets, is full.
    QueueFull, Neighbour, "queue-full";
    /// Its neighbour was not resolved in time.
    NotResolved, Neighbour, "not-resolved";
    /// Time to live or hop limit is used up.
    HopsExceeded, Output, "hops-exceeded";
    /// Longer than the way takes, and must not be cut.
    TooBig, Output, "too-big";
    /// Cut into fragments, which are sent instead.
    Fragmented, Output, "fragmented";
    /// No room in front of it for a header.
    NoHeadroom, Output, "no-headroom";
    /// The port that it should leave by is gone.
    NoPort, Output, "no-port";
    /// The port that it should leave by has no room for it.
    PortFull, Output, "port-full";
    /// No room for another packet that is made or held here.
    NoRoom, Output, "no-room";
    /// An error was due, but there were too many (RFC 1812 §4.3.2.8, RFC
    /// 4443 §2.4 (f)).
    ErrorLimited, Icmp, "rate-limited";
    /// An error was due, but none is sent about such a packet (RFC 1812
    /// §4.3.2.7, RFC 4443 §2.4 (e)).
    ErrorForbidden, Icmp, "not-about-such";
    /// An error was due, but the router has no address to send it from.
    ErrorNoSource, Icmp, "no-source";
    /// For this host, and nobody takes it.
    NoHost, Host, "no-host-port";
}

/// Packets of a worker since it began. Plain numbers: nobody else writes
/// them, and nobody reads them but through the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    nodes: [u64; Node::ALL.len()],
    reasons: [u64; Reason::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            nodes: [0; Node::ALL.len()],
            reasons: [0; Reason::ALL.len()],
        }
    }
}

impl Counters {
    /// Packets that came to a node.
    pub fn of_node(&self, node: Node) -> u64 {
        self.nodes[node as usize]
    }

    /// Packets that met a reason.
    pub fn of_reason(&self, reason: Reason) -> u64 {
        self.reasons[reason as usize]
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.nodes.iter_mut().zip(other.nodes) {
            *sum += more;
        }
        for (sum, more) in self.reasons.iter_mut().zip(other.reasons) {
            *sum += more;
        }
    }

    #[inline(always)]
    pub(super) fn visit(&mut self, node: Node, packets: usize) {
        self.nodes[node as usize] += packets as u64;
    }

    pub(super) fn count_many(&mut self, reason: Reason, packets: usize) {
        self.reasons[reason as usize] += packets as u64;
    }

    #[inline(always)]
    pub(super) fn count(&mut self, reason: Reason) {
        self.reasons[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_in_order_and_unique() {
        for (at, node) in Node::ALL.into_iter().enumerate() {
            assert_eq!(node as usize, at);
        }
        let mut names = std::collections::HashSet::new();
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
            assert!(names.insert((reason.node(), reason.name())));
        }
    }
}
