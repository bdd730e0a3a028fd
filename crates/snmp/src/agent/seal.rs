//! Messages of v3 on their way out: an answer, a report or a notification,
//! signed and encrypted as its level says (RFC 3414 §3.1, §8).

use crate::ber::{Full, Writer, tag};
use crate::config::{Config, User};
use crate::message::{AUTH, PRIV, USM, V3};
use crate::usm::{self, MAX_DIGEST_BYTES, Salts, SecurityLevel};

/// Bytes that encryption may add: DES fills up its last block.
const PADDING_BYTES: usize = 8;

/// The engine at a moment.
#[derive(Clone, Copy)]
pub(crate) struct Engine<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) boots: u32,
    pub(crate) time_secs: u32,
    /// What it tells others to be the longest message that it takes.
    pub(crate) max_size: usize,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(config: &'a Config, now_millis: u64) -> Self {
        Self {
            id: &config.engine_id,
            boots: config.engine_boots,
            time_secs: time_secs(now_millis),
            max_size: config.max_message_bytes,
        }
    }
}

/// `snmpEngineTime`; it stays at its end, after 68 years, where the RFC has
/// the engine start again.
pub(crate) fn time_secs(now_millis: u64) -> u32 {
    let secs = u32::try_from(now_millis / 1_000).unwrap_or(u32::MAX);
    secs.min(i32::MAX as u32)
}

/// All of a message but its PDU.
#[derive(Clone, Copy)]
pub(crate) struct Envelope<'a> {
    /// `msgID`.
    pub(crate) id: i32,
    pub(crate) level: SecurityLevel,
    /// `msgFlags` besides those of the level.
    pub(crate) flags: u8,
    /// `msgUserName`.
    pub(crate) name: &'a [u8],
    /// Whose keys are used; needed above the lowest level only.
    pub(crate) user: Option<&'a User>,
    /// `contextEngineID`.
    pub(crate) context_engine: &'a [u8],
    /// `contextName`.
    pub(crate) context: &'a [u8],
}

/// Writes a message around a PDU.
pub(crate) fn seal(
    engine: &Engine<'_>,
    salts: &mut Salts,
    envelope: &Envelope<'_>,
    out: &mut Writer<'_>,
    pdu: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<(), Full> {
    let auth = envelope.user.and_then(|user| user.auth.as_ref());
    let auth = auth.filter(|_| envelope.level > SecurityLevel::NoAuthNoPriv);
    let privacy = envelope.user.and_then(|user| user.privacy.as_ref());
    let privacy = privacy.filter(|_| envelope.level == SecurityLevel::AuthPriv);
    let salt = privacy.map(|key| salts.next(key.protocol(), engine.boots));

    let message = out.open(tag::SEQUENCE)?;
    out.integer(V3)?;
    write_global(engine, envelope, auth.is_some(), privacy.is_some(), out)?;
    let digest_len = auth.map_or(0, |key| key.protocol().digest_len());
    let salt_bytes = salt.as_ref().map_or(&[][..], |salt| &salt[..]);
    let mut digest_at = write_security(engine, envelope.name, digest_len, salt_bytes, out)?;

    let data = match privacy {
        Some(_) => {
            out.reserve(PADDING_BYTES)?;
            Some(out.open(tag::OCTET_STRING)?)
        }
        None => None,
    };
    let begin = out.len();
    let scoped = out.open(tag::SEQUENCE)?;
    out.octets(envelope.context_engine)?;
    out.octets(envelope.context)?;
    pdu(out)?;
    out.close(scoped);
    if let (Some(key), Some(salt), Some(data)) = (privacy, salt, data) {
        out.release(PADDING_BYTES);
        let padding = usm::padding(key.protocol(), out.len() - begin);
        out.bytes(&[0; PADDING_BYTES][..padding])?;
        let text = &mut out.written_mut()[begin..];
        usm::encrypt(key, salt, engine.boots, engine.time_secs, text);
        out.close(data);
    }
    digest_at -= out.close(message);
    if let Some(key) = auth {
        usm::sign(key, out.written_mut(), digest_at);
    }
    Ok(())
}

/// `msgGlobalData`.
fn write_global(
    engine: &Engine<'_>,
    envelope: &Envelope<'_>,
    auth: bool,
    privacy: bool,
    out: &mut Writer<'_>,
) -> Result<(), Full> {
    let level = if auth { AUTH } else { 0 } | if privacy { PRIV } else { 0 };
    let global = out.open(tag::SEQUENCE)?;
    out.integer(envelope.id)?;
    out.integer(engine.max_size as i32)?;
    out.octets(&[envelope.flags | level])?;
    out.integer(USM as i32)?;
    out.close(global);
    Ok(())
}

/// `msgSecurityParameters`, with zeros for a digest; the return is where
/// that lies.
fn write_security(
    engine: &Engine<'_>,
    user: &[u8],
    digest_len: usize,
    salt: &[u8],
    out: &mut Writer<'_>,
) -> Result<usize, Full> {
    let outer = out.open(tag::OCTET_STRING)?;
    let inner = out.open(tag::SEQUENCE)?;
    out.octets(engine.id)?;
    out.integer(engine.boots as i32)?;
    out.integer(engine.time_secs as i32)?;
    out.octets(user)?;
    out.octets(&[0; MAX_DIGEST_BYTES][..digest_len])?;
    let digest_at = out.len() - digest_len;
    out.octets(salt)?;
    let moved = out.close(inner) + out.close(outer);
    Ok(digest_at - moved)
}
