//! What a feed is told of its routes: how far they were taken in, and which
//! of them no packet goes by. For who acknowledges them to a routing daemon.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use table::row::route::table_id;
use table::{AF_INET, AF_INET6, Generation};

use super::Pair;
use super::known::Known;

/// A prefix of a table.
type Place = (u32, IpNet);

/// How a FIB over a feed stands to the feed's routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Routes of the feed up to this generation were looked at.
    pub seen: Generation,
    /// The routing tables that packets are looked up in, each with its
    /// family (`AF_INET`, `AF_INET6`); others are not for this FIB.
    pub tables: BTreeSet<(u8, u32)>,
    /// Prefixes of a table whose routes packets do not go by since
    /// (`true`), or do again (`false`): there was no room for them, or they
    /// lead nowhere at the moment. What was never told, they go by.
    pub refused: BTreeMap<Place, bool>,
}

/// What was found out and not told yet.
#[derive(Debug, Default)]
pub(super) struct Taking {
    /// What holds now.
    refused: BTreeSet<Place>,
    news: Taken,
    is_new: bool,
}

impl Taking {
    /// What is new since this was asked last.
    pub fn take(&mut self) -> Option<Taken> {
        let is_new = std::mem::take(&mut self.is_new);
        is_new.then(|| Taken {
            refused: std::mem::take(&mut self.news.refused),
            ..self.news.clone()
        })
    }

    /// Everything was made anew. O(what is unusual, routes of other tables
    /// than the main one).
    pub fn renew(&mut self, views: &[Pair], known: &Known, seen: Generation) {
        self.news.tables = views.iter().flat_map(Pair::tables).collect();
        let unusual = views.iter().flat_map(Pair::unusual);
        let others = self.news.tables.iter();
        let others = others.filter(|(_, table)| *table != table_id::MAIN);
        let others = others.flat_map(|(family, table)| known.of_feed(*table, *family));
        let prefixes: BTreeSet<IpNet> = unusual.chain(others).collect();
        let places = prefixes.iter().flat_map(|prefix| self.places(*prefix));
        let refused: BTreeSet<Place> = places
            .filter(|place| is_refused(views, known, *place))
            .collect();
        for place in self.refused.symmetric_difference(&refused) {
            self.news.refused.insert(*place, refused.contains(place));
        }
        self.refused = refused;
        self.saw(seen);
    }

    /// Some prefixes were decided about. O(prefixes).
    pub fn update(&mut self, views: &[Pair], known: &Known, prefixes: &[IpNet], seen: Generation) {
        let places: Vec<Place> = prefixes
            .iter()
            .flat_map(|prefix| self.places(*prefix))
            .collect();
        for place in places {
            let is_refused = is_refused(views, known, place);
            let has_changed = match is_refused {
                true => self.refused.insert(place),
                false => self.refused.remove(&place),
            };
            if has_changed {
                self.news.refused.insert(place, is_refused);
            }
        }
        self.saw(seen);
    }

    fn saw(&mut self, seen: Generation) {
        self.news.seen = seen;
        self.is_new = true;
    }

    /// A prefix in each table that is asked for its family.
    fn places(&self, prefix: IpNet) -> impl Iterator<Item = Place> {
        let tables = self.news.tables.iter();
        let asked = tables.filter(move |(family, _)| *family == family_of(prefix));
        asked.map(move |(_, table)| (*table, prefix))
    }
}

fn family_of(prefix: IpNet) -> u8 {
    match prefix {
        IpNet::V4(_) => AF_INET,
        IpNet::V6(_) => AF_INET6,
    }
}

/// Whether the feed has a route there, and packets from no port go by it.
fn is_refused(views: &[Pair], known: &Known, (table, prefix): Place) -> bool {
    let mut takes = views.iter().map(|pair| pair.takes(table, prefix));
    let mut routes = known.tables().routes.exact(table, prefix);
    !takes.any(|takes| takes) && routes.next().is_some()
}

impl Pair {
    fn tables(&self) -> impl Iterator<Item = (u8, u32)> {
        let v4 = self.v4.tables().map(|table| (AF_INET, table));
        v4.chain(self.v6.tables().map(|table| (AF_INET6, table)))
    }

    fn unusual(&self) -> impl Iterator<Item = IpNet> {
        self.v4.unusual().chain(self.v6.unusual())
    }

    fn takes(&self, table: u32, prefix: IpNet) -> bool {
        self.v4.takes(table, prefix) || self.v6.takes(table, prefix)
    }

    /// Prefixes that are to be decided about.
    pub(super) fn dirty(&self) -> impl Iterator<Item = IpNet> {
        self.v4.dirty().chain(self.v6.dirty())
    }

    /// Whether workers do not see all that was decided.
    pub(super) fn is_behind(&self) -> bool {
        self.v4.is_behind() || self.v6.is_behind()
    }
}
