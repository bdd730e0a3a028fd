//! `link add`: making the links of a plan, going on with it, and taking it
//! back.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result, anyhow, bail};
use linux::Namespace;
use linux::links::journal::{End, Journal, Start, Work};
use linux::links::{self, Agreed, Change, Deletion, How, Listing, New, Told, random_group};
use linux::socket::Socket;
use linux::tun::{TunKind, new_tuns};
use netlink::encode::LinkSettings;
use serde::{Deserialize, Serialize};
use table::Link;

use super::plan::{Maker, Plan};
use super::report::Report;
use super::{Job, journal};

/// TUN devices that are made before they are marked as ours.
const TUNS: usize = 64;
/// The group that links are in unless another is asked for.
const DEFAULT_GROUP: u32 = 0;

/// What a journal keeps of the program's.
#[derive(Serialize, Deserialize)]
struct Request {
    plan: Plan,
    /// Which namespace the peers' is.
    peers: Option<u64>,
}

/// Makes the links of a plan.
pub fn add(job: &Job<'_>, plan: &Plan) -> Result<bool> {
    let peers = peers(plan)?;
    Maker::new(plan, &job.namespace, peers.as_ref(), 0, Vec::new())?.try_first()?;
    let group = random_group();
    let mut start = Start::new(Work::Add, &job.namespace, group, plan.count());
    start.request = serde_json::to_value(Request {
        plan: plan.clone(),
        peers: peers.as_ref().map(Namespace::inode),
    })?;
    let journal = journal::begin(job, start, &[])?;
    let adding = Adding {
        job,
        plan,
        peers,
        group,
        have: HashMap::new(),
    };
    adding.run(journal)
}

/// Goes on with a plan.
pub fn resume(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let journal = journal::to_resume(job, Work::Add, id, "made")?;
    let request: Request = journal::request(&journal)?;
    let plan = &request.plan;
    let peers = peers_of(&request)?;
    let adding = Adding {
        job,
        plan,
        peers,
        group: journal.start.group,
        have: ours(job, &journal, plan)?,
    };
    adding.run(Some(journal))
}

/// Deletes the links that a plan has made.
pub fn undo(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let mut journal = journal::to_undo(job, Work::Add, id)?;
    let Request { plan, .. } = journal::request(&journal)?;
    let report = Report::new(job, &plan.kind, "deleted", plan.count());
    let (done, failed) = take_back(job, &journal, &plan, &report)?;
    if failed == 0 {
        journal.ended(End::Undone)?;
    }
    report.note("journal", journal.id(), None);
    report.end(done, failed)?;
    Ok(failed == 0)
}

fn peers(plan: &Plan) -> Result<Option<Namespace>> {
    let peers = plan.peer_netns.as_deref().map(Namespace::open);
    Ok(peers.transpose()?)
}

fn peers_of(request: &Request) -> Result<Option<Namespace>> {
    let peers = peers(&request.plan)?;
    if peers.as_ref().map(Namespace::inode) != request.peers {
        bail!(
            "`{}` is another namespace than the one the peers were made in",
            request.plan.peer_netns.as_deref().unwrap_or_default()
        );
    }
    Ok(peers)
}

/// The links that were made by an earlier run: index and peer, by name.
/// They carry its group; or are kept by index, once they lost it.
fn ours(job: &Job<'_>, journal: &Journal, plan: &Plan) -> Result<HashMap<Box<str>, (u32, u32)>> {
    let listing = Listing::read(&job.namespace)?;
    let is_ours = is_ours(journal, plan)?;
    let ours = listing.iter().filter(|link| is_ours(link));
    Ok(ours
        .map(|link| {
            let peer = link.lower.filter(|_| plan.kind == "veth");
            (link.name.clone(), (link.index, peer.unwrap_or(0)))
        })
        .collect())
}

fn is_ours(journal: &Journal, plan: &Plan) -> Result<impl Fn(&Link) -> bool> {
    let mut names = HashSet::new();
    for plan in plan.outer().iter().chain([plan]) {
        for number in plan.numbers.0..=plan.numbers.1 {
            names.insert(plan.name_of(number).map_err(|why| anyhow!(why))?);
            names.extend(plan.peer_of(number).map_err(|why| anyhow!(why))?);
        }
    }
    let group = journal.start.group;
    let indexes: HashSet<u32> = journal.indexes().map(|(_, index)| index).collect();
    let kind = if plan.is_tun() {
        "tun"
    } else {
        plan.kind.as_str()
    }
    .to_owned();
    Ok(move |link: &Link| {
        let is_marked = link.group == group || indexes.contains(&link.index);
        is_marked && link.kind.as_deref() == Some(&*kind) && names.contains(&*link.name)
    })
}

/// Deletes what a plan has made; gives the numbers of links deleted and of
/// those still there.
fn take_back(
    job: &Job<'_>,
    journal: &Journal,
    plan: &Plan,
    report: &Report,
) -> Result<(usize, usize)> {
    let is_ours = is_ours(journal, plan)?;
    let mut renamed = 0;
    let deletion = Deletion::plan(&job.namespace, &mut |link| {
        let ours = is_ours(link);
        renamed += usize::from(!ours && link.group == journal.start.group);
        ours
    })?;
    if renamed > 0 {
        let text = format!(
            "{renamed} links in its group {} have other names than it gave, and were left",
            journal.start.group
        );
        report.note("left", renamed, Some(text));
    }
    let terms = links::Terms {
        along: Agreed::Marked(journal.start.group),
        atomic: false,
    };
    // Whoever asks for undoing is not stopped by the Ctrl-C that he came by.
    let deleted = deletion.run(terms, How::default(), &mut |told| match told {
        Told::Done { .. } => report.step(),
        Told::Failed(failure) => report.failed(&failure),
        Told::Sent(_) => {}
    })?;
    Ok((deleted.done, deleted.failed))
}

struct Adding<'a> {
    job: &'a Job<'a>,
    plan: &'a Plan,
    peers: Option<Namespace>,
    group: u32,
    /// What an earlier run has made.
    have: HashMap<Box<str>, (u32, u32)>,
}

/// What was counted.
#[derive(Default)]
struct Counts {
    done: usize,
    failed: usize,
    stopped: bool,
    waited: std::time::Duration,
    /// Origin and index of each.
    indexes: Vec<(usize, u32)>,
}

impl Adding<'_> {
    fn run(&self, mut journal: Option<Journal>) -> Result<bool> {
        let plan = self.plan;
        let report = Report::new(self.job, &plan.kind, "made", plan.count());
        let result = self.make(journal.as_mut(), &report);
        let counts = match result {
            Ok(counts) => counts,
            Err(error) if self.job.terms.atomic && journal.is_some() => {
                report.fail("all", "go on", &format!("{error:#}"), None);
                Counts {
                    failed: 1,
                    ..Counts::default()
                }
            }
            Err(error) => return Err(error).with_context(|| hint(journal.as_ref())),
        };
        let is_done = counts.failed == 0 && !counts.stopped;
        report.note("stopped", counts.stopped, None);
        let before = self.have.len();
        let text = format!("{before} links were there from before");
        report.note("made_before", before, (before > 0).then_some(text));
        report.note("group", plan.group.unwrap_or(DEFAULT_GROUP), None);
        report.note("waited_seconds", counts.waited.as_secs_f64(), None);
        if let Some(journal) = &mut journal {
            report.note("journal", journal.id(), None);
            if is_done {
                journal.ended(End::Done)?;
            } else if self.job.terms.atomic {
                let (undone, left) = take_back(self.job, journal, plan, &report)?;
                let text = format!("all of it was taken back: {undone} links deleted");
                report.note("undone", undone, Some(text));
                if left == 0 {
                    journal.ended(End::Undone)?;
                }
                report.end(0, counts.failed)?;
                return Ok(false);
            } else {
                report.note("hint", hint(Some(journal)), Some(hint(Some(journal))));
            }
        }
        report.end(counts.done, counts.failed)?;
        Ok(is_done)
    }

    fn make(&self, journal: Option<&mut Journal>, report: &Report) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut outer = Vec::new();
        let mut marked = Vec::new();
        if let Some(plan) = self.plan.outer() {
            let between = Adding {
                job: self.job,
                plan: &plan,
                peers: None,
                group: self.group,
                have: self.have.clone(),
            };
            between.links(Vec::new(), report, &mut counts)?;
            if counts.failed > 0 || counts.stopped {
                return Ok(counts);
            }
            counts.indexes.sort_unstable();
            outer = counts.indexes.iter().map(|(_, index)| *index).collect();
            marked = std::mem::take(&mut counts.indexes);
        }
        if self.plan.is_tun() {
            self.tuns(report, &mut counts)?;
        } else {
            self.links(outer, report, &mut counts)?;
        }
        // The mark is for who goes on or takes back, and no group of theirs.
        if !counts.stopped {
            let group = self.plan.group.unwrap_or(DEFAULT_GROUP);
            if let Some(journal) = journal {
                marked.extend(&counts.indexes);
                journal.keep_indexes(marked)?;
            }
            for namespace in std::iter::once(&self.job.namespace).chain(&self.peers) {
                self.regroup(namespace, group, report, &mut counts)?;
            }
        }
        Ok(counts)
    }

    fn links(&self, outer: Vec<u32>, report: &Report, counts: &mut Counts) -> Result<()> {
        let mut maker = Maker::new(
            self.plan,
            &self.job.namespace,
            self.peers.as_ref(),
            self.group,
            outer,
        )?;
        let places = RefCell::new(Vec::new());
        let failed = Cell::new(0);
        let (first, last) = self.plan.numbers;
        let news = (first..=last).filter_map(|number| match maker.make(number) {
            Ok(mut new) => {
                new.there = self.have.get(&new.link.end.name).copied();
                places.borrow_mut().push((number - first) as usize);
                Some(new)
            }
            Err(error) => {
                let name = self.plan.name_of(number).unwrap_or_default();
                report.fail(&name, "make it", &format!("{error:#}"), None);
                failed.set(failed.get() + 1);
                None
            }
        });
        let how = self.job.how();
        let indexes = &mut counts.indexes;
        let peers = self.peers.as_ref();
        let added = links::add(
            &self.job.namespace,
            peers,
            news,
            how,
            &mut |told| match told {
                Told::Done { place, index } => {
                    report.step();
                    let place = places.borrow().get(place).copied().unwrap_or(place);
                    indexes.push((place, index));
                }
                Told::Failed(failure) => report.failed(&failure),
                Told::Sent(_) => {}
            },
        )?;
        counts.done += added.done;
        counts.failed += added.failed + failed.get();
        counts.stopped |= added.stopped;
        counts.waited += added.cost.waited;
        Ok(())
    }

    /// TUN and TAP devices: made one after the other, then marked and set
    /// up like the others.
    fn tuns(&self, report: &Report, counts: &mut Counts) -> Result<()> {
        let mut maker = Maker::new(self.plan, &self.job.namespace, None, self.group, Vec::new())?;
        let numbers: Vec<u64> = (self.plan.numbers.0..=self.plan.numbers.1).collect();
        for numbers in numbers.chunks(TUNS) {
            if self.job.is_stopped() {
                counts.stopped = true;
                return Ok(());
            }
            let mut news = Vec::new();
            for number in numbers {
                let mut new = maker.make(*number)?;
                new.there = self.have.get(&new.link.end.name).copied();
                news.push(new);
            }
            self.make_tuns(news, report, counts)?;
        }
        Ok(())
    }

    fn make_tuns(&self, mut news: Vec<New>, report: &Report, counts: &mut Counts) -> Result<()> {
        let kind = match self.plan.kind.as_str() {
            "tap" => TunKind::Tap,
            _ => TunKind::Tun,
        };
        let missing: Vec<&str> = news
            .iter()
            .filter(|new| new.there.is_none())
            .map(|new| &*new.link.end.name)
            .collect();
        let mut refused: Vec<(usize, String)> = Vec::new();
        let namespace = &self.job.namespace;
        new_tuns(
            namespace,
            kind,
            missing.iter().copied(),
            &mut |place, made| {
                if let Err(error) = made {
                    refused.push((place, error.to_string()));
                }
            },
        )?;
        let mut bad = HashSet::new();
        for (place, why) in refused {
            let name = missing.get(place).copied().unwrap_or_default();
            report.fail(name, "make it", &why, None);
            bad.insert(Box::<str>::from(name));
        }
        counts.failed += bad.len();
        news.retain(|new| !bad.contains(&new.link.end.name));
        let socket = Socket::open(namespace)?;
        let mut changes = Vec::new();
        for new in &mut news {
            let end = &new.link.end;
            let link = links::named(&socket, &end.name)?;
            let link = link.ok_or_else(|| anyhow!("{} is gone again", end.name))?;
            changes.push(Change {
                index: link.index,
                name: end.name.clone(),
                settings: LinkSettings {
                    up: end.up.then_some(true),
                    group: end.group,
                    mtu: end.mtu,
                    address: end.address,
                    tx_queue_len: end.tx_queue_len,
                    master: new.link.master,
                    ..LinkSettings::default()
                },
            });
            new.there = Some((link.index, 0));
        }
        let told = &mut |told: Told| {
            if let Told::Failed(failure) = told {
                report.failed(&failure);
            }
        };
        let changed = links::set(namespace, &changes, How::default(), told)?;
        let added = links::add(namespace, None, news, How::default(), told)?;
        let done = added.done.saturating_sub(changed.failed);
        (0..done).for_each(|_| report.step());
        counts.done += done;
        counts.failed += added.failed + changed.failed;
        counts
            .indexes
            .extend(changes.iter().map(|change| (0, change.index)));
        Ok(())
    }

    /// Moves what carries our mark into the group that was asked for.
    fn regroup(
        &self,
        namespace: &Namespace,
        group: u32,
        report: &Report,
        counts: &mut Counts,
    ) -> Result<()> {
        let listing = Listing::read(namespace)?;
        let changes: Vec<Change> = listing
            .iter()
            .filter(|link| link.group == self.group)
            .map(|link| Change {
                index: link.index,
                name: link.name.clone(),
                settings: LinkSettings {
                    group: Some(group),
                    ..LinkSettings::default()
                },
            })
            .collect();
        let changed = links::set(namespace, &changes, How::default(), &mut |told| {
            if let Told::Failed(failure) = told {
                report.failed(&failure);
            }
        })?;
        counts.failed += changed.failed;
        Ok(())
    }
}

fn hint(journal: Option<&Journal>) -> String {
    let Some(journal) = journal else {
        return "no journal was kept".to_owned();
    };
    let id = journal.id();
    format!("to go on: fingerpost link add --resume {id}; to take it back: --undo {id}")
}
