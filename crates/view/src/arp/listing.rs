//! How a listing of the ARP table goes and how it ends, wherever its rows
//! come from: a dump of the kernel's or a snapshot ([`super::answer`]),
//! which hand them over one by one.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use table::row::neighbour::state;
use table::{Address, Link, Neighbour, NeighbourAges};

use super::{ArpQuestion, Entry, Host, Printer, Style};

/// A listing on its way.
pub struct Listing<'a, W: Write> {
    question: &'a ArpQuestion,
    device: Option<&'a str>,
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

impl<'a, W: Write> Listing<'a, W> {
    /// A listing without entries yet; `device` is the name proper of the
    /// question's device, where that is known. With names, nothing is
    /// written before [`Self::name`].
    pub fn new(
        question: &'a ArpQuestion,
        device: Option<&'a str>,
        with_names: bool,
        out: W,
    ) -> Self {
        Self {
            question,
            device: device.or(question.device.as_deref()),
            out: Printer::new(question.style, out),
            kept: with_names.then(Vec::new),
            entries: 0,
            found: 0,
        }
    }

    /// Lists an address of the namespace's own.
    pub fn own(&mut self, address: &Address, link: Option<&Link>) -> io::Result<()> {
        match link.and_then(|link| Entry::own(address, link)) {
            Some(entry) => self.entry(entry, address.link),
            None => Ok(()),
        }
    }

    /// Lists a neighbour; `ages` is called where they are shown.
    pub fn neighbour(
        &mut self,
        neighbour: &Neighbour,
        link: Option<&Link>,
        ages: impl FnOnce() -> Option<NeighbourAges>,
    ) -> io::Result<()> {
        let is_shown = self.question.shows_ages() && neighbour.state & state::PERMANENT == 0;
        let ages = is_shown.then(ages).flatten();
        match Entry::of(neighbour, link, ages.as_ref(), &self.question.timers) {
            Some(entry) => self.entry(entry, neighbour.link),
            None => Ok(()),
        }
    }

    fn entry(&mut self, entry: Entry<'_>, link: u32) -> io::Result<()> {
        self.entries += 1;
        let question = self.question;
        let takes = question
            .host
            .as_ref()
            .is_none_or(|host| host.address == entry.address)
            && question
                .hardware
                .is_none_or(|wanted| wanted == entry.hardware)
            && self.device.is_none_or(|device| device == entry.link);
        if !takes {
            return Ok(());
        }
        self.found += 1;
        match &mut self.kept {
            Some(kept) => {
                kept.push(Kept {
                    entry: Entry {
                        link: "?",
                        host: None,
                        ..entry
                    },
                    link,
                });
                Ok(())
            }
            None => self.out.entry(&entry),
        }
    }

    /// Writes what waits for names of hosts. `host_names` tells those of
    /// addresses, all at once; `link_name` the name of a link's index.
    pub fn name<'b>(
        &mut self,
        host_names: impl FnOnce(Vec<Ipv4Addr>) -> HashMap<Ipv4Addr, Box<str>>,
        link_name: impl Fn(u32) -> Option<&'b str>,
    ) -> io::Result<()> {
        let kept = self.kept.take().unwrap_or_default();
        let mut addresses: Vec<Ipv4Addr> = kept.iter().map(|kept| kept.entry.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let names = host_names(addresses);
        for kept in kept {
            let link = match kept.link {
                0 => "*",
                index => link_name(index).unwrap_or("?"),
            };
            self.out.entry(&Entry {
                host: names.get(&kept.entry.address).map(|name| &**name),
                link,
                ..kept.entry
            })?;
        }
        Ok(())
    }

    /// Says what there is to say at the end; gives the number of entries
    /// that were found.
    pub fn end(self) -> io::Result<u64> {
        let (question, entries, found) = (self.question, self.entries, self.found);
        let is_linux = question.is_linux();
        let mut out = self.out.finish()?;
        if question.verbose && is_linux {
            let skipped = entries - found;
            writeln!(
                out,
                "Entries: {entries}\tSkipped: {skipped}\tFound: {found}"
            )?;
        }
        if found > 0 || question.style == Style::Json {
            return Ok(found);
        }
        let is_filtered =
            question.host.is_some() || question.hardware.is_some() || question.device.is_some();
        match &question.host {
            Some(Host { name, address }) if question.style != Style::LinuxLines => {
                writeln!(out, "{name} ({address}) -- no entry")?;
            }
            _ if is_linux && is_filtered => {
                writeln!(out, "arp: in {entries} entries no match found.")?;
            }
            _ => {}
        }
        out.flush()?;
        Ok(found)
    }
}
