//! The situations of the five reports, with real kernel objects, built in
//! seconds. Everything is the same in every run. Called by tests,
//! benchmarks and `cargo xtask lab`.
//!
//! Routes are synthetic and say so: their length mix and nesting are those
//! of a real BGP table, their prefixes are made up.

pub mod aliases;
pub mod fib;
pub mod kinds;
pub mod links;
pub mod neighbours;
pub mod routes;

use std::cell::Cell;

use anyhow::{Context, Result, bail};
use linux::Namespace;
use netlink::TooLong;
use netlink::decode::Operation;
use netlink::encode::Request;
use netlink::message::flag;

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

/// Adds rows to the kernel, packed; the first refusal is the error.
fn load<R>(netns: &Netns, what: &str, rows: &[R], encode: Encode<R>) -> Result<()> {
    let namespace =
        Namespace::open(netns.name()).with_context(|| format!("opening {}", netns.name()))?;
    let too_long = Cell::new(None);
    let too_long = &too_long;
    let changes = rows.iter().map(|row| {
        move |sequence, out: &mut Vec<u8>| {
            let request = Request {
                operation: Operation::New,
                flags: flag::CREATE | flag::EXCL,
                sequence,
                now_millis: 0,
            };
            // Rows of a situation have no part that could be; if one had,
            // we would rather hear of it.
            too_long.set(encode(out, &request, row).err().or(too_long.take()));
        }
    });
    let mut refused = 0_usize;
    let mut first = None;
    linux::bulk::apply(&namespace, changes, &mut |place, result| {
        if let Err(refusal) = result {
            refused += 1;
            first.get_or_insert((place, refusal));
        }
    })
    .with_context(|| format!("loading {what}"))?;
    if let Some(error) = too_long.take() {
        bail!("encoding {what}: {error}");
    }
    if let Some((place, refusal)) = first {
        bail!("the kernel refused {refused} of the {what}, first number {place}: {refusal}");
    }
    Ok(())
}

/// One of [`netlink::encode`]'s functions.
type Encode<R> = fn(&mut Vec<u8>, &Request, &R) -> Result<(), TooLong>;
