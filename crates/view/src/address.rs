//! Addresses as `ip addr` shows them: below their link.

use std::net::IpAddr;
use std::sync::Arc;

use table::row::address::flag;
use table::{AF_INET, AF_INET6, Address, Link};

use crate::brief;
use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::{push_address, push_u64};
use crate::link::{self, HeadOf};
use crate::link_counters;
use crate::printer::Show;

/// The columns of an address that are not its link's.
pub(crate) const COLUMNS: &[Column] = &[
    Column::text("addr_info.family"),
    Column::address("addr_info.local"),
    Column::address("addr_info.address"),
    Column::number("addr_info.prefixlen"),
    Column::number("addr_info.metric"),
    Column::address("addr_info.broadcast"),
    Column::address("addr_info.anycast"),
    Column::text("addr_info.scope"),
    Column::flag("addr_info.secondary"),
    Column::flag("addr_info.temporary"),
    Column::flag("addr_info.nodad"),
    Column::flag("addr_info.optimistic"),
    Column::flag("addr_info.dadfailed"),
    Column::flag("addr_info.home"),
    Column::flag("addr_info.deprecated"),
    Column::flag("addr_info.tentative"),
    Column::flag("addr_info.dynamic"),
    Column::flag("addr_info.mngtmpaddr"),
    Column::flag("addr_info.noprefixroute"),
    Column::flag("addr_info.autojoin"),
    Column::flag("addr_info.stable-privacy"),
    Column::text("addr_info.ifa_flags").rare(),
    Column::text("addr_info.label"),
    Column::number("addr_info.valid_life_time"),
    Column::number("addr_info.preferred_life_time"),
];

const FLAGS: [(u32, &str); 12] = [
    (flag::SECONDARY, "secondary"),
    (flag::NODAD, "nodad"),
    (flag::OPTIMISTIC, "optimistic"),
    (flag::DADFAILED, "dadfailed"),
    (flag::HOMEADDRESS, "home"),
    (flag::DEPRECATED, "deprecated"),
    (flag::TENTATIVE, "tentative"),
    (flag::PERMANENT, "dynamic"),
    (flag::MANAGETEMPADDR, "mngtmpaddr"),
    (flag::NOPREFIXROUTE, "noprefixroute"),
    (flag::MCAUTOJOIN, "autojoin"),
    (flag::STABLE_PRIVACY, "stable-privacy"),
];

/// A link with those of its addresses that are asked for.
pub(crate) struct OnLink<'r> {
    pub link: &'r Link,
    pub addresses: &'r [&'r Arc<Address>],
}

/// What an address without a permanent flag is called is the opposite of
/// the flag: `dynamic`.
fn each_flag(address: &Address, mut each: impl FnMut(&'static str)) {
    for (bit, name) in FLAGS {
        let set = address.flags & bit != 0;
        match bit {
            flag::PERMANENT if !set => each(name),
            flag::PERMANENT => {}
            flag::SECONDARY if set && address.local.is_ipv6() => each("temporary"),
            _ if set => each(name),
            _ => {}
        }
    }
}

/// The flags that have no name, in hexadecimal, if there are any.
fn other_flags(address: &Address) -> Option<String> {
    let named = FLAGS.iter().fold(0, |named, (bit, _)| named | bit);
    let others = address.flags & !named;
    (others != 0).then(|| format!("{others:x}"))
}

/// Seconds that remain; `INFINITY_LIFE_TIME` for ever.
fn remaining_secs(until_millis: Option<u64>, view: &View<'_>) -> u64 {
    until_millis.map_or(u32::MAX.into(), |at| view.secs_until(at))
}

fn fields(address: &Address, view: &View<'_>, visit: &mut impl Visit) {
    let family = if address.local.is_ipv4() {
        "inet"
    } else {
        "inet6"
    };
    visit.value("family", Value::Text(family));
    prefix_fields(address, visit);
    if let Some(broadcast) = address.broadcast {
        visit.value("broadcast", Value::Address(broadcast));
    }
    if let Some(anycast) = address.anycast {
        visit.value("anycast", Value::Address(anycast));
    }
    visit.value("scope", Value::Name(view.names.scope(address.scope)));
    each_flag(address, |name| visit.value(name, Value::True));
    if let Some(flags) = other_flags(address) {
        visit.value("ifa_flags", Value::Text(&flags));
    }
    if let Some(label) = &address.label {
        visit.value("label", Value::Text(label));
    }
    let valid = remaining_secs(address.valid_until_millis, view);
    visit.value("valid_life_time", Value::Number(valid));
    let preferred = remaining_secs(address.preferred_until_millis, view);
    visit.value("preferred_life_time", Value::Number(preferred));
}

/// The address with its prefix's length, and its metric if it has one, as
/// fields.
pub(crate) fn prefix_fields(address: &Address, visit: &mut impl Visit) {
    visit.value("local", Value::Address(address.local));
    if let Some(peer) = address.peer {
        visit.value("address", Value::Address(peer));
    }
    visit.value("prefixlen", Value::Number(address.prefix_len.into()));
    if address.metric != 0 {
        visit.value("metric", Value::Number(address.metric.into()));
    }
}

/// The same as text.
pub(crate) fn put_prefix(address: &Address, view: &View<'_>, out: &mut Vec<u8>) {
    let put = |address: IpAddr, out: &mut Vec<u8>| {
        coloured(view, Colour::of_address(address), out, |out| {
            push_address(out, address);
        });
    };
    put(address.local, out);
    if let Some(peer) = address.peer {
        out.extend_from_slice(b" peer ");
        put(peer, out);
    }
    out.push(b'/');
    push_u64(out, address.prefix_len.into());
    out.push(b' ');
    if address.metric != 0 {
        out.extend_from_slice(b"metric ");
        push_u64(out, address.metric.into());
        out.push(b' ');
    }
}

fn text(address: &Address, view: &View<'_>, out: &mut Vec<u8>) {
    let v4 = address.local.is_ipv4();
    out.extend_from_slice(if v4 { b"    inet " } else { b"    inet6 " });
    put_prefix(address, view, out);
    let other: [(&[u8], Option<IpAddr>); 2] =
        [(b"brd ", address.broadcast), (b"any ", address.anycast)];
    for (name, other) in other {
        if let Some(other) = other {
            out.extend_from_slice(name);
            coloured(view, Colour::of_address(other), out, |out| {
                push_address(out, other);
                out.push(b' ');
            });
        }
    }
    out.extend_from_slice(b"scope ");
    push_name(out, view.names.scope(address.scope));
    out.push(b' ');
    each_flag(address, |name| {
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
    });
    if let Some(flags) = other_flags(address) {
        out.extend_from_slice(b"flags ");
        out.extend_from_slice(flags.as_bytes());
        out.push(b' ');
    }
    if let Some(label) = &address.label {
        out.extend_from_slice(label.as_bytes());
    }
    link::line(view, out, b"       valid_lft ");
    push_lifetime(out, remaining_secs(address.valid_until_millis, view));
    out.extend_from_slice(b" preferred_lft ");
    push_lifetime(out, remaining_secs(address.preferred_until_millis, view));
    out.push(b'\n');
}

/// An address behind its link's index and name, as an event tells it.
pub(crate) fn monitor_text(address: &Address, view: &View<'_>, out: &mut Vec<u8>) {
    push_u64(out, address.link.into());
    out.extend_from_slice(b": ");
    push_name(out, view.device(address.link));
    text(address, view, out);
}

fn push_lifetime(out: &mut Vec<u8>, secs: u64) {
    if secs == u64::from(u32::MAX) {
        out.extend_from_slice(b"forever");
    } else {
        push_plain(out, Value::Number(secs));
        out.extend_from_slice(b"sec");
    }
}

fn head_of(view: &View<'_>) -> HeadOf {
    if view.family == Some(AF_INET6) && !view.whole_links {
        HeadOf::Ipv6Addresses
    } else {
        HeadOf::Addresses
    }
}

impl Show for OnLink<'_> {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        if view.brief {
            return brief::address_fields(self.link, self.addresses, view, visit);
        }
        link::head_fields(self.link, head_of(view), view, visit);
        if head_of(view) == HeadOf::Ipv6Addresses {
            if view.details {
                link::layer_fields(&told_by_ipv6(self.link), view, visit);
            }
        } else {
            if view.family.is_none() || view.details {
                link::layer_fields(self.link, view, visit);
            }
            if view.details {
                link::detail_fields(self.link, head_of(view), view, visit);
            }
            if let Some(alias) = self.link.alias.as_ref().filter(|_| view.details) {
                visit.value("ifalias", Value::Text(alias));
            }
        }
        if head_of(view) != HeadOf::Ipv6Addresses {
            link::alt_name_fields(self.link, visit);
        }
        visit.list("addr_info");
        for address in self.addresses {
            visit.object_item();
            fields(address, view, visit);
            visit.end_item();
        }
        visit.end_list();
        link_counters::counter_fields(self.link, view, visit);
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        if view.brief {
            return brief::addresses(self.link, self.addresses, view, out);
        }
        if view.lines_of_addresses() {
            for address in self.addresses {
                if view.oneline {
                    push_u64(out, self.link.index.into());
                    out.extend_from_slice(b": ");
                    out.extend_from_slice(self.link.name.as_bytes());
                }
                text(address, view, out);
            }
            return;
        }
        link::head_text(self.link, head_of(view), view, out);
        layers_text(self.link, view, out);
        if head_of(view) != HeadOf::Ipv6Addresses {
            link::alt_name_text(self.link, view, out);
        }
        out.push(b'\n');
        for address in self.addresses {
            text(address, view, out);
        }
        let end = out.len();
        link_counters::counter_text(self.link, view, out);
        if out.len() > end {
            // They end the line before them, which has its end.
            out.remove(end);
            out.push(b'\n');
        }
    }
}

/// What IPv6 tells of a link's layer, and no details.
fn told_by_ipv6(link: &Link) -> Link {
    Link {
        index: link.index,
        hardware: link.hardware,
        address: link.address,
        ..Link::default()
    }
}

/// The layer of a link above its addresses, and its details.
fn layers_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    if head_of(view) == HeadOf::Ipv6Addresses {
        if view.details {
            link::layer_text(&told_by_ipv6(link), view, out);
        }
        return;
    }
    if view.family.is_none() || view.details {
        link::layer_text(link, view, out);
    }
    if view.details {
        link::detail_text(link, head_of(view), view, out);
    }
    if let Some(alias) = link.alias.as_ref().filter(|_| view.details) {
        link::line(view, out, b"    alias ");
        out.extend_from_slice(alias.as_bytes());
    }
}

/// `AF_INET` or `AF_INET6`.
pub(crate) fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}
