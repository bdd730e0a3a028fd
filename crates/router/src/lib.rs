//! Packets between ports by a router's tables: what `fingerpost forward`,
//! `nat run` and `router` do. The command line collects their definitions and calls their
//! `run`; nothing else calls this crate.
//!
//! - [`forward`]: workers on ports, which tables they go by, what they ask of
//!   the kernel, what is reported.
//! - [`live`]: forwarding at XDP on real links, beside the kernel.
//! - [`mod@nat`]: the translation engine's settings and rules, and the engine
//!   by itself between two ports.

mod control_socket;
pub mod forward;
pub mod live;
pub mod nat;
mod peers;
mod signals;
