//! Neighbours in any number on one interface.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};
use netlink::encode;
use table::row::neighbour::state;
use table::{LinkLayerAddress, Neighbour};

use crate::Netns;

/// The interface.
pub const LINK: &str = "em1";
/// The first neighbour; the others follow without a gap.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);

/// Puts `count` permanent IPv4 neighbours on `em1`, from 10.64.0.1 on.
/// Permanent ones need no raised `gc_thresh3`. Some 1 µs each.
pub fn build(netns: &Netns, count: usize) -> Result<()> {
    super::wire(netns, LINK)?;
    netns.ip(&["addr", "add", "10.127.255.254/10", "dev", LINK])?;
    load(netns, LINK, addresses().take(count))
}

/// Addresses from [`FIRST`] on.
pub(super) fn addresses() -> impl Iterator<Item = Ipv4Addr> {
    (u32::from(FIRST)..).map(Ipv4Addr::from)
}

/// Loads permanent neighbours into the kernel.
pub(super) fn load(
    netns: &Netns,
    link: &str,
    addresses: impl Iterator<Item = Ipv4Addr>,
) -> Result<()> {
    let index = super::link_index(netns, link)?;
    let rows = (1..)
        .zip(addresses)
        .map(|(number, address)| neighbour(index, number, address))
        .collect::<Result<Vec<_>>>()?;
    super::load(netns, "neighbours", &rows, encode::neighbour)
}

/// The neighbour of a number: a permanent one with a MAC address of its
/// own, `02:00` and the number.
pub fn neighbour(link: u32, number: u32, address: Ipv4Addr) -> Result<Neighbour> {
    let [a, b, c, d] = number.to_be_bytes();
    let lladdr = LinkLayerAddress::new(&[2, 0, a, b, c, d]).context("six octets are too many")?;
    Ok(Neighbour {
        link,
        address: IpAddr::V4(address),
        proxy: false,
        lladdr,
        state: state::PERMANENT,
        flags: 0,
        protocol: 0,
        kind: table::row::route::kind::UNICAST,
    })
}

/// Rows as the kernel would give them, for work inside one process.
pub fn rows(link: u32, count: u32) -> Result<Vec<Neighbour>> {
    (1..=count)
        .zip(addresses())
        .map(|(number, address)| neighbour(link, number, address))
        .collect()
}
