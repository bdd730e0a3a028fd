//! Case `xdp`: frames forwarded inside an XDP program, beside the kernel's own
//! forwarding of the same frames by the same links.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own};
use crate::host::{self, Needed};

/// What sets up a veth's other end.
const NEEDED: &[Needed] = &[("ethtool", "ethtool")];

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    host::install_missing(NEEDED)?;
    own::measure(setting, "fingerpost-dataplane", "xdp", [])
}
