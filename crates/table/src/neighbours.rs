//! The table of neighbours: by link, by address across links, by
//! link-layer address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::ordered::Ordered;
use crate::row::link_layer_address::LinkLayerAddress;
use crate::row::neighbour::{Neighbour, NeighbourKey};

/// Neighbours by (link, address), by address and by link-layer address.
#[derive(Debug, Clone, Default)]
pub struct Neighbours {
    by_link: Ordered<NeighbourKey, Arc<Neighbour>>,
    by_address: Ordered<(IpAddr, u32, bool), ()>,
    /// The first eight octets of the link-layer address: whole for
    /// Ethernet, a filter for longer ones.
    by_lladdr: Ordered<([u8; 8], NeighbourKey), ()>,
}

impl Neighbours {
    /// Number of neighbours. O(1).
    pub fn len(&self) -> usize {
        self.by_link.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_link.is_empty()
    }

    /// The neighbour of a key. O(log n).
    pub fn get(&self, key: &NeighbourKey) -> Option<&Arc<Neighbour>> {
        self.by_link.get(key)
    }

    /// All, ordered by link, then address.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Neighbour>> {
        self.by_link
            .iter()
            .fetching(|row| &**row)
            .map(|(_, row)| row)
    }

    /// All from a key on, ordered by link, then address.
    pub fn from<'a>(
        &'a self,
        key: &NeighbourKey,
    ) -> impl Iterator<Item = &'a Arc<Neighbour>> + use<'a> {
        self.by_link
            .from(key)
            .fetching(|row| &**row)
            .map(|(_, row)| row)
    }

    /// The neighbours on a link. A seek, then O(rows returned).
    pub fn of_link(&self, link: u32) -> impl Iterator<Item = &Arc<Neighbour>> {
        self.from(&first_of(link))
            .take_while(move |row| row.link == link)
    }

    /// The neighbours of this address, on whatever links. A seek, then
    /// O(rows returned).
    pub fn by_address(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Neighbour>> {
        self.by_address
            .from(&(address, 0, false))
            .take_while(move |((at, _, _), ())| *at == address)
            .filter_map(move |(&(address, link, proxy), ())| {
                self.get(&NeighbourKey {
                    link,
                    address,
                    proxy,
                })
            })
    }

    /// The neighbours inside a prefix, on whatever links, ordered by
    /// address. A seek, then O(rows returned).
    pub fn inside(&self, net: IpNet) -> impl Iterator<Item = &Arc<Neighbour>> {
        self.by_address
            .from(&(net.network(), 0, false))
            .take_while(move |((at, _, _), ())| net.contains(at))
            .filter_map(move |(&(address, link, proxy), ())| {
                self.get(&NeighbourKey {
                    link,
                    address,
                    proxy,
                })
            })
    }

    /// The neighbours inside a prefix on a link. A seek, then O(rows
    /// returned).
    pub fn of_link_inside(&self, link: u32, net: IpNet) -> impl Iterator<Item = &Arc<Neighbour>> {
        let first = NeighbourKey {
            address: net.network(),
            ..first_of(link)
        };
        self.from(&first)
            .take_while(move |row| row.link == link && net.contains(&row.address))
    }

    /// The neighbours of this link-layer address. A seek, then O(rows
    /// returned).
    pub fn by_lladdr(&self, lladdr: LinkLayerAddress) -> impl Iterator<Item = &Arc<Neighbour>> {
        let start = lladdr_start(&lladdr);
        self.by_lladdr
            .from(&(start, first_of(0)))
            .take_while(move |((at, _), ())| *at == start)
            .filter_map(|((_, key), ())| self.get(key))
            .filter(move |row| row.lladdr == lladdr)
    }

    /// The neighbours inside a prefix from a key on (itself included), on
    /// whatever links, ordered by address. A seek, then O(log n) a row.
    pub fn inside_from(
        &self,
        net: IpNet,
        key: &NeighbourKey,
    ) -> impl Iterator<Item = &Arc<Neighbour>> {
        self.by_address
            .from(&(key.address, key.link, key.proxy))
            .take_while(move |((at, _, _), ())| net.contains(at))
            .filter_map(move |(&(address, link, proxy), ())| {
                self.get(&NeighbourKey {
                    link,
                    address,
                    proxy,
                })
            })
    }

    /// The neighbours of this link-layer address from a key on (itself
    /// included), ordered by link, then address. A seek, then O(log n) a
    /// row.
    pub fn by_lladdr_from(
        &self,
        lladdr: LinkLayerAddress,
        key: &NeighbourKey,
    ) -> impl Iterator<Item = &Arc<Neighbour>> {
        let start = lladdr_start(&lladdr);
        self.by_lladdr
            .from(&(start, *key))
            .take_while(move |((at, _), ())| *at == start)
            .filter_map(|((_, key), ())| self.get(key))
            .filter(move |row| row.lladdr == lladdr)
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        let row = size_of::<Neighbour>() + 16;
        self.by_link.heap_bytes()
            + self.by_address.heap_bytes()
            + self.by_lladdr.heap_bytes()
            + self.len() * row
    }

    pub(crate) fn put(&mut self, row: Arc<Neighbour>) -> Option<Arc<Neighbour>> {
        let key = row.key();
        let lladdr = row.lladdr;
        let old = self.by_link.insert(key, row);
        match &old {
            Some(old) if old.lladdr == lladdr => return Some(Arc::clone(old)),
            Some(old) => self.forget_lladdr(old),
            None => {
                self.by_address
                    .insert((key.address, key.link, key.proxy), ());
            }
        }
        if !lladdr.is_none() {
            self.by_lladdr.insert((lladdr_start(&lladdr), key), ());
        }
        old
    }

    pub(crate) fn remove(&mut self, key: &NeighbourKey) -> Option<Arc<Neighbour>> {
        let old = self.by_link.remove(key)?;
        self.by_address.remove(&(key.address, key.link, key.proxy));
        self.forget_lladdr(&old);
        Some(old)
    }

    fn forget_lladdr(&mut self, old: &Neighbour) {
        self.by_lladdr
            .remove(&(lladdr_start(&old.lladdr), old.key()));
    }
}

fn first_of(link: u32) -> NeighbourKey {
    NeighbourKey {
        link,
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        proxy: false,
    }
}

fn lladdr_start(lladdr: &LinkLayerAddress) -> [u8; 8] {
    let mut start = [0; 8];
    for (to, from) in start.iter_mut().zip(lladdr.octets()) {
        *to = *from;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(link: u32, last: u8, mac: &[u8]) -> Arc<Neighbour> {
        Arc::new(Neighbour {
            link,
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
            proxy: false,
            lladdr: LinkLayerAddress::new(mac).unwrap(),
            state: crate::row::neighbour::state::REACHABLE,
            flags: 0,
            protocol: 0,
            kind: 1,
        })
    }

    #[test]
    fn found_by_address_across_links_and_by_mac() {
        let mut table = Neighbours::default();
        table.put(neighbour(1, 5, &[2, 0, 0, 0, 0, 1]));
        table.put(neighbour(2, 5, &[2, 0, 0, 0, 0, 2]));
        table.put(neighbour(2, 6, &[2, 0, 0, 0, 0, 2]));
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5));
        assert_eq!(table.by_address(address).count(), 2);
        let mac = LinkLayerAddress::new(&[2, 0, 0, 0, 0, 2]).unwrap();
        assert_eq!(table.by_lladdr(mac).count(), 2);
        assert_eq!(table.of_link(2).count(), 2);
        let inside = |net: &str| table.inside(net.parse().unwrap()).count();
        assert_eq!((inside("10.0.0.4/31"), inside("10.0.0.0/24")), (2, 3));
        assert_eq!((inside("10.0.0.7/32"), inside("2001:db8::/32")), (0, 0));
        let net = "10.0.0.4/30".parse().unwrap();
        assert_eq!(table.of_link_inside(1, net).count(), 1);
        // It moves to another MAC, then becomes incomplete.
        table.put(neighbour(2, 5, &[2, 0, 0, 0, 0, 3]));
        assert_eq!(table.by_lladdr(mac).count(), 1);
        table.put(neighbour(2, 5, &[]));
        let moved = LinkLayerAddress::new(&[2, 0, 0, 0, 0, 3]).unwrap();
        assert_eq!(table.by_lladdr(moved).count(), 0);
        assert_eq!(table.by_address(address).count(), 2);
    }
}
