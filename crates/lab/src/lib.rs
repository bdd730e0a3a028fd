//! For tests and benchmarks only: network namespaces, bounded waits, host
//! settings that are put back, and the situations of the five reports with
//! real kernel objects. Nothing that ships depends on it.
//!
//! - [`Netns`]: a namespace that goes when its value does.
//! - [`wait_until`]: waiting with a deadline and a reason.
//! - [`HostSetting`]: a sysctl raised for a while, safe beside other tests.
//! - [`program`]: which build of the program is under test.
//! - [`skip`]: a test that cannot run here, counted aloud.
//! - [`situation`]: aliases, neighbours, links, routes.
//! - [`mod@bench`]: measurements and their report.
//! - [`rates`]: what rates a manager gets, beside the kernel's own.
//! - [`routers`]: three routers with FRR and forwarding at XDP, in a row.
//! - [`siege`]: a daemon under attack, and what it costs the others.
//! - [`soak`]: random changes under a daemon, compared with the kernel.
//! - [`frr`]: its daemons as subagents of SNMP.
//! - [`speaker`]: announces prefixes to a real bgpd.
//! - [`decisions`]: which way packets go, the kernel beside the daemon.
//! - [`managers`]: who else keeps a network as files say; [`package`]: what
//!   is not installed.
//! - [`corpus`]: what the fuzz targets have found and were given.
//! - [`mrt`]: files of BGP tables, written; [`bmp`]: what routers tell.
//! - [`Sshd`]: a real one, and who logs in there.
//! - [`Wire`]: frames as they are, at the other ends of a router's cables.
//! - [`bare`]: what the floors under changes share.

pub mod bare;
pub mod bench;
pub mod bmp;
mod child;
pub mod corpus;
pub mod decisions;
pub mod frr;
pub mod managers;
pub mod mrt;
mod netns;
pub mod package;
pub mod program;
pub mod rates;
pub mod routers;
mod setting;
pub mod siege;
pub mod situation;
pub mod skip;
pub mod soak;
pub mod speaker;
mod sshd;
mod wait;
mod wire;

pub use child::Child;
pub use memory::Random;
pub use netns::{Netns, remove, sweep};
pub use setting::{HostSetting, put_back_leftovers};
pub use sshd::Sshd;
pub use wait::wait_until;
pub use wire::Wire;
