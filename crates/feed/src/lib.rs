//! Routes from where they are made. A routing daemon tells us its routes,
//! and they stand beside the kernel's as the rows of an owner
//! (`table::Feeder`). For the program, which starts feeds and shows them.
//!
//! - [`fpm`]: FRR's forwarding plane manager protocol. [`fpm::Frames`] cuts
//!   a stream into frames, [`fpm::Session`] is the state machine of one
//!   feed: bytes and a time in, changes of its rows out; neither does any
//!   I/O nor knows a clock.
//! - [`bmp`]: the BGP monitoring protocol, by which routers tell what their
//!   BGP peers tell them; [`bmp::Station`] is its state machine.
//! - [`recording`]: what feeds hear, recorded and replayed.
//! - [`Server`]: the thread that has the sockets of all feeds.

#[cfg(test)]
extern crate self as fingerpost_feed;

pub mod bmp;
pub mod fpm;
mod now;
pub mod recording;
mod server;
mod settling;
mod stream;

pub use server::{
    BMP_PORT, Door, FPM_PORT, Feed, FpmFeed, Limits, Server, StationFeed, loopback_address,
};
