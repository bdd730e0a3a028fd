//! Routes from where they are made. A routing daemon tells us its routes,
//! and they stand beside the kernel's as the rows of an owner
//! (`table::Feeder`). For the program, which starts feeds and shows them.
//!
//! - [`fpm`]: FRR's forwarding plane manager protocol. [`fpm::Frames`] cuts
//!   a stream into frames, [`fpm::Session`] is the state machine of one
//!   feed: bytes and a time in, changes of its rows out; neither does any
//!   I/O nor knows a clock.
//! - [`Server`]: the thread that has the sockets of all feeds.

pub mod fpm;
mod server;

pub use server::{Door, Feed, PORT, Server, loopback_address};
