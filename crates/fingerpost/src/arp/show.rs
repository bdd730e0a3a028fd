//! Listing.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use anyhow::Result;
use linux::{Namespace, namespace};
use netlink::decode;
use netlink::request::Dump;
use table::row::neighbour::state;
use table::{AF_INET, Neighbour, NeighbourAges};
use view::arp::{Entry, Printer, Style, Timers};

use super::arguments::{Show, Wanted};
use super::host;
use super::rows::{Links, Rows, listing};

/// Lists entries. Gives `false` when the one that was asked for is not
/// there.
pub fn run(show: &Show, wanted: &Wanted, namespace: &Namespace) -> Result<bool> {
    let host = match &show.host {
        Some(host) => Some(host::address(host, wanted.patience)?),
        None => None,
    };
    let rows = Rows::new(namespace)?;
    let links = rows.links(false)?;
    // net-tools tells how many entries there are in all, so it reads all;
    // and a link that is not there is to it one without entries.
    let link = match &wanted.device {
        Some(device) if !wanted.is_linux() => Some(links.named(device)?),
        _ => None,
    };
    let mut listing = Listing {
        device: link.map(|link| &*link.name).or(wanted.device.as_deref()),
        show,
        wanted,
        host,
        timers: timers(namespace)?,
        out: Printer::new(wanted.style, io::stdout().lock()),
        kept: show.resolve.then(Vec::new),
        entries: 0,
        found: 0,
    };
    if show.own {
        listing.own(&rows, &links)?;
    }
    for proxy in [false, true] {
        listing.neighbours(&rows, &links, link.map(|link| link.index), proxy)?;
    }
    listing.end(&links)
}

struct Listing<'a, W: Write> {
    show: &'a Show,
    wanted: &'a Wanted,
    host: Option<Ipv4Addr>,
    device: Option<&'a str>,
    timers: Timers,
    out: Printer<W>,
    /// What waits for its names.
    kept: Option<Vec<Kept>>,
    entries: u64,
    found: u64,
}

/// An entry without what it borrows.
struct Kept {
    entry: Entry<'static>,
    link: u32,
}

impl<W: Write> Listing<'_, W> {
    fn own(&mut self, rows: &Rows, links: &Links) -> Result<()> {
        for address in rows.addresses(AF_INET)? {
            let entry = links
                .get(address.link)
                .and_then(|link| Entry::own(&address, link));
            if let Some(entry) = entry {
                self.entry(entry, address.link)?;
            }
        }
        Ok(())
    }

    fn neighbours(
        &mut self,
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
            let ages = self.ages(&neighbour, payload);
            let link = links.get(neighbour.link);
            match Entry::of(&neighbour, link, ages.as_ref(), &self.timers) {
                Some(entry) => self.entry(entry, neighbour.link),
                None => Ok(()),
            }
        }))?;
        Ok(())
    }

    /// Ages, where they are shown.
    fn ages(&self, neighbour: &Neighbour, payload: &[u8]) -> Option<NeighbourAges> {
        let is_shown = !self.wanted.is_linux() && neighbour.state & state::PERMANENT == 0;
        is_shown.then(|| decode::neighbour_ages(payload)).flatten()
    }

    fn entry(&mut self, entry: Entry<'_>, link: u32) -> Result<()> {
        self.entries += 1;
        let takes = self.host.is_none_or(|host| host == entry.address)
            && self
                .show
                .hardware
                .is_none_or(|wanted| wanted == entry.hardware)
            && self.device.is_none_or(|device| device == entry.link);
        if !takes {
            return Ok(());
        }
        self.found += 1;
        match &mut self.kept {
            Some(kept) => kept.push(Kept {
                entry: Entry {
                    link: "?",
                    host: None,
                    ..entry
                },
                link,
            }),
            None => self.out.entry(&entry)?,
        }
        Ok(())
    }

    fn end(mut self, links: &Links) -> Result<bool> {
        if let Some(kept) = self.kept.take() {
            self.named(&kept, links)?;
        }
        let (entries, found) = (self.entries, self.found);
        let mut out = self.out.finish()?;
        let (show, wanted) = (self.show, self.wanted);
        if wanted.verbose && wanted.is_linux() {
            let skipped = entries - found;
            writeln!(
                out,
                "Entries: {entries}\tSkipped: {skipped}\tFound: {found}"
            )?;
        }
        if found > 0 || wanted.style == Style::Json {
            return Ok(found > 0 || show.host.is_none());
        }
        match (&show.host, self.host) {
            (Some(host), Some(address)) if wanted.style != Style::LinuxLines => {
                writeln!(out, "{host} ({address}) -- no entry")?;
            }
            _ if wanted.is_linux()
                && (show.host.is_some() || show.hardware.is_some() || wanted.device.is_some()) =>
            {
                writeln!(out, "arp: in {entries} entries no match found.")?;
            }
            _ => {}
        }
        out.flush()?;
        // net-tools calls that a success.
        Ok(show.host.is_none() || wanted.is_linux())
    }

    fn named(&mut self, kept: &[Kept], links: &Links) -> Result<()> {
        let mut addresses: Vec<Ipv4Addr> = kept.iter().map(|kept| kept.entry.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let names: HashMap<Ipv4Addr, Box<str>> =
            host::ask_all(addresses, self.wanted.patience, host::name_of);
        for kept in kept {
            let link = match kept.link {
                0 => "*",
                index => links.get(index).map_or("?", |link| &link.name),
            };
            self.out.entry(&Entry {
                host: names.get(&kept.entry.address).map(|name| &**name),
                link,
                ..kept.entry
            })?;
        }
        Ok(())
    }
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
