//! What an administrator asks while others attack: each question on a
//! connection of its own, and how long its answer took.

use std::net::UdpSocket;
use std::path::Path;
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
}

impl Sample {
    /// So many of a hundred took no longer.
    pub fn percentile(&self, of: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = (took.len() * of).div_ceil(100).saturating_sub(1);
        took.get(at).copied().unwrap_or(Duration::MAX / 1_000_000)
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
        let start = |ask: Question| {
            let (stop, name) = (Arc::clone(&stop), netns.name().to_owned());
            thread::spawn(move || {
                let inside = Netns::open(&name).and_then(|netns| netns.inside(|| all(&ask, &stop)));
                inside.unwrap_or_default()
            })
        };
        let askers = [
            start(Box::new(move || status(&socket))),
            start(Box::new(|| besieged::http("/healthz", PATIENCE).map(drop))),
            start(Box::new(snmp)),
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

fn all(ask: &Question, stop: &AtomicBool) -> Sample {
    let mut sample = Sample::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        match ask() {
            Ok(()) => sample.took.push(began.elapsed()),
            Err(_) => sample.failed += 1,
        }
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
