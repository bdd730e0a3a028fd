//! Takes out of rows what changes without a change: what follows from a
//! link's state, and the running timers in a bridge's data.

use table::row::link::Link;
use table::row::route::hop_flag;
use table::{Links, NextHop, NextHops, Nexthop, RawAttributes, RouteBody};

/// `IFLA_BR_HELLO_TIMER`, `…TCN_TIMER`, `…TOPOLOGY_CHANGE_TIMER`,
/// `…GC_TIMER` and `…TOPOLOGY_CHANGE_DETECTED`'s timers run by themselves.
const BRIDGE_TIMERS: [u16; 4] = [16, 17, 18, 19];
/// `IFLA_BRPORT_MESSAGE_AGE_TIMER`, `…FORWARD_DELAY_TIMER`, `…HOLD_TIMER`.
const PORT_TIMERS: [u16; 3] = [21, 22, 23];

/// A link without running timers.
pub(crate) fn link(link: &mut Link) {
    if link.kind.as_deref() == Some("bridge") {
        without(&mut link.kind_data, &BRIDGE_TIMERS);
    }
    if link.slave_kind.as_deref() == Some("bridge") {
        without(&mut link.slave_data, &PORT_TIMERS);
    }
}

fn without(attributes: &mut RawAttributes, unwanted: &[u16]) {
    let mut kept = Vec::with_capacity(attributes.bytes().len());
    for attribute in netlink::attribute::raw(attributes.bytes()) {
        // What cannot be walked is kept as it came.
        let Ok((kind, bytes)) = attribute else { return };
        if !unwanted.contains(&kind) {
            kept.extend_from_slice(bytes);
        }
    }
    *attributes = RawAttributes::new(&kept);
}

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
    hop.flags &= !hop_flag::LINKDOWN;
    let alive = links.get(hop.link).is_some_and(|link| link.has_carrier());
    if !alive {
        hop.flags &= !hop_flag::DEAD;
    }
}

/// A next-hop object without what follows from its link's state.
pub(crate) fn nexthop(nexthop: &mut Nexthop) {
    nexthop.flags &= !(hop_flag::DEAD | hop_flag::LINKDOWN);
}
