//! Packets in, packets out: buffers, batches, the ports that fill and empty
//! them, and the way between: by the tables of a router, with translation
//! of addresses where it is wanted.
//!
//! - [`Pool`], [`Cache`], [`Buffer`], [`Batch`]: packets with room in front
//!   and behind, taken from one pool by many workers and used again.
//! - [`Port`]: where a batch comes from and goes to.
//! - [`Memory`]: a port of prepared or made packets, or one end of a pair.
//! - [`Capture`]: a port of two capture files, one read, one written.
//! - [`Tun`]: a port that is a TUN device of Linux.
//! - [`socket`]: the kernel's own ways of sending and receiving.
//! - [`forward`]: the nodes of a packet's way, pure; [`neighbour`]: what a
//!   next hop is; [`fill`]: both kept in step with `table`;
//!   [`worker`]: the thread that does it.
//! - [`mod@slice`]: how soon a thread runs that has slept; not of packets, but
//!   this room may make system calls that no safe library passes on.

mod buffer;
pub mod fill;
pub mod forward;
mod memory_port;
pub mod neighbour;
mod pcap;
mod port;
pub mod slice;
pub mod socket;
#[cfg(test)]
mod testing;
mod tun;
pub mod worker;

pub use buffer::{Batch, Buffer, Cache, CacheCounters, HEADROOM, Pool, PoolError, TAILROOM};
pub use memory_port::{Frames, Memory};
pub use pcap::{Capture, LinkType};
pub use port::{Counters, Port, PortError, Received};
pub use tun::Tun;
