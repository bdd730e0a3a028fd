//! IPv6 lookups.

use anyhow::Result;
use lab::bench::Samples;

use crate::Arguments;

pub fn measure(_: &Arguments, _: &mut Samples) -> Result<()> {
    Ok(())
}
