//! Memory building blocks that everything above may use and that know
//! nothing of networks.
//!
//! For now one room: [`Published`], a pointer that one writer replaces and
//! any number of readers take without waiting.

mod published;

pub use published::Published;
