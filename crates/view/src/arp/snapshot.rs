//! A listing from a snapshot: what a daemon answers.

use std::io::Write;
use std::net::IpAddr;

use table::{Neighbour, NeighbourAges, Tables};

use super::{ArpQuestion, Listing};
use crate::answer_error::AnswerError;
use crate::selection::BadQuestion;

/// Writes the entries; gives the number found. O(log n + rows returned) for
/// a host or a device in the BSD styles; else, as net-tools tells how many
/// entries there are in all, O(neighbours). With own addresses, a walk of
/// the addresses comes on top.
pub fn answer(
    question: &ArpQuestion,
    tables: &Tables,
    now_millis: u64,
    out: impl Write,
) -> Result<u64, AnswerError> {
    // To net-tools a link that is not there is one without entries.
    let link = match &question.device {
        Some(device) if !question.is_linux() => Some(
            tables
                .links
                .by_name(device)
                .ok_or_else(|| BadQuestion::NoLink(device.clone()))?,
        ),
        _ => None,
    };
    let device = link.map(|link| &*link.name);
    let mut listing = Listing::new(question, device, false, out);
    if question.own {
        for address in tables.addresses.iter() {
            let link = tables.links.get(address.link).map(|link| &**link);
            listing.own(address, link)?;
        }
    }
    let mut list = |row: &Neighbour| {
        let link = tables.links.get(row.link).map(|link| &**link);
        listing.neighbour(row, link, || ages(tables, row, now_millis))
    };
    let host = question.host.as_ref().filter(|_| !question.is_linux());
    match (host, link) {
        (Some(host), _) => tables
            .neighbours
            .by_address(IpAddr::V4(host.address))
            .try_for_each(|row| list(row))?,
        (None, Some(link)) => tables
            .neighbours
            .of_link(link.index)
            .try_for_each(|row| list(row))?,
        (None, None) => tables.neighbours.iter().try_for_each(|row| list(row))?,
    }
    Ok(listing.end()?)
}

/// Ages as they are by now, if nothing was heard since they were sampled.
fn ages(tables: &Tables, row: &Neighbour, now_millis: u64) -> Option<NeighbourAges> {
    let samples = &tables.neighbour_samples;
    let mut ages = samples.get(&row.key())?.ages;
    let since = samples.age_millis(now_millis).unwrap_or(0);
    ages.confirmed_millis = ages.confirmed_millis.saturating_add(since);
    ages.used_millis = ages.used_millis.saturating_add(since);
    Some(ages)
}
