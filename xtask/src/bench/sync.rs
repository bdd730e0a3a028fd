//! Case `sync`: a read of a shared value while a writer changes it 10,000
//! times a second, with one reader and with two on two cores.

use ::lab::bench::Samples;
use anyhow::Result;

use super::served::Served;
use super::{Setting, peers};
use crate::host::say;

const METRIC: &str = "ns_per_op";

/// What is asked for and what it is called. 32 reads in a section or between
/// two quiescent states.
const OURS: &[(&str, &str)] = &[
    ("bare", "bare atomic"),
    ("online", "fingerpost"),
    ("enter", "fingerpost, offline between batches"),
    ("arc-swap", "arc-swap"),
    ("rwlock", "RwLock"),
    ("mutex", "Mutex"),
];

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    peers::install_library("liburcu-qsbr", "liburcu-dev")?;
    let peer = peers::build("sync", &["liburcu-qsbr"])?;
    let mut ours = Served::bench("sync")?;
    let mut peer = Served::peer(&peer)?;
    for round in 1..=setting.rounds {
        say(format_args!("sync: round {round}"));
        for readers in [1, 2] {
            for (question, who) in OURS {
                let ns = ours.ns(&format!("{question} {readers}"))?;
                samples.add(who, "read, by readers", readers, METRIC, ns);
            }
            let ns = peer.ns(&format!("qsbr {readers}"))?;
            samples.add("liburcu qsbr", "read, by readers", readers, METRIC, ns);
        }
    }
    ours.end()?;
    peer.end()
}
