//! Packets between ports by a router's tables: what `fingerpost forward` and
//! `nat run` do. The command line collects their definitions and calls their
//! `run`; nothing else calls this crate.
//!
//! - [`forward`]: workers on ports, which tables they go by, what they ask of
//!   the kernel, what is reported.
//! - [`mod@nat`]: the translation engine's settings and rules, and the engine
//!   by itself between two ports.

pub mod forward;
pub mod nat;
