//! `fingerpost up`: mirrors namespaces and answers questions about them.
//!
//! One thread waits for signals and clients, and sees once a second which
//! namespaces came and went. Each mirror and each client has threads of
//! its own.

mod command;
mod descriptors;
mod feeds;
pub mod group;
mod history;
pub mod logging;
mod mirrored;
mod namespaces;
mod pressure;
mod rehearsal;
mod screen;
pub mod signals;
pub mod socket;
mod taped;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::Namespace;
use linux::recording::Recorder;
use linux::recording::history::Keeper;
use rustix::process::Gid;
use sd_notify::NotifyState;

use serve::control::server::{Patience, Server};
use serve::namespace;
use serve::namespace_service::{DaemonGauges, HistoryGauge, RecordingGauge};
use serve::status::RecordingStatus;
use serve::{forwarding, http, snmp};

use crate::config::feed::Kind;
use crate::config::{self, Config};
pub use command::{Up, command, wanted};
use descriptors::Descriptors;
use feeds::{Feeds, cannot_listen};
use mirrored::{Mirrored, named};
pub use rehearsal::rehearse;
use signals::Signals;

/// Between two looks at the namespaces.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at mirrors that are loading.
const LOADING_LOOK: Duration = Duration::from_millis(5);
/// A mirror that ended by itself is not tried again before this.
const AGAIN: Duration = Duration::from_secs(10);
/// Arenas of the allocator: threads share them.
const ARENAS: i32 = 4;
/// What the allocator may keep of what was freed; with more, it gives back.
const FREE_BYTES: u64 = 8 << 20;
/// Between two counts of neighbours against the kernel's limit.
const COUNT: Duration = Duration::from_secs(60);

/// Runs the daemon until it is told to end.
pub fn run(up: &Up) -> Result<()> {
    let shares = memory::heap::share_arenas(ARENAS);
    let config = config::load(up.config.as_deref())?;
    let logging = logging::start(up.log.as_deref(), config.log.as_deref())?;
    if !shares {
        tracing::info!("this C library's allocator is left as it is: storms may leave memory");
    }
    warn_of(up, &config);
    let mut daemon = Daemon {
        signals: Signals::catch().context("cannot catch signals")?,
        server: Server::new(patience(&config), words::load()),
        own: Namespace::current()?,
        namespaces: Vec::new(),
        inodes: HashSet::new(),
        waiting: VecDeque::new(),
        refused: BTreeSet::new(),
        ended: BTreeMap::new(),
        descriptors: Descriptors::raised(),
        has_news: true,
        whole: DaemonGauges::default(),
        snmp: None,
        http: None,
        feeds: Feeds::default(),
        counted: None,
        given_back: 0,
        recorder: None,
        history: None,
        up: up.clone(),
        config,
        logging,
        directory: PathBuf::new(),
        group: None,
        ready: false,
    };
    daemon.open_namespaces()?;
    daemon.run()
}

/// What clients may take.
fn patience(config: &Config) -> Patience {
    Patience {
        kept: config.answers.kept_bytes,
        ..Patience::default()
    }
}

/// Whether all named namespaces are mirrored.
fn wants_all(up: &Up, config: &Config) -> bool {
    up.all_netns || config.all_netns
}

/// The namespaces that the user named, or the own one (`None`).
fn wanted_by_name(up: &Up, config: &Config) -> Vec<Option<String>> {
    let named = match up.netns.is_empty() {
        true => &config.netns,
        false => &up.netns,
    };
    let own = (named.is_empty() || wants_all(up, config)).then_some(None);
    own.into_iter()
        .chain(named.iter().cloned().map(Some))
        .collect()
}

fn warn_of(up: &Up, config: &Config) {
    for warning in config::exposed(up.config.as_deref(), config) {
        tracing::warn!("{warning}");
    }
}

/// How a recording is, as a status tells it.
fn recording_status(from: linux::recording::RecordingStatus) -> RecordingStatus {
    RecordingStatus {
        file: from.file.display().to_string(),
        part: from.part,
        records: from.records,
        bytes: from.bytes,
        lost: from.lost,
        gaps: from.gaps,
        stopped: from.stopped,
    }
}

/// Asks `fingerpost router` at its control socket.
fn forwarding(control: PathBuf) -> forwarding::Gauge {
    forwarding::Gauge::new(move || {
        let report = router::live::report(&control, forwarding::ANSWER_PATIENCE);
        report.map_err(|error| format!("{error:#}"))
    })
}

struct Daemon {
    up: Up,
    config: Config,
    logging: logging::Logging,
    directory: PathBuf,
    /// Who may ask about other namespaces, beside our own user.
    group: Option<Gid>,
    signals: Signals,
    server: Server,
    own: Namespace,
    namespaces: Vec<Mirrored>,
    /// Those of them.
    inodes: HashSet<u64>,
    /// Namespaces that were found and are mirrored once others are loaded.
    waiting: VecDeque<Option<String>>,
    /// Wanted namespaces that cannot be mirrored, and were complained of.
    refused: BTreeSet<Option<String>>,
    /// When mirrors ended by themselves, of namespaces that are there still.
    ended: BTreeMap<Option<String>, Instant>,
    descriptors: Descriptors,
    /// Namespaces came or went since SNMP and HTTP were told.
    has_news: bool,
    whole: DaemonGauges,
    /// `None`: not yet, or it is not wanted.
    snmp: Option<snmp::Service>,
    /// `None`: not yet.
    http: Option<http::Service>,
    /// End before the mirrors: their rows stand beside those.
    feeds: Feeds,
    counted: Option<Instant>,
    /// Octets that were free when memory was given back last, or fewer.
    given_back: u64,
    /// Ends after the mirrors, for they end in it.
    recorder: Option<Recorder>,
    /// So does the history.
    history: Option<Keeper>,
    /// All that was wanted at the start is mirrored and said so.
    ready: bool,
}

impl Daemon {
    /// Starts to mirror what is wanted at the start. Whatever is wanted by
    /// name must be there then.
    fn open_namespaces(&mut self) -> Result<()> {
        let mut opened = Vec::new();
        for spec in self.wanted_by_name() {
            opened.push((spec.clone(), self.open(spec.as_deref())?));
        }
        let snmp = snmp::BoundSockets::open(&self.config.snmp)?;
        let http = http::BoundSockets::open(&self.config.http)?;
        self.feeds = Feeds::open(&self.up, &self.config)?;
        self.group = self
            .config
            .control
            .group
            .as_ref()
            .map(|group| group::join("control.group", &group.0))
            .transpose()?;
        let enters = self.wants_all() || opened.iter().any(|(spec, _)| spec.is_some());
        privileges::keep_for_mirrors(enters).context("cannot give up privileges")?;
        if let Err(error) = privileges::confine() {
            tracing::warn!("{error}");
        }
        // With the rights that are left: root's daemon, too, may find that
        // the system's directory is that of a service of another user.
        self.directory = socket::directory(self.config.control.directory.as_deref())?;
        self.snmp = Some(snmp::Service::start(snmp, self.whole.snmp.clone())?);
        self.whole.forwarding = forwarding(self.config.router.control.clone());
        let http = http::Service::start(http, words::load(), self.server.budget())?;
        http.show_snmp(self.whole.snmp.clone());
        http.show_nat(self.config.nat.control.clone());
        self.server.show_nat(self.config.nat.control.clone());
        http.show_forwarding(self.whole.forwarding.clone());
        self.http = Some(http);
        self.record()?;
        self.keep_history()?;
        for (spec, namespace) in opened {
            self.mirror(spec, namespace)?;
        }
        self.look_at_namespaces();
        self.feeds.follow(&self.namespaces)
    }

    /// Begins the recording, if one is wanted.
    fn record(&mut self) -> Result<()> {
        let file = self.up.record.as_ref().or(self.config.record.file.as_ref());
        let limit = self
            .up
            .record_limit
            .unwrap_or(self.config.record.limit_bytes);
        if let Some(file) = file {
            let recorder = Recorder::start(file.clone(), limit).context("cannot record")?;
            let gauge = recorder.gauge();
            let status = move || recording_status(gauge.status());
            self.whole.recording = Some(RecordingGauge::new(status));
            self.recorder = Some(recorder);
        }
        Ok(())
    }

    /// Begins the history, if one is wanted.
    fn keep_history(&mut self) -> Result<()> {
        let Some(keeper) = history::start(&self.config.history, self.group)? else {
            return Ok(());
        };
        let gauge = keeper.gauge();
        let gauge = HistoryGauge::new(move || history::status(gauge.status()));
        if let Some(http) = &self.http {
            http.show_history(gauge.clone());
        }
        self.whole.history = Some(gauge);
        self.history = Some(keeper);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let mut looked = Instant::now();
        loop {
            let loading = self.namespaces.iter().any(|one| one.listener.is_none());
            let called = self.wait(if loading { LOADING_LOOK } else { LOOK })?;
            if self.signals.take_end() {
                return self.end();
            }
            if self.signals.take_reload() {
                self.reload();
            }
            self.accept(&called);
            self.listen_where_ready()?;
            self.start_waiting();
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look_at_namespaces();
                self.count_neighbours();
                self.give_back_memory();
                if let Err(error) = self.feeds.follow(&self.namespaces) {
                    tracing::error!("the feeds stand still: {error:#}");
                }
            }
            let all_listen = || self.namespaces.iter().all(|one| one.listener.is_some());
            let is_loaded = self.waiting.is_empty() && all_listen();
            // While many are loaded they are told of once a second.
            if self.has_news && (is_loaded || looked.elapsed() < LOADING_LOOK) {
                self.answer_others();
            }
            if !self.ready && is_loaded {
                self.say_ready()?;
            }
        }
    }

    /// Those that clients come to, in the order that they are waited for.
    fn listening(&self) -> impl Iterator<Item = (&Mirrored, &UnixListener)> {
        let all = self.namespaces.iter();
        all.filter_map(|one| Some((one, one.listener.as_ref()?)))
    }

    /// Waits for a signal, a client, or the time to pass; where clients
    /// are.
    fn wait(&self, patience: Duration) -> Result<Vec<usize>> {
        let listeners = self.listening().map(|(_, listener)| listener);
        self.signals
            .wait(listeners, patience)
            .context("cannot wait for clients")
    }

    fn accept(&self, called: &[usize]) {
        let mut called = called.iter().peekable();
        for (at, (one, listener)) in self.listening().enumerate() {
            if called.next_if_eq(&&at).is_some() {
                self.server.accept(listener, &one.answers);
            }
        }
    }

    /// Opens the sockets of mirrors that are loaded by now.
    fn listen_where_ready(&mut self) -> Result<()> {
        let ready = self.ready;
        let by_name = self.wanted_by_name();
        let loading = self.namespaces.iter_mut();
        for one in loading.filter(|one| one.listener.is_none()) {
            let listens = one.listen_when_ready();
            self.has_news |= matches!(listens, Ok(true));
            match listens {
                Ok(true) if ready => tracing::info!(
                    "{} is mirrored, {} rows; listening at {}",
                    named(one.spec.as_deref()),
                    one.tables().rows(),
                    one.socket().display()
                ),
                Ok(_) => {}
                Err(error) if ready || !by_name.contains(&one.spec) => {
                    tracing::error!("{error:#}");
                }
                Err(error) => return Err(error),
            }
        }
        if ready {
            return Ok(());
        }
        // Of those not asked for by name one may go while it is read.
        let asked_for = |one: &&Mirrored| by_name.contains(&one.spec);
        match self
            .namespaces
            .iter()
            .filter(asked_for)
            .find_map(Mirrored::ended)
        {
            Some(why) => bail!("the mirror ended before it was loaded: {why}"),
            None => Ok(()),
        }
    }

    /// Lets SNMP and HTTP be answered from what is loaded: the own
    /// namespace by default, where it is mirrored, else the first.
    fn answer_others(&mut self) {
        self.has_news = false;
        let loaded = self.namespaces.iter().filter(|one| one.listener.is_some());
        let mut loaded: Vec<namespace::Namespace> =
            loaded.map(|one| one.answers.namespace().clone()).collect();
        loaded.sort_by_key(|one| one.name.is_some());
        if let Some(snmp) = &self.snmp {
            snmp.set_namespaces(loaded.clone().into_iter());
        }
        if let Some(http) = &self.http {
            http.set_namespaces(loaded.into_iter());
        }
    }

    fn say_ready(&mut self) -> Result<()> {
        self.ready = true;
        self.count_neighbours();
        let shown: Vec<&Mirrored> = self.namespaces.iter().collect();
        let snmp = self.whole.snmp.status().unwrap_or_default();
        let http = self.http.as_ref().map(http::Service::listening);
        let http = http.unwrap_or_default();
        let feeds = |kind| -> Vec<String> {
            let feeds = self.feeds.listening(kind);
            feeds.map(|(name, at)| format!("{name} at {at}")).collect()
        };
        let listening = screen::Listening {
            snmp: &snmp.listening,
            http: &http,
            fpm: &feeds(Kind::Fpm),
            bmp: &feeds(Kind::Bmp),
        };
        match screen::write(&shown, &listening, &mut io::stdout().lock()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                tracing::warn!("the screen cannot be written: {error}");
            }
            _ => {}
        }
        sd_notify::notify(&[NotifyState::Ready]).context("cannot tell the service manager")
    }

    fn end(&mut self) -> Result<()> {
        tracing::info!(answers = self.server.answered().answers, "ending");
        sd_notify::notify(&[NotifyState::Stopping]).context("cannot tell the service manager")?;
        self.server.stop();
        self.snmp = None;
        if let Some(http) = self.http.take() {
            http.abandon();
        }
        self.feeds = Feeds::default();
        // Whoever is answered still may hold them.
        self.namespaces.drain(..).for_each(Mirrored::end);
        self.recorder = None;
        self.history = None;
        Ok(())
    }

    fn count_neighbours(&mut self) {
        if self
            .counted
            .is_some_and(|counted| counted.elapsed() < COUNT)
        {
            return;
        }
        self.counted = Some(Instant::now());
        let mut count = pressure::Count::default();
        for one in &self.namespaces {
            count.add(&one.tables());
        }
        let now = count.against_limits();
        let known = self.whole.pressure.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let was_high = |family| {
            known
                .iter()
                .any(|old| old.family == family && old.is_high())
        };
        for pressure in now.iter().filter(|pressure| pressure.is_high()) {
            if !was_high(pressure.family) {
                tracing::warn!("{}", pressure.warning());
            }
        }
        *known = now;
    }

    /// Gives the system what a storm has left. What was given back counts
    /// as free still.
    fn give_back_memory(&mut self) {
        let free = || memory::heap::usage().map_or(0, |heap| heap.free);
        let now = free();
        self.given_back = self.given_back.min(now);
        if now > self.given_back + FREE_BYTES {
            memory::heap::give_back();
            self.given_back = free();
        }
    }

    /// Reads the configuration again. One that is wrong changes nothing.
    fn reload(&mut self) {
        let loaded = config::load(self.up.config.as_deref())
            .map_err(anyhow::Error::from)
            .and_then(|config| {
                self.logging.reconfigure(config.log.as_deref())?;
                Ok(config)
            });
        let config = match loaded {
            Ok(config) => config,
            Err(error) => {
                tracing::error!("{error:#}; the configuration of before stands");
                return;
            }
        };
        if config.control != self.config.control {
            tracing::warn!("[control] takes effect at the next start");
        }
        if config.answers != self.config.answers {
            tracing::warn!("answers takes effect at the next start");
        }
        if config.record != self.config.record {
            tracing::warn!("record takes effect at the next start");
        }
        if config.history != self.config.history {
            tracing::warn!("[history] takes effect at the next start");
        }
        if config.router != self.config.router {
            tracing::warn!("[router] takes effect at the next start, of `fingerpost router` too");
        }
        if config.mirror != self.config.mirror {
            tracing::warn!("mirror holds for namespaces mirrored from now on");
        }
        if config.limits != self.config.limits {
            for one in &self.namespaces {
                one.set_limits(config.limits.limits());
            }
        }
        if !self.feeds.reload(&self.up, &config) {
            tracing::warn!("[feed] takes effect at the next start, but for its limits");
        }
        warn_of(&self.up, &config);
        let failed = self.reload_services(&config);
        self.config = config;
        self.server.rename(words::load());
        match failed[..] {
            [] => tracing::info!("the configuration was read again"),
            _ => tracing::error!(
                "the configuration was read, but [{}] goes on as before: put it right and reload again",
                failed.join("] and [")
            ),
        }
        self.look_at_namespaces();
    }

    /// Has SNMP and HTTP take theirs; gives the sections that are wrong.
    fn reload_services(&mut self, config: &Config) -> Vec<&'static str> {
        let mut failed = Vec::new();
        if let Some(snmp) = &mut self.snmp
            && let Err(error) = snmp.reload(&config.snmp)
        {
            tracing::error!("{error:#}; SNMP goes on as before");
            failed.push("snmp");
        }
        if let Some(http) = &self.http {
            if let Err(error) = http.reload(&config.http) {
                tracing::error!("{error:#}; HTTP goes on as before");
                failed.push("http");
            }
            http.rename(words::load());
            http.show_nat(config.nat.control.clone());
        }
        self.server.show_nat(config.nat.control.clone());
        failed
    }
}
