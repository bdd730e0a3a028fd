//! The floor under every creation and deletion of links: `testaK` (a veth's
//! peer `testbK`), 128 requests a send, one acknowledgement a send, the
//! bytes put together by hand and the answers thrown away; and the deletion
//! of a whole group in one request. Says how many seconds it took.
//! `cargo xtask bench` runs it beside the others.
//!
//! `bare-links create KIND FIRST LAST GROUP [echo]` (a macvlan stands on the
//! link of index 1000), `bare-links delete GROUP`, `bare-links move GROUP
//! NAME-PREFIX N` (from 1, by name).

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use lab::bare::answered;
use linux::Namespace;
use linux::socket::Socket;
use netlink::message::{flag, kind};

/// Requests of a send.
const PACK: usize = 128;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_LINKINFO: u16 = 18;
const IFLA_GROUP: u16 = 27;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_MACVLAN_MODE: u16 = 1;
const MACVLAN_MODE_BRIDGE: u32 = 4;
const IFLA_VXLAN_ID: u16 = 1;
const IFLA_VXLAN_PORT: u16 = 15;
const VXLAN_PORT: u16 = 4_789;

/// Index of the link below macvlans.
const PARENT: u32 = 1_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let socket = Socket::open(&Namespace::current()?)?;
    socket.set_receive_buffer(4 << 20)?;
    socket.set_send_buffer(1 << 20)?;
    let started = Instant::now();
    match *words.as_slice() {
        ["create", kind, first, last, group, ref rest @ ..] => {
            let links = Links {
                kind,
                group: group.parse()?,
                echo: rest.contains(&"echo"),
            };
            packed(
                &socket,
                first.parse()?,
                last.parse()?,
                |number, last, out| {
                    links.create(number, last, out);
                },
            )?;
        }
        ["delete", group] => {
            let mut out = Vec::new();
            let start = open(&mut out, kind::DELLINK, flag::ACK, 1);
            put(&mut out, IFLA_GROUP, &group.parse::<u32>()?.to_ne_bytes());
            close(&mut out, start);
            socket.send(&out)?;
            answered(&socket, 1)?;
        }
        ["move", group, prefix, count] => {
            let group: u32 = group.parse()?;
            packed(&socket, 1, count.parse()?, |number, last, out| {
                let start = open(out, kind::NEWLINK, flag_if(last), number);
                put_text(out, IFLA_IFNAME, &format!("{prefix}{number}"));
                put(out, IFLA_GROUP, &group.to_ne_bytes());
                close(out, start);
            })?;
        }
        _ => {
            bail!(
                "usage: bare-links create KIND FIRST LAST GROUP [echo] | delete GROUP | move GROUP PREFIX N"
            )
        }
    }
    writeln!(io::stdout(), "{:.6}", started.elapsed().as_secs_f64())?;
    Ok(())
}

/// Sends the requests of numbers and waits for each send's end.
fn packed(
    socket: &Socket,
    first: u32,
    count: u32,
    mut request: impl FnMut(u32, bool, &mut Vec<u8>),
) -> Result<()> {
    let mut out = Vec::new();
    let mut packed = 0;
    for number in first..=count {
        packed += 1;
        let last = packed == PACK || number == count;
        request(number, last, &mut out);
        if last {
            socket.send(&out)?;
            answered(socket, number)?;
            out.clear();
            packed = 0;
        }
    }
    Ok(())
}

/// What links are made.
struct Links<'a> {
    kind: &'a str,
    group: u32,
    echo: bool,
}

impl Links<'_> {
    fn create(&self, number: u32, last: bool, out: &mut Vec<u8>) {
        let echo = if self.echo { flag::ECHO } else { 0 };
        let flags = flag::CREATE | flag::EXCL | flag_if(last) | echo;
        let start = open(out, kind::NEWLINK, flags, number);
        put_text(out, IFLA_IFNAME, &format!("testa{number}"));
        put_group(out, self.group);
        if self.kind == "macvlan" {
            put(out, IFLA_LINK, &PARENT.to_ne_bytes());
        }
        let info = begin(out, IFLA_LINKINFO);
        put(out, IFLA_INFO_KIND, self.kind.as_bytes());
        let data = begin(out, IFLA_INFO_DATA);
        match self.kind {
            "veth" => {
                let peer = begin(out, VETH_INFO_PEER);
                out.extend_from_slice(&[0; 16]);
                put_text(out, IFLA_IFNAME, &format!("testb{number}"));
                put_group(out, self.group);
                end(out, peer);
            }
            "macvlan" => put(out, IFLA_MACVLAN_MODE, &MACVLAN_MODE_BRIDGE.to_ne_bytes()),
            "vxlan" => {
                put(out, IFLA_VXLAN_ID, &number.to_ne_bytes());
                put(out, IFLA_VXLAN_PORT, &VXLAN_PORT.to_be_bytes());
            }
            _ => {}
        }
        end(out, data);
        end(out, info);
        close(out, start);
    }
}

fn flag_if(last: bool) -> u16 {
    if last { flag::ACK } else { 0 }
}

fn put_group(out: &mut Vec<u8>, group: u32) {
    if group != 0 {
        put(out, IFLA_GROUP, &group.to_ne_bytes());
    }
}

/// `struct nlmsghdr` and an empty `struct ifinfomsg`.
fn open(out: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&(flags | flag::REQUEST).to_ne_bytes());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&[0; 4 + 16]);
    start
}

fn close(out: &mut [u8], start: usize) {
    let len = ((out.len() - start) as u32).to_ne_bytes();
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&len);
    }
}

fn put_text(out: &mut Vec<u8>, kind: u16, text: &str) {
    let start = begin(out, kind);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    end(out, start);
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let start = begin(out, kind);
    out.extend_from_slice(value);
    end(out, start);
}

fn begin(out: &mut Vec<u8>, kind: u16) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&kind.to_ne_bytes());
    start
}

fn end(out: &mut Vec<u8>, start: usize) {
    let len = ((out.len() - start) as u16).to_ne_bytes();
    if let Some(place) = out.get_mut(start..start + 2) {
        place.copy_from_slice(&len);
    }
    out.resize(out.len().next_multiple_of(4), 0);
}
