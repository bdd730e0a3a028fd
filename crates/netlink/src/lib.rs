//! rtnetlink messages to rows and back; no socket.
//!
//! - [`message`]: walking a received buffer, message by message.
//! - [`attribute`]: walking the attributes inside a message.
//! - [`decode`]: messages to rows of the `table` crate.
//! - [`request`]: the questions (`RTM_GET…`).
//! - [`encode`]: rows to changes (`RTM_NEW…`, `RTM_DEL…`).
//! - [`generic`]: how fast links are, which is no rtnetlink message.
//! - [`on_the_way`]: what the kernel does to packets beside routing them.
//! - [`socket_diag`]: sockets of TCP and UDP, which is none either.
//!
//! Bytes and a time in, values out: no input makes it panic, loop for ever
//! or allocate more than a small multiple of the input. All integers are in
//! the byte order of the machine, as netlink has them, but where said
//! otherwise. For the `linux` crate (sockets), the `feed` crate (FPM) and
//! whoever reads raw attributes kept in a row.

pub mod attribute;
mod build;
pub mod decode;
pub mod encode;
pub mod generic;
mod kernel;
mod link_data;
mod malformed;
pub mod message;
pub mod on_the_way;
pub mod request;
pub mod socket_diag;

pub use malformed::{Malformed, TooLong};
