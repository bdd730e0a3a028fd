//! The floor under every listing: asks the kernel for a table and throws
//! the answer away, datagram by datagram; then writes as many bytes as it
//! is told. `cargo xtask bench` runs it beside the others.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use linux::Namespace;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::message::kind;
use netlink::request::Dump;
use table::AF_INET;
use table::row::route::table_id;

/// Bytes of a write.
const CHUNK: usize = 64 << 10;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().context("usage: bare-dump WHAT [BYTES]")?;
    let mut bytes: usize = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let socket = Socket::open(&Namespace::current()?)?;
    for request in requests(&what)? {
        throw_away(&socket, &request)?;
    }
    let mut out = io::stdout().lock();
    let chunk = [b'.'; CHUNK];
    while bytes > 0 {
        let part = bytes.min(CHUNK);
        out.write_all(chunk.get(..part).unwrap_or_default())?;
        bytes -= part;
    }
    Ok(())
}

fn requests(what: &str) -> Result<Vec<Dump>> {
    let addresses = Dump::Addresses {
        family: 0,
        link: None,
    };
    Ok(match what {
        "neigh" => vec![Dump::Neighbours {
            family: 0,
            link: None,
            master: None,
            proxy: false,
        }],
        "route" => vec![routes(Some(table_id::MAIN))],
        // What a mirror needs. The local table shares its trie with the
        // main one: the kernel walks it twice.
        "route-all" => vec![routes(None)],
        // What ifconfig shows: links with their counters, and addresses.
        "ifconfig" => vec![Dump::Links { counters: true }, addresses],
        "addr" => vec![Dump::Links { counters: false }, addresses],
        _ => bail!("`{what}` is not neigh, route, route-all, addr or ifconfig"),
    })
}

fn routes(table: Option<u32>) -> Dump {
    Dump::Routes {
        family: AF_INET,
        table,
        link: None,
        protocol: None,
        kind: None,
    }
}

fn throw_away(socket: &Socket, request: &Dump) -> Result<()> {
    let mut bytes = Vec::new();
    request.encode(1, &mut bytes);
    socket.send(&bytes)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        match socket.receive(&mut buffer, "a dump")? {
            Received::Bytes(len) if is_last(buffer.get(..len).unwrap_or_default()) => return Ok(()),
            Received::Bytes(_) => (),
            Received::Nothing | Received::Overrun => bail!("the dump broke off"),
        }
    }
}

/// Whether a datagram ends with `NLMSG_DONE`: a header and an error number.
/// Looking at its end alone leaves all else to be thrown away unread.
fn is_last(datagram: &[u8]) -> bool {
    let Some((_, tail)) = datagram.split_last_chunk::<20>() else {
        return false;
    };
    let [l0, l1, l2, l3, k0, k1, ..] = *tail;
    u32::from_ne_bytes([l0, l1, l2, l3]) == 20 && u16::from_ne_bytes([k0, k1]) == kind::DONE
}
