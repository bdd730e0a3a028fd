//! `ip nexthop bucket`: which next hop each bucket of a resilient group leads
//! to. Called by the table of commands.

use std::io::Write;

use netlink::decode;
use netlink::request::{BucketFilter, Dump};
use view::BridgeRow;

use super::grammar::Key;
use super::grammar::{self, Told, Value, begins, lists, whole};
use super::listing::{Listing, each};
use super::session::Session;
use super::stop::{REFUSED, Stop, reason};
use super::usage;

const NOT_A_DEVICE: Value = Value::LinkOr("Device does not exist\n");

const LISTED: &[Key] = &[
    whole("dev", NOT_A_DEVICE),
    whole("master", NOT_A_DEVICE),
    whole("vrf", Value::Vrf("Invalid VRF\n")),
    whole("id", Value::Number("invalid id value")),
    whole("nhid", Value::Number("invalid id value")),
];

const GOT: &[Key] = &[
    whole("id", Value::Number("invalid id value")),
    whole("index", Value::Number("invalid index value")),
];

/// `ip nexthop bucket list|get`.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((command, rest)) = words.split_first() else {
        return list(session, &[], out);
    };
    match command.as_str() {
        word if lists(word) => list(session, rest, out),
        word if begins(word, "get") => get(session, rest, out),
        word if begins(word, "help") => Err(help()),
        word => Err(Stop::no_command(word, "ip nexthop")),
    }
}

fn help() -> Stop {
    Stop::wrong(usage::of_object(
        "ip nexthop bucket",
        "list [ id ID ] [ nhid ID ] [ dev DEV ] | get id ID index INDEX",
    ))
}

/// A word that stands alone.
fn alone(told: &Told<'_>) -> Stop {
    match begins(told.said, "help") {
        true => help(),
        false => Stop::argument(told.said, ""),
    }
}

fn list(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let mut filter = BucketFilter {
        family: session.options.family.unwrap_or_default(),
        ..BucketFilter::default()
    };
    for told in grammar::read(LISTED, words, session)? {
        let number = grammar::number(told.value);
        match told.key.map(|key| key.name) {
            Some("id") => filter.group = number,
            Some("nhid") => filter.nexthop = number,
            Some("dev") => filter.link = Some(session.index(told.value)?),
            Some(_) => filter.master = Some(session.index(told.value)?),
            None => return Err(alone(&told)),
        }
    }
    let mut listing = Listing::begin(session)?;
    each(session, &Dump::NexthopBuckets(filter), &mut |message| {
        let bucket = decode::nexthop_bucket(message.payload).map_err(anyhow::Error::from)?;
        listing.row(session, &BridgeRow::Bucket(&bucket));
        Ok(())
    })?;
    listing.finish(session, out)
}

fn get(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let (mut group, mut index) = (None, None);
    for told in grammar::read(GOT, words, session)? {
        let number = grammar::number(told.value);
        match told.key.map(|key| key.name) {
            Some("id") => group = number,
            Some(_) => index = number,
            None => return Err(alone(&told)),
        }
    }
    let (Some(group), Some(index)) = (group, index) else {
        return Err(help());
    };
    let place = u16::try_from(index)
        .map_err(|_| Stop::argument(&index.to_string(), "invalid index value"))?;
    let bucket = match linux::once::nexthop_bucket(&session.namespace, group, place) {
        Err(linux::Error::Refused {
            source, message, ..
        }) => {
            let text = match message {
                Some(message) => format!("Error: {message}"),
                None => format!("RTNETLINK answers: {}", reason(&source)),
            };
            return Err(Stop::Said {
                status: REFUSED,
                text,
            });
        }
        bucket => bucket?,
    };
    let mut listing = Listing::begin(session)?;
    listing.row(session, &BridgeRow::Bucket(&bucket));
    listing.finish(session, out)
}
