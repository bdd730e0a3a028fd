//! Timers of bridges and their ports: a dump of the bridges alone, and one of
//! the ports without the rest of their links. Called by the mirror's sampler
//! only.

use netlink::decode::{bridge_port_timers, link_index, unannounced};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::row::counters::{PortTimers, Unannounced};

use super::sampling::{Meanwhile, ask_meanwhile, dump_meanwhile};
use crate::dump::SEQUENCE;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::Socket;

/// Timers by link. Some 4 µs a bridge, as much a port. Asked for where there
/// is a bridge: a kernel that knows no such kind answers with all links.
pub(super) fn read(
    namespace: &Namespace,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Vec<(u32, Unannounced)>, Error> {
    let mut all = match of_bridges(namespace, true, meanwhile) {
        // One of them takes more than a page.
        Err(Error::Refused { .. }) => match of_bridges(namespace, false, meanwhile) {
            Err(Error::Refused { .. }) => Vec::new(),
            other => other?,
        },
        other => other?,
    };
    let mut each = |message: &Message<'_>| {
        if message.kind == kind::NEWLINK {
            // What cannot be read has none; the others have theirs.
            let port = bridge_port_timers(message.payload).ok().flatten();
            all.extend(port.map(|(link, port)| (link, of_port(port))));
        }
    };
    dump_meanwhile(namespace, &Dump::BridgePorts, &mut each, meanwhile)?;
    Ok(all)
}

/// Those of the bridges, asked for in one of the two ways.
fn of_bridges(
    namespace: &Namespace,
    counters: bool,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Vec<(u32, Unannounced)>, Error> {
    let mut all = Vec::new();
    let mut request = Vec::with_capacity(128);
    let kind = "bridge";
    Dump::LinksOfKind { kind, counters }.encode(SEQUENCE, &mut request);
    let mut each = |message: &Message<'_>| {
        let link = link_index(message.payload).filter(|_| message.kind == kind::NEWLINK);
        let found = link.map(|link| (link, unannounced(message.payload)));
        all.extend(found.filter(|(_, found)| found.bridge.is_some()));
    };
    ask_meanwhile(&Socket::open(namespace)?, &request, &mut each, meanwhile)?;
    Ok(all)
}

fn of_port(port: PortTimers) -> Unannounced {
    Unannounced {
        port: Some(port),
        ..Unannounced::default()
    }
}
