//! PPTP's control connection: which call identifiers its messages name
//! (RFC 2637 §2). Nothing changes its length. Bytes only; which identifier
//! stands for which is the side table's.

/// The port of control connections (RFC 2637 §1.3).
pub const PORT: u16 = 1723;
/// What every control message has in its fifth byte and on.
const COOKIE: u32 = 0x1a2b_3c4d;
/// Length, message type, cookie, control type, reserved.
const HEADER_LEN: usize = 12;
/// A control message's PPTP message type (management messages are none).
const CONTROL: u16 = 1;

/// The call identifiers that a message names, as places in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Length of the message; the next one begins behind it.
    pub len: usize,
    /// Where the speaker's own identifier stands.
    pub own: Option<usize>,
    /// Where the identifier of the other side stands.
    pub peer: Option<usize>,
    /// The call ends with this message.
    pub ends: bool,
}

/// The message that begins at `at`; `None`: there is none, or not all of it.
/// O(1).
pub fn read(bytes: &[u8], at: usize) -> Option<Call> {
    let message = bytes.get(at..)?;
    let len = usize::from(number(message, 0)?);
    let cookie = u32::from(number(message, 4)?) << 16 | u32::from(number(message, 6)?);
    if len < HEADER_LEN || number(message, 2)? != CONTROL || cookie != COOKIE {
        return None;
    }
    let message = message.get(..len)?;
    let first = at + HEADER_LEN;
    let (own, peer, needed) = match number(message, 8)? {
        // Outgoing-Call-Request, Incoming-Call-Request, Call-Clear-Request,
        // Call-Disconnect-Notify: the speaker's own.
        7 | 9 | 12 | 13 => (Some(first), None, 2),
        // Outgoing-Call-Reply, Incoming-Call-Reply: both.
        8 | 10 => (Some(first), Some(first + 2), 4),
        // Incoming-Call-Connected, WAN-Error-Notify, Set-Link-Info.
        11 | 14 | 15 => (None, Some(first), 2),
        _ => (None, None, 0),
    };
    (len >= HEADER_LEN + needed).then_some(Call {
        len,
        own,
        peer,
        ends: matches!(number(message, 8), Some(12 | 13)),
    })
}

/// The identifier at a place.
pub fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field))
}

/// Writes an identifier; a place past the end stays as it is.
pub fn put(bytes: &mut [u8], at: usize, number: u16) {
    if let Some(field) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
    {
        *field = number.to_be_bytes();
    }
}

#[cfg(test)]
pub fn message(control_type: u16, own: u16, peer: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [32, CONTROL, 0x1a2b, 0x3c4d, control_type, 0, own, peer] {
        bytes.extend_from_slice(&u16::to_be_bytes(field));
    }
    bytes.resize(32, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn which_message_names_which() {
        let places = |control_type| {
            let call = read(&message(control_type, 1, 2), 0).unwrap();
            (call.own.is_some(), call.peer.is_some())
        };
        for control_type in [7, 9, 12, 13] {
            assert_eq!(places(control_type), (true, false));
        }
        for control_type in [8, 10] {
            assert_eq!(places(control_type), (true, true));
        }
        for control_type in [11, 14, 15] {
            assert_eq!(places(control_type), (false, true));
        }
        assert_eq!(places(1), (false, false));
    }

    #[test]
    fn two_in_one_segment_and_one_that_is_cut() {
        let both = [message(7, 5, 0), message(8, 6, 7)].concat();
        let first = read(&both, 0).unwrap();
        let second = read(&both, first.len).unwrap();
        assert_eq!(second.peer.and_then(|at| number(&both, at)), Some(7));
        assert_eq!(read(&both, both.len()), None);
        assert_eq!(read(&both[..40], 32), None);
        let mut other = message(7, 1, 1);
        put(&mut other, 4, 0);
        assert_eq!(read(&other, 0), None);
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0..90_usize, honest in any::<bool>()) {
            if honest {
                put(&mut bytes, at + 2, CONTROL);
                put(&mut bytes, at + 4, 0x1a2b);
                put(&mut bytes, at + 6, 0x3c4d);
            }
            if let Some(call) = read(&bytes, at) {
                prop_assert!(call.len >= HEADER_LEN && at + call.len <= bytes.len());
                let inside = |place: Option<usize>| place.is_none_or(|place| place + 2 <= at + call.len);
                prop_assert!(inside(call.own) && inside(call.peer));
            }
        }
    }
}
