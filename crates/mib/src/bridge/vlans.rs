//! dot1qBase and dot1qVlan: the VLANs of a bridge that filters them, as last
//! sampled; none of one that does not.

use snmp::Value;
use snmp::oid::Name;
use table::BridgeVlan;

use super::ports::{self, Port};
use super::shown;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

/// VLANs that a bridge may have (802.1Q), and the last of their numbers.
const MOST: u32 = 4_094;

/// The bridge shown, if it filters VLANs.
pub(super) fn filtering(objects: &Objects<'_>) -> Option<u32> {
    let (link, bridge) = shown(objects)?;
    (bridge.vlan_filtering? != 0).then_some(link.index)
}

/// A VLAN and its ports.
type Row<'a> = (u16, &'a BridgeVlan);

/// The VLANs of the bridge shown from a number on. A seek, then O(1) a row.
fn rows<'a>(objects: &Objects<'a>, first: u32) -> impl Iterator<Item = Row<'a>> + use<'a> {
    let sampled = &objects.tables().host.bridge_vlans;
    let bridge = filtering(objects);
    let first = first.min(u16::MAX.into()) as u16;
    bridge.into_iter().flat_map(move |bridge| {
        let all = sampled.from(&(bridge, first));
        all.take_while(move |((of, _), _)| *of == bridge)
            .map(|((_, vlan), ports)| (*vlan, ports))
    })
}

/// dot1qVlanVersionNumber (1), dot1qMaxVlanId (2), dot1qMaxSupportedVlans
/// (3), dot1qNumVlans (4), dot1qGvrpStatus (5).
pub(crate) fn vlan_base<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    filtering(objects)?;
    Some(match sub {
        1 => Value::Integer(1),
        2 => integer(MOST),
        3 => Value::Gauge32(MOST),
        4 => Value::Gauge32(rows(objects, 0).count() as u32),
        // disabled(2): the kernel's bridge has none.
        _ => Value::Integer(2),
    })
}

/// dot1qVlanNumDeletes (1): of dynamic VLANs, of which there are none.
pub(crate) fn vlan_deletions<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    filtering(objects).map(|_| Value::Counter32(0))
}

/// dot1qVlanCurrentTable. All rows are of time mark 0, as old as the agent.
pub(crate) struct CurrentVlanTable;

impl Rows for CurrentVlanTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1];
    const COLUMNS: &'static [u32] = &[3, 4, 5, 6, 7];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        let mut seek = Seek::new(index);
        seek.fixed(0);
        rows(objects, seek.number(u32::MAX))
    }

    fn index((vlan, _): &Row<'_>, name: &mut Name) {
        index::put(name, 0);
        index::put(name, (*vlan).into());
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (vlan, ports): &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            3 => Value::Gauge32((*vlan).into()),
            4 => Value::OctetString(&ports.egress),
            5 => Value::OctetString(&ports.untagged),
            // permanent(2)
            6 => Value::Integer(2),
            _ => Value::TimeTicks(0),
        })
    }
}

/// dot1qVlanStaticTable. VLANs have no names here.
pub(crate) struct StaticVlanTable;

impl Rows for StaticVlanTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        rows(objects, Seek::new(index).number(u32::MAX))
    }

    fn index((vlan, _): &Row<'_>, name: &mut Name) {
        index::put(name, (*vlan).into());
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (_, ports): &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 | 3 => Value::OctetString(&[]),
            2 => Value::OctetString(&ports.egress),
            4 => Value::OctetString(&ports.untagged),
            // active(1)
            _ => Value::Integer(1),
        })
    }
}

/// dot1qPortVlanTable: which VLAN untagged frames are of.
pub(crate) struct PortVlanTable;

impl Rows for PortVlanTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1];
    const COLUMNS: &'static [u32] = &[1];
    type Row<'a> = Port<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Port<'a>> {
        let is_filtering = filtering(objects).is_some();
        let ports = is_filtering.then(|| ports::from(objects, index));
        ports.into_iter().flatten()
    }

    fn index(port: &Port<'_>, name: &mut Name) {
        ports::put_index(name, port);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        _: u32,
        port: &'r Port<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let untagged = &objects.tables().host.port_vlans;
        let vlan = untagged.get(&port.link.index)?;
        Some(Value::Gauge32((*vlan).into()))
    }
}
