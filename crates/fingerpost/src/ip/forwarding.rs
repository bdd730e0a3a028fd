//! The text of events that are of no table here: routes of multicast packets,
//! and prefixes that a router announced. Called by [`super::events`].

use netlink::decode::{AnnouncedPrefix, MulticastRoute};
use table::row::route::table_id;
use view::{Context, Output, padded_device};
use words::Name;

/// The width of a link's name, and of what is before it.
const LINK_WIDTH: usize = 11;
const PLACE_WIDTH: usize = 32;

/// A route of multicast packets.
pub fn route_text(
    route: &MulticastRoute,
    output: &Output,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) {
    let address = |address: Option<std::net::IpAddr>| match address {
        Some(address) => address.to_string(),
        None => "unknown".to_owned(),
    };
    let place = format!("({},{})", address(route.source), address(route.group));
    out.extend_from_slice(format!("{place:PLACE_WIDTH$} Iif: ").as_bytes());
    match route.input {
        Some(link) => padded_device(link, LINK_WIDTH, output, context, out),
        None => out.extend_from_slice(b"unresolved "),
    }
    if let Some(outputs) = &route.outputs {
        out.extend_from_slice(b"Oifs: ");
        for (link, hops) in outputs {
            padded_device(*link, 0, output, context, out);
            match hops {
                0 | 1 => out.push(b' '),
                hops => out.extend_from_slice(format!("(ttl {hops}) ").as_bytes()),
            }
        }
    }
    out.extend_from_slice(match route.is_unresolved {
        true => b" State: unresolved",
        false => b" State: resolved",
    });
    if route.is_offloaded {
        out.extend_from_slice(b" offload");
    }
    if output.statistics {
        counted(route, output, out);
    }
    if route.table != 0 && (route.table != table_id::MAIN || output.details) {
        let name = match context.names.table(route.table) {
            Name::Known(name) if !output.numeric => name.to_owned(),
            _ => route.table.to_string(),
        };
        out.extend_from_slice(format!(" Table: {name}").as_bytes());
    }
    out.push(b'\n');
}

fn counted(route: &MulticastRoute, output: &Output, out: &mut Vec<u8>) {
    if let Some([packets, octets, wrong]) = route.counted {
        out.push(if output.oneline { b'\\' } else { b'\n' });
        out.extend_from_slice(format!("  {packets} packets, {octets} bytes").as_bytes());
        if wrong != 0 {
            out.extend_from_slice(format!(", {wrong} arrived on wrong iif.").as_bytes());
        }
    }
    if let Some(age) = route.age {
        let text = format!(", Age {}.{:02}", age / 100, age % 100);
        out.extend_from_slice(text.as_bytes());
    }
}

/// A prefix that a router announced (RFC 4861 §4.6.2).
pub fn prefix_text(prefix: &AnnouncedPrefix, context: &Context<'_>, out: &mut Vec<u8>) {
    if let Some(address) = prefix.address {
        out.extend_from_slice(format!("prefix {address}/{}", prefix.prefix_len).as_bytes());
    }
    let link = context.links.get(prefix.link);
    let name = link.map_or_else(
        || format!("if{}", prefix.link),
        |link| link.name.to_string(),
    );
    out.extend_from_slice(format!("dev {name} ").as_bytes());
    out.extend_from_slice(if prefix.is_on_link { b"onlink " } else { b"" });
    out.extend_from_slice(if prefix.makes_addresses {
        b"autoconf "
    } else {
        b""
    });
    if let Some((preferred, valid)) = prefix.lifetimes {
        out.extend_from_slice(format!("valid {valid} preferred {preferred} ").as_bytes());
    }
    out.push(b'\n');
}
