//! `route get` straight from the kernel.
//!
//! The kernel finds the route ([`linux::once::route`] with
//! `RTM_F_FIB_MATCH`, all members of a group included). What the packet
//! makes of it is decided as in the daemon, over tables that hold the
//! links, addresses, rules and just that route: the same answer, and no
//! listing of a million routes.

use std::io::Write;
use std::net::IpAddr;

use anyhow::Result;
use linux::mirror::now_millis;
use linux::{Mirror, Namespace, Options, once};
use netlink::decode;
use netlink::request::{Dump, RouteQuery};
use rustix::io::Errno;
use table::{AF_INET, AF_INET6, Change, Links, NoRoute, Placement, Writer};
use view::{BadQuestion, RouteQuestion};

use super::{Answered, INTERRUPTED, each_row};

/// Writes which route a packet would take.
pub fn answer(
    question: &RouteQuestion,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    let mut interrupted = false;
    let tables = if question.tos == 0 {
        let mut writer = Writer::default();
        interrupted = surroundings(question, namespace, &mut writer)?;
        let found = route(question, namespace, &writer.tables().links)?;
        writer.apply(found)?;
        writer.tables().clone()
    } else {
        // The kernel's question has no place for it beside a match.
        let mirror = Mirror::start(namespace.clone(), Options::default())?;
        super::loaded(&mirror)?;
        (*mirror.reader().snapshot()).clone()
    };
    let rows = view::route_get(question, &tables, &words::load(), now_millis(), out)?;
    Ok(Answered {
        rows,
        incomplete: interrupted.then(|| INTERRUPTED.to_owned()),
    })
}

/// What the decision needs beside the route; whether it changed meanwhile.
fn surroundings(
    question: &RouteQuestion,
    namespace: &Namespace,
    writer: &mut Writer,
) -> Result<bool> {
    let mut interrupted = false;
    let family = if question.to.is_ipv4() {
        AF_INET
    } else {
        AF_INET6
    };
    let now = now_millis();
    for request in [
        Dump::Links { counters: false },
        Dump::Addresses { family, link: None },
        Dump::Rules { family },
        Dump::Nexthops,
    ] {
        interrupted |= each_row(namespace, &request, &mut |message| {
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

/// The route that the kernel finds.
fn route(question: &RouteQuestion, namespace: &Namespace, links: &Links) -> Result<Change> {
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
        fib_match: true,
    };
    let found = once::route(question.to, &query, namespace);
    let route = found.map_err(|error| refused(question.to, error))?;
    Ok(Change::PutRoute(route, Placement::Last))
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
