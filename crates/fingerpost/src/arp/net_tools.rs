//! arp(8) of Linux's net-tools, for who calls the program by that name: its
//! options, of which the last of `-a`, `-d`, `-f` and `-s` counts, its
//! messages and exit statuses. Words are read whole before anything is done.

mod apply;
mod lines;
mod on_link;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use linux::Namespace;
use table::LinkLayerAddress;
use view::arp::{Style, linux_type_number};

use super::arguments::{Action, Show, Wanted};
use super::show;
use crate::ask;
use crate::foreign::failed::Failed;
use crate::foreign::getopt::{self, Long};
use crate::foreign::inet::{self, PATIENCE};
use crate::foreign::{self, six_octets, text_of, version};

/// The status of words that are wrong, and of all else.
const WRONG_WORDS: u8 = 3;
const FAILED: u8 = 255;

const USAGE: &str = "\
usage: arp [-n] [-v] [-a|-e] [-i LINK] [-H ether] [HOST]
       arp [-i LINK] -s HOST LLADDR [temp] [pub] [dev LINK]
       arp [-i LINK] -Ds HOST LINK [temp] pub
       arp [-i LINK] -d HOST [pub|priv] [dev LINK]
       arp [-i LINK] -f [FILE]
  --netns NAME|PATH|PID  of this network namespace
  --direct               from the kernel, also where a daemon runs";

/// The file of `-f`.
const ETHERS: &str = "/etc/ethers";

const DIRECT: char = '+';
const NETNS: char = '@';

const LONG: &[Long] = &[
    ("verbose", false, 'v'),
    ("version", false, 'V'),
    ("all", false, 'a'),
    ("delete", false, 'd'),
    ("file", false, 'f'),
    ("numeric", false, 'n'),
    ("set", false, 's'),
    ("protocol", true, 'A'),
    ("hw-type", true, 'H'),
    ("device", true, 'i'),
    ("help", false, 'h'),
    ("use-device", false, 'D'),
    ("symbolic", false, 'N'),
    ("direct", false, DIRECT),
    ("netns", true, NETNS),
];

/// Types of hardware that have no ARP.
const WITHOUT_ARP: &[&str] = &[
    "loop", "slip", "cslip", "slip6", "cslip6", "adaptive", "tunnel", "ppp", "hdlc", "lapb",
    "frad", "sit", "ec",
];
/// Families, of which one has ARP.
const FAMILIES: &[&str] = &[
    "unix", "inet6", "ax25", "netrom", "rose", "ipx", "ddp", "ec", "ash", "x25",
];

/// What the options say.
#[derive(Debug)]
struct Said {
    /// `a`, `d`, `f`, `s`: the last of them.
    what: Option<char>,
    table: bool,
    numeric: bool,
    verbose: bool,
    of_link: bool,
    hardware: Option<u16>,
    device: Option<String>,
    direct: bool,
    netns: Option<String>,
    words: Vec<String>,
}

/// Runs it.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let arguments = arguments.iter().map(|word| text_of(word)).collect();
    let said = match read(arguments) {
        Ok(Ok(said)) => said,
        Ok(Err(text)) => {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}")?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(failed) => return Ok(failed.end()),
    };
    Ok(match done(&said)? {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.end(),
    })
}

fn done(said: &Said) -> Result<Result<(), Failed>> {
    let words: Vec<&str> = said.words.iter().map(String::as_str).collect();
    let asked = match said.what {
        Some('d') => match deletion(&words, said) {
            Ok(deletion) => Asked::Delete(deletion),
            Err(failed) => return Ok(Err(failed)),
        },
        Some('s') => match entry(&words, said) {
            Ok(entry) => Asked::Set(entry),
            Err(failed) => return Ok(Err(failed)),
        },
        Some('f') => {
            let file = words.first().copied().unwrap_or(ETHERS);
            match lines::open(file) {
                Ok(opened) => Asked::File(file, opened),
                Err(failed) => return Ok(Err(failed)),
            }
        }
        _ => return listed(words.first().copied(), said),
    };
    let namespace = namespace(said)?;
    foreign::give_up_but_changes(said.netns.is_some())?;
    match asked {
        Asked::File(file, opened) => match lines::read(file, opened, said) {
            Ok(lines) => lines.apply(&namespace).map(Ok),
            Err(failed) => Ok(Err(failed)),
        },
        Asked::Delete(deletion) => apply::delete(&deletion, &namespace),
        Asked::Set(entry) => apply::set(&entry, &namespace),
    }
}

enum Asked<'w> {
    Delete(Deletion),
    Set(Entry),
    File(&'w str, std::fs::File),
}

fn namespace(said: &Said) -> Result<Namespace, linux::Error> {
    match &said.netns {
        Some(spec) => Namespace::open(spec),
        None => Namespace::current(),
    }
}

fn listed(host: Option<&str>, said: &Said) -> Result<Result<(), Failed>> {
    if let Some(host) = host
        && let Err(failed) = address(host)
    {
        return Ok(Err(failed));
    }
    let show = Show {
        host: host.map(str::to_owned),
        hardware: said.hardware,
        resolve: !said.numeric,
        own: false,
    };
    let style = match said.what.is_some() && !said.table {
        true => Style::LinuxLines,
        false => Style::LinuxTable,
    };
    let namespace = namespace(said)?;
    ask::give_up(said.netns.is_some())?;
    let wanted = Wanted {
        action: Action::Show(show),
        netns: said.netns.clone(),
        direct: said.direct,
        device: said.device.clone(),
        style,
        verbose: said.verbose,
        patience: PATIENCE,
    };
    if let Action::Show(show) = &wanted.action {
        show::run(show, &wanted, &namespace)?;
    }
    Ok(Ok(()))
}

/// Reads the options; a text in the place of them is for standard output.
fn read(arguments: Vec<String>) -> Result<Result<Said, String>, Failed> {
    let given = getopt::read(arguments, "A:H:adfp:nsei:t:vh?DNV", LONG);
    let given = given.map_err(|why| usage(&format!("arp: {why}\n")))?;
    let mut said = Said {
        what: None,
        table: false,
        numeric: false,
        verbose: false,
        of_link: false,
        hardware: None,
        device: None,
        direct: false,
        netns: None,
        words: given.words,
    };
    for (letter, value) in given.options {
        let value = value.unwrap_or_default();
        match letter {
            'a' | 'd' | 'f' | 's' => said.what = Some(letter),
            'e' => said.table = true,
            'n' => said.numeric = true,
            'v' => said.verbose = true,
            'D' => said.of_link = true,
            'N' => {
                let _ = writeln!(io::stderr(), "arp: -N not yet supported.");
            }
            'A' | 'p' => family(&value)?,
            'H' | 't' => said.hardware = Some(hardware(&value)?),
            'i' => said.device = Some(value),
            DIRECT => said.direct = true,
            NETNS => said.netns = Some(value),
            'V' => return Ok(Err(version("arp"))),
            'h' => return Ok(Err(USAGE.to_owned())),
            _ => return Err(usage("")),
        }
    }
    Ok(Ok(said))
}

fn usage(before: &str) -> Failed {
    Failed::new(WRONG_WORDS, format!("{before}{USAGE}"))
}

fn failed(text: impl Into<String>) -> Failed {
    Failed::new(FAILED, text)
}

fn family(name: &str) -> Result<(), Failed> {
    match name {
        "inet" => Ok(()),
        name if FAMILIES.contains(&name) => {
            Err(failed(format!("arp: {name}: kernel only supports 'inet'.")))
        }
        name => Err(failed(format!("arp: {name}: unknown address family."))),
    }
}

fn hardware(name: &str) -> Result<u16, Failed> {
    let number = linux_type_number(name)
        .ok_or_else(|| failed(format!("arp: {name}: unknown hardware type.")))?;
    match WITHOUT_ARP.contains(&name) {
        true => Err(failed(format!(
            "arp: {name}: hardware type without ARP support."
        ))),
        false => Ok(number),
    }
}

fn address(host: &str) -> Result<std::net::Ipv4Addr, Failed> {
    Ok(inet::meant(host, false).map_err(failed)?.address)
}

/// An entry that is to go.
#[derive(Debug, PartialEq, Eq)]
struct Deletion {
    host: String,
    address: std::net::Ipv4Addr,
    /// Of published ones, of others; both where neither was said.
    published: bool,
    private: bool,
    device: Option<String>,
}

/// An entry that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    address: std::net::Ipv4Addr,
    lladdr: Source,
    temporary: bool,
    published: bool,
    device: Option<String>,
}

/// Where the link-layer address comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Said(LinkLayerAddress),
    /// The address of this link, which is of a type of hardware.
    Link(String, Option<u16>),
}

/// The words after the host, of both.
#[derive(Debug, Default)]
struct Modifiers {
    temporary: bool,
    published: bool,
    private: bool,
    device: Option<String>,
}

fn modifiers(words: &[&str], said: &Said) -> Result<Modifiers, Failed> {
    let mut modifiers = Modifiers {
        device: said.device.clone(),
        ..Modifiers::default()
    };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "temp" => modifiers.temporary = true,
            "pub" => modifiers.published = true,
            "priv" => modifiers.private = true,
            // Trailers are long gone.
            "trail" => {}
            "dev" => modifiers.device = Some(words.next().ok_or_else(|| usage(""))?.to_owned()),
            "netmask" => match words.next() {
                None => return Err(usage("")),
                Some("255.255.255.255") => {}
                Some(_) => {
                    let instead = "Linux answers for whole networks by itself where \
                                   net.ipv4.conf.*.proxy_arp is set";
                    return Err(Failed::not_built("arp", word, instead));
                }
            },
            "dontpub" | "auto" => {
                let instead = "no kernel has such entries; leave it out";
                return Err(Failed::not_built("arp", word, instead));
            }
            _ => return Err(usage("")),
        }
    }
    Ok(modifiers)
}

fn deletion(words: &[&str], said: &Said) -> Result<Deletion, Failed> {
    let (host, words) = words
        .split_first()
        .ok_or_else(|| failed("arp: need host name"))?;
    let address = address(host)?;
    let modifiers = modifiers(words, said)?;
    let both = modifiers.published == modifiers.private;
    Ok(Deletion {
        host: (*host).to_owned(),
        address,
        published: both || modifiers.published,
        private: both || modifiers.private,
        device: modifiers.device,
    })
}

fn entry(words: &[&str], said: &Said) -> Result<Entry, Failed> {
    let (host, words) = words
        .split_first()
        .ok_or_else(|| failed("arp: need host name"))?;
    let address = address(host)?;
    let (lladdr, words) = words
        .split_first()
        .ok_or_else(|| failed("arp: need hardware address"))?;
    let lladdr = match said.of_link {
        true => Source::Link((*lladdr).to_owned(), said.hardware),
        false => Source::Said(link_layer_address(lladdr, said)?),
    };
    let modifiers = modifiers(words, said)?;
    Ok(Entry {
        address,
        lladdr,
        temporary: modifiers.temporary,
        // The last of both counts.
        published: modifiers.published && words.iter().rfind(is_place) != Some(&"priv"),
        device: modifiers.device,
    })
}

fn is_place(word: &&&str) -> bool {
    matches!(**word, "pub" | "priv")
}

fn link_layer_address(word: &str, said: &Said) -> Result<LinkLayerAddress, Failed> {
    if said.hardware.is_some_and(|hardware| hardware != ETHER) {
        let instead = "it makes entries of `-H ether`";
        return Err(Failed::not_built("arp", "-H", instead));
    }
    if let Some(address) = six_octets(word) {
        return Ok(address);
    }
    // Net-tools makes six octets of them.
    let is_begun = word.starts_with(|one: char| one.is_ascii_hexdigit())
        && word
            .chars()
            .all(|one| one == ':' || one.is_ascii_hexdigit());
    Err(match is_begun {
        true => Failed::not_built("arp", word, "an address of six octets is wanted"),
        false => failed("arp: invalid hardware address"),
    })
}

/// `ARPHRD_ETHER`.
const ETHER: u16 = table::row::link::hardware::ETHER;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<Said, Failed> {
        let words = line.split_whitespace().map(str::to_owned).collect();
        read(words).map(|said| said.unwrap())
    }

    #[test]
    fn the_last_of_the_actions_counts() {
        for (line, what) in [
            ("", None),
            ("-n", None),
            ("-a -s 10.0.0.1 x", Some('s')),
            ("-d -a", Some('a')),
            ("-s 10.0.0.1 -i em1 x", Some('s')),
        ] {
            assert_eq!(said(line).unwrap().what, what, "{line}");
        }
    }

    #[test]
    fn entries_and_deletions() {
        let read_entry = |line: &str| {
            let said = said(line).unwrap();
            let words: Vec<&str> = said.words.iter().map(String::as_str).collect();
            entry(&words, &said)
        };
        let made = read_entry("-s 10.1 2:0:0:0:0:5 temp dev em1").unwrap();
        assert_eq!(made.address, std::net::Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!((made.temporary, made.published), (true, false));
        assert_eq!(made.device.as_deref(), Some("em1"));
        assert!(read_entry("-Ds 10.1 em1 priv pub").unwrap().published);
        assert!(!read_entry("-Ds 10.1 em1 pub priv").unwrap().published);
        for (line, status) in [
            ("-s", 255),
            ("-s 10.1", 255),
            ("-s 10.1 zz", 255),
            ("-s 10.1 2:0:0:0:0:5 foo", 3),
            ("-s 10.1 2:0:0:0:0:5 dev", 3),
            ("-s 10.1 2:0:0:0:0", 255),
            ("-s 10.1 2:0:0:0:0:5 dontpub", 255),
            ("-H ax25 -s 10.1 x", 255),
            ("-s a:b 2:0:0:0:0:5", 255),
        ] {
            assert_eq!(read_entry(line).unwrap_err().status, status, "{line}");
        }
        let read_deletion = |line: &str| {
            let said = said(line).unwrap();
            let words: Vec<&str> = said.words.iter().map(String::as_str).collect();
            let deletion = deletion(&words, &said).unwrap();
            (deletion.published, deletion.private)
        };
        assert_eq!(read_deletion("-d 10.1"), (true, true));
        assert_eq!(read_deletion("-d 10.1 pub"), (true, false));
        assert_eq!(read_deletion("-d 10.1 priv"), (false, true));
    }

    #[test]
    fn wrong_options_have_net_tools_statuses() {
        for (line, status) in [
            ("-x", 3),
            ("-?", 3),
            ("-i", 3),
            ("-A inet6", 255),
            ("-A fish", 255),
            ("-H ppp", 255),
            ("-H fish", 255),
        ] {
            assert_eq!(said(line).unwrap_err().status, status, "{line}");
        }
        assert!(
            read(vec!["-V".to_owned()])
                .unwrap()
                .unwrap_err()
                .starts_with("arp of")
        );
    }
}
