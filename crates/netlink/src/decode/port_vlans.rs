//! VLANs of a bridge's port: `IFLA_AF_SPEC` of a link message of
//! `AF_BRIDGE`, as asked for by [`crate::request::Dump::PortVlans`].

use super::{link_of, split};
use crate::attribute::Attribute;
use crate::malformed::Malformed;

const MESSAGE: &str = "VLANs of a bridge's port";
/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;

const IFLA_MASTER: u16 = 10;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_BRIDGE_VLAN_INFO: u16 = 2;

/// `BRIDGE_VLAN_INFO_…`, `linux/if_bridge.h`.
const PVID: u16 = 1 << 1;
const UNTAGGED: u16 = 1 << 2;
const RANGE_BEGIN: u16 = 1 << 3;
const RANGE_END: u16 = 1 << 4;

/// The VLANs of a port, or of a bridge itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortVlans {
    /// The port; the bridge, if they are its own.
    pub link: u32,
    /// The bridge.
    pub bridge: u32,
    /// Ranges of VLANs, both ends included.
    pub ranges: Vec<VlanRange>,
}

/// VLANs that a port treats alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// Frames leave without a tag.
    pub untagged: bool,
    /// Untagged frames that come in are of this VLAN.
    pub is_pvid: bool,
}

/// Payload of `RTM_NEWLINK` of `AF_BRIDGE`; `None`: it tells of no bridge.
/// O(bytes).
pub fn port_vlans(payload: &[u8]) -> Result<Option<PortVlans>, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, _, _, i0, i1, i2, i3, ..] = *header;
    let mut told = PortVlans {
        link: link_of([i0, i1, i2, i3], MESSAGE, "ifi_index")?,
        ..PortVlans::default()
    };
    let mut bridge = None;
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            IFLA_MASTER => bridge = Some(attribute.u32()?),
            IFLA_AF_SPEC => told.ranges = ranges(&attribute)?,
            _ => {}
        }
    }
    Ok(bridge.map(|bridge| PortVlans { bridge, ..told }))
}

fn ranges(spec: &Attribute<'_>) -> Result<Vec<VlanRange>, Malformed> {
    let mut all = Vec::new();
    let mut begun = None;
    let mut inside = spec.nested();
    while let Some(attribute) = inside.step()? {
        if attribute.kind != IFLA_BRIDGE_VLAN_INFO {
            continue;
        }
        let [f0, f1, v0, v1] = attribute.array::<4>()?;
        let flags = u16::from_ne_bytes([f0, f1]);
        let vlan = u16::from_ne_bytes([v0, v1]) & 0xfff;
        if flags & RANGE_BEGIN != 0 {
            begun = Some(vlan);
            continue;
        }
        let first = begun
            .take()
            .filter(|first| flags & RANGE_END != 0 && *first <= vlan);
        all.push(VlanRange {
            first: first.unwrap_or(vlan),
            last: vlan,
            untagged: flags & UNTAGGED != 0,
            is_pvid: flags & PVID != 0,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index 5, bridge 4; VLAN 1 untagged and of what comes untagged, 10 to
    /// 20 tagged.
    fn message() -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[4] = 5;
        bytes.extend([8, 0, 10, 0, 4, 0, 0, 0]);
        bytes.extend([28, 0, 26, 0x80]);
        for (flags, vlan) in [(6, 1), (8, 10), (16, 20)] {
            bytes.extend([8, 0, 2, 0, flags, 0, vlan, 0]);
        }
        bytes
    }

    #[test]
    fn ranges_are_read_whole() {
        let range = |first, last, is_plain: bool| VlanRange {
            first,
            last,
            untagged: is_plain,
            is_pvid: is_plain,
        };
        let expected = PortVlans {
            link: 5,
            bridge: 4,
            ranges: vec![range(1, 1, true), range(10, 20, false)],
        };
        assert_eq!(port_vlans(&message()), Ok(Some(expected)));
        assert_eq!(port_vlans(&[0; HEADER]), Ok(None));
    }

    #[test]
    fn no_cut_and_no_changed_byte_does_harm() {
        let whole = message();
        for len in 0..whole.len() {
            let _ = port_vlans(&whole[..len]);
        }
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = port_vlans(&changed);
            }
        }
    }
}
