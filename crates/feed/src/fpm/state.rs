//! How a feed stands, told as its zebra would tell it: for a part of a
//! recording, which is to be replayed alone.
//!
//! Rows that were not told again are told first; then the peer begins to
//! tell all anew, and tells the others.

use std::collections::HashSet;

use ipnet::{IpNet, Ipv6Net};
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use table::{NextHops, Nexthop, RouteBody, RouteRef, Tables, Unconfirmed};

use super::frames;
use crate::recording::{State, Teller};

/// How a feed stands at a moment.
#[derive(Debug)]
pub(crate) struct FpmState {
    /// The connection that feeds it.
    pub connection: u32,
    /// Who feeds it, or did last; `None`: nobody has.
    pub peer: Option<String>,
    /// Why nobody feeds it.
    pub gone: Option<String>,
    /// All was told.
    pub is_settled: bool,
    /// It was not, and there were rows before.
    pub is_resyncing: bool,
    pub tables: Tables,
    pub unconfirmed: Option<Unconfirmed>,
}

/// As zebra says what is there.
const THERE: Request = Request {
    operation: Operation::New,
    flags: flag::CREATE | flag::REPLACE,
    sequence: 0,
    now_millis: 0,
};

/// Which route another stands for, as `placing` has it.
type Place = (u32, IpNet, Option<Ipv6Net>);

impl State for FpmState {
    fn tell(self, tell: &mut Teller<'_>) -> Option<()> {
        let Some(peer) = &self.peer else {
            return Some(());
        };
        tell.connected(self.connection, peer)?;
        let left = self.unconfirmed.as_ref();
        let left = left.filter(|left| self.is_resyncing || !left.is_empty());
        self.rows(tell, |_| true, |_| true)?;
        if let Some(left) = left {
            let routes = left.routes().map(|one| place(&one.with_body(&one.body)));
            let routes: HashSet<Place> = routes.collect();
            tell.connected(self.connection, peer)?;
            self.rows(
                tell,
                |object| !left.has_nexthop(object.id),
                |route| !routes.contains(&place(route)),
            )?;
        }
        if self.is_settled {
            tell.settled("")?;
        }
        match &self.gone {
            Some(why) => tell.closed(why),
            None => Some(()),
        }
    }
}

impl FpmState {
    /// Tells some of the rows: what is named by others before those.
    fn rows(
        &self,
        tell: &mut Teller<'_>,
        has_object: impl Fn(&Nexthop) -> bool,
        has_route: impl Fn(&RouteRef<'_>) -> bool,
    ) -> Option<()> {
        let objects = || self.tables.nexthops.iter();
        let singles = objects().filter(|one| one.group.is_empty());
        let groups = objects().filter(|one| !one.group.is_empty());
        for object in singles.chain(groups).filter(|one| has_object(one)) {
            tell.said(|out| {
                frames::append(out, |out| encode::nexthop(out, &THERE, object).is_ok());
            })?;
        }
        for route in self.tables.routes.iter().filter(has_route) {
            tell.said(|out| self.route(out, &route))?;
        }
        Some(())
    }

    /// One whose object is gone is told with the next hops that it has.
    fn route(&self, out: &mut Vec<u8>, route: &RouteRef<'_>) {
        let body: &RouteBody = route.body;
        let id = body.nexthop_id;
        let is_gone = id.is_some_and(|id| self.tables.nexthops.get(id).is_none());
        if is_gone && body.next_hops != NextHops::None {
            let without = RouteBody {
                nexthop_id: None,
                ..body.clone()
            };
            let row = route.with_body(without);
            frames::append(out, |out| encode::route(out, &THERE, &row).is_ok());
        } else {
            let row = route.with_body(body);
            frames::append(out, |out| encode::route(out, &THERE, &row).is_ok());
        }
    }
}

fn place(route: &RouteRef<'_>) -> Place {
    (route.table, route.prefix, route.body.source)
}
