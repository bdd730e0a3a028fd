//! Carries out plans: links level by level, then settings, then rows, each
//! packed. Called by [`mod@super`].

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use linux::bulk::{Bulk, Heard, Options};
use linux::error::Refusal;
use linux::links::{self, Agreed, Deletion, How, Listing, New, Told};
use linux::mirror::now_millis;
use netlink::decode::{Item, Operation};
use netlink::encode::{self, LinkEnd, LinkKind, LinkSettings, NewLink, Request};
use serde_json::json;
use words::Verb;

use super::difference::{ALT_MARK, Change, Plan, afterwards};
use super::look::{Look, SETTINGS, look, look_beside, wanted_beside_links};
use super::resolved::{Links, Resolved, TO_BE_MADE};
use super::wanted::Wanted;
use super::{Applying, Job, keep};
use crate::complaint::complain;
use crate::rows::undo::relink;
use crate::rows::{Asked, message};

/// What is taken along may take others along: so often is looked again.
const ROUNDS: usize = 4;
/// A link has its carrier a moment after it came up, and next hops want
/// one: so long they wait, and so long between two looks.
const CARRIER: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// So many failures are told.
const MAX_TOLD: u64 = 100;

/// What became of it.
#[derive(Debug, Default)]
pub struct Counts {
    pub links: u64,
    pub changed: u64,
    pub rows: u64,
    pub deleted: u64,
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    pub stopped: bool,
}

/// Applies files; whether all is as they say.
pub fn run(job: &Job<'_>, how: Applying) -> Result<bool> {
    let (wanted, links) = wanted_beside_links(job)?;
    let first = match keep::settle(job)? {
        true => look(job, &wanted)?,
        false => look_beside(job, &wanted, links)?,
    };
    let waiting = first.resolved.waiting.clone();
    for why in &waiting {
        complain(why);
    }
    let keeps = how.atomic || how.confirm.is_some();
    if !keeps || first.plan.is_empty() {
        let mut counts = Counts::default();
        carry_out_all(job, &wanted, first, &mut counts)?;
        end(job, &counts, &waiting, None)?;
        return Ok(counts.failed == 0 && !counts.stopped && waiting.is_empty());
    }
    let kept = keep::begin(job, &wanted, &first, how)?;
    let mut counts = Counts::default();
    let result = carry_out_all(job, &wanted, first, &mut counts);
    if let Err(error) = &result {
        complain(&format!("{error:#}"));
    }
    let is_whole = result.is_ok() && counts.failed == 0 && !counts.stopped;
    if how.atomic && !is_whole {
        let failed = kept.take_back(job)?;
        complain(match failed {
            0 => "all of it was taken back",
            _ => "what could be was taken back",
        });
        end(job, &counts, &waiting, Some("taken back"))?;
        return Ok(false);
    }
    let id = kept.id();
    let outcome = kept.done(how)?;
    end(job, &counts, &waiting, outcome)?;
    if let Some(within) = how.confirm {
        complain(&format!(
            "it is taken back in {} s unless it is confirmed: fingerpost apply --confirmed {id}",
            within.as_secs()
        ));
    }
    Ok(is_whole && waiting.is_empty())
}

fn end(job: &Job<'_>, counts: &Counts, waiting: &[String], outcome: Option<&str>) -> Result<()> {
    let seconds = job.began.elapsed().as_secs_f64();
    let mut out = io::stdout().lock();
    if job.wanted.json {
        let line = json!({
            "made": counts.links, "changed": counts.changed, "rows": counts.rows,
            "deleted": counts.deleted, "failed": counts.failed, "requests": counts.requests,
            "waiting": waiting.len(), "stopped": counts.stopped, "seconds": seconds,
            "outcome": outcome.unwrap_or("applied"),
        });
        writeln!(out, "{line}")?;
    } else if counts.requests == 0 && counts.failed == 0 {
        writeln!(out, "all is as wanted: nothing was sent, {seconds:.3} s")?;
    } else {
        let failed = match counts.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        writeln!(
            out,
            "{} links made, {} changed, {} rows, {} deleted{failed}, {} requests, {seconds:.3} s{}",
            counts.links,
            counts.changed,
            counts.rows,
            counts.deleted,
            counts.requests,
            if counts.stopped {
                "; stopped before the end"
            } else {
                ""
            },
        )?;
    }
    out.flush()?;
    Ok(())
}

/// Carries out a plan, and what becomes necessary by it.
pub fn carry_out_all(
    job: &Job<'_>,
    wanted: &Wanted,
    first: Look,
    counts: &mut Counts,
) -> Result<()> {
    let mut next = first;
    let began = Instant::now();
    let mut round = 0;
    while round < ROUNDS {
        if next.plan.is_empty() {
            return Ok(());
        }
        let again = next.plan.takes_along();
        let (failed, requests) = (counts.failed, counts.requests);
        let mut doing = Doing {
            job,
            wanted,
            resolved: &next.resolved,
            links: &next.links,
            now: HashMap::new(),
            may_wait: began.elapsed() < CARRIER,
            waits: false,
            counts,
        };
        doing.carry_out(&next.plan)?;
        let waits = doing.waits;
        if counts.failed > failed || counts.stopped || !(again || waits) {
            return Ok(());
        }
        if waits {
            std::thread::sleep(LOOK_AGAIN);
        } else {
            round += 1;
        }
        next = look(job, wanted)?;
        if round == ROUNDS && !next.plan.is_empty() {
            counts.failed += next.plan.requests() as u64;
            complain("the kernel does not keep it so; `fingerpost diff` shows what is not");
        }
        if counts.requests == requests && !waits {
            return Ok(());
        }
    }
    Ok(())
}

struct Doing<'a> {
    job: &'a Job<'a>,
    wanted: &'a Wanted,
    resolved: &'a Resolved,
    links: &'a Links,
    /// Whether rows may wait for a link's carrier; and whether some do.
    may_wait: bool,
    waits: bool,
    /// The index of each link that was made, by what stood for it.
    now: HashMap<u32, u32>,
    counts: &'a mut Counts,
}

impl Doing<'_> {
    fn carry_out(&mut self, plan: &Plan) -> Result<()> {
        self.rows(&plan.deletes)?;
        self.delete_links(&plan.delete_links)?;
        for level in &plan.make {
            if self.is_over() {
                return Ok(());
            }
            self.make(level)?;
        }
        self.sysctl(plan)?;
        self.set(plan)?;
        if self.is_over() {
            return Ok(());
        }
        self.rows(&plan.rows)
    }

    /// After a failure nothing more is begun where it is all or nothing.
    fn is_over(&mut self) -> bool {
        self.counts.stopped |= self.job.is_stopped();
        let is_atomic = matches!(&self.job.wanted.task, super::Task::Apply(how) if how.atomic);
        self.counts.stopped || is_atomic && self.counts.failed > 0
    }

    fn index(&self, index: u32) -> u32 {
        self.now.get(&index).copied().unwrap_or(index)
    }

    fn fail(&mut self, what: &str, why: &str) {
        self.counts.failed += 1;
        if self.counts.failed <= MAX_TOLD {
            complain(&format!("{what}: {why}"));
        }
    }

    fn how(&self) -> How<'_> {
        How {
            stop: Some(&self.job.stop),
            ..How::default()
        }
    }

    fn delete_links(&mut self, links: &[(u32, Box<str>)]) -> Result<()> {
        if links.is_empty() {
            return Ok(());
        }
        let going: HashSet<u32> = links.iter().map(|(index, _)| *index).collect();
        let deletion =
            Deletion::plan(&self.job.namespace, &mut |link| going.contains(&link.index))?;
        let others: Vec<&str> = deletion
            .along()
            .iter()
            .filter(|along| !along.is_peer)
            .map(|along| &*along.link.name)
            .collect();
        if !others.is_empty() {
            let why = format!(
                "{} stand on what --prune deletes, and nobody said that they go",
                others.join(", ")
            );
            self.fail("delete links", &why);
            return Ok(());
        }
        let terms = links::Terms {
            along: Agreed::Peers,
            atomic: false,
        };
        let mut failed = Vec::new();
        let deleted = deletion.run(terms, self.how(), &mut |told| {
            if let Told::Failed(failure) = told {
                failed.push((failure.name.to_string(), failure.refusal.to_string()));
            }
        })?;
        self.counts.deleted += deleted.done as u64;
        self.counts.requests += deleted.done as u64;
        for (name, why) in failed {
            self.fail(&format!("delete link {name}"), &why);
        }
        Ok(())
    }

    fn make(&mut self, level: &[usize]) -> Result<()> {
        let news: Vec<New> = level.iter().map(|at| self.new_link(*at)).collect();
        let mut failed = Vec::new();
        let added = links::add(&self.job.namespace, None, news, self.how(), &mut |told| {
            if let Told::Failed(failure) = told {
                let why = links::advice("", &failure.refusal);
                let why = why.unwrap_or_else(|| failure.refusal.to_string());
                failed.push((failure.place, format!("{}: {why}", failure.tried)));
            }
        })?;
        self.counts.links += added.done as u64;
        self.counts.requests += added.done as u64;
        self.counts.stopped |= added.stopped;
        for (place, why) in failed {
            let at = level.get(place).copied().unwrap_or_default();
            let place = self.wanted.place_of(at);
            let name = &self.wanted.links[at].name;
            self.fail(&format!("{place}: link {name}"), &why);
        }
        self.learn(level)
    }

    /// The indexes of links that were made, and of their other ends.
    fn learn(&mut self, level: &[usize]) -> Result<()> {
        let listing = Listing::read(&self.job.namespace)?;
        let by_name: HashMap<&str, u32> = listing
            .iter()
            .map(|link| (&*link.name, link.index))
            .collect();
        for at in level {
            let link = &self.wanted.links[*at];
            let peer = link
                .peer
                .as_deref()
                .and_then(|peer| self.wanted.named(peer));
            for (at, link) in [Some((*at, link)), peer].into_iter().flatten() {
                if let Some(index) = by_name.get(&*link.name) {
                    self.now.insert(TO_BE_MADE | at as u32, *index);
                }
            }
        }
        Ok(())
    }

    /// The link of a name: one that is there, or was made.
    fn named(&self, name: &str) -> Option<u32> {
        let (at, _) = self.wanted.named(name)?;
        Some(self.index(self.resolved.index(at)))
    }

    fn new_link(&self, at: usize) -> New {
        let link = &self.wanted.links[at];
        let end = |link: &super::wanted::Link| LinkEnd {
            name: link.name.clone(),
            up: link.up == Some(true) && link.sysctl.is_empty(),
            mtu: link.mtu,
            address: link.address,
            group: link.group,
            tx_queue_len: link.tx_queue_len,
            ..LinkEnd::default()
        };
        let peer = link
            .peer
            .as_deref()
            .and_then(|peer| self.wanted.named(peer));
        let kind = match (&self.resolved.kinds[at], peer) {
            (_, Some((_, peer))) => LinkKind::Veth {
                peer: Box::new(end(peer)),
            },
            (Some(kind), None) => self.relinked(kind),
            (None, None) => LinkKind::plain("dummy"),
        };
        let by_name = |name: &Option<Box<str>>| {
            let name = name.as_deref().filter(|name| !name.is_empty())?;
            let there = self.named(name);
            there.or_else(|| self.resolved_elsewhere(name))
        };
        New::of(NewLink {
            end: end(link),
            master: by_name(&link.master),
            lower: by_name(&link.lower),
            alias: None,
            kind,
        })
    }

    /// A link that no file names, and that is there.
    fn resolved_elsewhere(&self, name: &str) -> Option<u32> {
        self.links.named(name).map(|link| link.index)
    }

    /// Links that are named by a kind's settings, where they are now.
    fn relinked(&self, kind: &LinkKind) -> LinkKind {
        let mut kind = kind.clone();
        if let LinkKind::Other {
            data: table::KindData::Vxlan(data),
            ..
        } = &mut kind
        {
            data.link = data.link.map(|link| self.index(link));
        }
        if let LinkKind::Other {
            data: table::KindData::Gre(data),
            ..
        } = &mut kind
        {
            data.link = data.link.map(|link| self.index(link));
        }
        kind
    }

    fn sysctl(&mut self, plan: &Plan) -> Result<()> {
        if plan.sysctl.is_empty() {
            return Ok(());
        }
        let results: Vec<io::Result<()>> = self
            .job
            .namespace
            .run(|| {
                let write =
                    |path: &str, value: &str| fs::write(Path::new(SETTINGS).join(path), value);
                let settings = plan.sysctl.iter();
                settings
                    .map(|setting| write(&setting.path, &setting.to))
                    .collect()
            })
            .context("changing settings of links")?;
        for (setting, result) in plan.sysctl.iter().zip(results) {
            self.counts.requests += 1;
            match result {
                Ok(()) => self.counts.changed += 1,
                Err(error) => self.fail(&format!("sysctl {}", setting.path), &error.to_string()),
            }
        }
        Ok(())
    }

    /// Settings of links: of those that were there, and of those that were
    /// made what they could not be made with.
    fn set(&mut self, plan: &Plan) -> Result<()> {
        let mut changes = Vec::new();
        let mut names: Vec<(u32, Vec<Box<str>>)> = Vec::new();
        for set in &plan.set {
            let mut settings = set.settings.clone();
            settings.master = settings.master.map(|master| self.index(master));
            if settings != LinkSettings::default() {
                changes.push(links::Change {
                    index: set.index,
                    name: set.name.clone(),
                    settings,
                });
            }
            if !set.alt_names.is_empty() {
                names.push((set.index, set.alt_names.clone()));
            }
        }
        for at in plan.make.iter().flatten() {
            let link = &self.wanted.links[*at];
            let peer = link
                .peer
                .as_deref()
                .and_then(|peer| self.wanted.named(peer));
            for (link, is_peer) in [(Some(link), false), (peer.map(|(_, peer)| peer), true)] {
                let Some(link) = link else { continue };
                let Some(index) = self
                    .named(&link.name)
                    .filter(|index| index & TO_BE_MADE == 0)
                else {
                    continue;
                };
                let mut settings = afterwards(link);
                if is_peer {
                    settings.master = link.master.as_deref().and_then(|name| {
                        (!name.is_empty())
                            .then(|| self.named(name).or_else(|| self.resolved_elsewhere(name)))?
                    });
                }
                if settings != LinkSettings::default() {
                    changes.push(links::Change {
                        index,
                        name: link.name.clone(),
                        settings,
                    });
                }
                let mut alt_names = link.alt_names.clone();
                if !is_peer {
                    alt_names.push(format!("{ALT_MARK}{index}").into());
                }
                if !alt_names.is_empty() {
                    names.push((index, alt_names));
                }
            }
        }
        self.settings(&changes)?;
        self.alt_names(&names)
    }

    fn settings(&mut self, changes: &[links::Change]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut failed = Vec::new();
        let changed = links::set(&self.job.namespace, changes, self.how(), &mut |told| {
            if let Told::Failed(failure) = told {
                failed.push((failure.name.to_string(), failure.refusal.to_string()));
            }
        })?;
        self.counts.changed += changed.done as u64;
        self.counts.requests += changes.len() as u64;
        self.counts.stopped |= changed.stopped;
        for (name, why) in failed {
            self.fail(&format!("change link {name}"), &why);
        }
        Ok(())
    }

    fn alt_names(&mut self, names: &[(u32, Vec<Box<str>>)]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut bulk = Bulk::open(&self.job.namespace, Options::default())?;
        let requests = names.iter().map(|(index, names)| {
            move |sequence, out: &mut Vec<u8>| {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                let request = Request::plain(Operation::New, sequence);
                // What is too long makes no message, and is refused for it.
                let _ = encode::alternative_names(out, &request, *index, &names);
            }
        });
        let mut refused: Vec<(usize, String)> = Vec::new();
        bulk.run(requests, &mut |heard| refused.extend(refusal(heard)))?;
        self.counts.requests += names.len() as u64;
        for (at, why) in refused {
            let (index, names) = &names[at];
            let what = format!("name link {index} {}", names.join(" "));
            self.fail(&what, &why);
        }
        Ok(())
    }

    fn rows(&mut self, changes: &[Change]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let now_millis = now_millis();
        let mut bulk = Bulk::open(
            &self.job.namespace,
            Options {
                stop: Some(&self.job.stop),
                ..Options::default()
            },
        )?;
        let mut refused: Vec<(usize, String)> = Vec::new();
        let mut done = 0;
        let mut is_down = false;
        let index = |index| self.index(index);
        let requests = changes.iter().map(|change| {
            let mut item = change.item.clone();
            relink(&mut item, &index);
            let asked = Asked {
                verb: change.verb,
                item,
                is_placed: true,
            };
            move |sequence, out: &mut Vec<u8>| {
                // What does not fit a message is told by the engine.
                let _ = message(&asked, sequence, now_millis, out);
            }
        });
        let ended = bulk.run(requests, &mut |heard| match heard {
            Heard::Done(_) => done += 1,
            Heard::Refused(at, why) => {
                let change = &changes[at];
                let errno = why.source.raw_os_error();
                is_down |= errno == Some(rustix::io::Errno::NETDOWN.raw_os_error());
                if !is_well(change, &why) {
                    refused.push((at, why.to_string()));
                }
            }
            heard => refused.extend(refusal(heard)),
        })?;
        self.counts.requests += ended.sent as u64;
        self.counts.stopped |= ended.stopped;
        match changes
            .first()
            .is_some_and(|change| change.verb == Verb::Delete)
        {
            true => self.counts.deleted += done,
            false => self.counts.rows += done,
        }
        if is_down && self.may_wait {
            // And so does what stands on those.
            self.waits = true;
            return Ok(());
        }
        for (at, why) in refused {
            let change = &changes[at];
            let what = match change.line.and_then(|at| self.wanted.rows.get(at)) {
                Some(line) => format!("{}: {}", self.wanted.places[line.place], line.words),
                None => format!("{:?}", change.item),
            };
            self.fail(&what, &why);
        }
        Ok(())
    }
}

/// What of an answer is a failure, and its place.
fn refusal(heard: Heard<'_>) -> Option<(usize, String)> {
    match heard {
        Heard::Refused(at, why) => Some((at, why.to_string())),
        Heard::Lost(at) => Some((at, "the kernel's answer was lost".to_owned())),
        _ => None,
    }
}

/// What the kernel took along, or gave by itself, is as it is wanted.
fn is_well(change: &Change, refusal: &Refusal) -> bool {
    let is = |errno: rustix::io::Errno| refusal.source.raw_os_error() == Some(errno.raw_os_error());
    match change.verb {
        Verb::Delete => {
            use rustix::io::Errno;
            is(Errno::SRCH) || is(Errno::NOENT) || is(Errno::ADDRNOTAVAIL) || is(Errno::NODEV)
        }
        // The kernel's own: of a loopback, of a VXLAN's remote end.
        Verb::Add => {
            matches!(change.item, Item::Address(_) | Item::Fdb(_)) && is(rustix::io::Errno::EXIST)
        }
        _ => false,
    }
}
