//! What each fuzz target does with its bytes; one file, so that the tests
//! of the `netlink` crate replay the corpus through the same functions.

mod check;

pub use check::*;
