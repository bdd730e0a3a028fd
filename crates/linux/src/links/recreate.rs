//! Deleted links as they were: the undoing of a deletion.
//!
//! What comes back: name, index (if it is still free), kind and its
//! settings, link-layer address, MTU, queues, group, alias, master, whether
//! it is up, addresses; of a veth both ends, each in its namespace. What
//! does not: counters, alternative names, the rarer settings of bonds, routes and neighbours and
//! forwarding entries that went with it, queueing disciplines, settings
//! under `/proc/sys`, and what other programs had attached to it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};

use netlink::attribute::attributes;
use netlink::decode;
use netlink::encode::{KindData, LINK_KINDS, LinkEnd, LinkKind, LinkNetns, LinkSettings, NewLink};
use netlink::request::Dump;
use rustix::io::Errno;
use table::row::link::flag::{MULTICAST, NOARP, UP};
use table::{Address, Link};

use super::along::is_pair;
use super::delete::{into_group, is_same};
use super::journal::Rows;
use super::{Along, Change, Deletion, Failure, How, Listing, New, Told, add, set};
use crate::dump::dump_on;
use crate::error::{Error, Refusal};
use crate::namespace::Namespace;
use crate::socket::Socket;

/// `IFAPROT_KERNEL_RA` and `IFAPROT_KERNEL_LL`, `linux/if_addr.h`: the
/// kernel gives these addresses itself.
const KERNEL_S_OWN: [u8; 2] = [2, 3];

/// Chains of links on links are followed so far: the kernel allows eight.
const LEVELS: usize = 16;

/// How a deletion was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recreated {
    /// Links that are there again.
    pub made: usize,
    /// Links that had not been deleted, and are in their old group.
    pub kept: usize,
    /// Links that are not, or not wholly, as they were.
    pub failed: usize,
    /// It was told to stop before the last.
    pub stopped: bool,
}

/// The rows of what a deletion takes: for a journal, before it begins.
/// Those of its own namespace come first.
pub fn rows(deletion: &Deletion) -> Result<Vec<Rows>, Error> {
    let here = deletion
        .along()
        .iter()
        .filter(|along| along.elsewhere.is_none());
    let mut links: Vec<Link> = deletion.links().to_vec();
    links.extend(here.map(|along| along.link.clone()));
    let addresses = addresses_of(deletion.namespace(), &links)?;
    let mut all = vec![Rows {
        namespace: None,
        links,
        addresses,
    }];
    let mut there: HashMap<&str, Vec<&Along>> = HashMap::new();
    for along in deletion.along() {
        if let Some(place) = along.elsewhere.as_deref().filter(|place| !place.is_empty()) {
            there.entry(place).or_default().push(along);
        }
    }
    for (place, along) in there {
        let Ok(namespace) = Namespace::open(place) else {
            continue;
        };
        let links: Vec<Link> = along.iter().map(|along| along.link.clone()).collect();
        all.push(Rows {
            addresses: addresses_of(&namespace, &links)?,
            namespace: Some((place.to_owned(), namespace.inode())),
            links,
        });
    }
    Ok(all)
}

fn addresses_of(namespace: &Namespace, links: &[Link]) -> Result<Vec<Address>, Error> {
    let indexes: HashSet<u32> = links.iter().map(|link| link.index).collect();
    let mut addresses = Vec::new();
    let mut malformed = None;
    let all = Dump::Addresses {
        family: 0,
        link: None,
    };
    dump_on(&Socket::open(namespace)?, &all, &mut |message| {
        match decode::address(message.payload, 0) {
            Ok(address) if indexes.contains(&address.link) => addresses.push(address),
            Ok(_) => {}
            Err(error) => malformed = Some(error),
        }
        ControlFlow::Continue(())
    })?;
    malformed.map_or(Ok(addresses), |error| Err(error.into()))
}

/// A namespace with rows to bring back, and what is there now.
struct Place {
    namespace: Namespace,
    rows: Rows,
    listing: Listing,
}

/// A link that can be made now.
struct Ready {
    /// The place whose namespace the request goes to.
    from: usize,
    new: New,
    /// Place and row of what it makes: both ends of a pair.
    rows: Vec<(usize, usize)>,
}

struct Recreating<'a> {
    places: Vec<Place>,
    how: How<'a>,
    told: &'a mut dyn FnMut(Told),
    /// Place and old index of what is there, or there again: its index.
    back: HashMap<(usize, u32), u32>,
    result: Recreated,
}

/// Brings back the links of some rows, and moves those that had not been
/// deleted from `group` into their old groups. What somebody else made
/// under their names meanwhile is left alone, and the link counted as
/// failed. Places in what is told count links here, then elsewhere.
pub fn recreate(
    namespace: &Namespace,
    rows: Vec<Rows>,
    group: u32,
    how: How<'_>,
    told: &mut dyn FnMut(Told),
) -> Result<Recreated, Error> {
    let mut places = Vec::new();
    for rows in rows {
        let namespace = match &rows.namespace {
            None => namespace.clone(),
            Some((name, inode)) => match Namespace::open(name) {
                Ok(other) if other.inode() == *inode => other,
                // It is gone, and with it its links.
                _ => continue,
            },
        };
        places.push(Place {
            listing: Listing::read(&namespace)?,
            namespace,
            rows,
        });
    }
    let mut recreating = Recreating {
        places,
        how,
        told,
        back: HashMap::new(),
        result: Recreated::default(),
    };
    recreating.keep(group)?;
    recreating.make()?;
    recreating.finish()?;
    Ok(recreating.result)
}

impl Recreating<'_> {
    /// What had not been deleted goes back into its old group.
    fn keep(&mut self, group: u32) -> Result<(), Error> {
        for (at, place) in self.places.iter().enumerate() {
            let mut changes = Vec::new();
            for link in &place.rows.links {
                let now = place.listing.get(link.index);
                let Some(now) = now.filter(|now| is_same(link, now)) else {
                    continue;
                };
                self.back.insert((at, link.index), link.index);
                self.result.kept += 1;
                if now.group == group && link.group != group {
                    changes.push(into_group(link, link.group));
                }
            }
            set(&place.namespace, &changes, How::default(), &mut |_| {})?;
        }
        Ok(())
    }

    /// Makes what is missing, lower links first.
    fn make(&mut self) -> Result<(), Error> {
        let mut todo: Vec<(usize, usize)> = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let missing = place.rows.links.iter().enumerate();
            let missing = missing.filter(|(_, link)| !self.back.contains_key(&(at, link.index)));
            todo.extend(missing.map(|(row, _)| (at, row)));
        }
        for _ in 0..LEVELS {
            if todo.is_empty() || self.result.stopped {
                return Ok(());
            }
            todo = self.make_level(&todo)?;
        }
        for (at, row) in todo {
            self.cannot(at, row, "the link below it is missing");
        }
        Ok(())
    }

    /// Makes those of which the lower link is there; gives the rest.
    fn make_level(&mut self, todo: &[(usize, usize)]) -> Result<Vec<(usize, usize)>, Error> {
        let waiting: HashSet<(usize, u32)> = todo
            .iter()
            .filter_map(|(at, row)| Some((*at, self.link(*at, *row)?.index)))
            .collect();
        let mut later = Vec::new();
        let mut ready: Vec<Ready> = Vec::new();
        let mut taken = HashSet::new();
        for &(at, row) in todo {
            let Some(link) = self.link(at, row).cloned() else {
                continue;
            };
            if !taken.insert((at, link.index)) {
                continue;
            }
            if is_pair(&link) {
                match self.pair(at, row, &link, &waiting) {
                    Some((new, peer)) => {
                        let peer_index = self.link(peer.0, peer.1).map(|peer| peer.index);
                        taken.extend(peer_index.map(|index| (peer.0, index)));
                        ready.push(Ready {
                            from: at,
                            new,
                            rows: vec![(at, row), peer],
                        });
                    }
                    None => self.cannot(at, row, "its peer is not known, or is still there"),
                }
                continue;
            }
            let lower_place = if link.lower_netns_id.is_some() { 0 } else { at };
            match link.lower {
                Some(lower) if lower != link.index && waiting.contains(&(lower_place, lower)) => {
                    later.push((at, row));
                }
                _ => match self.single(at, &link) {
                    Ok(new) => ready.push(Ready {
                        from: lower_place,
                        new,
                        rows: vec![(at, row)],
                    }),
                    Err(why) => self.cannot(at, row, &why),
                },
            }
        }
        for place in 0..self.places.len() {
            let batch: Vec<_> = ready.iter().filter(|ready| ready.from == place).collect();
            self.send(place, &batch)?;
        }
        Ok(later)
    }

    fn link(&self, at: usize, row: usize) -> Option<&Link> {
        self.places.get(at)?.rows.links.get(row)
    }

    fn send(&mut self, place: usize, batch: &[&Ready]) -> Result<(), Error> {
        let Some(namespace) = self.places.get(place).map(|place| place.namespace.clone()) else {
            return Ok(());
        };
        let (mut made, mut failed) = (Vec::new(), Vec::new());
        let news = batch.iter().map(|ready| ready.new.clone());
        let added = add(&namespace, None, news, self.how, &mut |told| match told {
            Told::Done { place, index } => made.push((place, index)),
            Told::Failed(failure) => failed.push(failure),
            Told::Sent(sent) => (self.told)(Told::Sent(sent)),
        })?;
        self.result.stopped |= added.stopped;
        for (at, index) in made {
            let Some(Ready { new, rows, .. }) = batch.get(at) else {
                continue;
            };
            for (nth, (place, row)) in rows.iter().enumerate() {
                let Some(old) = self.link(*place, *row).map(|link| link.index) else {
                    continue;
                };
                let index = match &new.link.kind {
                    LinkKind::Veth { peer } if nth > 0 => peer.index,
                    _ => index,
                };
                self.back.insert((*place, old), index);
                self.result.made += 1;
                let place = self.number(*place, *row);
                (self.told)(Told::Done { place, index });
            }
        }
        for failure in failed {
            let Some(Ready { rows, .. }) = batch.get(failure.place) else {
                continue;
            };
            self.result.failed += rows.len();
            let number = rows.first().map(|(place, row)| self.number(*place, *row));
            (self.told)(Told::Failed(Failure {
                place: number.unwrap_or(0),
                tried: "make it again".to_owned(),
                ..failure
            }));
        }
        Ok(())
    }

    /// Counts links here, then elsewhere.
    fn number(&self, at: usize, row: usize) -> usize {
        let before = self.places.iter().take(at);
        before.map(|place| place.rows.links.len()).sum::<usize>() + row
    }

    fn cannot(&mut self, at: usize, row: usize, why: &str) {
        let name = self.link(at, row).map(|link| link.name.clone());
        let place = self.number(at, row);
        self.result.failed += 1;
        (self.told)(Told::Failed(Failure {
            place,
            name: name.unwrap_or_default(),
            tried: "make it again".to_owned(),
            refusal: Refusal {
                source: Errno::OPNOTSUPP.into(),
                message: Some(why.to_owned()),
            },
        }));
    }

    /// The index a link had, if it is free.
    fn free_index(&self, at: usize, index: u32) -> u32 {
        let place = self.places.get(at);
        let is_taken = place.is_some_and(|place| place.listing.get(index).is_some());
        if is_taken { 0 } else { index }
    }

    fn end(&self, at: usize, link: &Link) -> LinkEnd {
        LinkEnd {
            name: link.name.clone(),
            index: self.free_index(at, link.index),
            up: false,
            mtu: (link.mtu > 0).then_some(link.mtu),
            address: (!link.address.is_none()).then_some(link.address),
            broadcast: None,
            group: Some(link.group),
            tx_queue_len: Some(link.tx_queue_len),
            tx_queues: Some(link.tx_queues).filter(|queues| *queues > 0),
            rx_queues: Some(link.rx_queues).filter(|queues| *queues > 0),
            netns: None,
        }
    }

    fn single(&self, at: usize, link: &Link) -> Result<New, String> {
        let kind = link.kind.as_deref().unwrap_or_default();
        let known = LINK_KINDS.iter().find(|known| known.name == kind);
        let Some(known) = known else {
            return Err(format!(
                "links of kind {kind} cannot be made by this program"
            ));
        };
        let mut data = KindData::new(known.name);
        for (number, value) in attributes(link.kind_data.bytes()).map_while(Result::ok) {
            if let Some(value) = taken(kind, number, value) {
                data.put(number, &value);
            }
        }
        let mut end = self.end(at, link);
        // Its lower link is here, and it is made elsewhere.
        let lower_place = if link.lower_netns_id.is_some() { 0 } else { at };
        if lower_place != at {
            end.netns = self
                .places
                .get(at)
                .map(|place| descriptor(&place.namespace));
        }
        let lower = link
            .lower
            .filter(|lower| *lower != 0 && *lower != link.index);
        Ok(New::of(NewLink {
            end,
            master: None,
            lower: lower.map(|lower| self.now(lower_place, lower)),
            alias: None,
            kind: LinkKind::Other(data),
        }))
    }

    /// The index that a link has now.
    fn now(&self, at: usize, index: u32) -> u32 {
        self.back.get(&(at, index)).copied().unwrap_or(index)
    }

    /// A pair, if both its ends are missing and known; and the row of the
    /// other end.
    fn pair(
        &self,
        at: usize,
        row: usize,
        link: &Link,
        waiting: &HashSet<(usize, u32)>,
    ) -> Option<(New, (usize, usize))> {
        let peer_index = link.lower?;
        let find = |place: usize| {
            let rows = &self.places.get(place)?.rows.links;
            let is_peer = |peer: &Link| {
                peer.index == peer_index
                    && is_pair(peer)
                    && peer.lower == Some(link.index)
                    && waiting.contains(&(place, peer.index))
            };
            rows.iter().position(is_peer).map(|peer| (place, peer))
        };
        let other = match link.lower_netns_id {
            None => find(at)?,
            Some(_) => (0..self.places.len())
                .filter(|place| *place != at)
                .find_map(find)?,
        };
        if other == (at, row) {
            return None;
        }
        let mut peer = self.end(other.0, self.link(other.0, other.1)?);
        if other.0 != at {
            peer.netns = Some(descriptor(&self.places.get(other.0)?.namespace));
        }
        let end = self.end(at, link);
        if end.index == 0 {
            // The kernel takes the peer's index only beside its own.
            peer.index = 0;
        }
        let new = New::of(NewLink {
            end,
            master: None,
            lower: None,
            alias: None,
            kind: LinkKind::Veth {
                peer: Box::new(peer),
            },
        });
        Some((new, other))
    }

    /// Masters, flags and addresses, when all links are there.
    fn finish(&mut self) -> Result<(), Error> {
        for at in 0..self.places.len() {
            let Some(place) = self.places.get(at) else {
                continue;
            };
            // A peer whose index was the kernel's choice is found by name.
            let listing = Listing::read(&place.namespace)?;
            let by_name: HashMap<&str, u32> = listing
                .iter()
                .map(|link| (&*link.name, link.index))
                .collect();
            let was_there = |link: &Link| {
                place
                    .listing
                    .get(link.index)
                    .is_some_and(|now| is_same(link, now))
            };
            let made = place
                .rows
                .links
                .iter()
                .filter(|link| self.back.contains_key(&(at, link.index)) && !was_there(link));
            let mut now = HashMap::new();
            let mut masters = Vec::new();
            let mut flags = Vec::new();
            for link in made {
                let index = match self.back.get(&(at, link.index)) {
                    Some(0) | None => by_name.get(&*link.name).copied().unwrap_or(0),
                    Some(index) => *index,
                };
                now.insert(link.index, index);
                let change = |settings| Change {
                    index,
                    name: link.name.clone(),
                    settings,
                };
                if let Some(master) = link.master {
                    masters.push(change(LinkSettings {
                        master: Some(self.now(at, master)),
                        ..LinkSettings::default()
                    }));
                }
                flags.push(change(LinkSettings {
                    up: Some(link.flags & UP != 0),
                    flags: link.flags,
                    flags_changed: NOARP | MULTICAST,
                    // The kernel takes none while it makes a link.
                    alias: link.alias.clone(),
                    ..LinkSettings::default()
                }));
            }
            let addresses: Vec<Address> = place
                .rows
                .addresses
                .iter()
                .filter(|address| !is_the_kernel_s(address))
                .filter_map(|address| {
                    Some(Address {
                        link: *now.get(&address.link)?,
                        ..address.clone()
                    })
                })
                .collect();
            let namespace = place.namespace.clone();
            let mut failed = 0;
            for changes in [masters, flags] {
                let changed = set(&namespace, &changes, How::default(), &mut |told| {
                    if let Told::Failed(failure) = told {
                        (self.told)(Told::Failed(failure));
                    }
                })?;
                failed += changed.failed;
            }
            failed += super::add::give_all(&namespace, &addresses, self.told)?;
            self.result.failed += failed;
        }
        Ok(())
    }
}

/// An attribute of `IFLA_INFO_DATA` as the kernel tells it, in the form in
/// which it takes it; `None`: not at all, or it goes without saying.
fn taken<'a>(kind: &str, number: u16, value: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let is_zero = value.iter().all(|octet| *octet == 0);
    match (kind, number) {
        // IFLA_MACVLAN_MACADDR_DATA, MACADDR_COUNT, BC_QUEUE_LEN_USED.
        ("macvlan" | "macvtap", 5 | 6 | 8) => None,
        // IFLA_VXLAN_TTL_INHERIT: told as a number, taken as a flag.
        ("vxlan", 28) => (!is_zero).then(Cow::default),
        // IFLA_VXLAN_RESERVED_BITS: follows from the rest, and is refused.
        ("vxlan", 33) => None,
        // IFLA_BR_VLAN_FILTERING: told as 0 by a kernel built without it,
        // which refuses to hear of it.
        ("bridge", 7) => (!is_zero).then(|| value.into()),
        // IFLA_BR_MULTI_BOOLOPT: values, and which of them are meant. Told
        // are all, some of which the kernel may have been built without.
        ("bridge", 46) => {
            let on = value.first_chunk::<4>()?;
            (*on != [0; 4]).then(|| [*on, *on].concat().into())
        }
        // IFLA_VLAN_FLAGS: likewise; VLAN_FLAG_REORDER_HDR is 1.
        ("vlan", 2) => {
            let flags = u32::from_ne_bytes(*value.first_chunk()?);
            Some(
                [flags.to_ne_bytes(), (flags | 1).to_ne_bytes()]
                    .concat()
                    .into(),
            )
        }
        // IFLA_BOND_MODE; MIIMON, UPDELAY, DOWNDELAY, XMIT_HASH_POLICY. The
        // others are refused in one mode or the other.
        ("bond", 1) => Some(value.into()),
        ("bond", 3 | 4 | 5 | 14) => (!is_zero).then(|| value.into()),
        ("bond", _) => None,
        _ => Some(value.into()),
    }
}

fn is_the_kernel_s(address: &Address) -> bool {
    let is_link_local = match address.local {
        IpAddr::V6(local) => local.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    is_link_local && address.protocol != 0 || KERNEL_S_OWN.contains(&address.protocol)
}

fn descriptor(namespace: &Namespace) -> LinkNetns {
    LinkNetns::Fd(namespace.as_fd().as_raw_fd())
}
