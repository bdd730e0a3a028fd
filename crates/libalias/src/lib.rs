//! `libalias.so`: the C interface of FreeBSD's libalias(3) over `nat`.
//!
//! For C programs: `include/alias.h` is their documentation, and says what
//! is different. The functions are thin. Each takes what C gave it, refuses
//! what cannot be (NULL, stale, out of range), and calls the engine. Nothing
//! here may panic, for a panic would end the program that has linked us.
#![allow(
    unsafe_code,
    reason = "the edge to C: its symbols, and the memory it hands over"
)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod clock;
mod control;
mod fragments;
mod handlers;
mod instance;
mod modules;
mod packets;
mod redirects;
mod registry;
mod types;
