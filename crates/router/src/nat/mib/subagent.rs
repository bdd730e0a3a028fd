//! The thread that speaks AgentX with a master. It asks the translation as
//! any client of the control socket does; a master that stalls, goes or lies
//! costs no packet anything, and is tried again.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use privileges::CapabilitySet;
use snmp::agentx::{Config, OwnedValue, Registration, Session, State};
use snmp::mib::DefaultContext;
use snmp::{Oid, Value};
use tracing::{info, warn};
use translation::request::Table;

use super::maps::Maps;
use super::objects::{Objects, Seen, index_of};
use super::thresholds::{Due, Watched, WatchedSubscribers};
use super::{NATV2, Snmp, Thresholds};
use crate::nat::control::pieces::{Asking, PLACES, Place, Rows, Wanted};

/// How often thresholds are looked at, and an end is seen.
const TICK: Duration = Duration::from_secs(1);
/// How often all subscribers are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How long the master may take nothing of what it is told.
const STALLED: Duration = Duration::from_secs(5);
/// What it may take to answer, and its silence before it is asked whether it
/// is there.
const PATIENCE_MILLIS: u64 = 30_000;
const PING_MILLIS: u64 = 15_000;
/// Below the 127 of a master's own modules.
const PRIORITY: u8 = 100;
/// `natv2NotificationSubscriberPortMappingEntriesHigh`.
const SUBSCRIBER_MAPPINGS: u32 = 5;
/// `snmpTrapOID.0`.
const SNMP_TRAP_OID: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// The thread. It ends soon after this is dropped.
#[derive(Debug)]
pub struct Subagent {
    stop: Arc<AtomicBool>,
}

impl Drop for Subagent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

impl Subagent {
    /// Begins to look for the master.
    pub fn start(master: PathBuf, snmp: &Snmp, asking: Asking) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let subtree = Oid::new(&NATV2).context("the name of NATV2-MIB")?;
        let session = Session::new(Config {
            id: subtree.clone(),
            description: "fingerpost NAT".to_owned(),
            priority: PRIORITY,
            registrations: vec![Registration {
                context: Vec::new(),
                subtree,
            }],
            patience_millis: PATIENCE_MILLIS,
            ping_millis: PING_MILLIS,
        });
        let speaking = Speaking {
            master,
            thresholds: snmp.thresholds,
            asking,
            session,
            began: Instant::now(),
            watched: Watched::default(),
            subscribers: WatchedSubscribers::default(),
            looked: None,
            maps: Maps::default(),
            said: String::new(),
            stop: Arc::clone(&stop),
        };
        thread::Builder::new()
            .name("nat-agentx".to_owned())
            .spawn(move || speaking.run())
            .context("starting the AgentX thread")?;
        Ok(Self { stop })
    }
}

struct Speaking {
    master: PathBuf,
    thresholds: Thresholds,
    asking: Asking,
    session: Session,
    began: Instant,
    watched: Watched,
    subscribers: WatchedSubscribers,
    /// When all subscribers were looked at last.
    looked: Option<Instant>,
    maps: Maps,
    /// What was complained of last, so that it is said once.
    said: String,
    stop: Arc<AtomicBool>,
}

impl Speaking {
    fn run(mut self) {
        // The master may be another user's, the daemon's say, and may be
        // started anew.
        let kept = CapabilitySet::DAC_OVERRIDE;
        if let Err(error) = privileges::give_up_but(kept) {
            warn!("AgentX: giving up privileges: {error}");
        }
        while !self.stops() {
            let ended = self.converse();
            let pause = Duration::from_millis(self.session.lost());
            if let Err(error) = ended {
                let said = format!("{error:#}");
                if said != self.said {
                    warn!("AgentX: {said}; trying on");
                    self.said = said;
                }
            }
            let until = Instant::now() + pause;
            while !self.stops() && Instant::now() < until {
                thread::sleep(TICK.min(pause));
            }
        }
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Speaks until the connection breaks, or it is to end.
    fn converse(&mut self) -> Result<()> {
        let named = || format!("no AgentX master at {}", self.master.display());
        let mut stream = UnixStream::connect(&self.master).with_context(named)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(STALLED))?;
        self.session.connected(self.now());
        let mut looked = None;
        while !self.stops() {
            self.session.tick(self.now())?;
            let is_due = looked.is_none_or(|at: Instant| at.elapsed() >= TICK);
            if is_due && self.session.state() == State::Open {
                looked = Some(Instant::now());
                if !std::mem::take(&mut self.said).is_empty() {
                    info!("AgentX: the master at {} is there", self.master.display());
                }
                self.notify()?;
                self.maps.addresses.age();
                self.maps.ports.age();
            }
            self.write(&mut stream)?;
            if self.read(&mut stream)? {
                self.answer()?;
            }
        }
        self.session.close();
        self.write(&mut stream)
    }

    /// The master's clock as the translation began.
    fn started_ticks(&self) -> u32 {
        let now = self.now();
        let up = self.session.master_up_ticks(now).unwrap_or(0);
        // A master that began later has seen no break.
        up.saturating_sub((now / 10) as u32)
    }

    fn look(&mut self) -> Result<(Objects<'_>, Seen)> {
        let started = self.started_ticks();
        let (asking, maps) = (&mut self.asking, &mut self.maps);
        let looked = Objects::look(asking, maps, &self.thresholds, started);
        looked.context("asking the translation")
    }

    /// Answers what the master has asked.
    fn answer(&mut self) -> Result<()> {
        let (started, now) = (self.started_ticks(), self.now());
        let (asking, maps) = (&mut self.asking, &mut self.maps);
        let looked = Objects::look(asking, maps, &self.thresholds, started);
        let (objects, _) = looked.context("asking the translation")?;
        self.session.work(&DefaultContext(&objects), now)?;
        match objects.failed() {
            // What was told is not whole: the master hears nothing of it.
            true => bail!("the translation does not answer"),
            false => Ok(()),
        }
    }

    fn notify(&mut self) -> Result<()> {
        let (_, seen) = self.look()?;
        let now = self.now();
        for due in self.watched.look(&self.thresholds, seen.values, now) {
            let name = [&NATV2[..], &[0, due as u32]].concat();
            self.tell(&name, told(due, &seen), now);
        }
        let is_due = self.looked.is_none_or(|at| at.elapsed() >= LOOK);
        match self.thresholds.notify_subscriber_mappings {
            Some(most) if is_due => self.notify_of_subscribers(most.unsigned_abs()),
            _ => Ok(()),
        }
    }

    /// Looks at all subscribers, piece by piece, and tells of those that have
    /// come to so many mappings.
    fn notify_of_subscribers(&mut self, most: u32) -> Result<()> {
        let now = self.now();
        self.subscribers.begin();
        let mut place = Some(Place::default());
        while let Some(from) = place {
            let wanted = Wanted::Rows(Table::Subscribers, PLACES);
            let piece = self.asking.ask(wanted, from);
            let piece = piece.context("asking the translation")?;
            place = piece.next;
            let Rows::Subscribers(rows) = piece.rows else {
                continue;
            };
            for row in rows {
                let mappings = row.ports.iter().sum();
                let index = index_of(from.engine(), row.place);
                if mappings < most || !self.subscribers.is_due(index, now) {
                    continue;
                }
                let made = row.counted.unwrap_or_default().mappings_made;
                let name = [&NATV2[..], &[0, SUBSCRIBER_MAPPINGS]].concat();
                let told = [
                    (vec![1, 1, 1, 7, index], OwnedValue::Gauge32(mappings)),
                    (vec![1, 1, 1, 10, index], OwnedValue::Counter64(made)),
                ];
                self.tell(&name, told, now);
            }
        }
        self.subscribers.end(now);
        self.looked = Some(Instant::now());
        Ok(())
    }

    /// Tells managers, with objects below the module's.
    fn tell(&mut self, name: &[u32], told: [(Vec<u32>, OwnedValue); 2], now: u64) {
        let told = told.map(|(below, value)| ([&NATV2[..], &below].concat(), value));
        let mut bindings = vec![(SNMP_TRAP_OID, Value::ObjectIdentifier(name))];
        bindings.extend(told.iter().map(|(name, value)| (&name[..], value.value())));
        self.session.notify(b"", &bindings, now);
    }

    fn write(&mut self, stream: &mut UnixStream) -> Result<()> {
        while !self.session.to_write().is_empty() {
            let written = stream.write(self.session.to_write());
            let written = written.context("writing to the AgentX master")?;
            self.session.written(written);
        }
        Ok(())
    }

    /// Whether anything came.
    fn read(&mut self, stream: &mut UnixStream) -> Result<bool> {
        let mut bytes = [0; READ_BYTES];
        match stream.read(&mut bytes) {
            Ok(0) => bail!("the master at {} hung up", self.master.display()),
            Ok(read) => {
                let now = self.now();
                let heard = bytes.get(..read).unwrap_or_default();
                self.session.received(heard, now);
                Ok(true)
            }
            Err(error) if is_idle(error.kind()) => Ok(false),
            Err(error) => Err(error).context("reading from the AgentX master"),
        }
    }
}

fn is_idle(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The objects of a notification (RFC 7659 §4), by their names below the
/// module's.
fn told(due: Due, seen: &Seen) -> [(Vec<u32>, OwnedValue); 2] {
    let (protocol, most) = seen.most;
    let gauge = |value: u64| OwnedValue::Gauge32(u32::try_from(value).unwrap_or(u32::MAX));
    match due {
        Due::PoolUsageLow | Due::PoolUsageHigh => [
            (vec![2, 3, 1, 16, 1, 1], OwnedValue::Gauge32(most)),
            (vec![2, 3, 1, 17, 1, 1], OwnedValue::Gauge32(protocol)),
        ],
        Due::AddressMapEntriesHigh => [
            (vec![2, 1, 1, 7, 1], gauge(seen.values.subscribers)),
            (
                vec![2, 1, 1, 10, 1],
                OwnedValue::Counter64(seen.subscribers_made),
            ),
        ],
        Due::PortMapEntriesHigh => [
            (vec![2, 1, 1, 8, 1], gauge(seen.values.mappings)),
            (
                vec![2, 1, 1, 11, 1],
                OwnedValue::Counter64(seen.mappings_made),
            ),
        ],
    }
}
