//! `fingerpost`: what a router knows, at any size, answered at once.
//!
//! This crate is the edge: the command line, the daemon, its control
//! socket, threads and privileges. What it knows comes from `linux`, what
//! it says is written by `view`.

mod cli;
mod config;
mod control;

fn main() {
    let _ = cli::parse(std::env::args_os().collect());
    let _ = config::load(None);
}
