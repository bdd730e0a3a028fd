//! Our own stack as a way to send: buffers from the pool, routes and
//! neighbours mirrored from the kernel, no lock on the way. [`Tables`] is
//! what all cores share, [`Stack`] what each has for itself.
//!
//! It can stop after each stage, as the report's author made the kernel's
//! path return at successive points, and it can take the time at each.

mod profile;
mod stack;
mod tables;

pub use profile::Profile;
pub use stack::{Drops, Stack};
pub use tables::Tables;
