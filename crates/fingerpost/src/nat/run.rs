//! `fingerpost nat run`: a capture file, or two TUN devices, through the
//! engine. Called by [`super::run`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};

/// Translates a capture file, or between two TUN devices.
#[derive(Debug, Args)]
pub struct Run {
    /// The capture to translate (pcap or pcapng)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pcap_in: PathBuf,
}

/// Runs it to the end of the capture.
pub fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    anyhow::bail!("{}: no engine is built in yet", arguments.pcap_in.display())
}
