//! What each path of an IPv6 route says, where they do not say the same.
//! Called by the model and by `silent`.
//!
//! The kernel keeps every path as a route of its own (`fib6_siblings`), with
//! its protocol, metrics, preferred source, preference and expiry, and shows
//! those of the first (`rt6_fill_node`). When that one goes, the next one's
//! show. An announcement says what the path says that it names first; a
//! listing says nothing of the others, and they are taken to say what the
//! first says. So are several that are appended at once: they are announced
//! with the first path's words (`ip6_route_mpath_notify`).

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use table::{NextHop, NextHops, Route, RouteBody, SharedRoute, Tables};

/// Table, prefix, source prefix, metric.
type Key = (u32, IpNet, Option<Ipv6Net>, u32);

/// Routes that are kept here before it is looked which of them are gone.
const FIRST_LOOK: usize = 1_024;

/// A path, and the route that it is by itself: a body without next hops.
#[derive(Debug, Clone)]
struct Path {
    hop: NextHop,
    body: RouteBody,
    /// What it says was never told.
    is_guessed: bool,
}

/// The paths of the routes of which not all say the same.
#[derive(Debug)]
pub(crate) struct Siblings {
    of: BTreeMap<Key, Vec<Path>>,
    /// With more routes than this, those that are gone are dropped.
    look_at: usize,
    /// A route shows what was never told.
    shows_guess: bool,
}

impl Default for Siblings {
    fn default() -> Self {
        Self {
            of: BTreeMap::new(),
            look_at: FIRST_LOOK,
            shows_guess: false,
        }
    }
}

impl Siblings {
    /// Whether all paths of every route say the same, as far as is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether a route shows, since this was last asked, what a path says that
    /// nobody told: a listing does.
    pub(crate) fn take_shown_guess(&mut self) -> bool {
        std::mem::take(&mut self.shows_guess)
    }

    /// A route was announced with more paths than it had, or anew. `new` has
    /// the paths in their order, and what the path `by` says; gives what the
    /// route shows.
    pub(crate) fn join(&mut self, old: &SharedRoute, new: &RouteBody, by: &NextHop) -> RouteBody {
        let known = self.paths(old);
        let body_of = |hop: &NextHop| {
            let known = known.iter().find(|path| same_hop(&path.hop, hop));
            match known {
                _ if same_hop(hop, by) => (without_hops(new), false),
                Some(path) => (path.body.clone(), path.is_guessed),
                None => (without_hops(&old.body), true),
            }
        };
        let hops = new.next_hops.as_slice().iter();
        let paths = hops.map(|hop| {
            let (body, is_guessed) = body_of(hop);
            Path {
                hop: hop.clone(),
                body,
                is_guessed,
            }
        });
        let paths = paths.collect();
        self.keep(old, paths, new.next_hops.clone())
    }

    /// What a route shows that has only these of its paths left.
    pub(crate) fn leave(&mut self, old: &SharedRoute, left: NextHops) -> RouteBody {
        let is_left = |path: &Path| left.as_slice().iter().any(|hop| same_hop(hop, &path.hop));
        let mut paths = self.paths(old);
        paths.retain(is_left);
        if let Some(first) = paths.first_mut() {
            self.shows_guess |= std::mem::take(&mut first.is_guessed);
        }
        self.keep(old, paths, left)
    }

    /// What a route shows after `change` was made to the body of each path.
    pub(crate) fn change(
        &mut self,
        route: &SharedRoute,
        change: impl Fn(&NextHop, &mut RouteBody),
    ) -> RouteBody {
        let mut paths = self.paths(route);
        for path in &mut paths {
            change(&path.hop, &mut path.body);
        }
        self.keep(route, paths, route.body.next_hops.clone())
    }

    /// An address is gone: paths over its link that preferred it as their
    /// source prefer none (`fib6_remove_prefsrc`).
    pub(crate) fn forget_source(&mut self, link: u32, address: IpAddr) {
        let paths = self.of.values_mut().flatten();
        for path in paths.filter(|path| path.hop.link == link) {
            path.body.preferred_source.take_if(|it| *it == address);
        }
    }

    /// A route is no longer what it was: another stands in its place.
    pub(crate) fn forget<B: Borrow<RouteBody>>(&mut self, route: &Route<B>) {
        self.of.remove(&key(route));
    }

    /// Drops the routes that are gone, if there are many.
    pub(crate) fn look(&mut self, tables: &Tables) {
        if self.of.len() < self.look_at {
            return;
        }
        self.of.retain(|(table, prefix, source, metric), paths| {
            let mut routes = tables.routes.exact(*table, *prefix);
            routes.any(|route| {
                let hops = route.body.next_hops.as_slice();
                route.metric == *metric && route.body.source == *source && has_hops(paths, hops)
            })
        });
        self.look_at = FIRST_LOOK.max(2 * self.of.len());
    }

    /// The paths of a route as it shows, each with what is known of it.
    fn paths(&self, route: &SharedRoute) -> Vec<Path> {
        let hops = route.body.next_hops.as_slice();
        let shown = without_hops(&route.body);
        let known = self.of.get(&key(route));
        let known = known.filter(|paths| {
            has_hops(paths, hops) && paths.first().is_some_and(|first| first.body == shown)
        });
        known.cloned().unwrap_or_else(|| {
            let paths = hops.iter().map(|hop| Path {
                hop: hop.clone(),
                body: shown.clone(),
                is_guessed: false,
            });
            paths.collect()
        })
    }

    /// Keeps the paths, if they do not all say the same, and gives what is
    /// shown of them.
    fn keep(&mut self, route: &SharedRoute, paths: Vec<Path>, next_hops: NextHops) -> RouteBody {
        let first = paths.first().map(|path| path.body.clone());
        let first = first.unwrap_or_else(|| without_hops(&route.body));
        if paths
            .iter()
            .all(|path| path.body == first && !path.is_guessed)
        {
            self.of.remove(&key(route));
        } else {
            self.of.insert(key(route), paths);
        }
        RouteBody { next_hops, ..first }
    }
}

fn key<B: Borrow<RouteBody>>(route: &Route<B>) -> Key {
    let source = route.body.borrow().source;
    (route.table, route.prefix, source, route.metric)
}

fn has_hops(paths: &[Path], hops: &[NextHop]) -> bool {
    let same = |(path, hop): (&Path, &NextHop)| same_hop(&path.hop, hop);
    paths.len() == hops.len() && paths.iter().zip(hops).all(same)
}

fn without_hops(body: &RouteBody) -> RouteBody {
    RouteBody {
        next_hops: NextHops::None,
        ..body.clone()
    }
}

/// What is left of a route's hops.
pub(super) fn hops_left(body: &RouteBody, is_left: impl Fn(&NextHop) -> bool) -> NextHops {
    let hops = body.next_hops.as_slice().iter();
    let left: Vec<NextHop> = hops.filter(|hop| is_left(hop)).cloned().collect();
    match <[NextHop; 1]>::try_from(left) {
        // A path that has lost its siblings is a plain route.
        Ok([one]) => NextHops::One(NextHop { weight: 1, ..one }),
        Err(none) if none.is_empty() => NextHops::None,
        Err(many) => NextHops::Many(many.into()),
    }
}

/// Whether two hops are one to the kernel: weights and flags apart.
pub(super) fn same_hop(a: &NextHop, b: &NextHop) -> bool {
    a.link == b.link && a.gateway == b.gateway && a.encap == b.encap
}
