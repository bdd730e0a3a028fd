//! The three ways to hand a whole frame to the kernel, as ports.

use anyhow::{Context, Result};
use dataplane::port::af_packet::{AfPacket, AfPacketRing};
use dataplane::port::af_xdp::AfXdp;
use dataplane::{Pool, Port};

use super::plan::Way;

/// Slots of a ring: enough that the kernel works while we write.
const RING_FRAMES: usize = 2_048;

/// A pool for frames of up to this size that a way sends, so many of them
/// besides those that are under way: memory that a device may send from, where
/// the way is one of those that do.
pub fn pool(way: Way, frame_bytes: usize, buffers: usize) -> Result<Pool> {
    if way != Way::AfXdp {
        return Ok(Pool::new(buffers, frame_bytes)?);
    }
    let buffers = buffers + RING_FRAMES;
    for slot_bytes in [2_048, 4_096] {
        let pool = Pool::aligned(buffers, slot_bytes)?;
        if pool.packet_bytes() >= frame_bytes {
            return Ok(pool);
        }
    }
    Ok(Pool::new(buffers, frame_bytes)?)
}

/// Opens a way for a core: for frames of up to this size, of this pool, by
/// one interface.
pub fn open(
    way: Way,
    name: &str,
    core: usize,
    frame_bytes: usize,
    batch: usize,
    pool: &Pool,
) -> Result<Box<dyn Port + Send>> {
    Ok(match way {
        Way::AfPacketRing => Box::new(AfPacketRing::open(name, frame_bytes, RING_FRAMES)?),
        Way::AfXdp => {
            let opened = AfXdp::open(name, core as u32, frame_bytes, RING_FRAMES, pool);
            Box::new(opened.with_context(|| {
                format!(
                    "{name} gives no AF_XDP socket for core {core}: it takes a queue for each \
                     core, and a kernel and driver that have AF_XDP"
                )
            })?)
        }
        _ => Box::new(AfPacket::open(name, batch)?),
    })
}
