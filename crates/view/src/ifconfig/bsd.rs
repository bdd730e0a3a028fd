//! The layouts of FreeBSD's `ifconfig` and `ifconfig -l`.
//!
//! Flags are given with FreeBSD's names and numbers, so that what parses
//! its output goes on working; Linux flags without a counterpart there are
//! left out.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};

use table::row::address::flag as address_flag;
use table::row::link::{flag, hardware, oper};
use table::{Address, Link};

use super::{Interface, Selection};
use crate::format;
use crate::put::{self, Pieces};

pub(super) fn list(
    interfaces: &[Interface<'_>],
    selection: Selection<'_>,
    out: impl Write,
) -> io::Result<u64> {
    let mut pieces = Pieces::new(out);
    let mut blocks = 0;
    for interface in interfaces {
        if selection.takes(interface.link) {
            write_block(interface, &mut pieces)?;
            blocks += 1;
        }
    }
    pieces.finish()?;
    Ok(blocks)
}

pub(super) fn names(
    interfaces: &[Interface<'_>],
    selection: Selection<'_>,
    out: impl Write,
) -> io::Result<u64> {
    let mut pieces = Pieces::new(out);
    let mut names = 0;
    for interface in interfaces {
        if selection.takes(interface.link) {
            if names > 0 {
                pieces.text.push(b' ');
            }
            put::push_text(&mut pieces.text, &interface.link.name);
            pieces.row_done()?;
            names += 1;
        }
    }
    pieces.text.push(b'\n');
    pieces.finish()?;
    Ok(names)
}

fn write_block(interface: &Interface<'_>, pieces: &mut Pieces<impl Write>) -> io::Result<()> {
    let link = interface.link;
    head(link, &mut pieces.text);
    for address in interface.addresses {
        match address.local {
            IpAddr::V4(local) => inet(local, address, link, &mut pieces.text),
            IpAddr::V6(_) => inet6(address, link, &mut pieces.text),
        }
        pieces.row_done()?;
    }
    tail(link, &mut pieces.text);
    Ok(())
}

/// FreeBSD's `IFF_…`, `net/if.h`: its bit, the Linux flag, its name.
const FLAGS: [(u32, u32, &str); 11] = [
    (0x1, flag::UP, "UP"),
    (0x2, flag::BROADCAST, "BROADCAST"),
    (0x4, flag::DEBUG, "DEBUG"),
    (0x8, flag::LOOPBACK, "LOOPBACK"),
    (0x10, flag::POINTOPOINT, "POINTOPOINT"),
    (0x40, flag::RUNNING, "RUNNING"),
    (0x80, flag::NOARP, "NOARP"),
    (0x100, flag::PROMISC, "PROMISC"),
    (0x200, flag::ALLMULTI, "ALLMULTI"),
    // Does not hear itself: so it is with every broadcast link of Linux.
    (0x800, flag::BROADCAST, "SIMPLEX"),
    (0x8000, flag::MULTICAST, "MULTICAST"),
];

fn head(link: &Link, text: &mut Vec<u8>) {
    put::push_text(text, &link.name);
    put::push_text(text, ": flags=");
    let known = FLAGS.map(|(bit, linux, name)| {
        let set = link.flags & linux != 0;
        (if set { bit } else { 0 }, name)
    });
    let bits = known.iter().fold(0, |bits, (bit, _)| bits | bit);
    format::push_hex(text, bits.into());
    put::push_flags(text, bits, &known);
    put::push_text(text, " metric 0 mtu ");
    format::push_u64(text, u64::from(link.mtu));
    text.push(b'\n');
    if let Some(alias) = &link.alias {
        put::push_text(text, "\tdescription: ");
        put::push_text(text, alias);
        text.push(b'\n');
    }
    if link.hardware == hardware::ETHER && !link.address.is_none() {
        put::push_text(text, "\tether ");
        format::push_octets(text, link.address.octets());
        text.push(b'\n');
    }
}

fn inet(local: Ipv4Addr, address: &Address, link: &Link, text: &mut Vec<u8>) {
    put::push_text(text, "\tinet ");
    format::push_ipv4(text, local);
    if let Some(IpAddr::V4(peer)) = address.peer {
        put::push_text(text, " --> ");
        format::push_ipv4(text, peer);
    }
    put::push_text(text, " netmask 0x");
    format::push_hex(text, put::netmask(address.prefix_len).to_bits().into());
    if let (Some(IpAddr::V4(broadcast)), true) =
        (address.broadcast, link.flags & flag::BROADCAST != 0)
    {
        put::push_text(text, " broadcast ");
        format::push_ipv4(text, broadcast);
    }
    text.push(b'\n');
}

fn inet6(address: &Address, link: &Link, text: &mut Vec<u8>) {
    let IpAddr::V6(local) = address.local else {
        return;
    };
    let is_link_local = local.is_unicast_link_local();
    put::push_text(text, "\tinet6 ");
    format::push_ipv6(text, local);
    if is_link_local {
        text.push(b'%');
        put::push_text(text, &link.name);
    }
    if let Some(IpAddr::V6(peer)) = address.peer {
        put::push_text(text, " --> ");
        format::push_ipv6(text, peer);
    }
    put::push_text(text, " prefixlen ");
    format::push_u64(text, u64::from(address.prefix_len));
    let is_dynamic = address.flags & address_flag::PERMANENT == 0;
    for (holds, word) in [
        (address.flags & address_flag::TENTATIVE != 0, " tentative"),
        (address.flags & address_flag::DADFAILED != 0, " duplicated"),
        (address.flags & address_flag::DEPRECATED != 0, " deprecated"),
        (is_dynamic, " autoconf"),
        (
            is_dynamic && address.flags & address_flag::SECONDARY != 0,
            " temporary",
        ),
    ] {
        if holds {
            put::push_text(text, word);
        }
    }
    if is_link_local {
        put::push_text(text, " scopeid 0x");
        format::push_hex(text, link.index.into());
    }
    text.push(b'\n');
}

/// Groups as FreeBSD has them, one named for the kind of link (and Linux's
/// numbered group, unless it is the default one); then the carrier.
fn tail(link: &Link, text: &mut Vec<u8>) {
    let is_loopback = link.flags & flag::LOOPBACK != 0;
    let kind = if is_loopback {
        Some("lo")
    } else {
        link.kind.as_deref()
    };
    if kind.is_some() || link.group != 0 {
        put::push_text(text, "\tgroups:");
        if let Some(kind) = kind {
            text.push(b' ');
            put::push_text(text, kind);
        }
        if link.group != 0 {
            text.push(b' ');
            format::push_u64(text, u64::from(link.group));
        }
        text.push(b'\n');
    }
    if !is_loopback {
        let is_active = match link.oper_state {
            oper::UP => true,
            // Drivers that do not tell: the carrier decides.
            oper::UNKNOWN => link.flags & flag::RUNNING != 0,
            _ => false,
        };
        let status = if is_active { "active" } else { "no carrier" };
        put::push_text(text, "\tstatus: ");
        put::push_text(text, status);
        text.push(b'\n');
    }
}
