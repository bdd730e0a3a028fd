//! Case `xdp`: frames forwarded inside an XDP program, beside the kernel's own
//! forwarding of the same frames by the same links; and established flows
//! translated there, beside nft's masquerade.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own};
use crate::host::{self, Needed};

/// What sets up a veth's other end, and the peer.
const NEEDED: &[Needed] = &[("ethtool", "ethtool"), ("nft", "nftables")];

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    host::install_missing(NEEDED)?;
    own::measure(setting, "fingerpost-dataplane", "xdp", [])
}
