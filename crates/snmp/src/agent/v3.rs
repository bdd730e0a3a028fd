//! Messages of v3 on their way in: their security (RFC 3414 §3.2), and the
//! reports that say what is wrong with it.

use std::net::IpAddr;

use super::respond::{self, Request};
use super::run::Patience;
use super::seal::{self, Engine, Envelope, seal};
use super::{Agent, Arrival, Limited, OVERHEAD, Reason, is_request, read_pdu};
use crate::ber::{Full, Malformed, Reader, Writer};
use crate::config::Trust;
use crate::counters::{Counters, count};
use crate::message::{REPORTABLE, ScopedPdu, USM, UsmParameters, V3Message};
use crate::mib::Value;
use crate::pdu::{ErrorStatus, OpenPdu, Pdu, PduKind};
use crate::usm::{self, LAST_BOOTS, SecurityLevel, TIME_WINDOW_SECS};

/// An answer with less room left than this was cut.
const CUT: usize = 100;

/// A message whose parameters were read.
#[derive(Clone, Copy)]
struct Incoming<'a> {
    message: &'a V3Message<'a>,
    parameters: UsmParameters<'a>,
    level: SecurityLevel,
}

/// What a report says: the name of a counter that was counted up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    UnsupportedSecLevels,
    NotInTimeWindows,
    UnknownUserNames,
    UnknownEngineIds,
    WrongDigests,
    DecryptionErrors,
    UnknownPduHandlers,
    UnknownContexts,
}

impl Report {
    /// The counter and its name.
    fn counter(self, counters: &mut Counters) -> (&'static [u32], &mut u32) {
        let usm = &mut counters.usm;
        let mpd = &mut counters.mpd;
        match self {
            Self::UnsupportedSecLevels => (
                &[1, 3, 6, 1, 6, 3, 15, 1, 1, 1, 0],
                &mut usm.unsupported_sec_levels,
            ),
            Self::NotInTimeWindows => (
                &[1, 3, 6, 1, 6, 3, 15, 1, 1, 2, 0],
                &mut usm.not_in_time_windows,
            ),
            Self::UnknownUserNames => (
                &[1, 3, 6, 1, 6, 3, 15, 1, 1, 3, 0],
                &mut usm.unknown_user_names,
            ),
            Self::UnknownEngineIds => (
                &[1, 3, 6, 1, 6, 3, 15, 1, 1, 4, 0],
                &mut usm.unknown_engine_ids,
            ),
            Self::WrongDigests => (&[1, 3, 6, 1, 6, 3, 15, 1, 1, 5, 0], &mut usm.wrong_digests),
            Self::DecryptionErrors => (
                &[1, 3, 6, 1, 6, 3, 15, 1, 1, 6, 0],
                &mut usm.decryption_errors,
            ),
            Self::UnknownPduHandlers => (
                &[1, 3, 6, 1, 6, 3, 11, 2, 1, 3, 0],
                &mut mpd.unknown_pdu_handlers,
            ),
            Self::UnknownContexts => (
                &[1, 3, 6, 1, 6, 3, 12, 1, 5, 0],
                &mut counters.unknown_contexts,
            ),
        }
    }
}

/// Why a message is not taken.
enum Refused {
    Malformed(Malformed),
    Report(Report),
}

impl From<Malformed> for Refused {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl Limited {
    /// Notes a user, who is known.
    fn note(&mut self, user: &[u8], from: IpAddr) {
        if self.told.insert(user.to_vec()) {
            self.news = Some((String::from_utf8_lossy(user).into_owned(), from));
        }
    }
}

impl Agent {
    /// Answers a message of v3.
    pub(super) fn v3(
        &mut self,
        arrival: &Arrival<'_>,
        message: &V3Message<'_>,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        if message.security_model != USM {
            count(&mut self.counters.mpd.unknown_security_models);
            return Err(Reason::SecurityModel(message.security_model));
        }
        let Some(level) = message.level() else {
            count(&mut self.counters.mpd.invalid_msgs);
            return Err(Reason::Flags(message.flags));
        };
        let parameters = match UsmParameters::read(message.security) {
            Ok(parameters) => parameters,
            Err(error) => return Err(self.malformed(error)),
        };
        out.limit(message.max_size);
        let incoming = Incoming {
            message,
            parameters,
            level,
        };
        // The room for a decrypted text is lent while it is read.
        let mut plain = std::mem::take(&mut self.plain);
        let answered = self.secured(arrival, &incoming, &mut plain, out);
        self.plain = plain;
        answered
    }

    fn secured(
        &mut self,
        arrival: &Arrival<'_>,
        incoming: &Incoming<'_>,
        plain: &mut Vec<u8>,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        let checked = self.check(arrival, incoming);
        let is_authentic = checked.is_ok() && incoming.level > SecurityLevel::NoAuthNoPriv;
        let trust = if is_authentic {
            Trust::Authentic
        } else {
            Trust::None
        };
        let budget = self
            .config
            .budget(arrival.datagram.len(), arrival.from, trust);
        out.limit(budget);
        let refused = match checked.and_then(|()| self.open(incoming, plain)) {
            Ok(text) => match self.read_scoped(incoming, text) {
                Ok((scoped, pdu)) => {
                    let too_bigs = self.counters.snmp.out_too_bigs;
                    let answered = self.scoped(arrival, incoming, &scoped, pdu, out);
                    let is_cut = out.room() < CUT || self.counters.snmp.out_too_bigs != too_bigs;
                    let most = self.config.max_message_bytes.min(incoming.message.max_size);
                    if is_authentic && is_cut && budget < most {
                        self.limited.note(incoming.parameters.user, arrival.from);
                    }
                    return answered;
                }
                Err(refused) => refused,
            },
            Err(refused) => refused,
        };
        match refused {
            Refused::Malformed(error) => Err(self.malformed(error)),
            Refused::Report(report) => self.report_unread(arrival, incoming, report, out),
        }
    }

    /// Engine, user, level, digest and time, in the order of RFC 3414 §3.2.
    fn check(&self, arrival: &Arrival<'_>, incoming: &Incoming<'_>) -> Result<(), Refused> {
        let refuse = |report| Err(Refused::Report(report));
        let parameters = &incoming.parameters;
        if parameters.engine_id != self.config.engine_id {
            return refuse(Report::UnknownEngineIds);
        }
        let Some(user) = self.config.user(parameters.user) else {
            return refuse(Report::UnknownUserNames);
        };
        if incoming.level > user.best_level() {
            return refuse(Report::UnsupportedSecLevels);
        }
        let key = user.auth.as_ref();
        let Some(key) = key.filter(|_| incoming.level > SecurityLevel::NoAuthNoPriv) else {
            return Ok(());
        };
        if !parameters.is_signed(key, incoming.message, arrival.datagram) {
            return refuse(Report::WrongDigests);
        }
        if !self.is_in_time(arrival, parameters) {
            return refuse(Report::NotInTimeWindows);
        }
        Ok(())
    }

    /// Whether a message is of this start of the engine and not older, nor
    /// newer, than the time window (RFC 3414 §3.2 step 7a).
    fn is_in_time(&self, arrival: &Arrival<'_>, parameters: &UsmParameters<'_>) -> bool {
        let boots = self.config.engine_boots;
        let now_secs = seal::time_secs(arrival.now_millis);
        boots != LAST_BOOTS
            && parameters.boots == boots
            && parameters.time_secs.abs_diff(now_secs) <= TIME_WINDOW_SECS
    }

    /// The scoped PDU as it is, or decrypted into `plain`.
    fn open<'a>(
        &self,
        incoming: &Incoming<'a>,
        plain: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Refused> {
        let mut data = incoming.message.data;
        if incoming.level < SecurityLevel::AuthPriv {
            let text = data.rest();
            data.element()?;
            data.finish()?;
            return Ok(text);
        }
        let sealed = data.octets()?;
        data.finish()?;
        plain.clear();
        plain.extend_from_slice(sealed);
        let parameters = &incoming.parameters;
        let user = self.config.user(parameters.user);
        let key = user.and_then(|user| user.privacy.as_ref());
        let opened = key.is_some_and(|key| {
            let (boots, time_secs) = (parameters.boots, parameters.time_secs);
            usm::decrypt(key, parameters.privacy, boots, time_secs, plain)
        });
        if opened {
            Ok(plain)
        } else {
            Err(Refused::Report(Report::DecryptionErrors))
        }
    }

    /// Reads a scoped PDU and its names. What is behind it filled up the
    /// last block of an encrypted one. An encrypted one that makes no sense
    /// is authentic: it was encrypted with another key.
    fn read_scoped<'a>(
        &mut self,
        incoming: &Incoming<'_>,
        text: &'a [u8],
    ) -> Result<(ScopedPdu<'a>, Pdu<'a>), Refused> {
        let read = ScopedPdu::read(&mut Reader::new(text)).and_then(|scoped| {
            let mut rest = scoped.pdu;
            Ok((scoped, read_pdu(&mut rest, &mut self.work)?))
        });
        read.map_err(|error| match incoming.level {
            SecurityLevel::AuthPriv => Refused::Report(Report::DecryptionErrors),
            _ => Refused::Malformed(error),
        })
    }

    /// Answers a scoped PDU whose security is as it should be.
    fn scoped(
        &mut self,
        arrival: &Arrival<'_>,
        incoming: &Incoming<'_>,
        scoped: &ScopedPdu<'_>,
        pdu: Pdu<'_>,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        if !is_request(pdu.kind) {
            count(&mut self.counters.mpd.unknown_pdu_handlers);
            return Err(Reason::Handler(pdu.kind));
        }
        let mut envelope = Envelope {
            id: incoming.message.id,
            level: incoming.level,
            flags: 0,
            name: incoming.parameters.user,
            user: None,
            context_engine: scoped.engine_id,
            context: scoped.context,
        };
        let unknown = if scoped.engine_id != self.config.engine_id {
            Err(Report::UnknownPduHandlers)
        } else {
            let mib = arrival.contexts.context(scoped.context);
            mib.ok_or(Report::UnknownContexts)
        };
        let mib = match unknown {
            Ok(mib) => mib,
            Err(report) => {
                return self.report(arrival, incoming, envelope, pdu.request_id, report, out);
            }
        };
        envelope.user = self.config.user(envelope.name);
        let Some(user) = envelope.user else {
            return Err(Reason::Security);
        };
        let request = Request {
            v1: false,
            pdu,
            view: &user.view,
            mib,
            patience: Patience::new(),
        };
        let by_name = arrival.contexts.is_by_name_only(scoped.context);
        let reaches = user.reaches(scoped.context) && !(by_name && user.contexts.is_none());
        let allowed = incoming.level >= user.minimum_level && reaches;
        let engine = Engine::new(&self.config, arrival.now_millis);
        let (work, counters) = (&mut self.work, &mut self.counters.snmp);
        let written = seal(&engine, &mut self.salts, &envelope, out, |out| {
            if allowed {
                work.respond(&request, counters, out)
            } else {
                count(&mut counters.out_get_responses);
                respond::error(&pdu, ErrorStatus::AuthorizationError, 0, true, out)
            }
        });
        self.spent = OVERHEAD + request.patience.spent();
        written.map_err(|Full| self.too_big())
    }

    /// Reports what is wrong with a message that was not read to its PDU.
    fn report_unread(
        &mut self,
        arrival: &Arrival<'_>,
        incoming: &Incoming<'_>,
        report: Report,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        // The asker sets its clock by the one that is signed.
        let level = match report {
            Report::NotInTimeWindows => SecurityLevel::AuthNoPriv,
            _ => SecurityLevel::NoAuthNoPriv,
        };
        let envelope = Envelope {
            id: incoming.message.id,
            level,
            flags: 0,
            name: incoming.parameters.user,
            user: None,
            context_engine: b"",
            context: b"",
        };
        // An encrypted one has a number that nobody here knows.
        let request_id = incoming.message.clear_pdu().map_or(0, |pdu| pdu.request_id);
        self.report(arrival, incoming, envelope, request_id, report, out)
    }

    /// Counts, and writes a report if the message wants one.
    fn report(
        &mut self,
        arrival: &Arrival<'_>,
        incoming: &Incoming<'_>,
        envelope: Envelope<'_>,
        request_id: i32,
        report: Report,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        let (name, counter) = report.counter(&mut self.counters);
        count(counter);
        let value = *counter;
        if !is_reportable(incoming.message) {
            return Err(match report {
                Report::UnknownPduHandlers | Report::UnknownContexts => Reason::Context,
                _ => Reason::Security,
            });
        }
        let engine = Engine::new(&self.config, arrival.now_millis);
        let envelope = Envelope {
            user: self.config.user(envelope.name),
            // Contexts are those of this engine, whatever was asked for.
            context_engine: engine.id,
            ..envelope
        };
        let written = seal(&engine, &mut self.salts, &envelope, out, |out| {
            let open = OpenPdu::begin(out, PduKind::Report, request_id, 0, 0)?;
            out.binding(name, &Value::Counter32(value))?;
            open.end(out);
            Ok(())
        });
        written.map_err(|Full| self.too_big())
    }
}

/// Whether a report may be sent about a message: its flag says so where its
/// PDU is not known; one that is known must want an answer (RFC 3412 §6.4).
fn is_reportable(message: &V3Message<'_>) -> bool {
    let wants_answer = message
        .clear_pdu()
        .is_none_or(|pdu| pdu.kind.is_confirmed());
    message.flags & REPORTABLE != 0 && wants_answer
}
