//! The mirror's state machine: what the kernel said goes in, tables come
//! out. Pure: no socket, no thread, no clock.
//!
//! The mirror's worker feeds it with what it receives, a replay with what
//! a recording holds (`crate::recording`): the same machine, the same
//! tables. Whatever it is fed with is a record of the format; nothing else
//! may decide what the tables become.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use netlink::Malformed;
use netlink::decode::{
    Announcement, Decoded, Ipv6Statistics, Item, Operation, decode, ipv6_statistics, link_counters,
    neighbour_ages, route,
};
use netlink::message::{Message, kind, messages};
use table::row::route::flag;
use table::{
    AF_INET, AF_INET6, Change, Counted, Link, LinkCounters, NeighbourKey, NeighbourSample, Sample,
    Sampled, TableFull, Writer,
};
use tracing::warn;

use super::difference::{Difference, difference};
use super::echo::is_echo;
use super::ip_statistics::{self, Texts};
use super::limits;
use super::model::Model;
use super::protocol_statistics;
use crate::recording::{Listed, Purpose, Which};

/// Events kept beside a listing at most; beyond, the listing is void.
const MAX_STASH_BYTES: usize = 64 << 20;
/// Scans in a row that may find something new before all of it counts.
const ROUNDS: u32 = 5;
/// With more suspects than this at once, no lateness explains them.
const MANY: usize = 1_000;

/// The tables, and all that decides what they become.
#[derive(Debug)]
pub(crate) struct Machine {
    model: Model,
    limits: table::Limits,
    listing: Option<Listing>,
    /// Events since a listing began, to be applied to it as well.
    stash: Option<Vec<u8>>,
    /// Something was lost: the tables must be listed again.
    lost: bool,
    suspects: Option<Suspects>,
    /// What IPv6 counted by link, as the last listing of links told.
    ipv6: Vec<(u32, Ipv6Statistics)>,
    /// The tables were listed at least once.
    is_loaded: bool,
    /// Of a recording: something is missing, and the next whole listing
    /// makes it good.
    has_gap: bool,
    /// Tables that had no place for a row of the kernel's, until a whole
    /// listing finds that they miss none.
    incomplete: BTreeSet<&'static str>,
}

/// Rows that had no place, by table.
pub(crate) type Refused = BTreeMap<&'static str, u64>;

/// What a scan could not explain, until a later one shows whether the
/// kernel's announcement was only late: some come from a work queue of the
/// kernel (an address without duplicate detection, a carrier).
#[derive(Debug)]
struct Suspects {
    changes: Vec<Change>,
    round: u32,
}

/// A listing under way.
#[derive(Debug)]
struct Listing {
    purpose: Purpose,
    which: Which,
    /// Where its rows go; `None`: straight into the tables.
    beside: Option<Model>,
    samples: Samples,
    now_millis: u64,
    /// When the kernel had just written the rows that come; `None`: of a
    /// recording, which does not know.
    written: Option<Instant>,
    /// The first row that was refused.
    full: Option<TableFull>,
    /// Rows that had no place, neither in the tables nor beside them.
    refused: Refused,
    /// Of a recording: some of its rows are missing.
    has_gap: bool,
    /// Links that came before it began: all of theirs is taken in.
    arrived: BTreeSet<u32>,
    /// Whether, before it began, the order of addresses was unknown, and
    /// whether links might have no IPv6.
    unsure: [bool; 2],
    /// The links, the one first that came last.
    came: Vec<u32>,
}

/// What a listing tells that is no part of its rows.
#[derive(Debug, Default)]
struct Samples {
    ages: Vec<(NeighbourKey, NeighbourSample)>,
    counters: Vec<(u32, Counted)>,
    ipv6: Vec<(u32, Ipv6Statistics)>,
}

/// What came of some events.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Announcements of rows.
    pub events: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// The last row refused.
    pub full: Option<TableFull>,
    /// Rows refused, by table.
    pub refused: Refused,
}

/// What came of a listing.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What came of the events kept beside a first listing.
    pub applied: Applied,
    /// Changes that it made to the tables.
    pub changes: usize,
    /// Rows of a scan that differ and should not.
    pub drift: usize,
    /// Some of those in words.
    pub examples: Vec<String>,
    /// A row that had no place.
    pub full: Option<TableFull>,
    /// Rows that had none, by table.
    pub refused: Refused,
}

impl Machine {
    pub(crate) fn new(writer: Writer, limits: table::Limits) -> Self {
        Self {
            model: Model::new(writer),
            limits,
            listing: None,
            stash: None,
            lost: false,
            suspects: None,
            ipv6: Vec::new(),
            is_loaded: false,
            has_gap: false,
            incomplete: BTreeSet::new(),
        }
    }

    /// Tables that miss rows of the kernel's because they had no place.
    pub(crate) fn incomplete(&self) -> &BTreeSet<&'static str> {
        &self.incomplete
    }

    /// Whether a table that misses rows has a place again.
    pub(crate) fn could_be_whole(&self) -> bool {
        let tables = self.model.tables();
        let mut incomplete = self.incomplete.iter();
        incomplete.any(|table| limits::rows(tables, table) < limits::of(&self.limits, table))
    }

    /// Takes other limits, for rows to come.
    pub(crate) fn set_limits(&mut self, limits: table::Limits) {
        self.limits = limits;
        self.model.writer().set_limits(limits);
    }

    /// The writer, to read, publish and sample with.
    pub(crate) fn writer(&mut self) -> &mut Writer {
        self.model.writer()
    }

    /// The tables as they stand, published or not.
    pub(crate) fn tables(&self) -> &table::Tables {
        self.model.tables()
    }

    /// Whether something happened to rows that only a listing of them tells:
    /// links came with forwarding entries, addresses in an unknown order, or
    /// links may have no IPv6 any more.
    pub(crate) fn is_unsure_of(&mut self, what: Sampled) -> bool {
        match what {
            Sampled::Fdb => !self.model.arrived().is_empty(),
            Sampled::Addresses => *self.model.has_unsure_order(),
            Sampled::Links => *self.model.may_lack_v6(),
            Sampled::Counters
            | Sampled::Neighbours
            | Sampled::Sockets
            | Sampled::Machine
            | Sampled::IpInterfaces
            | Sampled::BridgeVlans
            | Sampled::BridgeTimers => false,
        }
    }

    /// Whether something was lost since this was last asked.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Whether something was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether a scan found what another has to confirm.
    pub(crate) fn has_suspects(&self) -> bool {
        self.suspects.is_some()
    }

    /// Whether the tables are those of a whole listing and all that came
    /// after it.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_loaded && !self.has_gap
    }

    /// A datagram of events.
    pub(crate) fn event(&mut self, datagram: &[u8], now_millis: u64) -> Applied {
        if let Some(stash) = &mut self.stash {
            stash.extend_from_slice(datagram);
            if stash.len() > MAX_STASH_BYTES {
                *stash = Vec::new();
                self.model.note_looks();
                self.lost = true;
            }
        }
        // The tables are not there yet: events wait for the listing's end.
        let loads = self
            .listing
            .as_ref()
            .is_some_and(|one| one.beside.is_none());
        if loads {
            return Applied::default();
        }
        self.model.writer().set_time(now_millis);
        let applied = apply(&mut self.model, datagram, now_millis);
        self.lost |= std::mem::take(self.model.lost_v6());
        self.incomplete.extend(applied.refused.keys());
        // Whatever an unreadable one said is unknown: ask the kernel.
        self.lost |= applied.malformed > 0;
        applied
    }

    /// The kernel dropped events (`ENOBUFS`).
    pub(crate) fn overrun(&mut self) {
        self.lost = true;
    }

    /// Of a recording: some records are missing here.
    pub(crate) fn gap(&mut self) {
        self.has_gap = true;
        if let Some(listing) = &mut self.listing {
            listing.has_gap = true;
        }
    }

    /// A listing begins.
    pub(crate) fn begin(&mut self, purpose: Purpose, which: Which) {
        let beside = match purpose {
            Purpose::Load if !self.is_loaded => {
                self.model.writer().without_events();
                None
            }
            _ => {
                let mut fresh = self.model.beside(Writer::new(limits::NONE));
                fresh.writer().without_events();
                Some(fresh)
            }
        };
        if purpose == Purpose::Resync {
            self.suspects = None;
        }
        let arrived = match which {
            Which::All | Which::Fdb => std::mem::take(self.model.arrived()),
            _ => BTreeSet::new(),
        };
        let mut unsure = [false; 2];
        if matches!(which, Which::All | Which::Addresses) {
            unsure[0] = std::mem::take(self.model.has_unsure_order());
        }
        if matches!(which, Which::All | Which::Links) {
            unsure[1] = std::mem::take(self.model.may_lack_v6());
        }
        self.stash = Some(Vec::new());
        self.model.note_looks();
        self.listing = Some(Listing {
            purpose,
            which,
            beside,
            samples: Samples::default(),
            now_millis: 0,
            written: None,
            full: None,
            refused: Refused::new(),
            has_gap: false,
            arrived,
            unsure,
            came: Vec::new(),
        });
    }

    /// The listing asks for a table, at this time.
    pub(crate) fn request(&mut self, now_millis: u64) {
        if let Some(listing) = &mut self.listing {
            listing.now_millis = now_millis;
        }
    }

    /// The rows that come next were written by the kernel at this time.
    pub(crate) fn datagram(&mut self, written: Instant) {
        if let Some(listing) = &mut self.listing {
            listing.written = Some(written);
        }
    }

    /// A row of the listing. The hot path of a load.
    pub(crate) fn row(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let Some(listing) = &mut self.listing else {
            return Ok(());
        };
        let loads = listing.beside.is_none();
        let now = listing.now_millis;
        let item = if is_route(message) {
            Item::Route(route(message.payload, now)?)
        } else {
            match decode(message, now)? {
                Decoded::Announcement(announcement) => announcement.item,
                Decoded::Settings(settings) => {
                    let to = listing.beside.as_mut().unwrap_or(&mut self.model);
                    // Rows that are there stay there.
                    let _ = to.settings(&settings);
                    return Ok(());
                }
                Decoded::Came { link } => {
                    listing.came.push(link);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        };
        if let Item::Route(route) = &item
            && route.body.flags & flag::CLONED != 0
        {
            let to = listing.beside.as_mut().unwrap_or(&mut self.model);
            to.own_address_is_found(route);
            return Ok(());
        }
        if !loads {
            let written = listing.written;
            listing.samples.take(&item, message.payload, written);
        }
        let put = match &mut listing.beside {
            None => self.model.dumped(item),
            Some(fresh) => limits::check(&self.limits, self.model.tables(), fresh.tables(), &item)
                .and_then(|()| fresh.dumped(item)),
        };
        if let Err(full) = put {
            *listing.refused.entry(full.table).or_default() += 1;
            // What was there stays; the first refusal says enough.
            listing.full.get_or_insert(full);
        }
        Ok(())
    }

    /// An IPv4 address of the host's own, of those listed, that is in no VRF.
    pub(crate) fn own_address(&self) -> Option<Ipv4Addr> {
        let beside = self.listing.as_ref().and_then(|one| one.beside.as_ref());
        let tables = beside.unwrap_or(&self.model).tables();
        let of = |link: &Arc<Link>| {
            let rows = tables.addresses.of_link(link.index).map(|row| row.local);
            rows.filter_map(v4)
        };
        let links = tables.links.iter().filter(|link| link.master.is_none());
        links.flat_map(of).next()
    }

    /// The listing failed, or is of no use: what came of it is forgotten.
    pub(crate) fn fail(&mut self) {
        let listing = self.listing.take();
        let purpose = listing.as_ref().map(|listing| listing.purpose);
        let unsure = listing.as_ref().map(|listing| listing.unsure);
        let [order, v6] = unsure.unwrap_or_default();
        *self.model.has_unsure_order() |= order;
        *self.model.may_lack_v6() |= v6;
        let arrived = listing.map(|listing| listing.arrived);
        self.model.arrived().extend(arrived.unwrap_or_default());
        self.stash = None;
        self.model.take_looks();
        if purpose != Some(Purpose::Sample) {
            self.suspects = None;
        }
    }

    /// The listing ended, and everything announced before its end has been
    /// fed in.
    pub(crate) fn end(&mut self, listed: &Listed, now_millis: u64) -> Found {
        self.model.writer().set_time(now_millis);
        let stash = self.stash.take().unwrap_or_default();
        let looks = self.model.take_looks();
        let Some(mut listing) = self.listing.take() else {
            return Found::default();
        };
        let full = listing.full.take();
        let refused = std::mem::take(&mut listing.refused);
        let heals = listing.which == Which::All && !listing.has_gap && listed.complete;
        let came = std::mem::take(&mut listing.came);
        let mut found = match listing.beside.take() {
            None => self.loaded(&stash, listing.has_gap, now_millis),
            Some(mut fresh) => {
                fresh.replay(looks);
                // What it would say of them was said when they came.
                self.compared(listing, fresh, listed, &stash, now_millis)
            }
        };
        found.full = full.or(found.full);
        if !came.is_empty() {
            self.model.writer().order_links(came.into_iter().rev());
            self.model.writer().publish();
        }
        for (table, rows) in refused {
            *found.refused.entry(table).or_default() += rows;
        }
        if heals {
            self.incomplete = BTreeSet::new();
        }
        self.incomplete.extend(found.refused.keys());
        found
    }

    fn loaded(&mut self, stash: &[u8], has_gap: bool, now_millis: u64) -> Found {
        let mut applied = apply(&mut self.model, stash, now_millis);
        // What is told while it is listed may be listed already.
        *self.model.lost_v6() = false;
        self.lost |= applied.malformed > 0;
        self.is_loaded = true;
        self.has_gap = has_gap;
        self.model.writer().publish();
        Found {
            refused: std::mem::take(&mut applied.refused),
            applied,
            ..Found::default()
        }
    }

    fn compared(
        &mut self,
        mut listing: Listing,
        mut fresh: Model,
        listed: &Listed,
        stash: &[u8],
        now_millis: u64,
    ) -> Found {
        let _ = apply(&mut fresh, stash, now_millis);
        let mut whole = listed.whole;
        if listing.has_gap {
            whole = super::difference::CompleteTables::NONE;
        }
        let difference = difference(self.model.tables(), fresh.tables(), whole);
        if listing.purpose != Purpose::Sample {
            // A table of links that is full has its rows all the same.
            let _ = self.model.take_settings_of(&fresh);
        }
        self.publish_samples(
            listing.which,
            std::mem::take(&mut listing.samples),
            now_millis,
        );
        let heals = listing.which == Which::All && !listing.has_gap && listed.complete;
        let found = match listing.purpose {
            Purpose::Sample => {
                let came = |change: &Change| matches!(change, Change::PutFdb(row) if listing.arrived.contains(&row.link));
                let brought = difference.unexplained.into_iter().filter(came);
                let silent: Vec<Change> = difference.silent.into_iter().chain(brought).collect();
                let mut found = self.v6_disabled(&silent);
                found.add(self.apply(silent));
                found
            }
            Purpose::Scan if self.is_whole() && self.incomplete.is_empty() => {
                self.scanned(difference)
            }
            // After a gap, where a recording begins, and while rows are
            // known to be missing, a scan is what a resync is.
            Purpose::Load | Purpose::Resync | Purpose::Scan => {
                self.suspects = None;
                self.apply(difference.silent.into_iter().chain(difference.unexplained))
            }
        };
        if heals {
            self.is_loaded = true;
            self.has_gap = false;
        }
        found
    }

    /// Does what follows where IPv6 is found to be switched off on links.
    fn v6_disabled(&mut self, changes: &[Change]) -> Found {
        let mut found = Found::default();
        for change in changes {
            let Change::PutLink(link) = change else {
                continue;
            };
            let known = self.tables().links.get(link.index);
            if link.v6_disabled
                && known.is_some_and(|known| !known.v6_disabled)
                && let Err(full) = self.model.v6_disabled(link.index)
            {
                *found.refused.entry(full.table).or_default() += 1;
                found.full.get_or_insert(full);
            }
        }
        self.lost |= std::mem::take(self.model.lost_v6());
        found
    }

    fn scanned(&mut self, difference: Difference) -> Found {
        let is_order = |change: &&Change| matches!(change, Change::OrderAddresses(..));
        let switched = self.v6_disabled(&difference.silent);
        let orders: Vec<Change> = difference.silent.iter().filter(is_order).cloned().collect();
        let mut found = self.apply(difference.silent);
        found.add(switched);
        let before = self.suspects.take();
        let round = before.as_ref().map_or(0, |before| before.round);
        let (drift, new) = confirmed(before, difference.unexplained, round);
        if !drift.is_empty() {
            let more = self.apply(drift.into_iter().chain(orders));
            // A row that had no place is missing, and said to be.
            found.drift = more.changes;
            found.examples = difference.examples;
            found.add(more);
        }
        if !new.is_empty() {
            self.suspects = Some(Suspects {
                changes: new,
                round: round + 1,
            });
        }
        found
    }

    /// Applies all changes, those first that make place; what a full table
    /// refuses keeps nothing else from being applied.
    fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Found {
        let writer = self.model.writer();
        let mut found = Found::default();
        let (deletions, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(Change::is_deletion);
        // New rows are put in order once they are there.
        let (orders, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|change| matches!(change, Change::OrderAddresses(..)));
        for change in deletions.into_iter().chain(others).chain(orders) {
            match writer.apply(change) {
                Ok(()) => found.changes += 1,
                Err(full) => {
                    *found.refused.entry(full.table).or_default() += 1;
                    found.full.get_or_insert(full);
                }
            }
        }
        writer.publish();
        found
    }

    fn publish_samples(&mut self, which: Which, samples: Samples, now_millis: u64) {
        let writer = self.model.writer();
        if matches!(which, Which::Neighbours | Which::All) {
            writer.publish_neighbour_samples(Sample::new(now_millis, samples.ages));
        }
        if which == Which::Links {
            writer.publish_link_counters(Sample::new(now_millis, samples.counters));
            self.ipv6 = samples.ipv6;
        }
    }

    /// What all links counted, by a listing of counters alone.
    pub(crate) fn counted(&mut self, counted: Vec<(u32, Counted)>, now_millis: u64) {
        let sample = Sample::new(now_millis, counted);
        self.model.writer().publish_link_counters(sample);
    }

    /// What links counted: all of them, or those that have counted since the
    /// last time.
    pub(crate) fn counted_again(
        &mut self,
        of_all: bool,
        links: Vec<(u32, LinkCounters)>,
        now_millis: u64,
    ) {
        let mut counted: BTreeMap<u32, Counted> = BTreeMap::new();
        if !of_all {
            let tables = self.model.tables();
            for link in tables.links.iter() {
                let before = tables.counters_of(link.index);
                counted.extend(before.map(|before| (link.index, (*before).into())));
            }
        }
        let links = links.into_iter();
        counted.extend(links.map(|(link, counters)| (link, counters.into())));
        self.counted(counted.into_iter().collect(), now_millis);
    }

    /// What IP counted in all, beside what it counted by link in the last
    /// listing of links.
    pub(crate) fn ip(&mut self, texts: &Texts, now_millis: u64) {
        let (mut counters, settings) = ip_statistics::understand(texts);
        counters.extend(ip_statistics::by_link(&self.ipv6));
        let sample = Sample::new(now_millis, counters);
        self.model.writer().publish_ip(sample, settings);
        let protocols = protocol_statistics::understand(texts).map(Arc::new);
        self.model
            .writer()
            .publish_host(|host| host.protocols = protocols);
    }

    /// How fast links are, Mb/s by link.
    pub(crate) fn speeds(&mut self, known: Vec<(u32, u32)>, now_millis: u64) {
        let sample = Sample::new(now_millis, known);
        self.model.writer().publish_link_speeds(sample);
    }
}

/// Which of the unexplained changes a scan before had found too, and which
/// are new.
fn confirmed(
    before: Option<Suspects>,
    found: Vec<Change>,
    round: u32,
) -> (Vec<Change>, Vec<Change>) {
    if round >= ROUNDS || found.len() > MANY {
        return (found, Vec::new());
    }
    let before = before.map(|before| before.changes).unwrap_or_default();
    found
        .into_iter()
        .partition(|change| before.contains(change))
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

/// Routes come by the million: they are decoded without the detour over
/// the row of any kind, which costs as much again.
fn is_route(message: &Message<'_>) -> bool {
    let family = message.payload.first();
    message.kind == kind::NEWROUTE && matches!(family, Some(&(AF_INET | AF_INET6)))
}

/// What a link has counted that was not there before: it comes with it, so
/// that no link is without counters until the next sample. Nothing where
/// nobody has read counters yet.
fn counted_at_first(
    tables: &table::Tables,
    announcement: &Announcement,
    payload: &[u8],
) -> Option<(u32, Counted)> {
    let Item::Link(link) = &announcement.item else {
        return None;
    };
    tables.link_counters.taken_at_millis?;
    let is_new = announcement.operation == Operation::New;
    if !is_new || tables.links.get(link.index).is_some() {
        return None;
    }
    let counters = link_counters(payload)?;
    Some((link.index, counters.into()))
}

/// Applies the messages of a datagram, or of several in a row.
fn apply(model: &mut Model, datagram: &[u8], now_millis: u64) -> Applied {
    let mut applied = Applied::default();
    for message in messages(datagram) {
        let message = match message {
            Ok(message) => message,
            Err(malformed) => {
                warn!("{malformed}");
                applied.malformed += 1;
                break;
            }
        };
        match decode(&message, now_millis) {
            Ok(Decoded::Announcement(announcement)) => {
                applied.events += 1;
                if is_echo(model.tables(), &announcement, message.payload) {
                    continue;
                }
                let counted = counted_at_first(model.tables(), &announcement, message.payload);
                match model.event(announcement) {
                    Ok(()) => model.writer().count_alone(counted),
                    Err(full) => {
                        *applied.refused.entry(full.table).or_default() += 1;
                        applied.full = Some(full);
                    }
                }
            }
            Ok(Decoded::Settings(settings)) => {
                applied.events += 1;
                applied.full = model.settings(&settings).err().or(applied.full);
            }
            Ok(_) => {}
            Err(malformed) => {
                warn!("{malformed}");
                applied.malformed += 1;
            }
        }
    }
    applied
}

impl Found {
    /// Adds what came of some more changes.
    fn add(&mut self, more: Self) {
        self.changes += more.changes;
        self.full = self.full.take().or(more.full);
        for (table, rows) in more.refused {
            *self.refused.entry(table).or_default() += rows;
        }
    }
}

impl Samples {
    fn take(&mut self, item: &Item, payload: &[u8], at: Option<Instant>) {
        match item {
            Item::Neighbour(row) => {
                if let Some(ages) = neighbour_ages(payload) {
                    self.ages.push((row.key(), NeighbourSample { ages }));
                }
            }
            Item::Link(row) => {
                if let Some(counters) = link_counters(payload) {
                    self.counters.push((row.index, Counted { counters, at }));
                }
                if let Some(statistics) = ipv6_statistics(payload) {
                    self.ipv6.push((row.index, statistics));
                }
            }
            _ => {}
        }
    }
}
