//! `fingerpost nat run`: a capture file, or two TUN devices, through the
//! engine; `nat who`: whose an alias port is or was. Called by the command
//! line, and for its rules by `forward`.

mod capture;
mod control;
mod ends;
pub(crate) mod live;
pub(crate) mod log;
mod mib;
mod offloading;
pub(crate) mod report;
mod settings;
mod state;
mod tun;
mod who;
mod workers;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{ArgGroup, Args, ValueHint};
use dataplane::Buffer;
use tracing::{info, warn};

pub use control::client::{Clear, Reload, Show, clear, reload as run_reload, show};
pub use who::{Who, run as run_who};
pub use workers::{Beside, Translation};

use control::server::{Askers, Control};
use log::record::What;
use log::{Log, Options};
use mib::Snmp;
use report::Report;
use settings::{Later, Settings};
use state::State;
use tun::{Asked, OnSignal};

const AFTER_HELP: &str = "\
A capture holds packets of both directions: one with an inside source is
outbound, any other inbound. Time is the capture's.
The two TUN devices are created if they do not exist; give them addresses and
routes yourself. Packets from INSIDE leave by OUTSIDE and the other way round,
until Ctrl-C. SIGHUP reads RULES again, and flows stay; SIGUSR1 writes the
statistics so far.
  fingerpost nat run --alias 192.0.2.1 --pcap-in lan.pcap --pcap-out wan.pcap
  fingerpost nat run --rules nat.conf --tun tun-in tun-out
Statistics go to standard output at the end. Exit status: 0 done, 1 it failed,
2 the command line is wrong.";

/// Options of a translation that lasts, which all of them have.
pub(crate) const OF_LASTING: [&str; 6] = [
    "agentx",
    "log_journal",
    "log_syslog",
    "log_ipfix",
    "log_ca",
    "log_sessions",
];

/// `nat run`'s definition, whose options of a translation that lasts want one.
pub fn lasting(run: clap::Command) -> clap::Command {
    OF_LASTING.into_iter().fold(run, |run, option| {
        run.mut_arg(option, |option| option.requires("tun"))
    })
}

/// What is translated, and how.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = ArgGroup::new("what").args(["pcap_in", "tun"]).required(true))]
pub struct Run {
    /// The capture to translate (pcap or pcapng)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pcap_in: Option<PathBuf>,
    /// File for the translated packets (pcap), without dropped ones
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "tun")]
    pcap_out: Option<PathBuf>,
    /// Translate between two TUN devices
    #[arg(long, num_args = 2, value_names = ["INSIDE", "OUTSIDE"])]
    tun: Option<Vec<String>>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    log: Options,
    #[command(flatten)]
    control: Control,
    #[command(flatten)]
    snmp: Snmp,
    /// File that keeps flows, mappings and blocks from the end of one
    /// translation to the start of the next [default: state_file of the rules]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tun")]
    state: Option<PathBuf>,
    /// Lower what TCP announces as its largest segment to N bytes, both ways
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(536..))]
    clamp_mss: Option<u16>,
    /// The statistics as one JSON object
    #[arg(short, long)]
    json: bool,
}

/// The engine that a file of rules describes (see `nat run --rules`).
pub fn engine_by_rules(path: &std::path::Path) -> anyhow::Result<::nat::Nat> {
    Settings::of_rules(path).engine()
}

/// Runs it to the end: of the capture, or by Ctrl-C.
pub fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    let nat = match (&arguments.pcap_in, arguments.tun.as_deref()) {
        (Some(input), _) => {
            let mut nat = arguments.settings.engine()?;
            let output = arguments.pcap_out.as_deref();
            let inside = arguments.settings.inside();
            let clamp = arguments.clamp_mss;
            capture::run(&mut nat, (input, output), inside, clamp, &mut report)?;
            nat
        }
        (None, Some([inside, outside])) => {
            let devices = [inside.as_str(), outside.as_str()];
            between(arguments, devices, &mut report)?
        }
        (None, _) => anyhow::bail!("give --pcap-in FILE or --tun INSIDE OUTSIDE"),
    };
    print(arguments, &nat, &mut report)?;
    match report.state_error.take() {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(error),
    }
}

/// Translates between two devices; the engine as it is at the end.
fn between(arguments: &Run, devices: [&str; 2], report: &mut Report) -> anyhow::Result<::nat::Nat> {
    let settings = arguments.settings.with_events(arguments.log.events());
    let journal = arguments.log.journal();
    let state = State::new(arguments.state.as_deref(), &settings, journal)?;
    let mut askers = Askers::open(&arguments.control, &arguments.snmp)?;
    let log = arguments.log.open()?;
    let (mut engines, beginning) = state.begin(&settings, 1, tun::now_millis())?;
    let Some(nat) = engines.first_mut() else {
        anyhow::bail!("there is no engine");
    };
    arguments.snmp.check(nat.config())?;
    let on_signal = OnSignal {
        reload: &|nat| reload(&settings, nat),
        print: &|nat, report| print_so_far(arguments, nat, report),
    };
    let mut asked = Asked {
        jobs: askers.jobs.as_mut(),
        log: &log,
        beginning: Some(beginning),
        clamp_mss: arguments.clamp_mss,
    };
    let run = tun::run(nat, devices, &on_signal, &mut asked, report);
    // Else nothing was translated, and what was left stays for the next start.
    if asked.beginning.is_none() {
        let now = tun::now_millis();
        log.take_all(&mut engines, now);
        // A device that failed has left the engine whole.
        let is_kept = report.keep(state.end(&mut engines, now));
        report.places = end(log, is_kept);
    }
    if let (Err(_), Some(error)) = (&run, &report.state_error) {
        warn!("{error:#}");
    }
    run?;
    engines
        .pop()
        .ok_or_else(|| anyhow::anyhow!("there is no engine"))
}

/// Ends what records are written to, and says what became of them.
fn end(log: Log, is_kept: bool) -> Vec<log::Told> {
    log.mark(match is_kept {
        true => What::Suspended,
        false => What::Stopped,
    });
    log.end()
}

fn print(arguments: &Run, nat: &::nat::Nat, report: &mut Report) -> anyhow::Result<()> {
    report.statistics = nat.statistics();
    let mut out = io::stdout().lock();
    report
        .write(arguments.json, &mut out)
        .context("writing the statistics")
}

/// Who does not take the statistics in between does not end the translation.
fn print_so_far(arguments: &Run, nat: &::nat::Nat, report: &mut Report) {
    if let Err(error) = print(arguments, nat, report) {
        warn!("{error:#}");
    }
}

/// Reads the rules again; with a wrong one all stays as it was.
fn reload(settings: &Settings, nat: &mut ::nat::Nat) -> Result<Later, String> {
    let read = settings.reload(nat);
    match &read {
        Ok(_) => info!("the rules were read again"),
        Err(error) => warn!("the rules stay as they were: {error:#}"),
    }
    read.map_err(|error| format!("{error:#}"))
}

/// The packet with the room behind it for the engine; without, when it is
/// longer than what came of it, for the engine to refuse.
fn engine_room(buffer: &mut Buffer) -> &mut [u8] {
    if total_len(buffer.packet()) > buffer.packet().len() {
        return buffer.packet_mut();
    }
    buffer.room_mut()
}

/// Says how long the packet is, if a helper has made it another length
/// than `before`. (Else what a link has padded it with stays.)
fn settle_len(buffer: &mut Buffer, before: usize) {
    let after = total_len(buffer.packet());
    if after != before {
        buffer.set_len(after);
    }
}

/// The length that an IPv4 header says (RFC 791 §3.1).
fn total_len(packet: &[u8]) -> usize {
    match packet {
        [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    }
}
