//! A link-layer address of any length the kernel allows.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The kernel's `MAX_ADDR_LEN`.
const MAX_BYTES: usize = 32;

/// A link-layer address ("lladdr"): six octets on Ethernet, four on an
/// IPv4 tunnel, twenty on InfiniBand, none on some links.
#[derive(Clone, Copy)]
pub struct LinkLayerAddress {
    len: u8,
    octets: [u8; MAX_BYTES],
}

impl LinkLayerAddress {
    /// No address.
    pub const NONE: Self = Self {
        len: 0,
        octets: [0; MAX_BYTES],
    };

    /// From octets; `None` when there are more than 32.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut address = Self::NONE;
        address
            .octets
            .get_mut(..octets.len())?
            .copy_from_slice(octets);
        address.len = octets.len() as u8;
        Some(address)
    }

    /// The octets.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }

    /// Whether there is no address.
    pub fn is_none(&self) -> bool {
        self.len == 0
    }
}

impl Default for LinkLayerAddress {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for LinkLayerAddress {
    fn eq(&self, other: &Self) -> bool {
        self.octets() == other.octets()
    }
}

impl Eq for LinkLayerAddress {}

impl PartialOrd for LinkLayerAddress {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LinkLayerAddress {
    fn cmp(&self, other: &Self) -> Ordering {
        self.octets().cmp(other.octets())
    }
}

impl Hash for LinkLayerAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.octets().hash(state);
    }
}

/// Lower-case hexadecimal octets with colons, as `ip` prints them.
impl fmt::Display for LinkLayerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, octet) in self.octets().iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{octet:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for LinkLayerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_ip_does_and_refuses_more_than_32_octets() {
        let address = LinkLayerAddress::new(&[0, 0x0c, 0x29, 0x65, 0x4d, 0x48]).unwrap();
        assert_eq!(address.to_string(), "00:0c:29:65:4d:48");
        assert_eq!(LinkLayerAddress::new(&[]).unwrap(), LinkLayerAddress::NONE);
        assert!(LinkLayerAddress::new(&[0; 32]).is_some());
        assert!(LinkLayerAddress::new(&[0; 33]).is_none());
    }
}
