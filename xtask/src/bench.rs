//! `cargo xtask bench`: Fingerpost and today's tools on the same case, in
//! turn, several rounds.

mod agentx;
mod apply;
mod arp;
mod batch;
mod buffer;
mod busy;
mod command;
mod events;
mod fib;
mod forward;
mod http;
mod ifconfig;
mod kinds;
mod links;
mod mrt;
mod namespaces;
mod nat;
mod own;
mod peers;
mod plot;
mod record;
mod report;
mod routes;
mod send;
mod served;
mod snmp;
mod sync;
mod table;
mod xdp;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use ::lab::bench::{Report, Samples, machine};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::host::{self, Needed, say};

/// What the benchmarks start beside what the tests start.
const NEEDED: &[Needed] = &[("strace", "strace")];

/// Runs benchmarks.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which case; all of them unless said
    case: Option<Case>,
    /// All cases
    #[arg(long, conflicts_with = "case")]
    all: bool,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Without the largest sizes
    #[arg(long)]
    quick: bool,
    /// Keeps a dated copy in docs/bench
    #[arg(long)]
    keep: bool,
    /// Where the programs are that are measured; without it they are built
    #[arg(long)]
    programs: Option<PathBuf>,
}

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    /// BGP paths of a subagent, walked through its AgentX master
    Agentx,
    /// Links, addresses, routes and rules from a file, made and made again
    Apply,
    /// Listing neighbours
    Arp,
    /// Packet buffers, on one core and from one to another
    Buffer,
    /// What stood behind agents before, and what stands there now
    Container,
    /// What an event costs, beside how many links there are
    Events,
    /// Longest-prefix match, alone and while routes change
    Fib,
    /// Questions over HTTP, with changes, stalled clients and streams
    Http,
    /// Packets through a worker, alone and with translation
    Forward,
    /// Listing interfaces and addresses
    Ifconfig,
    /// Listing links of ten kinds with all details
    Kinds,
    /// Making and deleting links, and routes from a file
    Links,
    /// Loading a collector's table of BGP paths
    Mrt,
    /// A thousand namespaces, mirrored by one daemon
    Namespaces,
    /// Translating packets, from 2,000 to 10 million flows
    Nat,
    /// Recording what the kernel says, and replaying it
    Record,
    /// Files of `ip -batch`
    Batch,
    /// Mirroring and listing routes
    Routes,
    /// Sending UDP packets by each way there is
    Send,
    /// Walking the tables of SNMP
    Snmp,
    /// Reading what a writer changes
    Sync,
    /// The container and the tables, in one process
    Table,
    /// Packets forwarded inside an XDP program, on veth pairs
    Xdp,
}

/// What every case is given.
#[derive(Debug, Clone)]
pub struct Setting {
    rounds: usize,
    quick: bool,
    /// Fingerpost, as released.
    fingerpost: PathBuf,
    /// The lab's own programs, as released.
    programs: PathBuf,
}

/// Runs the cases, each with its table, JSON and plot.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    host::install_missing(NEEDED)?;
    host::install_missing(links::NEEDED)?;
    if matches!(arguments.case, Some(Case::Apply) | None) {
        host::install_missing(apply::NEEDED)?;
    }
    let programs = match &arguments.programs {
        Some(programs) => programs.canonicalize()?,
        None => build()?,
    };
    let setting = Setting {
        rounds: arguments.rounds.max(1),
        quick: arguments.quick,
        fingerpost: programs.join("fingerpost"),
        programs,
    };
    if !host::may_make_namespaces() {
        host::enter_own_namespaces()?;
    }
    let cases = match arguments.case {
        Some(case) if !arguments.all => vec![case],
        _ => Case::value_variants().to_vec(),
    };
    let mut reports = Vec::new();
    for case in cases {
        let mut samples = Samples::default();
        let rows = match case {
            Case::Agentx => {
                agentx::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Apply => apply::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Arp => arp::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Buffer => {
                buffer::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Events => {
                events::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Fib => fib::measure(&setting)?,
            Case::Http => http::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Forward => forward::measure(&setting)?,
            Case::Ifconfig => {
                ifconfig::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Kinds => kinds::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Links => links::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Mrt => mrt::measure(&setting)?,
            Case::Namespaces => {
                namespaces::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Nat => nat::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Record => {
                record::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Batch => batch::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Routes => {
                routes::measure(&setting, &mut samples).map(|()| samples.into_rows())?
            }
            Case::Sync => sync::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Table => table::measure(&setting, "table")?,
            Case::Container => table::measure(&setting, "container")?,
            Case::Send => send::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Snmp => snmp::measure(&setting, &mut samples).map(|()| samples.into_rows())?,
            Case::Xdp => xdp::measure(&setting)?,
        };
        let report = Report {
            case: case.name(),
            machine: machine(),
            rows,
        };
        write(&report)?;
        reports.push(report);
    }
    if arguments.keep {
        keep(reports)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds them; gives where they are.
fn build() -> Result<PathBuf> {
    let status = host::cargo()
        .current_dir(host::workspace()?)
        .args(["build", "--profile", "dist", "--quiet"])
        .args(["--package=fingerpost", "--package=fingerpost-lab", "--bins"])
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the release build failed");
    }
    Ok(host::target()?.join("dist"))
}

fn write(report: &Report) -> Result<()> {
    let directory = host::target()?.join("bench");
    fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{}.json", report.case));
    fs::write(&file, serde_json::to_string_pretty(report)?)
        .with_context(|| format!("writing {}", file.display()))?;
    fs::write(file.with_extension("svg"), plot::svg(report))?;
    say(report::text(report));
    say(format_args!(
        "written: {}, and the plot beside it",
        file.display()
    ));
    Ok(())
}

/// `docs/bench/YYYY-MM-DD.json` and `.md`, where cases that were not run
/// this time stay as they were kept before.
fn keep(reports: Vec<Report>) -> Result<()> {
    let output = Command::new("date").arg("+%F").output()?;
    let date = String::from_utf8(output.stdout)?;
    let file = host::workspace()?.join("docs/bench").join(date.trim());
    fs::create_dir_all(file.parent().context("no directory")?)?;
    let before = match fs::read(file.with_extension("json")) {
        Ok(json) => serde_json::from_slice(&json).context("reading what was kept before")?,
        Err(_) => Vec::new(),
    };
    let reports = merged(before, reports);
    fs::write(
        file.with_extension("json"),
        serde_json::to_string_pretty(&reports)? + "\n",
    )?;
    fs::write(
        file.with_extension("md"),
        report::markdown(date.trim(), &reports),
    )?;
    say(format_args!("kept: {}.json and .md", file.display()));
    Ok(())
}

/// The new reports in place of older ones of the same case, by name.
fn merged(before: Vec<Report>, new: Vec<Report>) -> Vec<Report> {
    let mut by_case: BTreeMap<String, Report> = BTreeMap::new();
    for report in before.into_iter().chain(new) {
        by_case.insert(report.case.clone(), report);
    }
    by_case.into_values().collect()
}

impl Case {
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
