//! `NLMSG_ERROR` (`struct nlmsgerr`) and `NLMSG_DONE`, with the extended
//! acknowledgement (`NLMSGERR_ATTR_…`), `linux/netlink.h`.

use super::Decoded;
use crate::attribute::Attributes;
use crate::kernel::nlmsgerr;
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
