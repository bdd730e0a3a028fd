//! A route, and what many routes share.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};

use super::attributes::RawAttributes;
use super::encap::Encap;
use super::path_attributes::PathAttributes;
use super::route_metrics::RouteMetrics;

/// A route (`RTM_NEWROUTE` of `AF_INET` and `AF_INET6`). `B` is how it
/// holds its body: by value as parsed, by `Arc` in events, by reference
/// when read from a table ([`RouteRef`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route<B = RouteBody> {
    /// `RTA_TABLE`.
    pub table: u32,
    /// `RTA_DST` and `rtm_dst_len`.
    pub prefix: IpNet,
    /// `rtm_tos`.
    pub tos: u8,
    /// `RTA_PRIORITY`.
    pub metric: u32,
    /// The rest, shared between the routes of a table: a full table has a
    /// million prefixes and a few hundred of these.
    pub body: B,
}

/// A route as it stands in a table.
pub type RouteRef<'a> = Route<&'a Arc<RouteBody>>;

/// A route that shares its body with the table.
pub type SharedRoute = Route<Arc<RouteBody>>;

impl<B> Route<B> {
    /// The same place with another body.
    pub fn with_body<C>(&self, body: C) -> Route<C> {
        Route {
            table: self.table,
            prefix: self.prefix,
            tos: self.tos,
            metric: self.metric,
            body,
        }
    }
}

impl RouteRef<'_> {
    /// A route of its own that shares the body.
    pub fn to_shared(&self) -> SharedRoute {
        self.with_body(Arc::clone(self.body))
    }
}

/// All of a route but its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RouteBody {
    /// `rtm_type`: [`kind`].
    pub kind: u8,
    /// `rtm_protocol`: [`protocol`].
    pub protocol: u8,
    /// `rtm_scope`: [`scope`].
    pub scope: u8,
    /// `rtm_flags`: [`flag`], without those that belong to its next hops.
    pub flags: u32,
    /// `RTA_PREFSRC`.
    pub preferred_source: Option<IpAddr>,
    /// `RTA_SRC` (IPv6 source-specific routing).
    pub source: Option<Ipv6Net>,
    /// `RTA_NH_ID`: its next-hop object, if it uses one. The kernel then
    /// repeats the object's contents as `next_hops`, unless told not to
    /// (`net.ipv4.nexthop_compat_mode`).
    pub nexthop_id: Option<u32>,
    /// Where packets go; none for a blackhole and its like.
    pub next_hops: NextHops,
    /// `RTA_METRICS`, if it sets any.
    pub metrics: Option<Box<RouteMetrics>>,
    /// `RTA_PREF`: router preference (RFC 4191), IPv6.
    pub preference: Option<u8>,
    /// `rta_error` of `RTA_CACHEINFO`, IPv6: the errno of a reject route.
    pub error: i32,
    /// When it expires, milliseconds since the UNIX epoch; `None`: never.
    pub expires_at_millis: Option<u64>,
    /// Attributes not named above, as they came; all of `RTA_MULTIPATH`
    /// where a next hop has one that is not named.
    pub rest: RawAttributes,
    /// What BGP says of the path, where BGP is where the route comes from
    /// and not the kernel, which knows nothing of it.
    pub path: PathAttributes,
}

/// The next hops of a route. One, the common case, costs no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum NextHops {
    /// No next hop.
    #[default]
    None,
    /// A single next hop.
    One(NextHop),
    /// Equal-cost or weighted next hops, in the kernel's order.
    Many(Box<[NextHop]>),
}

impl NextHops {
    /// As a slice.
    pub fn as_slice(&self) -> &[NextHop] {
        match self {
            NextHops::None => &[],
            NextHops::One(hop) => std::slice::from_ref(hop),
            NextHops::Many(hops) => hops,
        }
    }

    /// As a slice, to change.
    pub fn as_mut_slice(&mut self) -> &mut [NextHop] {
        match self {
            NextHops::None => &mut [],
            NextHops::One(hop) => std::slice::from_mut(hop),
            NextHops::Many(hops) => hops,
        }
    }
}

/// A next hop of a route (`struct rtnexthop` or the route's own
/// attributes).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NextHop {
    /// `RTA_OIF`; 0 where there is none.
    pub link: u32,
    /// `RTA_GATEWAY` or `RTA_VIA`.
    pub gateway: Option<IpAddr>,
    /// `RTNH_F_…`: [`hop_flag`]. `DEAD` and `LINKDOWN` as the kernel says
    /// them in a dump; tables never have `LINKDOWN`, which follows from the
    /// link's state, and a mirror keeps `DEAD` only where it does not: of IPv4 on a
    /// link that is alive, whose hops die when it loses its last address
    /// (`docs/decisions/002`), of IPv6 from when the link went down, or IPv6
    /// was switched off on it, until IPv6 is ready again. Who shows a hop
    /// adds what follows.
    pub flags: u32,
    /// Weight, from 1.
    pub weight: u16,
    /// `RTA_FLOW`: realms; 0 unless set.
    pub realms: u32,
    /// `RTA_ENCAP_TYPE` and `RTA_ENCAP`: how it wraps packets.
    pub encap: Option<Box<Encap>>,
}

/// A route of a family that Fingerpost does not interpret (MPLS, multicast
/// forwarding), kept as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRoute {
    /// Its place.
    pub key: OtherRouteKey,
    /// `struct rtmsg`, twelve bytes.
    pub header: [u8; 12],
    /// Its attributes, as they came.
    pub attributes: RawAttributes,
}

/// What tells uninterpreted routes apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherRouteKey {
    /// `rtm_family`.
    pub family: u8,
    /// `RTA_TABLE`.
    pub table: u32,
    /// `RTA_DST`'s bytes, then `RTA_SRC`'s and `RTA_IIF`'s.
    pub place: Box<[u8]>,
}

/// `RTN_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod kind {
    pub const UNSPEC: u8 = 0;
    pub const UNICAST: u8 = 1;
    pub const LOCAL: u8 = 2;
    pub const BROADCAST: u8 = 3;
    pub const ANYCAST: u8 = 4;
    pub const MULTICAST: u8 = 5;
    pub const BLACKHOLE: u8 = 6;
    pub const UNREACHABLE: u8 = 7;
    pub const PROHIBIT: u8 = 8;
    pub const THROW: u8 = 9;
    pub const NAT: u8 = 10;
}

/// `RTPROT_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod protocol {
    pub const UNSPEC: u8 = 0;
    pub const REDIRECT: u8 = 1;
    pub const KERNEL: u8 = 2;
    pub const BOOT: u8 = 3;
    pub const STATIC: u8 = 4;
    pub const RA: u8 = 9;
    pub const BIRD: u8 = 12;
    pub const BGP: u8 = 186;
}

/// `RT_SCOPE_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod scope {
    pub const UNIVERSE: u8 = 0;
    pub const SITE: u8 = 200;
    pub const LINK: u8 = 253;
    pub const HOST: u8 = 254;
    pub const NOWHERE: u8 = 255;
}

/// `RT_TABLE_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod table_id {
    pub const UNSPEC: u32 = 0;
    pub const DEFAULT: u32 = 253;
    pub const MAIN: u32 = 254;
    pub const LOCAL: u32 = 255;
}

/// `RTM_F_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const NOTIFY: u32 = 0x100;
    pub const CLONED: u32 = 0x200;
    pub const EQUALIZE: u32 = 0x400;
    pub const PREFIX: u32 = 0x800;
    pub const OFFLOAD: u32 = 0x4000;
    pub const TRAP: u32 = 0x8000;
    pub const OFFLOAD_FAILED: u32 = 0x2000_0000;
}

/// `RTNH_F_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod hop_flag {
    pub const DEAD: u32 = 1;
    pub const PERVASIVE: u32 = 2;
    pub const ONLINK: u32 = 4;
    pub const OFFLOAD: u32 = 8;
    pub const LINKDOWN: u32 = 16;
    pub const UNRESOLVED: u32 = 32;
    pub const TRAP: u32 = 64;
    /// Our own: the gateway was an address of the host's own while the route
    /// was there, so that the kernel may pass it over.
    pub const OWN_ONCE: u32 = 1 << 31;
    /// Our own: an IPv4 hop that the kernel does not mark `LINKDOWN` while
    /// its link has no carrier, and uses: one by an IPv6 gateway that was made
    /// so (`fib_check_nh_v6_gw`), or one that was dead when the carrier went
    /// (`fib_sync_down_dev`). Until it looks again.
    pub const UNMARKED: u32 = 1 << 30;
}
