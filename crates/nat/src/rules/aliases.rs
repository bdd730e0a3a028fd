//! Alias addresses as words: one, a prefix, or a range. For the reader of
//! the text and the command line.

use std::net::Ipv4Addr;

use crate::Config;

/// Why addresses cannot be those that packets leave with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// It is neither an address nor several.
    #[error("`{0}` is no address: 192.0.2.1, 192.0.2.0/28 or 192.0.2.1-192.0.2.9")]
    Unknown(String),
    /// Nobody outside could answer there.
    #[error("nobody can be answered at {0}: it is of no host outside")]
    NotOutside(Ipv4Addr),
    /// It stands there already.
    #[error("{0} is named twice")]
    Twice(Ipv4Addr),
    /// There are too many.
    #[error("more than {} outside addresses", Config::MAX_ADDRESSES)]
    TooMany,
}

/// The addresses of a word: `192.0.2.1`, `192.0.2.0/28` (all of it) or
/// `192.0.2.1-192.0.2.9`. O(addresses).
pub fn parse(word: &str) -> Result<Vec<Ipv4Addr>, AliasError> {
    let (first, last) = ends(word).ok_or_else(|| AliasError::Unknown(word.to_owned()))?;
    if last - first >= Config::MAX_ADDRESSES as u32 {
        return Err(AliasError::TooMany);
    }
    // A range of no host's addresses begins or ends in them: they are whole
    // blocks of eight bits, and no range is as long.
    for address in [first, last].map(Ipv4Addr::from_bits) {
        let net = address.octets()[0];
        if net == 0 || net == 127 || net >= 224 {
            return Err(AliasError::NotOutside(address));
        }
    }
    Ok((first..=last).map(Ipv4Addr::from_bits).collect())
}

/// The first and the last address of a word.
pub(super) fn ends(word: &str) -> Option<(u32, u32)> {
    let address = |text: &str| text.parse().ok().map(Ipv4Addr::to_bits);
    if let Some((prefix, bits)) = word.split_once('/') {
        let (prefix, bits) = (address(prefix)?, bits.parse::<u32>().ok()?);
        let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
        // Bits behind the prefix are a slip.
        return (bits <= 32 && prefix & hosts == 0).then_some((prefix, prefix | hosts));
    }
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let ends = (address(first)?, address(last)?);
    (ends.0 <= ends.1).then_some(ends)
}

/// Whether all addresses together will do. O(addresses * log addresses).
pub fn check(addresses: &[Ipv4Addr]) -> Result<(), AliasError> {
    if addresses.len() > Config::MAX_ADDRESSES {
        return Err(AliasError::TooMany);
    }
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair.first() == pair.last());
    match twice.and_then(|pair| pair.first()) {
        Some(address) => Err(AliasError::Twice(*address)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_prefix_and_a_range() {
        let last = |word: &str| {
            let all = parse(word).unwrap();
            (all.len(), all[all.len() - 1].to_string())
        };
        assert_eq!(last("192.0.2.1"), (1, "192.0.2.1".to_owned()));
        assert_eq!(last("192.0.2.0/28"), (16, "192.0.2.15".to_owned()));
        assert_eq!(last("192.0.2.9/32"), (1, "192.0.2.9".to_owned()));
        assert_eq!(last("192.0.2.250-192.0.3.3"), (10, "192.0.3.3".to_owned()));
        assert_eq!(last("198.18.0.0/16").0, Config::MAX_ADDRESSES);
    }

    #[test]
    fn what_no_packet_can_leave_with_is_refused() {
        for word in [
            "",
            "a",
            "192.0.2.1/28",
            "192.0.2.0/33",
            "192.0.2.9-192.0.2.1",
            "192.0.2.1-",
        ] {
            assert!(matches!(parse(word), Err(AliasError::Unknown(_))), "{word}");
        }
        for word in [
            "0.0.0.0",
            "127.0.0.1",
            "126.255.255.250-127.0.0.3",
            "224.0.0.0/24",
            "255.255.255.255",
            "223.255.255.0-224.0.0.1",
        ] {
            assert!(
                matches!(parse(word), Err(AliasError::NotOutside(_))),
                "{word}"
            );
        }
        assert_eq!(parse("10.0.0.0/8"), Err(AliasError::TooMany));
        assert_eq!(parse("0.0.0.0/0"), Err(AliasError::TooMany));
        let [one, other] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
        assert_eq!(check(&[one, other]), Ok(()));
        assert_eq!(check(&[one, other, one]), Err(AliasError::Twice(one)));
    }
}
