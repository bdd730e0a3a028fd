//! Messages around PDUs: v1 (RFC 1157 §4), v2c (RFC 1901) and v3
//! (RFC 3412 §6, with the security parameters of RFC 3414 §2.4).
//!
//! Reading borrows from the datagram. A v3 message is read as far as it is
//! in clear; its data may be encrypted.

use crate::ber::{Malformed, Reader, tag};
use crate::pdu::Pdu;
use crate::usm::{self, AuthKey, SecurityLevel};

/// `version` of SNMPv1.
pub const V1: i32 = 0;
/// `version` of SNMPv2c.
pub const V2C: i32 = 1;
/// `version` of SNMPv3.
pub const V3: i32 = 3;

/// `msgSecurityModel` of the user-based security model.
pub const USM: u32 = 3;
/// The least `msgMaxSize` (RFC 3412 §6): 484 bytes are what everybody takes.
pub const LEAST_MAX_SIZE: usize = 484;

/// `msgFlags`: authenticated.
pub const AUTH: u8 = 1;
/// `msgFlags`: encrypted.
pub const PRIV: u8 = 2;
/// `msgFlags`: a report may be sent if the message cannot be handled.
pub const REPORTABLE: u8 = 4;

/// A message, as far as its version is known.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// v1 or v2c.
    Community(CommunityMessage<'a>),
    /// v3.
    V3(V3Message<'a>),
    /// Any other version: nothing is known about what follows.
    Unknown(i32),
}

/// A message of v1 or v2c.
#[derive(Clone, Copy, Debug)]
pub struct CommunityMessage<'a> {
    /// [`V1`] or [`V2C`].
    pub version: i32,
    /// `community`.
    pub community: &'a [u8],
    /// The PDU, not yet read.
    pub pdu: Reader<'a>,
}

/// A message of v3.
#[derive(Clone, Copy, Debug)]
pub struct V3Message<'a> {
    /// `msgID`.
    pub id: i32,
    /// `msgMaxSize`, bytes that the sender takes.
    pub max_size: usize,
    /// `msgFlags`: [`AUTH`], [`PRIV`], [`REPORTABLE`].
    pub flags: u8,
    /// `msgSecurityModel`.
    pub security_model: u32,
    /// `msgSecurityParameters`, whatever the model.
    pub security: &'a [u8],
    /// `msgData`: a plain scoped PDU or an encrypted one, not yet read.
    pub data: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Reads a datagram, which is one message and nothing else.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = Reader::new(datagram);
        let mut message = outer.sequence()?;
        outer.finish()?;
        match message.integer()? {
            version @ (V1 | V2C) => {
                let community = message.octets()?;
                let pdu = message;
                Ok(Self::Community(CommunityMessage {
                    version,
                    community,
                    pdu,
                }))
            }
            V3 => V3Message::read(message).map(Self::V3),
            version => Ok(Self::Unknown(version)),
        }
    }
}

impl<'a> V3Message<'a> {
    /// The level that its flags ask for; encryption alone is none.
    pub fn level(&self) -> Option<SecurityLevel> {
        match self.flags & (AUTH | PRIV) {
            0 => Some(SecurityLevel::NoAuthNoPriv),
            AUTH => Some(SecurityLevel::AuthNoPriv),
            PRIV => None,
            _ => Some(SecurityLevel::AuthPriv),
        }
    }

    /// The PDU of a message in clear.
    pub fn clear_pdu(&self) -> Option<Pdu<'a>> {
        let mut data = self.data;
        if self.flags & PRIV != 0 {
            return None;
        }
        let mut rest = ScopedPdu::read(&mut data).ok()?.pdu;
        Pdu::read(&mut rest).ok()
    }

    fn read(mut message: Reader<'a>) -> Result<Self, Malformed> {
        let mut global = message.sequence()?;
        let id = global.integer()?;
        if id < 0 {
            return Err(Malformed::Range);
        }
        let max_size = global.natural()? as usize;
        if max_size < LEAST_MAX_SIZE {
            return Err(Malformed::Range);
        }
        let [flags] = *global.octets()? else {
            return Err(Malformed::Range);
        };
        let security_model = global.natural()?;
        global.finish()?;
        if security_model == 0 {
            return Err(Malformed::Range);
        }
        Ok(Self {
            id,
            max_size,
            flags,
            security_model,
            security: message.octets()?,
            data: message,
        })
    }
}

/// `UsmSecurityParameters` (RFC 3414 §2.4).
#[derive(Clone, Copy, Debug)]
pub struct UsmParameters<'a> {
    /// `msgAuthoritativeEngineID`, empty to discover it.
    pub engine_id: &'a [u8],
    /// `msgAuthoritativeEngineBoots`.
    pub boots: u32,
    /// `msgAuthoritativeEngineTime`, seconds.
    pub time_secs: u32,
    /// `msgUserName`.
    pub user: &'a [u8],
    /// `msgAuthenticationParameters`.
    pub auth: &'a [u8],
    /// `msgPrivacyParameters`.
    pub privacy: &'a [u8],
    /// Bytes behind `auth` in the parameters: where it lies in the message.
    pub(crate) behind_auth: usize,
}

impl<'a> UsmParameters<'a> {
    /// Reads the content of `msgSecurityParameters`.
    pub fn read(security: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = Reader::new(security);
        let mut fields = outer.sequence()?;
        outer.finish()?;
        let parameters = Self {
            engine_id: fields.octets()?,
            boots: fields.natural()?,
            time_secs: fields.natural()?,
            user: fields.octets()?,
            auth: fields.octets()?,
            behind_auth: fields.rest().len(),
            privacy: fields.octets()?,
        };
        fields.finish()?;
        if parameters.engine_id.len() > 32 || parameters.user.len() > 32 {
            return Err(Malformed::Range);
        }
        Ok(parameters)
    }
}

impl UsmParameters<'_> {
    /// Whether the digest of a message, which these are the parameters of,
    /// is that of a key. `datagram` is the whole message.
    pub(crate) fn is_signed(
        &self,
        key: &AuthKey,
        message: &V3Message<'_>,
        datagram: &[u8],
    ) -> bool {
        let behind = message.data.rest().len() + self.behind_auth;
        let at = datagram.len().checked_sub(behind + self.auth.len());
        self.auth.len() == key.protocol().digest_len()
            && at.is_some_and(|at| usm::verify(key, datagram, at))
    }
}

/// `ScopedPDU` (RFC 3412 §6.8).
#[derive(Clone, Copy, Debug)]
pub struct ScopedPdu<'a> {
    /// `contextEngineID`.
    pub engine_id: &'a [u8],
    /// `contextName`.
    pub context: &'a [u8],
    /// The PDU, not yet read.
    pub pdu: Reader<'a>,
}

impl<'a> ScopedPdu<'a> {
    /// Takes a scoped PDU off a reader.
    pub fn read(data: &mut Reader<'a>) -> Result<Self, Malformed> {
        let mut scoped = Reader::new(data.expect(tag::SEQUENCE)?);
        Ok(Self {
            engine_id: scoped.octets()?,
            context: scoped.octets()?,
            pdu: scoped,
        })
    }
}
