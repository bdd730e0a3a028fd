//! A replay that answers: at control sockets, one for each namespace, and
//! over SNMP and HTTP if a configuration says so. One thread replays and accepts,
//! as the daemon's does.

use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::playing::{End, Playing};
use words::calendar;

use super::{Replay, collect, warn_of};
use serve::control::server::{Patience, Server};
use serve::namespace_service::{DaemonGauges, NamespaceService};
use serve::{http, snmp, status};

use crate::config::Config;
use crate::daemon::signals::Signals;
use crate::daemon::socket::{self, Access, Claim};

/// Between two looks at anything but clients and signals.
const LOOK: Duration = Duration::from_secs(1);
/// Namespaces shown one by one at most.
const SHOWN: usize = 12;

/// A namespace that answers.
struct Place {
    answers: Arc<NamespaceService>,
    listener: UnixListener,
    claim: Claim,
}

struct Serving<'a> {
    replay: &'a Replay,
    playing: Playing,
    known: Vec<Arc<NamespaceService>>,
    places: Vec<Place>,
    server: Server,
    signals: Signals,
    directory: PathBuf,
    snmp: Option<snmp::Service>,
    http: Option<http::Service>,
    /// `None`: it goes on.
    end: Option<End>,
}

/// Replays and answers until told to end.
pub fn run(replay: &Replay, config: &Config, playing: Playing) -> Result<ExitCode> {
    let directory = match &replay.socket {
        Some(_) => PathBuf::new(),
        None => socket::directory(config.control.directory.as_deref())?,
    };
    let signals = Signals::catch().context("cannot catch signals")?;
    serve::descriptors::raise();
    let opened = match &replay.config {
        Some(_) => Some(snmp::BoundSockets::open(&config.snmp)?),
        None => None,
    };
    let web = match &replay.config {
        Some(_) => Some(http::BoundSockets::open(&config.http)?),
        None => None,
    };
    privileges::give_up().context("cannot give up privileges")?;
    let gauge = DaemonGauges::default().snmp;
    let started = opened.map(|opened| snmp::Service::start(opened, gauge));
    let server = Server::new(Patience::default(), words::load());
    let web = web.map(|opened| http::Service::start(opened, words::load(), server.budget()));
    let mut serving = Serving {
        replay,
        playing,
        known: Vec::new(),
        places: Vec::new(),
        server,
        signals,
        directory,
        snmp: started.transpose()?,
        http: web.transpose()?,
        end: None,
    };
    serving.run()?;
    Ok(serving.end.map_or(ExitCode::SUCCESS, |end| end.exit_code()))
}

impl Serving<'_> {
    fn run(&mut self) -> Result<()> {
        let began = Instant::now();
        if !self.replay.real_time {
            let signals = &mut self.signals;
            let end = self.playing.finish(&mut || signals.take_end());
            if end == End::BrokenOff {
                return Ok(());
            }
            self.end = Some(end);
        }
        let mut until_next = self.replay_due()?;
        self.screen(began.elapsed())?;
        loop {
            self.wait(until_next.min(LOOK))?;
            if self.signals.take_end() {
                self.server.stop();
                return Ok(());
            }
            // The names of a recording do not change.
            self.signals.take_reload();
            self.accept();
            until_next = self.replay_due()?;
        }
    }

    /// Replays what is due, and opens the places of new namespaces; gives
    /// how long nothing is due.
    fn replay_due(&mut self) -> Result<Duration> {
        let mut patience = LOOK;
        if self.end.is_none() {
            match self.playing.due() {
                Ok(wait) => patience = wait,
                Err(end) => {
                    tracing::info!("the recording is at its end, and is answered from as it is");
                    warn_of(&self.playing, &end);
                    self.end = Some(end);
                }
            }
        }
        let before = self.known.len();
        collect(&mut self.playing, self.replay, &mut self.known);
        for at in before..self.known.len() {
            self.open(at)?;
        }
        if before < self.known.len() {
            self.answer_others();
        }
        Ok(patience)
    }

    /// SNMP and HTTP, where they are configured, answer as a daemon's do.
    fn answer_others(&self) {
        let known = self.known.iter().map(|one| one.namespace().clone());
        let mut known: Vec<_> = known.collect();
        known.sort_by_key(|one| one.name.is_some());
        if let Some(snmp) = &self.snmp {
            snmp.set_namespaces(known.clone().into_iter());
        }
        if let Some(http) = &self.http {
            http.set_namespaces(known.into_iter());
        }
    }

    fn open(&mut self, at: usize) -> Result<()> {
        let Some(answers) = self.known.get(at) else {
            return Ok(());
        };
        let is_same = |first: &Place| first.answers.namespace().name == answers.namespace().name;
        let path = match &self.replay.socket {
            Some(_) if let Some(first) = self.places.first_mut().filter(|one| is_same(one)) => {
                // Deleted and made again under its name: the newer answers.
                first.answers = Arc::clone(answers);
                return Ok(());
            }
            Some(_) if at > 0 => bail!(
                "the recording holds several namespaces and --socket names one place: say which \
                 namespace with -n"
            ),
            Some(path) => path.clone(),
            None => {
                let number = if at == 0 {
                    String::new()
                } else {
                    format!("-{at}")
                };
                let name = format!("replay-{}{number}.sock", std::process::id());
                self.directory.join(name)
            }
        };
        let mut claim = Claim::at(path, Access::Everybody, "serves a replay")?;
        self.places.push(Place {
            answers: Arc::clone(answers),
            listener: claim.listen()?,
            claim,
        });
        Ok(())
    }

    fn wait(&self, patience: Duration) -> Result<Vec<usize>> {
        let listeners = self.places.iter().map(|place| &place.listener);
        self.signals
            .wait(listeners, patience)
            .context("cannot wait for clients")
    }

    fn accept(&self) {
        for place in &self.places {
            self.server.accept(&place.listener, &place.answers);
        }
    }

    /// What is said once it answers: one screen. A reader of it that is
    /// gone changes nothing.
    fn screen(&self, took: Duration) -> Result<()> {
        if let Some(end) = &self.end {
            warn_of(&self.playing, end);
        }
        match self.write_screen(took, &mut io::stdout().lock()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("the screen cannot be written")
            }
            _ => Ok(()),
        }
    }

    fn write_screen(&self, took: Duration, out: &mut impl Write) -> io::Result<()> {
        let progress = self.playing.progress();
        let version = env!("CARGO_PKG_VERSION");
        if self.replay.real_time {
            writeln!(out, "fingerpost {version} replays in real time:")?;
        } else {
            writeln!(
                out,
                "fingerpost {version} replayed {} records, {} messages in {took:.1?}, from {} to {}:",
                progress.records,
                progress.messages,
                time(progress.first_micros),
                time(progress.newest_micros)
            )?;
        }
        for place in self.places.iter().take(SHOWN) {
            let namespace = place.answers.namespace();
            let tables = namespace.tables();
            let name = namespace.name.as_deref().unwrap_or("the daemon's own");
            writeln!(
                out,
                "  namespace {name} (inode {}): {} rows, at {}",
                namespace.inode,
                tables.rows(),
                place.claim.socket().display()
            )?;
        }
        if self.places.len() > SHOWN {
            writeln!(out, "  and {} more", self.places.len() - SHOWN)?;
        }
        let socket = self.places.first().map(|place| place.claim.socket());
        let socket = socket.unwrap_or(Path::new("SOCKET")).display();
        writeln!(
            out,
            "Memory: {}.\n\nTry next, in another terminal:\n  \
             fingerpost neigh --socket {socket}\n  \
             fingerpost status --socket {socket}\n\
             Ctrl-C ends it.",
            status::human(status::resident_bytes())
        )?;
        out.flush()
    }
}

/// A time of the recording, to the second.
fn time(micros: u64) -> String {
    calendar::text(micros / 1_000_000)
}
