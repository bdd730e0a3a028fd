//! What a buffer costs: taken and given back in bulk of 32, on one worker and
//! from one to another. Asked by `cargo xtask bench buffer`, beside DPDK.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at once")]

mod served;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fingerpost_dataplane::{Batch, Cache, Memory, Pool, Port};
use served::{ns_each, serve, stay_on};

const BULK: usize = 32;
const BUFFERS: usize = 16_383;
const PACKET_BYTES: usize = 2_048;
/// Room in the ring between two workers.
const ON_THE_WAY: usize = 1_024;
/// A small frame, and its link's header.
const FRAME_BYTES: usize = 60;
const LINK_BYTES: usize = 14;

fn main() -> io::Result<()> {
    stay_on(0);
    let pool = Pool::new(BUFFERS, PACKET_BYTES).unwrap();
    let mut cache = pool.cache();
    let mut batch = Batch::new(BULK);
    serve(|name, count, time| match name {
        "bare" => Some(ns_each(time, || {
            cache.fill(&mut batch, BULK);
            black_box(batch.packets());
            cache.clear(&mut batch);
            BULK as u64
        })),
        "raw" => Some(ns_each(time, || {
            cache.fill(&mut batch, BULK);
            touch(&mut batch);
            cache.clear(&mut batch);
            BULK as u64
        })),
        "ready" => Some(ns_each(time, || ready(&mut cache, &mut batch))),
        "single" => Some(ns_each(time, || {
            let buffer = cache.take();
            black_box(&buffer);
            if let Some(buffer) = buffer {
                cache.give(buffer);
            }
            1
        })),
        "across" => Some(across(&pool, time)),
        "sockets" => Some(sockets(&mut cache, count, time)),
        "heap" => Some(ns_each(time, heap)),
        _ => None,
    })
}

/// Writes to the first line of each packet.
#[inline(always)]
fn touch(batch: &mut Batch) {
    for buffer in batch.packets_mut() {
        if let Some(first) = buffer.room_mut().first_mut() {
            *first = 1;
        }
    }
    black_box(batch.packets());
}

/// Packets of a length, with a link header, their first line written to.
#[inline(always)]
fn ready(cache: &mut Cache, batch: &mut Batch) -> u64 {
    cache.fill(batch, BULK);
    for buffer in batch.packets_mut() {
        buffer.set_len(FRAME_BYTES - LINK_BYTES);
        if let Some(first) = buffer.link_mut(LINK_BYTES).first_mut() {
            *first = 1;
        }
    }
    black_box(batch.packets());
    cache.clear(batch);
    BULK as u64
}

/// What the system's allocator takes for the same.
fn heap() -> u64 {
    let mut bulk: [Vec<u8>; BULK] = std::array::from_fn(|_| Vec::with_capacity(PACKET_BYTES));
    for buffer in &mut bulk {
        buffer.push(1);
    }
    black_box(&bulk);
    BULK as u64
}

/// The pool on each socket that the report proposes: so many stocks of 64
/// buffers, visited in turn, each for a bulk.
fn sockets(cache: &mut Cache, sockets: usize, time: Duration) -> f64 {
    let mut stocks: Vec<Batch> = (0..sockets).map(|_| Batch::new(2 * BULK)).collect();
    let pool = Pool::new(sockets * 2 * BULK, PACKET_BYTES).unwrap();
    let mut filler = pool.cache();
    for stock in &mut stocks {
        filler.fill(stock, 2 * BULK);
    }
    let mut batch = Batch::new(BULK);
    let mut next = 0;
    let ns = ns_each(time, || {
        let stock = &mut stocks[next];
        next = if next + 1 == sockets { 0 } else { next + 1 };
        for buffer in stock.drain_from(BULK) {
            let _ = batch.push(buffer);
        }
        touch(&mut batch);
        for buffer in batch.drain() {
            let _ = stock.push(buffer);
        }
        BULK as u64
    });
    stocks.iter_mut().for_each(|stock| filler.clear(stock));
    cache.clear(&mut batch);
    ns
}

/// Taken and written to on one core, over a ring, read and given back on
/// another.
fn across(pool: &Pool, time: Duration) -> f64 {
    let (mut left, mut right) = Memory::pair(pool, ON_THE_WAY);
    let going = AtomicBool::new(true);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            stay_on(1);
            let mut cache = pool.cache();
            let mut batch = Batch::new(BULK);
            while going.load(Ordering::Relaxed) {
                cache.fill(&mut batch, BULK);
                touch(&mut batch);
                left.send(&mut cache, &mut batch).unwrap();
            }
        });
        let mut cache = pool.cache();
        let mut batch = Batch::new(BULK);
        let mut seen = 0_u64;
        let mut receive = || {
            right.receive(&mut cache, &mut batch).unwrap();
            for buffer in batch.packets_mut() {
                seen += u64::from(buffer.room_mut().first().copied().unwrap_or(0));
            }
            let came = batch.len() as u64;
            cache.clear(&mut batch);
            came
        };
        while receive() == 0 {}
        let ns = ns_each(time, receive);
        going.store(false, Ordering::Relaxed);
        sender.join().unwrap();
        black_box(seen);
        ns
    })
}
