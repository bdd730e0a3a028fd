//! `OPEN`: what one side of a session can do (RFC 4271 §4.2, RFC 5492).

use std::net::Ipv4Addr;

use crate::Bad;
use crate::bytes::Bytes;
use crate::nlri::unicast;

/// What an `OPEN` says, as far as it changes how routes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// The AS: of four bytes, where it says that (RFC 6793).
    pub asn: u32,
    /// The BGP identifier.
    pub id: Ipv4Addr,
    /// Whether it takes part in IPv4 and IPv6 unicast (RFC 4760 §8).
    pub families: [bool; 2],
    /// AS numbers of four bytes.
    pub has_four_byte_as: bool,
    /// Whether it takes several paths of a prefix (RFC 7911 §4): of IPv4,
    /// of IPv6.
    pub receives_paths: [bool; 2],
    /// Whether it tells several.
    pub sends_paths: [bool; 2],
}

/// Codes of capabilities (IANA, "Capability Codes").
mod code {
    pub const MULTIPROTOCOL: u8 = 1;
    pub const FOUR_BYTE_AS: u8 = 65;
    pub const ADD_PATH: u8 = 69;
}

/// Of optional parameters the one that holds capabilities.
const CAPABILITIES: u8 = 2;
/// The parameters are longer than a byte can say (RFC 9072).
const EXTENDED: u8 = 255;
const OPEN: &str = "an OPEN";
const PARAMETER: &str = "a parameter of an OPEN";
const CAPABILITY: &str = "a capability of an OPEN";

impl Open {
    /// Reads one without its header.
    pub fn read(body: &[u8]) -> Result<Self, Bad> {
        let mut bytes = Bytes(body);
        let version = bytes.u8(OPEN)?;
        if version != 4 {
            return Err(Bad::Value {
                what: "the version of an OPEN",
                value: version.into(),
            });
        }
        let asn = bytes.u16(OPEN)?.into();
        // How long it waits for a sign of life.
        bytes.u16(OPEN)?;
        let mut open = Self {
            asn,
            id: bytes.u32(OPEN)?.into(),
            families: [false; 2],
            has_four_byte_as: false,
            receives_paths: [false; 2],
            sends_paths: [false; 2],
        };
        let has_families = open.parameters(bytes)?;
        // Who names none speaks of IPv4.
        open.families[0] |= !has_families;
        Ok(open)
    }

    /// Reads all parameters; whether families are named, of any kind.
    fn parameters(&mut self, mut bytes: Bytes<'_>) -> Result<bool, Bad> {
        let mut len = usize::from(bytes.u8(OPEN)?);
        // Any length but none may stand before that.
        let is_extended = len != 0 && bytes.0.first() == Some(&EXTENDED);
        if is_extended {
            bytes.u8(OPEN)?;
            len = bytes.u16(OPEN)?.into();
        }
        let mut all = Bytes(bytes.take(len, "the parameters of an OPEN")?);
        if !bytes.is_empty() {
            return Err(Bad::Long(OPEN));
        }
        let mut has_families = false;
        while !all.is_empty() {
            let kind = all.u8(PARAMETER)?;
            let len = match is_extended {
                false => all.u8(PARAMETER)?.into(),
                true => all.u16(PARAMETER)?.into(),
            };
            let mut value = Bytes(all.take(len, PARAMETER)?);
            while kind == CAPABILITIES && !value.is_empty() {
                let code = value.u8(CAPABILITY)?;
                let len = value.u8(CAPABILITY)?;
                let said = Bytes(value.take(len.into(), CAPABILITY)?);
                has_families |= code == code::MULTIPROTOCOL;
                self.capability(code, said)?;
            }
        }
        Ok(has_families)
    }

    fn capability(&mut self, code: u8, mut said: Bytes<'_>) -> Result<(), Bad> {
        match code {
            code::MULTIPROTOCOL => {
                let afi = said.u16(CAPABILITY)?;
                // Reserved.
                said.u8(CAPABILITY)?;
                if let Some(is_v6) = unicast(afi, said.u8(CAPABILITY)?) {
                    self.families[usize::from(is_v6)] = true;
                }
            }
            code::FOUR_BYTE_AS => {
                self.asn = said.u32(CAPABILITY)?;
                self.has_four_byte_as = true;
            }
            code::ADD_PATH => {
                while !said.is_empty() {
                    let (afi, safi) = (said.u16(CAPABILITY)?, said.u8(CAPABILITY)?);
                    // 1: it receives, 2: it sends, 3: both.
                    let does = said.u8(CAPABILITY)?;
                    if let Some(is_v6) = unicast(afi, safi) {
                        self.receives_paths[usize::from(is_v6)] |= matches!(does, 1 | 3);
                        self.sends_paths[usize::from(is_v6)] |= matches!(does, 2 | 3);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parameters: &[u8]) -> Result<Open, Bad> {
        let head = [4, 0x5b, 0xa0, 0, 90, 192, 0, 2, 1];
        Open::read(&[&head[..], parameters].concat())
    }

    #[test]
    fn capabilities_are_read_in_both_forms_of_parameters() {
        let capabilities = [
            &[1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1][..],
            &[65, 4, 0, 1, 0x11, 0x70, 2, 0],
            &[69, 12, 0, 1, 1, 1, 0, 2, 1, 3, 0, 1, 2, 3],
        ]
        .concat();
        let len = capabilities.len() as u8;
        let short = [&[len + 2, 2, len][..], &capabilities].concat();
        let long = [&[1, 255, 0, len + 3, 2, 0, len][..], &capabilities].concat();
        let expected = Open {
            asn: 70_000,
            id: [192, 0, 2, 1].into(),
            families: [true, true],
            has_four_byte_as: true,
            receives_paths: [true, true],
            sends_paths: [false, true],
        };
        assert_eq!(of(&short), Ok(expected));
        assert_eq!(of(&long), Ok(expected));
    }

    #[test]
    fn who_names_no_family_speaks_of_ipv4() {
        assert_eq!(of(&[0]).unwrap().families, [true, false]);
        assert_eq!(of(&[0]).unwrap().asn, 23_456);
        // Labelled IPv6 alone.
        let other = [8, 2, 6, 1, 4, 0, 2, 0, 4];
        assert_eq!(of(&other).unwrap().families, [false, false]);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for wrong in [
            &[1][..],
            &[0, 0],
            &[2, 2, 1],
            &[4, 2, 2, 1, 9],
            &[4, 2, 2, 65, 0],
            &[255, 255, 0],
            &[7, 2, 5, 69, 3, 0, 1, 1],
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        assert!(Open::read(&[3, 0, 1, 0, 90, 1, 2, 3, 4, 0]).is_err());
    }
}
