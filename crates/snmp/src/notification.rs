//! Notifications (RFC 3416 §4.2.6, §4.2.7; RFC 1157 §4.1.6) as messages for
//! one receiver: traps of v1, v2c and v3, informs of v2c and v3. The program says
//! what happened, sends the bytes and, for an inform, waits for its answer.

use crate::agent::Agent;
use crate::agent::seal::{Engine, Envelope, seal};
use crate::ber::{Full, Writer, tag};
use crate::config::User;
use crate::counters::count;
use crate::message::{Message, REPORTABLE, V1, V2C};
use crate::mib::Value;
use crate::pdu::{OpenPdu, Pdu, PduKind};
use crate::remote::Remote;
use crate::usm::SecurityLevel;

/// `sysUpTime.0`, the first binding of each notification.
const SYS_UP_TIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// `snmpTrapOID.0`, the second.
const SNMP_TRAP_OID: [u32; 11] = [1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// `snmpTraps`: the notifications that v1 has a number for, `coldStart` (1)
/// to `egpNeighborLoss` (6).
pub const SNMP_TRAPS: [u32; 9] = [1, 3, 6, 1, 6, 3, 1, 1, 5];

/// What happened.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    /// `snmpTrapOID`, such as that of `linkDown`.
    pub name: &'a [u32],
    /// `sysUpTime` at that time, hundredths of a second.
    pub up_time: u32,
    /// What else is told of it.
    pub bindings: &'a [(&'a [u32], Value<'a>)],
}

/// Whom it is told, and how.
#[derive(Clone, Copy)]
pub enum Receiver<'a> {
    /// A trap of v1.
    TrapV1 {
        /// Its community.
        community: &'a [u8],
        /// `enterprise` of a trap that v1 has a number for: of a standard
        /// one [`SNMP_TRAPS`] (RFC 3584 §3.1).
        enterprise: &'a [u32],
        /// `agent-addr`.
        agent: [u8; 4],
    },
    /// A trap of v2c.
    TrapV2c {
        /// Its community.
        community: &'a [u8],
    },
    /// An inform of v2c: to be answered, see [`answers_inform`].
    InformV2c {
        /// Its community.
        community: &'a [u8],
    },
    /// An inform of v3, to an engine that is known, as one of its users: see
    /// [`crate::remote`].
    InformV3 {
        /// The receiver's engine.
        remote: &'a Remote,
        /// The user's name.
        user: &'a [u8],
        /// The context that the bindings are of.
        context: &'a [u8],
    },
    /// A trap of v3 as one of the agent's users.
    TrapV3 {
        /// The user's name.
        user: &'a [u8],
        /// How it is protected.
        level: SecurityLevel,
        /// The context that the bindings are of.
        context: &'a [u8],
    },
}

/// Why a notification is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// It is too long.
    #[error("the notification does not fit into a message")]
    TooBig(#[from] Full),
    /// There are no keys of this user that are localised to the receiver's
    /// engine.
    #[error("the user has no keys for the receiver's engine")]
    RemoteUser,
    /// No user has this name, or the keys for this level.
    #[error("no user of this name has keys for this level: add one, or lower the level")]
    User,
    /// v1 has no 64-bit counters (RFC 3584 §3.2).
    #[error("a trap of v1 cannot carry a Counter64: send it as v2c")]
    Counter64,
}

impl Agent {
    /// Writes a notification for a receiver into `out` (best of
    /// [`crate::agent::ANSWER_BUFFER_BYTES`]); the return is its length.
    /// `id` tells it from others: `request-id`, and `msgID` of v3, for which
    /// its sign is taken off. O(bindings), no allocation.
    pub fn notify(
        &mut self,
        receiver: &Receiver<'_>,
        notification: &Notification<'_>,
        id: i32,
        now_millis: u64,
        out: &mut [u8],
    ) -> Result<usize, NotificationError> {
        let mut out = Writer::new(out);
        out.limit(self.config.max_message_bytes);
        match *receiver {
            Receiver::TrapV1 {
                community,
                enterprise,
                agent,
            } => with_community(V1, community, &mut out, |out| {
                trap_v1(notification, enterprise, agent, out)
            })?,
            Receiver::TrapV2c { community } => with_community(V2C, community, &mut out, |out| {
                Ok(trap(PduKind::Trap, notification, id, out)?)
            })?,
            Receiver::InformV2c { community } => with_community(V2C, community, &mut out, |out| {
                Ok(trap(PduKind::Inform, notification, id, out)?)
            })?,
            Receiver::InformV3 {
                remote,
                user,
                context,
            } => {
                let keys = self
                    .config
                    .remote_user(remote.engine_id().unwrap_or_default(), user);
                let user = &keys.ok_or(NotificationError::RemoteUser)?.user;
                let own = Engine::new(&self.config, now_millis);
                let envelope = Envelope {
                    flags: REPORTABLE,
                    ..envelope(&own, user, user.best_level(), context, id)
                };
                let engine = remote.engine(now_millis, self.config.max_message_bytes);
                seal(&engine, &mut self.salts, &envelope, &mut out, |out| {
                    trap(PduKind::Inform, notification, id, out)
                })?;
            }
            Receiver::TrapV3 {
                user,
                level,
                context,
            } => {
                let user = self.config.user(user);
                let user = user.filter(|user| level <= user.best_level());
                let user = user.ok_or(NotificationError::User)?;
                let engine = Engine::new(&self.config, now_millis);
                let envelope = envelope(&engine, user, level, context, id);
                seal(&engine, &mut self.salts, &envelope, &mut out, |out| {
                    trap(PduKind::Trap, notification, id, out)
                })?;
            }
        }
        count(&mut self.counters.snmp.out_pkts);
        count(&mut self.counters.snmp.out_traps);
        Ok(out.len())
    }
}

/// The `request-id` of an inform that a datagram answers, `None` if it
/// answers none of this community.
pub fn answers_inform(datagram: &[u8], community: &[u8]) -> Option<i32> {
    let Ok(Message::Community(mut message)) = Message::read(datagram) else {
        return None;
    };
    let pdu = Pdu::read(&mut message.pdu).ok()?;
    let right = message.version == V2C && message.community == community;
    (right && pdu.kind == PduKind::Response).then_some(pdu.request_id)
}

fn envelope<'a>(
    engine: &Engine<'a>,
    user: &'a User,
    level: SecurityLevel,
    context: &'a [u8],
    id: i32,
) -> Envelope<'a> {
    Envelope {
        id: id & i32::MAX,
        level,
        flags: 0,
        name: &user.name,
        user: Some(user),
        context_engine: engine.id,
        context,
    }
}

fn with_community(
    version: i32,
    community: &[u8],
    out: &mut Writer<'_>,
    pdu: impl FnOnce(&mut Writer<'_>) -> Result<(), NotificationError>,
) -> Result<(), NotificationError> {
    let message = out.open(tag::SEQUENCE)?;
    out.integer(version)?;
    out.octets(community)?;
    pdu(out)?;
    out.close(message);
    Ok(())
}

fn trap(
    kind: PduKind,
    notification: &Notification<'_>,
    id: i32,
    out: &mut Writer<'_>,
) -> Result<(), Full> {
    let pdu = OpenPdu::begin(out, kind, id, 0, 0)?;
    out.binding(&SYS_UP_TIME, &Value::TimeTicks(notification.up_time))?;
    out.binding(&SNMP_TRAP_OID, &Value::ObjectIdentifier(notification.name))?;
    for (name, value) in notification.bindings {
        out.binding(name, value)?;
    }
    pdu.end(out);
    Ok(())
}

/// A trap of v1, translated by RFC 3584 §3.2.
fn trap_v1(
    notification: &Notification<'_>,
    enterprise: &[u32],
    agent: [u8; 4],
    out: &mut Writer<'_>,
) -> Result<(), NotificationError> {
    let mut bindings = notification.bindings.iter();
    if bindings.any(|(_, value)| matches!(value, Value::Counter64(_))) {
        return Err(NotificationError::Counter64);
    }
    let (enterprise, generic, specific) = match notification.name.strip_prefix(&SNMP_TRAPS) {
        Some([number @ 1..=6]) => (enterprise, *number as i32 - 1, 0),
        _ => specific(notification.name),
    };
    let pdu = out.open(PduKind::TrapV1.tag())?;
    out.name(enterprise)?;
    out.value(&Value::IpAddress(agent))?;
    out.integer(generic)?;
    out.integer(specific)?;
    out.value(&Value::TimeTicks(notification.up_time))?;
    let list = out.open(tag::SEQUENCE)?;
    for (name, value) in notification.bindings {
        out.binding(name, value)?;
    }
    out.close(list);
    out.close(pdu);
    Ok(())
}

/// `enterpriseSpecific` (6): the name's end is `specific-trap`, what is
/// ahead of it, less a zero, the enterprise.
fn specific(name: &[u32]) -> (&[u32], i32, i32) {
    let (last, head) = name.split_last().unwrap_or((&0, &[]));
    let enterprise = head.strip_suffix(&[0]).unwrap_or(head);
    (enterprise, 6, i32::try_from(*last).unwrap_or(i32::MAX))
}
