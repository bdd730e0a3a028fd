//! The SNMP protocol of an agent; no socket, no thread, no clock, no table.
//!
//! - [`agentx`]: a subagent behind another agent (RFC 2741).
//! - [`mib`]: what an agent answers from: the [`Mib`] trait and [`Value`].
//! - [`oid`]: names of objects.
//!
//! Bytes and a time in, bytes out: no input makes it panic, loop for ever
//! or allocate more than a small multiple of the input. For the program
//! (listeners) and the `mib` crate (objects).

pub mod agentx;
pub mod mib;
pub mod oid;

pub use mib::{Contexts, Mib, Value};
pub use oid::Oid;
