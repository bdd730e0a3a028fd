//! The table of addresses: by link and by address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::ordered::Ordered;
use crate::row::address::{Address, AddressKey};

/// Addresses by (link, address) and by address.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    by_link: Ordered<AddressKey, Arc<Address>>,
    by_address: Ordered<(IpAddr, AddressKey), ()>,
}

impl Addresses {
    /// Number of addresses. O(1).
    pub fn len(&self) -> usize {
        self.by_link.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_link.is_empty()
    }

    /// The address of a key. O(log n).
    pub fn get(&self, key: &AddressKey) -> Option<&Arc<Address>> {
        self.by_link.get(key)
    }

    /// All, ordered by link, then address.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Address>> {
        self.by_link.iter().map(|(_, row)| row)
    }

    /// All from a key on, ordered by link, then address.
    pub fn from<'a>(
        &'a self,
        key: &AddressKey,
    ) -> impl Iterator<Item = &'a Arc<Address>> + use<'a> {
        self.by_link.from(key).map(|(_, row)| row)
    }

    /// The addresses of a link. A seek, then O(rows returned).
    pub fn of_link(&self, link: u32) -> impl Iterator<Item = &Arc<Address>> {
        self.from(&AddressKey {
            link,
            local: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            prefix_len: 0,
            peer: None,
        })
        .take_while(move |row| row.link == link)
    }

    /// All from an address on (itself included), on whatever links, ordered
    /// by address, then link. A seek, then O(log n) a row.
    pub fn from_address(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Address>> {
        let first = AddressKey {
            link: 0,
            local: address,
            prefix_len: 0,
            peer: None,
        };
        self.by_address
            .from(&(address, first))
            .filter_map(|((_, key), ())| self.get(key))
    }

    /// The rows with this very address, on whatever links. A seek, then
    /// O(rows returned).
    pub fn by_address(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Address>> {
        self.from_address(address)
            .take_while(move |row| row.local == address)
    }

    /// The rows whose address is inside a prefix, on whatever links. A
    /// seek, then O(rows returned).
    pub fn inside(&self, net: IpNet) -> impl Iterator<Item = &Arc<Address>> {
        self.from_address(net.network())
            .take_while(move |row| net.contains(&row.local))
    }

    /// The rows whose address is inside a prefix from a key on (itself
    /// included), on whatever links, ordered by address, then link. A seek,
    /// then O(log n) a row.
    pub fn inside_from(&self, net: IpNet, key: &AddressKey) -> impl Iterator<Item = &Arc<Address>> {
        self.by_address
            .from(&(key.local, *key))
            .take_while(move |((at, _), ())| net.contains(at))
            .filter_map(|((_, key), ())| self.get(key))
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        let row = size_of::<Address>() + 16 + 16;
        self.by_link.heap_bytes() + self.by_address.heap_bytes() + self.len() * row
    }

    pub(crate) fn put(&mut self, row: Arc<Address>) -> Option<Arc<Address>> {
        let key = row.key();
        self.by_address.insert((key.local, key), ());
        self.by_link.insert(key, row)
    }

    pub(crate) fn remove(&mut self, key: &AddressKey) -> Option<Arc<Address>> {
        let old = self.by_link.remove(key)?;
        self.by_address.remove(&(key.local, *key));
        Some(old)
    }
}
