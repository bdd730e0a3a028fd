//! Making and deleting entries.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, anyhow, bail};
use linux::error::Refusal;
use linux::{Namespace, bulk};
use netlink::decode::{self, Operation};
use netlink::encode::{self, Request};
use netlink::message::flag;
use netlink::request::Dump;
use table::row::link::flag as link_flag;
use table::row::neighbour::state;
use table::{AF_INET, Address, Link, LinkLayerAddress, Neighbour};

use super::arguments::{Set, Wanted, Which};
use crate::direct::rows::{Links, Rows, listing};
use crate::foreign::host;

/// What a change needs to know of the system, read once.
pub struct System {
    links: Links,
    addresses: Vec<Address>,
    /// The link that was named.
    device: Option<u32>,
}

/// The row of an entry that is published (answered for), temporary, both or
/// neither.
pub fn row(
    address: Ipv4Addr,
    link: u32,
    lladdr: LinkLayerAddress,
    [published, temporary]: [bool; 2],
) -> Neighbour {
    Neighbour {
        link,
        address: address.into(),
        proxy: published,
        // Linux answers for a proxy entry with the link's own.
        lladdr: if published {
            LinkLayerAddress::NONE
        } else {
            lladdr
        },
        state: match (published, temporary) {
            (true, _) => state::NONE,
            (false, true) => state::STALE,
            (false, false) => state::PERMANENT,
        },
        flags: 0,
        protocol: 0,
        kind: 0,
    }
}

impl System {
    /// Reads links and addresses.
    pub fn read(rows: &Rows, wanted: &Wanted) -> Result<Self> {
        let links = rows.links(false)?;
        let device = match &wanted.device {
            Some(name) => Some(links.named(name)?.index),
            None => None,
        };
        Ok(Self {
            addresses: match device {
                Some(_) => Vec::new(),
                None => rows.addresses(AF_INET)?,
            },
            links,
            device,
        })
    }

    /// The neighbour that is to be made.
    pub fn neighbour(&self, set: &Set, address: Ipv4Addr) -> Result<Neighbour, String> {
        let (lladdr, owner) = self.lladdr(set)?;
        let link = match (self.device, owner) {
            (Some(link), _) => link,
            (None, Some(owner)) if set.published => owner,
            (None, _) => self.link_towards(address)?,
        };
        Ok(row(address, link, lladdr, [set.published, set.temporary]))
    }

    /// The link-layer address, and the link that it is the own one of.
    fn lladdr(&self, set: &Set) -> Result<(LinkLayerAddress, Option<u32>), String> {
        if set.lladdr_is_link {
            let link = self
                .links
                .by_name(&set.lladdr)
                .ok_or_else(|| format!("no link is named `{}`", set.lladdr))?;
            return Ok((link.address, Some(link.index)));
        }
        if set.lladdr == "auto" {
            return if set.published {
                Ok((LinkLayerAddress::NONE, None))
            } else {
                Err("`auto` is for published entries: auto pub".into())
            };
        }
        let lladdr = parse_lladdr(&set.lladdr).ok_or_else(|| {
            format!(
                "`{}` is no link-layer address like 00:0c:29:65:4d:48",
                set.lladdr
            )
        })?;
        let owner = if set.published && self.device.is_none() {
            self.links
                .iter()
                .map(|(link, _)| link)
                .find(|link| link.address == lladdr)
        } else {
            None
        };
        Ok((lladdr, owner.map(|link| link.index)))
    }

    /// The link with the longest of the prefixes that the address is in.
    fn link_towards(&self, address: Ipv4Addr) -> Result<u32, String> {
        self.addresses
            .iter()
            .filter(|own| is_on_link(own, address))
            .filter(|own| self.links.get(own.link).is_some_and(has_arp))
            .max_by_key(|own| own.prefix_len)
            .map(|own| own.link)
            .ok_or_else(|| {
                format!("{address} is in no prefix of this host's links; name the link with -i")
            })
    }
}

fn has_arp(link: &Link) -> bool {
    link.flags & (link_flag::NOARP | link_flag::LOOPBACK) == 0
}

fn is_on_link(own: &Address, address: Ipv4Addr) -> bool {
    let IpAddr::V4(near) = own.peer.unwrap_or(own.local) else {
        return false;
    };
    let zeros = 32 - u32::from(own.prefix_len.min(32));
    let differing = u64::from(near.to_bits() ^ address.to_bits());
    differing >> zeros == 0
}

/// Bytes of one or two digits with colons or dashes, or pairs of digits
/// with nothing between.
fn parse_lladdr(text: &str) -> Option<LinkLayerAddress> {
    let octet = |digits: &str| match digits.len() {
        1 | 2 if !digits.starts_with('+') => u8::from_str_radix(digits, 16).ok(),
        _ => None,
    };
    let octets: Option<Vec<u8>> = if text.contains([':', '-']) {
        text.split([':', '-']).map(octet).collect()
    } else if text.len() == 12 {
        (0..12)
            .step_by(2)
            .map(|at| octet(text.get(at..at + 2)?))
            .collect()
    } else {
        None
    };
    LinkLayerAddress::new(&octets?)
}

/// A request of the bulk interface.
pub fn request(
    operation: Operation,
    neighbour: &Neighbour,
) -> impl FnOnce(u32, &mut Vec<u8>) + use<'_> {
    let flags = match operation {
        Operation::New => flag::CREATE | flag::REPLACE,
        Operation::Delete => 0,
    };
    move |sequence, out| {
        let request = Request {
            operation,
            flags,
            sequence,
            now_millis: 0,
        };
        // An address and a link-layer address of at most 32 octets always
        // fit their attributes.
        let _ = encode::neighbour(out, &request, neighbour);
    }
}

/// Says why the kernel refused, and what to do about it.
pub fn explained(refusal: &Refusal) -> String {
    match refusal.source.kind() {
        ErrorKind::PermissionDenied => {
            "only root (CAP_NET_ADMIN) may change the kernel's ARP table".into()
        }
        _ => refusal.to_string(),
    }
}

/// Makes one entry.
pub fn set(set: &Set, wanted: &Wanted, namespace: &Namespace) -> Result<bool> {
    let rows = Rows::new(namespace)?;
    let system = System::read(&rows, wanted)?;
    let address = host::address(&set.host, wanted.patience)?;
    let neighbour = system.neighbour(set, address).map_err(|why| anyhow!(why))?;
    if set.replace {
        let old = entries_of(&rows, Some(address), None, Kinds::All)?;
        apply(namespace, Operation::Delete, &old)?;
    }
    warn_if_not_used(set, &neighbour, &system)?;
    apply(namespace, Operation::New, &[neighbour]).with_context(|| set.host.clone())?;
    Ok(true)
}

fn warn_if_not_used(set: &Set, neighbour: &Neighbour, system: &System) -> Result<()> {
    let Some(link) = system.links.get(neighbour.link) else {
        return Ok(());
    };
    let is_used = parse_lladdr(&set.lladdr).is_none_or(|lladdr| lladdr == link.address);
    if set.published && !set.lladdr_is_link && !is_used {
        writeln!(
            io::stderr(),
            "arp: Linux answers for {} with {}'s own address {}, not with {}",
            set.host,
            link.name,
            link.address,
            set.lladdr
        )?;
    }
    Ok(())
}

/// Deletes entries.
pub fn delete(which: &Which, wanted: &Wanted, namespace: &Namespace) -> Result<bool> {
    let rows = Rows::new(namespace)?;
    let links = rows.links(false)?;
    let device = match &wanted.device {
        Some(name) => Some(links.named(name)?.index),
        None => None,
    };
    let (address, kinds) = match which {
        Which::All => (None, Kinds::All),
        Which::Host { host, published } => {
            let address = host::address(host, wanted.patience)?;
            let kinds = if *published {
                Kinds::Published
            } else {
                Kinds::All
            };
            (Some(address), kinds)
        }
    };
    let entries = entries_of(&rows, address, device, kinds)?;
    if let (Which::Host { host, .. }, []) = (which, entries.as_slice()) {
        writeln!(io::stderr(), "No ARP entry for {host}")?;
        return Ok(false);
    }
    apply(namespace, Operation::Delete, &entries)?;
    if !wanted.is_linux() {
        let mut out = io::BufWriter::new(io::stdout().lock());
        for entry in &entries {
            writeln!(out, "? ({}) deleted", entry.address)?;
        }
        out.flush()?;
    }
    Ok(true)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    All,
    Published,
}

/// The entries that are listed and match.
fn entries_of(
    rows: &Rows,
    address: Option<Ipv4Addr>,
    link: Option<u32>,
    kinds: Kinds,
) -> Result<Vec<Neighbour>> {
    let mut entries = Vec::new();
    let dumps: &[bool] = match kinds {
        Kinds::All => &[false, true],
        Kinds::Published => &[true],
    };
    for &proxy in dumps {
        let request = Dump::Neighbours {
            family: AF_INET,
            link,
            master: None,
            proxy,
        };
        listing(rows.each(&request, |payload| {
            let neighbour = decode::neighbour(payload)?;
            let is_listed = proxy || neighbour.state & !state::NOARP != 0;
            let is_wanted = address.is_none_or(|address| neighbour.address == address)
                && link.is_none_or(|link| neighbour.link == link);
            if is_listed && is_wanted {
                entries.push(neighbour);
            }
            Ok(())
        }))?;
    }
    Ok(entries)
}

/// Applies one operation to all; the first refusal is the error, after the
/// rest was tried. What goes before it is deleted is well.
fn apply(namespace: &Namespace, operation: Operation, neighbours: &[Neighbour]) -> Result<()> {
    let mut refused = None;
    let requests = neighbours
        .iter()
        .map(|neighbour| request(operation, neighbour));
    bulk::apply(namespace, requests, &mut |place, result| {
        if let Err(refusal) = result {
            let is_gone =
                operation == Operation::Delete && refusal.source.kind() == ErrorKind::NotFound;
            if !is_gone && refused.is_none() {
                refused = Some((place, refusal));
            }
        }
    })?;
    match refused {
        None => Ok(()),
        Some((place, refusal)) => match neighbours.get(place) {
            Some(neighbour) if neighbours.len() > 1 => {
                bail!("{}: {}", neighbour.address, explained(&refusal))
            }
            _ => bail!(explained(&refusal)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_layer_addresses_in_their_spellings() {
        let expected = LinkLayerAddress::new(&[0, 0x0c, 0x29, 0x65, 0x4d, 8]);
        for text in [
            "00:0c:29:65:4d:08",
            "0:C:29:65:4d:8",
            "00-0c-29-65-4d-08",
            "000c29654d08",
        ] {
            assert_eq!(parse_lladdr(text), expected, "{text}");
        }
        for text in [
            "",
            "zz",
            "00:0c:29:65:4d:",
            "000:c",
            "0123456789é",
            "+1:2:3:4:5:6",
        ] {
            assert_eq!(parse_lladdr(text), None, "{text}");
        }
    }

    #[test]
    fn an_address_is_on_the_link_whose_prefix_it_is_in() {
        let mut own = Address::new(3, Ipv4Addr::new(10, 0, 0, 1).into(), 30);
        assert!(is_on_link(&own, Ipv4Addr::new(10, 0, 0, 2)));
        assert!(!is_on_link(&own, Ipv4Addr::new(10, 0, 0, 5)));
        own.prefix_len = 0;
        assert!(is_on_link(&own, Ipv4Addr::BROADCAST));
        own.peer = Some(Ipv4Addr::new(10, 7, 0, 2).into());
        own.prefix_len = 32;
        assert!(is_on_link(&own, Ipv4Addr::new(10, 7, 0, 2)));
        assert!(!is_on_link(&own, Ipv4Addr::new(10, 0, 0, 1)));
    }
}
