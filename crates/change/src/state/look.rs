//! A look at the kernel's tables, as far as what is wanted is about them.
//! Called by the rooms of [`mod@super`] that compare.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use linux::Namespace;
use linux::links::Listing;
use linux::mirror::now_millis;

use super::difference::{Current, Plan, difference, is_looked_for, objects};
use super::key::{Key, key};
use super::resolved::{Links, Resolved, resolve};
use super::wanted::Wanted;
use super::{Job, Senseless, source};
use crate::rows::undo::listed;

/// Where the kernel has settings of links.
pub const SETTINGS: &str = "/proc/sys/net";

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

/// Compares what is wanted with what is there. Reads links, and the tables
/// of the rows that are wanted.
pub fn look(job: &Job<'_>, wanted: &Wanted) -> Result<Look> {
    let (namespace, prune) = (&job.namespace, job.wanted.prune);
    let now = now_millis();
    let links = Links::of(Listing::read(namespace)?.into_links());
    let resolved = resolve(wanted, &links, &job.names, now).map_err(Senseless)?;
    let mut current = Current::default();
    let keys: HashSet<&Key> = resolved.rows.iter().map(|row| &row.key).collect();
    for object in objects(&resolved, prune) {
        let rows = listed(namespace, object, now, &|item| {
            is_looked_for(&keys, prune, item)
        })?;
        for row in rows {
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

/// The settings that are wanted of links that are there.
fn settings(
    namespace: &Namespace,
    wanted: &Wanted,
    resolved: &Resolved,
) -> Result<HashMap<String, Option<String>>> {
    let there = wanted.links.iter().zip(&resolved.there);
    let there = there.filter(|(_, there)| there.is_some());
    let paths: Vec<&String> = there
        .flat_map(|(link, _)| link.sysctl.iter().map(|(path, _)| path))
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
