//! The ARP table straight from the kernel.

use std::collections::HashMap;
use std::io::Write;
use std::net::Ipv4Addr;

use anyhow::Result;
use linux::Namespace;
use netlink::decode;
use netlink::request::Dump;
use table::AF_INET;
use view::arp::{ArpQuestion, Listing};

use super::rows::{Links, Rows, listing};

/// Tells the names of hosts, all at once.
pub type HostNames<'a> = &'a dyn Fn(Vec<Ipv4Addr>) -> HashMap<Ipv4Addr, Box<str>>;

/// Lists the kernel's entries, with names if somebody tells them; gives the
/// number found.
pub fn answer(
    question: &ArpQuestion,
    namespace: &Namespace,
    host_names: Option<HostNames<'_>>,
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
    let mut listing = Listing::new(question, device, host_names.is_some(), out);
    if question.own {
        for address in rows.addresses(AF_INET)? {
            listing.own(&address, links.get(address.link))?;
        }
    }
    for proxy in [false, true] {
        let link = link.map(|link| link.index);
        neighbours(&mut listing, &rows, &links, link, proxy)?;
    }
    if let Some(host_names) = host_names {
        listing.name(host_names, |index| links.get(index).map(|link| &*link.name))?;
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
