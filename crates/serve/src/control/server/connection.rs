//! One client: its request, its answer.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use query::SqlError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use view::{
    AnswerError, Bounds, Names, Object, Question, RouteDiff, RouteDiffQuestion, Walk, arp, ifconfig,
};

use super::outbox::{FRAME_BYTES, Outbox};
use super::{Client, ServerState, has_hung_up};
use crate::budget::Lease;
use crate::control::protocol::{
    self, Ask, END, ERROR, End, HELLO, Hello, MAX_REQUEST_BYTES, Request,
};
use crate::namespace::Namespace;
use crate::namespace_service::NamespaceService;
use crate::owners::{self, AnswerErrorOrLeft, Following, Pair};
use crate::route_times::RouteTimes;
use crate::source::Source;
use crate::sql::{self, About};
use crate::status::Answered;
use crate::watch::{self, Watching};

/// Memory that rows are sorted in, at least: with less, all would be looked
/// at too often.
const MIN_SORTING_BYTES: usize = 64 << 10;
/// Which part of what its source may take a client's rows are sorted in: the
/// most is for what is made of them.
const SORTING_PART: usize = 4;
/// How long somebody waits for others' rows to be sorted.
const TURN: Duration = Duration::from_secs(30);
/// How old timers may be that a long answer goes on with.
const TIMERS_AGE: Duration = Duration::from_millis(500);
/// How much nicer than the others a thread is that sorts for somebody, or
/// tells changes.
const NICE: i32 = 10;

/// Why a client got no whole answer.
#[derive(Debug)]
pub enum Failure {
    /// To be told to it.
    Told(String),
    /// It is gone, or takes nothing.
    Gone(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// What an answer was.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// Rows of it.
    pub rows: u64,
    /// Whether only the kernel can tell a part of it.
    pub open: bool,
}

impl From<u64> for Given {
    fn from(rows: u64) -> Self {
        Self { rows, open: false }
    }
}

/// Answers a client's one request.
pub(super) fn serve(shared: &ServerState, client: &Client, answers: &NamespaceService) {
    let mut out = Outbox::new(shared, client);
    let asked = read_request(shared, client);
    let began = Instant::now();
    let ended = asked
        .and_then(|request| respond(&request.ask, shared, client, answers, &mut out))
        .and_then(|Given { rows, open }| {
            out.deliver()?;
            let took_micros = began.elapsed().as_micros() as u64;
            shared.count(took_micros);
            tracing::debug!(rows, took_micros, "answered");
            let end = End {
                rows,
                took_micros,
                open,
            };
            let end = serde_json::to_vec(&end).unwrap_or_default();
            Ok(out.frame(END, &end)?)
        });
    let ended = match ended {
        Ok(()) => out.deliver(),
        Err(Failure::Told(message)) => tell(&mut out, &message),
        Err(Failure::Gone(error)) => match out.refusal() {
            Some(message) => {
                shared.refusals.fetch_add(1, Ordering::Relaxed);
                tell(&mut out, &message)
            }
            None => Err(error),
        },
    };
    if let Err(error) = ended {
        tracing::debug!("a client went before its answer's end: {error}");
    }
}

/// Says what is amiss, as the last frame.
fn tell(out: &mut Outbox<'_>, message: &str) -> io::Result<()> {
    tracing::debug!("refused: {message}");
    out.frame(ERROR, message.as_bytes())?;
    out.deliver()
}

/// Says at once that an answer comes, and whether it may lack rows; then
/// answers. Gives the number of rows.
fn respond(
    ask: &Ask,
    shared: &ServerState,
    client: &Client,
    answers: &NamespaceService,
    out: &mut Outbox<'_>,
) -> Result<Given, Failure> {
    let namespace = namespace_of(ask, answers)?;
    let pair = pair_of(ask, &namespace)?;
    let hello = Hello {
        incomplete: match (&pair, ask) {
            (Some(pair), _) => pair.incomplete(),
            (None, Ask::RouteWhy(_)) => owners::incomplete_of_all(&namespace),
            // It tells what changed, and how far back it knows of that.
            (None, Ask::RouteFlaps(_)) => None,
            (None, _) => namespace.incomplete(),
        },
    };
    let hello = serde_json::to_vec(&hello).map_err(io::Error::from)?;
    out.frame(HELLO, &hello)?;
    out.deliver()?;
    let is_long = match ask {
        Ask::Question(question) => is_sorted(question),
        Ask::Sql(_) => true,
        _ => ask.is_live(),
    };
    if is_long && client.uid != 0 {
        be_nice();
    }
    let names = shared.names();
    let ended = || shared.stopping.load(Ordering::Relaxed) || client.is_gone();
    if let Ask::Question(question) = ask
        && !namespace.refresh_timers(question, Duration::ZERO)
    {
        return Ok(Given {
            rows: 0,
            open: true,
        });
    }
    match ask {
        Ask::Question(question) if is_sorted(question) => {
            let given = sorted(question, shared, client, &namespace, &names, out);
            return given.map(Given::from);
        }
        Ask::Question(question) => {
            if let Some(walk) = Walk::of_answer(question) {
                namespace.refresh(question.object, question.output.statistics);
                return walked(walk, question, &namespace, &names, out).map(Given::from);
            }
        }
        Ask::RouteDiff(question) => {
            if let Some(pair) = pair {
                let times = answers.route_times();
                let give = &mut |piece: Option<&[u8]>| match piece {
                    Some(piece) => out.offer(piece),
                    None => out.deliver().map(|()| true),
                };
                return compared(question, &pair, times, &names, give).map(Given::from);
            }
        }
        Ask::WatchDiff(question) => {
            if let Some(pair) = pair {
                let following = Following::new(pair, (**question).clone());
                let times = answers.route_times();
                return followed(following, times, &names, &ended, out).map(Given::from);
            }
        }
        Ask::Watch(question) => {
            return watched(question, &namespace, &names, &ended, out).map(Given::from);
        }
        Ask::Sql(question) => {
            return stated(question, shared, client, &namespace, &names, out).map(Given::from);
        }
        _ => {}
    }
    let about = (answers, &namespace);
    answer_from(about, ask, &names, shared.answered(), &ended, out)
}

/// Whether rows are gathered to be sorted.
fn is_sorted(question: &Question) -> bool {
    question.output.sort.is_some() && !question.output.count
}

/// The namespace that is asked about, with the rows of the owner that is
/// asked for.
fn namespace_of(ask: &Ask, answers: &NamespaceService) -> Result<Namespace, Failure> {
    let owner = match ask {
        Ask::Question(question) | Ask::Watch(question) => question.filter.source.as_deref(),
        Ask::RouteGet(question) => question.source.as_deref(),
        _ => None,
    };
    answers.namespace().of(owner).map_err(Failure::Told)
}

/// The two owners that are compared, where two are.
fn pair_of(ask: &Ask, namespace: &Namespace) -> Result<Option<Pair>, Failure> {
    match ask {
        Ask::RouteDiff(question) | Ask::WatchDiff(question) => {
            let pair = Pair::new(namespace, &question.sources);
            pair.map(Some).map_err(Failure::Told)
        }
        _ => Ok(None),
    }
}

/// Tells where two owners differ, as [`walked`] tells rows: no moment is
/// held for a client that takes nothing. `give` is given pieces until it
/// says that it takes no more, and then none, when no moment is held.
fn compared(
    question: &RouteDiffQuestion,
    pair: &Pair,
    times: &RouteTimes,
    names: &Names,
    give: &mut dyn FnMut(Option<&[u8]>) -> io::Result<bool>,
) -> Result<u64, Failure> {
    let mut diff = RouteDiff::new(question.clone());
    while !diff.is_over() {
        let moment = pair.moment(times).map_err(Failure::Told)?;
        let now_millis = pair.now_millis();
        let mut takes = true;
        while takes
            && let Some(piece) = diff
                .piece(Bounds::LONG, moment.sides(), names, now_millis)
                .map_err(failure)?
        {
            takes = give(Some(&piece))?;
        }
        drop(moment);
        give(None)?;
    }
    Ok(diff.rows())
}

/// Tells rows of one snapshot as long as the client takes them. While it
/// takes none, none is held: the answer goes on from the newest tables.
fn walked(
    mut walk: Walk,
    question: &Question,
    namespace: &Namespace,
    names: &Names,
    out: &mut Outbox<'_>,
) -> Result<u64, Failure> {
    while !walk.is_over() {
        namespace.refresh_timers(question, TIMERS_AGE);
        let tables = namespace.tables();
        let now_millis = namespace.source.now_millis();
        let mut takes = true;
        while takes
            && let Some(piece) = walk
                .bounded_piece(Bounds::LONG, &tables, names, now_millis)
                .map_err(failure)?
        {
            takes = out.offer(&piece)?;
        }
        drop(tables);
        still_fed(namespace)?;
        out.deliver()?;
    }
    Ok(walk.rows())
}

/// Tells rows that are sorted. One such answer is made at a time, and one of
/// root's, from one snapshot; what the client does not take of it is kept.
fn sorted(
    question: &Question,
    shared: &ServerState,
    client: &Client,
    namespace: &Namespace,
    names: &Names,
    out: &mut Outbox<'_>,
) -> Result<u64, Failure> {
    let is_gone = || has_hung_up(&client.stream) || shared.stopping.load(Ordering::Relaxed);
    let turn = shared.sorting[usize::from(client.uid == 0)].take(TURN, is_gone);
    let Some(turn) = turn else {
        return Err(no_room(shared));
    };
    namespace.refresh(question.object, question.output.statistics);
    let lease = shared
        .kept
        .lease_part(Source::User(client.uid), SORTING_PART);
    if lease.octets() < MIN_SORTING_BYTES {
        return Err(no_room(shared));
    }
    let tables = namespace.tables();
    let now_millis = namespace.source.now_millis();
    // One that is gone is not sorted for to the end: its thread is a nice one.
    let within = view::Within {
        octets: lease.octets(),
        is_over: &is_gone,
    };
    let answered = view::answer_within(&within, question, &tables, names, now_millis, out);
    drop((tables, lease, turn));
    let rows = answered.map_err(|error| match error {
        AnswerError::NoRoom => no_room(shared),
        other => failure(other),
    })?;
    still_fed(namespace)?;
    Ok(rows)
}

/// Answers a statement, in memory that its source has left.
fn stated(
    question: &query::Question,
    shared: &ServerState,
    client: &Client,
    namespace: &Namespace,
    names: &Arc<Names>,
    out: &mut Outbox<'_>,
) -> Result<u64, Failure> {
    let source = Source::User(client.uid);
    let mut lease = shared.kept.lease_part(source, sql::PART);
    lease.resize(lease.octets().min(sql::MEMORY));
    if lease.octets() < sql::MIN_MEMORY {
        shared.refusals.fetch_add(1, Ordering::Relaxed);
        return Err(told(
            "other statements and answers take all memory that they may: ask again",
        ));
    }
    let stream = client.stream.try_clone()?;
    let is_gone = move || has_hung_up(&stream);
    let limits = sql::limits(lease.octets());
    let about = About {
        namespace,
        names: Arc::clone(names),
        translation: shared.translation_for(client.uid),
        earlier: None,
    };
    let answered = query::answer(question, &about, &limits, is_gone, out);
    let answered = answered.map_err(sql_failure)?;
    still_fed(namespace)?;
    Ok(answered.rows)
}

fn sql_failure(error: SqlError) -> Failure {
    match error {
        SqlError::Write(error) => Failure::Gone(error),
        SqlError::Gone => Failure::Gone(io::ErrorKind::BrokenPipe.into()),
        told => Failure::Told(told.to_string()),
    }
}

/// Rows cannot be sorted now.
fn no_room(shared: &ServerState) -> Failure {
    shared.refusals.fetch_add(1, Ordering::Relaxed);
    told(
        "there is no memory left to sort so many rows in, or others' are being sorted: ask again, \
         ask without `--sort`, or the kernel (`--direct`)",
    )
}

/// Lets others go first, from now on.
fn be_nice() {
    // For the calling thread alone, whatever the name says.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("a long answer may delay short ones: no priority: {error}");
    }
}

/// An error where the rows are a feeder's that left: what is told of them is
/// no whole answer.
fn still_fed(namespace: &Namespace) -> Result<(), Failure> {
    match namespace.left() {
        None => Ok(()),
        Some(why) => Err(Failure::Told(format!(
            "the answer is cut off: the source {why}, and its rows with it"
        ))),
    }
}

/// Tells changes as long as the client takes them, until it goes. While it
/// takes none, no tables are held, and it may fall behind.
fn watched(
    question: &Question,
    namespace: &Namespace,
    names: &Names,
    ended: &dyn Fn() -> bool,
    out: &mut Outbox<'_>,
) -> Result<u64, Failure> {
    let reader = namespace.source.reader();
    let now = || namespace.source.now_millis();
    let mut watching = Watching::begin(&reader, question, names, now()).map_err(failure)?;
    let mut rows = 0;
    while !ended() && namespace.left().is_none() {
        let mut told = Vec::new();
        let mut lease = out.lease();
        let mut may_take = |octets| lease.as_mut().is_some_and(|lease| may_grow(lease, octets));
        let some = watching.tell(now(), &mut may_take, &mut told);
        rows += some.map_err(failure)?;
        out.write_all(&told)?;
        drop((told, lease));
        out.flush()?;
        if out.stalls() {
            watching.let_go();
        }
        out.deliver()?;
    }
    still_fed(namespace)?;
    Ok(rows)
}

/// Whether a buffer may grow to so many octets, which count from then on.
/// Those of a frame count for every client.
fn may_grow(lease: &mut Lease, octets: usize) -> bool {
    // In steps: it doubles.
    octets <= FRAME_BYTES.max(lease.octets() / 2) || lease.resize(octets.next_power_of_two() * 2)
}

/// Reads one line, whole within the time and length it may have.
fn read_request(shared: &ServerState, client: &Client) -> Result<Request, Failure> {
    let patience = shared.patience.request;
    let deadline = Instant::now() + patience;
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(late(patience));
        }
        client.stream.set_read_timeout(Some(remaining))?;
        let read = match (&client.stream).read(&mut piece) {
            Ok(0) => return Err(told("the request ends before its line does")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late(patience)),
            Err(error) => return Err(error.into()),
        };
        let piece = piece.get(..read).unwrap_or_default();
        let end = piece.iter().position(|octet| *octet == b'\n');
        line.extend_from_slice(piece.get(..end.unwrap_or(read)).unwrap_or_default());
        if line.len() >= MAX_REQUEST_BYTES {
            return Err(told("the request is longer than 64 KiB"));
        }
        if end.is_some() {
            return protocol::parse_request(&line).map_err(Failure::Told);
        }
    }
}

fn told(message: &str) -> Failure {
    Failure::Told(message.to_owned())
}

fn late(patience: std::time::Duration) -> Failure {
    Failure::Told(format!("no request came within {patience:?}"))
}

/// Answers a question, as a client is answered: the `answered` are for a
/// status, `ended` breaks off what has no end.
pub fn answer(
    ask: &Ask,
    answers: &NamespaceService,
    names: &Names,
    answered: Answered,
    ended: &dyn Fn() -> bool,
    out: &mut impl Write,
) -> Result<Given, Failure> {
    let namespace = namespace_of(ask, answers)?;
    answer_from((answers, &namespace), ask, names, answered, ended, out)
}

/// The same of a namespace that was looked up.
fn answer_from(
    (answers, namespace): (&NamespaceService, &Namespace),
    ask: &Ask,
    names: &Names,
    answered: Answered,
    ended: &dyn Fn() -> bool,
    out: &mut impl Write,
) -> Result<Given, Failure> {
    let now = || namespace.source.now_millis();
    let ended = || ended() || namespace.left().is_some();
    let mut open = false;
    let answered = match ask {
        Ask::Question(question) => {
            namespace.refresh(question.object, question.output.statistics);
            let tables = namespace.tables();
            view::answer(question, &tables, names, now(), out)
        }
        Ask::Watch(question) => watch::watch(
            &namespace.source.reader(),
            question,
            names,
            &now,
            out,
            &ended,
        ),
        Ask::RouteGet(question) => {
            let tables = namespace.tables();
            let got = view::route_get(question, &tables, names, now(), out);
            got.map(|got| {
                open = got.open.is_some();
                got.rows
            })
        }
        Ask::RouteDiff(question) => {
            let pair = Pair::new(namespace, &question.sources).map_err(Failure::Told)?;
            let give = &mut |piece: Option<&[u8]>| {
                let written = out.write_all(piece.unwrap_or_default());
                written.map(|()| true)
            };
            let times = answers.route_times();
            return compared(question, &pair, times, names, give).map(Given::from);
        }
        Ask::WatchDiff(question) => {
            let pair = Pair::new(namespace, &question.sources).map_err(Failure::Told)?;
            let following = Following::new(pair, (**question).clone());
            let times = answers.route_times();
            return followed(following, times, names, &ended, out).map(Given::from);
        }
        Ask::RouteWhy(question) => {
            namespace.refresh(Object::Neigh, false);
            owners::route_why(question, namespace, names, &mut *out)
        }
        Ask::RouteFlaps(question) => {
            let times = answers.route_times();
            let told = owners::route_flaps(question, namespace, names, times, &mut *out);
            return told.map(Given::from).map_err(|error| match error {
                AnswerErrorOrLeft::Answer(error) => failure(error),
                AnswerErrorOrLeft::Left(why) => Failure::Told(why),
            });
        }
        Ask::Sql(question) => {
            let about = About {
                namespace,
                names: Arc::new(names.clone()),
                translation: Err(sql::NOT_KEPT.to_owned()),
                earlier: None,
            };
            let limits = sql::limits(sql::MEMORY);
            let answered = query::answer(question, &about, &limits, || false, out);
            return Ok(answered.map_err(sql_failure)?.rows.into());
        }
        Ask::Arp(question) => {
            namespace.refresh(Object::Neigh, question.shows_ages());
            if question.own {
                namespace.refresh(Object::Addr, false);
            }
            let tables = namespace.tables();
            arp::answer(question, &tables, now(), out)
        }
        Ask::Ifconfig(question) => {
            namespace.refresh(Object::Link, question.shows_counters());
            namespace.refresh(Object::Addr, false);
            let tables = namespace.tables();
            ifconfig::answer(question, &tables, out).map_err(AnswerError::Write)
        }
        Ask::Status { json } => {
            let mut status = answers.status();
            status.answered = answered;
            status.write(*json, out)?;
            return Ok(1.into());
        }
    };
    let rows = answered.map_err(failure)?;
    still_fed(namespace)?;
    Ok(Given { rows, open })
}

/// Tells where two owners differ as it changes, until `ended`. Nothing is
/// held while the client takes nothing.
fn followed(
    mut following: Following,
    times: &RouteTimes,
    names: &Names,
    ended: &dyn Fn() -> bool,
    out: &mut impl Write,
) -> Result<u64, Failure> {
    let mut rows = 0;
    while !ended() {
        let mut told = Vec::new();
        rows += following
            .tell(times, names, &mut told)
            .map_err(|why| match why {
                AnswerErrorOrLeft::Answer(error) => failure(error),
                AnswerErrorOrLeft::Left(why) => Failure::Told(why),
            })?;
        out.write_all(&told)?;
        out.flush()?;
    }
    Ok(rows)
}

fn failure(error: AnswerError) -> Failure {
    match error {
        AnswerError::BadQuestion(bad) => Failure::Told(bad.to_string()),
        AnswerError::NoRoom => Failure::Told(error.to_string()),
        AnswerError::Write(error) => Failure::Gone(error),
    }
}

impl Client {
    /// Whether the other end has hung up.
    fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !matches!(poll(&mut fds, Some(&at_once)), Ok(0))
    }
}
