//! What a host tells beside its tables, as last sampled. All of it is
//! sampled only while somebody reads it.

use std::sync::Arc;

use crate::row::bridge_vlan::BridgeVlan;
use crate::row::counters::Unannounced;
use crate::row::ip_interface::IpInterface;
use crate::row::machine::Machine;
use crate::row::protocol_counters::ProtocolCounters;
use crate::row::socket::Sockets;
use crate::sample::Sample;

/// Samples beside the tables. Cloning shares them: O(1).
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// What TCP, UDP and ICMP counted, sampled with the links; `None`: not
    /// yet.
    pub protocols: Option<Arc<ProtocolCounters>>,
    /// Sockets of TCP and UDP.
    pub sockets: Arc<Sockets>,
    /// The machine itself; `None`: not yet.
    pub machine: Option<Arc<Machine>>,
    /// How IP is set on links, by index.
    pub ip_interfaces: Arc<Sample<u32, IpInterface>>,
    /// `DUPLEX_…` (0 half, 1 full) of links where the kernel knows it.
    pub duplex: Arc<Sample<u32, u8>>,
    /// VLANs by bridge and number.
    pub bridge_vlans: Arc<Sample<(u32, u16), BridgeVlan>>,
    /// The VLAN of untagged frames that come in, by port.
    pub port_vlans: Arc<Sample<u32, u16>>,
    /// What moves of links without an announcement, by index: of a mirror the
    /// timers of bridges and their ports, of a listing for one answer all.
    pub unannounced: Arc<Sample<u32, Unannounced>>,
    /// How long resilient groups of next hops have been unbalanced,
    /// hundredths of a second, by id: in a listing of the kernel's own alone.
    pub unbalanced: Arc<Sample<u32, u64>>,
}
