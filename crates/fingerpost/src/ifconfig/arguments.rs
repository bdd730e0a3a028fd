//! The command line, of both kinds of ifconfig at once.

use std::ffi::OsString;

use clap::{ArgAction, Parser, ValueEnum};
use linux::Namespace;
use view::ifconfig::{Style, Which};

use crate::foreign::{self, Called};

/// Show and change links and their addresses.
///
/// Two tools in one: FreeBSD's ifconfig(8) and that of Linux's net-tools.
/// Run as `fingerpost ifconfig`, it writes FreeBSD's layout and all links;
/// run by the name `ifconfig` (a link to the program), net-tools' layout and
/// counters, and the links that are up unless -a. --style chooses either.
/// Words behind a link's name change it; each style has its own.
#[derive(Debug, Parser)]
#[command(
    name = "fingerpost ifconfig",
    version,
    disable_version_flag = true,
    override_usage = "fingerpost ifconfig [-a] [-u|-d] [-s|-l] [--style bsd|linux] [IF [WORD …]]",
    after_help = "\
What changes a link in BSD's words: [inet|inet6] ADDRESS[/LEN] [DESTINATION]
[netmask MASK|prefixlen LEN] [broadcast ADDRESS] [alias|-alias], up, down,
ether ADDRESS, mtu BYTES, name NAME, description TEXT, [-]arp, [-]promisc,
[-]allmulti, destroy. In net-tools': ADDRESS[/LEN], netmask MASK,
broadcast ADDRESS, pointopoint ADDRESS, add|del ADDRESS[/LEN],
hw ether ADDRESS, mtu BYTES, txqueuelen PACKETS, name NAME, up, down, [-]arp,
[-]promisc, [-]allmulti, [-]multicast, [-]dynamic, [-]trailers; IF may be an
alias (eth0:1), an address with a label.
In the net-tools layout, addresses with a label (v0:1) have blocks of their
own, as there; the others of a link are all in its block, where net-tools
shows the first only."
)]
struct Arguments {
    /// Display the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
    /// All links, also those that are down
    #[arg(short, long)]
    all: bool,
    /// Only links that are up
    #[arg(short, long, conflicts_with_all = ["all", "down"])]
    up: bool,
    /// Only links that are down
    #[arg(short, long, conflicts_with = "all")]
    down: bool,
    /// A line a link, with counters: net-tools' -s
    #[arg(short, long)]
    short: bool,
    /// Names only: FreeBSD's -l
    #[arg(short = 'l', long, conflicts_with = "short")]
    list: bool,
    /// Accepted, without effect
    #[arg(short, long)]
    verbose: bool,
    /// Whose output is imitated [default: linux when called as `ifconfig`, else bsd]
    #[arg(long, value_enum)]
    style: Option<Tool>,
    /// List from the kernel, also where a daemon runs
    #[arg(long)]
    direct: bool,
    /// A network namespace by name, path or process id
    #[arg(long, value_name = "NAME|PATH|PID")]
    netns: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    Bsd,
    Linux,
}

/// What is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// Which links, unless one is named.
    pub which: Which,
    /// In which layout.
    pub style: Style,
    /// In this namespace.
    pub netns: Option<String>,
    /// From the kernel, also where a daemon runs.
    pub direct: bool,
    /// The link, and what is to be done with it.
    pub words: Vec<String>,
    /// An option that net-tools does not know.
    pub unknown: Option<String>,
}

impl Wanted {
    /// Whether it is net-tools'.
    pub fn is_linux(&self) -> bool {
        matches!(self.style, Style::Linux | Style::LinuxShort)
    }

    /// The namespace.
    pub fn namespace(&self) -> Result<Namespace, linux::Error> {
        match &self.netns {
            Some(spec) => Namespace::open(spec),
            None => Namespace::current(),
        }
    }
}

/// Options that have a value behind them.
const WITH_VALUE: [&str; 2] = ["--style", "--netns"];
/// Those of net-tools and ours; it takes each by itself.
const KNOWN: [&str; 13] = [
    "-a",
    "-s",
    "-v",
    "-V",
    "-h",
    "-u",
    "-d",
    "-l",
    "--version",
    "--help",
    "--direct",
    "--style",
    "--netns",
];
/// Other names of theirs.
const ALSO: [(&str, &str); 3] = [("-version", "-V"), ("-help", "-h"), ("-?", "-h")];

/// A command line in parts: words begin where options end.
#[derive(Default)]
struct Split {
    options: Vec<OsString>,
    unknown: Option<String>,
    words: Vec<String>,
}

fn split(arguments: Vec<OsString>, called: Called) -> Split {
    let mut split = Split::default();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = foreign::text_of(&argument);
        if !text.starts_with('-') {
            split.words.push(text);
            break;
        }
        if called == Called::ByItsName && !is_known(&text) {
            split.unknown.get_or_insert(text);
            continue;
        }
        let also = ALSO.iter().find(|(theirs, _)| *theirs == text);
        split
            .options
            .push(also.map_or(argument, |(_, ours)| ours.into()));
        if WITH_VALUE.contains(&text.as_str()) {
            split.options.extend(rest.next());
        }
    }
    split.words.extend(rest.map(|word| foreign::text_of(&word)));
    split
}

/// Whether net-tools or we know an option; each stands by itself.
fn is_known(text: &str) -> bool {
    let also = ALSO.iter().any(|(theirs, _)| *theirs == text);
    also || KNOWN.iter().any(|known| {
        let value = text.strip_prefix(known);
        value.is_some_and(|value| value.is_empty() || value.starts_with('='))
    })
}

/// Reads the command line.
pub fn parse(arguments: Vec<OsString>, called: Called) -> Result<Wanted, clap::Error> {
    let (name, by_default) = match called {
        Called::ByItsName => ("ifconfig", Tool::Linux),
        Called::OfFingerpost => ("fingerpost ifconfig", Tool::Bsd),
    };
    let Split {
        options,
        unknown,
        words,
    } = split(arguments, called);
    let arguments =
        Arguments::try_parse_from(std::iter::once(OsString::from(name)).chain(options))?;
    let tool = arguments.style.unwrap_or(by_default);
    Ok(Wanted {
        which: match tool {
            _ if arguments.up => Which::Up,
            _ if arguments.down => Which::Down,
            Tool::Linux if !arguments.all => Which::Up,
            _ => Which::All,
        },
        style: match tool {
            _ if arguments.short => Style::LinuxShort,
            _ if arguments.list => Style::BsdNames,
            Tool::Bsd => Style::Bsd,
            Tool::Linux => Style::Linux,
        },
        netns: arguments.netns,
        direct: arguments.direct,
        words,
        unknown,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_style_follows_the_name_unless_it_is_said() {
        Arguments::command().debug_assert();
        for (line, called, style, which) in [
            ("", Called::OfFingerpost, Style::Bsd, Which::All),
            ("-a", Called::OfFingerpost, Style::Bsd, Which::All),
            ("-u", Called::OfFingerpost, Style::Bsd, Which::Up),
            ("-l", Called::OfFingerpost, Style::BsdNames, Which::All),
            ("", Called::ByItsName, Style::Linux, Which::Up),
            ("-a", Called::ByItsName, Style::Linux, Which::All),
            ("-a -s", Called::ByItsName, Style::LinuxShort, Which::All),
            ("-a --style bsd", Called::ByItsName, Style::Bsd, Which::All),
            ("-d", Called::ByItsName, Style::Linux, Which::Down),
        ] {
            let words = line.split_whitespace().map(OsString::from).collect();
            let wanted = parse(words, called).unwrap();
            assert_eq!((wanted.style, wanted.which), (style, which), "{line}");
        }
    }
}
