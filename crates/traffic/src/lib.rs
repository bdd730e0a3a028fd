//! Traffic made and counted: what `fingerpost send`, `receive` and
//! `nat bench` do. The command line collects their definitions and calls
//! their `run`; nothing else calls this crate.
//!
//! - [`send`]: UDP packets by any way there is, and what each costs.
//! - [`receive`]: the other end, and what arrived of them.
//! - [`mod@bench`]: the load of the NAT engine's benchmarks.

pub mod bench;
mod caught;
mod histogram;
mod payload;
pub mod receive;
pub mod send;
mod values;
