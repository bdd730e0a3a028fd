//! The SNMP protocol of an agent; no socket, no thread, no clock, no table.
//!
//! - [`agent`]: a datagram in, a datagram out: the request path.
//! - [`agentx`]: a subagent behind another agent (RFC 2741).
//! - [`mib`]: what an agent answers from: the [`Mib`] trait and [`Value`].
//! - [`config`]: who may ask what; [`view`]: what an asker sees; [`usm`]:
//!   keys of users.
//! - [`notification`]: traps and informs as messages.
//! - [`counters`]: what an agent counts.
//! - [`ber`], [`oid`], [`pdu`], [`message`]: the protocol's elements, for
//!   tests and tools, too.
//!
//! Bytes and a time in, bytes out: no input makes it panic, loop for ever
//! or allocate more than a small multiple of the input. For the program
//! (listeners) and the `mib` crate (objects).

// The fuzz targets' fixture, which the tests inside use as well, calls the
// crate by its name.
#[cfg(test)]
extern crate self as fingerpost_snmp;

pub mod agent;
pub mod agentx;
pub mod ber;
pub mod config;
pub mod counters;
pub mod message;
pub mod mib;
pub mod notification;
pub mod oid;
pub mod pdu;
pub mod remote;
pub mod usm;
pub mod view;

pub use agent::{Agent, Outcome};
pub use config::Config;
pub use mib::{Contexts, Mib, Value};
pub use oid::Oid;
