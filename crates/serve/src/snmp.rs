//! SNMP in the daemon, and the commands around it.
//!
//! - [`Service`]: sockets, agent, subagent and notifications of a daemon;
//!   [`BoundSockets`] before it gives up rights, [`Gauge`] for its status.
//! - `engine`, `facts`: who the agent is, and what it is told.
//! - `listener`, `socket`, `fair`, `put_off`: a thread for each address it
//!   is asked at; whose turn it is, and who waits for a sample.
//! - `clock`: how long the agent is up.
//! - `contexts`, `samples`, `history`: what is answered from.
//! - `subagent`, `subtrees`: AgentX behind another agent.
//! - `master`: AgentX subagents attach to us.
//! - `notify`, `outbox`, `teller`: what happened, to those who want to know.
//! - `state`, `users`: engine id, boots, keys.
//! - [`command`]: `fingerpost snmp …`.
//!
//! The protocol is the `snmp` crate's, the objects are the `mib` crate's;
//! here are sockets, files, threads and the clock.

mod bound;
mod clock;
pub mod command;
pub mod config;
mod contexts;
mod engine;
mod facts;
mod fair;
mod gauge;
mod hex;
mod history;
mod listener;
mod master;
mod notify;
mod outbox;
mod put_off;
mod samples;
mod service;
mod socket;
mod state;
mod subagent;
mod subtrees;
mod teller;
mod users;

pub use bound::{BoundSockets, check, unbound};
pub use gauge::Gauge;
pub use service::Service;
