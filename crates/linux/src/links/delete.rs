//! Links deleted together.
//!
//! A single deletion waits for three grace periods of the kernel, some
//! 17 ms, whatever the tool; the deletion of a group waits for them once.
//! So links are put into a group of their own (those we made carry one
//! since they were made), the group is read again, and one request deletes
//! it. Between that reading and the kernel's work stands one system call:
//! what somebody else puts into our random group, or onto one of our
//! links, within those microseconds goes along. Nothing in rtnetlink can
//! close that window.
//!
//! The request holds the kernel's lock of all network configuration for as
//! long as it takes, some 0.15 ms a veth pair.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use netlink::decode::Operation;
use netlink::encode::{self, LinkSettings, Request};
use netlink::request::Dump;
use rustix::io::Errno;
use table::Link;

use super::along::{Along, ByIndex, along, is_pair};
use super::listing::gather;
use super::{Change, Cost, Failure, How, Listing, Told, random_group, set};
use crate::bulk::{Bulk, Heard, Sent};
use crate::error::{Error, Refusal};
use crate::namespace::Namespace;
use crate::socket::Socket;

/// Threads that delete side by side where a group cannot be deleted. Their
/// waits overlap; more help little (17 ms a link becomes 0.5).
const THREADS: usize = 64;

/// How links are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// There is nothing to delete.
    Nothing,
    /// One request for one link.
    One,
    /// One request for a group.
    Group {
        /// Its number.
        group: u32,
        /// So many had to be moved into it before.
        moved: usize,
    },
    /// A request a link, from so many threads at once: the kernel deleted
    /// no group.
    Each {
        /// How many threads.
        threads: usize,
    },
}

/// What the kernel may take along beside the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agreed {
    /// The other ends of its own pairs.
    #[default]
    Peers,
    /// What carries this group, and other ends of pairs: what was made
    /// together with the set.
    Marked(u32),
    /// Whatever it is.
    All,
}

impl Agreed {
    fn holds(self, along: &Along) -> bool {
        match self {
            Self::Peers => along.is_peer,
            Self::Marked(group) => along.link.group == group || is_pair(&along.link),
            Self::All => true,
        }
    }
}

/// What is asked of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// What the kernel takes along may go.
    pub along: Agreed,
    /// When one cannot be deleted, or it is told to stop, none is.
    pub atomic: bool,
}

/// How a deletion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Links of the set that are deleted.
    pub done: usize,
    /// Links of the set that somebody else had deleted meanwhile.
    pub gone: usize,
    /// Links of the set that are still there.
    pub failed: usize,
    /// It was told to stop before they were deleted.
    pub stopped: bool,
    /// How it was done.
    pub way: Way,
    /// What it took.
    pub cost: Cost,
}

/// Links that are to be deleted, found and looked at.
#[derive(Debug)]
pub struct Deletion {
    namespace: Namespace,
    links: Vec<Link>,
    not_virtual: Vec<Link>,
    along: Vec<Along>,
    /// Places of those links that take the rest of the set along.
    heads: Vec<usize>,
    way: Way,
}

impl Deletion {
    /// Finds the links that are `wanted`, what would go along with them,
    /// and the way. Changes nothing. A few microseconds a link of the
    /// namespace.
    pub fn plan(
        namespace: &Namespace,
        wanted: &mut dyn FnMut(&Link) -> bool,
    ) -> Result<Self, Error> {
        Self::plan_from(namespace, Listing::read(namespace)?, wanted)
    }

    /// The same from a listing that was just read.
    pub fn plan_from(
        namespace: &Namespace,
        listing: Listing,
        wanted: &mut dyn FnMut(&Link) -> bool,
    ) -> Result<Self, Error> {
        let (mut links, mut others) = (Vec::new(), Vec::new());
        let mut not_virtual = Vec::new();
        for link in listing.into_links() {
            match (wanted(&link), &link.kind) {
                (true, Some(_)) => links.push(link),
                (true, None) => not_virtual.push(link),
                (false, _) => others.push(link),
            }
        }
        let set = by_index(&links);
        let along = along(namespace, &set, &others)?;
        let heads: Vec<usize> = links
            .iter()
            .enumerate()
            .filter(|(_, link)| !goes_with_an_earlier(link, &set))
            .map(|(place, _)| place)
            .collect();
        let mut deletion = Self {
            namespace: namespace.clone(),
            links,
            not_virtual,
            along,
            heads,
            way: Way::Nothing,
        };
        deletion.way = deletion.choose(&others);
        Ok(deletion)
    }

    /// The links that were asked for, in the kernel's order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Those asked for that nobody can delete: hardware, the loopback.
    pub fn not_virtual(&self) -> &[Link] {
        &self.not_virtual
    }

    /// What goes along with them without having been asked for.
    pub fn along(&self) -> &[Along] {
        &self.along
    }

    /// How it will be done.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The namespace they are in.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn head_links(&self) -> impl Iterator<Item = &Link> {
        self.heads.iter().filter_map(|place| self.links.get(*place))
    }

    /// All that goes from this namespace: the set and what goes along.
    fn going(&self) -> impl Iterator<Item = &Link> {
        let here = self.along.iter().filter(|along| along.elsewhere.is_none());
        self.links.iter().chain(here.map(|along| &along.link))
    }

    fn choose(&self, others: &[Link]) -> Way {
        let Some(group) = self.head_links().map(|link| link.group).next() else {
            return Way::Nothing;
        };
        if self.heads.len() == 1 {
            return Way::One;
        }
        let here = self.along.iter().filter(|along| along.elsewhere.is_none());
        let along: HashSet<u32> = here.map(|along| along.link.index).collect();
        let rest = || others.iter().chain(&self.not_virtual);
        let is_together = group != 0
            && self.head_links().all(|link| link.group == group)
            && rest().all(|link| link.group != group || along.contains(&link.index));
        if is_together {
            return Way::Group { group, moved: 0 };
        }
        let all = rest().chain(&self.links);
        let taken: HashSet<u32> = all.map(|link| link.group).collect();
        let group = std::iter::repeat_with(random_group).find(|group| !taken.contains(group));
        Way::Group {
            group: group.unwrap_or(u32::MAX),
            moved: self.heads.len(),
        }
    }

    /// Deletes them. Refuses ([`Error::Along`]) when more would go along
    /// than the terms allow. After an error the links are in their old
    /// groups again, unless the error is the kernel's silence.
    pub fn run(
        &self,
        terms: Terms,
        how: How<'_>,
        told: &mut dyn FnMut(Told),
    ) -> Result<Deleted, Error> {
        if let Some(more) = self.along.iter().find(|along| !terms.along.holds(along)) {
            return Err(not_agreed(more));
        }
        let mut running = Running {
            of: self,
            how,
            told,
            fate: vec![Fate::There; self.links.len()],
            cost: Cost::default(),
            stopped: false,
        };
        let way = match self.way {
            Way::Nothing => self.way,
            Way::One | Way::Each { .. } => running.each()?,
            Way::Group { group, moved } => running.group(group, moved, terms)?,
        };
        Ok(running.ended(way))
    }

    /// Puts links that are still there back into the groups they had.
    pub fn put_back(&self) -> Result<(), Error> {
        let Way::Group { group, moved } = self.way else {
            return Ok(());
        };
        if moved == 0 {
            return Ok(());
        }
        let listing = Listing::read(&self.namespace)?;
        let changes: Vec<Change> = self
            .head_links()
            .filter(|link| {
                let now = listing.get(link.index);
                now.is_some_and(|now| now.group == group && is_same(link, now))
            })
            .map(|link| into_group(link, link.group))
            .collect();
        set(&self.namespace, &changes, How::default(), &mut |_| {})?;
        Ok(())
    }
}

fn by_index(links: &[Link]) -> ByIndex<'_> {
    links.iter().map(|link| (link.index, link)).collect()
}

fn not_agreed(along: &Along) -> Error {
    Error::Along {
        name: along.link.name.clone(),
        with: along.with.clone(),
    }
}

/// Whether the kernel deletes a link with one of the set that comes before
/// it: the second end of a pair.
fn goes_with_an_earlier(link: &Link, set: &ByIndex<'_>) -> bool {
    is_pair(link)
        && link.lower_netns_id.is_none()
        && link
            .lower
            .is_some_and(|peer| peer < link.index && set.contains_key(&peer))
}

/// Whether a link is the one that was listed before: an index may be taken
/// again, by whoever asks for it. The name or the link-layer address may
/// have changed, not both.
pub fn is_same(before: &Link, now: &Link) -> bool {
    before.index == now.index
        && before.kind == now.kind
        && (before.name == now.name || before.address == now.address)
}

pub(super) fn into_group(link: &Link, group: u32) -> Change {
    Change {
        index: link.index,
        name: link.name.clone(),
        settings: LinkSettings {
            group: Some(group),
            ..LinkSettings::default()
        },
    }
}

/// What has become of a link of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    There,
    Deleted,
    Gone,
    Failed,
}

struct Running<'a> {
    of: &'a Deletion,
    how: How<'a>,
    told: &'a mut dyn FnMut(Told),
    fate: Vec<Fate>,
    cost: Cost,
    stopped: bool,
}

impl Running<'_> {
    fn group(&mut self, group: u32, moved: usize, terms: Terms) -> Result<Way, Error> {
        if moved > 0 {
            self.move_into(group)?;
        }
        self.stopped |= self.how.is_stopped();
        let has_failed = self.fate.contains(&Fate::Failed);
        if self.stopped || has_failed && terms.atomic {
            self.of.put_back()?;
            return Ok(self.of.way);
        }
        if let Err(error) = self.read_again(group, terms) {
            self.of.put_back()?;
            return Err(error);
        }
        match self.delete_group(group)? {
            None => {
                self.all_deleted();
                Ok(self.of.way)
            }
            Some(refusal) if is_no_group(&refusal) => self.each(),
            Some(refusal) => {
                self.of.put_back()?;
                Err(Error::Refused {
                    what: "delete a group of links",
                    source: refusal.source,
                    message: refusal.message,
                })
            }
        }
    }

    fn move_into(&mut self, group: u32) -> Result<(), Error> {
        let heads = &self.of.heads;
        let changes: Vec<Change> = self
            .of
            .head_links()
            .map(|link| into_group(link, group))
            .collect();
        let (fate, told) = (&mut self.fate, &mut self.told);
        let changed = set(&self.of.namespace, &changes, self.how, &mut |heard| {
            let Told::Failed(failure) = heard else {
                return;
            };
            let Some(place) = heads.get(failure.place).copied() else {
                return;
            };
            let is_gone = is(&failure.refusal, Errno::NODEV);
            if let Some(fate) = fate.get_mut(place) {
                *fate = if is_gone { Fate::Gone } else { Fate::Failed };
            }
            if !is_gone {
                told(Told::Failed(Failure {
                    place,
                    tried: "move it into a group to delete it with".to_owned(),
                    ..failure
                }));
            }
        })?;
        self.cost.add(&changed.cost);
        self.stopped |= changed.stopped;
        Ok(())
    }

    /// Whether the group holds our links and nothing else, and takes along
    /// what was agreed to and nothing else.
    fn read_again(&mut self, group: u32, terms: Terms) -> Result<(), Error> {
        let of = self.of;
        let now = Now::read(of, group)?;
        if let Some(link) = now.foreign {
            return Err(Error::Foreign {
                name: link.name,
                index: link.index,
                group,
            });
        }
        for (link, fate) in of.links.iter().zip(&mut self.fate) {
            if !now.there.contains(&link.index) && *fate == Fate::There {
                *fate = Fate::Gone;
            }
        }
        if terms.along == Agreed::All {
            return Ok(());
        }
        let mut set = by_index(&of.links);
        set.retain(|index, _| now.there.contains(index));
        set.extend(now.changed.iter().map(|link| (link.index, link)));
        let along = along(&of.namespace, &set, &now.others)?;
        let more = along.iter().find(|along| !terms.along.holds(along));
        more.map_or(Ok(()), |more| Err(not_agreed(more)))
    }

    fn delete_group(&mut self, group: u32) -> Result<Option<Refusal>, Error> {
        let mut bulk = Bulk::open(&self.of.namespace, How::default().options(false))?;
        let request = |sequence, out: &mut Vec<u8>| {
            // A number always fits.
            let _ =
                encode::delete_link_group(out, &Request::plain(Operation::Delete, sequence), group);
        };
        let mut refused = None;
        let (cost, told) = (&mut self.cost, &mut self.told);
        bulk.run([request], &mut |heard| match heard {
            Heard::Refused(_, refusal) => refused = Some(refusal),
            Heard::Lost(_) => refused = Some(super::set::lost_answer()),
            Heard::Sent(sent) => {
                cost.count(&sent);
                told(Told::Sent(sent));
            }
            Heard::Done(_) | Heard::Echo(..) => {}
        })?;
        // Nobody was left in it: somebody else deleted them.
        Ok(refused.filter(|refusal| !is(refusal, Errno::NODEV)))
    }

    fn all_deleted(&mut self) {
        for place in 0..self.fate.len() {
            if self.fate.get(place) == Some(&Fate::There) {
                self.deleted(place);
            }
        }
    }

    fn deleted(&mut self, place: usize) {
        if let (Some(fate), Some(link)) = (self.fate.get_mut(place), self.of.links.get(place)) {
            *fate = Fate::Deleted;
            (self.told)(Told::Done {
                place,
                index: link.index,
            });
        }
    }

    /// A request a link, side by side.
    fn each(&mut self) -> Result<Way, Error> {
        let threads = self.of.heads.len().min(THREADS);
        let next = AtomicUsize::new(0);
        let (results, heard) = channel();
        let (of, how) = (self.of, self.how);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (results, next) = (results.clone(), &next);
                scope.spawn(move || one_by_one(of, how, next, &results));
            }
            drop(results);
            for (place, result) in heard {
                self.one_is_through(place, result)?;
            }
            Ok::<(), Error>(())
        })?;
        self.stopped |= self.how.is_stopped();
        let listing = Listing::read(&of.namespace)?;
        for (place, link) in of.links.iter().enumerate() {
            // Went along with another of the set.
            let is_gone = listing.get(link.index).is_none();
            if is_gone && self.fate.get(place) == Some(&Fate::There) {
                self.deleted(place);
            }
        }
        if self.stopped {
            of.put_back()?;
        }
        Ok(if threads == 1 {
            Way::One
        } else {
            Way::Each { threads }
        })
    }

    fn one_is_through(&mut self, place: usize, result: Through) -> Result<(), Error> {
        let (sent, refusal) = result?;
        if let Some(sent) = sent {
            self.cost.count(&sent);
            (self.told)(Told::Sent(sent));
        }
        match refusal {
            None => self.deleted(place),
            // It went along with another of the set, or somebody else
            // deleted it: what was wanted in either case.
            Some(refusal) if is(&refusal, Errno::NODEV) => self.deleted(place),
            Some(refusal) => {
                if let Some(fate) = self.fate.get_mut(place) {
                    *fate = Fate::Failed;
                }
                let name = self.of.links.get(place).map(|link| link.name.clone());
                (self.told)(Told::Failed(Failure {
                    place,
                    name: name.unwrap_or_default(),
                    tried: "delete it".to_owned(),
                    refusal,
                }));
            }
        }
        Ok(())
    }

    fn ended(&self, way: Way) -> Deleted {
        let count = |wanted| self.fate.iter().filter(|fate| **fate == wanted).count();
        Deleted {
            done: count(Fate::Deleted),
            gone: count(Fate::Gone),
            failed: count(Fate::Failed) + count(Fate::There),
            stopped: self.stopped,
            way,
            cost: self.cost,
        }
    }
}

/// A namespace just before the deletion of a group, as far as it is not
/// what it was.
#[derive(Default)]
struct Now {
    /// Indexes of the set that are there.
    there: HashSet<u32>,
    /// Those of them whose lower link or other end is not what it was.
    changed: Vec<Link>,
    /// Links that are not of the set.
    others: Vec<Link>,
    /// One that is in the group and neither of the set nor known to go
    /// along.
    foreign: Option<Link>,
}

impl Now {
    /// Reads all links: the kernel can pick none out by group, and tells of
    /// a link that is down and changes its group in no other way.
    fn read(of: &Deletion, group: u32) -> Result<Self, Error> {
        let set = by_index(&of.links);
        let going: ByIndex<'_> = of.going().map(|link| (link.index, link)).collect();
        let socket = Socket::open(&of.namespace)?;
        let all = Dump::Links { counters: false };
        gather(&socket, &all, &Self::default, &mut |now, link| {
            let before = going.get(&link.index);
            if link.group == group && !before.is_some_and(|before| is_same(before, &link)) {
                now.foreign.get_or_insert_with(|| link.clone());
            }
            let Some(before) = set.get(&link.index) else {
                now.others.push(link);
                return;
            };
            now.there.insert(link.index);
            let lies_as_before = before.lower == link.lower
                && before.lower_netns_id == link.lower_netns_id
                && before.kind == link.kind;
            if !lies_as_before {
                now.changed.push(link);
            }
        })
    }
}

/// What one request gave.
type Through = Result<(Option<Sent>, Option<Refusal>), Error>;

fn one_by_one(of: &Deletion, how: How<'_>, next: &AtomicUsize, results: &Sender<(usize, Through)>) {
    let mut bulk = match Bulk::open(&of.namespace, How { pack: 1, ..how }.options(false)) {
        Ok(bulk) => bulk,
        Err(error) => {
            // The receiver lives as long as this thread.
            let _ = results.send((0, Err(error)));
            return;
        }
    };
    while !how.is_stopped() {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(place) = of.heads.get(at).copied() else {
            return;
        };
        let Some(link) = of.links.get(place) else {
            return;
        };
        let through = delete_one(&mut bulk, link.index);
        if results.send((place, through)).is_err() {
            return;
        }
    }
}

fn delete_one(bulk: &mut Bulk<'_>, index: u32) -> Through {
    let request = |sequence, out: &mut Vec<u8>| {
        // A number always fits.
        let _ = encode::delete_link(out, &Request::plain(Operation::Delete, sequence), index);
    };
    let (mut through, mut refused) = (None, None);
    bulk.run([request], &mut |heard| match heard {
        Heard::Refused(_, refusal) => refused = Some(refusal),
        Heard::Lost(_) => refused = Some(super::set::lost_answer()),
        Heard::Sent(sent) => through = Some(sent),
        Heard::Done(_) | Heard::Echo(..) => {}
    })?;
    Ok((through, refused))
}

fn is(refusal: &Refusal, errno: Errno) -> bool {
    refusal.source.raw_os_error() == Some(errno.raw_os_error())
}

/// The kernel deletes no group, or not this one: before Linux 3.0, or a
/// kind that has no deletion of its own.
fn is_no_group(refusal: &Refusal) -> bool {
    is(refusal, Errno::OPNOTSUPP) || is(refusal, Errno::INVAL)
}
