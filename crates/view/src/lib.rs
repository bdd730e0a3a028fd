//! A snapshot as text (like iproute2's, arp(8)'s), JSON and CSV.
//!
//! Pure: rows and a time in, bytes out. A [`Question`] says what is asked
//! and how it is to be shown; it is the same for the command line, the
//! control socket and whatever else asks.

pub mod arp;
pub mod ifconfig;
mod put;
pub mod question;

pub use question::{Filter, Format, Object, Output, Question};
