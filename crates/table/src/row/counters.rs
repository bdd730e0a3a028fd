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
