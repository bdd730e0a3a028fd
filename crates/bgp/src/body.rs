//! The body of a route that is a path.

use std::net::IpAddr;

use table::row::route::{kind, protocol};
use table::{NextHop, NextHops, PathAttributes, RouteBody};

/// The body of the route over a next hop with such attributes.
pub fn body(next_hop: Option<IpAddr>, path: PathAttributes) -> RouteBody {
    RouteBody {
        kind: kind::UNICAST,
        protocol: protocol::BGP,
        next_hops: NextHops::One(NextHop {
            gateway: next_hop,
            weight: 1,
            ..NextHop::default()
        }),
        path,
        ..RouteBody::default()
    }
}
