//! Questions: to the daemon of the namespace where one runs, else to the
//! kernel.

mod arguments;
mod at;
mod command;
mod conditions;
mod joined;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use linux::Namespace;
use privileges::CapabilitySet;
use serve::control::client::AskError;
use serve::control::protocol::Ask;
use serve::control::{client, paths};
use view::Format;

use crate::direct::{self, Answered};
pub use arguments::{From, from, from_arguments, switch};
pub use command::{
    command, route_diff, route_flaps, route_get, route_why, status, status_wanted, wanted,
};
use joined::Joined;

/// Octets gathered before they are written.
const OUTPUT_BYTES: usize = 64 << 10;

/// Exit status of an answer that may lack rows.
const INCOMPLETE: u8 = 3;

/// To enter a namespace and ask its kernel, and to connect to a daemon of
/// another user, which tells such a namespace to few.
const INTO_OTHERS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::DAC_OVERRIDE);

/// An answer comes from a daemon, and may take as long as its reader does:
/// whoever writes it keeps no more than these.
fn give_up_but(kept: CapabilitySet) -> Result<()> {
    privileges::give_up_but(kept).context("cannot give up privileges")
}

/// Gives up what [`one_namespace`] does not need: for a process that does
/// nothing behind it. `enters`: it is about another namespace, or names some.
pub fn give_up(enters: bool) -> Result<()> {
    give_up_but(match enters {
        true => INTO_OTHERS,
        false => CapabilitySet::DAC_OVERRIDE,
    })
}

/// Asks, and writes the answer.
pub fn run(ask: Ask, from: &From, out: &mut impl Write) -> Result<ExitCode> {
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, out);
    let incomplete;
    if let Some(socket) = &from.socket {
        let daemon = client::connect(socket)
            .map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => anyhow::Error::from(error).context(KEPT),
                _ => error.into(),
            })
            .with_context(|| socket.display().to_string())?
            .with_context(|| format!("no daemon listens at {}", socket.display()))?;
        give_up_but(CapabilitySet::empty())?;
        let is_status = matches!(ask, Ask::Status { .. });
        let is_rows = matches!(ask, Ask::Question(_));
        let outcome = client::ask(&daemon, ask, &mut out)?;
        if is_rows && outcome.end.open {
            bail!("the daemon is kept from reading timers of bridges: ask again, or `--direct`");
        }
        // A status says it itself.
        incomplete = outcome.incomplete.filter(|_| !is_status).map(of_tables);
    } else if from.all_netns {
        give_up_but(INTO_OTHERS)?;
        incomplete = every_namespace(&ask, from, &mut out)?;
    } else {
        let (namespace, mut kept) = match &from.netns {
            Some(spec) => (Namespace::open(spec)?, INTO_OTHERS),
            // The daemon may be another user's, and its socket for few.
            None => (Namespace::current()?, CapabilitySet::DAC_OVERRIDE),
        };
        if matches!(ask, Ask::Watch(_) | Ask::Sql(_)) {
            // For the buffer of a mirror of its own, where no daemon is.
            kept |= CapabilitySet::NET_ADMIN;
        }
        give_up_but(kept)?;
        incomplete = one_namespace(ask, &namespace, from.direct, &mut out)?.incomplete;
    }
    out.flush()?;
    Ok(ended(incomplete))
}

/// Why an answer of a daemon whose tables are so may lack rows.
pub fn of_tables(how: impl Display) -> String {
    format!("the answer may lack rows: the daemon's tables are {how}")
}

/// The exit status of an answer; says why it may lack rows, if it may.
pub fn ended(incomplete: Option<String>) -> ExitCode {
    let Some(why) = incomplete else {
        return ExitCode::SUCCESS;
    };
    say(&why);
    ExitCode::from(INCOMPLETE)
}

/// Says something beside the answer.
fn say(what: &str) {
    // Nobody to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "fingerpost: {what}");
}

/// Asks about a namespace: its daemon, if there is one and it is not to be
/// `direct`, else the kernel. The kernel also answers for a daemon that
/// ends before it says anything, is stopped, has no place, or does not have
/// all rows, and tells which of several ways a packet takes.
pub fn one_namespace(
    ask: Ask,
    namespace: &Namespace,
    direct: bool,
    out: &mut impl Write,
) -> Result<Answered> {
    if !direct
        && let Some(daemon) = daemon_of(namespace.inode())
        && let Some(answered) = of_daemon(&daemon, ask.clone(), out)?
    {
        return Ok(answered);
    }
    let answered = of_kernel(ask, namespace, out);
    match is_kept_from_us(namespace.inode()) {
        true if answered.is_err() => answered.context(KEPT),
        _ => answered,
    }
}

/// What the kernel answers, where no daemon does.
fn of_kernel(ask: Ask, namespace: &Namespace, out: &mut impl Write) -> Result<Answered> {
    if let Some(source) = source_of(&ask) {
        bail!(
            "the rows of source `{source}` are in a daemon, and none mirrors this namespace \
             (inode {}); `fingerpost up` starts one",
            namespace.inode()
        );
    }
    match ask {
        Ask::Question(question) => direct::question(&question, namespace, out),
        Ask::RouteGet(question) => direct::route_get::answer(&question, namespace, out),
        Ask::Watch(question) => Ok(direct::watch(&question, namespace, out)?.into()),
        Ask::Arp(question) => Ok(direct::arp::answer(&question, namespace, None, out)?.into()),
        Ask::Ifconfig(question) => Ok(direct::ifconfig::answer(&question, namespace, out)?.into()),
        Ask::Sql(question) => direct::sql::answer(&question, namespace, out),
        Ask::Status { .. }
        | Ask::RouteDiff(_)
        | Ask::WatchDiff(_)
        | Ask::RouteWhy(_)
        | Ask::RouteFlaps(_) => bail!(
            "no daemon mirrors this namespace (inode {}); `fingerpost up` starts one",
            namespace.inode()
        ),
    }
}

/// Why a daemon is not asked that is there.
const KEPT: &str = "a daemon mirrors this namespace and tells it to root and to the group that \
                    `group` in `[control]` of its configuration names; ask as one of these";

/// Whether a daemon of the namespace does not take questions of this user.
fn is_kept_from_us(inode: u64) -> bool {
    paths::directories().iter().any(|directory| {
        let connected = client::connect(&paths::socket(directory, inode));
        matches!(connected, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
    })
}

/// What a daemon answers; `None`: the kernel is to be asked instead, for the
/// daemon went away and said nothing, is stopped, has no place, or does not
/// have all rows, which is said. One that goes away from who watches, or in
/// the middle of an answer, is an error: what it said cannot be taken back.
fn of_daemon(
    daemon: &UnixStream,
    ask: Ask,
    out: &mut impl Write,
) -> Result<Option<Answered>, AskError> {
    let watches = ask.is_live();
    let decides = matches!(ask, Ask::RouteGet(_));
    let is_status = matches!(ask, Ask::Status { .. });
    // The kernel does not have what a feed tells.
    let is_fed = source_of(&ask).is_some() || ask.needs_daemon();
    let begun = match client::begin(daemon, ask) {
        Err(AskError::Silent | AskError::Busy(_)) if !is_status && !is_fed => return Ok(None),
        Err(AskError::Connection(_)) if !watches => return Ok(None),
        begun => begun?,
    };
    if watches {
        // The kernel is not asked any more.
        privileges::drop_all().map_err(|errno| AskError::Connection(errno.into()))?;
    }
    let incomplete = begun.incomplete.clone().filter(|_| !is_status);
    if let Some(how) = incomplete.as_ref().filter(|_| !is_fed) {
        say(&format!(
            "the kernel answers: the daemon's tables are {how}"
        ));
        return Ok(None);
    }
    let mut out = Noticed {
        out,
        written: false,
    };
    // A decision is short, and void where only the kernel knows all of it.
    let mut decision = Vec::new();
    let answered = match decides {
        true => begun.finish(&mut decision),
        false => begun.finish(&mut out),
    };
    match answered {
        Err(AskError::Connection(_)) if !watches && !out.written => Ok(None),
        Ok(outcome) if outcome.end.open => Ok(None),
        answered => {
            let rows = answered?.end.rows;
            out.write_all(&decision).map_err(AskError::Output)?;
            Ok(Some(Answered {
                rows,
                incomplete: incomplete.map(of_tables),
            }))
        }
    }
}

/// The feed whose rows are asked for, if it is not the kernel.
pub fn source_of(ask: &Ask) -> Option<&str> {
    match ask {
        Ask::Question(question) | Ask::Watch(question) => question.filter.source.as_deref(),
        Ask::RouteGet(question) => question.source.as_deref(),
        _ => None,
    }
}

/// Notices whether anything is written.
struct Noticed<W> {
    out: W,
    written: bool,
}

impl<W: Write> Write for Noticed<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.written = true;
        self.out.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The daemon that mirrors the namespace with an inode, if one can be asked.
pub fn daemon_of(inode: u64) -> Option<UnixStream> {
    paths::directories().iter().find_map(|directory| {
        let socket = paths::socket(directory, inode);
        let connected = client::connect(&socket).and_then(|daemon| {
            let Some(daemon) = daemon else {
                return Ok(None);
            };
            match client::is_trusted(&daemon, directory)? {
                true => Ok(Some(daemon)),
                false => Err(io::Error::other("a stranger listens there")),
            }
        });
        connected.unwrap_or_else(|error| {
            // Not for this user: the kernel answers as well.
            tracing::debug!("{}: {error}", socket.display());
            None
        })
    })
}

/// Asks about all named namespaces, one after the other, and makes one
/// answer of theirs. Gives why rows of the last incomplete one may be
/// missing.
fn every_namespace(ask: &Ask, from: &From, out: &mut impl Write) -> Result<Option<String>> {
    let wanted = match ask {
        Ask::Question(question) => question.output.format,
        Ask::Status { json: true } => Format::Ndjson,
        Ask::Status { json: false } => Format::Text,
        Ask::RouteGet(get) => get.output.format,
        Ask::Watch(_) | Ask::WatchDiff(_) => {
            bail!("--watch looks at one namespace: name it with --netns")
        }
        Ask::RouteDiff(_) | Ask::RouteWhy(_) | Ask::RouteFlaps(_) => {
            bail!("sources are compared in one namespace: name it with --netns")
        }
        Ask::Sql(_) => bail!("a statement is about one namespace: name it with --netns"),
        Ask::Arp(_) | Ask::Ifconfig(_) => {
            bail!("arp and ifconfig list one namespace: name it with --netns")
        }
    };
    let counts = matches!(ask, Ask::Question(question) if question.output.count);
    let mut rows = 0;
    let mut incomplete = None;
    let mut joined = Joined::new(wanted, &mut *out);
    for name in Namespace::names() {
        let namespace = match Namespace::open(&name) {
            Ok(namespace) => namespace,
            // Deleted since the names were listed.
            Err(_) if !Namespace::names().contains(&name) => continue,
            Err(error) => return Err(error.into()),
        };
        let ask = of_namespace(ask.clone(), &name);
        joined.next();
        let answered = if counts {
            one_namespace(ask, &namespace, from.direct, &mut io::sink())
        } else {
            one_namespace(ask, &namespace, from.direct, &mut joined)
        };
        let answered = answered.with_context(|| format!("namespace {name}"))?;
        rows += answered.rows;
        if let Some(why) = answered.incomplete {
            incomplete = Some(format!("namespace {name}: {why}"));
        }
    }
    if counts {
        writeln!(out, "{rows}")?;
    } else {
        joined.finish()?;
    }
    Ok(incomplete)
}

/// The same question with the namespace's name on each row, in a format
/// whose answers can follow each other.
fn of_namespace(mut ask: Ask, name: &str) -> Ask {
    let output = match &mut ask {
        Ask::Question(question) => Some(&mut question.output),
        Ask::RouteGet(get) => Some(&mut get.output),
        Ask::Watch(_)
        | Ask::RouteDiff(_)
        | Ask::WatchDiff(_)
        | Ask::RouteWhy(_)
        | Ask::RouteFlaps(_)
        | Ask::Arp(_)
        | Ask::Ifconfig(_)
        | Ask::Sql(_)
        | Ask::Status { .. } => None,
    };
    if let Some(output) = output {
        output.netns = Some(name.to_owned());
        if output.format == Format::Json && !output.count {
            output.format = Format::Ndjson;
        }
    }
    ask
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::thread;

    use super::*;
    use serve::control::protocol;
    use view::{Filter, Object, Output, Question, RouteQuestion};

    /// A question for rows of a source.
    fn rows_of(source: Option<&str>) -> Ask {
        Ask::Question(Box::new(Question {
            object: Object::Route,
            filter: Filter {
                source: source.map(str::to_owned),
                ..Filter::default()
            },
            output: Output::default(),
        }))
    }

    /// What comes of a daemon that says some frames and ends.
    fn said(frames: &[(u8, &[u8])]) -> (Result<Option<Answered>, AskError>, String) {
        let ask = Ask::RouteGet(Box::new(RouteQuestion::to([10, 0, 0, 1].into())));
        said_to(ask, frames)
    }

    fn said_to(ask: Ask, frames: &[(u8, &[u8])]) -> (Result<Option<Answered>, AskError>, String) {
        let (asking, daemon) = UnixStream::pair().unwrap();
        let mut said = Vec::new();
        for (kind, payload) in frames {
            protocol::write_frame(&mut said, *kind, payload).unwrap();
        }
        let ends = thread::spawn(move || {
            let mut request = String::new();
            BufReader::new(&daemon).read_line(&mut request).unwrap();
            (&daemon).write_all(&said).unwrap();
        });
        let mut out = Vec::new();
        let answered = of_daemon(&asking, ask, &mut out);
        ends.join().unwrap();
        (answered, String::from_utf8(out).unwrap())
    }

    const WHOLE: (u8, &[u8]) = (protocol::HELLO, b"{\"incomplete\":null}");

    #[test]
    fn a_daemon_that_ends_before_it_speaks_leaves_the_answer_to_the_kernel() {
        for frames in [&[][..], &[WHOLE]] {
            let (answered, out) = said(frames);
            assert!(matches!(answered, Ok(None)) && out.is_empty());
        }
    }

    #[test]
    fn a_daemon_that_ends_while_it_speaks_is_an_error() {
        let half = [WHOLE, (protocol::DATA, &b"half"[..])];
        let (answered, out) = said_to(rows_of(None), &half);
        assert!(matches!(answered, Err(AskError::Connection(_))) && out == "half");
        // A decision was not shown yet: the kernel gives it.
        let (answered, out) = said(&half);
        assert!(matches!(answered, Ok(None)) && out.is_empty());
    }

    #[test]
    fn a_daemon_that_has_no_place_or_lacks_rows_leaves_the_answer_to_the_kernel() {
        let lacking = b"{\"incomplete\":\"degraded: routes miss rows\"}";
        for first in [
            (
                protocol::BUSY,
                &b"64 clients are being answered already"[..],
            ),
            (protocol::HELLO, lacking),
        ] {
            let (answered, out) = said(&[first, (protocol::DATA, b"wrong")]);
            assert!(matches!(answered, Ok(None)) && out.is_empty());
        }
    }

    #[test]
    fn a_feed_that_lacks_rows_answers_and_the_answer_says_so() {
        let ask = rows_of(Some("bgp"));
        let end = (protocol::END, &b"{\"rows\":1,\"took_micros\":1}"[..]);
        let row = (protocol::DATA, &b"row"[..]);
        let lacking = (protocol::HELLO, &b"{\"incomplete\":\"resyncing\"}"[..]);
        let (answered, out) = said_to(ask.clone(), &[lacking, row, end]);
        let incomplete = answered.unwrap().unwrap().incomplete;
        assert_eq!(incomplete, Some(of_tables("resyncing")));
        assert_eq!(out, "row");
        let whole = said_to(ask, &[WHOLE, row, end]).0.unwrap().unwrap();
        assert_eq!(whole, Answered::from(1));
        assert_eq!(ended(whole.incomplete), ExitCode::SUCCESS);
        assert_eq!(ended(incomplete), ExitCode::from(3));
    }
}
