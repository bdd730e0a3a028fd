//! The agent: a datagram in, a datagram out or none. Called by the
//! program's listeners, one agent for each.
//!
//! An agent answers from what [`Contexts`] show it at the moment of the
//! request and keeps nothing of an asker: its memory does not grow with the
//! number of those who ask.

mod bulk;
mod respond;
mod run;
pub(crate) mod seal;
mod v3;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use crate::ber::{Full, Malformed, Reader, Writer, tag};
use crate::config::{Config, ConfigError, Trust};
use crate::counters::{Counters, count};
use crate::message::{CommunityMessage, Message, V1};
use crate::mib::Contexts;
use crate::pdu::{Pdu, PduKind};
use crate::usm::Salts;
use respond::{Request, Work};
use run::Patience;

/// A buffer for answers of this length is always long enough; a shorter one
/// makes them shorter.
pub const ANSWER_BUFFER_BYTES: usize = 66_560;

/// What a request costs besides its names, in units of [`Agent::work`].
const OVERHEAD: u32 = 32;

/// Users whose answers were cut, to be told of once each.
#[derive(Debug, Default)]
pub(crate) struct Limited {
    /// As many as there are users, at most.
    told: BTreeSet<Vec<u8>>,
    news: Option<(String, IpAddr)>,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is answered by the first so many bytes of the buffer.
    Answered(usize),
    /// It is not answered.
    Dropped(Reason),
    /// What it is answered from is not there yet
    /// ([`Contexts::is_waiting`]): hand it in again later. Nothing was
    /// counted.
    PutOff,
}

/// Why a datagram is not answered; each is counted in [`Counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is no SNMP message.
    Malformed(Malformed),
    /// It is of a version that there is not.
    Version(i32),
    /// No community has this name and takes it from this source.
    Community,
    /// It is of a security model that there is not.
    SecurityModel(u32),
    /// Its flags ask for encryption without authentication.
    Flags(u8),
    /// An agent takes no such PDU.
    Handler(PduKind),
    /// Its security failed (`usmStats…`), and it wants no report.
    Security,
    /// Its context or engine is not here, and it wants no report.
    Context,
    /// Not even an error fits into an answer of the length allowed.
    TooBig,
}

/// One engine with its configuration, counters and working memory.
pub struct Agent {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    pub(crate) salts: Salts,
    work: Work,
    /// A decrypted request, kept for its room.
    plain: Vec<u8>,
    /// What the last request has cost.
    spent: u32,
    limited: Limited,
}

impl fmt::Debug for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Agent");
        shown.field("config", &self.config);
        shown.field("counters", &self.counters);
        shown.finish_non_exhaustive()
    }
}

/// What belongs to one request while it is answered.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    datagram: &'a [u8],
    from: IpAddr,
    now_millis: u64,
    contexts: &'a dyn Contexts,
}

impl Agent {
    /// An agent that answers as it is told. Errors name what is wrong with
    /// the configuration.
    pub fn new(mut config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        config.users.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            counters: Counters::default(),
            salts: Salts::new(config.salt_seed),
            config,
            work: Work::default(),
            plain: Vec::new(),
            spent: 0,
            limited: Limited::default(),
        })
    }

    /// Answers as it is told now; counters and salts go on. Errors name what
    /// is wrong, and change nothing.
    pub fn reconfigure(&mut self, mut config: Config) -> Result<(), ConfigError> {
        config.check()?;
        config.users.sort_by(|a, b| a.name.cmp(&b.name));
        self.config = config;
        Ok(())
    }

    /// What was counted since the agent was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the agent was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the last datagram has cost, in units of some 0.1 µs: at most
    /// some 3 ms, whatever was asked.
    pub fn work(&self) -> u32 {
        self.spent
    }

    /// The user whose answer was just cut by
    /// [`Config::authentic_amplification`], and whence he asked; each user
    /// is told of once.
    pub fn take_limited(&mut self) -> Option<(String, IpAddr)> {
        self.limited.news.take()
    }

    /// Answers one datagram into `out` (best of [`ANSWER_BUFFER_BYTES`]).
    /// `now_millis` counts from the start of the engine
    /// (`snmpEngineTime` is its whole seconds).
    ///
    /// O(names asked for and answered), each one `get` or one seek and a
    /// run; no allocation once the working memory has grown to the size of
    /// the requests (at most a few hundred kilobytes). Nothing that arrives
    /// makes it panic, wait or keep more.
    pub fn answer(
        &mut self,
        datagram: &[u8],
        from: IpAddr,
        now_millis: u64,
        contexts: &dyn Contexts,
        out: &mut [u8],
    ) -> Outcome {
        let before = self.counters;
        self.spent = OVERHEAD;
        count(&mut self.counters.snmp.in_pkts);
        let arrival = Arrival {
            datagram,
            from: from.to_canonical(),
            now_millis,
            contexts,
        };
        let mut out = Writer::new(out);
        let answered = match Message::read(datagram) {
            Ok(Message::Community(message)) => self.community(&arrival, &message, &mut out),
            Ok(Message::V3(message)) => self.v3(&arrival, &message, &mut out),
            Ok(Message::Unknown(version)) => {
                count(&mut self.counters.snmp.in_bad_versions);
                Err(Reason::Version(version))
            }
            Err(error) => Err(self.malformed(error)),
        };
        if contexts.is_waiting() {
            self.counters = before;
            return Outcome::PutOff;
        }
        match answered {
            Ok(()) => {
                count(&mut self.counters.snmp.out_pkts);
                Outcome::Answered(out.len())
            }
            Err(reason) => Outcome::Dropped(reason),
        }
    }

    fn malformed(&mut self, error: Malformed) -> Reason {
        count(&mut self.counters.snmp.in_asn_parse_errs);
        Reason::Malformed(error)
    }

    fn community(
        &mut self,
        arrival: &Arrival<'_>,
        message: &CommunityMessage<'_>,
        out: &mut Writer<'_>,
    ) -> Result<(), Reason> {
        let found = self.config.community(message.community, arrival.from);
        let Some((community, listed)) = found else {
            count(&mut self.counters.snmp.in_bad_community_names);
            return Err(Reason::Community);
        };
        let trust = if listed { Trust::Listed } else { Trust::None };
        out.limit(
            self.config
                .budget(arrival.datagram.len(), arrival.from, trust),
        );
        let v1 = message.version == V1;
        let mut rest = message.pdu;
        let pdu = read_pdu(&mut rest, &mut self.work);
        let pdu = match pdu {
            Ok(pdu) if !(v1 && pdu.kind == PduKind::GetBulk) => pdu,
            Ok(pdu) => return Err(self.malformed(Malformed::Value(pdu.kind.tag()))),
            Err(Malformed::Value(tag)) if tag == PduKind::TrapV1.tag() => {
                count(&mut self.counters.mpd.unknown_pdu_handlers);
                return Err(Reason::Handler(PduKind::TrapV1));
            }
            Err(error) => return Err(self.malformed(error)),
        };
        if !is_request(pdu.kind) {
            count(&mut self.counters.mpd.unknown_pdu_handlers);
            return Err(Reason::Handler(pdu.kind));
        }
        if pdu.kind == PduKind::Set {
            count(&mut self.counters.snmp.in_bad_community_uses);
        }
        // The default context was not named.
        let is_named = !community.context.is_empty();
        let contexts = arrival.contexts;
        let found = (is_named || !contexts.is_by_name_only(b""))
            .then(|| contexts.context(&community.context));
        let Some(mib) = found.flatten() else {
            count(&mut self.counters.unknown_contexts);
            return Err(Reason::Context);
        };
        let request = Request {
            v1,
            pdu,
            view: &community.view,
            mib,
            patience: Patience::new(),
        };
        let written = wrap_community(out, message, |out| {
            self.work.respond(&request, &mut self.counters.snmp, out)
        });
        self.spent = OVERHEAD + request.patience.spent();
        written.map_err(|Full| self.too_big())
    }

    fn too_big(&mut self) -> Reason {
        count(&mut self.counters.snmp.silent_drops);
        Reason::TooBig
    }
}

/// Writes a message of v1 or v2c around a PDU.
fn wrap_community(
    out: &mut Writer<'_>,
    message: &CommunityMessage<'_>,
    pdu: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<(), Full> {
    let mark = out.open(tag::SEQUENCE)?;
    out.integer(message.version)?;
    out.octets(message.community)?;
    pdu(out)?;
    out.close(mark);
    Ok(())
}

/// Reads a PDU that ends its container, and its names.
fn read_pdu<'a>(rest: &mut Reader<'a>, work: &mut Work) -> Result<Pdu<'a>, Malformed> {
    let pdu = Pdu::read(rest)?;
    rest.finish()?;
    work.read_names(pdu.bindings)?;
    Ok(pdu)
}

/// What an agent takes.
fn is_request(kind: PduKind) -> bool {
    kind.is_confirmed() && kind != PduKind::Inform
}

#[cfg(test)]
mod tests;
