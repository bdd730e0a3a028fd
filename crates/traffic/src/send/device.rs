//! The three ways to hand a whole frame to the kernel, as ports.

use anyhow::{Context, Result};
use dataplane::Port;
use dataplane::port::af_packet::{AfPacket, AfPacketRing};
use dataplane::port::af_xdp::AfXdp;

use super::plan::Way;

/// Slots of a ring: enough that the kernel works while we write.
const RING_FRAMES: usize = 2_048;

/// Opens a way for a core: for frames of up to this size, by one interface.
pub fn open(
    way: Way,
    name: &str,
    core: usize,
    frame_bytes: usize,
    batch: usize,
) -> Result<Box<dyn Port + Send>> {
    Ok(match way {
        Way::AfPacketRing => Box::new(AfPacketRing::open(name, frame_bytes, RING_FRAMES)?),
        Way::AfXdp => {
            let opened = AfXdp::open(name, core as u32, frame_bytes, RING_FRAMES);
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
