//! The command line, of both kinds of arp at once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser, ValueEnum};
use view::arp::{Style, linux_type_number};

use crate::foreign::Called;

/// Show and change the ARP table.
///
/// Two tools in one: FreeBSD's arp(8) and that of Linux's net-tools. Run as
/// `fingerpost arp`, it writes FreeBSD's lines with numeric addresses, own
/// addresses among them as permanent entries. Run by the name `arp` (a link
/// to the program), it writes what net-tools writes: a table, lines with
/// -a, and host names unless -n. --style chooses either.
#[derive(Debug, Parser)]
#[command(
    name = "fingerpost arp",
    version,
    disable_version_flag = true,
    args_override_self = true,
    override_usage = "fingerpost arp [-n|-r] [-i IF] [-a|-e] [HOST]\n       \
        fingerpost arp [-i IF] -d HOST [pub]\n       \
        fingerpost arp [-i IF] -d -a\n       \
        fingerpost arp [-i IF] -s|-S HOST LLADDR [temp] [pub [only]]\n       \
        fingerpost arp [-i IF] -Ds HOST IF [temp] [pub]\n       \
        fingerpost arp [-i IF] -f [FILE]",
    after_help = "\
`expires in N seconds` is, for a reachable entry, what is left of the kernel's
reachable time since it was last confirmed; for a stale one, what is left of
gc_stale_time since it was last used; `expired` where nothing is. `pub` makes a proxy
entry: Linux answers for it with the link's own address, whatever LLADDR says.
Lines of a file: HOST LLADDR [temp] [pub]; `#` begins a comment."
)]
struct Arguments {
    /// Display the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
    /// All entries; with the net-tools style, as lines
    #[arg(short, long)]
    all: bool,
    /// net-tools' table, also with -a
    #[arg(short = 'e', conflicts_with = "json")]
    table: bool,
    /// Addresses as numbers; the default of `fingerpost arp`
    #[arg(short, long)]
    numeric: bool,
    /// Names of hosts; the default of the net-tools style
    #[arg(short, long, conflicts_with = "numeric")]
    resolve: bool,
    /// How long to wait for all names together, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    resolve_wait_secs: f64,
    /// Only this link; the link of a new entry
    #[arg(short = 'i', long, value_name = "IF", visible_alias = "interface")]
    device: Option<String>,
    /// Delete an entry; with -a all of them
    #[arg(short, long, conflicts_with_all = ["set", "replace", "file"])]
    delete: bool,
    /// Make an entry
    #[arg(short, long, conflicts_with_all = ["replace", "file"])]
    set: bool,
    /// Make an entry in place of all that the host had
    #[arg(short = 'S', long, conflicts_with = "file")]
    replace: bool,
    /// Make the entries of a file [default: /etc/ethers; `-`: standard input]
    #[arg(short, long)]
    file: bool,
    /// LLADDR is the name of a link, whose address is taken
    #[arg(short = 'D', long)]
    use_device: bool,
    /// Say more
    #[arg(short, long)]
    verbose: bool,
    /// Only entries of this type of hardware (net-tools): ether, …
    #[arg(short = 'H', long, short_alias = 't', value_name = "TYPE", value_parser = hardware)]
    hw_type: Option<u16>,
    /// Protocol family; only inet has ARP
    #[arg(short = 'A', long, short_alias = 'p', value_name = "FAMILY", value_parser = family)]
    protocol: Option<String>,
    /// Whose output is imitated [default: linux when called as `arp`, else bsd]
    #[arg(long, value_enum)]
    style: Option<Tool>,
    /// One JSON array, with the keys of FreeBSD's `arp --libxo json`
    #[arg(short, long)]
    json: bool,
    /// Leave out the addresses of this host's own links
    #[arg(long)]
    no_own: bool,
    /// List from the kernel, also where a daemon runs
    #[arg(long)]
    direct: bool,
    /// A network namespace by name, path or process id
    #[arg(long, value_name = "NAME|PATH|PID")]
    netns: Option<String>,
    /// HOST, LLADDR, FILE and their words
    #[arg(hide = true)]
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    Bsd,
    Linux,
}

/// What is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// To do what.
    pub action: Action,
    /// In this namespace.
    pub netns: Option<String>,
    /// From the kernel, also where a daemon runs.
    pub direct: bool,
    /// Only on this link.
    pub device: Option<String>,
    /// How entries are written.
    pub style: Style,
    /// To say more.
    pub verbose: bool,
    /// How long names may take, all together.
    pub patience: Duration,
}

impl Wanted {
    /// Whether it is to look like net-tools.
    pub fn is_linux(&self) -> bool {
        matches!(self.style, Style::LinuxTable | Style::LinuxLines)
    }
}

#[derive(Debug)]
pub enum Action {
    Show(Show),
    Delete(Which),
    Set(Set),
    /// `None`: standard input.
    File(Option<PathBuf>),
}

#[derive(Debug)]
pub struct Show {
    /// Only this host.
    pub host: Option<String>,
    /// Only this type of hardware.
    pub hardware: Option<u16>,
    /// With names.
    pub resolve: bool,
    /// With own addresses.
    pub own: bool,
}

#[derive(Debug)]
pub enum Which {
    All,
    /// One host's; only its proxy entry, if `published`.
    Host {
        host: String,
        published: bool,
    },
}

/// An entry to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub host: String,
    /// A link-layer address, `auto`, or the name of a link.
    pub lladdr: String,
    pub lladdr_is_link: bool,
    pub temporary: bool,
    pub published: bool,
    /// Whether what the host had goes first.
    pub replace: bool,
}

/// Whether a command line by the name `arp` has an option of ours that
/// chooses another output than net-tools'.
pub fn are_ours(arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().filter_map(|word| word.to_str());
    options.any(|word| word.starts_with("--style") || word == "--json")
}

/// Reads the command line.
pub fn parse(arguments: Vec<OsString>, called: Called) -> Result<Wanted, clap::Error> {
    let name = match called {
        Called::ByItsName => "arp",
        Called::OfFingerpost => "fingerpost arp",
    };
    let arguments =
        Arguments::try_parse_from(std::iter::once(OsString::from(name)).chain(arguments))?;
    let by_default = match called {
        Called::ByItsName => Tool::Linux,
        Called::OfFingerpost => Tool::Bsd,
    };
    let tool = match arguments.style {
        Some(tool) => tool,
        None if arguments.table => Tool::Linux,
        None => by_default,
    };
    let style = match tool {
        _ if arguments.json => Style::Json,
        Tool::Bsd => Style::Bsd,
        Tool::Linux if arguments.all && !arguments.table => Style::LinuxLines,
        Tool::Linux => Style::LinuxTable,
    };
    let wrong = |message: String| Arguments::command().error(ErrorKind::InvalidValue, message);
    let action = action(&arguments, style).map_err(wrong)?;
    only_bsds_words(&action, called, tool).map_err(wrong)?;
    Ok(Wanted {
        action,
        netns: arguments.netns,
        direct: arguments.direct,
        device: arguments.device,
        style,
        verbose: arguments.verbose,
        patience: Duration::from_secs_f64(arguments.resolve_wait_secs),
    })
}

/// Words that change something mean BSD's here. Who has said that they are to
/// be net-tools', by its name or style, must not be read as another: there
/// `-d -a` lists.
fn only_bsds_words(action: &Action, called: Called, tool: Tool) -> Result<(), String> {
    match (action, called, tool) {
        (Action::Show(_), ..) | (_, Called::OfFingerpost, Tool::Bsd) => Ok(()),
        (_, Called::ByItsName, _) => Err(
            "--style and --json choose how entries are listed: by the name arp, changes are \
             net-tools' and go without them"
                .into(),
        ),
        (Action::Delete(Which::All), _, Tool::Linux) => Err(
            "-d -a deletes all entries here and lists them in net-tools' arp: leave the style \
             of net-tools out to delete"
                .into(),
        ),
        (..) => Ok(()),
    }
}

fn action(arguments: &Arguments, style: Style) -> Result<Action, String> {
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    if arguments.delete {
        return match words.as_slice() {
            [] if arguments.all => Ok(Action::Delete(Which::All)),
            [host] if !arguments.all => Ok(delete(host, false)),
            [host, "pub"] if !arguments.all => Ok(delete(host, true)),
            [] => Err("which host's entry? (-d HOST, or -d -a for all)".into()),
            _ => Err("one host at a time: -d HOST [pub], or -d -a".into()),
        };
    }
    if arguments.set || arguments.replace {
        let set = set(&words, arguments.use_device)?;
        return Ok(Action::Set(Set {
            replace: arguments.replace,
            ..set
        }));
    }
    if arguments.file {
        return match words.as_slice() {
            [] => Ok(Action::File(Some("/etc/ethers".into()))),
            ["-"] => Ok(Action::File(None)),
            [path] => Ok(Action::File(Some(path.into()))),
            _ => Err("one file at a time: -f [FILE]".into()),
        };
    }
    let host = match words.as_slice() {
        [] => None,
        [host] => Some((*host).to_owned()),
        _ => return Err("one host at a time; to make an entry: -s HOST LLADDR".into()),
    };
    let by_default = matches!(style, Style::LinuxTable | Style::LinuxLines);
    Ok(Action::Show(Show {
        host,
        hardware: arguments.hw_type,
        resolve: arguments.resolve || (by_default && !arguments.numeric),
        own: !arguments.no_own && !by_default,
    }))
}

fn delete(host: &str, published: bool) -> Action {
    Action::Delete(Which::Host {
        host: host.to_owned(),
        published,
    })
}

/// The words of a new entry: those of a command line and of a file's line.
pub fn set(words: &[&str], lladdr_is_link: bool) -> Result<Set, String> {
    let [host, lladdr, modifiers @ ..] = words else {
        return Err("an entry needs a host and a link-layer address: HOST LLADDR".into());
    };
    let mut set = Set {
        host: (*host).to_owned(),
        lladdr: (*lladdr).to_owned(),
        lladdr_is_link,
        temporary: false,
        published: false,
        replace: false,
    };
    let mut modifiers = modifiers.iter().copied();
    while let Some(word) = modifiers.next() {
        match word {
            "temp" => set.temporary = true,
            "pub" => set.published = true,
            // Linux's are never anything else.
            "only" if set.published => {}
            "only" => return Err("`only` says something of `pub`: pub only".into()),
            "netmask" => match modifiers.next() {
                Some("255.255.255.255") => {}
                _ => {
                    return Err(
                        "Linux has no ARP entries for whole networks (`netmask`): it answers \
                         for them by itself when net.ipv4.conf.*.proxy_arp is set"
                            .into(),
                    );
                }
            },
            "reject" | "blackhole" => {
                let kind = if word == "reject" { "prohibit" } else { word };
                return Err(format!(
                    "Linux's ARP table has no `{word}` entries; a route does the same: \
                     ip route add {kind} {host}/32"
                ));
            }
            _ => {
                return Err(format!(
                    "`{word}` is not known here: temp, pub and only may follow an address"
                ));
            }
        }
    }
    Ok(set)
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds are expected, at most 3600".into()),
    }
}

fn hardware(text: &str) -> Result<u16, String> {
    linux_type_number(text).ok_or_else(|| "a type of hardware is expected, like ether".into())
}

fn family(text: &str) -> Result<String, String> {
    match text {
        "inet" => Ok(text.to_owned()),
        _ => Err("only inet has ARP; `fingerpost neigh -6` lists IPv6 neighbours".into()),
    }
}

#[cfg(test)]
mod tests;
