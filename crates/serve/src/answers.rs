//! What answers questions about one namespace: its mirror, and what a status
//! says beside it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use linux::Mirror;
use table::Reader;
use table::row::neighbour::state;
use view::Object;

use crate::control::server::Source;
use crate::snmp;
use crate::status::{self, MirrorStatus, Pressure, Status};

/// How old a sample may be when it is shown, milliseconds.
const FRESH_MILLIS: u64 = 1_500;
/// How long a question waits for a fresh sample.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(2);

/// What answers questions about a namespace.
#[derive(Debug)]
pub struct Answers {
    spec: Option<String>,
    mirror: Mirror,
    started: Instant,
    whole: Whole,
}

/// What a status says of the whole daemon. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Whole {
    /// As last counted.
    pub pressure: Arc<Mutex<Vec<Pressure>>>,
    /// SNMP.
    pub snmp: snmp::Gauge,
    /// The recording, where one is made.
    pub recording: Option<linux::recording::Gauge>,
}

impl Answers {
    /// Those of a mirror, asked for by its name.
    pub fn new(spec: Option<String>, mirror: Mirror, whole: Whole) -> Self {
        Self {
            spec,
            mirror,
            started: Instant::now(),
            whole,
        }
    }

    /// What it was asked for by; `None`: the daemon's own.
    pub fn spec(&self) -> Option<&str> {
        self.spec.as_deref()
    }

    /// The mirror.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Has what the kernel does not announce sampled for a table, soon.
    pub fn want(&self, object: Object) {
        match object {
            Object::Link => self.mirror.want_links(),
            Object::Addr => self.mirror.want_addresses(),
            Object::Neigh => self.mirror.want_neighbours(),
            Object::Fdb => self.mirror.want_fdb(),
            _ => {}
        }
    }

    /// Whether counters and ages of a table are as new as is worth waiting
    /// for. O(neighbours) at worst.
    pub fn is_fresh(&self, object: Object) -> bool {
        if self.mirror.is_recording() {
            // What was sampled is all there will be.
            return true;
        }
        let tables = self.mirror.reader().snapshot();
        let taken = match object {
            Object::Link => tables.link_counters.taken_at_millis,
            // Ages are nothing to wait for where nothing ages.
            Object::Neigh if self.tables_age() => tables.neighbour_samples.taken_at_millis,
            _ => return true,
        };
        let oldest = self.mirror.now_millis().saturating_sub(FRESH_MILLIS);
        taken.is_some_and(|taken| taken >= oldest)
    }

    /// Whether some neighbour ages: is not permanent. O(neighbours).
    fn tables_age(&self) -> bool {
        let tables = self.mirror.reader().snapshot();
        let fixed = state::PERMANENT | state::NOARP;
        let mut all = tables.neighbours.iter();
        all.any(|row| row.state & fixed == 0)
    }
}

impl Source for Answers {
    fn reader(&self) -> Reader {
        self.mirror.reader()
    }

    fn refresh(&self, object: Object, statistics: bool) {
        self.want(object);
        if !statistics {
            return;
        }
        let deadline = Instant::now() + SAMPLE_PATIENCE;
        while !self.is_fresh(object) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn now_millis(&self) -> u64 {
        self.mirror.now_millis()
    }

    fn status(&self) -> Status {
        let tables = self.mirror.reader().snapshot();
        let mirror = self.mirror.status();
        let pressure = self.whole.pressure.lock();
        let pressure = pressure.unwrap_or_else(PoisonError::into_inner).clone();
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            netns: self.spec.clone(),
            inode: self.mirror.inode(),
            uptime_secs: self.started.elapsed().as_secs(),
            tables: status::tables(&tables),
            generation: tables.generation.0,
            resident_bytes: status::resident_bytes(),
            pressure,
            snmp: self.whole.snmp.status(),
            recording: self
                .whole
                .recording
                .as_ref()
                .map(|gauge| gauge.status().into()),
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
                last_scan_drift: mirror.last_scan_drift,
                last_trouble: mirror.last_trouble,
                counters_at_millis: tables.link_counters.taken_at_millis,
                receive_buffer_bytes: mirror.receive_buffer_bytes,
            },
            ..Status::default()
        }
    }
}
