//! Packets in, packets out: buffers, batches, the ports that fill and empty
//! them, and the way between: by the tables of a router, with translation
//! of addresses where it is wanted.
//!
//! - [`Pool`], [`Cache`], [`Buffer`], [`Batch`]: packets with room in front
//!   and behind, taken from one pool by many workers and used again.
//! - [`Port`]: where a batch comes from and goes to; the kinds are in
//!   [`port`]:
//! - [`Memory`]: a port of prepared or made packets, or one end of a pair.
//! - [`Capture`]: a port of two capture files, one read, one written.
//! - [`Tun`]: a port that is a TUN device of Linux. [`Tap`]: a TAP device, the
//!   way from the program at XDP to here and back into the kernel.
//! - [`socket`]: the kernel's UDP, a batch at a time.
//! - [`forward`]: the nodes of a packet's way, pure; [`neighbour`]: what a
//!   next hop is; [`fib_sync`]: both kept in step with `table`;
//!   [`worker`]: the thread that does it.
//! - [`xdp`]: forwarding inside the kernel, by a program at XDP.
//! - [`mod@slice`]: how soon a thread runs that has slept; not of packets, but
//!   this room may make system calls that no safe library passes on.

mod buffer;
pub mod fib_sync;
pub mod forward;
pub mod neighbour;
pub mod port;
mod rtnetlink;
pub mod slice;
pub mod socket;
#[cfg(test)]
mod testing;
pub mod worker;
pub mod xdp;

pub use buffer::{
    Batch, Buffer, Cache, CacheCounters, HEADROOM, NoHeadroom, Pool, PoolError, TAILROOM,
};
pub use port::memory::{Frames, Memory};
pub use port::pcap::{Capture, LinkType};
pub use port::tap::Tap;
pub use port::tun::Tun;
pub use port::{Counters, Port, PortError, Received, Sent};
