//! The words of iproute2, for all that read or write them.
//!
//! - [`Names`]: names of protocols, scopes, tables; [`load`] reads those of
//!   the host.
//! - [`values`]: addresses, prefixes, numbers in the spellings of `ip`.
//! - [`Object`], [`Verb`]: the tables and what is done with their rows.
//! - [`route`](fn@route), [`address`](fn@address) and their like: a line of
//!   `ip`'s words to a row; [`Rows`]: the same for tables that are a file.
//! - [`Listing`]: what `ip` prints, put together to such lines.
//! - [`calendar`]: times as RFC 3339 writes them.
//! - [`document`]: the line and the key of a place in TOML.
//! - [`mod@encap`]: tunnels of next hops, and the names of their numbers.
//! - [`json`]: rows as JSON objects to such lines.
//!
//! Pure but for [`load`]. Called by `view` and by every crate above it.

mod address;
pub mod batch;
pub mod calendar;
pub mod document;
pub mod encap;
mod fdb;
pub mod json;
pub mod line;
mod listing;
mod metrics;
mod names;
mod neighbour;
mod nexthop;
mod object;
mod route;
mod rows;
mod rule;
pub mod values;
mod verb;

pub use address::address;
pub use fdb::fdb;
pub use line::{Context, Links, ParseError, Words};
pub use listing::Listing;
pub use names::host::load;
pub use names::{NUMBERS, Name, NameFile, Names};
pub use neighbour::neighbour;
pub use nexthop::nexthop;
pub use object::Object;
pub use route::{ONLY_SHOWN, route, route_kind, route_kind_name};
pub use rows::Rows;
pub use rule::{AskedRule, rule};
pub use verb::Verb;
