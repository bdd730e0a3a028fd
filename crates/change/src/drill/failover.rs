//! `fingerpost failover`: thousands of links set down and up again, and how
//! long it takes until the mirror and one who watches it have seen the last
//! of it. In a namespace of its own.

mod round;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use linux::{Mirror, Options, Phase};
use serde::Serialize;
use table::Reader;

use super::making;
use round::{Drill, Seen};

/// How long the mirror may take for its first listing.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command's definition.
pub fn command() -> Command {
    Command::new("failover")
        .about("Set thousands of links down and up again; time until the mirror has seen it")
        .after_help(
            "Makes veth pairs in a fresh namespace, an IPv4 address on the first end of each,\n\
             mirrors it, and sets all first ends down and up again. A round is seen when every\n\
             link, every peer's carrier and every connected route is as it must be: the kernel\n\
             does not announce the routes that it removes with a link. `kernel`: it has answered\n\
             the last request; `announced`: it has announced the last link, which takes longer,\n\
             since it announces some hundred carriers a second. Needs root (or `unshare -rn`).",
        )
        .arg(
            Arg::new("count")
                .short('n')
                .long("count")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("1000")
                .help("How many pairs"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1_000))
                .default_value("3")
                .help("How many times down and up"),
        )
        .arg(
            Arg::new("json")
                .short('j')
                .long("json")
                .action(ArgAction::SetTrue)
                .help("One JSON object"),
        )
}

/// What the whole drill gave.
#[derive(Debug, Serialize)]
struct Report {
    links: u32,
    rounds: Vec<Turn>,
    resyncs: u64,
    drift: u64,
}

/// One change of all links.
#[derive(Debug, Serialize)]
struct Turn {
    round: u32,
    to: &'static str,
    #[serde(flatten)]
    seen: Seen,
}

/// What is to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    links: u32,
    rounds: u32,
    json: bool,
}

/// What the command line says.
pub fn wanted(matches: &ArgMatches) -> Wanted {
    Wanted {
        links: matches.get_one("count").copied().unwrap_or(1_000),
        rounds: matches.get_one("rounds").copied().unwrap_or(3),
        json: matches.get_flag("json"),
    }
}

/// Runs the drill.
pub fn run(wanted: &Wanted, out: &mut impl Write) -> Result<ExitCode> {
    let namespace = making::fresh()?;
    making::give_up_the_rest()?;
    let mirror = Mirror::start(namespace.clone(), Options::default())?;
    if mirror.wait_ready(PATIENCE) != Phase::Live {
        bail!("the mirror did not get ready: {:?}", mirror.status().phase);
    }
    let drill = Drill::build(&namespace, wanted.links)?;
    let rounds = turns(wanted, &drill, &mirror.reader(), out)?;
    let status = mirror.status();
    mirror.stop();
    drill.clear()?;
    let report = Report {
        links: wanted.links,
        rounds,
        resyncs: status.resyncs,
        drift: status.drift,
    };
    if wanted.json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "events lost and tables listed again {} times, rows found different {}",
            report.resyncs, report.drift
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets all links down and up, and tells of each turn.
fn turns(
    wanted: &Wanted,
    drill: &Drill<'_>,
    reader: &Reader,
    out: &mut impl Write,
) -> Result<Vec<Turn>> {
    if !wanted.json {
        head(wanted.links, out)?;
    }
    let mut turns = Vec::new();
    // All up first, unmeasured: from then on each turn changes everything.
    drill.turn(reader, true)?;
    for round in 1..=wanted.rounds {
        for (to, up) in [("down", false), ("up", true)] {
            let seen = drill.turn(reader, up);
            let seen = seen.with_context(|| format!("round {round}"))?;
            if !wanted.json {
                writeln!(
                    out,
                    "{round:>6}{to:>6}{:>12.1}{:>12.1}{:>12.1}{:>12.1}",
                    seen.kernel_ms, seen.announced_ms, seen.mirror_ms, seen.watcher_ms
                )?;
            }
            turns.push(Turn { round, to, seen });
        }
    }
    Ok(turns)
}

fn head(links: u32, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{links} veth pairs in a fresh namespace, an address each; ms from the first request"
    )?;
    writeln!(
        out,
        "{:>6}{:>6}{:>12}{:>12}{:>12}{:>12}",
        "round", "to", "kernel", "announced", "mirror", "watcher"
    )?;
    Ok(())
}
