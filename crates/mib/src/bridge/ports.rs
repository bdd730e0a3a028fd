//! The ports of a bridge by their numbers.

use snmp::oid::Name;
use table::row::link::bridge::BridgePort;
use table::{Link, PortData, Tables};

use super::shown;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// A port of a bridge.
#[derive(Clone, Copy)]
pub(crate) struct Port<'a> {
    pub(super) number: u16,
    pub(super) link: &'a Link,
    pub(super) settings: &'a BridgePort,
}

/// A link as a port of a bridge.
pub(super) fn port_of(link: &Link) -> Option<Port<'_>> {
    match &link.slave_data {
        PortData::Bridge(settings) => Some(Port {
            number: settings.no?,
            link,
            settings,
        }),
        _ => None,
    }
}

/// The number of a link as a port; 0, as for the bridge itself, where it is
/// none.
pub(super) fn number_of(tables: &Tables, link: u32) -> u16 {
    let port = tables.links.get(link).and_then(|link| port_of(link));
    port.map_or(0, |port| port.number)
}

/// The ports of the bridge shown from an index on. A bridge has 1,023 at
/// most (`BR_MAX_PORTS`): they are put in order for each seek.
pub(super) fn from<'a>(
    objects: &Objects<'a>,
    at: &[u32],
) -> impl Iterator<Item = Port<'a>> + use<'a> {
    let first = Seek::new(at).number(u16::MAX.into());
    let links = &objects.tables().links;
    let bridge = shown(objects).map(|(link, _)| link.index);
    let members = bridge
        .into_iter()
        .flat_map(|bridge| links.of_master(bridge));
    let mut ports: Vec<Port<'a>> = members
        .filter_map(|link| port_of(link))
        .filter(|port| u32::from(port.number) >= first)
        .collect();
    ports.sort_unstable_by_key(|port| port.number);
    ports.into_iter()
}

pub(super) fn put_index(name: &mut Name, port: &Port<'_>) {
    index::put(name, port.number.into());
}
