//! Statements over generated tables: equal to what the command line answers,
//! looked up in the indexes, and cut off at their limits.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod equal;
mod limits;
mod looked_up;
mod nat;
mod osquery;
mod tables;
