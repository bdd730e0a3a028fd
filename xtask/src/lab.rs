//! `cargo xtask lab`: a situation of the reports in a namespace, to be
//! looked at with any tool.

mod router;
mod vlans;
pub mod vm;

use std::process::ExitCode;
use std::time::Instant;

use ::lab::Netns;
use ::lab::situation::{aliases, links, neighbours, routes};
use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::host::{self, say};

/// How the namespaces of this command are called.
const PREFIX: &str = "lab-";

/// Builds a situation, or takes one down.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which situation; `down` removes one
    situation: What,
    /// How many rows, or seconds; for `down`: which situation
    #[arg(value_name = "N")]
    argument: Option<String>,
    /// Name of the namespace; `lab-SITUATION` unless said
    #[arg(long)]
    netns: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// 4,096 alias addresses on one interface, and N neighbours (4,096)
    Aliases,
    /// N permanent neighbours on one interface (100,000)
    Neighbours,
    /// N interfaces with an address each (4,000)
    Links,
    /// N synthetic BGP-like IPv4 routes (1,000,000)
    Routes,
    /// N synthetic BGP-like IPv6 routes (200,000)
    Routes6,
    /// A virtual machine with Debian's kernel: links of every kind, end to end
    Vm,
    /// Three routers with FRR, forwarding at XDP, under load for N seconds (600)
    Router,
    /// User-mode Linux, whose bridges filter VLANs: the test of Q-BRIDGE-MIB
    Vlans,
    /// Removes the situation named next
    Down,
}

/// Does it.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let what = arguments.situation;
    match what {
        What::Down => return down(arguments),
        What::Vm => return vm::run(),
        What::Vlans => return vlans::run(),
        _ => {}
    }
    let count = match &arguments.argument {
        None => what.usual_count(),
        Some(text) => match text.replace(['_', ','], "").parse() {
            Ok(count) => count,
            Err(_) => bail!("`{text}` is not a number"),
        },
    };
    if let What::Router = what {
        return router::run(count);
    }
    let name = match &arguments.netns {
        Some(name) => name.clone(),
        None => format!("{PREFIX}{}", what.name()),
    };
    if Netns::open(&name).is_ok() {
        bail!("there is a namespace {name} already; {}", removal(&name));
    }
    let start = Instant::now();
    let netns = Netns::named(&name)?;
    what.build(&netns, count)?;
    netns.keep();
    let seconds = start.elapsed().as_secs_f32();
    say(format_args!(
        "{} in the network namespace {name}, built in {seconds:.1} s",
        what.told(count)
    ));
    say(format_args!(
        "  look at it:  ip netns exec {name} cargo run --release -- {}",
        what.look()
    ));
    say(format_args!(
        "               ip netns exec {name} {}",
        what.peer()
    ));
    say(format_args!(
        "  mirror it:   cargo run --release -- up --netns {name}"
    ));
    say(format_args!("  {}", removal(&name)));
    Ok(ExitCode::SUCCESS)
}

fn down(arguments: &Arguments) -> Result<ExitCode> {
    let name = match (&arguments.netns, &arguments.argument) {
        (Some(name), _) => name.clone(),
        (None, Some(situation)) => format!("{PREFIX}{}", situation.trim_start_matches(PREFIX)),
        (None, None) => bail!("which one? `cargo xtask lab down NAME`"),
    };
    ::lab::remove(&name)?;
    say(format_args!("{name} is gone"));
    Ok(ExitCode::SUCCESS)
}

fn removal(name: &str) -> String {
    match name.strip_prefix(PREFIX) {
        Some(situation) => format!("remove it:   cargo xtask lab down {situation}"),
        None => format!("remove it:   cargo xtask lab down --netns {name}"),
    }
}

impl What {
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn usual_count(self) -> usize {
        match self {
            What::Aliases => aliases::ADDRESSES as usize,
            What::Neighbours => 100_000,
            What::Links => 4_000,
            What::Routes => 1_000_000,
            What::Routes6 => 200_000,
            What::Router => router::USUAL_SECONDS,
            What::Down | What::Vm | What::Vlans => 0,
        }
    }

    fn build(self, netns: &Netns, count: usize) -> Result<()> {
        match self {
            What::Aliases => aliases::build(netns, count),
            What::Neighbours => neighbours::build(netns, count),
            What::Links => links::build(netns, count),
            What::Routes => routes::build(netns, routes::Family::V4, count),
            What::Routes6 => routes::build(netns, routes::Family::V6, count),
            What::Router | What::Down | What::Vm | What::Vlans => Ok(()),
        }
    }

    fn told(self, count: usize) -> String {
        match self {
            What::Aliases => format!(
                "{} alias addresses and {count} neighbours",
                aliases::ADDRESSES
            ),
            What::Neighbours => format!("{count} neighbours"),
            What::Links => format!("{count} interfaces"),
            What::Routes | What::Routes6 => format!("{count} synthetic BGP-like routes"),
            What::Router | What::Down | What::Vm | What::Vlans => String::new(),
        }
    }

    fn look(self) -> &'static str {
        match self {
            What::Aliases => "arp -an",
            What::Links => "ifconfig -a",
            What::Routes => "route --count",
            What::Routes6 => "route -6 --count",
            What::Neighbours | What::Router | What::Down | What::Vm | What::Vlans => "neigh",
        }
    }

    /// The same question to today's tools.
    fn peer(self) -> &'static str {
        match self {
            What::Aliases => "arp -an",
            What::Links => "ifconfig -a",
            What::Routes => "ip route",
            What::Routes6 => "ip -6 route",
            What::Neighbours | What::Router | What::Down | What::Vm | What::Vlans => "ip neigh",
        }
    }
}
