#![forbid(unsafe_code)]
//! Address translation as a pure engine: flows, ports, rules, protocol
//! helpers. For `libalias` (the C interface), `dataplane` and the program.
//!
//! Packets are mutable slices, time is an argument, and nothing here owns a
//! thread, a socket, a clock or a file. After [`Nat::new`] no call allocates
//! for a packet; every call does a bounded amount of work. Two engines share
//! nothing, so each thread may own one.
//!
//! Only IPv4 is translated. What a caller reads ([`FlowView`],
//! [`MappingView`], [`Event`]) and asks by ([`Nat::lookup`],
//! [`Nat::mapping`], [`Nat::remove`]) is an [`IpAddr`], so that IPv6 can come
//! without a change to its code; until then an IPv6 key finds nothing. What
//! it lays down ([`Config`], [`Nat::set_addresses`], [`rules`]) is an
//! [`Ipv4Addr`]: an alias address or a redirect of IPv6 would do nothing, so
//! it cannot be written.
//!
//! [`IpAddr`]: std::net::IpAddr
//! [`Ipv4Addr`]: std::net::Ipv4Addr
//!
//! ```
//! use std::net::Ipv4Addr;
//! use fingerpost_nat::{Config, Nat, Verdict};
//! use packet::build::Ip;
//!
//! let outside = Ipv4Addr::new(192, 0, 2, 1);
//! let mut nat = Nat::new(Config::new(&[outside]))?;
//! let (inside, remote) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 7));
//! let mut packet = Ip::new(inside, remote).udp(4_000, 53, b"question");
//! assert_eq!(nat.translate_out(&mut packet, 0), Verdict::Translated);
//! assert_eq!(packet[12..16], outside.octets());
//! # Ok::<(), fingerpost_nat::Error>(())
//! ```

pub mod blocks;
mod clock;
mod config;
mod engine;
mod error;
mod event;
mod flow;
pub mod fragment;
mod held_ports;
pub mod helper;
mod index;
mod key;
mod mapping;
mod parse;
mod part;
pub mod pcp;
mod ports;
mod proxied;
mod ranges;
pub mod rules;
pub mod saved;
mod shards;
mod statistics;
mod strangers;
mod table;
mod tcp;
mod verdict;
mod view;
mod work;

pub use blocks::{
    BlockEvent, BlockEventKind, Blocks, BlocksError, Deterministic, PortSet, QuotaKind, Quotas,
    Reckoned, Reckoning, SubscriberConfig, SubscriberCounts,
};
pub use config::{
    AtCap, Behaviour, Config, Dependence, Hairpin, Limits, Mode, Pooling, PortChoice, Timeouts,
};
pub use engine::{Nat, NotAdopted, Offloaded, Recall, TakenUp, put_back, source_of};
pub use error::Error;
pub use event::{Event, EventKind, Why};
pub use pcp::{LeaseView, PcpConfig};
pub use ranges::AddressRange;
pub use shards::{Owner, Shards, ShardsError};
pub use statistics::{Protocol, ProtocolStatistics, Statistics};
pub use verdict::{Direction, Packet, Verdict};
pub use view::{BlockView, Cursor, FlowView, MappingView, PoolView, State, SubscriberView};
pub use work::Work;
