//! Packets in, packets out: buffers, batches, and the ports that fill and
//! empty them. The program puts an engine (`nat` for now) between two
//! ports; nothing here decides anything about a packet.
//!
//! - [`Batch`], [`Buffer`]: packets with room in front and behind, made
//!   once and used again.
//! - [`Port`]: where a batch comes from and goes to.
//! - [`Capture`]: a port of two capture files, one read, one written.
//! - [`Tun`]: a port that is a TUN device of Linux.
//! - [`socket`]: the kernel's own ways of sending and receiving.

mod batch;
mod pcap;
mod port;
pub mod socket;
mod tun;

pub use batch::{Batch, Buffer, HEADROOM, TAILROOM};
pub use pcap::{Capture, LinkType};
pub use port::{Counters, Port, PortError, Received};
pub use tun::Tun;
