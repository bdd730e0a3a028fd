//! What each fuzz target does with its bytes; one file, so that the tests
//! of the `netlink` and `snmp` crates replay the corpus through the same functions.

mod agentx;
mod check;
mod snmp;

pub use agentx::agentx;
pub use check::*;
pub use snmp::{snmp_agent, snmp_message};
