//! `link set`: settings of a choice of links, going on with them, and
//! putting the links back as they were.

use std::collections::HashSet;

use anyhow::{Context, Result, anyhow, bail};
use linux::links::journal::{End, Journal, Rows, Start, Work};
use linux::links::{self, Change, How, Listing, Told};
use linux::mirror::now_millis;
use netlink::decode::Item;
use netlink::encode::LinkSettings;
use serde::{Deserialize, Serialize};
use table::Link;
use table::row::link::flag::UP;

use super::plan::{check_name, filled, lladdr};
use super::renames::in_order;
use super::report::Report;
use super::{Job, Select, journal};
use crate::complaint::complain;
use crate::rows::undo::{Undo, along_with, stands_on};

/// The smallest MTU of IPv6 (RFC 8200 §5): below it the kernel takes a
/// link's IPv6 addresses.
const MIN_IPV6_MTU: u32 = 1280;

/// What is to be changed; patterns hold `{}` for the number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Up or down.
    pub up: Option<bool>,
    /// `IFLA_MTU`.
    pub mtu: Option<u32>,
    /// Name of the master; empty: none.
    pub master: Option<String>,
    /// `IFLA_GROUP`.
    pub group: Option<u32>,
    /// Pattern of new names.
    pub rename: Option<String>,
    /// Pattern of link-layer addresses.
    pub address: Option<String>,
    /// `IFLA_TXQLEN`.
    pub tx_queue_len: Option<u32>,
    /// `IFLA_IFALIAS`.
    pub alias: Option<String>,
}

impl Settings {
    /// Whether anything is to be changed.
    pub fn check(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err(
                "say what to set: up, down, mtu, master, nomaster, group, name, address, txqueuelen, alias"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn of(&self, link: &Link, number: u64, master: Option<u32>) -> Result<Change, String> {
        let name = self.rename.as_ref().map(|name| filled(name, number));
        let name = name.transpose()?;
        if let Some(name) = &name {
            check_name(name)?;
        }
        let address = self.address.as_ref().map(|mac| lladdr(mac, number));
        Ok(Change {
            index: link.index,
            name: link.name.clone(),
            settings: LinkSettings {
                up: self.up,
                name: name.map(Into::into),
                mtu: self.mtu,
                master,
                group: self.group,
                tx_queue_len: self.tx_queue_len,
                address: address.transpose()?,
                alias: self.alias.as_deref().map(Into::into),
                ..LinkSettings::default()
            },
        })
    }

    /// What puts a link back as it was.
    fn back(&self, link: &Link) -> Change {
        Change {
            index: link.index,
            name: link.name.clone(),
            settings: LinkSettings {
                up: self.up.map(|_| link.flags & UP != 0),
                name: self.rename.as_ref().map(|_| link.name.clone()),
                mtu: self.mtu.map(|_| link.mtu),
                master: self.master.as_ref().map(|_| link.master.unwrap_or(0)),
                group: self.group.map(|_| link.group),
                tx_queue_len: self.tx_queue_len.map(|_| link.tx_queue_len),
                address: self.address.as_ref().map(|_| link.address),
                alias: self
                    .alias
                    .as_ref()
                    .map(|_| link.alias.clone().unwrap_or_default()),
                ..LinkSettings::default()
            },
        }
    }
}

/// What a journal keeps of the program's.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    settings: Settings,
    /// Index of the new master; 0: none.
    master: Option<u32>,
    /// What fills the patterns of each link, in the order of the rows.
    numbers: Vec<u64>,
    /// The masters that links were in: index and name.
    masters: Vec<(u32, Box<str>)>,
}

impl Request {
    fn new(
        settings: &Settings,
        listing: &Listing,
        links: &[Link],
        numbers: Vec<u64>,
    ) -> Result<Self> {
        let master = match settings.master.as_deref() {
            None => None,
            Some("") => Some(0),
            Some(name) => {
                let master = listing.named(name);
                let master = master.with_context(|| format!("there is no link `{name}`"))?;
                Some(master.index)
            }
        };
        let mut masters = Vec::new();
        if master.is_some() {
            let indexes: HashSet<u32> = links.iter().filter_map(|link| link.master).collect();
            let listed = indexes.iter().filter_map(|index| listing.get(*index));
            masters.extend(listed.map(|master| (master.index, master.name.clone())));
        }
        Ok(Self {
            settings: settings.clone(),
            master,
            numbers,
            masters,
        })
    }

    fn read(journal: &Journal) -> Result<(Self, Rows)> {
        let request: Self = journal::request(journal)?;
        let rows = journal.rows()?.into_iter().next().unwrap_or_default();
        Ok((request, rows))
    }

    /// What was asked for of each link.
    fn changes(&self, links: &[Link]) -> Result<Vec<Change>> {
        let numbered = links.iter().zip(&self.numbers);
        let changes = numbered.map(|(link, number)| {
            let change = self.settings.of(link, *number, self.master);
            change.map_err(|why| anyhow!("{}: {why}; nothing was changed", link.name))
        });
        changes.collect()
    }

    /// Whether the new master, on going on, is the one that was meant.
    fn check_master(&self, listing: &Listing) -> Result<()> {
        let wanted = self.settings.master.as_deref().unwrap_or_default();
        let master = self.master.filter(|index| *index != 0);
        let is_other = |index| listing.named(wanted).map(|link| link.index) != Some(index);
        if master.is_some_and(is_other) {
            bail!("`{wanted}` is gone, or is another link than the one that was meant");
        }
        Ok(())
    }

    /// The links that go down by what was asked for, or leave their master,
    /// or lose IPv6: whose addresses and routes the kernel may take.
    fn disturbs(&self, links: &[Link]) -> HashSet<u32> {
        let settings = &self.settings;
        let disturbs = |link: &&Link| {
            let goes_down = settings.up == Some(false) && link.is_up();
            let loses = settings.mtu.is_some_and(|mtu| mtu < MIN_IPV6_MTU);
            let moves = self
                .master
                .is_some_and(|master| master != link.master.unwrap_or(0));
            goes_down || loses && link.mtu >= MIN_IPV6_MTU || moves
        };
        links
            .iter()
            .filter(disturbs)
            .map(|link| link.index)
            .collect()
    }
}

/// Changes a choice of links.
pub fn set(job: &Job<'_>, select: &Select, settings: &Settings) -> Result<bool> {
    let listing = Listing::read(&job.namespace)?;
    let chosen = select.choose(&listing)?;
    let mut rows = Rows::default();
    let mut numbers = Vec::new();
    for link in listing.iter() {
        if let Some(number) = chosen.indexes.get(&link.index) {
            rows.links.push(link.clone());
            numbers.push(*number);
        }
    }
    let request = Request::new(settings, &listing, &rows.links, numbers)?;
    let changes = request.changes(&rows.links)?;
    let report = Report::new(job, "", "changed", changes.len());
    for (name, why) in &chosen.missing {
        report.fail(name, "change it", why, None);
    }
    let missing = chosen.missing.len();
    if missing > 0 && job.terms.atomic {
        report.end(0, missing)?;
        return Ok(false);
    }
    let may_be_undone = job.terms.atomic || !job.terms.no_journal;
    let disturbed = request.disturbs(&rows.links);
    if may_be_undone && !disturbed.is_empty() {
        rows.others = along_with(&job.namespace, &disturbed, now_millis())?;
    }
    let journal = if changes.is_empty() {
        None
    } else {
        let mut start = Start::new(Work::Set, &job.namespace, 0, changes.len());
        start.request = serde_json::to_value(&request)?;
        journal::begin(job, start, std::slice::from_ref(&rows))?
    };
    let setting = Setting {
        job,
        request,
        rows,
        report,
    };
    let changes = in_order(changes, |change| change.name.clone());
    setting.run(&changes, journal, missing)
}

/// Goes on with a change.
pub fn resume(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let journal = journal::to_resume(job, Work::Set, id, "changed")?;
    let (request, rows) = Request::read(&journal)?;
    let listing = Listing::read(&job.namespace)?;
    request.check_master(&listing)?;
    let wanted = request.changes(&rows.links)?;
    let (mut changes, mut gone) = (Vec::new(), 0);
    for (before, change) in rows.links.iter().zip(wanted) {
        match meant(&listing, before, &change) {
            Some(now) if links::is_as(now, &change.settings) => {}
            Some(_) => changes.push(change),
            None => gone += 1,
        }
    }
    let report = Report::new(job, "", "changed", changes.len());
    say_gone(&report, gone);
    let setting = Setting {
        job,
        request,
        rows,
        report,
    };
    let changes = in_order(changes, |change| name_now(&listing, change));
    setting.run(&changes, Some(journal), 0)
}

/// Puts the links of a change back as they were.
pub fn undo(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let mut journal = journal::to_undo(job, Work::Set, id)?;
    let (request, rows) = Request::read(&journal)?;
    let report = Report::new(job, "", "put back", rows.links.len());
    let setting = Setting {
        job,
        request,
        rows,
        report,
    };
    let back = setting.put_back()?;
    if back.failed == 0 {
        journal.ended(End::Undone)?;
    }
    setting.report.note("journal", journal.id(), None);
    setting.report.end(back.done, back.failed)?;
    Ok(back.failed == 0)
}

/// The link that a change was for, if it is still there: its own name and
/// address may have been changed by it.
fn meant<'a>(listing: &'a Listing, before: &Link, change: &Change) -> Option<&'a Link> {
    let settings = &change.settings;
    listing.get(before.index).filter(|now| {
        let has_new = settings.name.as_ref() == Some(&now.name)
            || settings.address.as_ref() == Some(&now.address);
        links::is_same(before, now) || now.kind == before.kind && has_new
    })
}

/// The name that a link has now.
fn name_now(listing: &Listing, change: &Change) -> Box<str> {
    let now = listing.get(change.index);
    now.map_or_else(|| change.name.clone(), |now| now.name.clone())
}

fn say_gone(report: &Report, gone: usize) {
    let text = format!("{gone} of its links are gone, or others have their places");
    report.note("gone", gone, (gone > 0).then_some(text));
}

fn hint(journal: Option<&Journal>) -> String {
    let Some(journal) = journal else {
        return "no journal was kept".to_owned();
    };
    let id = journal.id();
    format!("to go on: fingerpost link set --resume {id}; to put them back: --undo {id}")
}

/// How links were put back.
#[derive(Debug, Default)]
struct Back {
    /// Links that are as they were.
    done: usize,
    failed: usize,
}

/// A change, and what was there before it.
struct Setting<'a> {
    job: &'a Job<'a>,
    request: Request,
    rows: Rows,
    report: Report,
}

impl Setting<'_> {
    fn run(
        &self,
        changes: &[Change],
        mut journal: Option<Journal>,
        missing: usize,
    ) -> Result<bool> {
        let (job, report) = (self.job, &self.report);
        let changed = links::set(&job.namespace, changes, job.how(), &mut |told| match told {
            Told::Done { .. } => report.step(),
            Told::Failed(failure) => report.failed(&failure),
            Told::Sent(_) => {}
        });
        let changed = match changed {
            Ok(changed) => changed,
            Err(error) if job.terms.atomic => {
                report.fail("all", "go on", &error.to_string(), None);
                links::Changed {
                    failed: 1,
                    ..links::Changed::default()
                }
            }
            Err(error) => return Err(error).with_context(|| hint(journal.as_ref())),
        };
        report.note("stopped", changed.stopped, None);
        report.note("waited_seconds", changed.cost.waited.as_secs_f64(), None);
        let failed = changed.failed + missing;
        let is_done = changed.failed == 0 && !changed.stopped;
        if let Some(journal) = &mut journal {
            report.note("journal", journal.id(), None);
            if is_done {
                journal.ended(End::Done)?;
            } else if !job.terms.atomic {
                report.note("hint", hint(Some(journal)), Some(hint(Some(journal))));
            }
        }
        if job.terms.atomic && !is_done {
            let back = self.put_back()?;
            let text = format!(
                "all of it was taken back: {} links are as they were",
                back.done
            );
            report.note("undone", back.done, Some(text));
            report.note("not_undone", back.failed, None);
            if let (Some(journal), 0) = (&mut journal, back.failed) {
                journal.ended(End::Undone)?;
            }
            report.end(0, failed)?;
            return Ok(false);
        }
        report.end(changed.done, failed)?;
        Ok(is_done && missing == 0)
    }

    /// Puts all back that is not as it was: a link of which a part of the
    /// change was refused may have taken another part. Who asks for that is
    /// not stopped by the Ctrl-C that he came by.
    fn put_back(&self) -> Result<Back> {
        let listing = Listing::read(&self.job.namespace)?;
        let wanted = self.request.changes(&self.rows.links)?;
        let mut gone = HashSet::new();
        let mut changes = Vec::new();
        let mut back = Back::default();
        for (before, change) in self.rows.links.iter().zip(wanted).rev() {
            let Some(now) = meant(&listing, before, &change) else {
                gone.insert(before.index);
                continue;
            };
            let mut change = self.request.settings.back(before);
            if !self.has_master(&change, &listing) {
                change.settings.master = None;
                back.failed += 1;
                let why = "it is gone, or another has its place";
                self.report
                    .fail(&before.name, "put it back into its master", why, None);
            }
            if !links::is_as(now, &change.settings) {
                changes.push(change);
            }
        }
        let changes = in_order(changes, |change| name_now(&listing, change));
        let set = links::set(
            &self.job.namespace,
            &changes,
            How::default(),
            &mut |told| match told {
                Told::Done { .. } => self.report.step(),
                Told::Failed(failure) => self.report.failed(&failure),
                Told::Sent(_) => {}
            },
        )?;
        back.failed += set.failed;
        back.done = (self.rows.links.len() - gone.len()).saturating_sub(back.failed);
        say_gone(&self.report, gone.len());
        self.put_back_others(&gone, &mut back)?;
        Ok(back)
    }

    /// Whether the master that a link goes back into is there.
    fn has_master(&self, back: &Change, listing: &Listing) -> bool {
        let master = back.settings.master.filter(|index| *index != 0);
        master.is_none_or(|index| {
            let known = self.request.masters.iter().find(|known| known.0 == index);
            let now = listing.get(index);
            now.is_some_and(|now| known.is_some_and(|known| known.1 == now.name))
        })
    }

    fn put_back_others(&self, gone: &HashSet<u32>, back: &mut Back) -> Result<()> {
        let others = self.rows.addresses.iter().cloned().map(Item::Address);
        let others = others.chain(self.rows.others.iter().cloned());
        let others: Vec<Item> = others.filter(|row| !stands_on(row, gone)).collect();
        if others.is_empty() {
            return Ok(());
        }
        let undone = Undo::of(others, now_millis()).run(&self.job.namespace, &mut |why| {
            complain(why.trim_start_matches("fingerpost: "));
        })?;
        back.failed += undone.failed as usize;
        let text = format!(
            "{} addresses, neighbours, next hops and routes that had gone along are there again",
            undone.rows
        );
        self.report.note(
            "rows_put_back",
            undone.rows,
            (undone.rows > 0).then_some(text),
        );
        Ok(())
    }
}
