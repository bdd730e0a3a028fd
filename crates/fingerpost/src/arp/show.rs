//! Listing: by the daemon of the namespace where one runs, else from the
//! kernel.
//!
//! Names of hosts are never the daemon's to ask for; with names, rows come
//! from the kernel.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use linux::{Namespace, namespace};
use netlink::decode;
use netlink::request::Dump;
use table::AF_INET;
use view::arp::Timers;

use super::arguments::{Show, Wanted};
use super::host;
use super::listing::{ArpQuestion, Host, Listing};
use super::rows::{Links, Rows, listing};
use crate::ask;
use crate::control::protocol::Ask;

/// Lists entries. Gives `false` when the one that was asked for is not
/// there.
pub fn run(show: &Show, wanted: &Wanted, namespace: &Namespace) -> Result<bool> {
    let question = question(show, wanted, namespace)?;
    let mut out = io::stdout().lock();
    let found = if show.resolve {
        direct(&question, namespace, Some(wanted.patience), &mut out)?
    } else {
        let asked = Ask::Arp(Box::new(question.clone()));
        ask::one_namespace(asked, namespace, wanted.direct, &mut out)?
    };
    out.flush()?;
    Ok(question.is_done(found))
}

fn question(show: &Show, wanted: &Wanted, namespace: &Namespace) -> Result<ArpQuestion> {
    let host = match &show.host {
        Some(name) => Some(Host {
            name: name.clone(),
            address: host::address(name, wanted.patience)?,
        }),
        None => None,
    };
    let question = ArpQuestion {
        style: wanted.style,
        own: show.own,
        device: wanted.device.clone(),
        host,
        hardware: show.hardware,
        verbose: wanted.verbose,
        timers: Timers::default(),
    };
    Ok(match question.shows_ages() {
        true => ArpQuestion {
            timers: timers(namespace)?,
            ..question
        },
        false => question,
    })
}

/// Lists the kernel's entries, with names if there is patience for them;
/// gives the number found.
pub fn direct(
    question: &ArpQuestion,
    namespace: &Namespace,
    patience: Option<Duration>,
    out: &mut impl Write,
) -> Result<u64> {
    let rows = Rows::new(namespace)?;
    let links = rows.links(false)?;
    // net-tools tells how many entries there are in all, so it reads all;
    // and a link that is not there is to it one without entries.
    let link = match &question.device {
        Some(device) if !question.is_linux() => Some(links.named(device)?),
        _ => None,
    };
    let device = link.map(|link| &*link.name);
    let mut listing = Listing::new(question, device, patience.is_some(), out);
    if question.own {
        for address in rows.addresses(AF_INET)? {
            listing.own(&address, links.get(address.link))?;
        }
    }
    for proxy in [false, true] {
        let link = link.map(|link| link.index);
        neighbours(&mut listing, &rows, &links, link, proxy)?;
    }
    if let Some(patience) = patience {
        listing.name(patience, |index| links.get(index).map(|link| &*link.name))?;
    }
    Ok(listing.end()?)
}

fn neighbours(
    to: &mut Listing<'_, impl Write>,
    rows: &Rows,
    links: &Links,
    link: Option<u32>,
    proxy: bool,
) -> Result<()> {
    let request = Dump::Neighbours {
        family: AF_INET,
        link,
        master: None,
        proxy,
    };
    listing(rows.each(&request, |payload| {
        let neighbour = decode::neighbour(payload)?;
        if link.is_some_and(|link| link != neighbour.link) {
            return Ok(());
        }
        let ages = || decode::neighbour_ages(payload);
        Ok(to.neighbour(&neighbour, links.get(neighbour.link), ages)?)
    }))?;
    Ok(())
}

/// The namespace's timers; the kernel's defaults where it does not tell.
fn timers(in_namespace: &Namespace) -> Result<Timers> {
    let usual = Timers::default();
    let read =
        |name: &str| namespace::setting(in_namespace, &format!("net/ipv4/neigh/default/{name}"));
    Ok(Timers {
        reachable_millis: read("base_reachable_time_ms")?.unwrap_or(usual.reachable_millis),
        stale_millis: read("gc_stale_time")?
            .map_or(usual.stale_millis, |seconds| seconds.saturating_mul(1000)),
    })
}
