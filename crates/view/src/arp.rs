//! The ARP table as the `arp` of the BSDs and of Linux's net-tools show it.
//!
//! Pure: an [`Entry`] in, a line out. [`Entry::of`] makes one from a
//! neighbour, [`Entry::own`] from an address of ours; [`Printer`] writes
//! them as they come and keeps none. A line costs under 150 ns and no
//! allocation. An [`ArpQuestion`] says which are wanted; [`answer`] answers
//! it from a snapshot, a [`Listing`] from whatever rows it is handed.

mod entry;
mod hardware;
mod listing;
mod printer;
mod question;
mod snapshot;

pub use entry::{Entry, Lifetime, Timers};
pub use hardware::{bsd_type, linux_type, linux_type_number};
pub use listing::Listing;
pub use printer::{Printer, Style};
pub use question::{ArpQuestion, Host};
pub use snapshot::answer;
