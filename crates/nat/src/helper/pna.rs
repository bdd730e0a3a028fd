//! PNA, the protocol of RealNetworks' early players: at its beginning a
//! client names the UDP ports that media are to come to. It has no document
//! of its own; what is read here is what libalias(3)'s helper reads.

use super::named::{Form, MOST_NAMED, Named, Nameds};

/// What a connection of it begins with; a byte and the version are behind.
pub const GREETING: &[u8] = b"PNA";
/// Where its options begin.
const OPTIONS_AT: usize = 5;
/// Bytes of an option's number and length.
const HEAD_LEN: usize = 4;
/// Options that name a port; 0 is the end of them all.
const PORTS: [u16; 2] = [1, 7];

/// The ports that a segment names which begins with [`GREETING`]. Options
/// that are not whole are left alone. O(bytes).
pub fn read(segment: &[u8]) -> Nameds {
    let mut found = Nameds::new();
    let mut at = OPTIONS_AT;
    while let Some((number, len)) = option(segment, at).filter(|(number, _)| *number != 0) {
        let data_at = at + HEAD_LEN;
        if PORTS.contains(&number)
            && len >= 2
            && let Some(port) = word(segment, data_at)
            && found.len() < MOST_NAMED
        {
            found.push(Named {
                start: data_at,
                end: data_at + 2,
                form: Form::Port,
                address: None,
                port,
            });
        }
        at = data_at + usize::from(len);
    }
    found
}

/// Number and length of the option at a place.
fn option(segment: &[u8], at: usize) -> Option<(u16, u16)> {
    Some((word(segment, at)?, word(segment, at + 2)?))
}

fn word(segment: &[u8], at: usize) -> Option<u16> {
    let field = segment.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(options: &[u8]) -> Vec<(u16, usize)> {
        let segment = [b"PNA\0\x0a", options].concat();
        let all = read(&segment);
        all.iter().map(|named| (named.port, named.start)).collect()
    }

    #[test]
    fn each_option_that_names_a_port() {
        let first = [0, 1, 0, 2, 0x1b, 0x3a];
        assert_eq!(named(&first), [(6_970, 9)]);
        let text = [0, 0x63, 0, 3, b'a', b'b', b'c', 0, 7, 0, 2, 0x1b, 0x3b];
        assert_eq!(named(&text), [(6_971, 16)]);
        let both = [&first[..], &text, &[0, 0, 0, 0, 0, 1, 0, 2, 1, 2]].concat();
        assert_eq!(named(&both), [(6_970, 9), (6_971, 22)]);
        for none in [&first[..5], &[0, 1, 0, 1, 9, 9], &[0, 2, 0, 2, 9, 9], &[]] {
            assert_eq!(named(none), [], "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), few in any::<bool>()) {
            let bytes: Vec<u8> = bytes.iter().map(|byte| if few { byte & 7 } else { *byte }).collect();
            let mut last = 0;
            for named in read(&bytes) {
                prop_assert!(last <= named.start && named.end == named.start + 2);
                prop_assert!(named.end <= bytes.len());
                last = named.end;
            }
        }
    }
}
