//! What TCP, UDP and ICMP counted in a namespace since it was made.

/// What the protocols above IP counted, as last sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtocolCounters {
    /// TCP, over IPv4 and IPv6.
    pub tcp: TcpCounters,
    /// UDP, over IPv4 and IPv6.
    pub udp: UdpCounters,
    /// ICMP of IPv4.
    pub icmp: IcmpCounters,
    /// ICMP of IPv6; `None` without IPv6.
    pub icmp6: Option<IcmpCounters>,
}

/// The kernel's `TCP_MIB_…` (`linux/snmp.h`), meanings of RFC 4022. The
/// kernel counts both families together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the RFC's names and meanings")]
pub struct TcpCounters {
    pub rto_algorithm: u64,
    /// Milliseconds.
    pub rto_min: u64,
    /// Milliseconds.
    pub rto_max: u64,
    /// -1: no limit.
    pub max_connections: i64,
    pub active_opens: u64,
    pub passive_opens: u64,
    pub attempt_fails: u64,
    pub established_resets: u64,
    /// A gauge: connections established or waiting to be closed.
    pub established: u64,
    pub in_segments: u64,
    pub out_segments: u64,
    pub retransmitted_segments: u64,
    pub in_errors: u64,
    pub out_resets: u64,
}

/// The kernel's `UDP_MIB_…`, meanings of RFC 4113, both families added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the RFC's names and meanings")]
pub struct UdpCounters {
    pub in_datagrams: u64,
    pub no_ports: u64,
    pub in_errors: u64,
    pub out_datagrams: u64,
}

/// The kernel's `ICMP_MIB_…` and `ICMPMSG_MIB_…`, meanings of RFC 4293's
/// icmpStatsTable and icmpMsgStatsTable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the RFC's names and meanings")]
pub struct IcmpCounters {
    pub in_messages: u64,
    pub in_errors: u64,
    pub out_messages: u64,
    pub out_errors: u64,
    /// By message type, ascending; types that never came or went are not in
    /// it.
    pub by_type: Vec<IcmpType>,
}

/// How many messages of one type came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IcmpType {
    pub number: u8,
    pub received: u64,
    pub sent: u64,
}

impl IcmpCounters {
    /// What is counted of a message type; nothing where none came or went.
    /// O(log types).
    pub fn of_type(&self, number: u8) -> IcmpType {
        let found = self.by_type.binary_search_by_key(&number, |one| one.number);
        let none = IcmpType {
            number,
            ..IcmpType::default()
        };
        found.map_or(none, |at| self.by_type[at])
    }
}
