//! Case `mrt`: loading a collector's table beside unpacking it, and beside
//! `bgpkit-parser`; the bytes of a path.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own};

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    own::measure(setting, "fingerpost-bgp", "mrt", [])
}
