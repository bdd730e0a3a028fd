//! Values of the command lines of this crate: amounts, seconds, link-layer
//! addresses.

use std::time::Duration;

/// A link-layer address of Ethernet.
pub fn mac(text: &str) -> Result<[u8; 6], String> {
    let byte = |digits: &str| {
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_byte = is_hex && matches!(digits.len(), 1 | 2);
        is_byte.then(|| u8::from_str_radix(digits, 16).ok())?
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| "a link-layer address is expected, like 00:0c:29:65:4d:48".to_owned())
}

/// A number with k, M or G for thousands.
pub fn amount(text: &str) -> Result<f64, String> {
    let expected = || "a number is expected, like 5000, 100k or 2.5M".to_owned();
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (text.get(..at), 1e3),
        Some((at, 'M' | 'm')) => (text.get(..at), 1e6),
        Some((at, 'G' | 'g')) => (text.get(..at), 1e9),
        _ => (Some(text), 1.0),
    };
    let number: f64 = digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(expected)?;
    let amount = number * factor;
    if amount.is_finite() && amount > 0.0 && amount <= 1e18 {
        Ok(amount)
    } else {
        Err(expected())
    }
}

/// Seconds, with a fraction.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || "seconds are expected, like 10 or 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err(expected());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_seconds_are_more_than_nothing() {
        assert_eq!((amount("5000"), amount("2.5M")), (Ok(5e3), Ok(2.5e6)));
        assert!(amount("0").is_err() && amount("-1k").is_err() && amount("k").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("nan").is_err() && seconds("0").is_err());
    }

    #[test]
    fn link_layer_addresses_have_six_bytes() {
        assert_eq!(
            mac("0:C:29-65:4D:48"),
            Ok([0, 0x0c, 0x29, 0x65, 0x4d, 0x48])
        );
        for wrong in [
            "",
            "00:0c:291",
            "00:0c:29:65:4d",
            "00:0c:29:65:4d:48:00",
            "+1:2:3:4:5:6",
        ] {
            assert!(mac(wrong).is_err(), "{wrong}");
        }
    }
}
