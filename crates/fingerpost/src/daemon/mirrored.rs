//! One namespace that the daemon mirrors.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use linux::recording::history::Keeper;
use linux::recording::{Recorder, Tap};
use linux::{Mirror, Namespace, Options, Phase};
use serve::namespace;
use serve::namespace_service::{DaemonGauges, NamespaceService};
use table::Tables;

use super::socket::{Access, Claim};
use crate::config::Config;

/// A namespace that is mirrored, and its socket.
#[derive(Debug)]
pub struct Mirrored {
    /// What it was asked for by; `None`: the daemon's own.
    pub spec: Option<String>,
    /// Answers questions about it.
    pub answers: Arc<NamespaceService>,
    mirror: Arc<Mirror>,
    /// Where it is recorded, and feeds beside it.
    tap: Option<Tap>,
    /// Accepts clients, once the tables are loaded.
    pub listener: Option<UnixListener>,
    claim: Claim,
}

impl Mirrored {
    /// Takes a namespace's place and starts to mirror it.
    pub fn start(
        spec: Option<String>,
        namespace: Namespace,
        access: Access,
        directory: &Path,
        config: &Config,
        (recorder, history): (Option<&Recorder>, Option<&Keeper>),
        whole: DaemonGauges,
    ) -> Result<Self> {
        let claim = Claim::take(directory, namespace.inode(), access)?;
        let name = spec.as_deref().unwrap_or("");
        let recorded = recorder.map(|recorder| recorder.tap(namespace.inode(), name));
        let kept = history.map(|history| history.tap(namespace.inode(), name));
        let tap = match (recorded, kept) {
            (Some(recorded), Some(kept)) => Some(recorded.and(kept)),
            (recorded, kept) => recorded.or(kept),
        };
        let options = Options {
            limits: config.limits.limits(),
            receive_buffer_bytes: config.mirror.receive_buffer_bytes as usize,
            scan_interval: Duration::from_secs(config.mirror.scan_interval_secs),
            tap: tap.clone(),
        };
        let mirror = Mirror::start(namespace, options)
            .with_context(|| format!("cannot mirror {}", named(spec.as_deref())))?;
        let mirror = Arc::new(mirror);
        let namespace = namespace::Namespace {
            name: spec.clone(),
            inode: mirror.inode(),
            is_others: access != Access::Everybody,
            source: Arc::<Mirror>::clone(&mirror),
            feeder: None,
        };
        Ok(Self {
            answers: Arc::new(NamespaceService::new(namespace, whole)),
            mirror,
            tap,
            spec,
            listener: None,
            claim,
        })
    }

    /// Listens as soon as the tables are loaded; true if it just began to.
    pub fn listen_when_ready(&mut self) -> Result<bool> {
        let phase = self.mirror.status().phase;
        if self.listener.is_some() || phase == Phase::Loading || self.ended().is_some() {
            return Ok(false);
        }
        self.listener = Some(self.claim.listen()?);
        Ok(true)
    }

    /// Why the mirror ended, if it did.
    pub fn ended(&self) -> Option<String> {
        match self.mirror.status().phase {
            Phase::Ended(why) => Some(why),
            _ => None,
        }
    }

    /// Ends the mirror at the end of the process, whoever else holds it. One that
    /// has nothing to write is not waited for.
    pub fn end(self) {
        match self.tap {
            Some(_) => self.mirror.stop(),
            None => self.mirror.abandon(),
        }
    }

    /// The mirror itself.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }

    /// Where it is recorded; `None`: it is not.
    pub fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }

    /// Takes other limits of its tables.
    pub fn set_limits(&self, limits: table::Limits) {
        self.mirror.set_limits(limits);
    }

    /// Whether what led to the namespace still does.
    pub fn still_there(&self) -> bool {
        self.mirror.still_there()
    }

    /// Its inode.
    pub fn inode(&self) -> u64 {
        self.mirror.inode()
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        self.claim.socket()
    }

    /// What it has at this moment.
    pub fn tables(&self) -> Arc<Tables> {
        self.mirror.reader().snapshot()
    }

    /// How long the first listing took.
    pub fn load_time(&self) -> Duration {
        self.mirror.status().load_time
    }
}

/// A namespace in words.
pub fn named(spec: Option<&str>) -> String {
    spec.map_or_else(
        || "this namespace".to_owned(),
        |spec| format!("namespace {spec}"),
    )
}
