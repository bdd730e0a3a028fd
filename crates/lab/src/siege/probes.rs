//! What an administrator asks while others attack: each question on a
//! connection of its own, and how long its answer took.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::besieged::{self, Besieged};
use crate::Netns;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(20);
/// What is not answered by then is not.
const PATIENCE: Duration = Duration::from_secs(10);

/// GET of `sysUpTime.0` by v2c and the community `public`.
const GET: &[u8] = &[
    0x30, 0x26, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa0, 0x19, 2, 1, 7, 2, 1, 0, 2,
    1, 0, 0x30, 0x0e, 0x30, 0x0c, 6, 8, 0x2b, 6, 1, 2, 1, 1, 3, 0, 5, 0,
];

/// How one kind of question went.
#[derive(Debug, Default)]
pub struct Sample {
    /// Of each answer.
    pub took: Vec<Duration>,
    /// Questions without one.
    pub failed: usize,
    /// Processor time of the thread that answers, from the question to the
    /// answer: what it did first for others with it. A machine with other work
    /// does not blur it.
    pub work: Vec<Duration>,
}

impl Sample {
    /// So many of a hundred took no longer.
    pub fn percentile(&self, of: usize) -> Duration {
        percentile(&self.took, of)
    }
}

/// So many of a hundred are no longer.
pub fn percentile(times: &[Duration], of: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * of).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or(Duration::MAX / 1_000_000)
}

/// Tells how much processor time a thread has had.
struct Meter(PathBuf);

impl Meter {
    /// Of the thread of a process that has this name.
    fn of(process: u32, name: &str) -> Option<Self> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let is_it = |task: &PathBuf| {
            let comm = fs::read_to_string(task.join("comm"));
            comm.is_ok_and(|comm| comm.trim() == name)
        };
        let mut tasks = tasks.flatten().map(|task| task.path());
        Some(Self(tasks.find(is_it)?.join("schedstat")))
    }

    fn spent(&self) -> Option<Duration> {
        let text = fs::read_to_string(&self.0).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }
}

/// How all went.
#[derive(Debug)]
pub struct Samples {
    /// `status`.
    pub status: Sample,
    /// `/healthz`.
    pub health: Sample,
    /// An SNMP object.
    pub snmp: Sample,
}

/// Asks once.
type Question = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Those who ask.
pub struct Probes {
    stop: Arc<AtomicBool>,
    askers: [JoinHandle<Sample>; 3],
}

impl Probes {
    /// Starts to ask.
    pub fn start(netns: &Netns, besieged: &Besieged) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let socket = besieged.socket().to_owned();
        let start = |ask: Question, meter: Option<Meter>| {
            let (stop, name) = (Arc::clone(&stop), netns.name().to_owned());
            thread::spawn(move || {
                let asking = || all(&ask, meter.as_ref(), &stop);
                let inside = Netns::open(&name).and_then(|netns| netns.inside(asking));
                inside.unwrap_or_default()
            })
        };
        let health = || besieged::http("/healthz", PATIENCE).map(drop);
        let of_thread = |name| Meter::of(besieged.process(), name);
        let askers = [
            start(Box::new(move || status(&socket)), None),
            start(Box::new(health), of_thread("http")),
            start(Box::new(snmp), of_thread("snmp")),
        ];
        Self { stop, askers }
    }

    /// Asks no more.
    pub fn stop(self) -> Samples {
        self.stop.store(true, Ordering::Relaxed);
        let [status, health, snmp] = self.askers.map(|asker| asker.join().unwrap_or_default());
        Samples {
            status,
            health,
            snmp,
        }
    }
}

fn all(ask: &Question, meter: Option<&Meter>, stop: &AtomicBool) -> Sample {
    let mut sample = Sample::default();
    let spent = || meter.and_then(Meter::spent);
    while !stop.load(Ordering::Relaxed) {
        let (began, before) = (Instant::now(), spent());
        match ask() {
            Ok(()) => sample.took.push(began.elapsed()),
            Err(_) => sample.failed += 1,
        }
        let work = spent().zip(before).map(|(now, before)| now - before);
        sample.work.extend(work);
        thread::sleep(PAUSE);
    }
    sample
}

fn status(socket: &Path) -> Result<()> {
    let answer = besieged::ask(socket, besieged::STATUS, PATIENCE)?;
    ensure!(answer.starts_with(b"{"), "no status");
    Ok(())
}

fn snmp() -> Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    socket.connect(("127.0.0.1", 1161))?;
    // A datagram may be lost: managers ask again.
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send(GET)?;
    let mut answer = [0; 1500];
    let len = socket.recv(&mut answer)?;
    ensure!(len > GET.len(), "no answer");
    Ok(())
}
