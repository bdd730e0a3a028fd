//! `NLMSG_ERROR` (`struct nlmsgerr`) and `NLMSG_DONE`, with the extended
//! acknowledgement (`NLMSGERR_ATTR_…`), `linux/netlink.h`.

use super::Decoded;
use crate::attribute::Attributes;
use crate::kernel::{netnsa, nlmsgerr};
use crate::malformed::Malformed;
use crate::message::{HEADER, Message, flag};

/// Bytes of the `int` both start with.
const ERRNO: usize = 4;

/// `NLMSG_DONE`: an `int`, then (`NLM_F_ACK_TLVS`) attributes. Old kernels
/// send none of both.
pub(super) fn done(message: &Message<'_>) -> Result<Decoded, Malformed> {
    let payload = message.payload;
    let errno = match payload.first_chunk::<ERRNO>() {
        Some(errno) => positive(*errno),
        None => 0,
    };
    let extended = Extended::read(message, payload.len().min(ERRNO))?;
    Ok(Decoded::Done {
        errno,
        message: extended.message,
    })
}

/// `NLMSG_ERROR`: an `int`, the request's header, the rest of the request
/// unless `NLM_F_CAPPED`, then (`NLM_F_ACK_TLVS`) attributes.
pub(super) fn error(message: &Message<'_>) -> Result<Decoded, Malformed> {
    let (errno, rest) = match message.payload.split_first_chunk::<ERRNO>() {
        Some((errno, rest)) if rest.len() >= HEADER => (positive(*errno), rest),
        _ => {
            return Err(Malformed::Header {
                message: "NLMSG_ERROR",
                wanted: ERRNO + HEADER,
                left: message.payload.len(),
            });
        }
    };
    let echoed = match rest.first_chunk::<4>() {
        Some(len) if message.flags & flag::CAPPED == 0 => u32::from_ne_bytes(*len) as usize,
        _ => HEADER,
    };
    let echoed = echoed.max(HEADER).checked_next_multiple_of(4);
    let at = echoed.and_then(|echoed| echoed.checked_add(ERRNO));
    let extended = Extended::read(message, at.unwrap_or(usize::MAX))?;
    Ok(Decoded::Error {
        errno,
        message: extended.message,
        offset: extended.offset,
        sequence: message.sequence,
    })
}

/// Payload of `RTM_NEWNSID` (`linux/net_namespace.h`), the answer to
/// [`crate::request::get_netns_id`]: the number a namespace has in
/// another, `None` where it has none. O(attributes).
pub fn netns_id(payload: &[u8]) -> Result<Option<i32>, Malformed> {
    let (_, mut attributes) = super::split::<4>(payload, "RTM_NEWNSID")?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == netnsa::NSID {
            return Ok(Some(attribute.i32()?).filter(|id| *id >= 0));
        }
    }
    Ok(None)
}

/// The kernel's negative `errno` the right way round.
fn positive(bytes: [u8; ERRNO]) -> i32 {
    i32::from_ne_bytes(bytes).saturating_neg()
}

#[derive(Default)]
struct Extended {
    message: Option<String>,
    offset: Option<u32>,
}

impl Extended {
    /// From the attributes `at` bytes into the payload, if there are any.
    fn read(message: &Message<'_>, at: usize) -> Result<Self, Malformed> {
        let mut extended = Self::default();
        let bytes = match message.payload.get(at..) {
            Some(bytes) if message.flags & flag::ACK_TLVS != 0 => bytes,
            _ => return Ok(extended),
        };
        let mut attributes = Attributes::new(bytes, "extended acknowledgement", at);
        while let Some(attribute) = attributes.step()? {
            match attribute.kind {
                nlmsgerr::MSG => extended.message = Some(attribute.text().into()),
                nlmsgerr::OFFS => extended.offset = Some(attribute.u32()?),
                _ => {}
            }
        }
        Ok(extended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::kind;

    const TEXT: &[u8] = b"\x0c\0\x01\0too bad\0";

    fn reply(kind: u16, flags: u16, payload: &[u8]) -> Message<'_> {
        Message {
            kind,
            flags,
            sequence: 5,
            port: 0,
            payload,
        }
    }

    fn error_payload(request_len: u32, request_rest: &[u8]) -> Vec<u8> {
        let mut payload = (-2i32).to_ne_bytes().to_vec();
        payload.extend_from_slice(&request_len.to_ne_bytes());
        payload.extend_from_slice(&[0; 12]);
        payload.extend_from_slice(request_rest);
        payload.extend_from_slice(TEXT);
        payload
    }

    #[test]
    fn the_kernel_s_words_are_found_behind_a_whole_and_a_capped_request() {
        let whole = error_payload(16 + 5, &[1; 8]);
        let capped = error_payload(16 + 5000, &[]);
        let tlvs = flag::ACK_TLVS;
        for (payload, flags) in [(&whole, tlvs), (&capped, tlvs | flag::CAPPED)] {
            let decoded = error(&reply(kind::ERROR, flags, payload)).unwrap();
            let Decoded::Error {
                errno,
                message,
                sequence,
                ..
            } = decoded
            else {
                panic!("{decoded:?}");
            };
            assert_eq!((errno, sequence), (2, 5));
            assert_eq!(message.as_deref(), Some("too bad"));
        }
        // A request that claims more than was echoed has no words behind it.
        assert!(error(&reply(kind::ERROR, tlvs, &capped)).is_ok());
        assert!(error(&reply(kind::ERROR, 0, &whole[..19])).is_err());
    }

    #[test]
    fn the_end_of_a_dump_tells_whether_it_failed() {
        let mut payload = (-19i32).to_ne_bytes().to_vec();
        payload.extend_from_slice(TEXT);
        let failed = done(&reply(kind::DONE, flag::ACK_TLVS, &payload)).unwrap();
        let expected = Decoded::Done {
            errno: 19,
            message: Some("too bad".into()),
        };
        assert_eq!(failed, expected);
        let expected = Decoded::Done {
            errno: 0,
            message: None,
        };
        assert_eq!(done(&reply(kind::DONE, 0, &[])).unwrap(), expected);
        assert_eq!(done(&reply(kind::DONE, 0, &[0; 4])).unwrap(), expected);
    }
}
