//! Deleted links as they were: the undoing of a deletion.
//!
//! What comes back: name, index (if it is still free), kind and its
//! settings, link-layer address, MTU, queues, group, alias, alternative
//! names, master, how IPv6 makes addresses, limits of offloading, whether it
//! is up, promiscuous or takes all groups, addresses; of a veth both ends,
//! each in its namespace. Rows that went with it, and settings under
//! `/proc/sys`, are its caller's. What does not come back ([`LOST`]):
//! counters, the rarer settings of bonds, what its master set of it as a
//! port, what was learnt, queueing disciplines, and what other programs had
//! attached to it.

mod form;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use netlink::decode::{self, Operation};
use netlink::encode::{self, LinkEnd, LinkKind, LinkSettings, NewLink, Request};
use netlink::request::Dump;
use rustix::io::Errno;
use table::row::link::flag::{ALLMULTI, MULTICAST, NOARP, PROMISC, UP};
use table::{Address, Link};

use super::along::{is_pair, taken_with};
use super::delete::{into_group, is_same};
use super::journal::Rows;
use super::{Along, Change, Deletion, Failure, How, Listing, New, Told, add, set};
use crate::bulk::{Bulk, Heard};
use crate::dump::dump_on;
use crate::error::{Error, Refusal};
use crate::namespace::Namespace;
use crate::socket::Socket;

/// Chains of links on links are followed so far: the kernel allows eight.
const LEVELS: usize = 16;

/// What a deletion loses for good, for who reads of its undoing.
pub const LOST: &str = "counters, learnt neighbours and forwarding entries, queueing disciplines, \
     settings of ports, and of neighbours under /proc/sys";

/// How IPv6 makes addresses unless told otherwise, and the limits of
/// offloading that a new link has (`GSO_LEGACY_MAX_SIZE`, `GSO_MAX_SEGS`).
const USUAL_GEN_MODE: u8 = 0;
const USUAL_MAX_SIZE: u32 = 65_536;
const USUAL_MAX_SEGS: u32 = 65_535;

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
        others: Vec::new(),
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
            others: Vec::new(),
        });
    }
    Ok(all)
}

/// Addresses as they are listed, in the order in which they are to be given,
/// so that they are listed so again: one of IPv6 goes in front of those of
/// its scope (`ipv6_link_dev_addr`), one of IPv4 behind (`__inet_insert_ifa`).
fn in_order_of_giving(listed: Vec<Address>) -> Vec<Address> {
    let is_v4 = |address: &Address| address.local.is_ipv4();
    let (mut given, v6): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_v4);
    given.extend(v6.into_iter().rev());
    given
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

/// A link's kind and its settings, as a request takes them; `None`: links
/// of its kind are not made.
pub fn kind_again(link: &Link) -> Option<LinkKind> {
    form::kind(link).ok()
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
    /// What it makes: both ends of a pair.
    rows: Vec<RowAt>,
}

/// A place and a row of it.
type RowAt = (usize, usize);
/// The rows whose links are missing, by place and old index.
type Waiting = HashMap<(usize, u32), usize>;

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
        let mut todo: Vec<RowAt> = Vec::new();
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
        for row in todo {
            self.cannot(row, "the link below it is missing");
        }
        Ok(())
    }

    /// Makes those of which the lower link is there; gives the rest.
    fn make_level(&mut self, todo: &[RowAt]) -> Result<Vec<RowAt>, Error> {
        let waiting: Waiting = todo
            .iter()
            .filter_map(|row| Some(((row.0, self.link(*row)?.index), row.1)))
            .collect();
        let mut later = Vec::new();
        let mut ready: Vec<Ready> = Vec::new();
        let mut taken = HashSet::new();
        for &row in todo {
            let Some(link) = self.link(row).cloned() else {
                continue;
            };
            if !taken.insert(row) {
                continue;
            }
            let from = if link.lower_netns_id.is_some() {
                0
            } else {
                row.0
            };
            let lower = match link.lower_netns_id {
                Some(_) => link.lower,
                None => taken_with(&link),
            };
            let waits =
                !is_pair(&link) && lower.is_some_and(|lower| waiting.contains_key(&(from, lower)));
            if waits {
                later.push(row);
                continue;
            }
            match self.ready(row, &link, &waiting) {
                Ok(one) => {
                    taken.extend(one.rows.iter().copied());
                    ready.push(one);
                }
                Err(why) => self.cannot(row, &why),
            }
        }
        for place in 0..self.places.len() {
            let batch: Vec<_> = ready.iter().filter(|ready| ready.from == place).collect();
            self.send(place, &batch)?;
        }
        Ok(later)
    }

    /// What makes a row's link, and its peer's.
    fn ready(&self, row: RowAt, link: &Link, waiting: &Waiting) -> Result<Ready, String> {
        if !is_pair(link) {
            let ready = self.single(row.0, link)?;
            return Ok(Ready {
                rows: vec![row],
                ..ready
            });
        }
        let pair = self.pair(row.0, link, waiting);
        let (new, peer) = pair.ok_or("its peer is not known, or is still there")?;
        Ok(Ready {
            from: row.0,
            new,
            rows: vec![row, peer],
        })
    }

    fn link(&self, (at, row): RowAt) -> Option<&Link> {
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
        // Of some kinds (VXLAN) the kernel does not say which index they got.
        let unsaid = made.iter().any(|(_, index)| *index == 0);
        let listing = unsaid.then(|| Listing::read(&namespace)).transpose()?;
        for (at, index) in made {
            let Some(Ready { new, rows, .. }) = batch.get(at) else {
                continue;
            };
            let named = || {
                let mut links = listing.iter().flat_map(Listing::iter);
                let found = links.find(|link| link.name == new.link.end.name);
                found.map_or(0, |link| link.index)
            };
            let index = if index == 0 { named() } else { index };
            for (nth, row) in rows.iter().enumerate() {
                let Some(old) = self.link(*row).map(|link| link.index) else {
                    continue;
                };
                let index = match &new.link.kind {
                    LinkKind::Veth { peer } if nth > 0 => peer.index,
                    _ => index,
                };
                self.back.insert((row.0, old), index);
                self.result.made += 1;
                let place = self.number(*row);
                (self.told)(Told::Done { place, index });
            }
        }
        for failure in failed {
            let Some(Ready { rows, .. }) = batch.get(failure.place) else {
                continue;
            };
            self.result.failed += rows.len();
            let number = rows.first().map(|row| self.number(*row));
            (self.told)(Told::Failed(Failure {
                place: number.unwrap_or(0),
                tried: failure.tried.replacen("make it", "make it again", 1),
                ..failure
            }));
        }
        Ok(())
    }

    /// Counts links here, then elsewhere.
    fn number(&self, (at, row): RowAt) -> usize {
        let before = self.places.iter().take(at);
        before.map(|place| place.rows.links.len()).sum::<usize>() + row
    }

    fn cannot(&mut self, row: RowAt, why: &str) {
        let name = self.link(row).map(|link| link.name.clone());
        let place = self.number(row);
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
        form::end(link, self.free_index(at, link.index))
    }

    /// A link that is no pair. Its lower link may be here, and it elsewhere.
    fn single(&self, at: usize, link: &Link) -> Result<Ready, String> {
        let kind = form::kind(link)?;
        let mut end = self.end(at, link);
        let from = if link.lower_netns_id.is_some() { 0 } else { at };
        if from != at {
            let there = self.places.get(at);
            end.netns = there.map(|place| form::descriptor(&place.namespace));
        }
        let is_lower = |lower: &u32| *lower != 0 && *lower != link.index;
        let lower = link.lower.filter(is_lower);
        let new = New::of(NewLink {
            end,
            master: None,
            lower: lower.map(|lower| self.now(from, lower)),
            alias: None,
            kind,
        });
        Ok(Ready {
            from,
            new,
            rows: Vec::new(),
        })
    }

    /// The index that a link has now.
    fn now(&self, at: usize, index: u32) -> u32 {
        self.back.get(&(at, index)).copied().unwrap_or(index)
    }

    /// A pair, if both its ends are missing and known; and the row of the
    /// other end.
    fn pair(&self, at: usize, link: &Link, waiting: &Waiting) -> Option<(New, RowAt)> {
        let peer_index = link.lower?;
        let find = |place: usize| {
            let row = *waiting.get(&(place, peer_index))?;
            let peer = self.link((place, row))?;
            let is_peer = is_pair(peer) && peer.lower == Some(link.index);
            is_peer.then_some((place, row))
        };
        let other = match link.lower_netns_id {
            None => find(at).filter(|_| peer_index != link.index)?,
            Some(_) => {
                let mut elsewhere = (0..self.places.len()).filter(|place| *place != at);
                elsewhere.find_map(find)?
            }
        };
        let mut peer = self.end(other.0, self.link(other)?);
        if other.0 != at {
            peer.netns = Some(form::descriptor(&self.places.get(other.0)?.namespace));
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

    /// Masters, flags and addresses, when all links are there; also of
    /// those that an earlier attempt brought back.
    fn finish(&mut self) -> Result<(), Error> {
        for at in 0..self.places.len() {
            let Some(place) = self.places.get(at) else {
                continue;
            };
            let namespace = place.namespace.clone();
            let now = self.indexes(at, place)?;
            let settings = self.settings(at, place, &now);
            let of = place.rows.addresses.iter();
            let addresses: Vec<Address> = of
                .filter(|address| !form::is_the_kernel_s(address))
                .filter_map(|address| {
                    let link = *now.get(&address.link)?;
                    let address = address.clone();
                    Some(Address { link, ..address })
                })
                .collect();
            for changes in settings {
                let changed = set(&namespace, &changes, How::default(), &mut |told| {
                    if let Told::Failed(failure) = told {
                        (self.told)(Told::Failed(failure));
                    }
                })?;
                self.result.failed += changed.failed;
            }
            let named: Vec<(u32, &Link)> = place
                .rows
                .links
                .iter()
                .filter_map(|link| Some((*now.get(&link.index)?, link)))
                .collect();
            self.result.failed += name_again(&namespace, &named, self.told)?;
            let addresses = in_order_of_giving(addresses);
            self.result.failed += super::add::give_all(&namespace, &addresses, self.told)?;
        }
        Ok(())
    }

    /// The index that each link of a place that is back has now, by the one
    /// it had. A peer whose index was the kernel's choice is found by name.
    fn indexes(&self, at: usize, place: &Place) -> Result<HashMap<u32, u32>, Error> {
        let listing = Listing::read(&place.namespace)?;
        let names = listing.iter().map(|link| (&*link.name, link.index));
        let by_name: HashMap<&str, u32> = names.collect();
        let index = |link: &Link| match *self.back.get(&(at, link.index))? {
            0 => by_name.get(&*link.name).copied(),
            index => Some(index),
        };
        let links = place.rows.links.iter();
        Ok(links
            .filter_map(|link| Some((link.index, index(link)?)))
            .collect())
    }

    /// Masters and what has to be there before a link is up first, then
    /// flags and aliases.
    fn settings(&self, at: usize, place: &Place, now: &HashMap<u32, u32>) -> [Vec<Change>; 2] {
        let (mut masters, mut others) = (Vec::new(), Vec::new());
        for link in &place.rows.links {
            let Some(index) = now.get(&link.index).copied() else {
                continue;
            };
            let change = |settings| Change {
                index,
                name: link.name.clone(),
                settings,
            };
            let first = LinkSettings {
                master: link.master.map(|master| self.now(at, master)),
                ..unusual(link)
            };
            if first != LinkSettings::default() {
                masters.push(change(first));
            }
            others.push(change(LinkSettings {
                up: Some(link.flags & UP != 0),
                flags: link.flags,
                flags_changed: NOARP | MULTICAST | PROMISC | ALLMULTI,
                // The kernel takes none while it makes a link.
                alias: link.alias.clone(),
                ..LinkSettings::default()
            }));
        }
        [masters, others]
    }
}

/// What of a link is not as a new one has it.
fn unusual(link: &Link) -> LinkSettings {
    let limits = link.limits.get();
    let unless = |value: Option<u32>, usual: u32| value.filter(|value| *value != usual);
    LinkSettings {
        addr_gen_mode: link.addr_gen_mode.filter(|mode| *mode != USUAL_GEN_MODE),
        gso_max_size: unless(limits.gso_max_size, USUAL_MAX_SIZE),
        gso_max_segs: unless(limits.gso_max_segs, USUAL_MAX_SEGS),
        gro_max_size: unless(limits.gro_max_size, USUAL_MAX_SIZE),
        ..LinkSettings::default()
    }
}

/// Gives links their alternative names again; gives how many did not get
/// theirs.
fn name_again(
    namespace: &Namespace,
    links: &[(u32, &Link)],
    told: &mut dyn FnMut(Told),
) -> Result<usize, Error> {
    let named = links.iter().filter(|(_, link)| !link.alt_names.is_empty());
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        return Ok(0);
    }
    let mut bulk = Bulk::open(namespace, How::default().options(false))?;
    let requests = named.iter().map(|(index, link)| {
        move |sequence, out: &mut Vec<u8>| {
            let names: Vec<&str> = link.alt_names.iter().map(|name| &**name).collect();
            let request = Request::plain(Operation::New, sequence);
            // What is too long makes no message, and is refused for it.
            let _ = encode::alternative_names(out, &request, *index, &names);
        }
    });
    let mut failed = 0;
    bulk.run(requests, &mut |heard| {
        let (place, refusal) = match heard {
            Heard::Refused(place, refusal) => (place, refusal),
            Heard::Lost(place) => (place, super::set::lost_answer()),
            _ => return,
        };
        failed += 1;
        let name = named.get(place).map(|(_, link)| link.name.clone());
        told(Told::Failed(Failure {
            place,
            name: name.unwrap_or_default(),
            tried: "give it its alternative names".to_owned(),
            refusal,
        }));
    })?;
    Ok(failed)
}
