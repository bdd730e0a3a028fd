//! What the kernel does not announce and the writer samples.

/// Counters of a link, the kernel's `struct rtnl_link_stats64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub struct LinkCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
    pub rx_compressed: u64,
    pub tx_compressed: u64,
    pub rx_nohandler: u64,
    pub rx_otherhost_dropped: u64,
}

impl LinkCounters {
    /// How many counters there are.
    pub const COUNT: usize = 25;

    /// All counters, in the order of `struct rtnl_link_stats64`.
    pub fn words(mut self) -> [u64; Self::COUNT] {
        self.places().map(|counter| *counter)
    }

    /// As [`LinkCounters::words`] gives them.
    pub fn of_words(words: [u64; Self::COUNT]) -> Self {
        let mut counters = Self::default();
        for (counter, word) in counters.places().into_iter().zip(words) {
            *counter = word;
        }
        counters
    }

    fn places(&mut self) -> [&mut u64; Self::COUNT] {
        [
            &mut self.rx_packets,
            &mut self.tx_packets,
            &mut self.rx_bytes,
            &mut self.tx_bytes,
            &mut self.rx_errors,
            &mut self.tx_errors,
            &mut self.rx_dropped,
            &mut self.tx_dropped,
            &mut self.multicast,
            &mut self.collisions,
            &mut self.rx_length_errors,
            &mut self.rx_over_errors,
            &mut self.rx_crc_errors,
            &mut self.rx_frame_errors,
            &mut self.rx_fifo_errors,
            &mut self.rx_missed_errors,
            &mut self.tx_aborted_errors,
            &mut self.tx_carrier_errors,
            &mut self.tx_fifo_errors,
            &mut self.tx_heartbeat_errors,
            &mut self.tx_window_errors,
            &mut self.rx_compressed,
            &mut self.tx_compressed,
            &mut self.rx_nohandler,
            &mut self.rx_otherhost_dropped,
        ]
    }
}

/// What else a link's message tells that the kernel does not announce. A
/// mirror samples timers alone. Timers are in hundredths of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unannounced {
    /// How often its carrier came or went (`IFLA_CARRIER_CHANGES`).
    pub carrier_changes: Option<u32>,
    /// Of a bridge.
    pub bridge: Option<BridgeTimers>,
    /// Of a port of a bridge.
    pub port: Option<PortTimers>,
}

/// The timers of a bridge (`IFLA_BR_…_TIMER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub struct BridgeTimers {
    pub hello: u64,
    pub tcn: u64,
    pub topology_change: u64,
    pub gc: u64,
}

/// The timers of a port of a bridge (`IFLA_BRPORT_…_TIMER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub struct PortTimers {
    pub message_age: u64,
    pub forward_delay: u64,
    pub hold: u64,
}

/// Ages of a neighbour, the kernel's `struct nda_cacheinfo`, in
/// milliseconds, as they were when sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeighbourAges {
    /// Since reachability was last confirmed.
    pub confirmed_millis: u64,
    /// Since the entry was last used.
    pub used_millis: u64,
    /// Since the entry last changed.
    pub updated_millis: u64,
    /// Holders of the entry inside the kernel.
    pub references: u32,
    /// Probes sent without an answer (`NDA_PROBES`).
    pub probes: u32,
}

/// Whose [`IpCounters`] these are, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPlace {
    /// `AF_INET` (2) or `AF_INET6` (10).
    pub family: u8,
    /// A link's index; 0: the whole namespace.
    pub link: u32,
}

/// What IP counted, of one family, in all or on a link: the kernel's
/// `IPSTATS_MIB_…` (`linux/snmp.h`), meanings of RFC 4293's
/// ipSystemStatsTable. What the kernel does not count is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the RFC's names and meanings")]
pub struct IpCounters {
    pub in_receives: u64,
    pub in_octets: u64,
    pub in_header_errors: u64,
    pub in_no_routes: u64,
    pub in_address_errors: u64,
    pub in_unknown_protocols: u64,
    pub in_truncated: u64,
    pub in_discards: u64,
    pub in_delivers: u64,
    pub in_multicasts: u64,
    pub in_multicast_octets: u64,
    pub in_broadcasts: u64,
    pub out_requests: u64,
    pub out_octets: u64,
    pub out_discards: u64,
    pub out_no_routes: u64,
    pub out_forwarded: u64,
    pub out_transmits: u64,
    pub out_multicasts: u64,
    pub out_multicast_octets: u64,
    pub out_broadcasts: u64,
    pub reassembly_requests: u64,
    pub reassembly_oks: u64,
    pub reassembly_fails: u64,
    pub fragment_oks: u64,
    pub fragment_fails: u64,
    pub fragment_creates: u64,
}

/// How the namespace forwards, as last sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpSettings {
    /// `net.ipv4.ip_forward`.
    pub v4_forwarding: bool,
    /// `net.ipv4.ip_default_ttl`.
    pub v4_default_ttl: u8,
    /// `net.ipv4.ipfrag_time`, seconds.
    pub v4_reassembly_secs: u32,
    /// `net.ipv6.conf.all.forwarding`.
    pub v6_forwarding: bool,
    /// `net.ipv6.conf.default.hop_limit`.
    pub v6_hop_limit: u8,
}
