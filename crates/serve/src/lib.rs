//! Answers for others: over the control socket, over HTTP with the page and
//! metrics, over SNMP, as an AgentX subagent and master.
//!
//! Whoever runs a daemon assembles it from these: `fingerpost up` over
//! mirrors, `fingerpost replay` over a recording. Everything here answers
//! from snapshots and asks the kernel for nothing about the network; the
//! threads that talk with strangers have no rights.
//!
//! - [`control`]: questions over a UNIX socket, both ends of it.
//! - [`http`]: the same questions, changes, metrics and the page.
//! - [`snmp`]: the agent's listeners, notifications, users, contexts; the
//!   AgentX subagent and master.
//! - [`namespace`]: what they all answer from; [`namespace_service`]: with what a
//!   status says beside it.
//! - [`owners`]: rows of several owners compared.
//! - [`watch`]: changes as lines of JSON, for whoever has a reader.
//! - [`budget`]: memory for those who are answered.
//! - [`forwarding`]: what forwards at XDP beside the daemon, asked.
//! - [`descriptors`]: how many the process may have.
//! - [`sql`]: SQL over a namespace, within what each who asks may take.
//! - [`setting`]: what the keys of the configuration are for.
//! - [`status`]: how a daemon is, as it is told.

pub mod budget;
mod clock;
mod complaint;
pub mod control;
pub mod descriptors;
pub mod forwarding;
pub mod http;
pub mod namespace;
pub mod namespace_service;
pub mod owners;
pub mod route_times;
pub mod setting;
pub mod snmp;
mod source;
pub mod sql;
pub mod status;
pub mod watch;
