//! What each fuzz target does with its bytes; one file, so that the tests
//! of the `change`, `fib`, `nat`, `netlink` and `snmp` crates replay the corpus through the
//! same functions.

mod agentx;
mod agentx_master;
mod bmp;
mod check;
mod feed_recording;
mod fib;
mod forward;
mod fpm;
mod mrt;
mod nat;
mod recording;
mod snmp;
mod state;

pub use agentx::agentx;
pub use agentx_master::agentx_master;
pub use bmp::bmp;
pub use check::*;
pub use feed_recording::feed_recording;
pub use fib::{fib4_changes, fib6_changes};
pub use forward::forward;
pub use fpm::fpm;
pub use mrt::mrt;
pub use nat::{
    nat_ftp, nat_nbt, nat_packets, nat_pcp, nat_pptp, nat_rtsp, nat_rules, nat_sip, nat_skinny,
};
pub use recording::recording;
pub use snmp::{snmp_agent, snmp_message};
pub use state::{state_file, state_import};
