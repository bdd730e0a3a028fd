//! The forwarding plane manager protocol (`fpm/fpm.h` of FRR): zebra
//! connects and tells its routes as netlink messages, each in a frame.
//!
//! - [`Frames`]: a stream of bytes as frames.
//! - `rows`: what a message does to the rows.
//! - `placing`: which route another stands for.
//! - `meaning`: what a next-hop id means, now and to rows that were told
//!   when it meant something else.
//! - `acknowledging`: what is told back of routes that packets go by here.
//! - `state`: how a feed stands, as its zebra would tell it.
//! - [`Session`]: all of it for one feed.
//!
//! There is no end mark in the stream, and the only namespace of a route is
//! the number of its table.

mod acknowledging;
mod frames;
mod meaning;
mod placing;
mod rows;
mod session;
mod state;

pub use acknowledging::Forwarded;
pub use frames::{BadFrame, Frame, Frames};
pub use session::{Broken, Session};

pub use crate::now::Now;
