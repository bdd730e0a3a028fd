//! Which links are meant: by name, pattern, number, kind, group, master,
//! lower link, or a file of names.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linux::links::Listing;
use serde::{Deserialize, Serialize};
use table::Link;
use view::matches_name;

use crate::pattern::{Numbers, fill, is_pattern};

/// The largest number of a range: more links than a kernel holds.
const MAX_NUMBER: u64 = 1 << 32;
/// A file of names may be so long.
const MAX_FILE_BYTES: u64 = 256 << 20;

const NO_LINK: &str = "there is no such link";
const LEFT_OUT: &str = "it is not of that kind, group, master or lower link";

/// A choice of links. Names add up; the other conditions must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Select {
    /// Names; with numbers, patterns of them (`testa{}`); ranges
    /// (`testa[1-500]`); or with `*`, `?`, `[a-z]`.
    pub names: Vec<String>,
    /// The first number and the last.
    pub numbers: Option<(u64, u64)>,
    /// Names from here, a line each; `-`: standard input.
    pub file: Option<PathBuf>,
    /// Of this kind.
    pub kind: Option<String>,
    /// In this group.
    pub group: Option<u32>,
    /// In this bridge, bond or VRF.
    pub master: Option<String>,
    /// On this link.
    pub lower: Option<String>,
    /// All, without a condition.
    pub all: bool,
}

/// The links that are meant.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Indexes, each with its place among the names or in the listing.
    pub indexes: HashMap<u32, u64>,
    /// Names that no link has, or only one that the conditions leave out;
    /// and which of both.
    pub missing: Vec<(String, &'static str)>,
}

impl Select {
    /// Whether it says anything.
    pub fn check(&self) -> Result<(), String> {
        if self.is_narrowed() {
            if self.all {
                return Err("--all is for a choice without conditions".to_owned());
            }
        } else if !self.all {
            return Err(
                "say which links: names, a pattern, --kind, --group, --master, --link, --file, or --all"
                    .to_owned(),
            );
        }
        match (self.numbers, self.names.iter().any(|name| is_pattern(name))) {
            (None, true) => Err("`{}` wants numbers: -n N or -n FROM-TO".to_owned()),
            (Some(_), false) => {
                Err("numbers want a pattern with a place for them: 'testa{}'".to_owned())
            }
            _ => self.each_name(&mut |_, _| {}),
        }
    }

    /// Whether no link is named or described.
    pub fn is_empty(&self) -> bool {
        !self.all && !self.is_narrowed()
    }

    fn is_narrowed(&self) -> bool {
        self.kind.is_some()
            || self.group.is_some()
            || self.master.is_some()
            || self.lower.is_some()
            || self.file.is_some()
            || !self.names.is_empty()
    }

    /// Every name or pattern of `names`, with its number.
    fn each_name(&self, each: &mut dyn FnMut(u64, &str)) -> Result<(), String> {
        let mut text = String::new();
        for pattern in &self.names {
            if let Some((before, first, last, after)) = range(pattern) {
                for number in first..=last {
                    each(number, &format!("{before}{number}{after}"));
                }
                continue;
            }
            let numbers = self.numbers.filter(|_| is_pattern(pattern));
            let Some((first, last)) = numbers else {
                each(0, pattern);
                continue;
            };
            for number in first..=last {
                text.clear();
                fill(pattern, number, &mut text)?;
                each(number, &text);
            }
        }
        Ok(())
    }

    /// Finds them in a listing.
    pub fn choose(&self, listing: &Listing) -> Result<Chosen> {
        let by_name: HashMap<&str, u32> = listing
            .iter()
            .flat_map(|link| {
                let others = link.alt_names.iter().map(|name| &**name);
                others.chain([&*link.name]).map(|name| (name, link.index))
            })
            .collect();
        let named = |name: &Option<String>| -> Result<Option<u32>> {
            let Some(name) = name else { return Ok(None) };
            let index = by_name.get(name.as_str()).copied();
            index
                .map(Some)
                .with_context(|| format!("there is no link `{name}`"))
        };
        let (master, lower) = (named(&self.master)?, named(&self.lower)?);
        let mut chosen = Chosen::default();
        let mut globs: Vec<String> = Vec::new();
        let mut take = |number: u64, name: &str, chosen: &mut Chosen| match by_name.get(name) {
            Some(index) => {
                chosen.indexes.entry(*index).or_insert(number);
            }
            None if name.contains(['*', '?', '[']) => globs.push(name.to_owned()),
            None => chosen.missing.push((name.to_owned(), NO_LINK)),
        };
        self.each_name(&mut |number, name| take(number, name, &mut chosen))
            .map_err(anyhow::Error::msg)?;
        if let Some(path) = &self.file {
            for (line, name) in (1..).zip(read(path)?.lines()) {
                let name = name.split('#').next().unwrap_or_default().trim();
                if !name.is_empty() {
                    take(line, name, &mut chosen);
                }
            }
        }
        let any_name = self.names.is_empty() && self.file.is_none();
        let mut kept = HashMap::new();
        let mut place = 0;
        let mut used = HashSet::new();
        for link in listing.iter() {
            let by_number = chosen.indexes.get(&link.index).copied();
            let globbed = globs.iter().position(|glob| matches_name(glob, &link.name));
            used.extend(globbed);
            let is_named = any_name || by_number.is_some() || globbed.is_some();
            if is_named && self.holds(link, master, lower) {
                place += 1;
                let number = by_number.filter(|number| *number > 0);
                kept.insert(link.index, number.unwrap_or(place));
            } else if self.names.iter().any(|name| **name == *link.name) {
                chosen.missing.push((link.name.to_string(), LEFT_OUT));
            }
        }
        let unused = globs
            .iter()
            .enumerate()
            .filter(|(at, _)| !used.contains(at));
        chosen
            .missing
            .extend(unused.map(|(_, glob)| (glob.clone(), NO_LINK)));
        chosen.indexes = kept;
        Ok(chosen)
    }

    fn holds(&self, link: &Link, master: Option<u32>, lower: Option<u32>) -> bool {
        let is_own = link.lower_netns_id.is_none();
        self.kind.as_deref().is_none_or(|kind| link.kind.as_deref() == Some(kind))
            && self.group.is_none_or(|group| link.group == group)
            && master.is_none_or(|master| link.master == Some(master))
            && lower.is_none_or(|lower| is_own && link.lower == Some(lower))
            // Of all, those that can be deleted or made.
            && (!self.all || link.kind.is_some())
    }
}

/// `testa[1-500]`: what stands around the numbers, and they. Of one digit
/// each it is a pattern's set, which means the same.
fn range(name: &str) -> Option<(&str, u64, u64, &str)> {
    let (before, rest) = name.split_once('[')?;
    let (inside, after) = rest.split_once(']')?;
    let (first, last) = inside.split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let digits = text.bytes().all(|octet| octet.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|number| digits && *number <= MAX_NUMBER)
    };
    let is_set = first.len() == 1 && last.len() == 1;
    let (first, last) = (number(first)?, number(last)?);
    (!is_set && first <= last).then_some((before, first, last, after))
}

/// `-n`, as first and last.
impl From<&Numbers> for (u64, u64) {
    fn from(numbers: &Numbers) -> Self {
        (*numbers.0.start(), *numbers.0.end())
    }
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let name = path.display().to_string();
    let read = if name == "-" {
        io::stdin()
            .lock()
            .take(MAX_FILE_BYTES + 1)
            .read_to_string(&mut text)
    } else {
        let file = File::open(path).with_context(|| name.clone())?;
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)
    };
    if read.with_context(|| name.clone())? as u64 > MAX_FILE_BYTES {
        bail!("{name}: longer than {MAX_FILE_BYTES} bytes; split it");
    }
    Ok(text)
}
