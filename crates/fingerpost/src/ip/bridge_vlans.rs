//! `bridge vlan`: VLANs of ports. Called by the table of commands.

use std::io::Write;
use std::ops::RangeInclusive;

use netlink::decode::{self, Operation};
use netlink::encode::{self, AtPort, Vlans};
use netlink::request::Dump;
use view::BridgeRow;

use super::bridge::{changed, number, request, shown, unknown};
use crate::ip::grammar::{begins, lists};
use crate::ip::listing::{Listing, each};
use crate::ip::session::Session;
use crate::ip::stop::Stop;
use crate::ip::usage;

/// Numbers of VLANs are below this (IEEE 802.1Q).
const VLANS: u16 = 4096;

/// `bridge vlan`.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((command, rest)) = words.split_first() else {
        return show(session, &[], out);
    };
    match command.as_str() {
        word if begins(word, "add") => change(session, Operation::New, rest),
        word if begins(word, "delete") => change(session, Operation::Delete, rest),
        word if lists(word) => show(session, rest, out),
        word if ["tunnelshow", "set", "global"]
            .iter()
            .any(|name| begins(word, name)) =>
        {
            Err(Stop::NotBuilt(format!("bridge vlan {word}")))
        }
        word if begins(word, "help") => Err(help()),
        word => Err(Stop::no_command(word, "bridge vlan")),
    }
}

fn help() -> Stop {
    Stop::wrong(usage::of_object(
        "bridge vlan",
        "show [ dev DEV ] [ vid VID ] | add | del dev DEV vid VID[-VID] [ tunnel_info id ID ] \
         [ pvid ] [ untagged ] [ self ] [ master ]",
    ))
}

fn show(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    if session.options.details > 0 || session.options.statistics > 0 {
        return Err(Stop::NotBuilt("-d or -s of vlan".to_owned()));
    }
    let (only, vlan) = shown(session, words)?;
    let mut listing = Listing::begin(session)?;
    listing.text("port              vlan-id  \n");
    each(session, &Dump::PortVlans, &mut |message| {
        let told = decode::port_vlans(message.payload).map_err(anyhow::Error::from)?;
        let is_asked = |link: u32| only.is_none_or(|only| only == link);
        let Some(told) = told.filter(|told| is_asked(told.link)) else {
            return Ok(());
        };
        let each = told.ranges.iter().flat_map(|range| {
            let flags = (range.is_pvid, range.untagged);
            (range.first..=range.last).map(move |vlan| (vlan, flags))
        });
        let shown = each.filter(|(number, _)| vlan == 0 || vlan == *number);
        let vlans: Vec<_> = shown
            .map(|(number, (is_pvid, untagged))| (number, number, is_pvid, untagged))
            .collect();
        if !vlans.is_empty() {
            listing.row(session, &BridgeRow::Vlans(told.link, &vlans));
        }
        Ok(())
    })?;
    listing.finish(session, out)
}

/// `bridge vlan add|del`.
fn change(session: &mut Session, operation: Operation, words: &[String]) -> Result<(), Stop> {
    let (mut device, mut numbers, mut tunnels) = (None, None, None);
    let (mut is_pvid, mut untagged) = (false, false);
    let mut at = AtPort::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(Stop::incomplete);
        match word.as_str() {
            "dev" => device = Some(value()?),
            "vid" => numbers = Some(range::<u16>(word, value()?)?),
            "self" => at.to_self = true,
            "master" => at.to_master = true,
            "pvid" => is_pvid = true,
            "untagged" => untagged = true,
            "tunnel_info" => {
                let id = value()?;
                if id != "id" {
                    return Err(unknown(id));
                }
                tunnels = Some(range::<u32>(word, value()?)?);
            }
            word if begins(word, "help") => return Err(help()),
            word => return Err(unknown(word)),
        }
    }
    let (Some(device), Some(numbers)) = (device, numbers) else {
        return Err(Stop::failed("Device and VLAN ID are required arguments."));
    };
    let link = changed(session, device)?;
    let (first, last) = (*numbers.start(), *numbers.end());
    if first >= VLANS {
        return Err(Stop::failed(format!("Invalid VLAN ID \"{first}\"")));
    }
    if let Some(tunnels) = &tunnels
        && tunnels.end().checked_sub(*tunnels.start())
            != Some(u32::from(last.saturating_sub(first)))
    {
        return Err(Stop::NotBuilt("tunnels as many as VLANs".to_owned()));
    }
    if first != last {
        if last >= VLANS || first > last {
            return Err(Stop::failed(format!(
                "Invalid VLAN range \"{first}-{last}\""
            )));
        }
        if is_pvid {
            return Err(Stop::failed("pvid cannot be configured for a vlan range"));
        }
    }
    let vlans = Vlans {
        numbers,
        is_pvid,
        untagged,
        tunnels,
    };
    session.apply(|sequence, out| {
        let request = request(operation, sequence);
        let _ = encode::bridge_vlans(out, &request, link, &vlans, at);
    })
}

/// A number, or two with `-` between.
fn range<T: std::str::FromStr + Copy>(word: &str, value: &str) -> Result<RangeInclusive<T>, Stop> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    Ok(number(word, first)?..=number(word, last)?)
}
