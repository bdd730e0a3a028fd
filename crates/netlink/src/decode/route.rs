//! `struct rtmsg` and `RTA_…` (`linux/rtnetlink.h`) of IPv4 and IPv6 to
//! [`Route`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::route::hop_flag;
use table::{AF_INET, AF_INET6, NextHop, NextHops, Route, RouteBody, RouteMetrics};

use super::encap::encap;
use super::metrics::metrics;
use super::{ends_at, split};
use crate::attribute::{Attribute, Attributes, Kept, address};
use crate::kernel::{MILLIS_PER_TICK, rta};
use crate::malformed::Malformed;

const MESSAGE: &str = "route";
/// Bytes of `struct rtmsg`.
pub(super) const HEADER: usize = 12;
/// Bytes of `struct rtnexthop`.
const HOP_HEADER: usize = 8;

/// The low byte of `rtm_flags` is the flags of the only next hop.
const HOP_FLAGS: u32 = 0xff;

/// Told by the kernel of next hops whose links have no carrier. A hop keeps
/// it: whether the hop is dead for that alone, its link may tell later. A route
/// and an object do not.
pub(super) const OF_THE_LINK: u32 = hop_flag::LINKDOWN;

/// What is gathered while walking, until the header's sense is known. What
/// a full table's routes do not have is apart, so that they are read
/// without touching it.
#[derive(Default)]
struct Parts<'a> {
    destination: Option<IpAddr>,
    metric: u32,
    hop: Hop<'a>,
    rare: Rare,
}

/// What few routes have.
#[derive(Default)]
struct Rare {
    preferred_source: Option<IpAddr>,
    source: Option<IpAddr>,
    nexthop_id: Option<u32>,
    preference: Option<u8>,
    multipath: Option<NextHops>,
    expires_at_millis: Option<u64>,
    error: i32,
    metrics: Option<Box<RouteMetrics>>,
    kept: Kept,
}

/// The attributes of one next hop.
#[derive(Default)]
struct Hop<'a> {
    link: u32,
    gateway: Option<IpAddr>,
    realms: u32,
    encap_type: Option<u16>,
    /// Read once its type is known, which comes behind it.
    encap: Option<Attributes<'a>>,
}

/// Payload of `RTM_NEWROUTE` or `RTM_DELROUTE` of `AF_INET` or `AF_INET6`
/// (its first byte; others are an error here, see
/// [`super::other_route`]). O(bytes); allocates only for several next hops
/// metrics, a tunnel, and attributes without a field. Cached routes, the answers to `get_route`, are those
/// with `flag::CLONED`.
pub fn route(payload: &[u8], now_millis: u64) -> Result<Route, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [
        family,
        dst_len,
        src_len,
        tos,
        table,
        protocol,
        scope,
        kind,
        f0,
        f1,
        f2,
        f3,
    ] = *header;
    let mut table = u32::from(table);
    let mut parts = Parts::default();
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            rta::TABLE => table = attribute.u32()?,
            rta::DST => attribute.put_address(&mut parts.destination)?,
            rta::PRIORITY => parts.metric = attribute.u32()?,
            rta::OIF => parts.hop.link = attribute.u32()?,
            rta::GATEWAY => attribute.put_address(&mut parts.hop.gateway)?,
            _ => parts.rare(&attribute, now_millis)?,
        }
    }
    let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
    let rare = parts.rare;
    let (next_hops, flags) = match rare.multipath {
        Some(hops) => (hops, flags),
        None => parts.hop.only(flags)?,
    };
    let flags = flags & !OF_THE_LINK;
    Ok(Route {
        table,
        prefix: prefix(family, parts.destination, dst_len)?,
        tos,
        metric: parts.metric,
        body: RouteBody {
            kind,
            protocol,
            scope,
            flags,
            preferred_source: rare.preferred_source,
            source: source(rare.source, src_len)?,
            nexthop_id: rare.nexthop_id,
            next_hops,
            metrics: rare.metrics,
            preference: rare.preference,
            error: rare.error,
            expires_at_millis: rare.expires_at_millis,
            rest: rare.kept.into_attributes(),
            path: Default::default(),
        },
    })
}

impl<'a> Parts<'a> {
    #[inline(never)]
    fn rare(&mut self, attribute: &Attribute<'a>, now_millis: u64) -> Result<(), Malformed> {
        let rare = &mut self.rare;
        match attribute.kind {
            rta::PREFSRC => rare.preferred_source = Some(attribute.address()?),
            rta::NH_ID => rare.nexthop_id = Some(attribute.u32()?),
            rta::PREF => rare.preference = Some(attribute.u8()?),
            rta::METRICS => rare.metrics = metrics(attribute.nested())?,
            rta::MULTIPATH => rare.multipath(attribute)?,
            rta::CACHEINFO => rare.cacheinfo(attribute, now_millis)?,
            rta::EXPIRES => rare.expires_at_millis = ends_at(attribute.u32()?, now_millis),
            rta::SRC => rare.source(attribute)?,
            rta::PAD => {}
            _ => {
                if !self.hop.fill(attribute)? {
                    rare.kept.keep(attribute);
                }
            }
        }
        Ok(())
    }
}

impl Rare {
    /// `RTA_SRC`: a prefix of IPv6 source-specific routing. IPv4 has it in
    /// answers only; no field is made for that.
    fn source(&mut self, attribute: &Attribute<'_>) -> Result<(), Malformed> {
        let source = attribute.address()?;
        if source.is_ipv6() {
            self.source = Some(source);
        } else {
            self.kept.keep(attribute);
        }
        Ok(())
    }

    /// `struct rta_cacheinfo`: references, last use, expiry (clock ticks
    /// from now, 0: never), error, …. Only expiry and error are the
    /// route's.
    fn cacheinfo(&mut self, attribute: &Attribute<'_>, now_millis: u64) -> Result<(), Malformed> {
        let [_, _, _, _, _, _, _, _, x0, x1, x2, x3, e0, e1, e2, e3] = attribute.array()?;
        let ticks = i32::from_ne_bytes([x0, x1, x2, x3]);
        self.error = u32::from_ne_bytes([e0, e1, e2, e3]) as i32;
        self.expires_at_millis = match ticks {
            0 => None,
            ticks => {
                let millis = i64::from(ticks) * MILLIS_PER_TICK as i64;
                Some(now_millis.saturating_add_signed(millis))
            }
        };
        Ok(())
    }

    /// `RTA_MULTIPATH`: a run of `struct rtnexthop`, each with attributes.
    /// One with an attribute that has no field is kept raw beside.
    fn multipath(&mut self, attribute: &Attribute<'_>) -> Result<(), Malformed> {
        let mut hops = Vec::new();
        let mut all_known = true;
        let mut at = 0;
        while let Some(rest) = attribute.value.get(at..).filter(|rest| !rest.is_empty()) {
            let Some([l0, l1, flags, hops_field, i0, i1, i2, i3]) =
                rest.first_chunk::<HOP_HEADER>()
            else {
                return Err(attribute.bad_size());
            };
            let len = usize::from(u16::from_ne_bytes([*l0, *l1]));
            let Some(inside) = rest.get(HOP_HEADER..len) else {
                return Err(attribute.bad_size());
            };
            let mut hop = Hop {
                link: u32::from_ne_bytes([*i0, *i1, *i2, *i3]),
                ..Hop::default()
            };
            let mut inside =
                Attributes::new(inside, MESSAGE, attribute.value_offset() + at + HOP_HEADER);
            while let Some(attribute) = inside.step()? {
                all_known &= hop.fill(&attribute)?;
            }
            let weight = u16::from(*hops_field) + 1;
            hops.push(hop.into_next_hop(u32::from(*flags), weight)?);
            at += len.next_multiple_of(4);
        }
        if !all_known {
            self.kept.keep(attribute);
        }
        self.multipath = Some(next_hops(hops));
        Ok(())
    }
}

/// A list of one stays a list: the kernel tells IPv6 routes by a group so,
/// and they are shown so.
fn next_hops(hops: Vec<NextHop>) -> NextHops {
    match hops.is_empty() {
        true => NextHops::None,
        false => NextHops::Many(hops.into()),
    }
}

impl<'a> Hop<'a> {
    /// Takes an attribute of a next hop; false if it has no field.
    fn fill(&mut self, attribute: &Attribute<'a>) -> Result<bool, Malformed> {
        match attribute.kind {
            rta::GATEWAY => self.gateway = Some(attribute.address()?),
            rta::VIA => match via(attribute)? {
                Some(gateway) => self.gateway = Some(gateway),
                None => return Ok(false),
            },
            rta::FLOW => self.realms = attribute.u32()?,
            rta::ENCAP_TYPE => self.encap_type = Some(attribute.u16()?),
            rta::ENCAP => self.encap = Some(attribute.nested()),
            rta::PAD => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// As the next hop of a route that has but one, whose flags are the low
    /// byte of the route's; what is left of these. No next hop if nothing
    /// of it was told.
    fn only(self, flags: u32) -> Result<(NextHops, u32), Malformed> {
        let nothing = self.link == 0
            && self.gateway.is_none()
            && self.realms == 0
            && self.encap_type.is_none();
        if nothing {
            return Ok((NextHops::None, flags));
        }
        let hop = self.into_next_hop(flags & HOP_FLAGS, 1)?;
        Ok((NextHops::One(hop), flags & !HOP_FLAGS))
    }

    #[inline]
    fn into_next_hop(self, flags: u32, weight: u16) -> Result<NextHop, Malformed> {
        let encap = match self.encap_type {
            None => None,
            Some(kind) => Some(Box::new(encap(kind, self.encap.unwrap_or_default())?)),
        };
        Ok(NextHop {
            link: self.link,
            gateway: self.gateway,
            flags,
            weight,
            realms: self.realms,
            encap,
        })
    }
}

/// `struct rtvia`: a family, then an address of it. `None` for a family
/// that is not IP.
fn via(attribute: &Attribute<'_>) -> Result<Option<IpAddr>, Malformed> {
    let Some((family, octets)) = attribute.value.split_first_chunk::<2>() else {
        return Err(attribute.bad_size());
    };
    let family = u16::from_ne_bytes(*family);
    if family != u16::from(AF_INET) && family != u16::from(AF_INET6) {
        return Ok(None);
    }
    address(octets)
        .map(Some)
        .ok_or_else(|| attribute.bad_size())
}

/// A destination of `family`, its host bits cleared; the default route has
/// none.
#[inline]
fn prefix(family: u8, destination: Option<IpAddr>, len: u8) -> Result<IpNet, Malformed> {
    let net = match (family, destination) {
        (AF_INET, Some(IpAddr::V4(v4))) => Ipv4Net::new(v4, len).map(IpNet::V4),
        (AF_INET6, Some(IpAddr::V6(v6))) => Ipv6Net::new(v6, len).map(IpNet::V6),
        (AF_INET, None) => Ipv4Net::new(Ipv4Addr::UNSPECIFIED, len).map(IpNet::V4),
        (AF_INET6, None) => Ipv6Net::new(Ipv6Addr::UNSPECIFIED, len).map(IpNet::V6),
        (AF_INET | AF_INET6, Some(_)) => {
            return Err(Malformed::Field {
                message: MESSAGE,
                field: "RTA_DST's family, unlike rtm_family's",
                value: family.into(),
            });
        }
        _ => {
            return Err(Malformed::Field {
                message: MESSAGE,
                field: "rtm_family",
                value: family.into(),
            });
        }
    };
    net.map(|net| net.trunc()).map_err(|_| Malformed::Field {
        message: MESSAGE,
        field: "rtm_dst_len",
        value: len.into(),
    })
}

fn source(source: Option<IpAddr>, len: u8) -> Result<Option<Ipv6Net>, Malformed> {
    let Some(IpAddr::V6(source)) = source else {
        return Ok(None);
    };
    match Ipv6Net::new(source, len) {
        Ok(net) => Ok(Some(net.trunc())),
        Err(_) => Err(Malformed::Field {
            message: MESSAGE,
            field: "rtm_src_len",
            value: len.into(),
        }),
    }
}
