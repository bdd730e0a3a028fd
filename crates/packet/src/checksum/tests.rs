use proptest::prelude::*;

use super::*;

/// RFC 1071 §4.1, word by word.
fn oracle(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        sum += u32::from(word);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn the_example_of_rfc_1071() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::of(&bytes).folded().to_be(), 0xddf2);
}

#[test]
fn the_example_of_rfc_1624() {
    // §4: a header checksum 0xdd2f, a word 0x5555 becomes 0x3285.
    let delta = Delta::of16(0x5555_u16.to_be(), 0x3285_u16.to_be());
    assert_eq!(delta.apply(0xdd2f_u16.to_be()), 0x0000);
}

#[test]
fn an_absent_udp_checksum_stays_absent_and_zero_is_never_sent() {
    for old in 0..=u16::MAX {
        let delta = Delta::of16(old, 0x1234);
        assert_eq!(delta.apply_udp(0), 0);
        assert_ne!(delta.apply_udp(0xdd2f), 0);
    }
}

proptest! {
    #[test]
    fn from_scratch_is_the_sum_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..3000), skip in 0_usize..9) {
        let bytes = bytes.get(skip..).unwrap_or_default();
        prop_assert_eq!(Sum::of(bytes).checksum(), oracle(bytes).to_be());
        prop_assert_eq!(fold(sum_portable(bytes)), Sum::of(bytes).folded());
    }

    #[test]
    fn the_worst_words_do_not_overflow(len in 0_usize..65_536) {
        let bytes = vec![0xff; len];
        prop_assert_eq!(Sum::of(&bytes).checksum(), oracle(&bytes).to_be());
    }

    #[test]
    fn two_parts_are_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..150) {
        let (left, right) = bytes.split_at((cut * 2).min(bytes.len() & !1));
        prop_assert_eq!(Sum::of(left).and(Sum::of(right)).folded(), Sum::of(&bytes).folded());
    }

    #[test]
    fn an_update_is_the_sum_from_scratch(mut words in proptest::collection::vec(1_u16.., 1..40), at: usize, new: u16, back: bool) {
        let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let before = Sum::of(&bytes(&words)).checksum();
        let at = at % words.len();
        let delta = Delta::from_folded(Delta::of16(words[at], new).folded());
        let old = std::mem::replace(&mut words[at], new);
        // A sum of nothing but zeros has two names; no packet is all zeros.
        prop_assume!(words.iter().any(|word| *word != 0));
        let after = delta.apply(before);
        prop_assert_eq!(after, Sum::of(&bytes(&words)).checksum());
        if back {
            words[at] = old;
            prop_assert_eq!(delta.negated().apply(after), before);
        }
    }

    #[test]
    fn an_address_is_two_words(old: [u16; 2], new: [u16; 2], checksum: u16) {
        let join = |words: [u16; 2]| {
            let ([a, b], [c, d]) = (words[0].to_ne_bytes(), words[1].to_ne_bytes());
            u32::from_ne_bytes([a, b, c, d])
        };
        let whole = Delta::of32(join(old), join(new));
        let words = Delta::of16(old[0], new[0]).and(Delta::of16(old[1], new[1]));
        prop_assert_eq!(whole.apply(checksum), words.apply(checksum));
    }

    #[test]
    fn the_pseudo_header_is_its_bytes(source: [u8; 4], destination: [u8; 4], protocol: u8, length: u16) {
        let mut bytes = [source, destination].concat();
        bytes.extend([0, protocol]);
        bytes.extend(length.to_be_bytes());
        let sum = Sum::pseudo_ipv4(source, destination, protocol, length);
        prop_assert_eq!(sum.folded(), Sum::of(&bytes).folded());
    }
}
