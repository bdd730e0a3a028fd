//! `fingerpost top`: rates of links, sizes and changes of the tables, the
//! neighbours and prefixes that change most, the subscribers of a translation
//! that have most, on a full screen, as text or as JSON. It asks the daemon
//! over its control socket like any client, and the translation over its own,
//! and reckons the rates itself. Called by the command line.

mod busiest;
mod command;
mod daemon;
mod events;
mod gather;
mod grid;
mod keys;
mod model;
mod report;
mod sample;
mod screen;
mod subscribers;
mod terminal;
mod units;

use std::io::{self, IsTerminal};

use anyhow::{Context, Result, bail};
use privileges::CapabilitySet;

pub use command::{Top, command, wanted};
use daemon::Daemon;

/// Runs it until its user ends it, or for one report.
pub fn run(top: &Top) -> Result<()> {
    let daemon = Daemon::of(&top.from)?;
    // It connects again and again, to a daemon of another user, too.
    let kept = CapabilitySet::DAC_OVERRIDE;
    privileges::give_up_but(kept).context("cannot give up privileges")?;
    if top.once || top.json {
        return report::run(&daemon, top, &mut io::stdout().lock());
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!(
            "top draws on a terminal, and this is none; `fingerpost top --once` writes one report, \
             `--json` one object after the other"
        );
    }
    terminal::run(&daemon, top)
}
