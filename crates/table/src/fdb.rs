//! The table of bridge and VXLAN forwarding entries.

use std::sync::Arc;

use crate::ordered::Ordered;
use crate::row::fdb::{FdbEntry, FdbKey};
use crate::row::link_layer_address::LinkLayerAddress;

/// Forwarding entries by port, and by link-layer address.
#[derive(Debug, Clone, Default)]
pub struct Fdb {
    by_link: Ordered<Arc<FdbKey>, Arc<FdbEntry>>,
    by_lladdr: Ordered<(LinkLayerAddress, Arc<FdbKey>), ()>,
}

impl Fdb {
    /// Number of entries. O(1).
    pub fn len(&self) -> usize {
        self.by_link.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_link.is_empty()
    }

    /// The entry of a key. O(log n).
    pub fn get(&self, key: &FdbKey) -> Option<&Arc<FdbEntry>> {
        self.by_link.get(&Arc::new(*key))
    }

    /// All, ordered by port.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<FdbEntry>> {
        self.by_link.iter().map(|(_, row)| row)
    }

    /// The entries of a port. A seek, then O(rows returned).
    pub fn of_link(&self, link: u32) -> impl Iterator<Item = &Arc<FdbEntry>> {
        self.by_link
            .from(&Arc::new(first_of(link, LinkLayerAddress::NONE)))
            .map(|(_, row)| row)
            .take_while(move |row| row.link == link)
    }

    /// The entries of a link-layer address. A seek, then O(rows returned).
    pub fn by_lladdr(&self, lladdr: LinkLayerAddress) -> impl Iterator<Item = &Arc<FdbEntry>> {
        self.by_lladdr
            .from(&(lladdr, Arc::new(first_of(0, lladdr))))
            .take_while(move |((at, _), ())| *at == lladdr)
            .filter_map(|((_, key), ())| self.by_link.get(key))
    }

    /// All from a key on (itself included), ordered by port. A seek, then
    /// O(1) a row.
    pub fn from(&self, key: &FdbKey) -> impl Iterator<Item = &Arc<FdbEntry>> {
        self.by_link.from(&Arc::new(*key)).map(|(_, row)| row)
    }

    /// The entries of a link-layer address from a key on (itself included).
    /// A seek, then O(log n) a row.
    pub fn by_lladdr_from(
        &self,
        lladdr: LinkLayerAddress,
        key: &FdbKey,
    ) -> impl Iterator<Item = &Arc<FdbEntry>> {
        self.by_lladdr
            .from(&(lladdr, Arc::new(*key)))
            .take_while(move |((at, _), ())| *at == lladdr)
            .filter_map(|((_, key), ())| self.by_link.get(key))
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        let row = size_of::<FdbEntry>() + size_of::<FdbKey>() + 32;
        self.by_link.heap_bytes() + self.by_lladdr.heap_bytes() + self.len() * row
    }

    pub(crate) fn put(&mut self, row: Arc<FdbEntry>) -> Option<Arc<FdbEntry>> {
        let key = Arc::new(row.key());
        self.by_lladdr.insert((row.lladdr, Arc::clone(&key)), ());
        self.by_link.insert(key, row)
    }

    pub(crate) fn remove(&mut self, key: &FdbKey) -> Option<Arc<FdbEntry>> {
        let key = Arc::new(*key);
        let old = self.by_link.remove(&key)?;
        self.by_lladdr.remove(&(old.lladdr, key));
        Some(old)
    }
}

fn first_of(link: u32, lladdr: LinkLayerAddress) -> FdbKey {
    FdbKey::first_of(link, lladdr)
}
