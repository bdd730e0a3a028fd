//! Octets as hexadecimal digits, in files. Called by serde.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The digits of some octets.
pub fn digits(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The octets of some digits; `None` if they are none.
pub fn octets(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some((value(high)? << 4 | value(low)?) as u8),
            _ => None,
        })
        .collect()
}

/// Writes octets as digits.
pub fn serialize<S: Serializer>(octets: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&digits(octets))
}

/// Reads octets from digits.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    octets(&text).ok_or_else(|| D::Error::custom("hexadecimal digits, two for each octet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(digits(&[0, 0xab, 255]), "00abff");
        assert_eq!(octets("00ABff"), Some(vec![0, 0xab, 255]));
        for wrong in ["0", "0x", "é", "+1"] {
            assert_eq!(octets(wrong), None, "{wrong}");
        }
    }
}
