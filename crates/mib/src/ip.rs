//! IP-MIB (RFC 4293): addresses, neighbours, default routers, and what IP
//! counts.

mod addresses;
mod neighbours;
mod routers;
mod statistics;

pub(crate) use addresses::{AddrTable, AddressTable};
pub(crate) use neighbours::{MediaTable, PhysicalTable};
pub(crate) use routers::RouterTable;
pub(crate) use statistics::{IfStatsTable, SystemStatsTable, group, last_change};
