//! `fingerpost router`: packets forwarded inside an XDP program on real
//! links, beside a kernel that stays in charge, and questions to it. Called by
//! the command line.
//!
//! - `obstacles`: what the kernel would do on the way beside routing.
//! - `ports`: the links that packets are forwarded between.
//! - `watching`: looks at both, again and again, until it is told to end.
//! - `translating`: the engine beside the program, where IPv4 is translated.
//! - `neighbours`: next hops that only we use, kept fresh by the kernel.
//! - `configured`: what stands in the configuration file.
//! - `control`: the socket that questions come by; `asking`, `shown`: the other
//!   end of it.

mod asking;
mod configured;
mod control;
mod neighbours;
mod obstacles;
mod ports;
mod shown;
mod translating;
mod watching;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum, ValueHint};
use dataplane::xdp;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::Gid;
use serde::Deserialize;

pub use asking::report;
pub use configured::{Configured, USUAL_CONTROL, section};
use obstacles::Kind;

use crate::nat::OF_LASTING;
use crate::nat::live::EngineOptions;

const AFTER_HELP: &str = "\
Packets between the named links are forwarded at XDP, by the kernel's own routes,
rules, neighbours and MTUs. Whatever else comes goes up to the kernel, which does
with it what it always did: packets for this host, ARP and neighbour discovery,
multicast, fragments, options, ICMP errors, VLANs, what leaves by other links.
When this process ends, by whatever signal, the kernel forwards again (but see
--nat).
  fingerpost router --on eth1 --on eth2
  fingerpost router reasons
With --nat IPv4 that leaves by --outside is translated: established flows at XDP,
all else by an engine that the program hands it to (devices fpnat-out, fpnat-in).
When this process is gone, the program stays on the links and drops what was to
be translated, unless --without open; `router release` takes it off.
  fingerpost router --on eth1 --on eth2 --nat /etc/nat.conf --outside eth2
  fingerpost nat show flows
What no option says, [router] of the configuration does, one by one: `accept`,
`obstacle` and `group` also where --on names the links. The packaged service goes
by it alone (`systemctl enable --now fingerpost-router`). `fingerpost up` beside it
tells its counters over HTTP, in /metrics, in `status` and in `top`.
Options of a question stand behind it: `fingerpost router status --control PATH`.
What the kernel would do on the way and the program does not (nftables, tc,
shaping, IPsec, ...) is refused by name, or accepted with --accept: then packets
that are forwarded here do not meet it. When it appears later, its packets are
the kernel's until it is gone; with --obstacle tell it is only told.
Needs Linux 5.18 with BPF, a driver with XDP, and root (CAP_NET_ADMIN, CAP_BPF,
CAP_PERFMON).
Exit status: 0 done, 1 it failed, 2 the command line is wrong.";

/// What is to be done when an obstacle appears while packets are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Later {
    /// What it meets is the kernel's, until it is gone
    #[default]
    Kernel,
    /// It is told, and packets pass it by
    Tell,
}

/// What becomes of what is to be translated while nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// It is dropped; `router release` gives the links back to the kernel
    #[default]
    Closed,
    /// The kernel forwards it as it is
    Open,
}

/// `fingerpost router`: forwarding, or a question to what forwards.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Router {
    /// A link that packets are forwarded from and to; at least two
    #[arg(long, value_name = "LINK")]
    on: Vec<String>,
    /// Obstacles that do not matter
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    accept: Vec<Kind>,
    /// What happens when another obstacle appears later [default: kernel]
    #[arg(long, value_name = "WHAT", value_enum)]
    obstacle: Option<Later>,
    #[command(flatten)]
    from: From,
    /// A group that may ask, beside root
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Translate IPv4 that leaves by --outside, by natd's rules in a file
    #[arg(long, value_name = "RULES", value_hint = ValueHint::FilePath, requires = "outside")]
    nat: Option<PathBuf>,
    /// A link outside of the translation, one of --on; may be given several times
    #[arg(long, value_name = "LINK", requires = "nat", value_delimiter = ',')]
    outside: Vec<String>,
    /// What becomes of what is to be translated while nobody does: after a
    /// kill, before a start, while the engine hangs [default: closed]
    #[arg(long, value_name = "WHAT", value_enum, requires = "nat")]
    without: Option<Without>,
    #[command(flatten)]
    engine: EngineOptions,
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
    /// Take the program off links where a closed translation left it: the
    /// kernel forwards there again, and translates nothing
    Release(Release),
}

/// Which links.
#[derive(Debug, Args)]
struct Release {
    /// A link; may be given several times
    #[arg(long, value_name = "LINK", required = true)]
    on: Vec<String>,
}

/// Where things are said that the command line does not say.
#[derive(Debug, Args)]
struct From {
    /// The configuration [default: /etc/fingerpost/fingerpost.toml, or /etc/fingerpost.toml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// The control socket, where questions are answered [default: /run/fingerpost-router.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,
}

/// Which router.
#[derive(Debug, Args)]
struct At {
    #[command(flatten)]
    from: From,
    /// As JSON
    #[arg(short, long)]
    json: bool,
}

/// `fingerpost router` as the command line knows it.
pub fn command() -> Command {
    let command = Router::augment_args(Command::new("router"))
        .about("Forward packets at XDP between links, beside the kernel")
        // Else a question would pass over what stands before it.
        .args_conflicts_with_subcommands(true);
    OF_LASTING.into_iter().fold(command, |command, option| {
        command.mut_arg(option, |option| option.requires("nat"))
    })
}

/// Reads what [`command`] matched; what makes no sense is refused.
pub fn parse(matches: &ArgMatches) -> Result<Router, clap::Error> {
    Router::from_arg_matches(matches)
}

impl Router {
    /// The configuration to read: a path, or the usual one (`Some(None)`);
    /// `None` for a question that needs nothing of it. Who forwards always
    /// reads it.
    pub fn config(&self) -> Option<Option<&Path>> {
        let from = self.from();
        if matches!(self.question, Some(Question::Release(_))) {
            return None;
        }
        let says_all = from.control.is_some() && self.is_question();
        (from.config.is_some() || !says_all).then_some(from.config.as_deref())
    }

    fn from(&self) -> &From {
        match &self.question {
            None => &self.from,
            Some(Question::Status(at) | Question::Counters(at) | Question::Reasons(at)) => &at.from,
            Some(Question::Release(_)) => &self.from,
        }
    }

    /// Whether it is a question, for which a configuration that may not be
    /// read is none.
    pub fn is_question(&self) -> bool {
        self.question.is_some()
    }

    /// The group that may ask, where the command line or the configuration
    /// names one.
    pub fn group<'a>(&'a self, configured: &'a Configured) -> Option<&'a str> {
        self.group.as_deref().or(configured.group.as_deref())
    }

    /// With what the configuration says where the command line does not.
    fn plan(&self, configured: &Configured, group: Option<Gid>) -> Plan {
        Plan {
            on: said_or(&self.on, &configured.on),
            accept: said_or(&self.accept, &configured.accept),
            obstacle: self.obstacle.unwrap_or(configured.obstacle),
            control: self.control(configured),
            group,
            outside: said_or(&self.outside, &configured.outside),
            translation: self.translation(configured),
        }
    }

    fn translation(&self, configured: &Configured) -> Option<translating::Asked> {
        let rules = self.nat.clone().or_else(|| configured.nat.clone())?;
        Some(translating::Asked {
            rules,
            is_closed: self.without.unwrap_or(configured.without) == Without::Closed,
            beside: self.engine.or(
                configured.nat_control.as_deref(),
                configured.nat_control_group.as_deref(),
                configured.nat_state.as_deref(),
            ),
        })
    }

    fn control(&self, configured: &Configured) -> PathBuf {
        let said = self.from().control.clone();
        said.unwrap_or_else(|| configured.control.clone())
    }
}

fn said_or<T: Clone>(said: &[T], configured: &[T]) -> Vec<T> {
    match said {
        [] => configured.to_vec(),
        said => said.to_vec(),
    }
}

/// What is to be done, wherever it was said.
#[derive(Debug)]
struct Plan {
    on: Vec<String>,
    accept: Vec<Kind>,
    obstacle: Later,
    control: PathBuf,
    group: Option<Gid>,
    /// Links outside of the translation, where there is one.
    outside: Vec<String>,
    translation: Option<translating::Asked>,
}

/// Forwards until SIGINT or SIGTERM, or asks what does. `group` is the number
/// of [`Router::group`], which this process is in.
pub fn run(
    router: &Router,
    configured: &Configured,
    group: Option<Gid>,
) -> anyhow::Result<ExitCode> {
    let control = router.control(configured);
    match &router.question {
        Some(Question::Status(at)) => asking::ask(&control, control::Asked::Status, at.json),
        Some(Question::Counters(at)) => asking::ask(&control, control::Asked::Counters, at.json),
        Some(Question::Reasons(at)) => asking::ask(&control, control::Asked::Reasons, at.json),
        Some(Question::Release(links)) => release(&links.on),
        None => forward(&router.plan(configured, group)),
    }
}

fn forward(plan: &Plan) -> anyhow::Result<ExitCode> {
    configured::check_accepted(&plan.accept).map_err(|wrong| anyhow!("--accept {wrong}"))?;
    if plan.on.is_empty() {
        bail!("which links? --on LINK --on LINK, or `on` in [router] of the configuration");
    }
    configured::check_links(&plan.on).map_err(|wrong| anyhow!("--on: {wrong}"))?;
    configured::check_outside(&plan.outside, &plan.on)
        .map_err(|wrong| anyhow!("--outside: {wrong}"))?;
    watching::run(plan)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives links back to the kernel that a closed translation holds.
fn release(links: &[String]) -> anyhow::Result<ExitCode> {
    let [device, _] = translating::DEVICES;
    if index_of(device).is_ok() {
        bail!("a router is at work here (it has {device}): end it first");
    }
    for link in links {
        let index = index_of(link).with_context(|| format!("there is no link {link}"))?;
        match xdp::release(index).with_context(|| link.clone())? {
            true => tell(format_args!(
                "{link}: the kernel forwards again, untranslated"
            )),
            false => bail!("{link}: there is no program of ours that was left behind"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of a link in this namespace.
fn index_of(link: &str) -> rustix::io::Result<u32> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    name_to_index(&socket, link)
}

/// Says something on standard error, which a service manager keeps.
fn tell(line: impl std::fmt::Display) {
    // Nobody is left to hear of a failure.
    let _ = writeln!(io::stderr(), "fingerpost: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Router, clap::Error> {
        parse(&command().try_get_matches_from(line.split_whitespace())?)
    }

    #[test]
    fn what_stands_before_a_question_is_refused() {
        for before in [
            "--control /run/b.sock",
            "--config F",
            "--on x --accept nft",
            "--group g",
            "--obstacle tell",
        ] {
            for question in ["status", "counters", "reasons"] {
                let refused = parsed(&format!("router {before} {question}")).unwrap_err();
                let said = refused.to_string();
                assert!(said.contains(question), "{before}: {said}");
            }
        }
        let behind = parsed("router status --control /run/b.sock").unwrap();
        let control = behind.control(&Configured::default());
        assert_eq!(control, Path::new("/run/b.sock"));
    }

    #[test]
    fn who_forwards_reads_the_configuration_and_options_go_first() {
        let config = |line| {
            parsed(line)
                .unwrap()
                .config()
                .map(|of| of.map(Path::to_owned))
        };
        assert_eq!(config("router --on a --on b --control S"), Some(None));
        let named = Some(Some(PathBuf::from("F")));
        assert_eq!(config("router --on a --on b --config F"), named);
        assert_eq!(config("router status --config F --control S"), named);
        assert_eq!(config("router status --control S"), None);
        assert_eq!(config("router status"), Some(None));
        let configured = Configured {
            on: vec!["c".to_owned(), "d".to_owned()],
            accept: vec![Kind::Tc],
            obstacle: Later::Tell,
            group: Some("g".to_owned()),
            ..Configured::default()
        };
        let asked = parsed("router --on a --on b --obstacle kernel").unwrap();
        let plan = asked.plan(&configured, None);
        assert_eq!(plan.on, ["a", "b"]);
        assert_eq!(
            (&plan.accept[..], plan.obstacle),
            (&[Kind::Tc][..], Later::Kernel)
        );
        assert_eq!(asked.group(&configured), Some("g"));
    }
}
