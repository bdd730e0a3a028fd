//! What is measured of AgentX subagents. Called by [`super`].

use std::fmt::Write as _;

use super::head;
use crate::status::AgentxMasterStatus;

/// Writes how the AgentX master is.
pub fn write(master: &AgentxMasterStatus, out: &mut String) {
    for (name, help, kind, value) in [
        (
            "subagents",
            "Subagents connected",
            "gauge",
            master.connections,
        ),
        (
            "sessions",
            "Sessions with subagents",
            "gauge",
            master.sessions.len() as u64,
        ),
        (
            "sessions_stalled",
            "Sessions that answer nothing",
            "gauge",
            master
                .sessions
                .iter()
                .filter(|one| one.stalled_millis.is_some())
                .count() as u64,
        ),
        (
            "subagents_cut_total",
            "Subagents cut for what they sent or did not send",
            "counter",
            master.cut,
        ),
        (
            "subagents_refused_total",
            "Subagents refused for want of a place",
            "counter",
            master.refused_connections,
        ),
        (
            "questions_total",
            "Questions that subagents were asked",
            "counter",
            master.questions,
        ),
        (
            "questions_timed_out_total",
            "Questions that were not answered in time",
            "counter",
            master.timed_out,
        ),
        (
            "rows_total",
            "Rows that subagents answered",
            "counter",
            master.rows,
        ),
        (
            "requests_waiting",
            "SNMP requests that wait for subagents",
            "gauge",
            master.waiting,
        ),
        (
            "requests_dropped_total",
            "SNMP requests dropped because too many waited for subagents",
            "counter",
            master.dropped,
        ),
    ] {
        let name = format!("fingerpost_agentx_{name}");
        head(out, &name, help, kind);
        let _ = writeln!(out, "{name} {value}");
    }
}
