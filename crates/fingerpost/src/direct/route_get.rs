//! `route get` straight from the kernel: its own answer to the packet
//! ([`linux::once::route`]).
//!
//! Of several next hops that answer names the one that a hash chose, which
//! another packet need not take. The kernel is then asked for the route as
//! it stands (`RTM_F_FIB_MATCH`), and what the packet makes of it is decided
//! as in the daemon, over tables that hold the links, addresses, rules and
//! just that route: the same answer, and no listing of a million routes.

use std::io::Write;
use std::net::IpAddr;

use anyhow::Result;
use linux::mirror::now_millis;
use linux::{Namespace, once};
use netlink::decode;
use netlink::request::{Dump, RouteQuery};
use rustix::io::Errno;
use table::{AF_INET, AF_INET6, Change, Links, NextHops, NoRoute, Placement, Route, Writer};
use view::{BadQuestion, RouteQuestion};

use super::{Answered, INTERRUPTED, each_row};

/// Writes which route a packet would take.
pub fn answer(
    question: &RouteQuestion,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    let (names, now) = (words::load(), now_millis());
    let mut writer = Writer::default();
    let mut interrupted = listed(namespace, &mut writer, &[Dump::Links { counters: false }])?;
    let links = &writer.tables().links;
    let answer =
        asked(question, namespace, links, false).map_err(|error| refused(question.to, error))?;
    let rows = match several(question, namespace, links) {
        Some(route) => {
            interrupted |= surroundings(question, namespace, &mut writer)?;
            writer.apply(Change::PutRoute(route, Placement::Last))?;
            view::route_get(question, writer.tables(), &names, now, out)?
        }
        None => view::route_got(question, &answer, writer.tables(), &names, now, out)?,
    };
    Ok(Answered {
        rows,
        incomplete: interrupted.then(|| INTERRUPTED.to_owned()),
    })
}

/// The route that a packet takes, where it has several next hops to choose
/// from: not with a link that is named, nor with a type of service, for
/// which a match has no place.
fn several(question: &RouteQuestion, namespace: &Namespace, links: &Links) -> Option<Route> {
    if question.tos != 0 {
        return None;
    }
    let route = asked(question, namespace, links, true).ok()?;
    let is_one = route.body.next_hops.as_slice().len() == 1;
    let is_object = route.body.nexthop_id.is_some() && route.body.next_hops == NextHops::None;
    (!is_one || is_object).then_some(route)
}

/// What the decision needs beside the route; whether it changed meanwhile.
fn surroundings(
    question: &RouteQuestion,
    namespace: &Namespace,
    writer: &mut Writer,
) -> Result<bool> {
    let family = if question.to.is_ipv4() {
        AF_INET
    } else {
        AF_INET6
    };
    let requests = [
        Dump::Addresses { family, link: None },
        Dump::Rules { family },
        Dump::Nexthops,
    ];
    listed(namespace, writer, &requests)
}

/// Lists tables of the kernel; whether one changed meanwhile.
fn listed(namespace: &Namespace, writer: &mut Writer, requests: &[Dump]) -> Result<bool> {
    let now = now_millis();
    let mut interrupted = false;
    for request in requests {
        interrupted |= each_row(namespace, request, &mut |message| {
            let payload = message.payload;
            writer.apply(match request {
                Dump::Links { .. } => Change::PutLink(decode::link(payload)?),
                Dump::Addresses { .. } => Change::PutAddress(decode::address(payload, now)?),
                Dump::Rules { .. } => Change::PutRule(decode::rule(payload)?),
                _ => Change::PutNexthop(decode::nexthop(payload)?),
            })?;
            Ok(())
        })?;
    }
    Ok(interrupted)
}

/// What the kernel answers: where the packet goes, or the route as it
/// stands (`fib_match`).
fn asked(
    question: &RouteQuestion,
    namespace: &Namespace,
    links: &Links,
    fib_match: bool,
) -> Result<Route, linux::Error> {
    let index = |name: &Option<String>| {
        let link = name.as_deref().and_then(|name| links.by_name(name));
        link.map(|link| link.index)
    };
    let query = RouteQuery {
        source: question.from,
        output: index(&question.oif).or(index(&question.vrf)),
        input: index(&question.iif),
        mark: (question.mark != 0).then_some(question.mark),
        uid: question.uid,
        tos: question.tos,
        ip_protocol: question.ipproto,
        source_port: question.sport,
        destination_port: question.dport,
        fib_match,
    };
    once::route(question.to, &query, namespace)
}

/// Why the kernel finds no way, in the words of the daemon's answer.
fn refused(to: IpAddr, error: linux::Error) -> anyhow::Error {
    let linux::Error::Refused {
        source, message, ..
    } = error
    else {
        return error.into();
    };
    let why = match Errno::from_io_error(&source) {
        Some(Errno::NETUNREACH) => NoRoute::Unreachable,
        Some(Errno::HOSTUNREACH) => NoRoute::HostUnreachable,
        Some(Errno::ACCESS) => NoRoute::Prohibited,
        Some(Errno::INVAL) => NoRoute::Blackhole,
        Some(Errno::NODEV) => NoRoute::NoSuchLink,
        _ => {
            let message = message.unwrap_or_else(|| "the kernel finds no route".to_owned());
            return anyhow::Error::from(source).context(message);
        }
    };
    BadQuestion::NoRoute { to, why }.into()
}
