//! The table of addresses: by link in the kernel's order, and by address.
//!
//! The kernel keeps a list of addresses by link and family. IPv4: primary
//! addresses, the narrower in scope before the wider, each kind in the order
//! made; then secondary ones in the order made. IPv6: the wider in reach
//! before the narrower, of each kind the newest first. An address that is
//! changed keeps its place; one that is made again, or becomes primary, gets
//! a new one. (`docs/decisions/041`)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::ordered::Ordered;
use crate::row::address::{Address, AddressKey, flag, reach};

/// Where an address stands: links by index, IPv4 before IPv6, and in each
/// family the kernel's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressPlace {
    /// Index of its link.
    pub link: u32,
    /// Which kind of address it is (`class_of`).
    pub class: u16,
    /// Its place among those: of no meaning but by comparison.
    pub ordinal: u64,
}

/// The class of the IPv4 secondary addresses; primary ones are before them.
const V4_SECONDARY: u16 = 0x100;
/// Before all classes of IPv6.
const V6: u16 = 0x200;
/// The ordinal of the first address of a class, and how far it is to the
/// next: between any two there is room for some more.
const MIDDLE: u64 = 1 << 63;
const GAP: u64 = 1 << 32;

/// Addresses by place and by key.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    by_place: Ordered<AddressPlace, Arc<Address>>,
    /// The row again, so that a walk by address does not look each up, and
    /// its ordinal.
    by_key: Ordered<AddressKey, (Arc<Address>, u64)>,
    /// Prefixes of links, and of each the addresses.
    by_prefix: Ordered<(u32, IpNet, IpAddr), u32>,
}

/// The prefix of an address: of the other end where there is one.
fn prefix_of(row: &Address) -> (u32, IpNet, IpAddr) {
    let prefix = IpNet::new(row.peer.unwrap_or(row.local), row.prefix_len);
    let prefix = prefix.unwrap_or(row.local.into()).trunc();
    (row.link, prefix, row.local)
}

/// Behind all addresses.
const LAST: IpAddr = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));

impl Addresses {
    /// Number of addresses. O(1).
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The address of a key. O(log n).
    pub fn get(&self, key: &AddressKey) -> Option<&Arc<Address>> {
        self.by_key.get(key).map(|(row, _)| row)
    }

    /// Where the address of a key stands. O(log n).
    pub fn place_of(&self, key: &AddressKey) -> Option<AddressPlace> {
        let (row, ordinal) = self.by_key.get(key)?;
        Some(AddressPlace {
            ordinal: *ordinal,
            ..AddressPlace::of_class(row)
        })
    }

    /// All, ordered by link, in each as the kernel lists them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Address>> {
        self.by_place
            .iter()
            .fetching(|row| &**row)
            .map(|(_, row)| row)
    }

    /// All from a place on (itself included), each with its place. A seek,
    /// then O(1) a row.
    pub fn from<'a>(
        &'a self,
        place: &AddressPlace,
    ) -> impl Iterator<Item = (AddressPlace, &'a Arc<Address>)> + use<'a> {
        self.by_place
            .from(place)
            .fetching(|row| &**row)
            .map(|(place, row)| (*place, row))
    }

    /// The addresses of a link, as the kernel lists them. A seek, then
    /// O(rows returned).
    pub fn of_link(&self, link: u32) -> impl Iterator<Item = &Arc<Address>> {
        self.from(&AddressPlace::first_of(link))
            .take_while(move |(place, _)| place.link == link)
            .map(|(_, row)| row)
    }

    /// All in the order of keys: by address, then link.
    pub fn by_key(&self) -> impl Iterator<Item = &Arc<Address>> {
        self.from_address(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// All from an address on (itself included), on whatever links, ordered
    /// by address, then link. A seek, then O(1) a row.
    pub fn from_address(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Address>> {
        let first = AddressKey {
            local: address,
            link: 0,
            prefix_len: 0,
            peer: None,
        };
        self.run_from(&first)
    }

    fn run_from<'a>(
        &'a self,
        key: &AddressKey,
    ) -> impl Iterator<Item = &'a Arc<Address>> + use<'a> {
        self.by_key
            .from(key)
            .fetching(|(row, _)| &**row)
            .map(|(_, (row, _))| row)
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
    /// then O(1) a row.
    pub fn inside_from(&self, net: IpNet, key: &AddressKey) -> impl Iterator<Item = &Arc<Address>> {
        self.run_from(key)
            .take_while(move |row| net.contains(&row.local))
    }

    /// The prefixes of links' addresses from one on (itself included), each
    /// once, ordered by link, then as [`IpNet`] is; with an address that has
    /// it. A seek of O(log n) a row, however many addresses share a prefix.
    pub fn prefixes_from(
        &self,
        link: u32,
        prefix: IpNet,
    ) -> impl Iterator<Item = (u32, IpNet, &Arc<Address>)> {
        let mut next = Some((link, prefix, IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        std::iter::from_fn(move || {
            let (at, _) = self.by_prefix.from(&next?).next()?;
            let (link, prefix, local) = *at;
            next = Some((link, prefix, LAST));
            let is_meant = |row: &&Arc<Address>| prefix_of(row) == (link, prefix, local);
            let row = self.by_address(local).find(is_meant)?;
            Some((link, prefix, row))
        })
    }

    /// Whether an address beside this one was made at the same time, to
    /// what the kernel's clock can tell: if they were announced by turns,
    /// their order is not known. O(log n).
    pub fn has_twin(&self, key: &AddressKey) -> bool {
        let Some(place) = self.place_of(key) else {
            return false;
        };
        let row = self.by_place.get(&place);
        let is_twin = |(at, other): (AddressPlace, &Arc<Address>)| {
            let created = |row: &Arc<Address>| row.created_centisecs;
            at.is_beside(&place) && row.map(created) == Some(created(other))
        };
        self.before(&place).is_some_and(is_twin) || self.after(&place).is_some_and(is_twin)
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        let row = size_of::<Address>() + 16 + 16;
        self.by_place.heap_bytes()
            + self.by_key.heap_bytes()
            + self.by_prefix.heap_bytes()
            + self.len() * row
    }

    /// Puts a row as a listing tells it: a new one behind those of its
    /// class. O(log n).
    pub(crate) fn put(&mut self, row: Arc<Address>) -> Option<Arc<Address>> {
        self.put_with(row, Self::behind_all)
    }

    /// Puts a row as it is announced: a new one where the kernel has it.
    /// O(log² n).
    pub(crate) fn add(&mut self, row: Arc<Address>) -> Option<Arc<Address>> {
        match row.local {
            IpAddr::V4(_) => self.put(row),
            IpAddr::V6(_) => self.put_with(row, Self::before_older),
        }
    }

    pub(crate) fn remove(&mut self, key: &AddressKey) -> Option<Arc<Address>> {
        let place = self.place_of(key)?;
        self.by_key.remove(key);
        let old = self.by_place.remove(&place)?;
        self.forget_prefix(&old);
        Some(old)
    }

    /// Puts the addresses of a link in an order, as far as their classes
    /// leave it open; those that are not named stay behind. Says whether
    /// anything moved. O(k log n) for k addresses.
    pub(crate) fn order(&mut self, link: u32, keys: &[AddressKey]) -> bool {
        let of_link = || self.from(&AddressPlace::first_of(link));
        let before: Vec<AddressKey> = of_link()
            .take_while(|(place, _)| place.link == link)
            .map(|(_, row)| row.key())
            .collect();
        let named: std::collections::BTreeSet<&AddressKey> = keys.iter().collect();
        let others = before.iter().filter(|key| !named.contains(key));
        let wanted: Vec<AddressKey> = keys.iter().chain(others).copied().collect();
        let rows: Vec<Arc<Address>> = wanted.iter().filter_map(|key| self.remove(key)).collect();
        for row in rows {
            self.put(row);
        }
        !self.of_link(link).map(|row| row.key()).eq(before)
    }

    fn put_with(
        &mut self,
        row: Arc<Address>,
        place: fn(&mut Self, &Address) -> AddressPlace,
    ) -> Option<Arc<Address>> {
        let key = row.key();
        let keeps_place = |old: &Address| {
            class_of(old) == class_of(&row) && old.created_centisecs == row.created_centisecs
        };
        let at = self.place_of(&key);
        if let Some(at) = at.filter(|_| self.get(&key).is_some_and(|old| keeps_place(old))) {
            return self.put_at(at, row);
        }
        let old = self.remove(&key);
        let at = place(self, &row);
        self.put_at(at, row);
        old
    }

    /// Puts a row at a place; gives the one that stood there.
    fn put_at(&mut self, at: AddressPlace, row: Arc<Address>) -> Option<Arc<Address>> {
        let found = (Arc::clone(&row), at.ordinal);
        let prefix = prefix_of(&row);
        if self.by_key.insert(row.key(), found).is_none() {
            // An address may be there several times, with other peers.
            let rows = self.by_prefix.get(&prefix).map_or(0, |rows| *rows);
            self.by_prefix.insert(prefix, rows + 1);
        }
        self.by_place.insert(at, row)
    }

    fn forget_prefix(&mut self, old: &Address) {
        let prefix = prefix_of(old);
        match self.by_prefix.get(&prefix) {
            Some(&rows) if rows > 1 => {
                self.by_prefix.insert(prefix, rows - 1);
            }
            _ => {
                self.by_prefix.remove(&prefix);
            }
        }
    }

    /// The place behind all of a row's class.
    fn behind_all(&mut self, row: &Address) -> AddressPlace {
        let end = AddressPlace {
            ordinal: u64::MAX,
            ..AddressPlace::of_class(row)
        };
        let last = self.last_of(&end).map(|last| last.ordinal);
        let ordinal = match last.map(|last| last.checked_add(GAP)) {
            None => MIDDLE,
            Some(Some(next)) => next,
            Some(None) => self.spread(&end).saturating_add(GAP),
        };
        AddressPlace { ordinal, ..end }
    }

    /// The place before all of a row's class that were made no later.
    fn before_older(&mut self, row: &Address) -> AddressPlace {
        let class = AddressPlace::of_class(row);
        match self.between(&class, row.created_centisecs) {
            Some(ordinal) => AddressPlace { ordinal, ..class },
            None => {
                self.spread(&class);
                let ordinal = self.between(&class, row.created_centisecs);
                AddressPlace {
                    ordinal: ordinal.unwrap_or(MIDDLE),
                    ..class
                }
            }
        }
    }

    /// The ordinal between those of a class that are newer and the others;
    /// `None` where there is no room.
    fn between(&self, class: &AddressPlace, created: u32) -> Option<u64> {
        let older = self.first_not_newer(class, created);
        let end = AddressPlace {
            ordinal: u64::MAX,
            ..*class
        };
        match (older.and_then(|at| self.before(&at)), older) {
            (_, None) => match self.last_of(&end) {
                None => Some(MIDDLE),
                Some(last) => last.ordinal.checked_add(GAP),
            },
            (Some((newer, _)), Some(older)) if newer.is_beside(&older) => {
                let middle = newer.ordinal.midpoint(older.ordinal);
                (middle > newer.ordinal).then_some(middle)
            }
            (_, Some(first)) => first.ordinal.checked_sub(GAP).filter(|at| *at > 0),
        }
    }

    /// The first of a class that is no newer than a time: a class stands in
    /// the order of time, the newest first. O(log² n).
    fn first_not_newer(&self, class: &AddressPlace, created: u32) -> Option<AddressPlace> {
        let end = AddressPlace {
            class: class.class + 1,
            ..*class
        };
        let at = |rank: usize| self.by_place.from_rank(rank).next();
        let (mut low, mut high) = (self.by_place.rank(class), self.by_place.rank(&end));
        let behind = high;
        while low < high {
            let middle = low.midpoint(high);
            // The clock starts again from 0: what is less than half a turn
            // ahead is newer.
            let is_newer = at(middle).is_some_and(|(_, row)| {
                row.created_centisecs.wrapping_sub(created).cast_signed() > 0
            });
            if is_newer {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        at(low).filter(|_| low < behind).map(|(place, _)| *place)
    }

    /// Numbers a class anew, with room between any two; gives the last
    /// number. Some billions of addresses come and go before this is
    /// needed, or some thirty between the same two.
    fn spread(&mut self, class: &AddressPlace) -> u64 {
        let first = AddressPlace {
            ordinal: 0,
            ..*class
        };
        let of_class = self
            .from(&first)
            .take_while(|(place, _)| place.is_beside(class));
        let rows: Vec<Arc<Address>> = of_class.map(|(_, row)| Arc::clone(row)).collect();
        let mut ordinal = MIDDLE;
        for row in &rows {
            self.remove(&row.key());
        }
        for row in rows {
            self.put_at(AddressPlace { ordinal, ..first }, row);
            ordinal += GAP;
        }
        ordinal - GAP
    }

    /// The last place of the class of `end`.
    fn last_of(&self, end: &AddressPlace) -> Option<AddressPlace> {
        let (place, _) = self.by_place.last_to(end)?;
        place.is_beside(end).then_some(*place)
    }

    fn before(&self, place: &AddressPlace) -> Option<(AddressPlace, &Arc<Address>)> {
        let ordinal = place.ordinal.checked_sub(1)?;
        let end = AddressPlace { ordinal, ..*place };
        self.by_place.last_to(&end).map(|(at, row)| (*at, row))
    }

    fn after(&self, place: &AddressPlace) -> Option<(AddressPlace, &Arc<Address>)> {
        let next = self.by_place.after(place).next();
        next.map(|(at, row)| (*at, row))
    }
}

impl AddressPlace {
    /// Before all addresses of a link.
    pub const fn first_of(link: u32) -> Self {
        Self {
            link,
            class: 0,
            ordinal: 0,
        }
    }

    /// Before all addresses of a row's link and class.
    fn of_class(row: &Address) -> Self {
        Self {
            class: class_of(row),
            ..Self::first_of(row.link)
        }
    }

    fn is_beside(&self, other: &Self) -> bool {
        (self.link, self.class) == (other.link, other.class)
    }
}

/// Addresses of a class stand together, and their order is that of making.
fn class_of(row: &Address) -> u16 {
    match row.local {
        IpAddr::V4(_) if row.flags & flag::SECONDARY != 0 => V4_SECONDARY,
        IpAddr::V4(_) => u16::from(u8::MAX - row.scope),
        IpAddr::V6(v6) => V6 + u16::from(u8::MAX - reach(v6)),
    }
}

#[cfg(test)]
mod tests;
