//! The table of bridge and VXLAN forwarding entries.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ordered::Ordered;
use crate::row::fdb::{FdbEntry, FdbKey, Station};
use crate::row::link_layer_address::LinkLayerAddress;

/// Forwarding entries by port, by link-layer address, and those of bridges
/// by station.
#[derive(Debug, Clone, Default)]
pub struct Fdb {
    by_link: Ordered<Arc<FdbKey>, Arc<FdbEntry>>,
    by_lladdr: Ordered<(LinkLayerAddress, Arc<FdbKey>), ()>,
    by_station: Ordered<Arc<Station>, Arc<FdbKey>>,
    /// The stations that are in a VLAN again, in another order.
    by_vlan: Ordered<ByVlan, Arc<FdbKey>>,
}

/// A station in a VLAN, by bridge, VLAN, address: the order of Q-BRIDGE-MIB.
#[derive(Debug, Clone)]
struct ByVlan(Arc<Station>);

impl ByVlan {
    fn order(&self) -> (u32, Option<u16>, &LinkLayerAddress) {
        (self.0.master, self.0.vlan, &self.0.lladdr)
    }
}

impl PartialEq for ByVlan {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for ByVlan {}

impl PartialOrd for ByVlan {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByVlan {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
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

    /// The entry of a bridge's station, at whatever port. O(log n).
    pub fn of_station(&self, station: &Station) -> Option<&Arc<FdbEntry>> {
        let key = self.by_station.get(&Arc::new(*station))?;
        self.by_link.get(key)
    }

    /// The bridge of the lowest index that has an entry. O(log n).
    pub fn first_bridge(&self) -> Option<u32> {
        let (station, _) = self.by_station.iter().next()?;
        Some(station.master)
    }

    /// The entries of a bridge from a station on (itself included), ordered
    /// by address, then VLAN. A seek, then O(log n) a row.
    pub fn stations_from<'a>(
        &'a self,
        station: &Station,
    ) -> impl Iterator<Item = &'a Arc<FdbEntry>> + use<'a> {
        let master = station.master;
        self.by_station
            .from(&Arc::new(*station))
            .take_while(move |(at, _)| at.master == master)
            .filter_map(|(_, key)| self.by_link.get(key))
    }

    /// The entries of a bridge that are in a VLAN, from a station on (itself
    /// included), ordered by VLAN, then address. A seek, then O(log n) a row.
    pub fn vlan_stations_from<'a>(
        &'a self,
        station: &Station,
    ) -> impl Iterator<Item = &'a Arc<FdbEntry>> + use<'a> {
        let master = station.master;
        self.by_vlan
            .from(&ByVlan(Arc::new(*station)))
            .take_while(move |(at, _)| at.0.master == master)
            .filter_map(|(_, key)| self.by_link.get(key))
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
    pub fn from<'a>(&'a self, key: &FdbKey) -> impl Iterator<Item = &'a Arc<FdbEntry>> + use<'a> {
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
        let stations = self.by_station.len() * (size_of::<Station>() + 16);
        self.by_link.heap_bytes()
            + self.by_lladdr.heap_bytes()
            + self.by_station.heap_bytes()
            + self.by_vlan.heap_bytes()
            + self.len() * row
            + stations
    }

    /// Puts a row in the place of the one of its key. The entry of its
    /// station at another port, if there is one, is to be taken out before.
    pub(crate) fn put(&mut self, row: Arc<FdbEntry>) -> Option<Arc<FdbEntry>> {
        let key = Arc::new(row.key());
        let old = self.by_link.insert(Arc::clone(&key), Arc::clone(&row));
        match &old {
            Some(old) if old.station() == row.station() => return Some(Arc::clone(old)),
            // The port is in another bridge now.
            Some(old) => self.forget_station(old),
            None => {
                self.by_lladdr.insert((row.lladdr, Arc::clone(&key)), ());
            }
        }
        if let Some(station) = row.station() {
            let station = Arc::new(station);
            if station.vlan.is_some() {
                let in_vlan = ByVlan(Arc::clone(&station));
                self.by_vlan.insert(in_vlan, Arc::clone(&key));
            }
            self.by_station.insert(station, key);
        }
        old
    }

    pub(crate) fn remove(&mut self, key: &FdbKey) -> Option<Arc<FdbEntry>> {
        let key = Arc::new(*key);
        let old = self.by_link.remove(&key)?;
        self.by_lladdr.remove(&(old.lladdr, key));
        self.forget_station(&old);
        Some(old)
    }

    fn forget_station(&mut self, old: &FdbEntry) {
        if let Some(station) = old.station() {
            let station = Arc::new(station);
            self.by_station.remove(&station);
            self.by_vlan.remove(&ByVlan(station));
        }
    }
}

fn first_of(link: u32, lladdr: LinkLayerAddress) -> FdbKey {
    FdbKey::first_of(link, lladdr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Event, Events, Generation, Limits, Operation, Row, Writer};

    fn entry(link: u32, master: Option<u32>, remote: Option<u8>) -> FdbEntry {
        FdbEntry {
            link,
            lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
            vlan: None,
            master,
            destination: remote.map(|last| [192, 0, 2, last].into()),
            port: None,
            vni: None,
            source_vni: None,
            via_link: None,
            link_netns_id: None,
            nexthop_id: None,
            state: 0,
            flags: 0,
            protocol: 0,
            activity: None,
            rest: Default::default(),
        }
    }

    fn rows(writer: &Writer) -> Vec<FdbEntry> {
        writer
            .tables()
            .fdb
            .iter()
            .map(|row| (**row).clone())
            .collect()
    }

    #[test]
    fn a_station_that_moves_is_at_its_new_port_only_even_in_a_full_table() {
        let mut writer = Writer::new(Limits {
            fdb: 1,
            ..Limits::default()
        });
        let (here, there) = (entry(3, Some(9), None), entry(2, Some(9), None));
        writer.commit([Change::PutFdb(here.clone())]).unwrap();
        let reader = writer.reader();
        writer.commit([Change::PutFdb(there.clone())]).unwrap();
        assert_eq!(rows(&writer), std::slice::from_ref(&there));
        let told = reader.events_after(Generation(1), std::time::Duration::ZERO);
        let event =
            |operation, row: &FdbEntry| Event::new(operation, Row::Fdb(Arc::new(row.clone())));
        let moved = [
            event(Operation::Deleted, &here),
            event(Operation::Added, &there),
        ];
        let told = match told {
            Events::Batches(batches) => batches,
            Events::FellBehind => panic!("one batch is not much"),
        };
        assert_eq!(told.len(), 1);
        assert_eq!(*told[0].events, moved);
        // What is said late of the old port does not touch the new one.
        writer.commit([Change::DeleteFdb(here.key())]).unwrap();
        assert_eq!(rows(&writer), std::slice::from_ref(&there));
        let station = there.station().unwrap();
        assert!(writer.tables().fdb.of_station(&station).is_some());
        writer.commit([Change::DeleteFdb(there.key())]).unwrap();
        assert!(writer.tables().fdb.of_station(&station).is_none());
    }

    #[test]
    fn a_station_of_each_bridge_and_vlan_and_the_device_s_own_stand_side_by_side() {
        let mut writer = Writer::default();
        let vlan = FdbEntry {
            vlan: Some(5),
            ..entry(2, Some(9), None)
        };
        let all = [
            entry(2, Some(9), None),
            vlan,
            entry(4, Some(8), None),
            entry(2, None, None),
        ];
        writer.commit(all.map(Change::PutFdb)).unwrap();
        assert_eq!(rows(&writer).len(), 4);
    }

    #[test]
    fn stations_are_walked_by_address_and_by_vlan() {
        let mut writer = Writer::default();
        let at = |last: u8, vlan| FdbEntry {
            lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, last]).unwrap(),
            vlan,
            ..entry(2, Some(9), None)
        };
        let all = [
            at(1, Some(7)),
            at(1, Some(5)),
            at(2, Some(5)),
            at(3, None),
            entry(4, Some(8), None),
        ];
        writer.commit(all.map(Change::PutFdb)).unwrap();
        let from = Station {
            master: 9,
            lladdr: LinkLayerAddress::NONE,
            vlan: None,
        };
        let told = |row: &Arc<FdbEntry>| (row.lladdr.octets()[5], row.vlan);
        let fdb = &writer.tables().fdb;
        let by_address: Vec<_> = fdb.stations_from(&from).map(told).collect();
        assert_eq!(
            by_address,
            [(1, Some(5)), (1, Some(7)), (2, Some(5)), (3, None)]
        );
        let by_vlan: Vec<_> = fdb.vlan_stations_from(&from).map(told).collect();
        assert_eq!(by_vlan, [(1, Some(5)), (2, Some(5)), (1, Some(7))]);
        writer
            .commit([Change::DeleteFdb(at(1, Some(5)).key())])
            .unwrap();
        let fdb = &writer.tables().fdb;
        assert_eq!(fdb.vlan_stations_from(&from).count(), 2);
    }

    #[test]
    fn a_vxlan_entry_has_one_remote_end_but_for_groups_and_all_zeros() {
        let mut writer = Writer::default();
        writer
            .commit([1, 2].map(|last| Change::PutFdb(entry(2, None, Some(last)))))
            .unwrap();
        assert_eq!(rows(&writer), [entry(2, None, Some(2))]);
        for octets in [[0; 6], [1, 0, 0x5e, 0, 0, 1]] {
            let lladdr = LinkLayerAddress::new(&octets).unwrap();
            let remote = |last, via_link| FdbEntry {
                lladdr,
                via_link,
                ..entry(2, None, Some(last))
            };
            let all = [remote(1, None), remote(1, Some(7)), remote(2, None)];
            writer.commit(all.map(Change::PutFdb)).unwrap();
            assert_eq!(writer.tables().fdb.by_lladdr(lladdr).count(), 3);
        }
    }
}
