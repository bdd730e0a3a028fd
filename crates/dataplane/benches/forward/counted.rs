//! So many packets and no more, on one thread: what callgrind counts for two
//! numbers of them differs by the instructions of a packet.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use fingerpost_dataplane::{Batch, Cache, Memory, Pool, Port};

use super::{Arguments, ours};

/// A small frame, and its link's header.
const FRAME: [u8; 60] = [0x55; 60];
const LINK_BYTES: usize = 14;
const FLOWS: usize = 1_000;

pub fn run(arguments: &Arguments, packets: u64) -> Result<()> {
    let batch = arguments.batch;
    match arguments.only.as_deref() {
        Some("forward") => ours::count(packets, 0, batch),
        Some("nat") => ours::count(packets, FLOWS, batch),
        Some("ring") => ring(packets, batch),
        Some("pool") => pool(packets, batch),
        _ => anyhow::bail!("--count takes --only forward, nat, ring or pool"),
    }
}

/// Taken, filled, over a ring, given back.
fn ring(packets: u64, batch: usize) -> Result<()> {
    let pool = Pool::new(4_096, 2_048)?;
    let (mut left, mut right) = Memory::pair(&pool, 1_024);
    let (mut cache, mut packets_in) = (pool.cache(), Batch::new(batch));
    let mut packets_out = Batch::new(batch);
    for _ in 0..packets / batch as u64 {
        take(&mut cache, &mut packets_in);
        left.send(&mut cache, &mut packets_in)?;
        right.receive(&mut cache, &mut packets_out)?;
        black_box(packets_out.packets());
        cache.clear(&mut packets_out);
    }
    let came = right.counters().received_packets;
    ensure!(came == packets / batch as u64 * batch as u64, "{came}");
    Ok(())
}

/// The same without the ring.
fn pool(packets: u64, batch: usize) -> Result<()> {
    let pool = Pool::new(4_096, 2_048)?;
    let (mut cache, mut taken) = (pool.cache(), Batch::new(batch));
    for _ in 0..packets / batch as u64 {
        take(&mut cache, &mut taken);
        black_box(taken.packets());
        cache.clear(&mut taken);
    }
    let left = cache.take().context("none came home")?;
    cache.give(left);
    Ok(())
}

fn take(cache: &mut Cache, batch: &mut Batch) {
    cache.fill(batch, batch.capacity());
    for buffer in batch.packets_mut() {
        // The length is as it is, and nothing is left out of it.
        black_box(buffer.set_frame(&FRAME, LINK_BYTES));
    }
}
