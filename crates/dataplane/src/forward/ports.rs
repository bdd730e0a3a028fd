//! What the forwarding path knows of its ports. Built by [`crate::fib_sync`],
//! given to each worker as a whole when something about a port changes.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::handoff::NOTE_LEN;

/// Ports of a worker at most.
pub const MAX_PORTS: usize = 4_096;

/// A place where packets come in and go out: a link of the tables, or one
/// VLAN of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSettings {
    /// Index of its link (`ifi_index`).
    pub link: u32,
    /// The link's Ethernet address; `None`: packets have no header there.
    pub ethernet: Option<[u8; 6]>,
    /// The port whose frames with this tag are its own.
    pub vlan: Option<(u16, u16)>,
    /// Longest IP packet, bytes.
    pub mtu: u16,
    /// Which of the FIBs decides about packets that come in here.
    pub view: u16,
    /// Whether it is the host itself: what comes from it has not been
    /// routed before, and keeps its hops.
    pub is_host: bool,
    /// Whether it is outside of the address translation.
    pub is_outside: bool,
    /// Where errors about packets that came in here come from.
    pub ipv4: Option<Ipv4Addr>,
    /// The same for IPv6.
    pub ipv6: Option<Ipv6Addr>,
}

/// The ports of a worker, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports {
    list: Vec<PortSettings>,
    by_link: HashMap<u32, u16>,
    by_vlan: HashMap<(u16, u16), u16>,
    has_outside: bool,
}

impl Ports {
    /// Ports with the numbers that they have in the list; those beyond
    /// [`MAX_PORTS`] are left out.
    pub fn new(mut list: Vec<PortSettings>) -> Self {
        list.truncate(MAX_PORTS);
        let mut ports = Self::default();
        for (number, port) in list.iter().enumerate() {
            let number = number as u16;
            ports.has_outside |= port.is_outside;
            if !port.is_host && port.link != 0 {
                ports.by_link.insert(port.link, number);
            }
            if let Some(vlan) = port.vlan {
                ports.by_vlan.insert(vlan, number);
            }
        }
        ports.list = list;
        ports
    }

    /// A port by number.
    #[inline(always)]
    pub fn get(&self, number: u16) -> Option<&PortSettings> {
        self.list.get(usize::from(number))
    }

    /// All ports, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &PortSettings> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The port of a link.
    pub fn of_link(&self, link: u32) -> Option<u16> {
        self.by_link.get(&link).copied()
    }

    /// The port of a tag on another port.
    pub fn of_vlan(&self, port: u16, vlan: u16) -> Option<u16> {
        self.by_vlan.get(&(port, vlan)).copied()
    }

    /// The port by which packets for one really leave: of a VLAN the one
    /// that it is on, of the host ([`super::HOST`]) the one that stands for
    /// it.
    pub fn device(&self, number: u16) -> Option<u16> {
        if number == super::HOST {
            let host = self.list.iter().position(|port| port.is_host);
            return host.map(|host| host as u16);
        }
        let port = self.get(number)?;
        Some(port.vlan.map_or(number, |(on, _)| on))
    }

    /// Bytes of the header of a port's link, or of what is said of a packet
    /// to another worker; none for the host.
    #[inline]
    pub fn link_len(&self, number: u16) -> usize {
        match self.get(number) {
            Some(port) if port.ethernet.is_some() => 14 + 4 * usize::from(port.vlan.is_some()),
            _ if super::worker_of(number).is_some() => NOTE_LEN,
            _ => 0,
        }
    }

    /// Whether a port is outside of the address translation.
    pub fn is_outside(&self, number: u16) -> bool {
        self.has_outside && self.get(number).is_some_and(|port| port.is_outside)
    }
}
