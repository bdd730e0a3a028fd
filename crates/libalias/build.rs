//! Gives the shared library its soname: FreeBSD's number, for the
//! interface is FreeBSD's.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(
        out,
        "cargo::rustc-cdylib-link-arg=-Wl,-soname,libalias.so.7"
    )
}
