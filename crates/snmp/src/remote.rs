//! Another engine, which is told by informs of v3 and acknowledges them.
//!
//! The receiver of an inform is authoritative (RFC 3414 §3.1): its engine
//! has to be known, and its time, before it takes one, and the user's keys
//! are localised to it. It is asked who it is by a message without security
//! ([`Agent::discover`]) and says so in a report; its time it tells in a
//! report that is signed (§4). What it says is handed to
//! [`Agent::hear`]. Pure: datagrams and the time come from outside.

use crate::agent::Agent;
use crate::agent::seal::{Engine, Envelope, seal};
use crate::ber::{Full, Reader, Writer};
use crate::config::{RemoteUser, User};
use crate::message::{Message, REPORTABLE, ScopedPdu, USM, UsmParameters, V3Message};
use crate::pdu::{OpenPdu, Pdu, PduKind};
use crate::usm::{self, LAST_BOOTS, SecurityLevel, TIME_WINDOW_SECS};

/// Below which the counters of RFC 3414 are, which reports name.
const USM_STATS: &[u32] = &[1, 3, 6, 1, 6, 3, 15, 1, 1];

/// What is known of the engine.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    id: Vec<u8>,
    boots: u32,
    /// Its time when ours was `at_millis`.
    time_secs: u32,
    at_millis: u64,
}

/// What a datagram of it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The inform of this `request-id` is acknowledged.
    Acknowledged(i32),
    /// Who it is, or what time it has: what it did not take is to be sent
    /// again, and will be taken.
    Learned,
    /// It does not take what it is told, for a reason that sending it again
    /// will not change.
    Refused(Refusal),
    /// Nothing of use.
    Nothing,
}

/// Why an inform is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `usmStatsUnsupportedSecLevels`.
    #[error("it does not take the user at this level of security")]
    Level,
    /// `usmStatsUnknownUserNames`.
    #[error("it does not know the user")]
    User,
    /// `usmStatsWrongDigests`.
    #[error("it has another key for authentication of the user")]
    AuthKey,
    /// `usmStatsDecryptionErrors`.
    #[error("it has another key for privacy of the user")]
    PrivacyKey,
}

impl Remote {
    /// `snmpEngineID`; `None`: not yet known.
    pub fn engine_id(&self) -> Option<&[u8]> {
        (!self.id.is_empty()).then_some(&self.id)
    }

    /// As a message to it has it.
    pub(crate) fn engine(&self, now_millis: u64, max_size: usize) -> Engine<'_> {
        Engine {
            id: &self.id,
            boots: self.boots,
            time_secs: self.time_secs_at(now_millis),
            max_size,
        }
    }

    fn time_secs_at(&self, now_millis: u64) -> u32 {
        if self.boots == 0 {
            // Its time is not known yet.
            return 0;
        }
        let passed = now_millis.saturating_sub(self.at_millis) / 1_000;
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        self.time_secs.saturating_add(passed).min(i32::MAX as u32)
    }

    /// Takes the time of an authentic message (RFC 3414 §3.2 step 7b);
    /// whether ours was beyond its window. `None`: the message is too old.
    fn take_time(&mut self, parameters: &UsmParameters<'_>, now_millis: u64) -> Option<bool> {
        let theirs = (parameters.boots, parameters.time_secs);
        let ours = (self.boots, self.time_secs_at(now_millis));
        let is_late = theirs.0 != ours.0 || theirs.1.abs_diff(ours.1) > TIME_WINDOW_SECS;
        if theirs.0 == LAST_BOOTS || is_late && theirs < ours {
            return None;
        }
        if theirs > (self.boots, self.time_secs) {
            (self.boots, self.time_secs) = theirs;
            self.at_millis = now_millis;
        }
        Some(is_late)
    }
}

impl Agent {
    /// Writes a message that asks an engine who it is; the return is its
    /// length.
    pub fn discover(&mut self, id: i32, out: &mut [u8]) -> Result<usize, Full> {
        let mut out = Writer::new(out);
        let nobody = Remote::default();
        let engine = nobody.engine(0, self.config.max_message_bytes);
        let envelope = Envelope {
            id: id & i32::MAX,
            level: SecurityLevel::NoAuthNoPriv,
            flags: REPORTABLE,
            name: b"",
            user: None,
            context_engine: b"",
            context: b"",
        };
        seal(&engine, &mut self.salts, &envelope, &mut out, |out| {
            OpenPdu::begin(out, PduKind::Get, id, 0, 0).map(|pdu| pdu.end(out))
        })?;
        Ok(out.len())
    }

    /// What an engine said to us, who tell it as one of its users. Whatever
    /// is not authentic says at most who the engine is.
    pub fn hear(
        &self,
        remote: &mut Remote,
        user: &[u8],
        datagram: &[u8],
        now_millis: u64,
    ) -> Heard {
        let Ok(Message::V3(message)) = Message::read(datagram) else {
            return Heard::Nothing;
        };
        let parameters = UsmParameters::read(message.security);
        match (parameters, message.level()) {
            (Ok(parameters), Some(level)) if message.security_model == USM => {
                let keys = self.config.remote_user(&remote.id, user);
                let heard = match level {
                    SecurityLevel::NoAuthNoPriv => in_clear(remote, keys, &message, &parameters),
                    _ => keys.and_then(|keys| {
                        authentic(remote, keys, &message, &parameters, datagram, now_millis)
                    }),
                };
                heard.unwrap_or(Heard::Nothing)
            }
            _ => Heard::Nothing,
        }
    }
}

/// What anybody can say: who the engine is; an acknowledgement only for a
/// user without keys.
fn in_clear(
    remote: &mut Remote,
    keys: Option<&RemoteUser>,
    message: &V3Message<'_>,
    parameters: &UsmParameters<'_>,
) -> Option<Heard> {
    let pdu = message.clear_pdu()?;
    if pdu.kind == PduKind::Response {
        let is_bare = keys.is_some_and(|keys| keys.user.auth.is_none());
        return is_bare.then_some(Heard::Acknowledged(pdu.request_id));
    }
    let refused = |refusal| Some(Heard::Refused(refusal));
    match counter(&pdu)? {
        1 => refused(Refusal::Level),
        3 => refused(Refusal::User),
        4 => {
            let id = parameters.engine_id;
            let is_other = (5..=32).contains(&id.len()) && remote.id != id;
            is_other.then(|| {
                *remote = Remote {
                    id: id.to_vec(),
                    ..Remote::default()
                };
                Heard::Learned
            })
        }
        5 => refused(Refusal::AuthKey),
        6 => refused(Refusal::PrivacyKey),
        _ => None,
    }
}

/// What only the engine can say.
fn authentic(
    remote: &mut Remote,
    keys: &RemoteUser,
    message: &V3Message<'_>,
    parameters: &UsmParameters<'_>,
    datagram: &[u8],
    now_millis: u64,
) -> Option<Heard> {
    let User {
        name,
        auth,
        privacy,
        ..
    } = &keys.user;
    let is_of_it = parameters.engine_id == remote.id && parameters.user == *name;
    let is_signed = parameters.is_signed(auth.as_ref()?, message, datagram);
    if !is_of_it || !is_signed {
        return None;
    }
    let was_late = remote.take_time(parameters, now_millis)?;
    let mut data = message.data;
    let mut plain;
    let text = match message.level() {
        Some(SecurityLevel::AuthPriv) => {
            plain = data.octets().ok()?.to_vec();
            let (boots, time_secs) = (parameters.boots, parameters.time_secs);
            let salt = parameters.privacy;
            usm::decrypt(privacy.as_ref()?, salt, boots, time_secs, &mut plain).then_some(())?;
            &plain
        }
        _ => data.rest(),
    };
    let mut rest = ScopedPdu::read(&mut Reader::new(text)).ok()?.pdu;
    let pdu = Pdu::read(&mut rest).ok()?;
    match pdu.kind {
        PduKind::Response => Some(Heard::Acknowledged(pdu.request_id)),
        PduKind::Report if counter(&pdu)? == 2 && was_late => Some(Heard::Learned),
        _ => None,
    }
}

/// Which counter of RFC 3414 a report names.
fn counter(pdu: &Pdu<'_>) -> Option<u32> {
    let mut counter = None;
    let read = pdu.bindings.for_each(|name, _| {
        if let Some([number, 0]) = name.strip_prefix(USM_STATS) {
            counter = counter.or(Some(*number));
        }
    });
    read.ok()?;
    counter.filter(|_| pdu.kind == PduKind::Report)
}
