//! Cases `table` and `container`: programs of the lab's own, since
//! everything happens in one process.

use ::lab::bench::Measured;
use anyhow::Result;

use super::{Setting, own};

pub fn measure(setting: &Setting, bench: &str) -> Result<Vec<Measured>> {
    own::measure(setting, "fingerpost-lab", bench, [])
}
