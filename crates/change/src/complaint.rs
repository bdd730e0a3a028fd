//! A line on standard error, as all that change something write it. Called by
//! all of the crate.

use std::io::{self, Write};

/// Writes it. With standard error closed nobody is left to be told.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "fingerpost: {text}");
}
