//! What the control socket of a namespace is answered from: the namespace,
//! and what a status says of the whole daemon beside it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dataplane::xdp::standing::Report;

use crate::forwarding::{self, ForwardingStatus};
use crate::namespace::Namespace;
use crate::route_times::RouteTimes;
use crate::snmp;
use crate::status::{self, HistoryStatus, MirrorStatus, Pressure, RecordingStatus, Status};

/// What answers questions about a namespace.
#[derive(Debug)]
pub struct NamespaceService {
    namespace: Namespace,
    started: Instant,
    whole: DaemonGauges,
    route_times: RouteTimes,
}

/// What a status says of the whole daemon. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DaemonGauges {
    /// As last counted.
    pub pressure: Arc<Mutex<Vec<Pressure>>>,
    /// SNMP.
    pub snmp: snmp::Gauge,
    /// The recording, where one is made.
    pub recording: Option<RecordingGauge>,
    /// The history, where one is kept.
    pub history: Option<HistoryGauge>,
    /// Forwarding at XDP.
    pub forwarding: forwarding::Gauge,
}

/// Tells how a recording is. Cheap to clone.
#[derive(Clone)]
pub struct RecordingGauge(Arc<dyn Fn() -> RecordingStatus + Send + Sync>);

impl RecordingGauge {
    /// One that asks a function.
    pub fn new(status: impl Fn() -> RecordingStatus + Send + Sync + 'static) -> Self {
        Self(Arc::new(status))
    }
}

impl fmt::Debug for RecordingGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordingGauge")
    }
}

/// Tells how a history is. Cheap to clone.
#[derive(Clone)]
pub struct HistoryGauge(Arc<dyn Fn() -> HistoryStatus + Send + Sync>);

impl HistoryGauge {
    /// One that asks a function.
    pub fn new(status: impl Fn() -> HistoryStatus + Send + Sync + 'static) -> Self {
        Self(Arc::new(status))
    }

    /// How it is.
    pub fn status(&self) -> HistoryStatus {
        (self.0)()
    }
}

impl fmt::Debug for HistoryGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryGauge")
    }
}

impl NamespaceService {
    /// Those about a namespace, begun now.
    pub fn new(namespace: Namespace, whole: DaemonGauges) -> Self {
        Self {
            namespace,
            started: Instant::now(),
            whole,
            route_times: RouteTimes::default(),
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// When its routes changed.
    pub fn route_times(&self) -> &RouteTimes {
        &self.route_times
    }

    /// Forwarding at XDP, where it is in this namespace as far as is known.
    fn forwarding(&self) -> Option<ForwardingStatus> {
        let status = self.whole.forwarding.status()?;
        let inode = self.namespace.inode;
        let is_elsewhere = |report: &Report| report.status.inode != inode;
        (!status.report.as_ref().is_some_and(is_elsewhere)).then_some(status)
    }

    /// How it is. O(rows) for some tables: not for hot paths.
    pub fn status(&self) -> Status {
        let Namespace {
            name,
            inode,
            source,
            ..
        } = &self.namespace;
        let tables = self.namespace.tables();
        let mirror = source.status();
        let pressure = self.whole.pressure.lock();
        let pressure = pressure.unwrap_or_else(PoisonError::into_inner).clone();
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            netns: name.clone(),
            inode: *inode,
            uptime_secs: self.started.elapsed().as_secs(),
            tables: status::tables(&tables),
            feeders: status::feeders(&tables),
            generation: tables.generation.0,
            resident_bytes: status::resident_bytes(),
            pressure,
            snmp: self.whole.snmp.status(),
            recording: self.whole.recording.as_ref().map(|gauge| (gauge.0)()),
            history: self.whole.history.as_ref().map(HistoryGauge::status),
            router: self.forwarding(),
            mirror: MirrorStatus {
                phase: mirror.in_words(),
                load_millis: mirror.load_time.as_millis() as u64,
                events: mirror.events,
                resyncs: mirror.resyncs,
                overruns: mirror.overruns,
                interrupted_dumps: mirror.interrupted_dumps,
                scans: mirror.scans,
                drift: mirror.drift,
                malformed: mirror.malformed,
                full: mirror.full,
                incomplete: mirror.incomplete.iter().map(|&name| name.into()).collect(),
                refused: mirror.refused.values().sum(),
                foreign: mirror.foreign,
                last_scan_millis: Some(mirror.last_scan_millis).filter(|&at| at > 0),
                last_scan_age_secs: mirror.last_scan.map(|at| at.elapsed().as_secs()),
                last_scan_time_millis: mirror.last_scan_time.as_millis() as u64,
                last_scan_drift: mirror.last_scan_drift,
                last_trouble: mirror.last_trouble,
                counters_at_millis: tables.link_counters.taken_at_millis,
                receive_buffer_bytes: mirror.receive_buffer_bytes,
            },
            ..Status::default()
        }
    }
}
