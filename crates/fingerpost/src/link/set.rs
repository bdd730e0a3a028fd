//! `link set`: settings of a choice of links.

use anyhow::{Context, Result, bail};
use linux::links::{self, Change, How, Listing, Told};
use netlink::encode::LinkSettings;
use table::Link;
use table::row::link::flag::UP;

use super::plan::{check_name, filled, lladdr};
use super::report::Report;
use super::{Job, Select};

/// What is to be changed; patterns hold `{}` for the number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// Changes a choice of links.
pub fn set(job: &Job<'_>, select: &Select, settings: &Settings) -> Result<bool> {
    let listing = Listing::read(&job.namespace)?;
    let chosen = select.choose(&listing)?;
    let master = match settings.master.as_deref() {
        None => None,
        Some("") => Some(0),
        Some(name) => {
            let master = listing.named(name);
            Some(
                master
                    .with_context(|| format!("there is no link `{name}`"))?
                    .index,
            )
        }
    };
    let links: Vec<&Link> = listing
        .iter()
        .filter(|link| chosen.indexes.contains_key(&link.index))
        .collect();
    let mut changes = Vec::with_capacity(links.len());
    for link in &links {
        let number = chosen.indexes.get(&link.index).copied().unwrap_or(0);
        match settings.of(link, number, master) {
            Ok(change) => changes.push(change),
            Err(why) => bail!("{}: {why}; nothing was changed", link.name),
        }
    }
    let report = Report::new(job, "", "changed", changes.len());
    for name in &chosen.missing {
        report.fail(name, "change it", "there is no such link", None);
    }
    let missing = chosen.missing.len();
    if missing > 0 && job.terms.atomic {
        report.end(0, missing)?;
        return Ok(false);
    }
    let mut done = vec![false; changes.len()];
    let changed = links::set(
        &job.namespace,
        &changes,
        job.how(),
        &mut |told| match told {
            Told::Done { place, .. } => {
                report.step();
                if let Some(done) = done.get_mut(place) {
                    *done = true;
                }
            }
            Told::Failed(failure) => report.failed(&failure),
            Told::Sent(_) => {}
        },
    )?;
    report.note("stopped", changed.stopped, None);
    report.note("waited_seconds", changed.cost.waited.as_secs_f64(), None);
    let failed = changed.failed + missing;
    if job.terms.atomic && (failed > 0 || changed.stopped) {
        put_back(job, settings, &links, &done, &report)?;
        report.end(0, failed)?;
        return Ok(false);
    }
    report.end(changed.done, failed)?;
    Ok(failed == 0 && !changed.stopped)
}

/// `--atomic`: one failed, so none is changed. A link of which a part of
/// the change was refused may have taken another part: all are put back.
fn put_back(
    job: &Job<'_>,
    settings: &Settings,
    links: &[&Link],
    done: &[bool],
    report: &Report,
) -> Result<()> {
    let all: Vec<Change> = links.iter().rev().map(|link| settings.back(link)).collect();
    let mut left = 0;
    let back = links::set(&job.namespace, &all, How::default(), &mut |told| {
        if let Told::Failed(failure) = told {
            // What had failed before may be gone, and has nothing to put back.
            let place = links.len() - 1 - failure.place.min(links.len() - 1);
            if done.get(place) == Some(&true) {
                left += 1;
                report.failed(&failure);
            }
        }
    })?;
    let text = format!(
        "all of it was taken back: {} links are as they were",
        back.done
    );
    report.note("undone", back.done, Some(text));
    report.note("not_undone", left, None);
    Ok(())
}
