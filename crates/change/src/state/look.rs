//! A look at the kernel's tables, as far as what is wanted is about them.
//! Called by the rooms of [`mod@super`] that compare.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};
use linux::Namespace;
use linux::links::Listing;
use linux::mirror::now_millis;
use netlink::decode::Item;
use words::Object;

use super::difference::{Current, Plan, difference, is_looked_for, objects};
use super::key::{Key, key};
use super::narrow::dumps_of;
use super::resolved::{Links, Resolved, resolve};
use super::wanted::Wanted;
use super::{Job, Senseless, source};
use crate::patience::patiently;
use crate::rows::undo::{dumps, listed_of};

/// Where the kernel has settings of links.
pub const SETTINGS: &str = "/proc/sys/net";

const PANICKED: &str = "a thread that read a table ended in a panic";

/// What there is, and what is to change.
pub struct Look {
    pub links: Links,
    pub resolved: Resolved,
    pub plan: Plan,
}

/// Reads the files that were named.
pub fn wanted(job: &Job<'_>) -> Result<Wanted> {
    let said = source::read(&job.wanted.files).map_err(Senseless)?;
    Ok(Wanted::of(said).map_err(Senseless)?)
}

/// The same, and the links that are there, which are listed meanwhile: once,
/// so that whoever has a wrong file does not wait until they stay the same.
pub fn wanted_beside_links(job: &Job<'_>) -> Result<(Wanted, Links)> {
    let namespace = &job.namespace;
    thread::scope(|scope| {
        let listing = scope.spawn(move || Listing::read(namespace));
        let wanted = wanted(job)?;
        let links = match listing.join().map_err(|_| anyhow!(PANICKED))? {
            Ok(listing) => Links::of(listing.into_links()),
            Err(_) => links(namespace)?,
        };
        Ok((wanted, links))
    })
}

/// Compares what is wanted with what is there. Reads links, and the tables
/// of the rows that are wanted.
pub fn look(job: &Job<'_>, wanted: &Wanted) -> Result<Look> {
    look_beside(job, wanted, links(&job.namespace)?)
}

/// The same, where the links have been read.
pub fn look_beside(job: &Job<'_>, wanted: &Wanted, links: Links) -> Result<Look> {
    let (namespace, prune) = (&job.namespace, job.wanted.prune);
    let now = now_millis();
    let resolved = resolve(wanted, &links, &job.names, now).map_err(Senseless)?;
    let mut current = Current::default();
    let keys: HashSet<&Key> = resolved.rows.iter().map(|row| &row.key).collect();
    let read = |object| {
        // What carries our mark may be anywhere.
        let dumps = match prune {
            true => dumps(object, None),
            false => dumps_of(object, &keys),
        };
        listed_of(namespace, &dumps, now, &|item| {
            is_looked_for(&keys, prune, item)
        })
    };
    for rows in at_once(&objects(&resolved, prune), &read) {
        for row in rows? {
            if let Some(key) = key(&row) {
                current.rows.entry(key).or_default().push(row);
            }
        }
    }
    current.sysctl = settings(namespace, wanted, &resolved)?;
    let plan = difference(wanted, &resolved, &links, &current, prune).map_err(Senseless)?;
    Ok(Look {
        links,
        resolved,
        plan,
    })
}

/// Reads tables side by side: the kernel lists each by itself.
fn at_once(
    objects: &[Object],
    read: &(dyn Fn(Object) -> Result<Vec<Item>> + Sync),
) -> Vec<Result<Vec<Item>>> {
    thread::scope(|scope| {
        let reading = objects.iter().map(|object| scope.spawn(|| read(*object)));
        let reading: Vec<_> = reading.collect();
        let read = reading.into_iter().map(|reading| {
            let rows = reading.join();
            rows.unwrap_or_else(|_| Err(anyhow!(PANICKED)))
        });
        read.collect()
    })
}

/// The links that are there.
pub fn links(namespace: &Namespace) -> Result<Links> {
    let listing = patiently(&mut || Ok(Listing::read(namespace)?))?;
    Ok(Links::of(listing.into_links()))
}

/// The settings that are wanted of links that are there.
fn settings(
    namespace: &Namespace,
    wanted: &Wanted,
    resolved: &Resolved,
) -> Result<HashMap<String, Option<String>>> {
    let there = wanted.links.iter().zip(&resolved.there);
    let there = there.filter(|(_, there)| there.is_some());
    let paths: Vec<&String> = there
        .flat_map(|(link, _)| link.sysctl.iter().map(|setting| &setting.path))
        .collect();
    if paths.is_empty() {
        return Ok(HashMap::new());
    }
    namespace
        .run(|| {
            let read = |path: &&String| ((*path).clone(), setting(path));
            paths.iter().map(read).collect()
        })
        .context("reading settings of links")
}

/// A setting as it is now, in the namespace of the calling thread.
pub fn setting(path: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new(SETTINGS).join(path)).ok()?;
    Some(text.trim().to_owned())
}
