//! The subagent's side of AgentX (RFC 2741): another agent, the master,
//! listens for managers and hands questions about our subtrees to us.
//!
//! - `wire`: the messages, read in both byte orders and written in
//!   network order.
//! - `answer`: what a question of the master is answered.
//! - [`Session`]: one conversation as a state machine: octets and the time
//!   in, octets out. It holds no socket; the program carries the octets,
//!   and may do so without ever waiting for the master.
//!
//! Called by the program's AgentX thread and by tests.

mod answer;
mod session;
#[cfg(test)]
mod tests;
mod wire;

pub use session::{Broken, Config, Counters, Registration, Session, State};
pub use wire::Malformed;
