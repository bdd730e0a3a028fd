//! Which namespaces the daemon mirrors: those that are wanted, as they come
//! and go. For the daemon's own thread.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Result;
use linux::Namespace;

use super::descriptors::LOADING;
use super::mirrored::{Mirrored, named};
use super::socket::Access;
use super::{AGAIN, Daemon, wanted_by_name, wants_all};

impl Daemon {
    pub(super) fn wants_all(&self) -> bool {
        wants_all(&self.up, &self.config)
    }

    /// What is to be mirrored now: the own namespace is `None`.
    fn wanted(&self) -> Vec<Option<String>> {
        let mut wanted = self.wanted_by_name();
        if self.wants_all() {
            wanted.extend(Namespace::names().into_iter().map(Some));
        }
        wanted
    }

    pub(super) fn wanted_by_name(&self) -> Vec<Option<String>> {
        wanted_by_name(&self.up, &self.config)
    }

    pub(super) fn open(&self, spec: Option<&str>) -> Result<Namespace> {
        Ok(match spec {
            None => self.own.clone(),
            Some(spec) => Namespace::open(spec)?,
        })
    }

    /// Starts to mirror a namespace, unless it is mirrored already.
    pub(super) fn mirror(&mut self, spec: Option<String>, namespace: Namespace) -> Result<()> {
        let inode = namespace.inode();
        if self.inodes.contains(&inode) {
            return Ok(());
        }
        let whole = self.whole.clone();
        let kept_by = (self.recorder.as_ref(), self.history.as_ref());
        let directory = &self.directory;
        let access = match inode == self.own.inode() {
            true => Access::Everybody,
            false => Access::Group(self.group),
        };
        let config = &self.config;
        let one = Mirrored::start(spec, namespace, access, directory, config, kept_by, whole)?;
        self.inodes.insert(inode);
        self.namespaces.push(one);
        Ok(())
    }

    /// Drops what is gone or no more wanted, finds what is new. O(n log n)
    /// in the namespaces.
    pub(super) fn look_at_namespaces(&mut self) {
        let wanted: BTreeSet<Option<String>> = self.wanted().into_iter().collect();
        self.drop_unwanted(&wanted);
        self.refused.retain(|spec| wanted.contains(spec));
        self.ended.retain(|_, at| at.elapsed() < AGAIN);
        let mirrored: BTreeSet<Option<String>> =
            self.namespaces.iter().map(|one| one.spec.clone()).collect();
        let missing = wanted.difference(&mirrored);
        let due = missing.filter(|spec| !self.ended.contains_key(*spec));
        self.waiting = due.cloned().collect();
        self.start_waiting();
    }

    fn drop_unwanted(&mut self, wanted: &BTreeSet<Option<String>>) {
        let before = self.namespaces.len();
        let ended = &mut self.ended;
        self.namespaces.retain(|one| {
            let name = named(one.spec.as_deref());
            if !one.still_there() {
                tracing::warn!("{name} was deleted and is mirrored no more");
            } else if let Some(why) = one.ended() {
                tracing::error!("the mirror of {name} ended: {why}");
                ended.insert(one.spec.clone(), Instant::now());
            } else if !wanted.contains(&one.spec) {
                tracing::info!("{name} is no more wanted and mirrored no more");
            } else {
                return true;
            }
            false
        });
        if self.namespaces.len() < before {
            self.has_news = true;
            self.inodes = self.namespaces.iter().map(Mirrored::inode).collect();
        }
    }

    /// Mirrors those that wait, as many as may be loading at once.
    pub(super) fn start_waiting(&mut self) {
        let is_loading = |one: &&Mirrored| one.listener.is_none() && one.ended().is_none();
        let mut loading = self.namespaces.iter().filter(is_loading).count();
        while loading < LOADING
            && let Some(spec) = self.waiting.pop_front()
        {
            loading += usize::from(self.try_to_mirror(spec));
        }
    }

    /// Says once why a namespace cannot be mirrored, and tries on; whether
    /// it is.
    fn try_to_mirror(&mut self, spec: Option<String>) -> bool {
        let mirrored = self
            .place_for_another()
            .and_then(|()| self.open(spec.as_deref()))
            .and_then(|namespace| self.mirror(spec.clone(), namespace));
        match mirrored {
            Ok(()) => {
                self.refused.remove(&spec);
                true
            }
            Err(error) => {
                if self.refused.insert(spec.clone()) {
                    tracing::warn!("{} is not mirrored: {error:#}", named(spec.as_deref()));
                }
                false
            }
        }
    }

    fn place_for_another(&self) -> Result<()> {
        if self.namespaces.len() < self.descriptors.namespaces() {
            return Ok(());
        }
        Err(self.descriptors.refusal())
    }
}
