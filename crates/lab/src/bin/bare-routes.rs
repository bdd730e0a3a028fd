//! The floor under routes added and withdrawn by the million: /24s from
//! 16.0.0.0 on through one gateway, 128 requests a send, one
//! acknowledgement a send, the bytes put together by hand and the answers
//! thrown away. Says how many seconds it took. `cargo xtask bench` runs it
//! beside the others.
//!
//! `bare-routes add|delete N GATEWAY LINK-INDEX`, or `bare-routes lines N
//! GATEWAY LINK-NAME`, which prints the same routes as lines for a file.

use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use linux::Namespace;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::message::{flag, kind, messages};

/// Requests of a send.
const PACK: u32 = 128;
/// The first prefix.
const FIRST: u32 = 16 << 24;

const AF_INET: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [what, count, gateway, link] = *words.as_slice() else {
        bail!("usage: bare-routes add|delete|lines N GATEWAY LINK");
    };
    let (count, gateway): (u32, Ipv4Addr) = (count.parse()?, gateway.parse()?);
    if count > 12_000_000 {
        bail!("more /24s than there are below multicast");
    }
    let (kind, flags) = match what {
        "add" => (kind::NEWROUTE, flag::CREATE | flag::EXCL),
        "delete" => (kind::DELROUTE, 0),
        "lines" => return lines(count, gateway, link),
        _ => bail!("usage: bare-routes add|delete|lines N GATEWAY LINK"),
    };
    let link: u32 = link.parse().context("the link's index")?;
    let socket = Socket::open(&Namespace::current()?)?;
    socket.set_receive_buffer(4 << 20)?;
    let started = Instant::now();
    let mut out = Vec::new();
    for number in 0..count {
        let last = (number + 1) % PACK == 0 || number + 1 == count;
        let ack = if last { flag::ACK } else { 0 };
        put(
            &mut out,
            kind,
            flag::REQUEST | flags | ack,
            number,
            gateway,
            link,
        );
        if last {
            socket.send(&out)?;
            answered(&socket, number)?;
            out.clear();
        }
    }
    writeln!(io::stdout(), "{:.6}", started.elapsed().as_secs_f64())?;
    Ok(())
}

fn prefix(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST + (number << 8))
}

fn put(out: &mut Vec<u8>, kind: u16, flags: u16, number: u32, gateway: Ipv4Addr, link: u32) {
    let attributes = [
        (RTA_DST, prefix(number).octets()),
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
        24,
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

/// Reads up to the acknowledgement of a request; a refusal ends it all.
fn answered(socket: &Socket, sequence: u32) -> Result<()> {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        let len = match socket.receive(&mut buffer, "a change")? {
            Received::Bytes(len) => len,
            Received::Nothing | Received::Overrun => bail!("an answer was lost"),
        };
        for message in messages(buffer.get(..len).unwrap_or_default()) {
            let message = message?;
            let errno = message.payload.first_chunk::<4>();
            let errno = i32::from_ne_bytes(*errno.context("a short answer")?);
            if errno != 0 {
                bail!(
                    "route {}: {}",
                    message.sequence,
                    io::Error::from_raw_os_error(-errno)
                );
            }
            if message.sequence == sequence {
                return Ok(());
            }
        }
    }
}

fn lines(count: u32, gateway: Ipv4Addr, link: &str) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for number in 0..count {
        writeln!(out, "{}/24 via {gateway} dev {link}", prefix(number))?;
    }
    out.flush()?;
    Ok(())
}
