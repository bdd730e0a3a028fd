//! The command lines of route(8) and of what is known here of netstat(8).

use std::ffi::OsString;

use clap::{ArgAction, Parser};

use super::listing::Columns;

/// What is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// Of what.
    pub what: What,
    /// Addresses as numbers.
    pub numeric: bool,
    /// In this namespace.
    pub netns: Option<String>,
    /// From the kernel, also where a daemon runs.
    pub direct: bool,
}

/// What is listed.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// Routes.
    Routes(Columns),
    /// The kernel's cache of routes, which is no more: its heading.
    Cache(Columns),
    /// Interfaces; `all`: also those that are down.
    Interfaces {
        /// Those that are down, too.
        all: bool,
        /// As ifconfig shows them.
        extended: bool,
    },
    /// What is not for here, and what to do instead.
    Refused(String),
}

/// What route(8) changes routes by.
const VERBS: [&str; 4] = ["add", "del", "delete", "flush"];

/// What both have.
#[derive(Debug, clap::Args)]
struct Common {
    /// Addresses as numbers, without asking for names
    #[arg(short, long)]
    numeric: bool,
    /// Other columns; twice: all
    #[arg(short, long, action = ArgAction::Count)]
    extend: u8,
    /// Accepted, without effect
    #[arg(short, long)]
    verbose: bool,
    /// The routing table (without it too)
    #[arg(short = 'F', long)]
    fib: bool,
    /// The routing cache, which Linux has no more
    #[arg(short = 'C', long, conflicts_with = "fib")]
    cache: bool,
    /// The address family: inet
    #[arg(short = 'A', value_name = "FAMILY")]
    family: Option<String>,
    /// IPv4
    #[arg(short = '4', long)]
    inet: bool,
    /// IPv6: for `fingerpost route -6`
    #[arg(short = '6', long)]
    inet6: bool,
    /// List from the kernel, also where a daemon runs
    #[arg(long)]
    direct: bool,
    /// A network namespace by name, path or process id
    #[arg(long, value_name = "NAME|PATH|PID")]
    netns: Option<String>,
}

impl Common {
    fn is_other_family(&self) -> bool {
        let family = self.family.as_deref();
        self.inet6 || family.is_some_and(|family| family != "inet")
    }

    fn routes(&self, columns: Columns) -> What {
        match () {
            () if self.is_other_family() => What::Refused(
                "only IPv4 is listed here; `fingerpost route -6` lists the routes of IPv6"
                    .to_owned(),
            ),
            () if self.cache => What::Cache(columns),
            () => What::Routes(columns),
        }
    }

    fn wanted(self, what: What) -> Wanted {
        Wanted {
            what,
            numeric: self.numeric,
            netns: self.netns,
            direct: self.direct,
        }
    }
}

/// Show the routes of the main table, as net-tools' route(8) does. Nothing is
/// changed with it.
#[derive(Debug, Parser)]
#[command(
    name = "route",
    version,
    disable_version_flag = true,
    args_override_self = true,
    after_help = "add, del and flush are refused, with the command that does it."
)]
struct Route {
    #[command(flatten)]
    common: Common,
    /// Display the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// Show routes (-r) or interfaces (-i), as net-tools' netstat(8) does.
#[derive(Debug, Parser)]
#[command(
    name = "netstat",
    version,
    disable_version_flag = true,
    args_override_self = true
)]
struct Netstat {
    #[command(flatten)]
    common: Common,
    /// Routes
    #[arg(short, long)]
    route: bool,
    /// Interfaces
    #[arg(short, long, conflicts_with = "route")]
    interfaces: bool,
    /// Interfaces that are down, too
    #[arg(short, long)]
    all: bool,
    /// Of sockets: not for here
    #[arg(short, long)]
    tcp: bool,
    /// Of sockets: not for here
    #[arg(short, long)]
    udp: bool,
    /// Of sockets: not for here
    #[arg(short, long)]
    listening: bool,
    /// Of sockets: not for here
    #[arg(short, long)]
    programs: bool,
    /// Of protocols: not for here
    #[arg(short, long)]
    statistics: bool,
    /// Of multicast groups: not for here
    #[arg(short, long)]
    groups: bool,
    /// Again and again: `fingerpost route --watch` tells changes
    #[arg(short, long)]
    continuous: bool,
    /// Display the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
}

fn behind(name: &str, arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from(name)).chain(arguments)
}

/// Reads the command line of route(8).
pub fn route(mut arguments: Vec<OsString>) -> Result<Wanted, clap::Error> {
    // What stands behind a verb has options of its own.
    let is_verb = |word: &OsString| VERBS.iter().any(|verb| word == verb);
    let verb = arguments.iter().position(is_verb);
    let change = arguments.split_off(verb.unwrap_or(arguments.len()));
    let words = change
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let route = Route::try_parse_from(behind("route", arguments))?;
    let what = match instead(&words) {
        Some(command) => What::Refused(format!(
            "route only lists here; to change a route: {command}"
        )),
        None => route.common.routes(match route.common.extend {
            0 => Columns::Metric,
            1 => Columns::Mss,
            _ => Columns::All,
        }),
    };
    Ok(route.common.wanted(what))
}

/// Reads the command line of netstat(8).
pub fn netstat(arguments: Vec<OsString>) -> Result<Wanted, clap::Error> {
    let netstat = Netstat::try_parse_from(behind("netstat", arguments))?;
    let common = netstat.common;
    let of_sockets = netstat.tcp || netstat.udp || netstat.listening || netstat.programs;
    let refused = |why: &str| What::Refused(why.to_owned());
    let what = match () {
        () if netstat.continuous => refused(
            "-c is not for here: `fingerpost route --watch` and `fingerpost link --watch` tell \
             each change as it happens",
        ),
        () if netstat.statistics || netstat.groups => refused(
            "only routes (-r) and interfaces (-i) are listed here; `nstat` lists protocols, \
             `ip maddress` groups",
        ),
        () if of_sockets || !(netstat.route || netstat.interfaces) => {
            refused("only routes (-r) and interfaces (-i) are listed here; `ss` lists sockets")
        }
        () if netstat.interfaces => What::Interfaces {
            all: netstat.all,
            extended: common.extend > 0,
        },
        () => common.routes(match common.extend {
            0 => Columns::Mss,
            1 => Columns::Metric,
            _ => Columns::All,
        }),
    };
    Ok(common.wanted(what))
}

/// What changes a route instead; `None`: nothing is to be changed.
fn instead(words: &[String]) -> Option<String> {
    let (verb, words) = words.split_first()?;
    let verb = match verb.as_str() {
        "add" => "add",
        "del" | "delete" => "delete",
        _ => return Some("fingerpost route add|delete PREFIX via ADDRESS".to_owned()),
    };
    let (mut prefix, mut mask, mut rest) = ("PREFIX", None, String::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = |placeholder| words.next().unwrap_or(placeholder);
        match word {
            "-net" | "-host" => {}
            "netmask" => mask = Some(value("MASK")),
            "gw" => rest += &format!(" via {}", value("ADDRESS")),
            "dev" => rest += &format!(" dev {}", value("LINK")),
            "metric" => rest += &format!(" metric {}", value("METRIC")),
            "mss" => rest += &format!(" advmss {}", value("BYTES")),
            "window" => rest += &format!(" window {}", value("BYTES")),
            "irtt" => rest += &format!(" rtt {}ms", value("MILLISECONDS")),
            "reject" => rest.insert_str(0, " unreachable"),
            other => prefix = other,
        }
    }
    let len = mask.map(|mask| mask.parse::<std::net::Ipv4Addr>().map(u32::from));
    let len = match len {
        Some(Ok(mask)) => format!("/{}", mask.leading_ones()),
        Some(Err(_)) => "/LEN".to_owned(),
        None => String::new(),
    };
    Some(format!("fingerpost route {verb} {prefix}{len}{rest}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_columns_are_those_of_the_tool() {
        Route::command().debug_assert();
        Netstat::command().debug_assert();
        for (line, columns) in [
            ("", Columns::Metric),
            ("-n", Columns::Metric),
            ("-ne", Columns::Mss),
            ("-nee", Columns::All),
            ("-Fnv --inet", Columns::Metric),
        ] {
            assert_eq!(route(words(line)).unwrap().what, What::Routes(columns));
        }
        for (line, columns) in [
            ("-rn", Columns::Mss),
            ("-rne", Columns::Metric),
            ("-r -n -e -e", Columns::All),
        ] {
            assert_eq!(netstat(words(line)).unwrap().what, What::Routes(columns));
        }
    }

    #[test]
    fn what_is_not_for_here_is_refused_with_what_is() {
        for (line, says) in [
            ("", "`ss`"),
            ("-tlnp", "`ss`"),
            ("-s", "nstat"),
            ("-rn6", "route -6"),
            ("-rc", "--watch"),
        ] {
            let What::Refused(why) = netstat(words(line)).unwrap().what else {
                panic!("{line} was taken");
            };
            assert!(why.contains(says), "{line}: {why}");
        }
        assert!(netstat(words("-x")).is_err() && route(words("-x")).is_err());
        for (line, command) in [
            (
                "add -net 10.0.0.0 netmask 255.0.0.0 gw 192.0.2.1 metric 5 dev em1",
                "fingerpost route add 10.0.0.0/8 via 192.0.2.1 metric 5 dev em1",
            ),
            (
                "del -host 10.0.0.1 dev em1",
                "fingerpost route delete 10.0.0.1 dev em1",
            ),
            (
                "add default gw 192.0.2.1",
                "fingerpost route add default via 192.0.2.1",
            ),
            ("flush", "fingerpost route add|delete PREFIX via ADDRESS"),
        ] {
            let What::Refused(why) = route(words(line)).unwrap().what else {
                panic!("{line} was taken");
            };
            assert!(why.ends_with(command), "{line}: {why}");
        }
    }
}
