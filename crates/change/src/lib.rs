//! What changes the kernel's tables: words to requests, plans of links,
//! journals, undo. By the process that asks and with its rights; no daemon
//! takes part.
//!
//! - [`rows`]: addresses, routes, neighbours, rules, next hops: one, by
//!   pattern, or a million from a file.
//! - [`links`]: links by the thousand, made, deleted, changed, each kind of
//!   work with a journal.
//! - [`state`]: links and rows as files say they are to be.
//! - [`pattern`]: numbers in words.
//! - [`drill`]: links made to be measured, and removed again.
//! - [`arguments`]: what commands' definitions are made of.
//!
//! Each command's definition stands beside its code (`command`); the
//! program collects them. Called by the program only.

pub mod arguments;
mod complaint;
pub mod drill;
pub mod links;
mod patience;
pub mod pattern;
pub mod rows;
pub mod state;
