//! Memory building blocks that everything above may use and that know
//! nothing of networks.
//!
//! [`Published`], a pointer that one writer replaces and any number of
//! readers take without waiting; [`quiescent`], when what a writer took out may
//! be reused; [`Reserved`], an array that grows in place; [`Pages`], memory
//! shared by rules of its user; [`Stack`], places that threads push and pop
//! without a lock; [`Wakeup`], whether who waits for work has to be woken;
//! [`heap`], what the allocator has;
//! [`Random`], numbers that only look it; [`prefetch`] and [`matching`], the few processor instructions that a
//! table of cache lines needs. What is `unsafe` about them stays in here.

pub mod heap;
mod line;
mod pages;
mod published;
pub mod quiescent;
mod random;
mod reserved;
mod stack;
mod wakeup;

pub use line::{alone, matching, prefetch, prefetch_at, prefetch_bytes};
pub use pages::Pages;
pub use published::Published;
pub use random::{Random, mixed};
pub use reserved::Reserved;
pub use stack::Stack;
pub use wakeup::Wakeup;
