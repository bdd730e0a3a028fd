//! Takes out of rows what changes without a change: what follows from a
//! link's state.

use table::row::route::hop_flag;
use table::{Links, NextHop, NextHops, Nexthop, RouteBody};

/// A body whose hops' `DEAD` and `LINKDOWN` say only what their links'
/// states do not: a hop is dead on a living link after the link has lost
/// its last address.
pub(crate) fn body(body: &mut RouteBody, links: &Links) {
    match &mut body.next_hops {
        NextHops::None => {}
        NextHops::One(one) => hop(one, links),
        NextHops::Many(many) => many.iter_mut().for_each(|one| hop(one, links)),
    }
}

fn hop(hop: &mut NextHop, links: &Links) {
    hop.flags &= !(hop_flag::LINKDOWN | hop_flag::OWN_ONCE);
    let alive = links.get(hop.link).is_some_and(|link| link.has_carrier());
    if !alive {
        hop.flags &= !hop_flag::DEAD;
    }
}

/// A next-hop object without what follows from its link's state.
pub(crate) fn nexthop(nexthop: &mut Nexthop) {
    nexthop.flags &= !(hop_flag::DEAD | hop_flag::LINKDOWN);
}
