//! How IP is set on links, as far as rows of links do not tell it: three
//! dumps. Called by the mirror's worker only.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use netlink::decode::{neighbour_times, settings};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::{AF_INET, AF_INET6, IpInterface};

use crate::dump::dump;
use crate::error::Error;
use crate::namespace::Namespace;

/// How IP is set, by link.
pub(super) fn read(
    namespace: &Namespace,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Vec<(u32, IpInterface)>, Error> {
    let mut links: BTreeMap<u32, IpInterface> = BTreeMap::new();
    for family in [AF_INET, AF_INET6] {
        list(
            namespace,
            &Dump::NeighbourTables { family },
            &mut |message| {
                if message.kind != kind::NEWNEIGHTBL {
                    return;
                }
                if let Ok(Some((link, times))) = neighbour_times(message.payload) {
                    let of = links.entry(link).or_default();
                    let times = Some(times);
                    if family == AF_INET {
                        of.v4 = times;
                    } else {
                        of.v6 = times;
                    }
                }
            },
        )?;
        meanwhile()?;
    }
    let family = AF_INET6;
    list(namespace, &Dump::Settings { family }, &mut |message| {
        if message.kind != kind::NEWNETCONF {
            return;
        }
        if let Ok(Some(told)) = settings(message.payload)
            && let (Some(link), Some(forwards)) = (told.link, told.forwards)
        {
            links.entry(link).or_default().forwards_v6 = forwards;
        }
    })?;
    Ok(links.into_iter().collect())
}

/// What a kernel without that family refuses is nothing.
fn list(
    namespace: &Namespace,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>),
) -> Result<(), Error> {
    let listed = dump(namespace, request, &mut |message| {
        each(message);
        ControlFlow::Continue(())
    });
    match listed {
        Ok(_) | Err(Error::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
