//! Packets in, packets out: buffers, batches, and the ports that fill and
//! empty them. The program puts an engine (`nat` for now) between two
//! ports; nothing here decides anything about a packet.
//!
//! - [`Pool`], [`Cache`], [`Buffer`], [`Batch`]: packets with room in front
//!   and behind, taken from one pool by many workers and used again.
//! - [`Port`]: where a batch comes from and goes to.
//! - [`Memory`]: a port of prepared or made packets, or one end of a pair.
//! - [`Capture`]: a port of two capture files, one read, one written.
//! - [`Tun`]: a port that is a TUN device of Linux.
//! - [`socket`]: the kernel's own ways of sending and receiving.

mod buffer;
mod memory_port;
pub mod neighbour;
mod pcap;
mod port;
pub mod socket;
mod tun;

pub use buffer::{Batch, Buffer, Cache, CacheCounters, HEADROOM, Pool, PoolError, TAILROOM};
pub use memory_port::{Frames, Memory};
pub use pcap::{Capture, LinkType};
pub use port::{Counters, Port, PortError, Received};
pub use tun::Tun;
