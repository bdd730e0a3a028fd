//! How IP is set on links, as far as rows of links do not tell it: three
//! dumps. Called by the mirror's worker only.

use std::collections::BTreeMap;

use netlink::decode::{neighbour_times, settings};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::{AF_INET, AF_INET6, IpInterface};

use super::sampling::{Meanwhile, dump_meanwhile};
use crate::error::Error;
use crate::namespace::Namespace;

/// How IP is set, by link.
pub(super) fn read(
    namespace: &Namespace,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Vec<(u32, IpInterface)>, Error> {
    let mut links: BTreeMap<u32, IpInterface> = BTreeMap::new();
    for family in [AF_INET, AF_INET6] {
        let request = Dump::NeighbourTables { family };
        let mut each = |message: &Message<'_>| times(&mut links, family, message);
        dump_meanwhile(namespace, &request, &mut each, meanwhile)?;
    }
    let request = Dump::Settings { family: AF_INET6 };
    let mut each = |message: &Message<'_>| forwarding(&mut links, message);
    dump_meanwhile(namespace, &request, &mut each, meanwhile)?;
    Ok(links.into_iter().collect())
}

fn times(links: &mut BTreeMap<u32, IpInterface>, family: u8, message: &Message<'_>) {
    if message.kind != kind::NEWNEIGHTBL {
        return;
    }
    // What cannot be read is not known; the others are.
    let Ok(Some((link, times))) = neighbour_times(message.payload) else {
        return;
    };
    let of = links.entry(link).or_default();
    if family == AF_INET {
        of.v4 = Some(times);
    } else {
        of.v6 = Some(times);
    }
}

fn forwarding(links: &mut BTreeMap<u32, IpInterface>, message: &Message<'_>) {
    if message.kind != kind::NEWNETCONF {
        return;
    }
    if let Ok(Some(told)) = settings(message.payload)
        && let (Some(link), Some(forwards)) = (told.link, told.forwards)
    {
        links.entry(link).or_default().forwards_v6 = forwards;
    }
}
