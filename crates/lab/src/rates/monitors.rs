//! Two monitors of a router: one asks its agent, as a network manager does;
//! one reads what the kernel has counted. Each has a clock of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::manager::Manager;
use crate::Netns;

/// `sysUpTime`, and below which `ifHCOutOctets` and `fpLinkCountersAge` are.
const UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3];
const OUT_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10];
const AGES: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1, 4, 1, 2];
/// Rows asked for at once.
const ROWS: i32 = 25;

/// A link's counter.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Octets sent.
    pub octets: u64,
    /// When they were counted, by the clock of who tells it.
    pub at: Duration,
    /// How old that was when it was told.
    pub age: Duration,
}

/// What a monitor has read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// When it began to read, by the monitors' clock.
    pub begun: Duration,
    /// The agent's `sysUpTime`, in the first answer.
    pub up: Duration,
    /// By the links' indexes.
    pub counters: BTreeMap<u32, Counter>,
    /// Requests that had to be sent again.
    pub again: usize,
}

/// What both monitors know of the router.
#[derive(Debug)]
pub struct Router<'a> {
    netns: &'a Netns,
    begun: Instant,
    /// Indexes of the links by their names, but for the loopback's.
    links: BTreeMap<String, u32>,
    indexes: BTreeSet<u32>,
    manager: RefCell<Manager>,
}

impl<'a> Router<'a> {
    /// With the links as they are now.
    pub fn new(netns: &'a Netns) -> Result<Self> {
        let text = netns.ip(&["-o", "link"])?;
        let link = |line: &str| {
            let mut words = line.split(": ");
            let index: u32 = words.next()?.parse().ok()?;
            // A link on another is named with it: d0@e0.
            let name = words.next()?.split('@').next()?;
            Some((name.to_owned(), index))
        };
        let links = text.lines().filter_map(link);
        let links: BTreeMap<String, u32> = links.filter(|(name, _)| name != "lo").collect();
        Ok(Self {
            netns,
            begun: Instant::now(),
            indexes: links.values().copied().collect(),
            links,
            manager: RefCell::new(Manager::new(netns)?),
        })
    }

    /// The name of a link.
    pub fn name(&self, link: u32) -> &str {
        let mut links = self.links.iter();
        let found = links.find(|(_, index)| **index == link);
        found.map_or("?", |(name, _)| name)
    }

    /// By the kernel's own file.
    pub fn by_kernel(&self) -> Result<Reading> {
        let begun = self.begun;
        let (at, text) = self.netns.inside(move || {
            let at = begun.elapsed();
            (at, fs::read_to_string("/proc/thread-self/net/dev"))
        })?;
        let counters = text?
            .lines()
            .filter_map(|line| {
                let (name, numbers) = line.split_once(':')?;
                let octets = numbers.split_whitespace().nth(8)?.parse().ok()?;
                let age = Duration::ZERO;
                Some((*self.links.get(name.trim())?, Counter { octets, at, age }))
            })
            .collect();
        Ok(Reading {
            begun: at,
            up: at,
            counters,
            again: 0,
        })
    }

    /// By the agent: a walk of all links' counters, each with its age and
    /// the time of the answer that it is in.
    pub fn by_snmp(&self) -> Result<Reading> {
        let mut manager = self.manager.borrow_mut();
        let again = manager.again;
        let mut reading = Reading {
            begun: self.begun.elapsed(),
            ..Reading::default()
        };
        let mut last = 0;
        loop {
            let answer = Answer::of(&mut manager, last)?;
            if reading.counters.is_empty() {
                reading.up = answer.up;
            }
            let Some((behind, ..)) = answer.rows.last() else {
                break;
            };
            last = *behind;
            let counters = answer.counters();
            let known = counters.filter(|(link, _)| self.indexes.contains(link));
            reading.counters.extend(known);
        }
        reading.again = manager.again - again;
        ensure!(
            !reading.counters.is_empty(),
            "the agent tells of no counters"
        );
        Ok(reading)
    }
}

/// One answer of a walk.
struct Answer {
    up: Duration,
    /// Links with what they sent, and its age in milliseconds.
    rows: Vec<(u32, u64, u64)>,
}

impl Answer {
    /// What is behind a link.
    fn of(manager: &mut Manager, last: u32) -> Result<Self> {
        let behind = |column: &[u32]| match last {
            0 => column.to_vec(),
            _ => [column, &[last]].concat(),
        };
        let (octets, ages) = (behind(OUT_OCTETS), behind(AGES));
        let bindings = manager.bulk(&[UP_TIME, &octets, &ages], ROWS)?;
        let below = |column: &[u32]| -> BTreeMap<u32, u64> {
            let rows = bindings.iter().filter_map(|(name, number)| {
                let [link] = *name.strip_prefix(column)? else {
                    return None;
                };
                Some((link, *number))
            });
            rows.collect()
        };
        let (_, ticks) = bindings.first().context("no sysUpTime")?;
        let ages = below(AGES);
        let with_age = |(link, octets)| Some((link, octets, *ages.get(&link)?));
        Ok(Self {
            up: Duration::from_millis(ticks * 10),
            rows: below(OUT_OCTETS).into_iter().filter_map(with_age).collect(),
        })
    }

    fn counters(&self) -> impl Iterator<Item = (u32, Counter)> {
        self.rows.iter().map(|(link, octets, age)| {
            let age = Duration::from_millis(*age);
            let at = self.up.saturating_sub(age);
            let octets = *octets;
            (*link, Counter { octets, at, age })
        })
    }
}
