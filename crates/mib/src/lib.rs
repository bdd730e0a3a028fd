//! A snapshot of the tables as SNMP objects, in OID order.
//!
//! - [`Objects`]: the objects of one context at one moment; an
//!   [`snmp::Mib`]. Nothing is copied and nothing is sorted beforehand: a
//!   request seeks once in the table that holds its rows, then runs along it.
//! - [`MibContext`]: what they are made from; [`routing_table`] and
//!   [`bridge`]: which context shows which routes, and which bridge.
//! - [`History`]: when what changed (`ifLastChange` and its like), kept from
//!   the tables' events; it also says which changes call for a notification.
//! - [`Health`]: how the tables fare, for FINGERPOST-MIB.
//! - [`sampled`]: which samples a request reads, so that the program has
//!   them taken.
//!
//! How rows are ordered and named where the RFCs leave it open:
//! `docs/decisions/011-routes-as-snmp-rows.md`. No socket, thread or clock in
//! here; time is an argument. For the program, which answers SNMP with it.

mod bridge;
mod columns;
mod contexts;
mod entity;
mod ethernet;
mod framework;
mod health;
mod history;
mod host;
mod index;
mod interfaces;
mod ip;
mod notification;
mod objects;
mod own;
mod parts;
mod routes;
mod status;
mod system;
mod transport;
mod ucd;

pub use contexts::{bridge, routing_table};
pub use framework::Engine;
pub use health::Health;
pub use history::History;
pub use notification::{LinkNotification, LinkTrap};
pub use objects::{MibContext, Objects, Reads, SampleTimes};
pub use parts::{Needed, column_end, sampled};
pub use system::{Module, OBJECT_ID, SERVICES, System};
