//! Skinny (SCCP), by which Cisco's phones speak with their call manager: a
//! phone names its own address and port, and where the voice of a call is to
//! come to. It has no public document; what is read here is what
//! libalias(3)'s helper reads.
//!
//! A message is its length, four bytes, its number and its fields, all of
//! them with the low byte first, but for addresses.

use std::net::Ipv4Addr;

use super::named::{Form, Named, Nameds};

/// The port of call managers, where nothing else is said.
pub const PORT: u16 = 2_000;
/// Bytes of length, reserved field and number.
pub const HEADER_LEN: usize = 12;
/// What of the header the length does not count.
const UNCOUNTED: usize = 8;
/// The longest message: more is none of Skinny's.
const MAX_LEN: u32 = 65_535;

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A message of so many bytes, all of them there, and what it names.
    Whole(usize, Nameds),
    /// The beginning of one that has so many bytes.
    Begun(usize),
    /// Not even its header is there.
    Short,
    /// None of Skinny's.
    Foreign,
}

/// The message at the beginning of `bytes`, of a phone whose own address is
/// `own`. O(1).
pub fn read(bytes: &[u8], own: Ipv4Addr) -> Message {
    let (Some(counted), Some(number)) = (number_at(bytes, 0), number_at(bytes, UNCOUNTED)) else {
        return Message::Short;
    };
    if !(4..=MAX_LEN).contains(&counted) {
        return Message::Foreign;
    }
    let len = UNCOUNTED + counted as usize;
    match bytes.get(..len) {
        Some(message) => Message::Whole(len, names(number, message, own)),
        None => Message::Begun(len),
    }
}

/// How long the message of a whole header is; `None`: it is none.
pub fn len(header: &[u8]) -> Option<usize> {
    match read(header, Ipv4Addr::UNSPECIFIED) {
        Message::Whole(len, _) | Message::Begun(len) => Some(len),
        Message::Short | Message::Foreign => None,
    }
}

/// What a message names.
fn names(number: u32, message: &[u8], own: Ipv4Addr) -> Nameds {
    let place = |start: usize, form: Form| Named {
        start,
        end: start + 4,
        form,
        address: None,
        port: 0,
    };
    let named = match number {
        // Register: name (16), user, instance, address, …
        0x01 => address_at(message, 36)
            .filter(|address| *address == own)
            .map(|_| place(36, Form::SkinnyAddress)),
        // IpPort: the port.
        0x02 => number_at(message, 12).map(|_| place(12, Form::SkinnyPort)),
        // OpenReceiveChannelAck: status, address, port, party.
        0x22 => voice(message),
        _ => None,
    };
    named.into_iter().collect()
}

/// Where voice is to come to.
fn voice(message: &[u8]) -> Option<Named> {
    let address = address_at(message, 16)?;
    let port = u16::try_from(number_at(message, 20)?).ok()?;
    Some(Named {
        start: 16,
        end: 24,
        form: Form::SkinnyEnd,
        address: Some(address),
        port,
    })
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*field))
}

fn address_at(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(Ipv4Addr::from(*field))
}

/// A message, for tests.
#[cfg(test)]
pub fn message(number: u32, fields: &[u8]) -> Vec<u8> {
    let counted = 4 + fields.len() as u32;
    [
        &counted.to_le_bytes()[..],
        &[0; 4],
        &number.to_le_bytes(),
        fields,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

    fn named(bytes: &[u8]) -> Vec<(Form, u16, usize, usize)> {
        let Message::Whole(len, all) = read(bytes, HOST) else {
            return Vec::new();
        };
        assert!(len <= bytes.len());
        all.iter()
            .map(|named| (named.form, named.port, named.start, named.end))
            .collect()
    }

    #[test]
    fn which_message_names_what() {
        let register = message(1, &[&[b'S'; 24][..], &HOST.octets(), &[0; 8]].concat());
        assert_eq!(named(&register), [(Form::SkinnyAddress, 0, 36, 40)]);
        let other = message(1, &[&[b'S'; 24][..], &[1, 2, 3, 4], &[0; 8]].concat());
        assert_eq!(named(&other), []);
        let port = message(2, &[0x39, 0x30, 0, 0]);
        assert_eq!(named(&port), [(Form::SkinnyPort, 0, 12, 16)]);
        let fields = [&[0; 4][..], &HOST.octets(), &[0x00, 0x40, 0, 0], &[9; 4]].concat();
        let voice = [message(0x22, &fields), vec![7; 9]].concat();
        assert_eq!(named(&voice), [(Form::SkinnyEnd, 0x4000, 16, 24)]);
        assert_eq!(named(&message(0x8a, &[0; 40])), []);
        // Fields that are missing name nothing.
        for number in [1, 2, 0x22] {
            assert_eq!(named(&message(number, &[])), []);
        }
    }

    #[test]
    fn how_messages_are_told_apart() {
        let whole = message(2, &[1; 4]);
        assert_eq!(read(&whole[..11], HOST), Message::Short);
        assert_eq!(read(&whole[..12], HOST), Message::Begun(16));
        assert_eq!(len(&whole[..12]), Some(16));
        assert_eq!(read(&[0xff; 12], HOST), Message::Foreign);
        assert_eq!(read(&[0; 12], HOST), Message::Foreign);
        assert_eq!(len(&[0; 12]), None);
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            len in 0..80_u8,
            number in prop::sample::select(vec![1_u8, 2, 0x22, 9]),
        ) {
            if let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() {
                *header = [len, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0];
            }
            if let Message::Whole(len, all) = read(&bytes, HOST) {
                prop_assert!(len <= bytes.len());
                prop_assert!(all.iter().all(|named| named.start < named.end && named.end <= len));
            }
        }
    }
}
