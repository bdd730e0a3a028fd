//! Case `forward`: packets through a worker between memory ports, beside
//! DPDK's testpmd between null ports.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own};
use crate::host::{self, Needed};

/// The peer.
const NEEDED: &[Needed] = &[("dpdk-testpmd", "dpdk-dev")];

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    host::install_missing(NEEDED)?;
    let told = ["--testpmd=dpdk-testpmd".into()];
    own::measure(setting, "fingerpost-dataplane", "forward", told)
}
