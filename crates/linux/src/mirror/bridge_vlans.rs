//! VLANs of bridges and their ports: one dump. Called by the mirror's worker
//! only.

use std::collections::BTreeMap;

use netlink::decode::{PortVlans, port_vlans};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::{BridgeVlan, Host, Links, PortData, Sample};

use super::sampling::{Meanwhile, dump_meanwhile};
use crate::error::Error;
use crate::namespace::Namespace;

/// The VLANs of bridges' ports, in ranges; none on a kernel without bridges.
pub(super) fn read(
    namespace: &Namespace,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Vec<PortVlans>, Error> {
    let mut all = Vec::new();
    let mut each = |message: &Message<'_>| {
        if message.kind == kind::NEWLINK {
            // What cannot be read has none; the others have theirs.
            all.extend(port_vlans(message.payload).ok().flatten());
        }
    };
    dump_meanwhile(namespace, &Dump::PortVlans, &mut each, meanwhile)?;
    Ok(all)
}

/// Puts them where readers see them: by bridge and VLAN, the ports by their
/// numbers.
pub(super) fn put(told: &[PortVlans], links: &Links, now_millis: u64, host: &mut Host) {
    let mut vlans: BTreeMap<(u32, u16), BridgeVlan> = BTreeMap::new();
    let mut untagged = Vec::new();
    for port in told {
        let pvid = port.ranges.iter().find(|range| range.is_pvid);
        untagged.extend(pvid.map(|range| (port.link, range.first)));
        let number = port_number(links, port.link);
        for range in &port.ranges {
            for vlan in range.first..=range.last {
                let of = vlans.entry((port.bridge, vlan)).or_default();
                // The bridge itself has no port.
                if let Some(number) = number {
                    of.add(number, range.untagged);
                }
            }
        }
    }
    host.bridge_vlans = Sample::new(now_millis, vlans.into_iter().collect()).into();
    host.port_vlans = Sample::new(now_millis, untagged).into();
}

fn port_number(links: &Links, port: u32) -> Option<u16> {
    match &links.get(port)?.slave_data {
        PortData::Bridge(settings) => settings.no,
        _ => None,
    }
}
