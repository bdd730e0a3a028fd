//! Timers of bridges and their ports: a dump of the bridges alone, and one of
//! the ports without the rest of their links. Called by the mirror's sampler
//! only.

use netlink::decode::{bridge_port_timers, link_index, unannounced};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::row::counters::{PortTimers, Unannounced};

use super::sampling::{Meanwhile, dump_meanwhile};
use crate::error::Error;
use crate::namespace::Namespace;

/// Timers by link. Some 8 µs a bridge, 4 a port. Asked for where there is a
/// bridge: a kernel that knows no such kind answers with all links.
pub(super) fn read(
    namespace: &Namespace,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Vec<(u32, Unannounced)>, Error> {
    let mut all = Vec::new();
    let bridges = Dump::LinksOfKind { kind: "bridge" };
    let mut each = |message: &Message<'_>| {
        let link = link_index(message.payload).filter(|_| message.kind == kind::NEWLINK);
        let found = link.map(|link| (link, unannounced(message.payload)));
        all.extend(found.filter(|(_, found)| found.bridge.is_some()));
    };
    dump_meanwhile(namespace, &bridges, &mut each, meanwhile)?;
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

fn of_port(port: PortTimers) -> Unannounced {
    Unannounced {
        port: Some(port),
        ..Unannounced::default()
    }
}
