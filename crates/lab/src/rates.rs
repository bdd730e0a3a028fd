//! What rates a network manager gets: it polls a real daemon by SNMP beside
//! a reader of the kernel's own counters, while the time of day is set an
//! hour forward and back. Called by `cargo xtask rates` and, in short, by
//! the program's tests.
//!
//! - `monitors`: the two, and what each reads.

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
use monitors::{Reading, Router};

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
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Found {
    /// Rates compared.
    pub rates: usize,
    /// The largest difference between the two monitors' rates, per mille.
    pub worst_per_mille: u64,
    /// Counters that went back, or were ahead of the kernel's.
    pub wrong: usize,
    /// Counters that had not moved on since the poll before.
    pub stale: usize,
    /// Links without a counter.
    pub missing: usize,
    /// `sysUpTime` that went back, or on by much more than the time that
    /// passed.
    pub jumps: usize,
    /// The oldest counter, as the agent says, milliseconds.
    pub oldest_millis: u64,
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
        let router = Router::new(netns, BUSY)?;
        wait_until(PATIENCE, "the agent to answer", || router.by_snmp().ok())?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let packets = scope.spawn(|| netns.inside(|| send(&stop)));
            let found = self.poll(&router, &clock);
            stop.store(true, Ordering::Release);
            let sent = packets.join();
            ensure!(sent.is_ok_and(|sent| sent.is_ok()), "no packets were sent");
            found
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
            if let Some(last) = &last {
                found.compare(last, &now);
            }
            last = Some(now);
        }
        Ok(found)
    }
}

impl Found {
    /// Compares two polls: the kernel before, the agent, the kernel after.
    fn compare(&mut self, last: &[Reading; 3], now: &[Reading; 3]) {
        let [last_before, last_agent, last_after] = last;
        let [_, agent, after] = now;
        self.oldest_millis = self.oldest_millis.max(agent.oldest_millis);
        let up = agent.at.checked_sub(last_agent.at);
        let most = after.at.saturating_sub(last_before.at) + Duration::from_secs(1);
        let Some(up) = up.filter(|up| !up.is_zero() && *up <= most) else {
            self.jumps += 1;
            return;
        };
        for (link, kernel_now) in &after.counters {
            let counter = agent.counters.get(link);
            let Some((counter, last)) = counter.zip(last_agent.counters.get(link)) else {
                self.missing += 1;
                continue;
            };
            self.wrong += usize::from(counter < last || counter > kernel_now);
            let kernel_last = last_before.counters.get(link).copied().unwrap_or(0);
            self.stale += usize::from(*counter < kernel_last);
            let kernel = after.counters.get(link).zip(last_after.counters.get(link));
            let grown = kernel.map_or(0, |(now, last)| now.saturating_sub(*last));
            // Not what IPv6 asks now and then.
            if grown < BUSY_OCTETS {
                continue;
            }
            let ours = counter.saturating_sub(*last) as f64 / up.as_secs_f64();
            let passed = after.at.saturating_sub(last_after.at);
            let theirs = grown as f64 / passed.as_secs_f64();
            let per_mille = ((ours / theirs - 1.0).abs() * 1_000.0).round() as u64;
            self.rates += 1;
            self.worst_per_mille = self.worst_per_mille.max(per_mille);
        }
    }
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
