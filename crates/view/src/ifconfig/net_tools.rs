//! The layouts of Linux net-tools' `ifconfig` and `ifconfig -s`.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::row::link::{flag, hardware};
use table::{Address, Link, LinkCounters};

use super::order::Key;
use super::{Interface, Selection, is_named};
use crate::format;
use crate::put::{self, Pieces};

pub(super) enum Layout {
    Blocks,
    Lines,
}

/// What is listed under one name: a link, or the addresses of a label.
struct Block<'a> {
    key: Key<'a>,
    name: &'a str,
    /// Whether this is the link itself, with counters and IPv6.
    is_link: bool,
    interface: Interface<'a>,
    inet: Vec<&'a Address>,
}

pub(super) fn list<'a>(
    interfaces: &[Interface<'a>],
    selection: Selection<'a>,
    layout: Layout,
    out: impl Write,
) -> io::Result<u64> {
    let mut all = Vec::with_capacity(interfaces.len());
    for interface in interfaces {
        blocks(*interface, selection, &mut all);
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let mut pieces = Pieces::new(out);
    if matches!(layout, Layout::Lines) {
        pieces.text.extend_from_slice(SHORT_HEADER);
    }
    for block in &all {
        match layout {
            Layout::Blocks => write_block(block, &mut pieces)?,
            Layout::Lines => write_line(block, &mut pieces.text),
        }
        pieces.row_done()?;
    }
    pieces.finish()?;
    Ok(all.len() as u64)
}

/// The blocks of an interface: itself, and one for each further label.
fn blocks<'a>(interface: Interface<'a>, selection: Selection<'a>, all: &mut Vec<Block<'a>>) {
    let link = interface.link;
    let takes = |name: &str| match selection {
        Selection::Named(wanted) => name == wanted,
        _ => selection.takes(link),
    };
    let label = |address: &'a Address| address.label.as_deref().unwrap_or(&link.name);
    let mut inet: Vec<&Address> = interface
        .addresses
        .iter()
        .filter(|address| address.local.is_ipv4())
        .collect();
    // Stable: within a label the kernel's order stays.
    inet.sort_by_key(|address| label(address));
    let mut own = Vec::new();
    for of_label in inet.chunk_by(|a, b| label(a) == label(b)) {
        let name = label(of_label[0]);
        if name == &*link.name {
            own = of_label.to_vec();
        } else if takes(name) {
            all.push(Block {
                key: Key::of(name),
                name,
                is_link: false,
                interface,
                inet: of_label.to_vec(),
            });
        }
    }
    // Any name of an alias is one, with an address or without.
    if let Selection::Named(wanted) = selection
        && let Some((name, _)) = wanted.split_once(':')
        && name == &*link.name
        && !all.iter().any(|block| block.name == wanted)
    {
        all.push(Block {
            key: Key::of(wanted),
            name: wanted,
            is_link: false,
            interface,
            inet: Vec::new(),
        });
    }
    let by_name = matches!(selection, Selection::Named(name) if is_named(link, name));
    if by_name || takes(&link.name) {
        all.push(Block {
            key: Key::of(&link.name),
            name: &link.name,
            is_link: true,
            interface,
            inet: own,
        });
    }
}

fn write_block(block: &Block<'_>, pieces: &mut Pieces<impl Write>) -> io::Result<()> {
    let link = block.interface.link;
    head(block.name, link, &mut pieces.text);
    for address in &block.inet {
        inet(address, link, &mut pieces.text);
        pieces.row_done()?;
    }
    let text = &mut pieces.text;
    if block.is_link {
        for address in block.interface.addresses {
            if let IpAddr::V6(local) = address.local {
                inet6(local, address.prefix_len, text);
            }
        }
    }
    hardware_line(link, text);
    if let (true, Some(counters)) = (block.is_link, block.interface.counters) {
        counter_lines(counters, text);
    }
    text.push(b'\n');
    Ok(())
}

/// The flags that net-tools knows, in its order.
const FLAGS: [(u32, &str); 14] = [
    (flag::UP, "UP"),
    (flag::BROADCAST, "BROADCAST"),
    (flag::DEBUG, "DEBUG"),
    (flag::LOOPBACK, "LOOPBACK"),
    (flag::POINTOPOINT, "POINTOPOINT"),
    (flag::NOTRAILERS, "NOTRAILERS"),
    (flag::RUNNING, "RUNNING"),
    (flag::NOARP, "NOARP"),
    (flag::PROMISC, "PROMISC"),
    (flag::ALLMULTI, "ALLMULTI"),
    (flag::SLAVE, "SLAVE"),
    (flag::MASTER, "MASTER"),
    (flag::MULTICAST, "MULTICAST"),
    (flag::DYNAMIC, "DYNAMIC"),
];

fn head(name: &str, link: &Link, text: &mut Vec<u8>) {
    put::push_text(text, name);
    put::push_text(text, ": flags=");
    // `struct ifreq` has 16 signed bits for them.
    let flags = link.flags as u16 as i16;
    if flags < 0 {
        text.push(b'-');
    }
    format::push_u64(text, u64::from(flags.unsigned_abs()));
    put::push_flags(text, link.flags, &FLAGS);
    put::push_text(text, "  mtu ");
    format::push_u64(text, u64::from(link.mtu));
    text.push(b'\n');
}

fn inet(address: &Address, link: &Link, text: &mut Vec<u8>) {
    let IpAddr::V4(local) = address.local else {
        return;
    };
    put::push_text(text, "        inet ");
    format::push_ipv4(text, local);
    put::push_text(text, "  netmask ");
    format::push_ipv4(text, put::netmask(address.prefix_len));
    if link.flags & flag::BROADCAST != 0 {
        put::push_text(text, "  broadcast ");
        format::push_ipv4(text, ipv4_or_none(address.broadcast));
    }
    if link.flags & flag::POINTOPOINT != 0 {
        put::push_text(text, "  destination ");
        format::push_ipv4(text, ipv4_or_none(address.peer.or(Some(address.local))));
    }
    text.push(b'\n');
}

fn ipv4_or_none(address: Option<IpAddr>) -> Ipv4Addr {
    match address {
        Some(IpAddr::V4(address)) => address,
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

fn inet6(local: Ipv6Addr, prefix_len: u8, text: &mut Vec<u8>) {
    put::push_text(text, "        inet6 ");
    format::push_ipv6(text, local);
    put::push_text(text, "  prefixlen ");
    format::push_u64(text, u64::from(prefix_len));
    put::push_text(text, "  scopeid ");
    put::push_text(text, scope(local));
    text.push(b'\n');
}

/// The kernel's scope of an address (`/proc/net/if_inet6`) and net-tools'
/// name for it.
fn scope(address: Ipv6Addr) -> &'static str {
    let segments = address.segments();
    if address.is_loopback() {
        "0x10<host>"
    } else if segments[0] & 0xffc0 == 0xfe80 {
        "0x20<link>"
    } else if segments[0] & 0xffc0 == 0xfec0 {
        "0x40<site>"
    } else if segments[..6] == [0; 6] {
        "0x80<compat,global>"
    } else {
        "0x0<global>"
    }
}

fn hardware_line(link: &Link, text: &mut Vec<u8>) {
    let (name, title) = match link.hardware {
        hardware::ETHER => ("ether ", "Ethernet"),
        hardware::LOOPBACK => ("loop", "Local Loopback"),
        hardware::PPP => ("ppp", "Point-to-Point Protocol"),
        hardware::TUNNEL => ("tunnel ", "IPIP Tunnel"),
        hardware::SIT => ("sit", "IPv6-in-IPv4"),
        _ => ("unspec ", "UNSPEC"),
    };
    put::push_text(text, "        ");
    put::push_text(text, name);
    match link.hardware {
        hardware::ETHER => format::push_octets(text, link.address.octets()),
        _ if title == "UNSPEC" => unspec_address(link, text),
        _ => {}
    }
    put::push_text(text, "  txqueuelen ");
    format::push_u64(text, u64::from(link.tx_queue_len));
    put::push_text(text, "  (");
    put::push_text(text, title);
    put::push_text(text, ")\n");
}

/// The sixteen octets of net-tools' buffer; the kernel fills at most the
/// fourteen of a `struct sockaddr`.
fn unspec_address(link: &Link, text: &mut Vec<u8>) {
    let mut octets = [0; 16];
    for (to, from) in octets[..14].iter_mut().zip(link.address.octets()) {
        *to = *from;
    }
    for (index, octet) in octets.iter().enumerate() {
        if index > 0 {
            text.push(b'-');
        }
        put::push_octet_upper(text, *octet);
    }
}

/// Counters summed as `/proc/net/dev` does.
struct Summed {
    rx_dropped: u64,
    rx_frame: u64,
    tx_carrier: u64,
}

impl Summed {
    fn of(counters: &LinkCounters) -> Self {
        Self {
            rx_dropped: counters.rx_dropped.wrapping_add(counters.rx_missed_errors),
            rx_frame: counters
                .rx_length_errors
                .wrapping_add(counters.rx_over_errors)
                .wrapping_add(counters.rx_crc_errors)
                .wrapping_add(counters.rx_frame_errors),
            tx_carrier: counters
                .tx_carrier_errors
                .wrapping_add(counters.tx_aborted_errors)
                .wrapping_add(counters.tx_window_errors)
                .wrapping_add(counters.tx_heartbeat_errors),
        }
    }
}

fn counter_lines(counters: &LinkCounters, text: &mut Vec<u8>) {
    let summed = Summed::of(counters);
    traffic("RX", counters.rx_packets, counters.rx_bytes, text);
    put::push_text(text, "        RX errors ");
    format::push_u64(text, counters.rx_errors);
    put::push_text(text, "  dropped ");
    format::push_u64(text, summed.rx_dropped);
    put::push_text(text, "  overruns ");
    format::push_u64(text, counters.rx_fifo_errors);
    put::push_text(text, "  frame ");
    format::push_u64(text, summed.rx_frame);
    text.push(b'\n');
    traffic("TX", counters.tx_packets, counters.tx_bytes, text);
    put::push_text(text, "        TX errors ");
    format::push_u64(text, counters.tx_errors);
    put::push_text(text, "  dropped ");
    format::push_u64(text, counters.tx_dropped);
    put::push_text(text, " overruns ");
    format::push_u64(text, counters.tx_fifo_errors);
    put::push_text(text, "  carrier ");
    format::push_u64(text, summed.tx_carrier);
    put::push_text(text, "  collisions ");
    format::push_u64(text, counters.collisions);
    text.push(b'\n');
}

fn traffic(direction: &str, packets: u64, bytes: u64, text: &mut Vec<u8>) {
    put::push_text(text, "        ");
    put::push_text(text, direction);
    put::push_text(text, " packets ");
    format::push_u64(text, packets);
    put::push_text(text, "  bytes ");
    format::push_u64(text, bytes);
    put::push_text(text, " (");
    human(bytes, text);
    put::push_text(text, ")\n");
}

/// One decimal, cut off; a unit begins above 1,024 of the one below.
fn human(bytes: u64, text: &mut Vec<u8>) {
    const UNITS: [&str; 7] = [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"];
    let unit = (1..UNITS.len())
        .rev()
        .find(|unit| bytes > 1 << (10 * unit))
        .unwrap_or(0);
    let tenths = ((u128::from(bytes) * 10) >> (10 * unit)) as u64;
    format::push_u64(text, tenths / 10);
    text.push(b'.');
    format::push_u64(text, tenths % 10);
    put::push_text(text, UNITS[unit]);
}

const SHORT_HEADER: &[u8] =
    b"Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n";

/// A letter a flag, in net-tools' order.
const LETTERS: [(u32, u8); 14] = [
    (flag::ALLMULTI, b'A'),
    (flag::BROADCAST, b'B'),
    (flag::DEBUG, b'D'),
    (flag::LOOPBACK, b'L'),
    (flag::MULTICAST, b'M'),
    (flag::DYNAMIC, b'd'),
    (flag::PROMISC, b'P'),
    (flag::NOTRAILERS, b'N'),
    (flag::NOARP, b'O'),
    (flag::POINTOPOINT, b'P'),
    (flag::SLAVE, b's'),
    (flag::MASTER, b'm'),
    (flag::RUNNING, b'R'),
    (flag::UP, b'U'),
];

fn write_line(block: &Block<'_>, text: &mut Vec<u8>) {
    let link = block.interface.link;
    let start = text.len();
    put::push_text(text, block.name);
    put::pad_to(text, start + 15);
    put::push_right(text, u64::from(link.mtu), 6);
    match block.interface.counters {
        Some(counters) if block.is_link => short_counters(counters, text),
        _ => put::push_text(
            text,
            "      - no statistics available -                        ",
        ),
    }
    for (flag, letter) in LETTERS {
        if link.flags & flag != 0 {
            text.push(letter);
        }
    }
    text.push(b'\n');
}

fn short_counters(counters: &LinkCounters, text: &mut Vec<u8>) {
    let summed = Summed::of(counters);
    for (number, width) in [
        (counters.rx_packets, 8),
        (counters.rx_errors, 6),
        (summed.rx_dropped, 6),
    ] {
        text.push(b' ');
        put::push_right(text, number, width);
    }
    text.push(b' ');
    let overruns = text.len();
    format::push_u64(text, counters.rx_fifo_errors);
    put::pad_to(text, overruns + 6);
    for (number, width) in [
        (counters.tx_packets, 8),
        (counters.tx_errors, 6),
        (counters.tx_dropped, 6),
        (counters.tx_fifo_errors, 6),
    ] {
        text.push(b' ');
        put::push_right(text, number, width);
    }
    text.push(b' ');
}
