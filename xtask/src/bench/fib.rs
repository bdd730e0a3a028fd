//! Case `fib`: longest-prefix match beside DPDK's tables, on one core and
//! on two while a writer changes routes.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own, peers};

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    peers::install_library("libdpdk", "libdpdk-dev")?;
    let peer = peers::build("fib", &["libdpdk"])?;
    let told = ["--peer".into(), peer.into()];
    own::measure(setting, "fingerpost-fib", "fib", told)
}
