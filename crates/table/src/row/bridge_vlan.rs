//! VLANs of bridges that filter them.

/// A VLAN of a bridge. Port lists are those of RFC 4363: a bit a port, that
/// of port 1 the highest of the first octet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BridgeVlan {
    /// Ports whose frames of the VLAN leave.
    pub egress: Vec<u8>,
    /// Of these, those where they leave without a tag.
    pub untagged: Vec<u8>,
}

impl BridgeVlan {
    /// Takes a port in. Ports have numbers from 1 on.
    pub fn add(&mut self, port: u16, is_untagged: bool) {
        set(&mut self.egress, port);
        if is_untagged {
            set(&mut self.untagged, port);
        }
    }
}

fn set(list: &mut Vec<u8>, port: u16) {
    let Some(bit) = port.checked_sub(1) else {
        return;
    };
    let at = usize::from(bit / 8);
    if list.len() <= at {
        list.resize(at + 1, 0);
    }
    list[at] |= 0x80 >> (bit % 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_port_is_the_highest_bit_of_the_first_octet() {
        let mut vlan = BridgeVlan::default();
        for (port, untagged) in [(1, true), (8, false), (9, true), (0, true)] {
            vlan.add(port, untagged);
        }
        assert_eq!(vlan.egress, [0x81, 0x80]);
        assert_eq!(vlan.untagged, [0x80, 0x80]);
    }
}
