//! Two monitors of a router: one asks its agent, as a network manager does;
//! one reads what the kernel has counted. Each has a clock of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::Netns;

/// `sysUpTime`, and below which `ifHCOutOctets` and `fpLinkCountersAge` are.
const UP_TIME: &str = ".1.3.6.1.2.1.1.3.0";
const OUT_OCTETS: &str = ".1.3.6.1.2.1.31.1.1.1.10";
const AGES: &str = ".1.3.6.1.4.1.8072.9999.9999.26224.1.1.4.1.2";

/// What a monitor has read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// When, by its own clock.
    pub at: Duration,
    /// Octets sent, by the links' indexes.
    pub counters: BTreeMap<u32, u64>,
    /// The oldest counter among them.
    pub oldest_millis: u64,
}

/// What both monitors know of the router.
#[derive(Debug)]
pub struct Router<'a> {
    netns: &'a Netns,
    begun: Instant,
    /// Indexes of the links by their names, but for the loopback's.
    links: BTreeMap<String, u32>,
    /// Of those whose age is asked.
    busy: Vec<u32>,
}

impl<'a> Router<'a> {
    /// With the links as they are now; `busy` of them, the first, are asked
    /// how old their counters are.
    pub fn new(netns: &'a Netns, busy: usize) -> Result<Self> {
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
        let busy = (0..busy).filter_map(|number| links.get(&format!("d{number}")).copied());
        Ok(Self {
            netns,
            begun: Instant::now(),
            busy: busy.collect(),
            links,
        })
    }

    /// By the kernel's own file.
    pub fn by_kernel(&self) -> Result<Reading> {
        let (at, text) = self.netns.inside(|| {
            let at = self.begun.elapsed();
            (at, fs::read_to_string("/proc/thread-self/net/dev"))
        })?;
        let counters = text?
            .lines()
            .filter_map(|line| {
                let (name, numbers) = line.split_once(':')?;
                let sent = numbers.split_whitespace().nth(8)?.parse().ok()?;
                Some((*self.links.get(name.trim())?, sent))
            })
            .collect();
        Ok(Reading {
            at,
            counters,
            oldest_millis: 0,
        })
    }

    /// By the agent: a walk of all links' counters, at the time that the
    /// agent says; and how old those are of the links that carry packets.
    pub fn by_snmp(&self) -> Result<Reading> {
        let up = self.snmp("snmpget", &[UP_TIME.to_owned()])?;
        let (_, up) = up.first().context("no sysUpTime")?;
        let walked = self.snmp("snmpbulkwalk", &["-Cr50".to_owned(), OUT_OCTETS.to_owned()])?;
        let names: Vec<String> = self
            .busy
            .iter()
            .map(|link| format!("{AGES}.{link}"))
            .collect();
        let ages = self.snmp("snmpget", &names)?;
        let known: BTreeSet<u32> = self.links.values().copied().collect();
        Ok(Reading {
            at: Duration::from_millis(up * 10),
            counters: walked
                .into_iter()
                .filter(|(link, _)| known.contains(link))
                .collect(),
            oldest_millis: ages.iter().map(|(_, age)| *age).max().unwrap_or(0),
        })
    }

    /// The last numbers of names, and their values.
    fn snmp(&self, tool: &str, words: &[String]) -> Result<Vec<(u32, u64)>> {
        let options = "-v2c -c public -t 20 -r 1 -Onqt";
        let mut arguments: Vec<&str> = options.split(' ').collect();
        let (own, names) =
            words.split_at(words.iter().filter(|word| word.starts_with('-')).count());
        arguments.extend(own.iter().map(String::as_str));
        arguments.push("127.0.0.1:1161");
        arguments.extend(names.iter().map(String::as_str));
        let text = self.netns.run(tool, &arguments)?;
        let binding = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            let last = name.rsplit('.').next()?.parse().ok()?;
            Some((last, value.trim().parse().ok()?))
        };
        text.lines()
            .map(|line| binding(line).with_context(|| format!("{tool} said `{line}`")))
            .collect()
    }
}
