//! Subscribers: who they are, what each may have, and which alias ports each
//! has for itself. For the engine; the settings and the reckoning are for
//! its callers as well.
//!
//! A subscriber is an inside address or prefix. With blocks on, its flows
//! get alias ports of its own blocks only, all behind one alias address, so
//! that a block taken and one given back say who had a port, and when.
//!
//! ```text
//!   inside address ── subscriber ──> its blocks, the active one first
//!                        │ counts          │
//!                        └ quotas          └ address and number of each
//! ```
//!
//! - `config`: the settings, and what is wrong with them.
//! - `layout`: which ports a block of an address has.
//! - `reckoning`: deterministic blocks (RFC 7422), both ways, without state.
//! - `pool`: the blocks of all addresses: free, taken, resting.
//! - `subscribers`: the table of subscribers.
//! - `counted`: what is counted for each, where that is asked for.
//! - `event`: what is told of them.

mod config;
mod counted;
mod event;
mod layout;
mod pool;
mod reckoning;
mod subscribers;

pub use config::{Blocks, BlocksError, Deterministic, Key, Quota, Quotas, Rate, SubscriberConfig};
pub use counted::SubscriberCounts;
pub(crate) use event::BlockEvents;
pub use event::{BlockEvent, BlockEventKind, QuotaKind};
pub(crate) use layout::Layout;
pub(crate) use pool::{Orders, Pool, step_over};
pub use reckoning::{PortSet, Reckoned, Reckoning};
pub(crate) use subscribers::{Class, Subscriber, Subscribers};
