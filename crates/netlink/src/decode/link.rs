//! `struct ifinfomsg` and `IFLA_…` (`linux/rtnetlink.h`,
//! `linux/if_link.h`) to [`Link`].

use table::row::link::limits::{KeptLimits, Limits};
use table::row::link::{Parent, linkdown};
use table::{AF_INET, AF_INET6, KindData, Link, LinkCounters, LinkLayerAddress};

use super::ip_statistics::Ipv6Statistics;
use super::{link_of, split};
use crate::attribute::{Attribute, Attributes};
use crate::kernel::ifla;
use crate::link_data;
use crate::malformed::Malformed;

const MESSAGE: &str = "link";
const V4: u16 = AF_INET as u16;
const V6: u16 = AF_INET6 as u16;
const HEADER: usize = 16;

/// Payload of `RTM_NEWLINK` or `RTM_DELLINK` of `AF_UNSPEC`. O(bytes).
/// Left out: counters, settings of address families, virtual functions.
/// `kind_data` of a bridge and `slave_data` of its ports come without
/// timers and counts of what was learned.
pub fn link(payload: &[u8]) -> Result<Link, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, h0, h1, _, _, _, _, f0, f1, f2, f3, ..] = *header;
    let mut link = Link {
        index: index(payload)?,
        hardware: u16::from_ne_bytes([h0, h1]),
        flags: u32::from_ne_bytes([f0, f1, f2, f3]),
        ..Link::default()
    };
    let mut named = false;
    let mut limits = Limits::default();
    while let Some(attribute) = attributes.step()? {
        named |= attribute.kind == ifla::IFNAME;
        fill(&mut link, &mut limits, &attribute)?;
    }
    link.limits = KeptLimits::new(limits);
    if !named {
        return Err(Malformed::Missing {
            message: MESSAGE,
            attribute: "IFLA_IFNAME",
        });
    }
    Ok(link)
}

/// `ifi_index`, which is never 0.
pub(super) fn index(payload: &[u8]) -> Result<u32, Malformed> {
    let (header, _) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, _, _, i0, i1, i2, i3, ..] = *header;
    match link_of([i0, i1, i2, i3], MESSAGE, "ifi_index")? {
        0 => Err(Malformed::Field {
            message: MESSAGE,
            field: "ifi_index",
            value: 0,
        }),
        index => Ok(index),
    }
}

fn fill(link: &mut Link, limits: &mut Limits, attribute: &Attribute<'_>) -> Result<(), Malformed> {
    match attribute.kind {
        ifla::ADDRESS => link.address = lladdr(attribute)?,
        ifla::BROADCAST => link.broadcast = lladdr(attribute)?,
        ifla::PERM_ADDRESS => link.perm_address = lladdr(attribute)?,
        ifla::IFNAME => link.name = attribute.text(),
        ifla::MTU => link.mtu = attribute.u32()?,
        ifla::MIN_MTU => link.min_mtu = attribute.u32()?,
        ifla::MAX_MTU => link.max_mtu = attribute.u32()?,
        ifla::LINK => link.lower = Some(attribute.u32()?),
        ifla::LINK_NETNSID => link.lower_netns_id = Some(attribute.i32()?),
        ifla::QDISC => link.qdisc = Some(attribute.text()),
        ifla::MASTER => link.master = Some(attribute.u32()?),
        ifla::TXQLEN => link.tx_queue_len = attribute.u32()?,
        ifla::OPERSTATE => link.oper_state = attribute.u8()?,
        ifla::LINKMODE => link.link_mode = attribute.u8()?,
        ifla::GROUP => link.group = attribute.u32()?,
        ifla::PROTO_DOWN => link.proto_down = attribute.u8()? != 0,
        ifla::PROMISCUITY => link.promiscuity = attribute.u32()?,
        ifla::NUM_TX_QUEUES => link.tx_queues = attribute.u32()?,
        ifla::NUM_RX_QUEUES => link.rx_queues = attribute.u32()?,
        ifla::IFALIAS => link.alias = Some(attribute.text()),
        ifla::PARENT_DEV_NAME => parent(link).device = Some(attribute.text()),
        ifla::PARENT_DEV_BUS_NAME => parent(link).bus = Some(attribute.text()),
        ifla::ALLMULTI => link.allmulti = Some(attribute.u32()?),
        ifla::GSO_MAX_SIZE => limits.gso_max_size = Some(attribute.u32()?),
        ifla::GSO_MAX_SEGS => limits.gso_max_segs = Some(attribute.u32()?),
        ifla::TSO_MAX_SIZE => limits.tso_max_size = Some(attribute.u32()?),
        ifla::TSO_MAX_SEGS => limits.tso_max_segs = Some(attribute.u32()?),
        ifla::GRO_MAX_SIZE => limits.gro_max_size = Some(attribute.u32()?),
        ifla::AF_SPEC => families(link, attribute.nested())?,
        ifla::PROP_LIST => alt_names(link, attribute.nested())?,
        ifla::LINKINFO => info(link, attribute.nested())?,
        _ => {}
    }
    Ok(())
}

fn parent(link: &mut Link) -> &mut Parent {
    link.parent.get_or_insert_default()
}

pub(super) fn lladdr(attribute: &Attribute<'_>) -> Result<LinkLayerAddress, Malformed> {
    LinkLayerAddress::new(attribute.value).ok_or_else(|| attribute.bad_size())
}

/// Where `IPV4_DEVCONF_IGNORE_ROUTES_WITH_LINKDOWN` stands among a link's
/// settings (`linux/ip.h`, from 1).
const V4_IGNORES: usize = 28;
/// And `DEVCONF_IGNORE_ROUTES_WITH_LINKDOWN` (`linux/ipv6.h`, from 0).
pub(crate) const V6_IGNORES: usize = 39;
/// `IPV4_DEVCONF_FORWARDING`.
pub(crate) const V4_FORWARDS: usize = 0;
/// `DEVCONF_DISABLE_IPV6`.
pub(crate) const V6_DISABLED: usize = 26;

/// By family: what its settings lie in, which of them it is, and its bit in
/// a row.
pub(crate) const LINKDOWN_SETTINGS: [(u16, u16, usize, u8); 2] = [
    (V4, ifla::INET_CONF, V4_IGNORES, linkdown::V4),
    (V6, ifla::INET6_CONF, V6_IGNORES, linkdown::V6),
];

/// `IFLA_AF_SPEC`: of all the settings in there three decide about routes,
/// and one about addresses.
fn families(link: &mut Link, mut families: Attributes<'_>) -> Result<(), Malformed> {
    while let Some(family) = families.step()? {
        if family.kind == V6 {
            let mode = inside(&mut family.nested(), ifla::INET6_ADDR_GEN_MODE);
            link.addr_gen_mode = mode.map(|mode| mode.u8()).transpose()?;
        }
        let known = LINKDOWN_SETTINGS
            .iter()
            .find(|known| known.0 == family.kind);
        let Some(&(_, conf, at, bit)) = known else {
            continue;
        };
        let settings = inside(&mut family.nested(), conf);
        let (values, _) = settings
            .map_or(&[][..], |found| found.value)
            .as_chunks::<4>();
        let is_set = |at| values.get(at).is_some_and(|value| *value != [0; 4]);
        if is_set(at) {
            link.ignores_linkdown |= bit;
        }
        match family.kind {
            V4 => link.forwards_v4 = is_set(V4_FORWARDS),
            _ => link.v6_disabled = is_set(V6_DISABLED),
        }
    }
    Ok(())
}

fn alt_names(link: &mut Link, mut properties: Attributes<'_>) -> Result<(), Malformed> {
    let mut names = Vec::new();
    while let Some(property) = properties.step()? {
        if property.kind == ifla::ALT_IFNAME {
            names.push(property.text());
        }
    }
    link.alt_names = names.into();
    Ok(())
}

/// `IFLA_LINKINFO`. The kinds come before their data, but nothing promises
/// it: the data are looked at when all is there.
fn info(link: &mut Link, mut info: Attributes<'_>) -> Result<(), Malformed> {
    let mut data = None;
    let mut slave_data = None;
    while let Some(attribute) = info.step()? {
        match attribute.kind {
            ifla::INFO_KIND => link.kind = Some(attribute.text()),
            ifla::INFO_SLAVE_KIND => link.slave_kind = Some(attribute.text()),
            ifla::INFO_DATA => data = Some(attribute),
            ifla::INFO_SLAVE_DATA => slave_data = Some(attribute),
            _ => {}
        }
    }
    if let Some(data) = data {
        let kind = link.kind.as_deref().unwrap_or_default();
        link.kind_data = link_data::of_kind(kind, data.nested())?;
    }
    if let Some(data) = slave_data {
        let master = link.slave_kind.as_deref().unwrap_or_default();
        link.slave_data = link_data::of_port(master, data.nested())?;
    }
    if let KindData::Vrf(vrf) = &link.kind_data {
        link.vrf_table = vrf.table;
    }
    Ok(())
}

/// `ifi_index` of a link's message: whose [`link_counters`] they are.
/// `None` when there is no valid one. O(1).
pub fn link_index(payload: &[u8]) -> Option<u32> {
    index(payload).ok()
}

/// `IFLA_STATS64` (`struct rtnl_link_stats64`) of a link's message. Fields
/// an older kernel does not know are 0. `None` when the message has none
/// (the dump was asked to leave them out) or cannot be read. O(attributes),
/// no allocation.
pub fn link_counters(payload: &[u8]) -> Option<LinkCounters> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE).ok()?;
    while let Some(attribute) = attributes.step().ok()? {
        if attribute.kind == ifla::STATS64 {
            return Some(counters(attribute.value));
        }
    }
    None
}

/// `IFLA_EVENT` of a link's message, by its number (`IFLA_EVENT_…`): why the
/// kernel tells of the link. `None` where the message does not say it, or
/// cannot be read. O(attributes).
pub fn link_event(payload: &[u8]) -> Option<u32> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE).ok()?;
    inside(&mut attributes, ifla::EVENT)?.u32().ok()
}

/// A link's index and its `IFLA_STATS_LINK_64`, of an answer to
/// [`crate::request::get_link_stats`] or its dump. `None` when there is no
/// such part. O(attributes), no allocation.
pub fn link_stats(payload: &[u8]) -> Option<(u32, LinkCounters)> {
    // `struct if_stats_msg`: family, padding, ifindex, filter_mask.
    const HEADER: usize = 12;
    let (header, mut attributes) = split::<HEADER>(payload, "RTM_NEWSTATS").ok()?;
    let [_, _, _, _, index @ .., _, _, _, _] = *header;
    let stats = inside(&mut attributes, ifla::STATS_LINK_64)?;
    Some((u32::from_ne_bytes(index), counters(stats.value)))
}

/// `IFLA_INET6_STATS` of a link's message: what IPv6 counted on the link.
/// `None` when the message has none (the dump was asked to leave them out,
/// or the link has no IPv6) or cannot be read. O(attributes), no allocation.
pub fn ipv6_statistics(payload: &[u8]) -> Option<Ipv6Statistics> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE).ok()?;
    let families = inside(&mut attributes, ifla::AF_SPEC)?;
    let of_ipv6 = inside(&mut families.nested(), V6)?;
    let stats = inside(&mut of_ipv6.nested(), ifla::INET6_STATS)?;
    Some(Ipv6Statistics::new(stats.value))
}

/// `IFLA_INET_CONF` and `IFLA_INET6_CONF` of a link's message: its settings,
/// by the numbers of `linux/ip.h` (less one) and of `linux/ipv6.h`; empty
/// where the link has no such family. O(attributes).
pub fn link_configuration(payload: &[u8]) -> [Vec<u32>; 2] {
    let of = |family, conf| {
        let (_, mut attributes) = split::<HEADER>(payload, MESSAGE).ok()?;
        let families = inside(&mut attributes, ifla::AF_SPEC)?;
        let family = inside(&mut families.nested(), family)?;
        let found = inside(&mut family.nested(), conf)?;
        let (values, _) = found.value.as_chunks::<4>();
        let values = values.iter().map(|value| u32::from_ne_bytes(*value));
        Some(values.collect())
    };
    [(V4, ifla::INET_CONF), (V6, ifla::INET6_CONF)]
        .map(|(family, conf)| of(family, conf).unwrap_or_default())
}

fn inside<'a>(attributes: &mut Attributes<'a>, kind: u16) -> Option<Attribute<'a>> {
    while let Some(attribute) = attributes.step().ok()? {
        if attribute.kind == kind {
            return Some(attribute);
        }
    }
    None
}

fn counters(bytes: &[u8]) -> LinkCounters {
    let (values, _) = bytes.as_chunks::<8>();
    let mut values = values.iter().map(|value| u64::from_ne_bytes(*value));
    let mut next = || values.next().unwrap_or(0);
    // Fields are evaluated in the order they are written: the kernel's.
    LinkCounters {
        rx_packets: next(),
        tx_packets: next(),
        rx_bytes: next(),
        tx_bytes: next(),
        rx_errors: next(),
        tx_errors: next(),
        rx_dropped: next(),
        tx_dropped: next(),
        multicast: next(),
        collisions: next(),
        rx_length_errors: next(),
        rx_over_errors: next(),
        rx_crc_errors: next(),
        rx_frame_errors: next(),
        rx_fifo_errors: next(),
        rx_missed_errors: next(),
        tx_aborted_errors: next(),
        tx_carrier_errors: next(),
        tx_fifo_errors: next(),
        tx_heartbeat_errors: next(),
        tx_window_errors: next(),
        rx_compressed: next(),
        tx_compressed: next(),
        rx_nohandler: next(),
        rx_otherhost_dropped: next(),
    }
}
