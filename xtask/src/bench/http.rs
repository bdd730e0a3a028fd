//! Case `http`: questions over HTTP beside a bare server of the same
//! library with a constant answer (the floor), with and without 10,000
//! changes a second, with 500 clients that ask for all routes and take
//! nothing, and with 500 event streams, of a prefix each or of everything;
//! and the walk of all routes by pages during the changes.
//!
//! The daemon and the floor have one core, all who ask and change have the
//! others. What is measured with stalled clients begins with them, when
//! their sockets are being filled; then the floor is asked beside them. How
//! late the client itself was to ask is told too: its times hold that.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::lab::bench::Samples;
use ::lab::situation::routes::{self, Family};
use ::lab::{Netns, Random, wait_until};
use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Setting;
use super::command::Daemon;
use crate::host::say;

const OURS: &str = "fingerpost";
const FLOOR: &str = "bare axum";
const AT: &str = "127.0.0.1:9797";
const FLOOR_AT: &str = "127.0.0.1:9798";
/// Seconds that each is asked, and with `--quick`.
const ASKED_SECS: &str = "3";
const QUICK_SECS: &str = "1";
const CHANGES_PER_SEC: u32 = 10_000;
/// Hosts whose routes come and go, one after the other.
const FIRST_CHANGED: u32 = 0xC612_0000;
const CHANGED: u32 = 10_000;
const REQUESTS_PER_SEC: &str = "1000";
/// Clients that take nothing, and that watch.
const HELD: &str = "500";
const NONE: &str = "0";
/// The core of those who answer; those who ask have the others.
const CORE: usize = 0;
/// No client is too fast.
const CONFIG: &str = "[http]\nrequests_per_sec = 1000000\n";
/// Distinct questions.
const QUESTIONS: usize = 5_000;

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let floor = setting.programs.join("http-floor");
    let _elsewhere = Elsewhere::than(CORE)?;
    let sizes: &[usize] = if setting.quick {
        &[1_000, 100_000]
    } else {
        &[1_000, 100_000, 1_000_000]
    };
    for &size in sizes {
        say(format_args!("http: {size} routes"));
        let netns = Netns::new("bench")?;
        netns.ip(&["link", "set", "lo", "up"])?;
        routes::build(&netns, Family::V4, size)?;
        let directory = Directory::new()?;
        let files = Files::write(&directory.0, size)?;
        let config = directory.0.join("fingerpost.toml");
        fs::write(&config, CONFIG)?;
        let config = config.to_str().context("a path that is not UTF-8")?;
        let daemon = Daemon::start_with(setting, &netns, &["--config", config])?;
        pin(daemon.pid(), &[CORE])?;
        let served = serve(&netns, &floor)?;
        pin(served.0.id(), &[CORE])?;
        compare(setting, &netns, size as u64, &files, &daemon, samples)?;
    }
    Ok(())
}

/// What the client reads.
struct Files {
    /// Questions for the daemon.
    questions: PathBuf,
    /// The one for the floor.
    constant: PathBuf,
    /// Destinations that are there throughout.
    routes: PathBuf,
    /// Streams of the changes of a prefix each, as users have them.
    watched: PathBuf,
    /// A stream of all changes.
    all_changes: PathBuf,
}

/// A directory that goes with its value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("fingerpost-bench-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What stays behind is small and in the directory for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Files {
    fn write(directory: &Path, size: usize) -> Result<Self> {
        let prefixes = routes::prefixes(Family::V4, size)?;
        let mut random = Random::new(7);
        let mut questions = String::new();
        for number in 0..QUESTIONS {
            let prefix = prefixes[random.below(prefixes.len())];
            let address = prefix.network();
            questions += &match number % 4 {
                0 => format!("/v1/routes?exact={prefix}\n"),
                1 => format!("/v1/routes/get?address={address}\n"),
                2 => format!("/v1/routes?covering={address}\n"),
                _ => format!("/v1/routes?to={prefix}&limit=10\n"),
            };
        }
        let files = Self {
            questions: directory.join("questions"),
            constant: directory.join("constant"),
            routes: directory.join("routes"),
            watched: directory.join("watched"),
            all_changes: directory.join("all-changes"),
        };
        let watched = (0..CHANGED / 16).map(|number| {
            let prefix = Ipv4Addr::from(FIRST_CHANGED + number * 16);
            format!("/v1/changes?object=routes&to={prefix}/28\n")
        });
        fs::write(&files.watched, watched.collect::<String>())?;
        fs::write(&files.all_changes, "/v1/changes\n")?;
        fs::write(&files.questions, questions)?;
        fs::write(&files.constant, "/\n")?;
        let mut all = String::new();
        for prefix in prefixes {
            // As they are shown: a host without its length.
            all += &match prefix.prefix_len() == prefix.max_prefix_len() {
                true => format!("{}\n", prefix.addr()),
                false => format!("{prefix}\n"),
            };
        }
        fs::write(&files.routes, all)?;
        Ok(files)
    }
}

fn compare(
    setting: &Setting,
    netns: &Netns,
    size: u64,
    files: &Files,
    daemon: &Daemon,
    samples: &mut Samples,
) -> Result<()> {
    let client = Client {
        program: setting.programs.join("http-ask"),
        netns,
        size,
        files,
        seconds: if setting.quick {
            QUICK_SECS
        } else {
            ASKED_SECS
        },
    };
    for _ in 0..setting.rounds {
        for connections in ["1", "16"] {
            let what = format!("as fast as can be, {connections} connections");
            client.ask(FLOOR, &what, connections, "0", samples)?;
            client.ask(OURS, &what, connections, "0", samples)?;
        }
        let what = "1,000 requests/s";
        client.ask(FLOOR, what, "16", REQUESTS_PER_SEC, samples)?;
        client.ask(OURS, what, "16", REQUESTS_PER_SEC, samples)?;
        client.walk("walk by pages of 1,000", 1_000, samples)?;
        let churn = Churn::start(netns)?;
        let what = "1,000 requests/s, 10,000 changes/s";
        client.ask(FLOOR, what, "16", REQUESTS_PER_SEC, samples)?;
        let before = (Instant::now(), daemon.cpu_ms());
        client.ask(OURS, what, "16", REQUESTS_PER_SEC, samples)?;
        let cpu = (daemon.cpu_ms() - before.1) / before.0.elapsed().as_secs_f64();
        samples.add(OURS, what, size, "cpu_ms_per_s", cpu);
        client.walk("walk by pages of 1,000, 10,000 changes/s", 1_000, samples)?;
        for (stalled, streams, watched, with) in [
            (HELD, NONE, &files.watched, "500 stalled"),
            (NONE, HELD, &files.watched, "500 streams of a prefix"),
            (NONE, HELD, &files.all_changes, "500 streams of all"),
            (
                HELD,
                HELD,
                &files.all_changes,
                "500 stalled, 500 streams of all",
            ),
        ] {
            let what = format!("{what}, {with}");
            let held = client.hold(stalled, streams, watched)?;
            client.ask(OURS, &what, "16", REQUESTS_PER_SEC, samples)?;
            client.ask(FLOOR, &what, "16", REQUESTS_PER_SEC, samples)?;
            if let Some(bytes) = daemon.resident_bytes() {
                samples.add(OURS, &what, size, "resident_bytes", bytes);
            }
            let [seconds, octets, events, fell_behind] = held.end()?;
            if streams == HELD {
                samples.add(OURS, &what, size, "events_told_per_s", events / seconds);
                samples.add(OURS, &what, size, "stream_bytes_per_s", octets / seconds);
                samples.add(OURS, &what, size, "fell_behind", fell_behind);
            }
        }
        samples.add("ip -batch", what, size, "changes_per_s", churn.end()?);
    }
    Ok(())
}

/// The fast client, asking in one namespace.
struct Client<'a> {
    program: PathBuf,
    netns: &'a Netns,
    size: u64,
    files: &'a Files,
    seconds: &'static str,
}

impl Client<'_> {
    fn run(&self, words: &[&str]) -> Result<Vec<f64>> {
        let program = self.program.to_str().context("a path that is not UTF-8")?;
        let line = self.netns.run(program, words)?;
        let numbers = line.split_whitespace().map(str::parse);
        numbers
            .collect::<Result<_, _>>()
            .with_context(|| format!("http-ask wrote {line:?}"))
    }

    fn ask(
        &self,
        who: &str,
        what: &str,
        connections: &str,
        per_sec: &str,
        samples: &mut Samples,
    ) -> Result<()> {
        let (address, file) = match who {
            FLOOR => (FLOOR_AT, &self.files.constant),
            _ => (AT, &self.files.questions),
        };
        let file = file.to_str().context("a path that is not UTF-8")?;
        let words = ["ask", address, connections, per_sec, self.seconds, file];
        let numbers = self.run(&words)?;
        let [
            requests,
            seconds,
            median,
            late,
            longest,
            own_late,
            own_longest,
        ] = numbers[..]
        else {
            bail!("http-ask wrote {numbers:?}");
        };
        samples.add(who, what, self.size, "requests_per_s", requests / seconds);
        samples.add(who, what, self.size, "p50_us", median);
        samples.add(who, what, self.size, "p99_us", late);
        samples.add(who, what, self.size, "max_us", longest);
        if per_sec != "0" {
            samples.add(who, what, self.size, "client_late_p99_us", own_late);
            samples.add(who, what, self.size, "client_late_max_us", own_longest);
        }
        Ok(())
    }

    fn walk(&self, what: &str, limit: usize, samples: &mut Samples) -> Result<()> {
        let path = format!("/v1/routes?proto=bgp&fields=dst&format=csv&limit={limit}");
        let file = self.files.routes.to_str();
        let numbers = self.run(&["walk", AT, &path, file.context("a path")?])?;
        let [rows, twice, missing, _pages, seconds] = numbers[..] else {
            bail!("http-ask wrote {numbers:?}");
        };
        ensure!(
            twice == 0.0 && missing == 0.0,
            "{what}: of {rows} rows {twice} were told twice, {missing} not at all"
        );
        samples.add(OURS, what, self.size, "wall_s", seconds);
        samples.add(OURS, what, self.size, "rows_per_s", rows / seconds);
        Ok(())
    }

    fn hold(&self, stalled: &str, streams: &str, watched: &Path) -> Result<Holding> {
        let child = self.netns.inside(|| {
            // Nicer than those who ask: not they are to be measured.
            let mut hold = Command::new("nice");
            hold.args(["-n", "19"])
                .arg(&self.program)
                .args(["hold", AT, stalled, streams])
                .arg(watched)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            hold.spawn()
        })??;
        let mut held = Held(child);
        let stdout = held.0.stdout.take().context("no standard output")?;
        let mut said = BufReader::new(stdout);
        let mut line = String::new();
        said.read_line(&mut line)?;
        ensure!(line.trim() == "held", "http-ask hold wrote {line:?}");
        Ok(Holding { held, said })
    }
}

/// Clients that are held.
struct Holding {
    held: Held,
    said: BufReader<ChildStdout>,
}

impl Holding {
    /// Lets them go; seconds, octets, events, and how often one fell behind.
    fn end(mut self) -> Result<[f64; 4]> {
        drop(self.held.0.stdin.take());
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        let numbers = line.split_whitespace().map(str::parse::<f64>);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let numbers = <[f64; 4]>::try_from(numbers);
        numbers.map_err(|numbers| anyhow!("http-ask hold wrote {numbers:?}"))
    }
}

/// A process that goes with its value.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This thread, and all that it starts, on other cores than one; where it
/// was when dropped. On a machine of one core nothing happens.
struct Elsewhere(CpuSet);

impl Elsewhere {
    fn than(core: usize) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut others = before;
        others.unset(core);
        if others.count() > 0 {
            sched_setaffinity(None, &others)?;
        }
        Ok(Self(before))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Where it stays only costs time.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Leaves a process these cores, all its threads.
fn pin(pid: u32, cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = task?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok());
        let thread = thread.and_then(Pid::from_raw);
        sched_setaffinity(Some(thread.context("no thread's number")?), &set)?;
    }
    Ok(())
}

fn serve(netns: &Netns, program: &Path) -> Result<Held> {
    let child = netns.inside(|| Command::new(program).arg(FLOOR_AT).spawn())??;
    let served = Held(child);
    wait_until(Duration::from_secs(10), "the floor", || {
        let connected = netns.inside(|| std::net::TcpStream::connect(FLOOR_AT));
        connected.ok()?.ok()
    })?;
    Ok(served)
}

/// Changes to routes that nobody asks about, at a steady pace.
struct Churn {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    began: Instant,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Churn {
    fn start(netns: &Netns) -> Result<Self> {
        let mut child = netns.inside(|| {
            let mut ip = Command::new("ip");
            ip.args(["-force", "-batch", "-"]);
            ip.stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            ip.spawn()
        })??;
        let mut stdin = child.stdin.take().context("no standard input")?;
        let (stop, made) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let thread = {
            let (stop, made) = (Arc::clone(&stop), Arc::clone(&made));
            thread::spawn(move || {
                let began = Instant::now();
                let mut number = 0_u32;
                let mut lines = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let due = (began.elapsed().as_secs_f64() * f64::from(CHANGES_PER_SEC)) as u32;
                    lines.clear();
                    while number < due {
                        // All come, then the same go.
                        let what = ["add", "del"][(number / CHANGED % 2) as usize];
                        let address = Ipv4Addr::from(FIRST_CHANGED + number % CHANGED);
                        writeln!(lines, "route {what} {address} dev up0 proto static")?;
                        number += 1;
                    }
                    stdin.write_all(&lines)?;
                    made.store(number.into(), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
                drop(stdin);
                child.wait()?;
                Ok(())
            })
        };
        Ok(Self {
            stop,
            made,
            began: Instant::now(),
            thread: Some(thread),
        })
    }

    /// Ends it; how many changes a second it made.
    fn end(mut self) -> Result<f64> {
        let made = self.made.load(Ordering::Relaxed) as f64;
        let per_sec = made / self.began.elapsed().as_secs_f64();
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map(|()| per_sec),
            _ => bail!("what makes changes panicked"),
        }
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its error is that of whoever ended it.
            let _ = thread.join();
        }
    }
}
