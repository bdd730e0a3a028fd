//! The floor under routes added and withdrawn by the million: 128 requests
//! a send, one acknowledgement a send, the bytes put together by hand and
//! the answers thrown away. Of a file's lines only the prefixes are read.
//! Says how many seconds the requests took. `cargo xtask bench` runs it
//! beside the others.
//!
//! `bare-routes add|delete FILE LINK GATEWAY`

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ipnet::Ipv4Net;
use lab::bare::answered;
use linux::Namespace;
use linux::socket::Socket;
use netlink::message::{flag, kind};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

/// Requests of a send.
const PACK: usize = 128;

const AF_INET: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

const USAGE: &str = "usage: bare-routes add|delete FILE LINK GATEWAY";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [what, file, link, gateway] = *words.as_slice() else {
        bail!(USAGE);
    };
    let gateway: Ipv4Addr = gateway.parse().context(USAGE)?;
    let (kind, flags) = match what {
        "add" => (kind::NEWROUTE, flag::CREATE | flag::EXCL),
        "delete" => (kind::DELROUTE, 0),
        _ => bail!(USAGE),
    };
    let text = fs::read_to_string(file).with_context(|| file.to_owned())?;
    let link = name_to_index(socket(AddressFamily::UNIX, SocketType::DGRAM, None)?, link)?;
    let socket = Socket::open(&Namespace::current()?)?;
    socket.set_receive_buffer(4 << 20)?;
    let started = Instant::now();
    let mut out = Vec::new();
    let (mut packed, mut number) = (0, 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let prefix = line.split(' ').next().unwrap_or_default();
        let prefix: Ipv4Net = prefix.parse().with_context(|| prefix.to_owned())?;
        packed += 1;
        number += 1;
        let last = packed == PACK || lines.peek().is_none();
        let ack = if last { flag::ACK } else { 0 };
        let flags = flag::REQUEST | flags | ack;
        put(&mut out, kind, flags, number, prefix, gateway, link);
        if last {
            socket.send(&out)?;
            answered(&socket, number)?;
            out.clear();
            packed = 0;
        }
    }
    writeln!(io::stdout(), "{:.6}", started.elapsed().as_secs_f64())?;
    Ok(())
}

fn put(
    out: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    number: u32,
    prefix: Ipv4Net,
    gateway: Ipv4Addr,
    link: u32,
) {
    let attributes = [
        (RTA_DST, prefix.network().octets()),
        (RTA_GATEWAY, gateway.octets()),
        (RTA_OIF, link.to_ne_bytes()),
    ];
    let len = 16 + 12 + attributes.len() as u32 * 8;
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    out.extend_from_slice(&number.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    let structure = [
        AF_INET,
        prefix.prefix_len(),
        0,
        0,
        RT_TABLE_MAIN,
        RTPROT_BOOT,
        0,
        RTN_UNICAST,
        0,
        0,
        0,
        0,
    ];
    out.extend_from_slice(&structure);
    for (number, value) in attributes {
        out.extend_from_slice(&8u16.to_ne_bytes());
        out.extend_from_slice(&number.to_ne_bytes());
        out.extend_from_slice(&value);
    }
}
