//! Messages of peers and changes of their sessions: `BGP4MP` (RFC 6396
//! §4.4, RFC 8050 §3), and `BGP` and `BGP4PLUS` before it (appendix B).

use super::{Named, Record};
use crate::Bad;
use crate::as_path::AsSize;
use crate::bytes::Bytes;
use crate::update::{Session, Update};

/// What a peer has said of routes.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// Who.
    pub peer: Named,
    /// What.
    pub update: Update<'a>,
    /// How AS numbers are written.
    pub session: Session,
}

/// A session's state has changed.
#[derive(Debug, Clone, Copy)]
pub struct StateChange {
    /// With whom.
    pub peer: Named,
    /// Whether it is up now.
    pub is_up: bool,
}

const MESSAGE: &str = "the head of a message's record";
const STATE: &str = "a change of state";
/// `Established` among the states of a session (RFC 4271 §8.2.2).
const ESTABLISHED: u16 = 6;

pub(super) fn read(subtype: u16, body: &[u8]) -> Result<Record<'_>, Bad> {
    let session = |as_size, has_path_ids| Session {
        as_size,
        has_path_ids: [has_path_ids; 2],
    };
    match subtype {
        0 => state_change(body, AsSize::Two),
        5 => state_change(body, AsSize::Four),
        1 => message(body, session(AsSize::Two, false)),
        4 => message(body, session(AsSize::Four, false)),
        8 => message(body, session(AsSize::Two, true)),
        9 => message(body, session(AsSize::Four, true)),
        // What was sent (6, 7, 10, 11) was not learned from the peer.
        _ => Ok(Record::Other),
    }
}

fn peer(bytes: &mut Bytes<'_>, size: AsSize) -> Result<Named, Bad> {
    let asn = match size {
        AsSize::Two => {
            let asn = bytes.u16(MESSAGE)?;
            bytes.u16(MESSAGE)?;
            asn.into()
        }
        AsSize::Four => {
            let asn = bytes.u32(MESSAGE)?;
            bytes.u32(MESSAGE)?;
            asn
        }
    };
    // The index of the port.
    bytes.u16(MESSAGE)?;
    let is_v6 = match bytes.u16(MESSAGE)? {
        1 => false,
        2 => true,
        afi => {
            return Err(Bad::Value {
                what: "the family of a peer",
                value: afi.into(),
            });
        }
    };
    let address = bytes.address(is_v6, MESSAGE)?;
    bytes.address(is_v6, MESSAGE)?;
    Ok(Named {
        address,
        asn,
        id: None,
    })
}

fn message(body: &[u8], session: Session) -> Result<Record<'_>, Bad> {
    let mut bytes = Bytes(body);
    let peer = peer(&mut bytes, session.as_size)?;
    Ok(match Update::of_message(bytes.0, session)? {
        Some(update) => Record::Message(Message {
            peer,
            update,
            session,
        }),
        None => Record::Other,
    })
}

fn state_change(body: &[u8], size: AsSize) -> Result<Record<'_>, Bad> {
    let mut bytes = Bytes(body);
    let peer = peer(&mut bytes, size)?;
    bytes.u16(STATE)?;
    let is_up = bytes.u16(STATE)? == ESTABLISHED;
    Ok(Record::StateChange(StateChange { peer, is_up }))
}

/// A record of `BGP` or, with addresses of IPv6, of `BGP4PLUS`. The message
/// has no header.
pub(super) fn read_old(subtype: u16, body: &[u8], is_v6: bool) -> Result<Record<'_>, Bad> {
    const UPDATE: u16 = 1;
    const STATE_CHANGE: u16 = 3;
    let mut bytes = Bytes(body);
    if !matches!(subtype, UPDATE | STATE_CHANGE) {
        return Ok(Record::Other);
    }
    let peer = Named {
        asn: bytes.u16(MESSAGE)?.into(),
        address: bytes.address(is_v6, MESSAGE)?,
        id: None,
    };
    if subtype == STATE_CHANGE {
        bytes.u16(STATE)?;
        let is_up = bytes.u16(STATE)? == ESTABLISHED;
        return Ok(Record::StateChange(StateChange { peer, is_up }));
    }
    bytes.u16(MESSAGE)?;
    bytes.address(is_v6, MESSAGE)?;
    let session = Session {
        as_size: AsSize::Two,
        has_path_ids: [false; 2],
    };
    Ok(Record::Message(Message {
        peer,
        update: Update::read(bytes.0, session)?,
        session,
    }))
}
