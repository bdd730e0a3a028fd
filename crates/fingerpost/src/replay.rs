//! `fingerpost replay`: the mirrors' machines, fed by a recording, and the
//! same answers from them. Needs no privileges and asks no kernel.
//!
//! - `command`: its command line.
//! - `files`: the files, opened, told apart and put in their order; `ahead`
//!   unpacks them.
//! - `past`: the tables of a time, from the history that a daemon keeps.
//! - `playing`: records from there into the machines, or into the tables of
//!   a collector's peers.
//! - `serving`: answers at control sockets, and over SNMP and HTTP if
//!   configured.

mod ahead;
mod command;
mod files;
pub mod past;
mod playing;
mod serving;
mod until;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bgp::Rib;

use router::forward::ReadRoutes;
use serve::control::protocol::Ask;
use serve::control::server::connection::{Failure, answer};
use serve::namespace::Namespace;
use serve::namespace_service::{DaemonGauges, NamespaceService};
use serve::status::Answered;
use table::{OfOwner, Reader, Samples, Source, Status};

use crate::ask::{ended, source_of};
use crate::config::{self, Config};
use crate::daemon::logging;
pub use command::{command, wanted};
use files::{Files, OpenedMrt};
use playing::{End, Mrt, Playing};
use until::Until;

/// Octets gathered before they are written.
const OUTPUT_BYTES: usize = 64 << 10;
/// What the daemon's own namespace is called where one is to be named.
const OWN: &str = "own";

/// What to replay, and how.
#[derive(Debug)]
pub struct Replay {
    /// The recording.
    pub files: Vec<PathBuf>,
    /// At the pace it was recorded.
    pub real_time: bool,
    /// No further than this.
    pub until: Option<Until>,
    /// Only this namespace.
    pub netns: Option<String>,
    /// Where to listen.
    pub socket: Option<PathBuf>,
    /// The configuration; `None`: all defaults, and neither SNMP nor HTTP.
    pub config: Option<PathBuf>,
    /// What is logged.
    pub log: Option<String>,
    /// What to answer once, instead of listening.
    pub question: Option<Ask>,
}

/// Replays, and answers.
pub fn run(replay: &Replay) -> Result<ExitCode> {
    let config = match &replay.config {
        Some(path) => config::load(Some(path))?,
        None => Config::default(),
    };
    // A question's answer is not to be found among news.
    let usual = replay.question.as_ref().map(|_| "warn");
    let log = replay.log.as_deref().or(usual);
    let _logging = logging::start(log, config.log.as_deref())?;
    serve::descriptors::raise();
    let files = files::open(&replay.files)?;
    if replay.real_time && matches!(files, Files::Mrt(_)) {
        bail!("--real-time is for recordings: files of BGP tables are taken in at once");
    }
    let playing = Playing::new(files, config.limits.limits(), replay.until);
    match &replay.question {
        Some(ask) => once(ask, replay, playing),
        None => serving::run(replay, &config, playing),
    }
}

/// Opens a collector's files whose routes are to be forwarded by; they are
/// read when what it gives is called: those of a peer, or the best.
pub fn routes(files: &[PathBuf], peer: Option<&str>) -> Result<ReadRoutes> {
    let Files::Mrt(files) = files::open(files)? else {
        bail!("a recording is no file of BGP tables (MRT)");
    };
    let peer = peer.map(str::to_owned);
    Ok(Box::new(move || read_routes(files, peer.as_deref())))
}

/// What cannot be read of the files is said.
fn read_routes(files: Vec<OpenedMrt>, peer: Option<&str>) -> Result<Box<dyn Source>> {
    let limits = Config::default().limits.limits();
    let mut taken = Mrt::new(files, limits, None);
    if let End::Incomplete(why) = taken.finish(&mut || false) {
        tracing::warn!("{why}; the routes before it are used");
    }
    let rib = taken.into_rib();
    let peers = rib.peers().map(|peer| peer.tables().refused.by_table());
    let refused = peers.flatten().map(|(_, refused)| refused).sum::<u64>();
    if refused > 0 {
        let most = limits.routes;
        tracing::warn!("{refused} paths had no place: a peer has {most} routes at most");
    }
    let all: Arc<dyn Source> = Arc::new(rib.source());
    let source = match peer {
        None => all,
        Some(name) => match OfOwner::new(&all, name) {
            Some(of_peer) => Arc::new(of_peer),
            None => {
                let peers: Vec<&str> = rib.peers().map(|peer| peer.name()).collect();
                bail!(
                    "the files have no peer `{name}`; there are: {}",
                    peers.join(", ")
                );
            }
        },
    };
    Ok(Box::new(Routes { source, _rib: rib }))
}

/// Routes that stay as long as who keeps them.
#[derive(Debug)]
struct Routes {
    source: Arc<dyn Source>,
    _rib: Rib,
}

impl Source for Routes {
    fn reader(&self) -> Reader {
        self.source.reader()
    }

    fn status(&self) -> Status {
        self.source.status()
    }

    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        self.source.now_millis()
    }
}

/// Answers one question and ends.
fn once(ask: &Ask, replay: &Replay, mut playing: Playing) -> Result<ExitCode> {
    privileges::give_up().context("cannot give up privileges")?;
    let mut known = Vec::new();
    let end = playing.finish(&mut || false);
    collect(&mut playing, replay, &mut known);
    warn_of(&playing, &end);
    let answers = the_one(&known, replay)?;
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
    // What changes is over; a watcher has seen it all.
    let answered = answer(
        ask,
        answers,
        &words::load(),
        Answered::default(),
        &|| true,
        &mut out,
    );
    match answered {
        Ok(_) => out.flush()?,
        Err(Failure::Told(message)) => bail!(message),
        Err(Failure::Gone(error)) => return Err(error.into()),
    }
    let is_status = matches!(ask, Ask::Status { .. });
    let how = answered_from(ask, answers)?.incomplete();
    Ok(match how.filter(|_| !is_status) {
        Some(how) if !end.is_damaged() => ended(Some(format!(
            "the answer may lack rows: the tables of the recording are {how}"
        ))),
        _ => end.exit_code(),
    })
}

/// The namespace with the rows of the owner that is asked for.
fn answered_from(ask: &Ask, answers: &NamespaceService) -> Result<Namespace> {
    let owner = source_of(ask);
    answers.namespace().of(owner).map_err(anyhow::Error::msg)
}

/// Takes the namespaces that came, as far as they are wanted.
fn collect(playing: &mut Playing, replay: &Replay, known: &mut Vec<Arc<NamespaceService>>) {
    for found in playing.take_new() {
        let spec = (!found.name.is_empty()).then_some(found.name);
        let called = spec.as_deref().unwrap_or(OWN);
        if replay
            .netns
            .as_deref()
            .is_none_or(|wanted| wanted == called)
        {
            let namespace = Namespace {
                name: spec,
                inode: found.inode,
                // Whoever may read the recording lets others ask it.
                is_others: false,
                source: found.source,
                feeder: None,
            };
            known.push(Arc::new(NamespaceService::new(
                namespace,
                DaemonGauges::default(),
            )));
        }
    }
}

/// The namespace that a question is about: the newest of its name, the
/// daemon's own, or the only one.
fn the_one<'a>(
    known: &'a [Arc<NamespaceService>],
    replay: &Replay,
) -> Result<&'a NamespaceService> {
    let own = known
        .iter()
        .rev()
        .find(|one| one.namespace().name.is_none());
    let newest = match &replay.netns {
        Some(_) => known.last(),
        None => own.or(match known {
            [only] => Some(only),
            _ => None,
        }),
    };
    match (newest, &replay.netns) {
        (Some(one), _) => Ok(one),
        (None, Some(name)) => bail!("the recording holds no namespace `{name}`"),
        (None, None) if known.is_empty() => bail!("the recording holds no namespace"),
        (None, None) => {
            let names = known
                .iter()
                .filter_map(|one| one.namespace().name.as_deref());
            let names: Vec<&str> = names.take(20).collect();
            bail!(
                "the recording holds {} namespaces; say which with -n: {}",
                known.len(),
                names.join(", ")
            )
        }
    }
}

/// Says what a user should know before trusting an answer.
fn warn_of(playing: &Playing, end: &End) {
    let progress = playing.progress();
    if let End::Damaged(place) = end {
        tracing::error!("{place}; everything before it was replayed");
    }
    if let End::Incomplete(place) = end {
        tracing::error!("{place}; what could be read was taken in");
    }
    if progress.gaps > 0 {
        tracing::warn!(
            "the recording has {} gaps ({} records are known to be missing)",
            progress.gaps,
            progress.lost
        );
    }
    if playing.incomplete() > 0 {
        tracing::warn!(
            "the tables of {} namespaces are not whole: no listing of them follows a gap, or the \
             beginning of the recording",
            playing.incomplete()
        );
    }
    if playing.incomplete_feeds() > 0 {
        tracing::warn!(
            "it is not known how {} feeds stood: the recording's part does not say so, or not whole",
            playing.incomplete_feeds()
        );
    }
    if progress.unknown > 0 {
        tracing::warn!(
            "{} records are of a kind that this release does not know",
            progress.unknown
        );
    }
}
