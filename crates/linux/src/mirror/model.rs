//! What an event of the kernel does to the tables. Pure: rows in, changes
//! to a [`Writer`] out.
//!
//! Most events say what they do. What the kernel leaves unsaid is in
//! `silent`; here is which row an event means.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::vec;

use ipnet::{IpNet, Ipv6Net};
use netlink::decode::{Announcement, Item, Operation, Settings};
use netlink::message;
use table::row::link::{V6_MIN_MTU, linkdown};
use table::row::route::{flag, hop_flag, kind, protocol, table_id};
use table::{
    AF_INET, AF_INET6, Address, AddressKey, Change, FdbEntry, Link, NextHop, NextHops, Nexthop,
    Placement, Route, RouteBody, RoutePlace, RouteRef, Routing, Rule, SharedRoute, TableFull,
    Writer,
};

use super::normalise::{self, Over};
use super::siblings::{Siblings, hops_left, same_hop};
use super::silent;

/// To all multicast addresses: of each link that uses IPv6.
const ALL_MULTICAST: IpNet = IpNet::V6(Ipv6Net::new_assert(
    Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
    8,
));

/// The tables, and how events change them.
#[derive(Debug, Default)]
pub struct Model {
    writer: Writer,
    /// `net.ipv4.conf.all.ignore_routes_with_linkdown`.
    all_ignore_linkdown: bool,
    /// Links that came, perhaps from another namespace, and may have brought
    /// forwarding entries that nothing announces.
    arrived: BTreeSet<u32>,
    /// Addresses came of which the announcements do not tell the order.
    has_unsure_order: bool,
    /// A living link has lost its last IPv6 address: IPv6 may have been
    /// switched off on it, and nothing else may have said so.
    may_lack_v6: bool,
    /// IPv6 was switched off on a link and on again, in silence, or an IPv6
    /// route shows what was not told.
    lost_v6: bool,
    /// What the paths of IPv6 routes say.
    siblings: Siblings,
    /// Events are older than the rows: these tell better what links make of
    /// routes, and who had the rows before, with which of the events of links
    /// the kernel looked at a carrier.
    replays: Option<vec::IntoIter<bool>>,
    /// The same of each event of a link, while a listing is under way.
    looks: Option<Vec<bool>>,
}

impl Model {
    /// A model that changes the tables of `writer`.
    pub fn new(writer: Writer) -> Self {
        Self {
            writer,
            all_ignore_linkdown: false,
            arrived: BTreeSet::new(),
            has_unsure_order: false,
            may_lack_v6: false,
            lost_v6: false,
            siblings: Siblings::default(),
            replays: None,
            looks: None,
        }
    }

    /// An empty one that knows what this one does of all links.
    pub fn beside(&self, mut writer: Writer) -> Self {
        writer.set_routing(self.tables().routing());
        Self {
            writer,
            all_ignore_linkdown: self.all_ignore_linkdown,
            arrived: BTreeSet::new(),
            has_unsure_order: false,
            may_lack_v6: false,
            lost_v6: false,
            siblings: Siblings::default(),
            replays: None,
            looks: None,
        }
    }

    /// From now on it is noted with which events of links the kernel looked
    /// at a carrier: [`Model::replay`] of what is listed meanwhile has to know.
    pub fn note_looks(&mut self) {
        self.looks = Some(Vec::new());
    }

    /// What was noted; nothing is any more.
    pub fn take_looks(&mut self) -> Vec<bool> {
        self.looks.take().unwrap_or_default()
    }

    /// From now on the events are those that came during a listing, whose
    /// rows these are. What an event changed is not to be seen where its row
    /// was listed after it, so `looks` tells whether the kernel looked at a
    /// carrier.
    pub fn replay(&mut self, looks: Vec<bool>) {
        self.replays = Some(looks.into_iter());
    }

    /// Links that came since they were last taken out, and whose forwarding
    /// entries have to be listed.
    pub fn arrived(&mut self) -> &mut BTreeSet<u32> {
        &mut self.arrived
    }

    /// Whether addresses came, since this was last set, of which the
    /// announcements do not tell the order, so that they have to be listed.
    pub fn has_unsure_order(&mut self) -> &mut bool {
        &mut self.has_unsure_order
    }

    /// Whether a link lost its IPv6 addresses since this was last set, so that
    /// the links have to be listed to know whether IPv6 is switched off.
    pub fn may_lack_v6(&mut self) -> &mut bool {
        &mut self.may_lack_v6
    }

    /// A listing found that IPv6 was switched off on a link.
    pub fn v6_disabled(&mut self, link: u32) -> Result<(), TableFull> {
        // Since when is not known: a route may have lost its other paths
        // before, or since.
        self.lost_v6 |= silent::has_lone_paths(self.tables(), link);
        silent::v6_disabled(&mut self.writer, link)
    }

    /// Whether, since this was last set, IPv6 was switched off and on
    /// somewhere, or off at an unknown time, without a word of the routes that
    /// went, or the path of a route was the first and says what was not told:
    /// all has to be listed.
    pub fn lost_v6(&mut self) -> &mut bool {
        &mut self.lost_v6
    }

    /// Whether the table has this IPv6 route, with the same flags.
    fn has_v6_route(&self, row: &Route) -> bool {
        let mut beside = self.tables().routes.beside(row).into_iter();
        beside.any(|old| {
            let same = same_path(old.body, &row.body) && old.body.flags == row.body.flags;
            same && covers(old.body, &row.body)
        })
    }

    /// Takes in what holds for all links where rows do not tell it.
    pub fn take_settings_of(&mut self, fresh: &Self) -> Result<(), TableFull> {
        let (known, listed) = (self.tables().routing(), fresh.tables().routing());
        self.writer.set_routing(Routing {
            is_unmerged: known.is_unmerged || listed.is_unmerged,
            ..listed
        });
        self.set_all_ignore_linkdown(fresh.all_ignore_linkdown)
    }

    /// Applies settings that the kernel announces. O(log n), for all links
    /// O(links).
    pub fn settings(&mut self, settings: &Settings) -> Result<(), TableFull> {
        match (settings.link, settings.family, settings.forwards) {
            (None, AF_INET6, Some(forwards_v6)) => {
                let routing = self.tables().routing();
                self.writer.set_routing(Routing {
                    forwards_v6,
                    ..routing
                });
            }
            (Some(link), AF_INET, Some(forwards)) => {
                self.change_link(link, |row| row.forwards_v4 = forwards)?;
            }
            _ => {}
        }
        let Some(ignores) = settings.ignores_linkdown else {
            return Ok(());
        };
        match (settings.link, settings.family) {
            (None, AF_INET) => self.set_all_ignore_linkdown(ignores),
            (None, _) => Ok(()),
            (Some(link), AF_INET) => self.set_linkdown(link, linkdown::V4, ignores),
            (Some(link), _) => self.set_linkdown(link, linkdown::V6, ignores),
        }
    }

    fn set_all_ignore_linkdown(&mut self, ignores: bool) -> Result<(), TableFull> {
        if ignores == self.all_ignore_linkdown {
            return Ok(());
        }
        self.all_ignore_linkdown = ignores;
        let links = self.tables().links.iter();
        let all: Vec<u32> = links.map(|link| link.index).collect();
        all.into_iter()
            .try_for_each(|link| self.set_linkdown(link, linkdown::ALL_V4, ignores))
    }

    fn set_linkdown(&mut self, link: u32, bit: u8, is_set: bool) -> Result<(), TableFull> {
        self.change_link(link, |row| {
            row.ignores_linkdown &= !bit;
            row.ignores_linkdown |= if is_set { bit } else { 0 };
        })
    }

    fn change_link(&mut self, link: u32, change: impl Fn(&mut Link)) -> Result<(), TableFull> {
        let Some(row) = self.tables().links.get(link) else {
            return Ok(());
        };
        let mut row = (**row).clone();
        change(&mut row);
        self.writer.apply(Change::PutLink(row))
    }

    /// A link as a message tells it, and what it does not tell.
    fn whole_link(&self, mut link: Link) -> Link {
        if self.all_ignore_linkdown {
            link.ignores_linkdown |= linkdown::ALL_V4;
        }
        link
    }

    /// The writer, to read, publish and sample with.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// The tables as they stand, published or not.
    pub fn tables(&self) -> &table::Tables {
        self.writer.tables()
    }

    /// Applies an event. O(log n) and what it takes along. A full table
    /// refuses the row and keeps what it has.
    pub fn event(&mut self, announcement: Announcement) -> Result<(), TableFull> {
        let applied = self.announced(announcement);
        self.lost_v6 |= self.siblings.take_shown_guess();
        applied
    }

    fn announced(&mut self, announcement: Announcement) -> Result<(), TableFull> {
        let new = announcement.operation == Operation::New;
        match announcement.item {
            Item::Link(link) if new => self.put_link(link),
            Item::Link(link) => silent::link_gone(&mut self.writer, &mut self.siblings, link.index),
            Item::Address(row) if new => self.put_address(row),
            Item::Address(row) => self.delete_address(&row),
            Item::Neighbour(row) if new => self.writer.apply(Change::PutNeighbour(row)),
            Item::Neighbour(row) => self.writer.apply(Change::DeleteNeighbour(row.key())),
            Item::Fdb(row) if new => self.writer.apply(Change::PutFdb(row)),
            Item::Fdb(row) => self.delete_fdb(&row),
            Item::Route(row) => {
                let switched = v6_switched(&row).filter(|_| !announcement.is_requested);
                // It cannot come twice: between, IPv6 was switched off, and
                // nothing said what went with it.
                self.lost_v6 |= new && switched.is_some() && self.has_v6_route(&row);
                self.route(new, announcement.flags, row)?;
                switched.map_or(Ok(()), |link| {
                    silent::v6_switched(&mut self.writer, link, new)
                })
            }
            Item::OtherRoute(row) if new => self.writer.apply(Change::PutOtherRoute(row)),
            Item::OtherRoute(row) => self.writer.apply(Change::DeleteOtherRoute(row.key)),
            Item::Nexthop(row) if new => self.put_nexthop(row),
            Item::Nexthop(row) => silent::nexthop_gone(&mut self.writer, row.id),
            Item::Rule(row) => self.rule(new, row),
        }
    }

    /// Takes in a row of a dump: as an event, but nothing follows from it.
    pub fn dumped(&mut self, item: Item) -> Result<(), TableFull> {
        match item {
            Item::Link(row) => {
                let row = self.whole_link(row);
                self.writer.apply(Change::PutLink(row))
            }
            Item::Address(row) => self.writer.apply(Change::PutAddress(row)),
            Item::Neighbour(row) => self.writer.apply(Change::PutNeighbour(row)),
            Item::Fdb(row) => self.writer.apply(Change::PutFdb(row)),
            Item::Route(row) => self.dumped_route(row),
            Item::OtherRoute(row) => self.writer.apply(Change::PutOtherRoute(row)),
            Item::Nexthop(mut row) => {
                normalise::nexthop(&mut row);
                self.writer.apply(Change::PutNexthop(row))
            }
            Item::Rule(row) => self.writer.apply(Change::PutRule(row)),
        }
    }

    /// Takes in where the kernel found an address of the host's own: in the
    /// main table if that is one with the local one.
    pub fn own_address_is_found(&mut self, answer: &Route) {
        if answer.body.kind != kind::LOCAL {
            return;
        }
        let routing = self.tables().routing();
        self.writer.set_routing(Routing {
            is_unmerged: routing.is_unmerged || answer.table == table_id::LOCAL,
            ..routing
        });
    }

    /// Takes in a route of a dump.
    pub fn dumped_route(&mut self, mut row: Route) -> Result<(), TableFull> {
        if row.body.flags & flag::CLONED != 0 {
            return Ok(());
        }
        let over = Over::of(row.prefix, self.writer.tables());
        normalise::told(&mut row.body, over);
        self.writer.apply(Change::PutRoute(row, Placement::Last))
    }

    fn put_link(&mut self, link: Link) -> Result<(), TableFull> {
        let link = self.whole_link(link);
        let index = link.index;
        let old = self.writer.tables().links.get(index).cloned();
        if old.is_none() && link.kind.as_deref() == Some("vxlan") {
            self.arrived.insert(index);
        }
        let renamed = old.as_ref().is_none_or(|old| old.name != link.name);
        let left = old.as_ref().and_then(|old| old.master);
        let left = left.filter(|master| link.master != Some(*master));
        let address = link.address;
        let own = old.as_ref().map(|old| old.address);
        let own = own.filter(|own| *own != address);
        let was = old
            .as_ref()
            .map(|old| (old.is_up(), silent::is_running(old)));
        let now = (link.is_up(), silent::is_running(&link));
        let was_ready = old.as_ref().is_some_and(|old| old.is_ready_for_v6());
        let is_ready = link.is_ready_for_v6();
        let loses_v6 = link.v6_disabled && old.as_ref().is_some_and(|old| !old.v6_disabled);
        let noticed = self.is_noticed(old.as_deref(), &link);
        let old_mtu = old.as_ref().map(|old| old.mtu);
        let old_mtu = old_mtu.filter(|mtu| *mtu >= V6_MIN_MTU && *mtu != link.mtu);
        let mtu = link.mtu;
        let changes_vrf = old
            .as_ref()
            .is_some_and(|old| self.vrf(old.master) != self.vrf(link.master));
        self.writer.apply(Change::PutLink(link))?;
        if changes_vrf {
            silent::vrf_changed(&mut self.writer, index)?;
        }
        if let Some((was_up, was_running)) = was {
            if was_up && !now.0 {
                silent::link_down(&mut self.writer, index)?;
            } else if was_running && !now.1 {
                silent::carrier_lost(&mut self.writer, index)?;
            } else if !was_up && now.0 {
                silent::hops_revived(&mut self.writer, index)?;
            }
        }
        if noticed {
            silent::carrier_noticed(&mut self.writer, index)?;
        }
        if loses_v6 {
            // Switched off before, in silence.
            self.v6_disabled(index)?;
        }
        let comes_up = was.is_some_and(|(was_up, _)| !was_up) && now.0;
        if comes_up || (is_ready && !was_ready) {
            silent::v6_up(&mut self.writer, index, is_ready)?;
        }
        if let Some(before) = old_mtu {
            let siblings = &mut self.siblings;
            match mtu < V6_MIN_MTU {
                true => silent::v6_gone(&mut self.writer, siblings, index)?,
                false => silent::mtu_changed(&mut self.writer, siblings, index, before, mtu)?,
            }
        }
        if old.is_some_and(|old| old.mtu != mtu) {
            silent::mtu_passed_through(&mut self.writer, index, mtu)?;
        }
        if let Some(own) = own {
            silent::own_address_left(&mut self.writer, index, own)?;
            silent::address_passed_through(&mut self.writer, index, address)?;
        }
        if let Some(master) = left {
            silent::port_left(&mut self.writer, index, master)?;
        }
        if renamed {
            silent::rules_follow_names(&mut self.writer)?;
        }
        Ok(())
    }

    /// Whether the kernel looked at the carrier of a link with this event.
    fn is_noticed(&mut self, old: Option<&Link>, link: &Link) -> bool {
        let told = self.replays.as_mut().and_then(Iterator::next);
        let is_seen = || old.is_some_and(|old| silent::is_noticed(old, link));
        let is_noticed = told.unwrap_or_else(is_seen);
        if let Some(looks) = &mut self.looks {
            looks.push(is_noticed);
        }
        is_noticed
    }

    /// A master, if it is a VRF.
    fn vrf(&self, master: Option<u32>) -> Option<u32> {
        let link = self.tables().links.get(master?)?;
        link.vrf_table.and(master)
    }

    fn put_address(&mut self, row: Address) -> Result<(), TableFull> {
        let link = row.link;
        let (key, is_v4) = (row.key(), row.local.is_ipv4());
        let is_new = self.tables().addresses.get(&key).is_none();
        self.writer.apply(Change::AddAddress(row))?;
        if is_v4 {
            return silent::hops_revived(&mut self.writer, link);
        }
        // An IPv6 address is announced once it is found to be unique: one
        // made in the same tick before it may come after it.
        self.has_unsure_order |= is_new && self.tables().addresses.has_twin(&key);
        Ok(())
    }

    fn delete_address(&mut self, row: &Address) -> Result<(), TableFull> {
        // A link that is deleted takes its addresses along before it says
        // so, and some kinds do not say so at all.
        let key: AddressKey = row.key();
        let Some(gone) = self.writer.tables().addresses.get(&key).cloned() else {
            return Ok(());
        };
        self.writer.apply(Change::DeleteAddress(key))?;
        match row.local {
            IpAddr::V4(_) => silent::v4_address_gone(&mut self.writer, &gone),
            IpAddr::V6(_) => {
                let tables = self.writer.tables();
                let link = tables.links.get(row.link);
                if link.is_some_and(|link| link.is_up() && !link.v6_disabled) {
                    let mut left = tables.addresses.of_link(row.link);
                    self.may_lack_v6 |= !left.any(|other| other.local.is_ipv6());
                }
                let siblings = &mut self.siblings;
                silent::v6_address_gone(&mut self.writer, siblings, row.link, row.local)
            }
        }
    }

    /// A bridge has a station once: it goes, at whatever port it was last
    /// announced.
    fn delete_fdb(&mut self, row: &FdbEntry) -> Result<(), TableFull> {
        let station = row.station();
        let known = station.and_then(|it| self.tables().fdb.of_station(&it));
        let key = known.map_or_else(|| row.key(), |known| known.key());
        self.writer.apply(Change::DeleteFdb(key))
    }

    fn put_nexthop(&mut self, mut row: Nexthop) -> Result<(), TableFull> {
        normalise::nexthop(&mut row);
        let id = row.id;
        let known = self.writer.tables().nexthops.get(id).cloned();
        self.writer.apply(Change::PutNexthop(row))?;
        match known {
            Some(old) => silent::nexthop_changed(&mut self.writer, id, old.blackhole),
            None => Ok(()),
        }
    }

    fn rule(&mut self, new: bool, row: Rule) -> Result<(), TableFull> {
        if new {
            self.writer.apply(Change::PutRule(row))?;
        } else {
            let gone = silent::same_rule(self.writer.tables(), &row).unwrap_or(row);
            self.writer.apply(Change::DeleteRule(gone))?;
        }
        silent::rules_follow_names(&mut self.writer)
    }

    fn route(&mut self, new: bool, flags: u16, mut row: Route) -> Result<(), TableFull> {
        if row.body.flags & flag::CLONED != 0 {
            return Ok(());
        }
        let is_v6 = matches!(row.prefix, IpNet::V6(_));
        if new && is_v6 && self.replays.is_none() {
            self.learn_linkdown(&mut row)?;
        }
        let over = Over::of(row.prefix, self.writer.tables());
        if self.replays.is_some() && new && !is_v6 {
            self.keep_unmarked(&mut row);
        } else {
            normalise::told(&mut row.body, over);
        }
        match (new, is_v6) {
            (true, false) => self.put_v4_route(flags, row),
            (true, true) => self.put_v6_route(flags, row),
            (false, false) => self.delete_v4_route(&row),
            (false, true) => self.delete_v6_route(&row),
        }
    }

    /// Takes from an IPv6 route that is new, as the kernel tells it just now,
    /// that its link uses no routes without a carrier: of a single link Linux
    /// 6.1 does not announce that it is set (`addrconf_fixup_linkdown`). The hop
    /// is shown dead then (`fib_nexthop_info`), and for no other reason: over a
    /// link that is down none is made.
    fn learn_linkdown(&mut self, row: &mut Route) -> Result<(), TableFull> {
        let NextHops::One(hop) = &row.body.next_hops else {
            return Ok(());
        };
        let link = self.tables().links.get(hop.link);
        let is_known = link.is_none_or(|link| link.ignores_linkdown(AF_INET6));
        let uses_v6 = link.is_some_and(|link| link.is_up() && !link.v6_disabled);
        let is_dead = hop.flags & hop_flag::DEAD != 0 && row.body.nexthop_id.is_none();
        if !is_dead || is_known || !uses_v6 || self.has_v6_route(row) {
            return Ok(());
        }
        let link = hop.link;
        for hop in row.body.next_hops.as_mut_slice() {
            hop.flags &= !hop_flag::DEAD;
        }
        self.set_linkdown(link, linkdown::V6, true)
    }

    fn put_v4_route(&mut self, flags: u16, row: Route) -> Result<(), TableFull> {
        let placement = if flags & message::flag::REPLACE != 0 {
            Placement::InsteadOfFirst
        } else if flags & message::flag::APPEND != 0 {
            Placement::Last
        } else {
            Placement::First
        };
        // The same route said again, with another flag (offload, say).
        if placement != Placement::InsteadOfFirst
            && let Some(same) = self.same_v4_route(&row)
        {
            if *same.body == row.body {
                return Ok(());
            }
            self.writer.apply(Change::DeleteRoute(same))?;
        }
        self.writer.apply(Change::PutRoute(row, placement))
    }

    /// Takes from the row that is there which of its hops the kernel has not
    /// marked: the event may be older than the state of their links.
    fn keep_unmarked(&self, row: &mut Route) {
        let known = self.same_v4_route(row);
        let known = known.iter().flat_map(|old| old.body.next_hops.as_slice());
        let unmarked: Vec<&NextHop> = known
            .filter(|hop| hop.flags & hop_flag::UNMARKED != 0)
            .collect();
        let over = Over::of(row.prefix, self.tables());
        normalise::body(&mut row.body, over);
        for hop in row.body.next_hops.as_mut_slice() {
            if unmarked.iter().any(|old| same_hop(old, hop)) {
                hop.flags |= hop_flag::UNMARKED;
            }
        }
    }

    fn delete_v4_route(&mut self, row: &Route) -> Result<(), TableFull> {
        let gone = self.same_v4_route(row);
        gone.map_or(Ok(()), |gone| self.writer.apply(Change::DeleteRoute(gone)))
    }

    fn same_v4_route(&self, row: &Route) -> Option<SharedRoute> {
        let beside = self.writer.tables().routes.beside(row);
        let mut beside = beside.into_iter();
        let same = beside.find(|old| same_v4(old.body, &row.body))?;
        Some(same.to_shared())
    }

    /// An IPv6 route is announced with all its next hops, whichever was
    /// added: it stands for those with fewer.
    fn put_v6_route(&mut self, flags: u16, mut row: Route) -> Result<(), TableFull> {
        self.keep_untold(&mut row);
        let replaced = if flags & message::flag::REPLACE != 0 {
            self.replaced_v6(&row)
        } else {
            None
        };
        let joined: Vec<SharedRoute> = self
            .writer
            .tables()
            .routes
            .beside(&row)
            .into_iter()
            .filter(|old| same_path(old.body, &row.body) && covers(&row.body, old.body))
            .map(|old| old.to_shared())
            .collect();
        self.what_paths_say(&mut row, replaced.as_ref(), joined.first());
        if replaced.is_none() && joined.iter().any(|old| *old.body == row.body) {
            return Ok(());
        }
        // A replacement takes one route's place (and that of its paths); what
        // else has the same hop stays (`fib6_add_rt2node`).
        let goes_too = |old: &SharedRoute| match &replaced {
            Some(replaced) if old == replaced => false,
            Some(_) => joins_paths(&old.body) || *old.body == row.body,
            None => true,
        };
        let others = joined.into_iter().filter(goes_too);
        let gone: Vec<SharedRoute> = replaced.iter().cloned().chain(others).collect();
        // A replacement stands where the replaced one did, a path with the
        // others that it joins.
        let place = gone.first().and_then(|old| self.writer.ordinal_of(old));
        for old in gone {
            self.writer.apply(Change::DeleteRoute(old))?;
        }
        match place {
            Some(place) => self
                .writer
                .apply(Change::PutRoute(row, Placement::At(place))),
            None => self.put_last_of_source(row),
        }
    }

    /// Puts a new route behind those for its sources: routes for some sources
    /// come before those for all, those for fewer before those for more that
    /// have them too (`fib6_walk_continue` goes through a node's subtree
    /// first, and through that from its leaves). O(log n) for all sources, or
    /// before all others; else O(routes behind it).
    fn put_last_of_source(&mut self, row: Route) -> Result<(), TableFull> {
        let source = row.body.source;
        if source.is_none() {
            return self.writer.apply(Change::PutRoute(row, Placement::Last));
        }
        let is_behind = |old: &RouteRef<'_>| sources_in_order(old.body.source, source).is_gt();
        if self.run_of(&row).next().is_none_or(|old| is_behind(&old)) {
            return self.writer.apply(Change::PutRoute(row, Placement::First));
        }
        let behind = self.run_of(&row).filter(is_behind);
        let behind: Vec<SharedRoute> = behind.map(|old| old.to_shared()).collect();
        for old in &behind {
            self.writer.apply(Change::DeleteRoute(old.clone()))?;
        }
        self.writer.apply(Change::PutRoute(row, Placement::Last))?;
        for old in behind {
            let old = old.with_body((*old.body).clone());
            self.writer.apply(Change::PutRoute(old, Placement::Last))?;
        }
        Ok(())
    }

    /// Keeps hops dead of which the kernel does not tell it now.
    fn keep_untold(&self, row: &mut Route) {
        let over = Over::of(row.prefix, self.tables());
        let hops = row.body.next_hops.as_slice();
        if hops.iter().all(|hop| over.tells(hop.link)) {
            return;
        }
        let beside = self.tables().routes.beside(row);
        for hop in row.body.next_hops.as_mut_slice() {
            let known = beside.iter().flat_map(|old| old.body.next_hops.as_slice());
            let mut same = known.filter(|known| same_hop(known, hop));
            if !over.tells(hop.link) && same.any(|known| known.flags & hop_flag::DEAD != 0) {
                hop.flags |= hop_flag::DEAD;
            }
        }
    }

    /// Makes of an announced IPv6 route, which says what the path says that
    /// it names first, what the route shows.
    fn what_paths_say(
        &mut self,
        row: &mut Route,
        replaced: Option<&SharedRoute>,
        joined: Option<&SharedRoute>,
    ) {
        let Some(by) = row.body.next_hops.as_slice().first().cloned() else {
            return;
        };
        match (replaced, joined) {
            (None, Some(joined)) => {
                older_first(&mut row.body, &joined.body);
                row.body = self.siblings.join(joined, &row.body, &by);
                self.siblings.look(self.writer.tables());
            }
            (replaced, _) => {
                if joins_paths(&row.body) || replaced.is_some_and(|old| joins_paths(&old.body)) {
                    self.siblings.forget(row);
                }
            }
        }
    }

    /// The route that an IPv6 route announced as a replacement stands for:
    /// the first for the same sources that joins paths as it does, else the
    /// first for them (`fib6_add` has routes for some sources in a tree of
    /// their own).
    fn replaced_v6(&self, row: &Route) -> Option<SharedRoute> {
        let of_source = || {
            let run = self.run_of(row);
            run.filter(|old| old.body.source == row.body.source)
        };
        let alike = of_source().find(|old| joins_paths(old.body) == joins_paths(&row.body));
        let replaced = alike.or_else(|| of_source().next())?;
        Some(replaced.to_shared())
    }

    /// One next hop of an IPv6 route may go without the others.
    fn delete_v6_route(&mut self, row: &Route) -> Result<(), TableFull> {
        let is_gone =
            |old: &RouteRef<'_>| same_path(old.body, &row.body) && covers(old.body, &row.body);
        let old = if row.body.next_hops == NextHops::None {
            self.run_of(row).find(is_gone)
        } else {
            let beside = self.writer.tables().routes.beside(row);
            beside.into_iter().find(is_gone)
        };
        let Some(old) = old.map(|old| old.to_shared()) else {
            return Ok(());
        };
        let gone = row.body.next_hops.as_slice();
        let is_left = |hop: &NextHop| !gone.iter().any(|gone| same_hop(gone, hop));
        let rest = hops_left(&old.body, is_left);
        if rest == NextHops::None {
            self.siblings.forget(&old);
            return self.writer.apply(Change::DeleteRoute(old));
        }
        let left = self.siblings.leave(&old, rest);
        silent::rewrite(&mut self.writer, old, left)
    }

    /// The routes of the same table, prefix, TOS and metric.
    fn run_of(&self, row: &Route) -> impl Iterator<Item = RouteRef<'_>> {
        let (tos, metric) = (row.tos, row.metric);
        let first = RoutePlace {
            tos,
            metric,
            ..RoutePlace::first_of(row.prefix)
        };
        let (prefix, routes) = (row.prefix, &self.writer.tables().routes);
        routes
            .run(row.table, &first)
            .map(|(_, old)| old)
            .take_while(move |old| (old.prefix, old.tos, old.metric) == (prefix, tos, metric))
    }
}

/// The order of routes for some sources, and of those for all: of two prefixes
/// the one inside the other first, else by address.
fn sources_in_order(a: Option<Ipv6Net>, b: Option<Ipv6Net>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) if a == b => Ordering::Equal,
        (Some(a), Some(b)) if a.contains(&b) => Ordering::Greater,
        (Some(a), Some(b)) if b.contains(&a) => Ordering::Less,
        (Some(a), Some(b)) => a.network().cmp(&b.network()),
    }
}

/// The link whose route to all multicast addresses this is: the kernel makes
/// and deletes it as it takes IPv6 into use there and out of use. Before Linux
/// 5.11 it was called a unicast one, made at boot.
fn v6_switched(row: &Route) -> Option<u32> {
    let is_by_kernel = [
        (kind::MULTICAST, protocol::KERNEL),
        (kind::UNICAST, protocol::BOOT),
    ]
    .contains(&(row.body.kind, row.body.protocol));
    let hop = row.body.next_hops.as_slice().first()?;
    (row.prefix == ALL_MULTICAST && is_by_kernel).then_some(hop.link)
}

/// Whether two IPv4 routes of one place are one to the kernel
/// (`fib_find_info`): flags of hardware and expiry apart.
fn same_v4(a: &RouteBody, b: &RouteBody) -> bool {
    same_kind(a, b)
        && a.scope == b.scope
        && a.preferred_source == b.preferred_source
        && a.metrics == b.metrics
        && same_hops(&a.next_hops, &b.next_hops)
}

fn same_kind(a: &RouteBody, b: &RouteBody) -> bool {
    a.kind == b.kind
        && a.protocol == b.protocol
        && a.source == b.source
        && a.nexthop_id == b.nexthop_id
}

/// Whether two IPv6 routes of one place may be paths of one: those by a
/// gateway are, whoever made them (`rt6_qualify_for_ecmp`).
fn same_path(a: &RouteBody, b: &RouteBody) -> bool {
    let by = |body: &RouteBody| (body.kind, body.source, body.nexthop_id);
    by(a) == by(b) && (a.protocol == b.protocol || (joins_paths(a) && joins_paths(b)))
}

/// As `nh_comp` has it: marks of the moment apart.
fn same_hops(a: &NextHops, b: &NextHops) -> bool {
    const MADE_WITH: u32 = hop_flag::ONLINK | hop_flag::PERVASIVE;
    let made_alike = |a: &NextHop, b: &NextHop| {
        let flags = (a.flags ^ b.flags) & MADE_WITH;
        flags == 0 && a.weight == b.weight && a.realms == b.realms
    };
    let (a, b) = (a.as_slice(), b.as_slice());
    let mut both = a.iter().zip(b);
    a.len() == b.len() && both.all(|(a, b)| same_hop(a, b) && made_alike(a, b))
}

/// Whether `outer` has every next hop of `inner`.
fn covers(outer: &RouteBody, inner: &RouteBody) -> bool {
    let has = |hop: &NextHop| outer.next_hops.as_slice().iter().any(|o| same_hop(o, hop));
    inner.next_hops.as_slice().iter().all(has)
}

/// Puts the next hops that a route had already before the new ones: an
/// event names the new one first, a listing last.
fn older_first(body: &mut RouteBody, old: &RouteBody) {
    if let NextHops::Many(hops) = &mut body.next_hops {
        let old = old.next_hops.as_slice();
        let place = |hop: &NextHop| {
            old.iter()
                .position(|o| same_hop(o, hop))
                .unwrap_or(old.len())
        };
        hops.sort_by_key(place);
    }
}

/// Whether an IPv6 route joins others of its place as one more path
/// (`rt6_qualify_for_ecmp`).
fn joins_paths(body: &RouteBody) -> bool {
    body.next_hops
        .as_slice()
        .iter()
        .any(|hop| hop.gateway.is_some())
}

#[cfg(test)]
#[path = "model/growth.rs"]
mod growth;
#[cfg(test)]
#[path = "model/tests.rs"]
mod tests;
