//! The control socket: how questions get to the daemon and answers back.

pub mod client;
pub mod paths;
pub mod protocol;
pub mod server;
