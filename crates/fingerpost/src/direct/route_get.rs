//! `route get` straight from the kernel: its own answer to the packet
//! ([`linux::once::route`]).
//!
//! Of several next hops that answer names the one that a hash chose, which
//! another packet need not take. The kernel is then asked for the route as
//! it stands (`RTM_F_FIB_MATCH`), and all its members are told beside.

use std::io::Write;
use std::net::IpAddr;

use anyhow::Result;
use linux::mirror::now_millis;
use linux::{Namespace, once};
use netlink::decode;
use netlink::request::{Dump, RouteQuery};
use rustix::io::Errno;
use table::{Change, Links, NextHops, NoRoute, Route, Writer};
use view::{BadQuestion, RouteQuestion, link_of};

use super::{Answered, INTERRUPTED, each_row};

/// Writes which route a packet would take, and where it has several next
/// hops all of them beside.
pub fn answer(
    question: &RouteQuestion,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    answer_with(true, question, namespace, out)
}

/// The same with the way alone, as `ip` tells it.
pub fn one_way(
    question: &RouteQuestion,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    answer_with(false, question, namespace, out)
}

fn answer_with(
    members_too: bool,
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
    let mut members = Vec::new();
    if members_too && let Some(route) = several(question, namespace, links) {
        if route.body.next_hops == NextHops::None {
            interrupted |= listed(namespace, &mut writer, &[Dump::Nexthops])?;
        }
        let nexthops = &writer.tables().nexthops;
        members = nexthops.hops_of(&route.body).unwrap_or_default();
    }
    let tables = writer.tables();
    let rows = view::route_got(question, &answer, &members, tables, &names, now, out)?;
    Ok(Answered {
        rows,
        incomplete: interrupted.then(|| INTERRUPTED.to_owned()),
    })
}

/// The route that a packet takes, as it stands in its table.
pub fn as_it_stands(question: &RouteQuestion, namespace: &Namespace) -> Result<Route> {
    let links = once::links(namespace)?;
    asked(question, namespace, &links, true).map_err(|error| refused(question.to, error))
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

/// Lists tables of the kernel; whether one changed meanwhile.
fn listed(namespace: &Namespace, writer: &mut Writer, requests: &[Dump]) -> Result<bool> {
    let mut interrupted = false;
    for request in requests {
        interrupted |= each_row(namespace, request, &mut |message| {
            let payload = message.payload;
            writer.apply(match request {
                Dump::Links { .. } => Change::PutLink(decode::link(payload)?),
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
        let link = name.as_deref().and_then(|name| link_of(links, name));
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
