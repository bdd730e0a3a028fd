//! The program.

mod arp;
mod ifconfig;

use std::io::{self, Write};
use std::process::ExitCode;

use arp::Called;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let by = std::path::Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    let (name, called) = if by == "arp" || by == "ifconfig" {
        (by, Called::ByItsName)
    } else {
        (words.next().unwrap_or_default(), Called::OfFingerpost)
    };
    let result = match name.to_str() {
        Some("arp") => arp::run(words.collect(), called),
        Some("ifconfig") => ifconfig::run(words.collect(), called),
        _ => Err(anyhow::anyhow!("not here yet")),
    };
    result.unwrap_or_else(|error| {
        let is_closed = |error: &(dyn std::error::Error + 'static)| {
            error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(is_closed) {
            return ExitCode::SUCCESS;
        }
        let _ = writeln!(io::stderr(), "fingerpost: {error:#}");
        ExitCode::FAILURE
    })
}
