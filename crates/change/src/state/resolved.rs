//! What is wanted, beside the links that are there: lines become rows, names
//! indexes. A link that is still to be made has a number of its own, which
//! no link of the kernel's can have. Pure; called by [`mod@super`].

use std::collections::{HashMap, HashSet};

use netlink::decode::Item;
use netlink::encode::{LinkKind, kind_of_words};
use table::row::neighbour::flag;
use words::{Context, Links as Named, Names, Object, ParseError, Verb};

use super::key::{Key, MARK, key, protocol};
use super::wanted::{Line, Link, Wanted};
use crate::rows::read_row;

/// Indexes of the kernel's are below.
pub const TO_BE_MADE: u32 = 1 << 31;

/// The links of a namespace, by name and index.
#[derive(Debug, Default)]
pub struct Links {
    all: Vec<table::Link>,
    by_name: HashMap<Box<str>, usize>,
    by_index: HashMap<u32, usize>,
}

impl Links {
    pub fn of(all: Vec<table::Link>) -> Self {
        let mut by_name = HashMap::with_capacity(all.len());
        for (at, link) in all.iter().enumerate() {
            for name in &link.alt_names {
                by_name.entry(name.clone()).or_insert(at);
            }
        }
        by_name.extend(
            all.iter()
                .enumerate()
                .map(|(at, link)| (link.name.clone(), at)),
        );
        Self {
            by_index: all
                .iter()
                .enumerate()
                .map(|(at, link)| (link.index, at))
                .collect(),
            by_name,
            all,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &table::Link> {
        self.all.iter()
    }

    pub fn named(&self, name: &str) -> Option<&table::Link> {
        self.all.get(*self.by_name.get(name)?)
    }

    pub fn get(&self, index: u32) -> Option<&table::Link> {
        self.all.get(*self.by_index.get(&index)?)
    }
}

/// A row that is wanted.
#[derive(Debug, Clone)]
pub struct Row {
    pub item: Item,
    pub key: Key,
    pub has_protocol: bool,
    pub place: usize,
    /// Its place in [`Wanted::rows`].
    pub line: usize,
}

/// What is wanted, with indexes.
#[derive(Debug, Default)]
pub struct Resolved {
    /// By place in [`Wanted::links`]: the link that is there.
    pub there: Vec<Option<u32>>,
    /// The kinds of links that are wanted with one.
    pub kinds: Vec<Option<LinkKind>>,
    pub rows: Vec<Row>,
    /// Links that are not there and that nobody makes, and what waits for
    /// them.
    pub waiting: Vec<String>,
    /// Places of the links that wait.
    pub waits: HashSet<usize>,
}

/// Finds links and reads lines. What is wrong is said with its place.
pub fn resolve(
    wanted: &Wanted,
    links: &Links,
    names: &Names,
    now_millis: u64,
) -> Result<Resolved, String> {
    let mut resolved = Resolved {
        there: wanted
            .links
            .iter()
            .map(|link| links.named(&link.name).map(|link| link.index))
            .collect(),
        kinds: vec![None; wanted.links.len()],
        ..Resolved::default()
    };
    resolved.find_waiting(wanted, links);
    for (at, link) in wanted.links.iter().enumerate() {
        if link.kind.is_some() && !resolved.waits.contains(&at) {
            let kind = resolved.kind(wanted, links, link);
            resolved.kinds[at] =
                Some(kind.map_err(|why| format!("{}: {why}", wanted.place_of(at)))?);
        }
    }
    let mut finder = Finder {
        wanted,
        links,
        waits: &resolved.waits,
        missing: None,
    };
    let mut places: HashMap<Key, usize> = HashMap::with_capacity(wanted.rows.len());
    let (mut rows, mut waiting) = (Vec::with_capacity(wanted.rows.len()), Vec::new());
    for (at, line) in wanted.rows.iter().enumerate() {
        finder.missing = None;
        let place = || format!("{}", wanted.places[line.place]);
        let row = match row(line, at, &mut finder, names, now_millis) {
            Ok(row) => row,
            Err(_) if finder.missing.is_some() => {
                let link = finder.missing.take().unwrap_or_default();
                waiting.push(format!("{}: `{}` waits for {link}", place(), line.words));
                continue;
            }
            Err(why) => return Err(format!("{}: {why}: {}", place(), line.words)),
        };
        let many = matches!(row.key, Key::Rule(..));
        match places.get(&row.key).and_then(|at| rows.get(*at)) {
            Some(other) if is_same(other, &row) => continue,
            Some(other) if !many => {
                return Err(format!(
                    "{}: {}: {} says otherwise of the same row",
                    place(),
                    line.words,
                    wanted.places[other.place]
                ));
            }
            _ => {}
        }
        places.insert(row.key.clone(), rows.len());
        rows.push(row);
    }
    resolved.rows = rows;
    resolved.waiting.extend(waiting);
    Ok(resolved)
}

fn is_same(one: &Row, other: &Row) -> bool {
    one.item == other.item && one.has_protocol == other.has_protocol
}

impl Resolved {
    /// The index of a wanted link: its own, or what stands for it.
    pub fn index(&self, at: usize) -> u32 {
        let there = self.there.get(at).copied().flatten();
        there.unwrap_or(TO_BE_MADE | at as u32)
    }

    /// A link waits that is not there and nobody makes, and one whose
    /// master, lower link or maker waits or is unknown.
    fn find_waiting(&mut self, wanted: &Wanted, links: &Links) {
        let mut why: HashMap<usize, &str> = HashMap::new();
        loop {
            let before = why.len();
            for (at, link) in wanted.links.iter().enumerate() {
                if why.contains_key(&at) {
                    continue;
                }
                let is_there = self.there[at].is_some();
                let is_made = link.kind.is_some() || link.end_of.is_some();
                if !is_there && !is_made {
                    why.insert(at, &link.name);
                    continue;
                }
                let master = link.master.as_deref().filter(|name| !name.is_empty());
                let lower = link.lower.as_deref();
                let maker = link.end_of.map(|of| &*wanted.links[of].name);
                let needs = [master, lower, maker.filter(|_| !is_there)];
                let lacks = needs
                    .into_iter()
                    .flatten()
                    .find(|name| match wanted.named(name) {
                        Some((at, _)) => why.contains_key(&at),
                        None => links.named(name).is_none(),
                    });
                if let Some(name) = lacks {
                    why.insert(at, name);
                }
            }
            if why.len() == before {
                break;
            }
        }
        let mut order: Vec<_> = why.into_iter().collect();
        order.sort_unstable();
        for (at, name) in order {
            let link = &wanted.links[at];
            let place = wanted.place_of(at);
            self.waiting.push(match *link.name == *name {
                true => format!("{place}: link {name} is not there; its part waits"),
                false => format!("{place}: link {} waits for {name}", link.name),
            });
            self.waits.insert(at);
        }
    }

    fn kind(&self, wanted: &Wanted, links: &Links, link: &Link) -> Result<LinkKind, String> {
        let kind = link.kind.as_deref().unwrap_or_default();
        let options: Vec<&str> = link.options.iter().map(String::as_str).collect();
        let mut index = |name: &str| match links.named(name) {
            Some(link) => Some(link.index),
            None => wanted.named(name).map(|(at, _)| TO_BE_MADE | at as u32),
        };
        kind_of_words(kind, &options, &mut index).map_err(|error| error.to_string())
    }
}

/// Finds links by name, those that are to be made too.
struct Finder<'a> {
    wanted: &'a Wanted,
    links: &'a Links,
    waits: &'a HashSet<usize>,
    /// What was not found.
    missing: Option<String>,
}

impl Named for Finder<'_> {
    fn index(&mut self, name: &str) -> Result<u32, ParseError> {
        if let Some((at, _)) = self.wanted.named(name)
            && !self.waits.contains(&at)
            && self.links.named(name).is_none()
        {
            return Ok(TO_BE_MADE | at as u32);
        }
        match self.links.named(name) {
            Some(link) => Ok(link.index),
            None => {
                self.missing = Some(name.to_owned());
                Err(format!("no link is named `{name}`"))
            }
        }
    }

    fn vrf_table(&mut self, name: &str) -> Result<u32, ParseError> {
        match self.links.named(name) {
            Some(link) => link.vrf_table.ok_or_else(|| format!("`{name}` is no VRF")),
            None => Err(format!("`{name}` is not there: say its table")),
        }
    }
}

fn row(
    line: &Line,
    at: usize,
    finder: &mut Finder<'_>,
    names: &Names,
    now_millis: u64,
) -> Result<Row, ParseError> {
    let mut context = Context {
        links: finder,
        names,
        family: line.family,
        verb: Verb::Replace,
        now_millis,
    };
    // A rule is added and never replaced.
    if line.object == Object::Rule {
        context.verb = Verb::Add;
    }
    let mut item = read_row(&line.words, line.object, &mut context)?.item;
    if let Item::Fdb(row) = &mut item {
        row.master = finder
            .master(row.link)
            .filter(|_| row.flags & flag::MASTER != 0);
    }
    if !line.has_protocol
        && let Some(protocol) = protocol(&mut item)
    {
        *protocol = MARK;
    }
    Ok(Row {
        key: key(&item).ok_or("a row without a key")?,
        item,
        has_protocol: line.has_protocol,
        place: line.place,
        line: at,
    })
}

impl Finder<'_> {
    /// The master that a link has or is to have.
    fn master(&mut self, link: u32) -> Option<u32> {
        let name = match self.links.get(link) {
            Some(link) => link.name.clone(),
            None => self
                .wanted
                .links
                .get((link & !TO_BE_MADE) as usize)?
                .name
                .clone(),
        };
        let wanted = self
            .wanted
            .named(&name)
            .and_then(|(_, link)| link.master.clone());
        match wanted.filter(|master| !master.is_empty()) {
            Some(master) => self.index(&master).ok(),
            None => self.links.get(link)?.master,
        }
    }
}
