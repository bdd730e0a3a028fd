//! The command lines of route(8) and of what is known here of netstat(8),
//! as net-tools reads them.

use std::ffi::OsString;

use super::change::{self, Change};
use super::listing::{Columns, Layout};
use crate::foreign;
use crate::foreign::failed::Failed;
use crate::foreign::getopt::{self, Given, Long};

/// What is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// Of what.
    pub what: What,
    /// In this namespace.
    pub netns: Option<String>,
    /// From the kernel, also where a daemon runs.
    pub direct: bool,
}

/// What is listed, or changed.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// Routes.
    Routes(Routes),
    /// Interfaces.
    Interfaces {
        /// Those that are down, too.
        all: bool,
        /// As ifconfig shows them.
        extended: bool,
    },
    /// A route of one family.
    Change(Change),
    /// The version.
    Version,
    /// What may be asked.
    Help(&'static str),
}

/// Lists of routes.
#[derive(Debug, PartialEq, Eq)]
pub struct Routes {
    /// Of IPv6 or not, in the order of the lists; one said twice is listed
    /// twice.
    pub families: Vec<bool>,
    /// The routing table.
    pub fib: bool,
    /// The routing cache, which Linux has no more.
    pub cache: bool,
    /// How they are written.
    pub layout: Layout,
}

/// The status of words that are wrong, and of those that net-tools has never
/// heard of.
const WRONG_WORDS: u8 = 3;
const NO_FAMILY: u8 = 1;

const ROUTE_USAGE: &str = "\
usage: route [-4|-6|-A FAMILY] [-n] [-e[e]] [-F] [-C]
       route [-4|-6] add|del [-net|-host] TARGET …
  -n  numbers, no names     -e  other columns, twice: all
  -F  the table (default)   -C  the cache, which Linux has no more
  -4, -6, -A inet|inet6     of this family
  --netns NAME|PATH|PID     of this network namespace
  --direct                  from the kernel, also where a daemon runs
  -V  the version";

const NETSTAT_USAGE: &str = "\
usage: netstat -r [-4|-6|-A FAMILY] [-n] [-e[e]] [-F] [-C] [-W]
       netstat -i [-a] [-e] [-n]
  -r  routes                -i  interfaces; -a: those that are down too
  -n  numbers, no names     -e  other columns, twice: all
  -W  names are not cut     -C  the cache of routes, which Linux has no more
  --netns NAME|PATH|PID     of this network namespace
  --direct                  from the kernel, also where a daemon runs
  -V  the version
`ss` lists sockets, `nstat` counters of protocols, `ip maddress` groups.";

/// Our own options, by letters that net-tools has not.
const DIRECT: char = '+';
const NETNS: char = '@';
/// Families that are not for here.
const FAMILY: char = '%';

const COMMON: &[Long] = &[
    ("direct", false, DIRECT),
    ("netns", true, NETNS),
    ("inet", false, '4'),
    ("ip", false, '4'),
    ("tcpip", false, '4'),
    ("inet6", false, '6'),
    ("ax25", false, FAMILY),
    ("netrom", false, FAMILY),
    ("ipx", false, FAMILY),
    ("ddp", false, FAMILY),
    ("appletalk", false, FAMILY),
    ("econet", false, FAMILY),
    ("ash", false, FAMILY),
    ("x25", false, FAMILY),
    ("rose", false, FAMILY),
    ("unix", false, FAMILY),
];

const ROUTE_LONG: &[Long] = &[
    ("extend", false, 'e'),
    ("verbose", false, 'v'),
    ("version", false, 'V'),
    ("numeric", false, 'n'),
    ("symbolic", false, 'N'),
    ("protocol", true, 'A'),
    ("cache", false, 'C'),
    ("fib", false, 'F'),
    ("help", false, 'h'),
];

const NETSTAT_LONG: &[Long] = &[
    ("version", false, 'V'),
    ("interfaces", false, 'i'),
    ("help", false, 'h'),
    ("route", false, 'r'),
    ("statistics", false, 's'),
    ("masquerade", false, 'M'),
    ("groups", false, 'g'),
    ("protocol", true, 'A'),
    ("tcp", false, 't'),
    ("sctp", false, 'S'),
    ("udp", false, 'u'),
    ("udplite", false, 'U'),
    ("raw", false, 'w'),
    ("listening", false, 'l'),
    ("all", false, 'a'),
    ("timers", false, 'o'),
    ("continuous", false, 'c'),
    ("extend", false, 'e'),
    ("programs", false, 'p'),
    ("verbose", false, 'v'),
    ("numeric", false, 'n'),
    ("numeric-hosts", false, 'n'),
    ("numeric-ports", false, 'v'),
    ("numeric-users", false, 'v'),
    ("symbolic", false, 'N'),
    ("cache", false, 'C'),
    ("fib", false, 'F'),
    ("context", false, 'Z'),
    ("wide", false, 'W'),
];

/// What the options of both say.
#[derive(Default)]
struct Said {
    families: Vec<bool>,
    extend: u8,
    numeric: bool,
    wide: bool,
    fib: bool,
    cache: bool,
    direct: bool,
    netns: Option<String>,
    /// Other letters.
    others: String,
}

impl Said {
    fn of(tool: &str, given: &mut Given) -> Result<Self, Failed> {
        let mut said = Self::default();
        for (letter, value) in given.options.drain(..) {
            match letter {
                'e' => said.extend = said.extend.saturating_add(1),
                'n' => said.numeric = true,
                'W' => said.wide = true,
                'F' => said.fib = true,
                'C' => said.cache = true,
                '4' => said.families.push(false),
                '6' => said.families.push(true),
                'A' => said.named(tool, &value.unwrap_or_default())?,
                FAMILY => return Err(no_family(tool, "a family of that name")),
                DIRECT => said.direct = true,
                NETNS => said.netns = value,
                'v' => {}
                other => said.others.push(other),
            }
        }
        Ok(said)
    }

    fn named(&mut self, tool: &str, names: &str) -> Result<(), Failed> {
        for name in names.split(',') {
            match name {
                "inet" | "ip" | "tcpip" => self.families.push(false),
                "inet6" => self.families.push(true),
                _ if COMMON.iter().any(|(known, ..)| *known == name) => {
                    return Err(no_family(tool, name));
                }
                _ => {
                    let text = format!("Unknown address family `{name}'.");
                    return Err(Failed::new(NO_FAMILY, text));
                }
            }
        }
        Ok(())
    }

    fn routes(&self, columns: Columns) -> What {
        let families = match self.families.as_slice() {
            [] => vec![false],
            families => families.to_vec(),
        };
        What::Routes(Routes {
            families,
            fib: self.fib || !self.cache,
            cache: self.cache,
            layout: Layout {
                columns,
                numeric: self.numeric || self.others.contains('N'),
                wide: self.wide,
            },
        })
    }

    fn wanted(self, what: What) -> Wanted {
        Wanted {
            what,
            netns: self.netns,
            direct: self.direct,
        }
    }
}

fn no_family(tool: &str, name: &str) -> Failed {
    Failed::not_built(tool, name, "of inet (-4) and inet6 (-6) it knows routes")
}

fn text(arguments: Vec<OsString>) -> Vec<String> {
    let text = |word: OsString| foreign::text_of(&word);
    arguments.into_iter().map(text).collect()
}

/// Reads the command line of route(8).
pub fn route(arguments: Vec<OsString>) -> Result<Wanted, Failed> {
    // These two look like options.
    let mut arguments = text(arguments);
    for word in &mut arguments {
        match word.as_str() {
            "-net" => *word = "#net".to_owned(),
            "-host" => *word = "#host".to_owned(),
            _ => {}
        }
    }
    let long = [COMMON, ROUTE_LONG].concat();
    let Ok(mut given) = getopt::read(arguments, "A:eCFhnN64Vv?", &long) else {
        // As route does it, with a status that is none.
        return Ok(Said::default().wanted(What::Help(ROUTE_USAGE)));
    };
    let said = Said::of("route", &mut given)?;
    let what = match given.words.first() {
        _ if said.others.contains('V') => What::Version,
        _ if said.others.contains(['h', '?']) => What::Help(ROUTE_USAGE),
        None => said.routes(match said.extend {
            0 => Columns::Metric,
            1 => Columns::Mss,
            _ => Columns::All,
        }),
        Some(verb) if !["add", "del", "delete", "flush"].contains(&verb.as_str()) => {
            return Err(Failed::new(WRONG_WORDS, ROUTE_USAGE));
        }
        // As net-tools does it, with a status that is none.
        Some(verb)
            if given.words.len() == 1 && verb != "flush" && !said.families.contains(&true) =>
        {
            What::Help(change::USAGE)
        }
        Some(verb) => {
            let is_v6 = match said.families.as_slice() {
                [] => false,
                [is_v6] => *is_v6,
                _ => {
                    let instead = "a route is of one family: -4 or -6";
                    return Err(Failed::not_built("route", verb, instead));
                }
            };
            What::Change(change::read(&given.words, is_v6, said.cache)?)
        }
    };
    Ok(said.wanted(what))
}

/// Reads the command line of netstat(8).
pub fn netstat(arguments: Vec<OsString>) -> Result<Wanted, Failed> {
    let long = [COMMON, NETSTAT_LONG].concat();
    let wrong = |why: &str| {
        let text = format!("netstat: {why}\n{NETSTAT_USAGE}");
        Failed::new(WRONG_WORDS, text)
    };
    let given = getopt::read(text(arguments), "A:CFMacdeghilnNoprsStuUvVWwx64?Z", &long);
    let mut given = given.map_err(|why| wrong(&why))?;
    let said = Said::of("netstat", &mut given)?;
    let has = |letter| said.others.contains(letter);
    if has('V') {
        return Ok(said.wanted(What::Version));
    }
    if has('h') {
        return Ok(said.wanted(What::Help(NETSTAT_USAGE)));
    }
    if has('?') {
        return Err(Failed::new(WRONG_WORDS, NETSTAT_USAGE));
    }
    let kinds = ['r', 'i', 's', 'M'].into_iter().filter(|kind| has(*kind));
    if kinds.count() > 1 {
        return Err(wrong("one of -r, -i, -s and -M at a time"));
    }
    if let Some((word, instead)) = not_built(&said.others) {
        return Err(Failed::not_built("netstat", word, instead));
    }
    let what = match has('i') {
        true => What::Interfaces {
            all: has('a'),
            extended: said.extend > 0,
        },
        false => said.routes(match said.extend {
            0 => Columns::Mss,
            1 => Columns::Metric,
            _ => Columns::All,
        }),
    };
    Ok(said.wanted(what))
}

/// A letter that is not built, and what to do instead.
fn not_built(letters: &str) -> Option<(&'static str, &'static str)> {
    let has = |letter| letters.contains(letter);
    match () {
        () if has('c') => Some((
            "-c",
            "`fingerpost route --watch` and `fingerpost link --watch` tell each change",
        )),
        () if has('Z') => Some(("-Z", "`ss -Z` shows contexts of sockets")),
        () if has('s') => Some(("-s", "`nstat` lists counters of protocols")),
        () if has('M') => Some(("-M", "`fingerpost nat show` lists flows")),
        () if has('r') || has('i') => None,
        () if has('g') => Some(("-g", "`ip maddress` lists groups")),
        () => Some(("netstat without -r or -i", "`ss` lists sockets")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn columns(wanted: Wanted) -> Columns {
        match wanted.what {
            What::Routes(routes) => routes.layout.columns,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_columns_are_those_of_the_tool() {
        for (line, expected) in [
            ("", Columns::Metric),
            ("-n", Columns::Metric),
            ("-ne", Columns::Mss),
            ("-nee", Columns::All),
            ("-Fnv --inet --num", Columns::Metric),
        ] {
            assert_eq!(columns(route(words(line)).unwrap()), expected, "{line}");
        }
        for (line, expected) in [
            ("-rn", Columns::Mss),
            ("-rne", Columns::Metric),
            ("-r -n -e -e", Columns::All),
        ] {
            assert_eq!(columns(netstat(words(line)).unwrap()), expected, "{line}");
        }
    }

    #[test]
    fn lists_come_in_the_order_of_the_families() {
        for (line, families, fib, cache) in [
            ("", &[false][..], true, false),
            ("-6n -A inet", &[true, false], true, false),
            ("-A inet,inet6 -C", &[false, true], false, true),
            ("-6FC -6", &[true, true], true, true),
        ] {
            let What::Routes(routes) = route(words(line)).unwrap().what else {
                panic!("{line}");
            };
            assert_eq!(routes.families, families, "{line}");
            assert_eq!((routes.fib, routes.cache), (fib, cache), "{line}");
        }
    }

    #[test]
    fn what_is_not_for_here_is_refused_with_what_is() {
        for (line, status, says) in [
            ("", 255, "`ss`"),
            ("-tlnp", 255, "`ss`"),
            ("-s", 255, "nstat"),
            ("-g", 255, "ip maddress"),
            ("-rc", 255, "--watch"),
            ("-ri", 3, "at a time"),
            ("-r --ipx", 255, "inet6"),
            ("-rA bogus", 1, "bogus"),
            ("-I", 3, "invalid option -- 'I'"),
        ] {
            let failed = netstat(words(line)).unwrap_err();
            assert_eq!(failed.status, status, "{line}: {failed:?}");
            assert!(failed.text.contains(says), "{line}: {failed:?}");
        }
        for (line, status) in [
            ("foo", 3),
            ("flush", 3),
            ("-6 flush", 3),
            ("-C add 10.0.0.1 em1", 3),
            ("-4 -6 add default em1", 255),
            ("-A ax25", 255),
        ] {
            assert_eq!(route(words(line)).unwrap_err().status, status, "{line}");
        }
        assert_eq!(route(words("-x")).unwrap().what, What::Help(ROUTE_USAGE));
    }
}
