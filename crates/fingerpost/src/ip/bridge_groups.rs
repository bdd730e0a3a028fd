//! `bridge mdb`: multicast groups. Called by the table of commands.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink::decode::{self, Operation};
use netlink::encode;
use netlink::message::flag as request_flag;
use netlink::request::Dump;
use table::row::multicast_group::{BridgeGroups, Group, MulticastGroup};
use view::BridgeRow;

use super::bridge::{number, request, shown, unknown};
use crate::ip::grammar::{begins, lists};
use crate::ip::listing::{Listing, each};
use crate::ip::session::Session;
use crate::ip::stop::Stop;
use crate::ip::usage;

/// `bridge mdb`.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((command, rest)) = words.split_first() else {
        return show(session, &[], out);
    };
    match command.as_str() {
        word if begins(word, "add") => change(session, Operation::New, rest),
        word if begins(word, "delete") => change(session, Operation::Delete, rest),
        word if lists(word) => show(session, rest, out),
        word if begins(word, "help") => Err(help()),
        word => Err(Stop::no_command(word, "bridge mdb")),
    }
}

fn help() -> Stop {
    Stop::wrong(usage::of_object(
        "bridge mdb",
        "show [ dev DEV ] [ vid VID ] | add | del dev DEV port PORT grp GROUP [ src SOURCE ] \
         [ permanent | temp ] [ vid VID ]",
    ))
}

fn show(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let (only, vlan) = shown(session, words)?;
    let mut all: Vec<BridgeGroups> = Vec::new();
    each(session, &Dump::BridgeGroups, &mut |message| {
        let told = decode::bridge_groups(message.payload).map_err(anyhow::Error::from)?;
        all.extend(Some(told).filter(|told| only.is_none_or(|only| only == told.bridge)));
        Ok(())
    })?;
    let mut listing = Listing::begin(session)?;
    listing.json("{\"mdb\":[");
    for told in &all {
        for group in &told.groups {
            if vlan == 0 || group.vlan == vlan {
                listing.row(session, &BridgeRow::Group(told.bridge, group));
            }
        }
    }
    listing.json("],\"router\":{");
    if listing.output().details {
        for told in all.iter().filter(|told| !told.routers.is_empty()) {
            listing.row(session, &BridgeRow::Routers(told.bridge, &told.routers));
        }
    }
    listing.json("}}");
    listing.finish(session, out)
}

/// `bridge mdb add|del`.
fn change(session: &mut Session, operation: Operation, words: &[String]) -> Result<(), Stop> {
    let (mut device, mut port, mut group, mut source) = (None, None, None, None);
    let (mut is_permanent, mut vlan) = (false, 0);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(Stop::incomplete);
        match word.as_str() {
            "dev" => device = Some(value()?),
            "port" => port = Some(value()?),
            "grp" => group = Some(value()?),
            "src" => source = Some(value()?),
            "vid" => vlan = number(word, value()?)?,
            "permanent" => is_permanent |= operation == Operation::New,
            "temp" => {}
            word if begins(word, "help") => return Err(help()),
            word => return Err(unknown(word)),
        }
    }
    let (Some(device), Some(port), Some(group)) = (device, port, group) else {
        return Err(Stop::failed(
            "Device, group address and port name are required arguments.",
        ));
    };
    let bridge = session.index(device)?;
    let row = MulticastGroup {
        port: session.index(port)?,
        group: address(group)?,
        source: source.map(|source| source_of(source)).transpose()?,
        is_permanent,
        flags: 0,
        vlan,
        details: None,
    };
    session.apply(|sequence, out| {
        let mut request = request(operation, sequence);
        if operation == Operation::New {
            request.flags = request_flag::CREATE | request_flag::EXCL;
        }
        let _ = encode::multicast_group(out, &request, bridge, &row);
    })
}

/// An address as `inet_pton(3)` reads it.
fn ip(text: &str) -> Option<IpAddr> {
    let v4 = text.parse::<Ipv4Addr>().map(IpAddr::V4);
    v4.or_else(|_| text.parse::<Ipv6Addr>().map(IpAddr::V6))
        .ok()
}

fn address(text: &str) -> Result<Group, Stop> {
    if let Some(address) = ip(text) {
        return Ok(Group::Ip(address));
    }
    let lladdr = words::line::lladdr(text).ok();
    let octets = lladdr.and_then(|address| address.octets().try_into().ok());
    octets
        .map(Group::LinkLayer)
        .ok_or_else(|| Stop::failed(format!("Invalid address \"{text}\"")))
}

fn source_of(text: &str) -> Result<IpAddr, Stop> {
    ip(text).ok_or_else(|| Stop::failed(format!("Invalid source address \"{text}\"")))
}
