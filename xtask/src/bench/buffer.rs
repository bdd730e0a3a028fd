//! Case `buffer`: packet buffers taken and given back in bulk of 32, beside
//! DPDK's, and the report's pool on each socket.

use ::lab::bench::Samples;
use anyhow::Result;

use super::served::Served;
use super::{Setting, peers};
use crate::host::say;

const METRIC: &str = "ns_per_op";
const BULK: u64 = 32;

/// What is asked for, what it is called, and the peer that does the same.
const CASES: &[(&str, &str, Option<&str>)] = &[
    ("bare", "taken and given back", Some("rte_mempool")),
    ("raw", "and a line written to", Some("rte_mempool")),
    ("ready", "with the header ready", Some("rte_pktmbuf")),
    (
        "across",
        "to another core",
        Some("rte_mempool and rte_ring"),
    ),
    ("heap", "the system's allocator", None),
    ("single", "one at a time", None),
];

/// Stocks of the pool on each socket.
const SOCKETS: [u64; 3] = [1, 100, 10_000];

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    peers::install_library("libdpdk", "libdpdk-dev")?;
    let peer = peers::build("buffer", &["libdpdk"])?;
    let mut ours = Served::bench("buffer")?;
    let mut peer = Served::peer(&peer)?;
    for round in 1..=setting.rounds {
        say(format_args!("buffer: round {round}"));
        for (question, what, who) in CASES {
            samples.add("fingerpost", what, BULK, METRIC, ours.ns(question)?);
            if let Some(who) = who {
                samples.add(who, what, BULK, METRIC, peer.ns(question)?);
            }
        }
        for sockets in SOCKETS {
            let ns = ours.ns(&format!("sockets {sockets}"))?;
            samples.add("a pool on each socket", "by sockets", sockets, METRIC, ns);
        }
    }
    ours.end()?;
    peer.end()
}
