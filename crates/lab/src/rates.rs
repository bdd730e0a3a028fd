//! What rates a network manager gets: it polls a real daemon by SNMP beside
//! a reader of the kernel's own counters, while the time of day is set an
//! hour forward and back. Called by `cargo xtask rates` and, in short, by
//! the program's tests.
//!
//! - `monitors`: the two, and what each reads.
//! - `manager`: how one asks the agent.
//! - `disturbance`: who holds the kernel's lock of links meanwhile.

mod disturbance;
mod manager;
mod monitors;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{Child, Netns, wait_until};
use disturbance::Disturbance;
use monitors::{Counter, Reading, Router};

/// For what must come, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
/// Links that carry packets; the others stand for the length of the tables.
const BUSY: usize = 10;
/// A link that has sent less between two polls carries nothing.
const BUSY_OCTETS: u64 = 10_000;
/// Between two packets on each of them.
const PAUSE: Duration = Duration::from_millis(2);

/// How it is done.
#[derive(Debug, Clone)]
pub struct Rates {
    /// The program under test.
    pub program: PathBuf,
    /// Links of the router.
    pub links: usize,
    /// Between two polls.
    pub every: Duration,
    /// Polls, the first of which has no rate yet.
    pub polls: usize,
    /// libfaketime, where the time of day is to be set meanwhile.
    pub faketime: Option<PathBuf>,
    /// Links of another namespace that come and go meanwhile; 0: nothing
    /// does. Their going holds the kernel's lock of links, which is one for
    /// all namespaces.
    pub disturbing_links: usize,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Rates compared.
    pub rates: usize,
    /// The largest difference between the two monitors' rates: of what the
    /// agent counted, over the time that it says that it was counted in.
    pub worst: Worst,
    /// The same of a manager that goes by its own clock alone.
    pub worst_by_own_clock: Worst,
    /// Counters that went back, or were ahead of the kernel's.
    pub wrong: usize,
    /// Counters that had not moved on since the poll before.
    pub stale: usize,
    /// Links without a counter, or without its age.
    pub missing: usize,
    /// `sysUpTime` that went back, or on by much more than the time that
    /// passed.
    pub jumps: usize,
    /// Requests that had to be sent again.
    pub again: usize,
    /// The oldest counter, as the agent says, milliseconds.
    pub oldest_millis: u64,
    /// The longest for which the kernel's lock of links was held by others,
    /// as far as somebody looked.
    pub longest_lock_millis: u64,
}

/// A difference between two rates, and where it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worst {
    /// Per mille of the kernel's rate.
    pub per_mille: u64,
    /// The poll, from 1.
    pub poll: usize,
    /// The link.
    pub link: String,
}

impl Worst {
    fn note(&mut self, ours: f64, theirs: f64, poll: usize, link: &str) {
        let per_mille = ((ours / theirs - 1.0).abs() * 1_000.0).round() as u64;
        if per_mille > self.per_mille {
            let link = link.to_owned();
            *self = Self {
                per_mille,
                poll,
                link,
            };
        }
    }
}

impl Found {
    /// Whether each answer was true: what it may be on a machine of any
    /// load.
    pub fn is_true(&self) -> bool {
        (self.wrong, self.stale, self.missing, self.jumps) == (0, 0, 0, 0)
    }
}

impl Rates {
    /// Does it.
    pub fn run(&self) -> Result<Found> {
        let netns = Netns::new("rates")?;
        let directory = std::env::temp_dir().join(netns.name());
        fs::create_dir_all(&directory)?;
        let found = self.run_in(&netns, &directory);
        fs::remove_dir_all(&directory)?;
        found
    }

    fn run_in(&self, netns: &Netns, directory: &Path) -> Result<Found> {
        ensure!(self.links >= BUSY, "{BUSY} links at least are needed");
        make_links(netns, self.links)?;
        let clock = directory.join("time");
        step(&clock, 0)?;
        let _daemon = self.daemon(netns, directory, &clock)?;
        let router = Router::new(netns)?;
        wait_until(PATIENCE, "the agent to answer", || router.by_snmp().ok())?;
        let stop = AtomicBool::new(false);
        let disturbance = Disturbance::of(self.disturbing_links);
        thread::scope(|scope| {
            let packets = scope.spawn(|| netns.inside(|| send(&stop)));
            let disturbing = scope.spawn(|| disturbance.run(&stop));
            let found = self.poll(&router, &clock);
            stop.store(true, Ordering::Release);
            let sent = packets.join();
            ensure!(sent.is_ok_and(|sent| sent.is_ok()), "no packets were sent");
            let disturbed = disturbing.join();
            let longest = disturbed.map_err(|_| anyhow::anyhow!("the disturbance ended"))??;
            Ok(Found {
                longest_lock_millis: longest.as_millis() as u64,
                ..found?
            })
        })
    }

    fn daemon(&self, netns: &Netns, directory: &Path, clock: &Path) -> Result<Child> {
        let config = directory.join("fingerpost.toml");
        fs::write(&config, "[snmp]\nlisten = [\"127.0.0.1:1161\"]\n")?;
        let program = self.program.to_str().context("the program's path")?;
        let mut command = netns.command(program);
        command
            .args(["up", "--config"])
            .arg(&config)
            .env("STATE_DIRECTORY", directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(library) = &self.faketime {
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", clock)
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        Child::spawn(command)
    }

    fn poll(&self, router: &Router<'_>, clock: &Path) -> Result<Found> {
        let mut found = Found::default();
        let mut last: Option<[Reading; 3]> = None;
        let begun = Instant::now();
        for number in 0..self.polls {
            let at = begun + self.every * number as u32;
            thread::sleep(at.saturating_duration_since(Instant::now()));
            // An hour on, back, an hour back, and on again.
            let hours = [0, 1, 0, -1][number % 4];
            step(clock, hours * 3_600)?;
            let now = [router.by_kernel()?, router.by_snmp()?, router.by_kernel()?];
            found.again += now[1].again;
            if let Some(last) = &last {
                found.compare(last, &now, number, router);
            }
            last = Some(now);
        }
        Ok(found)
    }
}

impl Found {
    /// Compares two polls: the kernel before, the agent, the kernel after.
    fn compare(
        &mut self,
        last: &[Reading; 3],
        now: &[Reading; 3],
        poll: usize,
        router: &Router<'_>,
    ) {
        let [last_before, last_agent, last_after] = last;
        let [_, agent, after] = now;
        let up = agent.up.checked_sub(last_agent.up);
        let most = after.begun.saturating_sub(last_before.begun) + Duration::from_secs(1);
        if up.is_none_or(|up| up.is_zero() || up > most) {
            self.jumps += 1;
            return;
        }
        for (link, kernel) in &after.counters {
            let counter = agent.counters.get(link);
            let Some((counter, last)) = counter.zip(last_agent.counters.get(link)) else {
                self.missing += 1;
                continue;
            };
            self.oldest_millis = self.oldest_millis.max(counter.age.as_millis() as u64);
            let is_wrong = counter.octets < last.octets || counter.octets > kernel.octets;
            self.wrong += usize::from(is_wrong);
            let kernel_before = last_before.counters.get(link);
            let is_stale = kernel_before.is_some_and(|kernel| counter.octets < kernel.octets);
            self.stale += usize::from(is_stale);
            let Some(kernel_last) = last_after.counters.get(link) else {
                continue;
            };
            // Not what IPv6 asks now and then.
            if kernel.octets.saturating_sub(kernel_last.octets) < BUSY_OCTETS {
                continue;
            }
            self.rates += 1;
            let theirs = rate(kernel_last, kernel);
            let name = router.name(*link);
            self.worst.note(rate(last, counter), theirs, poll, name);
            let by_own_clock = |counter: &Counter, reading: &Reading| Counter {
                at: reading.begun,
                ..*counter
            };
            let own = rate(
                &by_own_clock(last, last_agent),
                &by_own_clock(counter, agent),
            );
            self.worst_by_own_clock.note(own, theirs, poll, name);
        }
    }
}

/// Octets a second between two counters.
fn rate(last: &Counter, now: &Counter) -> f64 {
    let passed = now.at.saturating_sub(last.at).as_secs_f64();
    now.octets.saturating_sub(last.octets) as f64 / passed
}

/// Links on one that has a peer, with an address and a neighbour each; and
/// others that carry nothing.
fn make_links(netns: &Netns, links: usize) -> Result<()> {
    netns.ip_batch("link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n")?;
    let busy = (0..BUSY).map(|link| {
        format!(
            "link add link e0 name d{link} type macvlan mode bridge\n\
             addr add 10.77.{link}.1/24 dev d{link}\nlink set d{link} up\n\
             neigh add 10.77.{link}.2 lladdr 02:00:00:00:00:02 dev d{link}\n"
        )
    });
    let idle = (BUSY..links).map(|link| format!("link add d{link} type ifb\n"));
    netns.ip_batch(&busy.chain(idle).collect::<String>())
}

/// Packets of one length in even steps, through each of the busy links.
fn send(stop: &AtomicBool) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let begun = Instant::now();
    let mut number = 0;
    while !stop.load(Ordering::Acquire) {
        for link in 0..BUSY {
            socket.send_to(&[0; 958], (Ipv4Addr::new(10, 77, link as u8, 2), 9))?;
        }
        number += 1;
        // What a busy machine held up is made good.
        let next = begun + PAUSE * number;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Sets the time of day that the daemon is told, so many seconds beside the
/// true one.
fn step(file: &Path, seconds: i64) -> Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, format!("{seconds:+}\n"))?;
    Ok(fs::rename(&new, file)?)
}

/// libfaketime, wherever Debian's architecture has it.
pub fn faketime() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut found = places.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    let plain = Path::new("/usr/lib/faketime/libfaketimeMT.so.1");
    found
        .find(|path| path.is_file())
        .or_else(|| plain.is_file().then(|| plain.to_owned()))
}
