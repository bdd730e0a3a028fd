//! The BGP monitoring protocol (RFC 7854, with the tables of RFC 8671 and
//! RFC 9069): routers connect and tell what their BGP peers tell them.
//!
//! - [`Messages`]: a stream of bytes as messages.
//! - `message`: what a message says; `peer_header`: about which table of
//!   which peer.
//! - `source`: the rows of such a table, and how far they are told.
//! - `peer`, `router`: what holds these together.
//! - `state`: how a station stands, as its routers would tell it.
//! - [`Station`]: all of it for one feed.
//!
//! Each table is an owner of rows (`bmp:192.0.2.1@edge`). A router that is
//! gone leaves its rows; what it does not tell again once it is back goes
//! with the End-of-RIB of that table, or where none comes, once its whole
//! stream has settled. A peer that is down takes its rows along at once.

mod message;
mod messages;
mod peer;
mod peer_header;
mod router;
mod source;
mod state;
mod station;

pub use crate::now::Now;
pub use messages::{BadMessage, Framed, Messages};
pub use router::Heard;
pub use station::{Broken, RouterId, Station, StationLimits};
