//! AgentX (RFC 2741), both sides of it.
//!
//! As a subagent: another agent, the master, listens for managers and hands
//! questions about our subtrees to us.
//!
//! - `answer`: what a question of the master is answered.
//! - [`Session`]: one conversation as a state machine: octets and the time
//!   in, octets out. It holds no socket; the program carries the octets,
//!   and may do so without ever waiting for the master.
//!
//! As the master: subagents connect to us.
//!
//! - [`Master`]: all subagents as one state machine.
//! - [`Gathering`]: one answer gathered from our objects and theirs.
//!
//! For both:
//!
//! - `wire`: the messages, in both byte orders; `owned`: values that are
//!   kept.
//!
//! Called by the program's AgentX threads, its listeners and by tests.

mod answer;
mod gathering;
mod master;
mod owned;
mod session;
#[cfg(test)]
mod tests;
mod wire;

pub use gathering::{Gathering, Known};
pub use master::{
    Answer, Capability, Cut, Dispatch, Event, Master, MasterConfig, Now, Owner, Question,
    QuestionCounters, Region, SessionState, Told, What,
};
pub use owned::{OwnedValue, Row};
pub use session::{Broken, Config, Counters, Registration, Session, State};
pub use wire::Malformed;
