//! Names that are not UTF-8. The kernel takes any octets for the name of a
//! link, an alternative name, an alias; rows have text. An octet that is no
//! part of UTF-8 is kept as a character of a range for private use, and is
//! that octet again where the kernel is asked and where `ip` would print it.
//! For whoever reads or writes what the kernel calls something.
//!
//! The range is the one that MirOS uses for the same (U+EF80 to U+EFFF). A
//! name that has such a character itself is kept octet by octet: no two
//! names are one.

use std::borrow::Cow;

/// Where the octets 0x80 to 0xff stand, less 0x80.
const BASE: u32 = 0xef00;
/// First octet of all characters of the range, in UTF-8.
const LEAD: u8 = 0xee;

/// The text of a name. O(octets).
pub fn of_octets(octets: &[u8]) -> Box<str> {
    let mut text = String::with_capacity(octets.len());
    push_octets(octets, &mut text);
    text.into()
}

/// The same, put behind a text.
pub fn push_octets(octets: &[u8], text: &mut String) {
    match std::str::from_utf8(octets) {
        Ok(plain) if !octets.contains(&LEAD) => text.push_str(plain),
        _ => text.push_str(&kept(octets)),
    }
}

fn kept(octets: &[u8]) -> String {
    let mut text = String::new();
    for part in octets.utf8_chunks() {
        for one in part.valid().chars() {
            match of_char(one) {
                None => text.push(one),
                Some(_) => keep(one.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        keep(part.invalid(), &mut text);
    }
    text
}

fn keep(octets: &[u8], text: &mut String) {
    let chars = octets.iter().map(|octet| BASE + u32::from(*octet));
    text.extend(chars.filter_map(char::from_u32));
}

/// The octets of a text: what it was made of. O(octets).
pub fn octets(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&LEAD) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut octets = Vec::with_capacity(text.len());
    for one in text.chars() {
        match of_char(one) {
            Some(octet) => octets.push(octet),
            None => octets.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(octets)
}

/// The octet that a character stands for, if it stands for one.
pub fn of_char(one: char) -> Option<u8> {
    let octet = u32::from(one).checked_sub(BASE)?;
    u8::try_from(octet).ok().filter(|octet| *octet >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_utf_8_is_itself() {
        for name in ["", "eth0", "é", "\u{ee00}x"] {
            assert_eq!(&*of_octets(name.as_bytes()), name);
            assert_eq!(&*octets(name), name.as_bytes());
        }
    }

    #[test]
    fn names_that_differ_in_such_octets_alone_differ() {
        assert_eq!(&*of_octets(b"x\xff"), "x\u{efff}");
        assert_ne!(of_octets(b"x\xff"), of_octets(b"x\xfe"));
        let same = "x\u{efff}".as_bytes();
        assert_ne!(of_octets(b"x\xff"), of_octets(same));
        let kept = of_octets(same);
        assert_eq!(&*octets(&kept), same);
    }

    proptest! {
        #[test]
        fn every_name_is_given_back(
            name in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(0xee), Just(0xbe), Just(0xbf), Just(0x80)], 0..24
            )
        ) {
            let kept = of_octets(&name);
            prop_assert_eq!(&*octets(&kept), &*name);
        }
    }
}
