//! What a subagent may ask a master (RFC 2741 §7.1), and how it is
//! answered. Called by [`super::Master`].

use std::sync::Arc;

use super::registry::Named;
use super::{
    Capability, Cut, Event, MAX_CAPABILITIES_OF_SESSION, MAX_SESSIONS_OF_CONNECTION, Master, Now,
    Session, Told, next_free, oid,
};
use crate::agentx::owned::{OwnedValue, Row};
use crate::agentx::wire::{Header, Malformed, Message, Payload, error, flag, kind};
use crate::agentx::{answer, wire};

/// `sysUpTime.0` and `snmpTrapOID.0`.
const SYS_UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
const SNMP_TRAP_OID: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// A context's name has at most so many octets (RFC 3411 §5).
const MAX_CONTEXT_BYTES: usize = 32;
/// Bindings of one request at most.
const MAX_BINDINGS: usize = 1_024;

/// What a request is answered.
struct Outcome {
    error: u16,
    /// The place of the binding that is wrong, from 1, or 0.
    index: u16,
    bindings: Vec<Row>,
}

impl Outcome {
    fn of(error: u16) -> Self {
        Self {
            error,
            index: 0,
            bindings: Vec::new(),
        }
    }
}

impl From<Result<(), u16>> for Outcome {
    fn from(result: Result<(), u16>) -> Self {
        Self::of(result.err().unwrap_or(error::NONE))
    }
}

impl Master {
    /// Does what a subagent asks, and answers it.
    pub(super) fn request(
        &mut self,
        connection: u32,
        header: &Header,
        payload: Payload<'_>,
        now: Now,
    ) -> Result<(), Cut> {
        let known = self.sessions.get(&header.session);
        let is_known = known.is_some_and(|session| session.connection == connection);
        let mut session = header.session;
        let outcome = match header.kind {
            kind::OPEN => self.open(connection, header, payload).map(|opened| {
                session = opened.unwrap_or(0);
                Outcome::of(match opened {
                    Some(_) => error::NONE,
                    None => error::OPEN_FAILED,
                })
            }),
            kind::GET..=kind::CLEANUP_SET | kind::RESPONSE => {
                return Err(Cut::Unexpected(header.kind));
            }
            kind::CLOSE..=kind::REMOVE_AGENT_CAPS if !is_known => Ok(Outcome::of(error::NOT_OPEN)),
            kind::CLOSE..=kind::REMOVE_AGENT_CAPS => self.of_session(header, payload, now),
            other => return Err(Cut::Unexpected(other)),
        };
        let outcome = outcome.unwrap_or_else(|_| Outcome::of(error::PARSE_ERROR));
        self.respond(connection, &Header { session, ..*header }, &outcome, now);
        Ok(())
    }

    fn respond(&mut self, connection: u32, header: &Header, outcome: &Outcome, now: Now) {
        let Some(at) = self.connections.get_mut(&connection) else {
            return;
        };
        let header = Header {
            kind: kind::RESPONSE,
            flags: header.flags & flag::NETWORK_BYTE_ORDER,
            ..*header
        };
        let mut message = Message::begin_in_order(&mut at.output, &header);
        message.word(now.up_time);
        message.halves(outcome.error, outcome.index);
        for row in &outcome.bindings {
            message.binding(&row.name, &row.value.value());
        }
        message.end();
    }

    /// A session's number; `None`: there are too many.
    fn open(
        &mut self,
        connection: u32,
        header: &Header,
        mut payload: Payload<'_>,
    ) -> Result<Option<u32>, Malformed> {
        let [timeout_secs, ..] = payload.quad("an Open")?;
        payload.name()?;
        let description = payload.octets()?;
        let sessions = self.sessions.values();
        let of_connection = sessions.filter(|one| one.connection == connection).count();
        if of_connection >= MAX_SESSIONS_OF_CONNECTION {
            return Ok(None);
        }
        self.last_session = next_free(self.last_session, &self.sessions);
        let session = Session {
            connection,
            order: header.flags & flag::NETWORK_BYTE_ORDER,
            timeout_millis: millis(timeout_secs).unwrap_or(self.config.timeout_millis),
            description: description_of(description),
            questions: Default::default(),
            notifications: 0,
        };
        self.sessions.insert(self.last_session, session);
        Ok(Some(self.last_session))
    }

    /// What only an open session may ask.
    fn of_session(
        &mut self,
        header: &Header,
        mut payload: Payload<'_>,
        now: Now,
    ) -> Result<Outcome, Malformed> {
        if header.kind == kind::CLOSE {
            self.close(header.session);
            return Ok(Outcome::of(error::NONE));
        }
        let context = answer::context(header, &mut payload)?;
        if context.len() > MAX_CONTEXT_BYTES {
            return Ok(Outcome::of(error::UNSUPPORTED_CONTEXT));
        }
        match header.kind {
            kind::REGISTER => self.register(header.session, context, payload),
            kind::UNREGISTER => self.unregister(header.session, context, payload),
            kind::NOTIFY => self.notified(header.session, context, payload),
            kind::INDEX_ALLOCATE | kind::INDEX_DEALLOCATE => self.index(header, context, payload),
            kind::ADD_AGENT_CAPS => {
                self.add_capability(header.session, context, payload, now.up_time)
            }
            kind::REMOVE_AGENT_CAPS => self.remove_capability(header.session, context, payload),
            // A Ping asks for nothing but an answer.
            _ => Ok(Outcome::of(error::NONE)),
        }
    }

    fn register(
        &mut self,
        session: u32,
        context: &[u8],
        mut payload: Payload<'_>,
    ) -> Result<Outcome, Malformed> {
        let (timeout_secs, named) = read_named(context, &mut payload)?;
        let of_session = self.sessions.get(&session).map(|one| one.timeout_millis);
        let timeout_millis = millis(timeout_secs).or(of_session).unwrap_or_default();
        let registered = self.registry.register(session, named, timeout_millis);
        self.is_dispatch_old |= registered.is_ok();
        Ok(registered.into())
    }

    fn unregister(
        &mut self,
        session: u32,
        context: &[u8],
        mut payload: Payload<'_>,
    ) -> Result<Outcome, Malformed> {
        let (_, named) = read_named(context, &mut payload)?;
        let unregistered = self.registry.unregister(session, &named);
        self.is_dispatch_old |= unregistered.is_ok();
        Ok(unregistered.into())
    }

    /// The first binding is snmpTrapOID.0, or sysUpTime.0 and that
    /// (RFC 2741 §6.2.10).
    fn notified(
        &mut self,
        session: u32,
        context: &[u8],
        payload: Payload<'_>,
    ) -> Result<Outcome, Malformed> {
        let mut rows = read_bindings(payload)?;
        let mut up_time = None;
        if let Some(row) = rows.first()
            && *row.name == *SYS_UP_TIME
            && let OwnedValue::TimeTicks(ticks) = row.value
        {
            up_time = Some(ticks);
            rows.remove(0);
        }
        let name = match rows.first() {
            Some(Row {
                name,
                value: OwnedValue::ObjectIdentifier(value),
            }) if **name == *SNMP_TRAP_OID => value.clone(),
            _ => return Ok(Outcome::of(error::PROCESSING_ERROR)),
        };
        rows.remove(0);
        if let Some(session) = self.sessions.get_mut(&session) {
            session.notifications += 1;
        }
        self.events.push(Event::Notified(Told {
            context: context.to_vec(),
            up_time,
            name,
            rows,
        }));
        Ok(Outcome::of(error::NONE))
    }

    fn index(
        &mut self,
        header: &Header,
        context: &[u8],
        payload: Payload<'_>,
    ) -> Result<Outcome, Malformed> {
        let rows = read_bindings(payload)?;
        let session = header.session;
        let done = if header.kind == kind::INDEX_ALLOCATE {
            self.indexes
                .allocate(session, context, header.flags, rows.clone())
        } else {
            let done = self.indexes.deallocate(session, context, &rows);
            done.map(|()| rows.clone())
        };
        Ok(match done {
            Ok(bindings) => Outcome {
                bindings,
                ..Outcome::of(error::NONE)
            },
            Err((error, index)) => Outcome {
                error,
                index,
                bindings: rows,
            },
        })
    }

    fn add_capability(
        &mut self,
        session: u32,
        context: &[u8],
        mut payload: Payload<'_>,
        up_time: u32,
    ) -> Result<Outcome, Malformed> {
        let (id, _) = payload.name()?;
        let description = payload.octets()?;
        let of_session = self
            .capabilities
            .iter()
            .filter(|one| one.session == session);
        if of_session.count() >= MAX_CAPABILITIES_OF_SESSION {
            return Ok(Outcome::of(error::REQUEST_DENIED));
        }
        // `sysORDescr` is a DisplayString.
        let description = description.get(..255).unwrap_or(description);
        Arc::make_mut(&mut self.capabilities).push(Capability {
            session,
            context: context.to_vec(),
            id: oid(&id),
            description: description.into(),
            up_time,
        });
        Ok(Outcome::of(error::NONE))
    }

    fn remove_capability(
        &mut self,
        session: u32,
        context: &[u8],
        mut payload: Payload<'_>,
    ) -> Result<Outcome, Malformed> {
        let (id, _) = payload.name()?;
        let found = self.capabilities.iter().position(|one| {
            one.session == session && one.context == context && *one.id == *id.as_slice()
        });
        let Some(at) = found else {
            return Ok(Outcome::of(error::UNKNOWN_AGENT_CAPS));
        };
        Arc::make_mut(&mut self.capabilities).remove(at);
        Ok(Outcome::of(error::NONE))
    }
}

/// Register and Unregister look the same (RFC 2741 §6.2.3, §6.2.4).
fn read_named(context: &[u8], payload: &mut Payload<'_>) -> Result<(u8, Named), Malformed> {
    let [timeout_secs, priority, place, _] = payload.quad("a registration")?;
    let (subtree, _) = payload.name()?;
    let last = match place {
        0 => 0,
        _ => payload.word("a registration")?,
    };
    let named = Named {
        context: context.to_vec(),
        subtree,
        priority,
        range: (place, last),
    };
    Ok((timeout_secs, named))
}

fn read_bindings(mut payload: Payload<'_>) -> Result<Vec<Row>, Malformed> {
    let mut rows = Vec::new();
    while !payload.is_empty() {
        if rows.len() >= MAX_BINDINGS {
            return Err(Malformed::Short("its bindings"));
        }
        rows.push(payload.binding()?);
    }
    Ok(rows)
}

/// Seconds that a subagent asks for; 0: it has no wish. net-snmp's library
/// says -1 for that.
fn millis(secs: u8) -> Option<u64> {
    (!matches!(secs, 0 | u8::MAX)).then(|| u64::from(secs) * 1_000)
}

/// What a subagent says of itself, as one line.
fn description_of(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let shown = text.chars().map(|char| match char.is_control() {
        true => ' ',
        false => char,
    });
    shown.take(wire::MAX_DESCRIPTION_CHARS).collect()
}
