//! One moment of everything.

use std::sync::Arc;

use super::{Owner, Owners, Refused};
use crate::addresses::Addresses;
use crate::event::Generation;
use crate::fdb::Fdb;
use crate::host::Host;
use crate::links::Links;
use crate::neighbours::Neighbours;
use crate::nexthops::Nexthops;
use crate::ordered::Ordered;
use crate::routes::Routes;
use crate::row::counters::{IpCounters, IpPlace, IpSettings, LinkCounters};
use crate::row::neighbour::NeighbourKey;
use crate::rules::Rules;
use crate::sample::{Counted, NeighbourSample, Sample};
use crate::samples::Sampled;

/// All tables at one generation. Cloning shares them: O(1).
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Which moment this is.
    pub generation: Generation,
    /// Links.
    pub links: Links,
    /// Addresses.
    pub addresses: Addresses,
    /// ARP and ND neighbours.
    pub neighbours: Neighbours,
    /// Routes of all tables.
    pub routes: Routes,
    /// Next-hop objects.
    pub nexthops: Nexthops,
    /// Rules of policy routing.
    pub rules: Rules,
    /// Bridge and VXLAN forwarding entries.
    pub fdb: Fdb,
    /// What was refused since the tables were last whole.
    pub refused: Refused,
    /// Counters of links, by index, as last sampled.
    pub link_counters: Arc<Sample<u32, Counted>>,
    /// Those of links that were taken alone since, by index
    /// ([`Tables::counters_of`]).
    pub counted_alone: Ordered<u32, Counted>,
    /// How fast links are, Mb/s, by index, as last sampled; links whose
    /// speed the kernel does not know, or that have none, are not in it.
    pub link_speeds: Arc<Sample<u32, u32>>,
    /// What IP counted, in all and by link, as last sampled.
    pub ip_counters: Arc<Sample<IpPlace, IpCounters>>,
    /// How IP is set, as last sampled; `None`: not yet.
    pub ip_settings: Option<IpSettings>,
    /// Ages of neighbours as last sampled.
    pub neighbour_samples: Arc<Sample<NeighbourKey, NeighbourSample>>,
    /// What the host tells beside its tables, as last sampled.
    pub host: Host,
    /// What holds for routing as a whole.
    pub(crate) routing: Routing,
    /// Those whose rows stand beside these.
    pub(crate) owners: Owners,
    /// The links that indexes mean, where they are not those above.
    pub(crate) named: Option<Links>,
}

/// What holds for routing as a whole and is no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routing {
    /// `net.ipv6.conf.all.forwarding`: a router does not look whether
    /// gateways answer.
    pub forwards_v6: bool,
    /// The IPv4 tables local and main are two, for good: there was a rule
    /// of somebody's own once (`fib_unmerge`).
    pub is_unmerged: bool,
}

impl Tables {
    /// What holds for routing as a whole.
    pub fn routing(&self) -> Routing {
        self.routing
    }

    /// Whether the host forwards IPv6 (`net.ipv6.conf.all.forwarding`).
    pub(crate) fn forwards_v6(&self) -> bool {
        self.routing.forwards_v6
    }

    /// What a link has counted, as last sampled, with the others or alone.
    /// O(log links).
    pub fn counters_of(&self, link: u32) -> Option<&LinkCounters> {
        self.counted_of(link).map(|counted| &counted.counters)
    }

    /// The same, with when it was. O(log links).
    pub fn counted_of(&self, link: u32) -> Option<&Counted> {
        let alone = self.counted_alone.get(&link);
        alone.or_else(|| self.link_counters.get(&link))
    }

    /// The owners beside the one whose tables these are, by name.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.iter()
    }

    /// The owner of a name beside the first; or the only one whose name goes
    /// on behind it with `@`. O(log owners).
    pub fn owner(&self, name: &str) -> Option<&Owner> {
        self.owners.find(name)
    }

    /// The rows of an owner beside the first, as tables, at this moment.
    pub fn of(&self, owner: &str) -> Option<Arc<Self>> {
        let tables = self.owner(owner)?.tables();
        Some(Arc::new(tables.named_by(self)))
    }

    /// The links that indexes in rows mean: of a feeder's rows those of the
    /// first owner, which knows the host.
    pub fn named_links(&self) -> &Links {
        self.named.as_ref().unwrap_or(&self.links)
    }

    /// The same with the routes and next-hop objects of a feed in the place
    /// of its own: for who forwards by them.
    #[must_use]
    pub fn with_routes_of(&self, feed: &Self) -> Self {
        Self {
            routes: feed.routes.clone(),
            nexthops: feed.nexthops.clone(),
            ..self.clone()
        }
    }

    /// The same rows, whose links have their names from the first owner.
    pub(crate) fn named_by(&self, first: &Self) -> Self {
        Self {
            named: Some(first.links.clone()),
            ..self.clone()
        }
    }

    /// How many rows a table has that is limited under this name.
    pub(crate) fn len_of(&self, table: &str) -> usize {
        match table {
            "links" => self.links.len(),
            "addresses" => self.addresses.len(),
            "neighbours" => self.neighbours.len(),
            "routes" => self.routes.len(),
            "nexthops" => self.nexthops.len(),
            "rules" => self.rules.len(),
            "fdb" => self.fdb.len(),
            _ => 0,
        }
    }

    /// When something was last sampled, milliseconds since the UNIX epoch;
    /// `None`: never, or it is not kept apart from the rows.
    pub fn sampled_at_millis(&self, what: Sampled) -> Option<u64> {
        match what {
            Sampled::Links | Sampled::Counters => self.link_counters.taken_at_millis,
            Sampled::Neighbours => self.neighbour_samples.taken_at_millis,
            Sampled::Sockets => self.host.sockets.taken_at_millis,
            Sampled::Machine => self.host.machine.as_ref().map(|one| one.taken_at_millis),
            Sampled::IpInterfaces => self.host.ip_interfaces.taken_at_millis,
            Sampled::BridgeVlans => self.host.bridge_vlans.taken_at_millis,
            Sampled::BridgeTimers => self.host.unannounced.taken_at_millis,
            Sampled::Addresses | Sampled::Fdb => None,
        }
    }

    /// Number of rows of all tables.
    pub fn rows(&self) -> usize {
        self.links.len()
            + self.addresses.len()
            + self.neighbours.len()
            + self.routes.len()
            + self.nexthops.len()
            + self.rules.len()
            + self.fdb.len()
    }
}
