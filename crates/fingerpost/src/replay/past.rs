//! `--at`: a question about a time that has passed, answered from the history
//! that the daemon keeps. The segment of that time is replayed until then, in
//! this process and with the rights of who asks; the daemon need not run.
//!
//! What the history does not know is said and not guessed: where nothing was
//! kept there is no answer, and an answer that may lack rows says so. Both
//! end with status 3.

mod earlier;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linux::Namespace as Kernels;
use linux::recording::history::{self, Segment};
use privileges::CapabilitySet;
use serve::control::protocol::Ask;
use serve::control::server::connection::{Failure, answer};
use serve::namespace::Namespace;
use serve::namespace_service::{DaemonGauges, NamespaceService};
use serve::sql::{self, About};
use serve::status::Answered;
use table::{Limits, Phase};
use view::Object;
use words::calendar;

use self::earlier::Before;
use super::files::{self, Files, Opened};
use super::playing::{End, Found, Reach, Recorded};
use super::until::Until;
use super::{OUTPUT_BYTES, OWN, answered_from};
use crate::ask::{self, From, ended};
use crate::config;

/// Where a history is unless said otherwise.
const USUAL: &str = "/var/lib/fingerpost/history";
/// So long after a time its history is written: records wait a moment, and
/// once a second one says that nothing is missing.
const WRITTEN_AFTER: Duration = Duration::from_millis(1_300);
/// Time that a statement may take here: it takes nobody else's, and a history
/// may be long.
const STATEMENT: Duration = Duration::from_secs(600);
/// Segments opened behind the one of the time: one has a record that says
/// how far it is known what was.
const BEHIND: usize = 3;
/// Segments go and are packed while this looks at them.
const ATTEMPTS: usize = 5;
/// Namespaces named in an error at most.
const NAMED: usize = 20;

/// Which namespace is asked about.
#[derive(Debug, Clone)]
pub struct Sought {
    /// As it is named; `None`: the current one.
    name: Option<String>,
    /// The one that it is now, where there is one.
    inode: Option<u64>,
}

impl Sought {
    /// Whether it is the one that was called so, or had this inode. The
    /// daemon's own is also meant by the name that errors give it.
    fn is(&self, name: &str, inode: u64) -> bool {
        let is_named = self
            .name
            .as_ref()
            .is_some_and(|sought| sought == name || sought == called(name));
        is_named || self.inode == Some(inode)
    }
}

/// What was found at a time.
struct Past {
    end: End,
    reach: Reach,
    /// The newest of that name.
    found: Option<Found>,
    /// How all that were found are called.
    names: Vec<String>,
    /// How far it was read, microseconds since the UNIX epoch.
    known_until: u64,
}

/// Answers as of the time that is asked about, or now; writes the answer.
pub fn run(ask: Ask, from: &From, out: &mut impl Write) -> Result<ExitCode> {
    match from.at_micros {
        Some(at) => Ok(ended(answer_at(&ask, from, at, out)?)),
        None => ask::run(ask, from, out),
    }
}

/// Answers as of a time, and writes the answer; why rows may be missing, or
/// there is no answer.
pub fn answer_at(
    ask: &Ask,
    from: &From,
    at_micros: u64,
    out: &mut impl Write,
) -> Result<Option<String>> {
    let sought = sought(from)?;
    let (directory, limits) = configured(from)?;
    wait_for(&directory, at_micros);
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let segments =
            history::segments(&directory).map_err(|error| unreadable(&directory, error))?;
        let Some(at) = chosen(&segments, at_micros) else {
            return Ok(Some(before_all(&directory, segments.first(), at_micros)));
        };
        match open(&segments, at) {
            Ok(opened) => {
                privileges::give_up_but(kept(ask)).context("cannot give up privileges")?;
                let before = Before {
                    directory,
                    limits,
                    sought,
                    at_micros,
                    lacks: Arc::default(),
                };
                return answered(ask, before, opened, out);
            }
            Err(error) => last = Err(error),
        }
    }
    last.map(|()| Some("the history's files go faster than they are opened".to_owned()))
}

/// What is kept for an answer: files are opened while SQL's `events` are
/// read, and may be another user's.
fn kept(ask: &Ask) -> CapabilitySet {
    match ask {
        Ask::Sql(question) if question.statement.to_ascii_lowercase().contains("events") => {
            CapabilitySet::DAC_READ_SEARCH
        }
        _ => CapabilitySet::empty(),
    }
}

fn sought(from: &From) -> Result<Sought> {
    Ok(match &from.netns {
        None => Sought {
            name: None,
            inode: Some(Kernels::current()?.inode()),
        },
        Some(name) => Sought {
            inode: Kernels::open(name).ok().map(|found| found.inode()),
            name: Some(name.clone()),
        },
    })
}

/// Where the history is, and how many rows tables may have.
fn configured(from: &From) -> Result<(PathBuf, Limits)> {
    let config = config::load_to_ask()?;
    let directory = from.history.clone().or(config.history.directory);
    let directory = directory.unwrap_or_else(|| USUAL.into());
    Ok((directory, config.limits.limits()))
}

fn unreadable(directory: &Path, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "no history is kept there; `directory` in [history] of the configuration has the daemon \
             keep one, --history says where else it is"
        }
        io::ErrorKind::PermissionDenied => {
            "root may read the history, and the group that `group` in [control] of the daemon's \
             configuration names"
        }
        _ => "the history cannot be read",
    };
    anyhow::Error::from(error).context(format!("{}: {hint}", directory.display()))
}

/// A time that has just been is waited for, where somebody writes.
fn wait_for(directory: &Path, at_micros: u64) {
    let ago = now_micros().saturating_sub(at_micros);
    let wait = WRITTEN_AFTER.saturating_sub(Duration::from_micros(ago));
    if !wait.is_zero() && history::is_kept_now(directory) {
        thread::sleep(wait);
    }
}

fn now_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The segment of a time: the last that was begun before it. Where the clock
/// was set back a time was twice: the later is meant.
fn chosen(segments: &[Segment], at_micros: u64) -> Option<usize> {
    segments
        .iter()
        .rposition(|one| one.begun_micros <= at_micros)
}

/// The segments that may be needed, opened: the one before, the one of the
/// time, and some behind it.
struct Chosen {
    before: Option<Opened>,
    at: Opened,
    /// The one of the time once more, to be read behind the one before.
    again: Option<Opened>,
    behind: Vec<Opened>,
    behind_again: Vec<Opened>,
    /// When the next segment was begun, where something is missing before it.
    next_micros: Option<u64>,
}

fn open(segments: &[Segment], at: usize) -> Result<Chosen> {
    let opened = |segment: &Segment| -> Result<Opened> {
        match files::open(std::slice::from_ref(&segment.path))? {
            Files::Recorded(mut files) => files.pop().context("no segment"),
            Files::Mrt(_) => bail!("{}: no segment of a history", segment.path.display()),
        }
    };
    let of_time = segments.get(at).context("no segment")?;
    let first = opened(of_time)?;
    let follows = |one: &Opened, next: &Opened| {
        let (one, next) = (one.reader.head(), next.reader.head());
        one.run_micros == next.run_micros && one.part.checked_add(1) == Some(next.part)
    };
    let before = at.checked_sub(1).and_then(|before| segments.get(before));
    // One that cannot be read any more is none: then it is said what lacks.
    let before = before.and_then(|before| opened(before).ok());
    let before = before.filter(|before| follows(before, &first));
    let mut behind: Vec<Opened> = Vec::new();
    let mut behind_again = Vec::new();
    let mut next_micros = None;
    for segment in segments.iter().skip(at + 1).take(BEHIND) {
        let next = opened(segment)?;
        if !follows(behind.last().unwrap_or(&first), &next) {
            next_micros = Some(segment.begun_micros);
            break;
        }
        behind.push(next);
        if before.is_some() {
            behind_again.push(opened(segment)?);
        }
    }
    Ok(Chosen {
        again: before.as_ref().map(|_| opened(of_time)).transpose()?,
        before,
        at: first,
        behind,
        behind_again,
        next_micros,
    })
}

fn answered(
    ask: &Ask,
    before: Before,
    chosen: Chosen,
    out: &mut impl Write,
) -> Result<Option<String>> {
    let (sought, limits, at_micros) = (&before.sought, before.limits, before.at_micros);
    let files = [chosen.at].into_iter().chain(chosen.behind);
    let mut past = replayed(files.collect(), sought, limits, at_micros);
    if let (Some(before), Some(again)) = (chosen.before, chosen.again)
        && !is_whole(&past)
    {
        // The time is in the segment's own beginning: its listing had not
        // ended. What was before it stands in the one before.
        let files = [before, again].into_iter().chain(chosen.behind_again);
        past = replayed(files.collect(), sought, limits, at_micros);
    }
    if let Some(why) = unknown(&past, at_micros, chosen.next_micros) {
        return Ok(Some(why));
    }
    let Past {
        found,
        reach,
        names,
        ..
    } = past;
    let Some(found) = found else {
        return Ok(Some(not_there(sought, &names, at_micros)));
    };
    let namespace = Namespace {
        name: (!found.name.is_empty()).then_some(found.name),
        inode: found.inode,
        // Whoever may read the history has read it.
        is_others: false,
        source: found.source,
        feeder: None,
    };
    if let Phase::Ended(why) = namespace.source.status().phase {
        let at = time(at_micros);
        return Ok(Some(format!("it was not mirrored at {at}: {why}")));
    }
    let counters = namespace.tables().link_counters.taken_at_millis;
    let service = NamespaceService::new(namespace, DaemonGauges::default());
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, out);
    let lacks = Arc::clone(&before.lacks);
    let open = match ask {
        Ask::Sql(question) => {
            stated(question, service.namespace(), before, &mut out)?;
            false
        }
        _ => given(ask, &service, &mut out)?,
    };
    out.flush()?;
    say_when(ask, at_micros, counters);
    let how = answered_from(ask, &service)?.incomplete();
    let why = how.map(|how| format!("the answer may lack rows: the tables were {how} then"));
    let several =
        "the route has several ways, and which of them a packet took only the kernel knew";
    let why = why.or_else(|| open.then(|| several.to_owned()));
    let lacks = lacks
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .in_words();
    Ok(why.or(lacks).or_else(|| match reach {
        Reach::Lost => Some(format!(
            "the answer may lack changes: events of about {} were lost",
            time(at_micros)
        )),
        _ => None,
    }))
}

/// Answers; whether only the kernel knew all of it.
fn given(ask: &Ask, service: &NamespaceService, out: &mut impl Write) -> Result<bool> {
    let names = words::load();
    match answer(ask, service, &names, Answered::default(), &|| true, out) {
        Ok(given) => Ok(given.open),
        Err(Failure::Told(message)) => bail!(message),
        Err(Failure::Gone(error)) => Err(error.into()),
    }
}

/// Answers a statement, whose `events` reach back as far as the history.
fn stated(
    question: &query::Question,
    namespace: &Namespace,
    before: Before,
    out: &mut impl Write,
) -> Result<()> {
    let about = About {
        namespace,
        names: Arc::new(words::load()),
        translation: Err(sql::NOT_KEPT.to_owned()),
        earlier: Some(Arc::new(before)),
    };
    let limits = query::Limits {
        time: STATEMENT,
        ..sql::limits(sql::MEMORY)
    };
    query::answer(question, &about, &limits, || false, out)?;
    Ok(())
}

/// Says the time that an answer is true for.
fn say_when(ask: &Ask, at_micros: u64, counters: Option<u64>) {
    let counts = matches!(ask, Ask::Question(question)
        if question.object == Object::Link && question.output.statistics);
    let beside = match (counts, counters) {
        (false, _) => String::new(),
        (true, Some(millis)) => format!("; counters as of {}", time(millis * 1_000)),
        (true, None) => "; no counters are known of before".to_owned(),
    };
    // Nobody to tell when standard error is closed.
    let _ = writeln!(
        io::stderr(),
        "fingerpost: as of {}{beside}",
        time(at_micros)
    );
}

fn replayed(files: Vec<Opened>, sought: &Sought, limits: Limits, at_micros: u64) -> Past {
    let mut playing = Recorded::new(files, limits, Some(Until::At(at_micros)));
    let end = playing.finish(&mut || false);
    let known_until = playing.progress().newest_micros;
    let mut all = playing.take_new();
    let names = all.iter().map(|one| called(&one.name).to_owned()).collect();
    let named = |one: &Found| match &sought.name {
        Some(name) => one.name == *name,
        None => false,
    };
    let is_it = |one: &Found| sought.inode == Some(one.inode);
    // The daemon's own, by the name that errors give it.
    let is_own = |one: &Found| sought.name.as_deref() == Some(called(&one.name));
    let last = |is: &dyn Fn(&Found) -> bool| all.iter().rposition(is);
    let at = last(&named)
        .or_else(|| last(&is_it))
        .or_else(|| last(&is_own));
    let found = at.map(|at| all.swap_remove(at));
    let reach = match (&end, &found) {
        (End::Whole, Some(found)) => playing.reaches(found.inode, &found.name),
        (End::Whole, None) => playing.reaches(0, ""),
        _ => Reach::Ends,
    };
    Past {
        end,
        reach,
        found,
        names,
        known_until,
    }
}

fn is_whole(past: &Past) -> bool {
    let found = past.found.as_ref();
    found.is_some_and(|found| found.source.incomplete().is_none())
}

/// Why nothing is known of a time.
fn unknown(past: &Past, at_micros: u64, next_micros: Option<u64>) -> Option<String> {
    let (at, from) = (time(at_micros), time(past.known_until));
    let next = next_micros.map(|next| format!(" until {}", time(next)));
    let next = next.unwrap_or_default();
    match (&past.end, &past.reach) {
        (End::Damaged(place), _) => Some(format!(
            "the history does not know {at}: its file is cut off or damaged, and has nothing from \
             {from} on{next} ({place})"
        )),
        (_, Reach::Ends) => Some(format!(
            "the history does not know {at}: nothing was kept from {from} on{next}, for the daemon \
             did not run or could not write"
        )),
        _ => None,
    }
}

fn before_all(directory: &Path, first: Option<&Segment>, at_micros: u64) -> String {
    let begins = match first {
        Some(first) => format!("begins at {}", time(first.begun_micros)),
        None => "is empty".to_owned(),
    };
    format!(
        "the history does not know {}: that in {} {begins}",
        time(at_micros),
        directory.display()
    )
}

fn not_there(sought: &Sought, names: &[String], at_micros: u64) -> String {
    let which = match (&sought.name, sought.inode) {
        (Some(name), _) => format!("namespace `{name}`"),
        (None, Some(inode)) => format!("this namespace (inode {inode})"),
        (None, None) => "this namespace".to_owned(),
    };
    let known = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
    let known = match known[..] {
        [] => "none".to_owned(),
        _ => known.join(", "),
    };
    format!(
        "the history has nothing of {which} at {}; it has: {known}",
        time(at_micros)
    )
}

fn called(name: &str) -> &str {
    match name {
        "" => OWN,
        name => name,
    }
}

/// A time, with the part of the second that it has.
fn time(micros: u64) -> String {
    let text = calendar::text(micros / 1_000_000);
    match micros % 1_000_000 {
        0 => text,
        part => {
            let part = format!("{part:06}");
            let part = part.trim_end_matches('0');
            format!("{}.{part}Z", text.trim_end_matches('Z'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_its_part_of_a_second() {
        assert_eq!(time(1_795_317_300_000_000), "2026-11-22T03:15:00Z");
        assert_eq!(time(1_795_317_300_250_000), "2026-11-22T03:15:00.25Z");
        let again = calendar::parse(&time(1_795_317_300_000_001));
        assert_eq!(again, Some(1_795_317_300_000_001));
    }

    #[test]
    fn the_segment_of_a_time_is_the_last_that_was_begun_before_it() {
        let segment = |(sequence, begun_micros)| Segment {
            sequence,
            begun_micros,
            path: PathBuf::new(),
            is_packed: false,
            bytes: 0,
        };
        let segments: Vec<Segment> = [(0, 100), (1, 200), (2, 150), (3, 300)].map(segment).into();
        for (at, is) in [
            (99, None),
            (100, Some(0)),
            (149, Some(0)),
            (160, Some(2)),
            (250, Some(2)),
            (300, Some(3)),
        ] {
            assert_eq!(chosen(&segments, at), is, "{at}");
        }
    }
}
