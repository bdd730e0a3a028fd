//! How SNMP is, for a daemon's status. Set by [`super::Service`].

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::listener::Shared;
use super::subagent::Subagent;
use super::{master, notify};
use crate::status::SnmpStatus;

/// Where a daemon's status finds how SNMP is. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Mutex<Option<Parts>>>);

/// Whom it asks.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) shared: Arc<Shared>,
    pub(super) listening: Vec<SocketAddr>,
    pub(super) version_3: Option<String>,
    pub(super) subagent: Option<Arc<Subagent>>,
    pub(super) subagents: Option<master::Handle>,
    pub(super) notifier: notify::Counts,
}

impl Gauge {
    pub(super) fn set(&self, parts: Option<Parts>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// How SNMP is; `None` where it does not run.
    pub fn status(&self) -> Option<SnmpStatus> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts.as_ref()?;
        let counters = parts.shared.counted();
        let requests = counters.snmp.in_pkts;
        // Notifications answer nobody.
        let sent = counters.snmp.out_pkts;
        let withheld = parts.shared.withheld();
        let answers = sent.wrapping_sub(counters.snmp.out_traps);
        let answers = answers.wrapping_sub(withheld as u32);
        Some(SnmpStatus {
            listening: parts.listening.iter().map(ToString::to_string).collect(),
            version_3_off: parts.version_3.clone(),
            requests,
            answers,
            dropped: requests.wrapping_sub(answers),
            bindings: counters.snmp.in_total_req_vars,
            unsent: parts.shared.unsent(),
            old: parts.shared.old(),
            withheld,
            agentx: parts.subagent.as_ref().map(|subagent| subagent.status()),
            agentx_master: parts.subagents.as_ref().map(master::Handle::status),
            notifications: parts.notifier.sent(),
            notifications_acknowledged: parts.notifier.acknowledged(),
            notifications_given_up: parts.notifier.given_up(),
            notifications_waiting: parts.notifier.waiting(),
            notifications_dropped: parts.notifier.dropped(),
        })
    }
}
