//! What a translation that runs is asked over its control socket, and what
//! it says: the words of both ends.
//!
//! `router` has the end that answers, beside the translation; `nat show` and
//! its like, `top`, and `serve`'s HTTP and metrics ask. A question is a line
//! of JSON; the answer is rows, a line of JSON each, and a last line.
//!
//! - [`request`]: what is asked.
//! - [`answer`]: the lines of an answer.
//! - [`client`]: asking with a thread that waits, within bounds.
//! - [`within`]: a socket with a moment by which all of it is over.

pub mod answer;
pub mod client;
pub mod request;
pub mod within;

/// Where the socket is when nothing is said.
pub const USUAL: &str = "/run/fingerpost-nat.sock";
