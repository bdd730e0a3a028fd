//! How IP is set on a link, where rows of links do not tell it.

/// How IP is set on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpInterface {
    /// IPv4; `None` where the link has none.
    pub v4: Option<NeighbourTimes>,
    /// IPv6; `None` where the link has none.
    pub v6: Option<NeighbourTimes>,
    /// `net.ipv6.conf.*.forwarding`.
    pub forwards_v6: bool,
}

/// `NDTPA_…`, `linux/neighbour.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeighbourTimes {
    /// How long a neighbour is taken to be reachable.
    pub reachable_millis: u64,
    /// How long until an unanswered question is asked again.
    pub retransmit_millis: u64,
}
