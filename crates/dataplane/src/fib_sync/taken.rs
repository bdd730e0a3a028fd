//! What a feed is told of its routes: how far they were taken in, and which
//! of them no packet goes by. For who acknowledges them to a routing daemon.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use table::Generation;

use super::Pair;
use super::known::Known;
use super::view::{Address, Kept};

/// A prefix of a table.
type Place = (u32, IpNet);

/// How a FIB over a feed stands to the feed's routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Routes of the feed up to this generation were looked at.
    pub seen: Generation,
    /// The routing tables that packets are looked up in; those of others
    /// are not for this FIB.
    pub tables: BTreeSet<u32>,
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

    /// Everything was made anew. O(refused).
    pub fn renew(&mut self, views: &[Pair], known: &Known, seen: Generation) {
        self.news.tables = views.iter().flat_map(Pair::tables).collect();
        let prefixes = views.iter().flat_map(Pair::refused);
        let places = prefixes.flat_map(|prefix| self.places(prefix));
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

    /// A prefix in each table.
    fn places(&self, prefix: IpNet) -> impl Iterator<Item = Place> {
        self.news.tables.iter().map(move |table| (*table, prefix))
    }
}

/// Whether the feed has a route there that packets do not go by.
fn is_refused(views: &[Pair], known: &Known, (table, prefix): Place) -> bool {
    let mut refuses = views.iter().map(|pair| pair.refuses(table, prefix));
    let mut routes = known.tables().routes.exact(table, prefix);
    refuses.any(|refuses| refuses) && routes.next().is_some()
}

impl Pair {
    fn tables(&self) -> BTreeSet<u32> {
        self.v4.tables().chain(self.v6.tables()).collect()
    }

    /// Prefixes that packets do not go by.
    fn refused(&self) -> impl Iterator<Item = IpNet> {
        self.v4.refused().chain(self.v6.refused())
    }

    fn refuses(&self, table: u32, prefix: IpNet) -> bool {
        fn of<A: Address>(kept: &Kept<A>, table: u32, prefix: IpNet) -> bool {
            kept.tables().any(|asked| asked == table) && kept.refuses(prefix)
        }
        of(&self.v4, table, prefix) || of(&self.v6, table, prefix)
    }

    /// Prefixes that are to be decided about.
    pub(super) fn dirty(&self) -> impl Iterator<Item = IpNet> {
        self.v4.dirty().chain(self.v6.dirty())
    }
}
