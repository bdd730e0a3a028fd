//! `fingerpost forward`: packets moved by a router's tables, between TUN
//! devices or from a capture file to another. Called by the command line.

mod capture;
mod devices;
mod known;
mod report;
mod requests;
mod rules;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

pub use known::{OpenRoutes, ReadRoutes, ReadTables, Readers};

use anyhow::{Context, bail};
use clap::{ArgGroup, ArgMatches, Args, Command, FromArgMatches, ValueEnum, ValueHint};
use dataplane::forward::{Settings, SourceCheck};

use crate::nat::OF_LASTING;

const AFTER_HELP: &str = "\
Links, routes and neighbours are those of a namespace, followed as they change,
or of a file in ip's words, one row per line (`add` may follow the first word):
  link NAME [address MAC] [mtu N] [down]     route PREFIX via ADDR dev NAME
  addr ADDR/LEN dev NAME                     neigh ADDR dev NAME lladdr MAC
An address adds its connected and its local route. A TUN device represents a
link of the tables: `--tun tun0=eth1`; it is created if it does not exist, and
may be moved to another namespace. Packets for the router itself go to the
device of --host, or are counted and dropped.
  fingerpost forward --tables router.txt --tun ta=lan --tun tb=wan
  fingerpost forward --tables router.txt --in lan --pcap-in a.pcap --pcap-out b.pcap
Routes may come from elsewhere: from FRR's zebra by FPM (--fpm), or from files of
BGP tables (--routes; the best path of each prefix, or one peer's with --source).
Links, neighbours, addresses and rules stay those of the namespace or file, and
so do the routes of its own addresses; a next hop out of a BGP table is reached
by its main table.
  fingerpost forward --tables router.txt --routes rib.bz2 --in lan --pcap-in a.pcap
  fingerpost forward --fpm 127.0.0.1:2621 --tun ta=lan --tun tb=wan
zebra connects within the namespace of the tables (that of --netns, else the own
one), and is told which of its routes packets go by (RTM_F_OFFLOAD).
Policy rules that look at more than the destination are not obeyed: where there
are some, nothing is forwarded without --accept rule, and one that comes later
is told by a warning.
With --nat all workers share the alias addresses, and each inside host belongs
to one worker. With same_ports a host keeps its port if that belongs to the same
worker; else it gets another. target_address, and redirect_address of an
alias_address, where they let new connections in, need a single worker.
SIGHUP reads RULES again. What --log-journal, --log-syslog and --log-ipfix
write, and what `nat show`, `clear`, `reload` and `who` ask by --nat-control, is
as with `nat run`.
Packets by node and by reason go to standard output at the end of the capture or
after Ctrl-C. Exit status: 0 done, 1 it failed, 2 the command line is wrong.";

/// What is forwarded, and by which tables.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = ArgGroup::new("what").args(["pcap_in", "tun"]).required(true))]
pub struct Forward {
    /// A TUN device, and the link of the tables that it stands for [default:
    /// its own name]; may be given several times
    #[arg(long, value_name = "NAME[=LINK]", value_parser = device)]
    tun: Vec<Device>,
    /// A TUN device for what is the router's own
    #[arg(long, value_name = "NAME", conflicts_with = "pcap_in")]
    host: Option<String>,
    /// The capture whose packets are forwarded (pcap or pcapng; Ethernet or
    /// raw IP)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "in_link")]
    pcap_in: Option<PathBuf>,
    /// Where the forwarded packets go (pcap)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "tun")]
    pcap_out: Option<PathBuf>,
    /// The link on which the packets of the capture came in
    #[arg(long = "in", id = "in_link", value_name = "LINK")]
    in_link: Option<String>,
    /// Namespace whose tables are used, by name, path or process ID [default:
    /// its own]
    #[arg(long, value_name = "NETNS")]
    netns: Option<String>,
    /// A file of tables instead of a namespace
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "netns")]
    tables: Option<PathBuf>,
    /// Routes of FRR's zebra, which connects here (FPM), in the place of those
    /// that are there; of this host only, and port 2620 unless said
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = fpm_address, conflicts_with = "pcap_in")]
    fpm: Option<SocketAddr>,
    /// Routes of a collector's file (MRT) in the place of those that are there;
    /// may be given several times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "fpm")]
    routes: Vec<PathBuf>,
    /// Of those files, the routes of this peer, such as peer-192.0.2.1
    #[arg(long, value_name = "NAME", requires = "routes")]
    source: Option<String>,
    /// Translate addresses, by natd's rules in a file
    #[arg(long, value_name = "RULES", value_hint = ValueHint::FilePath, requires = "outside")]
    nat: Option<PathBuf>,
    /// A link outside of the translation; may be given several times
    #[arg(long, value_name = "LINK", requires = "nat", value_delimiter = ',')]
    outside: Vec<String>,
    #[command(flatten)]
    beside: crate::nat::Beside,
    /// Lower what TCP announces as its largest segment, of both families and
    /// both ways: to N bytes, over IPv6 to 20 less
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(536..))]
    clamp_mss: Option<u16>,
    /// Discard what comes from inside with a source that is not routed by
    /// where it came from (strict), or not at all (loose)
    #[arg(long, value_name = "HOW", value_enum)]
    source_check: Option<SourceWord>,
    /// Forward although the kernel would do something that is left out here:
    /// policy rules that look at more than the destination
    #[arg(long, value_name = "WHAT", value_enum)]
    accept: Vec<Accepted>,
    /// Threads, each with a queue of every device; with --nat also with a
    /// part of the inside hosts and of each alias address's ports
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// The counters as one JSON object
    #[arg(short, long)]
    json: bool,
}

/// What of the kernel's may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Accepted {
    /// Policy rules by source, incoming link, mark and the like
    Rule,
}

/// What sources are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SourceWord {
    /// A route to it that leads out
    Loose,
    /// A best route to it that leads out by where it came from
    Strict,
}

impl From<SourceWord> for SourceCheck {
    fn from(word: SourceWord) -> Self {
        match word {
            SourceWord::Loose => Self::Loose,
            SourceWord::Strict => Self::Strict,
        }
    }
}

/// A device and the link that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Device {
    name: String,
    link: String,
}

fn device(text: &str) -> Result<Device, String> {
    let (name, link) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() || link.is_empty() {
        return Err("a device, or a device and a link, like tun0=eth1".to_owned());
    }
    Ok(Device {
        name: name.to_owned(),
        link: link.to_owned(),
    })
}

impl Forward {
    /// Whether policy rules may be passed over.
    fn accepts_rules(&self) -> bool {
        self.accept.contains(&Accepted::Rule)
    }

    /// How its workers forward.
    fn settings(&self) -> Settings {
        Settings {
            clamp_mss: self.clamp_mss,
            source_check: self
                .source_check
                .map_or_else(SourceCheck::default, Into::into),
            ..Settings::default()
        }
    }
}

fn fpm_address(text: &str) -> Result<SocketAddr, String> {
    feed::loopback_address(text, feed::FPM_PORT)
}

/// `fingerpost forward` as the command line knows it.
pub fn command() -> Command {
    let command = Forward::augment_args(Command::new("forward"))
        .about("Forward packets by the tables: captures, TUN devices");
    let of_devices = OF_LASTING.into_iter().chain(["nat_control", "nat_state"]);
    of_devices.fold(command, |command, option| {
        command.mut_arg(option, |option| option.requires("nat").requires("tun"))
    })
}

/// Reads what [`command`] matched.
pub fn parse(matches: &ArgMatches) -> Result<Forward, clap::Error> {
    Forward::from_arg_matches(matches)
}

/// Runs it to the end: of the capture, or by Ctrl-C.
/// `read` reads the files of `--tables` and `--routes`.
pub fn run(asked: &Forward, read: &Readers) -> anyhow::Result<ExitCode> {
    let report = match &asked.pcap_in {
        Some(input) => capture::run(asked, read, input)?,
        None => devices::run(asked, read)?,
    };
    let mut out = io::stdout().lock();
    match report.write(asked.json, &mut out) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        done => done.context("writing the counters")?,
    }
    if !report.failures.is_empty() {
        bail!("{}", report.failures.join("; "));
    }
    if let Some(error) = report.state_error {
        return Err(error);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_a_translation_wants_one() {
        let refused = |options: &str| {
            let line = format!("forward --tables F --tun ta {options}");
            let refused = command().try_get_matches_from(line.split_whitespace());
            refused.err().map(|error| error.to_string())
        };
        for options in [
            "--agentx /run/master --notify-mappings 5",
            "--log-journal D",
            "--log-syslog udp://::1:514",
            "--log-ipfix ::1:4739",
            "--log-sessions",
            "--log-ca F",
            "--nat-control S",
            "--nat-state F",
        ] {
            let said = refused(options).unwrap_or_default();
            assert!(said.contains("--nat <RULES>"), "{options}: {said}");
            let with = format!("{options} --nat R --outside w");
            assert_eq!(refused(&with), None, "{options}");
        }
        assert_eq!(refused(""), None);
    }
}
