//! `fingerpost router`: packets forwarded inside an XDP program on real
//! links, beside a kernel that stays in charge, and questions to it. Called by
//! the command line.
//!
//! - `obstacles`: what the kernel would do on the way beside routing.
//! - `ports`: the links that packets are forwarded between.
//! - `watching`: looks at both, again and again, until it is told to end.
//! - `neighbours`: next hops that only we use, kept fresh by the kernel.
//! - `standing`: how it stands, for questions; `control`: the socket that they
//!   come by; `asking`, `shown`: the other end of it.

mod asking;
mod control;
mod neighbours;
mod obstacles;
mod ports;
mod shown;
mod standing;
mod watching;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum, ValueHint};

use obstacles::Kind;

/// Where the control socket is when nothing is said.
const USUAL: &str = "/run/fingerpost-router.sock";

const AFTER_HELP: &str = "\
Packets between the named links are forwarded at XDP, by the kernel's own routes,
rules, neighbours and MTUs. Whatever else comes goes up to the kernel, which does
with it what it always did: packets for this host, ARP and neighbour discovery,
multicast, fragments, options, ICMP errors, VLANs, what leaves by other links.
When this process ends, by whatever signal, the kernel forwards again.
  fingerpost router --on eth1 --on eth2
  fingerpost router reasons
What the kernel would do on the way and the program does not (nftables, tc,
shaping, IPsec, ...) is refused by name, or accepted with --accept: then packets
that are forwarded here do not meet it. When it appears later, its packets are
the kernel's until it is gone; with --obstacle tell it is only told.
Needs Linux 5.18 with BPF, a driver with XDP, and root (CAP_NET_ADMIN, CAP_BPF,
CAP_PERFMON).
Exit status: 0 done, 1 it failed, 2 the command line is wrong.";

/// What is to be done when an obstacle appears while packets are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Later {
    /// What it meets is the kernel's, until it is gone
    Kernel,
    /// It is told, and packets pass it by
    Tell,
}

/// `fingerpost router`: forwarding, or a question to what forwards.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Router {
    /// A link that packets are forwarded from and to; at least two
    #[arg(long, value_name = "LINK", required = true)]
    on: Vec<String>,
    /// Obstacles that do not matter
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    accept: Vec<Kind>,
    /// What happens when another obstacle appears later
    #[arg(long, value_name = "WHAT", value_enum, default_value = "kernel")]
    obstacle: Later,
    /// Where questions are answered
    #[arg(long, value_name = "PATH", default_value = USUAL, value_hint = ValueHint::FilePath)]
    control: PathBuf,
    /// Not there yet: see `nat run` and `forward --nat`
    #[arg(long, value_name = "FILE", hide = true)]
    nat: Option<PathBuf>,
    #[command(subcommand)]
    question: Option<Question>,
}

/// What may be asked.
#[derive(Debug, Subcommand)]
enum Question {
    /// How ports and obstacles stand
    Status(At),
    /// Packets and bytes by port
    Counters(At),
    /// Packets by port and by what became of them
    Reasons(At),
}

/// Which router.
#[derive(Debug, Args)]
struct At {
    /// The control socket of what forwards (its `--control`)
    #[arg(long, value_name = "PATH", default_value = USUAL, value_hint = ValueHint::FilePath)]
    control: PathBuf,
    /// As JSON
    #[arg(short, long)]
    json: bool,
}

/// `fingerpost router` as the command line knows it.
pub fn command() -> Command {
    Router::augment_args(Command::new("router"))
        .about("Forward packets at XDP between links, beside the kernel")
}

/// Reads what [`command`] matched; what makes no sense is refused.
pub fn parse(matches: &ArgMatches) -> Result<Router, clap::Error> {
    Router::from_arg_matches(matches)
}

/// Forwards until SIGINT or SIGTERM, or asks what does.
pub fn run(router: &Router) -> anyhow::Result<ExitCode> {
    match &router.question {
        Some(Question::Status(at)) => asking::ask(at, control::Asked::Status),
        Some(Question::Counters(at)) => asking::ask(at, control::Asked::Counters),
        Some(Question::Reasons(at)) => asking::ask(at, control::Asked::Reasons),
        None => forward(router),
    }
}

fn forward(router: &Router) -> anyhow::Result<ExitCode> {
    if router.nat.is_some() {
        bail!(
            "--nat is not there yet for `router`: translate by `fingerpost nat run` or \
             `fingerpost forward --nat`"
        );
    }
    if let Some(kind) = router.accept.iter().find(|kind| !kind.is_acceptable()) {
        bail!("--accept {}: this cannot be passed by", kind.name());
    }
    if router.on.len() < 2 {
        bail!("--on: packets go from one link to another: name two at least");
    }
    for (at, name) in router.on.iter().enumerate() {
        if router.on[..at].contains(name) {
            bail!("--on {name}: it is named twice");
        }
    }
    watching::run(router)?;
    Ok(ExitCode::SUCCESS)
}

/// Says something on standard error, which a service manager keeps.
fn tell(line: impl std::fmt::Display) {
    // Nobody is left to hear of a failure.
    let _ = writeln!(io::stderr(), "fingerpost: {line}");
}
