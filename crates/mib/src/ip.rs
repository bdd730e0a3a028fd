//! IP-MIB (RFC 4293): addresses, prefixes, neighbours, default routers, how
//! IP is set on links, and what IP and ICMP count.

mod addresses;
mod icmp;
mod interfaces;
mod neighbours;
mod prefixes;
mod routers;
mod statistics;

pub(crate) use addresses::{AddrTable, AddressTable};
pub(crate) use icmp::{MessageTable, StatsTable, scalars as icmp_scalars};
pub(crate) use interfaces::{V4Table, V6Table, ZoneTable, scalars};
pub(crate) use neighbours::{MediaTable, PhysicalTable};
pub(crate) use prefixes::PrefixTable;
pub(crate) use routers::RouterTable;
pub(crate) use statistics::{IfStatsTable, SystemStatsTable, group, last_change};
