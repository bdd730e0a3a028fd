//! The situations of the five reports, with real kernel objects, built in
//! seconds. Everything is the same in every run. Called by tests,
//! benchmarks and `cargo xtask lab`.
//!
//! Routes are synthetic and say so: their length mix and nesting are those
//! of a real BGP table, their prefixes are made up.

pub mod aliases;
pub mod links;
pub mod neighbours;
pub mod routes;

use anyhow::{Context, Result, bail};
use linux::Namespace;

use crate::Netns;

/// Makes a veth pair `name` and `name-peer`, both up.
fn wire(netns: &Netns, name: &str) -> Result<()> {
    netns.ip_batch(&format!(
        "link add {name} type veth peer name {name}-peer\nlink set {name} up\nlink set {name}-peer up\n"
    ))
}

/// The index of a link by its name.
pub fn link_index(netns: &Netns, name: &str) -> Result<u32> {
    let line = netns.ip(&["-o", "link", "show", "dev", name])?;
    let (index, _) = line.split_once(':').context("ip link without an index")?;
    Ok(index.trim().parse()?)
}

/// Sends changes to the kernel, packed; the first refusal is the error.
fn load<E>(netns: &Netns, what: &str, changes: impl IntoIterator<Item = E>) -> Result<()>
where
    E: FnOnce(u32, &mut Vec<u8>),
{
    let namespace =
        Namespace::open(netns.name()).with_context(|| format!("opening {}", netns.name()))?;
    let mut refused = 0_usize;
    let mut first = None;
    linux::bulk::apply(&namespace, changes, &mut |place, result| {
        if let Err(refusal) = result {
            refused += 1;
            first.get_or_insert((place, refusal));
        }
    })
    .with_context(|| format!("loading {what}"))?;
    if let Some((place, refusal)) = first {
        bail!("the kernel refused {refused} of the {what}, first number {place}: {refusal}");
    }
    Ok(())
}
