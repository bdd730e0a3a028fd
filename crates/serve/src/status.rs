//! How a daemon is: gathered in it, shown by `fingerpost status`.

mod feeders;
mod history;
mod monitored;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use table::Tables;
use view::Object;

pub use crate::forwarding::ForwardingStatus;
pub use feeders::{FeederStatus, feeders};
pub use history::HistoryStatus;
pub use monitored::{EventStatus, PeerStatus, RouterStatus};

/// How a daemon is, for one namespace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// The namespace, as it was named; `None`: the daemon's own.
    pub netns: Option<String>,
    /// The namespace's inode.
    pub inode: u64,
    /// Since when it mirrors.
    pub uptime_secs: u64,
    /// The mirror.
    pub mirror: MirrorStatus,
    /// The tables.
    pub tables: Vec<TableStatus>,
    /// Number of changes of the tables since the start.
    pub generation: u64,
    /// Memory of the whole daemon, as the system counts it.
    pub resident_bytes: u64,
    /// Neighbours of all namespaces against the kernel's limit.
    pub pressure: Vec<Pressure>,
    /// Those who feed rows beside the kernel's.
    #[serde(default)]
    pub feeders: Vec<FeederStatus>,
    /// What was answered, for all namespaces.
    pub answered: Answered,
    /// SNMP, for all namespaces; `None` where it does not run.
    #[serde(default)]
    pub snmp: Option<SnmpStatus>,
    /// The recording, of all namespaces; `None` where none is made.
    #[serde(default)]
    pub recording: Option<RecordingStatus>,
    /// Forwarding at XDP in this namespace; `None` where there is none.
    #[serde(default)]
    pub router: Option<ForwardingStatus>,
    /// The history, of all namespaces; `None` where none is kept.
    #[serde(default)]
    pub history: Option<HistoryStatus>,
}

/// How the recording is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordingStatus {
    /// The file that is written.
    pub file: String,
    /// Which part of the recording it is, from 0.
    pub part: u32,
    /// Records written.
    pub records: u64,
    /// Octets written.
    pub bytes: u64,
    /// Records that had no place in the queue, or came after its end.
    pub lost: u64,
    /// Places in it where some are missing.
    pub gaps: u64,
    /// Why it stopped, if it did.
    pub stopped: Option<String>,
}

/// How SNMP is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SnmpStatus {
    /// UDP addresses that it is asked at.
    pub listening: Vec<String>,
    /// Why version 3 authenticates nobody, if it does not.
    pub version_3_off: Option<String>,
    /// Datagrams received (`snmpInPkts`).
    pub requests: u32,
    /// Answers sent (`snmpOutPkts` without notifications).
    pub answers: u32,
    /// Requests that were not answered; the groups `snmp`, `snmpMPDStats`
    /// and `usmStats` say why.
    pub dropped: u32,
    /// Variable bindings answered (`snmpInTotalReqVars`).
    pub bindings: u32,
    /// Answers that the system did not take.
    pub unsent: u64,
    /// Answers with counters or ages that were older than a second, because
    /// none came in time.
    #[serde(default)]
    pub old: u64,
    /// Requests that were not answered, because all counters of links that
    /// there were are older than a second: who asks again gets later ones.
    #[serde(default)]
    pub withheld: u64,
    /// The AgentX master, where one is configured.
    pub agentx: Option<AgentxStatus>,
    /// What AgentX subagents find, where they may attach.
    pub agentx_master: Option<AgentxMasterStatus>,
    /// Notifications sent to targets.
    pub notifications: u64,
    /// Informs that were acknowledged.
    #[serde(default)]
    pub notifications_acknowledged: u64,
    /// Informs that were sent as often as they may be, in vain.
    #[serde(default)]
    pub notifications_given_up: u64,
    /// Notifications that wait to be sent, or to be acknowledged.
    #[serde(default)]
    pub notifications_waiting: u64,
    /// Notifications dropped.
    pub notifications_dropped: u64,
}

/// How we are as an AgentX master.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentxMasterStatus {
    /// The socket that subagents connect to.
    pub path: String,
    /// Connections of subagents.
    pub connections: u64,
    /// Sessions with them.
    pub sessions: Vec<SubagentStatus>,
    /// Connections that were cut for what they sent or did not send.
    pub cut: u64,
    /// Connections that were refused: there were too many.
    pub refused_connections: u64,
    /// Questions that subagents were asked since the start.
    pub questions: u64,
    /// Those that were not answered in time.
    pub timed_out: u64,
    /// Rows that subagents answered.
    pub rows: u64,
    /// Requests that wait for subagents.
    pub waiting: u64,
    /// Requests that were dropped because too many waited.
    pub dropped: u64,
    /// Why the last subagent was cut, in words.
    pub last_trouble: Option<String>,
}

/// How a session with a subagent is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubagentStatus {
    /// What it says it is.
    pub description: String,
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Subtrees that it registered.
    pub subtrees: u64,
    /// Milliseconds for which it has answered nothing, where it stalls.
    pub stalled_millis: Option<u64>,
    /// Questions that it was asked.
    pub questions: u64,
    /// Questions that it answered by rows.
    pub answered: u64,
    /// Questions that it answered by an error.
    pub refused: u64,
    /// Questions that it did not answer in time.
    pub timed_out: u64,
    /// Questions that were not put to it, because it stalls or too many
    /// wait.
    pub not_asked: u64,
    /// Rows that it answered.
    pub rows: u64,
    /// Notifications that it sent.
    pub notifications: u64,
}

/// How we are with the AgentX master.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentxStatus {
    /// Where it listens.
    pub master: String,
    /// `open`, `opening`, `reconnecting`, …
    pub state: String,
    /// Sessions that it opened since the start.
    pub sessions: u64,
    /// Questions of it answered.
    pub requests: u64,
    /// Variable bindings answered.
    pub bindings: u64,
    /// Subtrees that it did not let us register in this session.
    pub refused: u64,
    /// Notifications that it took.
    pub notifications: u64,
    /// Notifications dropped.
    pub notifications_dropped: u64,
    /// The last trouble with it, in words, until a session is open.
    pub last_trouble: Option<String>,
}

/// How a mirror is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// What it is doing: `loading`, `live`, `degraded: which tables miss
    /// rows`, `resyncing`, `ended: why`.
    pub phase: String,
    /// How long the first listing took.
    pub load_millis: u64,
    /// Events applied.
    pub events: u64,
    /// Times that the tables were listed again after a loss.
    pub resyncs: u64,
    /// Times that the kernel dropped events.
    pub overruns: u64,
    /// Listings that changed under way.
    pub interrupted_dumps: u64,
    /// Scans for drift.
    pub scans: u64,
    /// Rows that a scan found to differ: to be 0.
    pub drift: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// What had no place in a table.
    pub full: Option<String>,
    /// Tables that miss rows of the kernel's now.
    #[serde(default)]
    pub incomplete: Vec<String>,
    /// Rows that had no place, since the start.
    #[serde(default)]
    pub refused: u64,
    /// Messages of other processes, which were dropped.
    #[serde(default)]
    pub foreign: u64,
    /// When the last scan for drift ended, milliseconds since the UNIX
    /// epoch; `None`: there was none.
    #[serde(default)]
    pub last_scan_millis: Option<u64>,
    /// How long ago that was, by a clock that nobody sets.
    #[serde(default)]
    pub last_scan_age_secs: Option<u64>,
    /// How long it took.
    #[serde(default)]
    pub last_scan_time_millis: u64,
    /// Rows that it found to differ.
    #[serde(default)]
    pub last_scan_drift: u64,
    /// The last trouble in words.
    pub last_trouble: Option<String>,
    /// When the counters of links were last read, milliseconds since the
    /// UNIX epoch; `None`: never, for nobody asked.
    #[serde(default)]
    pub counters_at_millis: Option<u64>,
    /// Octets that the kernel keeps for events.
    pub receive_buffer_bytes: usize,
}

/// How a table is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableStatus {
    /// Its name.
    pub table: String,
    /// Its rows.
    pub rows: usize,
    /// Bytes of memory, indexes included.
    pub bytes: usize,
}

/// How near the kernel's limit of neighbours is (`gc_thresh3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// 4 or 6.
    pub family: u8,
    /// Neighbours that count towards the limit, in the mirrored namespaces.
    pub rows: u64,
    /// The limit.
    pub limit: u64,
}

impl Pressure {
    /// Whether the kernel will soon refuse neighbours: from nine tenths on.
    pub fn is_high(self) -> bool {
        self.rows.saturating_mul(10) >= self.limit.saturating_mul(9)
    }
}

/// What was answered since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answered {
    /// Clients being answered now.
    pub clients: usize,
    /// Whole answers.
    pub answers: u64,
    /// Clients refused for want of a place.
    pub refusals: u64,
    /// Time of the last answer.
    pub last_micros: u64,
    /// Time of the slowest.
    pub slowest_micros: u64,
}

/// The tables as a status shows them. O(rows) for some: not for hot paths.
pub fn tables(tables: &Tables) -> Vec<TableStatus> {
    [
        ("links", tables.links.len(), tables.links.heap_bytes()),
        (
            "addresses",
            tables.addresses.len(),
            tables.addresses.heap_bytes(),
        ),
        (
            "neighbours",
            tables.neighbours.len(),
            tables.neighbours.heap_bytes(),
        ),
        ("routes", tables.routes.len(), tables.routes.heap_bytes()),
        (
            "nexthops",
            tables.nexthops.len(),
            tables.nexthops.heap_bytes(),
        ),
        ("rules", tables.rules.len(), tables.rules.heap_bytes()),
        ("fdb", tables.fdb.len(), tables.fdb.heap_bytes()),
    ]
    .map(|(table, rows, bytes)| TableStatus {
        table: table.to_owned(),
        rows,
        bytes,
    })
    .into()
}

/// Number of rows of a table. O(1).
pub fn rows(tables: &Tables, object: Object) -> usize {
    match object {
        Object::Link => tables.links.len(),
        Object::Addr => tables.addresses.len(),
        Object::Neigh => tables.neighbours.len(),
        Object::Route => tables.routes.len(),
        Object::Nexthop => tables.nexthops.len(),
        Object::Rule => tables.rules.len(),
        Object::Fdb => tables.fdb.len(),
    }
}

/// Bytes of memory that this process has in use (`VmRSS`); 0 where the
/// system does not tell.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Octets for people.
pub fn human(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

impl MirrorStatus {
    /// The last scan, and what was kept out.
    fn write_scan(&self, out: &mut impl Write) -> io::Result<()> {
        match self.last_scan_age_secs {
            None => write!(out, "not scanned for drift yet")?,
            Some(seconds) => {
                let found = self.last_scan_drift;
                write!(
                    out,
                    "last scan {seconds} s ago took {} ms and found {found} rows different",
                    self.last_scan_time_millis
                )?;
            }
        }
        writeln!(
            out,
            "; {} rows refused, {} foreign messages dropped",
            self.refused, self.foreign
        )
    }
}

impl Status {
    /// Writes it for people, or as one JSON object.
    pub fn write(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let netns = self.netns.as_deref().unwrap_or("the daemon's own");
        writeln!(
            out,
            "fingerpost {} (pid {}): namespace {netns} (inode {}), {}, up {} s",
            self.version, self.pid, self.inode, self.mirror.phase, self.uptime_secs
        )?;
        write_tables(&self.tables, out)?;
        let mirror = &self.mirror;
        writeln!(
            out,
            "memory {} in all; generation {}; loaded in {} ms",
            human(self.resident_bytes),
            self.generation,
            mirror.load_millis
        )?;
        writeln!(
            out,
            "{} events, {} resyncs, {} overruns, {} interrupted dumps, {} scans, drift {}, {} unreadable",
            mirror.events,
            mirror.resyncs,
            mirror.overruns,
            mirror.interrupted_dumps,
            mirror.scans,
            mirror.drift,
            mirror.malformed
        )?;
        mirror.write_scan(out)?;
        for feeder in &self.feeders {
            feeder.write(out)?;
        }
        let answered = &self.answered;
        writeln!(
            out,
            "{} answers (last {} µs, slowest {} µs), {} clients now, {} refused",
            answered.answers,
            answered.last_micros,
            answered.slowest_micros,
            answered.clients,
            answered.refusals
        )?;
        if let Some(snmp) = &self.snmp {
            snmp.write(out)?;
        }
        if let Some(recording) = &self.recording {
            recording.write(out)?;
        }
        if let Some(history) = &self.history {
            history.write(out)?;
        }
        if let Some(router) = &self.router {
            router.write(out)?;
        }
        for warning in self.warnings() {
            writeln!(out, "WARNING: {warning}")?;
        }
        Ok(())
    }

    /// What its user should know about.
    pub fn warnings(&self) -> Vec<String> {
        let pressed = self.pressure.iter().filter(|pressure| pressure.is_high());
        pressed
            .map(Pressure::warning)
            .chain(self.mirror.full.clone())
            .chain(
                self.mirror
                    .last_trouble
                    .as_ref()
                    .map(|trouble| format!("last trouble: {trouble}")),
            )
            .chain(self.snmp.iter().flat_map(SnmpStatus::warnings))
            .chain(self.recording.iter().flat_map(RecordingStatus::warnings))
            .chain(self.history.iter().flat_map(HistoryStatus::warnings))
            .chain(self.router.iter().filter_map(ForwardingStatus::warning))
            .collect()
    }
}

impl RecordingStatus {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "recording to {}, part {}: {} records, {}; {} lost, {} gaps",
            self.file,
            self.part,
            self.records,
            human(self.bytes),
            self.lost,
            self.gaps
        )
    }

    /// What its user should know.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let stopped = self.stopped.as_ref();
        stopped
            .map(|why| format!("the recording stopped: {why}"))
            .into_iter()
    }
}

impl SnmpStatus {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let at = match &self.listening[..] {
            [] => "at no address".to_owned(),
            some => format!("at {}", some.join(", ")),
        };
        writeln!(
            out,
            "SNMP {at}: {} requests, {} bindings, {} dropped, {} unsent, {} of old counters, {} withheld; {} \
             notifications, {} acknowledged, {} waiting, {} given up, {} dropped",
            self.requests,
            self.bindings,
            self.dropped,
            self.unsent,
            self.old,
            self.withheld,
            self.notifications,
            self.notifications_acknowledged,
            self.notifications_waiting,
            self.notifications_given_up,
            self.notifications_dropped
        )?;
        if let Some(master) = &self.agentx_master {
            master.write(out)?;
        }
        let Some(agentx) = &self.agentx else {
            return Ok(());
        };
        writeln!(
            out,
            "AgentX at {}: {}, {} sessions, {} requests, {} bindings, {} subtrees refused; {} \
             notifications, {} dropped",
            agentx.master,
            agentx.state,
            agentx.sessions,
            agentx.requests,
            agentx.bindings,
            agentx.refused,
            agentx.notifications,
            agentx.notifications_dropped
        )
    }

    /// What its user should know.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let off = self
            .version_3_off
            .as_ref()
            .map(|why| format!("SNMP version 3 is off: {why}"));
        let agentx = self.agentx.as_ref();
        let trouble = agentx.and_then(|agentx| agentx.last_trouble.as_ref());
        let master = self.agentx_master.as_ref();
        let cut = master.and_then(|master| master.last_trouble.as_ref());
        off.into_iter()
            .chain(trouble.map(|trouble| format!("AgentX: {trouble}")))
            .chain(cut.map(|cut| format!("AgentX: {cut}")))
            .chain(master.into_iter().flat_map(AgentxMasterStatus::stalled))
    }
}

impl AgentxMasterStatus {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "AgentX master at {}: {} subagents, {} sessions, {} cut, {} refused; {} requests \
             wait, {} dropped",
            self.path,
            self.connections,
            self.sessions.len(),
            self.cut,
            self.refused_connections,
            self.waiting,
            self.dropped
        )?;
        self.sessions.iter().try_for_each(|one| {
            writeln!(
                out,
                "  {} (process {}, user {}): {} subtrees, {} questions, {} rows, {} errors, {} \
                 timed out, {} not asked; {} notifications",
                one.description,
                one.pid,
                one.uid,
                one.subtrees,
                one.questions,
                one.rows,
                one.refused,
                one.timed_out,
                one.not_asked,
                one.notifications
            )
        })
    }

    /// Those that answer nothing.
    fn stalled(&self) -> impl Iterator<Item = String> {
        self.sessions.iter().filter_map(|one| {
            let secs = one.stalled_millis? / 1_000;
            let (named, pid) = (&one.description, one.pid);
            Some(format!(
                "AgentX: the subagent `{named}` of process {pid} has answered nothing for {secs} s"
            ))
        })
    }
}

impl Pressure {
    /// What its user should know.
    pub fn warning(&self) -> String {
        let settings = if self.family == 4 { "ipv4" } else { "ipv6" };
        format!(
            "{} of {} IPv{} neighbours that the kernel allows (gc_thresh3): it will refuse new ones; \
             raise net.{settings}.neigh.default.gc_thresh3",
            self.rows, self.limit, self.family
        )
    }
}

/// A line for each table.
pub fn write_tables(tables: &[TableStatus], out: &mut impl Write) -> io::Result<()> {
    for table in tables {
        writeln!(
            out,
            "  {:<12}{:>10} rows  {:>10}",
            table.table,
            table.rows,
            human(table.bytes as u64)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_the_journey_and_warns() {
        let status = Status {
            pressure: vec![
                Pressure {
                    family: 4,
                    rows: 922,
                    limit: 1024,
                },
                Pressure {
                    family: 6,
                    rows: 921,
                    limit: 1024,
                },
            ],
            tables: tables(&Tables::default()),
            ..Status::default()
        };
        let mut json = Vec::new();
        status.write(true, &mut json).unwrap();
        assert_eq!(serde_json::from_slice::<Status>(&json).unwrap(), status);
        let warnings = status.warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("gc_thresh3"), "{warnings:?}");
    }

    #[test]
    fn octets_for_people() {
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(3 << 30), "3.00 GiB");
    }
}
