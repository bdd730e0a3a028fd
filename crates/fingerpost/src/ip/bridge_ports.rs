//! `bridge link`: ports and what they are set to. Called by the table of
//! commands.

use std::io::Write;

use netlink::decode::{self, Operation};
use netlink::encode::{self, AtPort};
use netlink::request::Dump;
use table::PortData;
use table::row::link::bridge::BridgePort;
use view::BridgeRow;

use super::bridge::{changed, number, request, unknown};
use crate::ip::grammar::{begins, lists};
use crate::ip::listing::{Listing, each};
use crate::ip::session::Session;
use crate::ip::stop::Stop;
use crate::ip::usage;

/// What `bridge link` says of an argument that is neither on nor off ends
/// with `-EINVAL`.
const NOT_ON_OR_OFF: u8 = 234;

/// `BR_STATE_…`
const STATES: [&str; 5] = [
    "disabled",
    "listening",
    "learning",
    "forwarding",
    "blocking",
];

/// `bridge link`.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((command, rest)) = words.split_first() else {
        return show(session, &[], out);
    };
    match command.as_str() {
        word if begins(word, "set") || begins(word, "change") => set(session, rest),
        word if lists(word) => show(session, rest, out),
        word if begins(word, "help") => Err(help()),
        word => Err(Stop::no_command(word, "bridge link")),
    }
}

fn help() -> Stop {
    Stop::wrong(usage::of_object(
        "bridge link",
        "show [ dev DEV ] | set dev DEV SETTING VALUE…",
    ))
}

fn show(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let mut only = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word != "dev" {
            return Err(unknown(word));
        }
        let name = rest.next().ok_or_else(Stop::incomplete)?;
        if only.is_some() {
            return Err(Stop::duplicate(word, name));
        }
        only = Some(session.index(name)?);
    }
    // What is not built may go to another program: rights are there still.
    if session.options.details > 0 {
        refuse_vlans(session)?;
    }
    let mut listing = Listing::begin(session)?;
    each(session, &Dump::BridgePorts, &mut |message| {
        let link = decode::link(message.payload).map_err(anyhow::Error::from)?;
        let port = decode::bridge_port(message.payload).map_err(anyhow::Error::from)?;
        if only.is_none_or(|only| only == link.index) {
            listing.row(session, &BridgeRow::Port(&link, port.as_deref()));
        }
        Ok(())
    })?;
    listing.finish(session, out)
}

/// Details of ports have their VLANs where the kernel has them.
fn refuse_vlans(session: &Session) -> Result<(), Stop> {
    let mut has_vlans = false;
    each(session, &Dump::PortVlans, &mut |message| {
        let vlans = decode::port_vlans(message.payload).map_err(anyhow::Error::from)?;
        has_vlans |= vlans.is_some_and(|vlans| !vlans.ranges.is_empty());
        Ok(())
    })?;
    match has_vlans {
        true => Err(Stop::NotBuilt("-d link, of ports with VLANs".to_owned())),
        false => Ok(()),
    }
}

/// `bridge link set`.
fn set(session: &mut Session, words: &[String]) -> Result<(), Stop> {
    let mut port = BridgePort::default();
    let mut at = AtPort::default();
    let mut device = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(Stop::incomplete);
        match word.as_str() {
            "dev" => device = Some(value()?),
            "self" => at.to_self = true,
            "master" => at.to_master = true,
            "nobackup_port" => port.backup_port = Some(0),
            "backup_port" => {
                let name = value()?;
                port.backup_port = Some(session.index(name).map_err(|stop| match stop {
                    Stop::Said { .. } => {
                        Stop::failed(format!("Error: device {name} does not exist"))
                    }
                    stop => stop,
                })?);
            }
            "cost" => port.cost = Some(number(word, value()?)?).filter(|cost| *cost != 0),
            "priority" => {
                let priority: i16 = number(word, value()?)?;
                port.priority = u16::try_from(priority).ok();
            }
            "mcast_router" => port.multicast_router = Some(number(word, value()?)?),
            "state" => port.state = Some(state(value()?)?),
            "hwmode" => {
                let mode = value()?;
                let modes = ["veb", "vepa"].iter().position(|name| name == mode);
                let wrong = || Stop::failed("Mode argument must be \"vepa\" or \"veb\".");
                (at.to_self, at.to_master) = (true, false);
                at.mode = Some(
                    modes
                        .and_then(|mode| mode.try_into().ok())
                        .ok_or_else(wrong)?,
                );
            }
            word => {
                let switch = switch(&mut port, word).ok_or_else(help)?;
                *switch = Some(on_off(word, value()?)?);
            }
        }
    }
    let device = device.ok_or_else(|| Stop::failed("Device is a required argument."))?;
    let link = changed(session, device)?;
    let settings = PortData::Bridge(Box::new(port));
    session.apply(|sequence, out| {
        let request = request(Operation::New, sequence);
        let _ = encode::bridge_port(out, &request, link, &settings, at);
    })
}

/// Where a switch is kept.
fn switch<'p>(port: &'p mut BridgePort, word: &str) -> Option<&'p mut Option<u8>> {
    Some(match word {
        "guard" => &mut port.guard,
        "hairpin" => &mut port.mode,
        "fastleave" => &mut port.fast_leave,
        "root_block" => &mut port.protect,
        "learning" => &mut port.learning,
        "learning_sync" => &mut port.learning_sync,
        "flood" => &mut port.unicast_flood,
        "mcast_flood" => &mut port.mcast_flood,
        "bcast_flood" => &mut port.bcast_flood,
        "mcast_to_unicast" => &mut port.mcast_to_ucast,
        "neigh_suppress" => &mut port.neigh_suppress,
        "vlan_tunnel" => &mut port.vlan_tunnel,
        "isolated" => &mut port.isolated,
        "locked" => &mut port.locked,
        _ => return None,
    })
}

fn on_off(word: &str, value: &str) -> Result<u8, Stop> {
    match value {
        "on" => Ok(1),
        "off" => Ok(0),
        other => Err(Stop::Said {
            status: NOT_ON_OR_OFF,
            text: format!(
                "Error: argument of \"{word}\" must be one of \"off\", \"on\", not \"{other}\""
            ),
        }),
    }
}

/// A state by its name or number.
fn state(value: &str) -> Result<u8, Stop> {
    let mut names = STATES.iter();
    let named = names.position(|name| *name == value);
    let named = named.and_then(|state| u8::try_from(state).ok());
    let read = named.or_else(|| value.parse().ok());
    read.ok_or_else(|| Stop::failed("Error: invalid STP port state"))
}
