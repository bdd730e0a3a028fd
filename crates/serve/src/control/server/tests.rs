//! Clients of every sort, over real sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use table::{
    Change, Limits, Link, NextHop, NextHops, Placement, Reader, Route, RouteBody, Source, Writer,
};
use tempfile::TempDir;
use view::{
    Filter, Format, Object, Output, Question, RouteDiffQuestion, RouteFlapsQuestion,
    RouteWhyQuestion,
};

use super::*;
use crate::control::client::{self, AskError};
use crate::control::protocol::Ask;
use crate::namespace::Namespace;
use crate::namespace_service::DaemonGauges;
use crate::status::Status;

/// What a test waits for comes sooner.
const PATIENCE: Duration = Duration::from_secs(30);
/// Links enough that an answer fills every buffer on its way.
const MANY: u32 = 20_000;

struct Tested {
    server: Arc<Server>,
    socket: PathBuf,
    accepting: Option<thread::JoinHandle<()>>,
    ended: Arc<AtomicBool>,
    writer: Writer,
    _directory: TempDir,
}

/// Tables that nobody changes, and nothing that is sampled.
#[derive(Debug)]
struct Fixed(Reader, table::Phase);

impl Source for Fixed {
    fn reader(&self) -> Reader {
        self.0.clone()
    }

    fn status(&self) -> table::Status {
        table::Status {
            phase: self.1.clone(),
            ..table::Status::default()
        }
    }

    fn samples(&self) -> Option<&table::Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        0
    }
}

fn answers(reader: Reader, phase: table::Phase) -> Arc<NamespaceService> {
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(reader, phase)),
        feeder: None,
    };
    Arc::new(NamespaceService::new(namespace, DaemonGauges::default()))
}

impl Tested {
    fn new(patience: Patience, links: u32) -> Self {
        Self::of(patience, links, table::Phase::Live)
    }

    fn of(patience: Patience, links: u32, phase: table::Phase) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut writer = Writer::default();
        writer.commit((1..=links).map(link)).unwrap();
        let answers = answers(writer.reader(), phase);
        let server = Arc::new(Server::new(patience, Names::default()));
        let ended = Arc::new(AtomicBool::new(false));
        let accepting = thread::spawn({
            let (server, ended) = (Arc::clone(&server), Arc::clone(&ended));
            move || {
                let look = Timespec {
                    tv_sec: 0,
                    tv_nsec: 20_000_000,
                };
                while !ended.load(Ordering::Relaxed) {
                    let mut waiting = [PollFd::new(&listener, PollFlags::IN)];
                    poll(&mut waiting, Some(&look)).unwrap();
                    server.accept(&listener, &answers);
                }
            }
        });
        Self {
            server,
            socket,
            accepting: Some(accepting),
            ended,
            writer,
            _directory: directory,
        }
    }

    fn connect(&self) -> UnixStream {
        client::connect(&self.socket).unwrap().unwrap()
    }

    fn ask(&self, ask: Ask) -> Result<(u64, String), AskError> {
        let mut out = Vec::new();
        let outcome = client::ask(&self.connect(), ask, &mut out)?;
        Ok((outcome.end.rows, String::from_utf8(out).unwrap()))
    }

    /// What the server says to octets that are no request.
    fn refusal(&self, octets: &[u8], then_ends: bool) -> String {
        let mut stream = self.connect();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        // The server may have heard enough before the end.
        let _ = stream.write_all(octets);
        if then_ends {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut payload = Vec::new();
        let kind = protocol::read_frame(&mut stream, &mut payload).unwrap();
        assert_eq!(kind, protocol::ERROR);
        String::from_utf8(payload).unwrap()
    }

    fn until(&self, what: impl Fn(&Answered) -> bool) {
        let come = lab::wait_until(PATIENCE, "the server's count", || {
            what(&self.server.answered()).then_some(())
        });
        assert!(come.is_ok(), "{:?}", self.server.answered());
    }
}

impl Drop for Tested {
    fn drop(&mut self) {
        self.server.stop();
        self.ended.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn link(index: u32) -> Change {
    Change::PutLink(Link {
        index,
        name: format!("test{index}").into(),
        mtu: 1500,
        ..Link::default()
    })
}

fn links(filter: Filter) -> Box<Question> {
    Box::new(Question {
        object: Object::Link,
        filter,
        output: Output {
            format: view::Format::Ndjson,
            ..Output::default()
        },
    })
}

#[test]
fn questions_are_answered_whole() {
    let tested = Tested::new(Patience::default(), MANY);
    let (rows, text) = tested.ask(Ask::Question(links(Filter::default()))).unwrap();
    assert_eq!(rows, u64::from(MANY));
    assert_eq!(text.lines().count(), MANY as usize);
    let one = Filter {
        dev: Some("test7".to_owned()),
        ..Filter::default()
    };
    let (rows, text) = tested.ask(Ask::Question(links(one))).unwrap();
    assert_eq!(rows, 1, "{text}");
    tested.until(|answered| answered.answers == 2 && answered.clients == 0);
}

fn routes(source: &str) -> Box<Question> {
    let source = (source != table::KERNEL).then(|| source.to_owned());
    Box::new(Question {
        object: Object::Route,
        filter: Filter {
            source,
            ..Filter::default()
        },
        output: Output::default(),
    })
}

/// A route over the link with this index.
fn route(to: [u8; 4], link: u32) -> Change {
    let body = RouteBody {
        kind: 1,
        protocol: 186,
        scope: 0,
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: None,
        next_hops: NextHops::One(NextHop {
            link,
            weight: 1,
            ..NextHop::default()
        }),
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: Default::default(),
        path: Default::default(),
    };
    let route = Route {
        table: 254,
        prefix: std::net::IpAddr::from(to).into(),
        tos: 0,
        metric: 0,
        body,
    };
    Change::PutRoute(route, Placement::Last)
}

#[test]
fn the_rows_of_a_feeder_are_asked_for_by_its_name() {
    let mut tested = Tested::new(Patience::default(), 7);
    let asked = |tested: &Tested, source| tested.ask(Ask::Question(routes(source)));
    let error = asked(&tested, "bgp").unwrap_err().to_string();
    assert!(
        error.contains("no source `bgp`") && error.ends_with("kernel"),
        "{error}"
    );
    let mut feeder = tested
        .writer
        .feeders()
        .join("bgp", Limits::default())
        .unwrap();
    tested.writer.commit([route([192, 0, 2, 1], 2)]).unwrap();
    feeder.begin();
    feeder.commit([route([192, 0, 2, 9], 7)]).unwrap();
    feeder.end();
    let (rows, text) = asked(&tested, "bgp").unwrap();
    assert!(
        rows == 1 && text.starts_with("192.0.2.9 dev test7 "),
        "{text}"
    );
    let (rows, text) = asked(&tested, table::KERNEL).unwrap();
    assert!(
        rows == 1 && text.starts_with("192.0.2.1 dev test2 "),
        "{text}"
    );
    // What it is asked for while it tells its rows again may be out of date.
    feeder.begin();
    let mut out = Vec::new();
    let outcome = client::ask(&tested.connect(), Ask::Question(routes("bgp")), &mut out).unwrap();
    assert_eq!(outcome.incomplete.as_deref(), Some("resyncing"));
    let (_, status) = tested.ask(Ask::Status { json: false }).unwrap();
    let line = "source bgp: resyncing, 1 routes, 0 nexthops, 1 resyncs, 0 rows refused";
    assert!(status.contains(line), "{status}");
    // Who watches it hears that it left, and does not wait for more.
    let watching = tested.connect();
    let mut heard = Vec::new();
    let watched = client::begin(&watching, Ask::Watch(routes("bgp"))).unwrap();
    drop(feeder);
    let ended = watched.finish(&mut heard).unwrap_err().to_string();
    assert!(ended.contains("bgp left"), "{ended}");
    assert!(asked(&tested, "bgp").is_err());
    let (rows, _) = asked(&tested, table::KERNEL).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_question_without_an_answer_says_why() {
    let tested = Tested::new(Patience::default(), 1);
    let nobody = Filter {
        dev: Some("nobody".to_owned()),
        ..Filter::default()
    };
    let error = tested.ask(Ask::Question(links(nobody))).unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
}

#[test]
fn the_status_counts_the_answers() {
    let tested = Tested::new(Patience::default(), 1);
    tested.ask(Ask::Status { json: true }).unwrap();
    // The first one's place is given back a moment behind its answer.
    tested.until(|answered| answered.clients == 0);
    let (_, text) = tested.ask(Ask::Status { json: true }).unwrap();
    let status: Status = serde_json::from_str(&text).unwrap();
    assert_eq!((status.answered.answers, status.answered.clients), (1, 1));
}

#[test]
fn bad_requests_are_refused_in_words() {
    let patience = Patience {
        request: Duration::from_millis(300),
        ..Patience::default()
    };
    let tested = Tested::new(patience, 1);
    let huge = vec![b'x'; 200 << 10];
    for (octets, ends, says) in [
        (&b"dance\n"[..], false, "no request"),
        (b"\n", false, "no request"),
        (b"\0\xff\xfe\n", false, "no request"),
        (b"{\"v\":99}\n", false, "version 99"),
        (b"{\"v\":2,\"ask\":\"dance\"}\n", false, "makes no sense"),
        (b"{\"v\":2,\"ask\"", true, "before its line"),
        (b"", true, "before its line"),
        (b"{\"v\":2,", false, "no request came within"),
        (&huge, false, "longer than 64 KiB"),
    ] {
        let refusal = tested.refusal(octets, ends);
        assert!(refusal.contains(says), "{refusal}");
    }
    tested.until(|answered| answered.clients == 0);
    tested.ask(Ask::Status { json: false }).unwrap();
}

/// Asks for more than the socket's buffer holds and reads nothing.
fn stall(tested: &Tested) -> UnixStream {
    begin(tested, Ask::Question(links(Filter::default())))
}

/// Asks, and reads nothing.
fn begin(tested: &Tested, ask: Ask) -> UnixStream {
    let mut stream = tested.connect();
    let request = protocol::Request {
        v: protocol::VERSION,
        ask,
    };
    let mut line = serde_json::to_vec(&request).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
}

#[test]
fn a_client_that_stalls_is_dropped_and_holds_up_nobody() {
    let patience = Patience {
        stalled: Duration::from_millis(300),
        ..Patience::default()
    };
    let tested = Tested::new(patience, MANY);
    let stalled = stall(&tested);
    tested.until(|answered| answered.clients == 1);
    tested.ask(Ask::Status { json: true }).unwrap();
    tested.until(|answered| answered.clients == 0);
    drop(stalled);
}

/// The names of links, sorted: many rows that cannot be walked.
fn sorted(format: view::Format) -> Ask {
    Ask::Question(Box::new(Question {
        object: Object::Link,
        filter: Filter::default(),
        output: Output {
            format,
            sort: Some("-ifname".to_owned()),
            ..Output::default()
        },
    }))
}

/// Reads an answer to its last frame: its type, and all text before it.
fn rest(stream: &mut UnixStream) -> (u8, String, String) {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (mut text, mut payload) = (Vec::new(), Vec::new());
    loop {
        match protocol::read_frame(stream, &mut payload).unwrap() {
            protocol::HELLO => {}
            protocol::DATA => text.extend_from_slice(&payload),
            kind => {
                let last = String::from_utf8(payload).unwrap();
                return (kind, String::from_utf8(text).unwrap(), last);
            }
        }
    }
}

/// Changes every link; the snapshot of before must go, for nobody but a
/// client could hold it.
fn old_snapshot_goes(tested: &mut Tested) {
    let old = Arc::downgrade(&tested.writer.reader().snapshot());
    let renamed = |index| {
        Change::PutLink(Link {
            index,
            name: format!("other{index}").into(),
            ..Link::default()
        })
    };
    tested.writer.commit((1..=MANY).map(renamed)).unwrap();
    lab::wait_until(PATIENCE, "the end of the old snapshot", || {
        (old.strong_count() == 0).then_some(())
    })
    .unwrap();
}

#[test]
fn a_client_that_stalls_holds_no_snapshot_and_gets_every_row_once() {
    let mut tested = Tested::new(Patience::default(), MANY);
    let mut stalled = stall(&tested);
    tested.until(|answered| answered.clients == 1);
    old_snapshot_goes(&mut tested);
    let (kind, text, _) = rest(&mut stalled);
    assert_eq!(kind, protocol::END);
    let indexes: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| row["ifindex"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, (1..=u64::from(MANY)).collect::<Vec<_>>());
    // What was on its way is of before, what came later of after.
    assert!(text.contains("\"test1\"") && text.contains(&format!("\"other{MANY}\"")));
}

#[test]
fn an_answer_that_is_no_walk_is_kept_whole_and_no_snapshot_with_it() {
    let mut tested = Tested::new(Patience::default(), MANY);
    let (_, expected) = tested.ask(sorted(view::Format::Ndjson)).unwrap();
    let kept = |tested: &Tested| tested.server.shared.kept.taken();
    let is_free = || (kept(&tested) == 0).then_some(());
    lab::wait_until(PATIENCE, "the memory of the first", is_free).unwrap();
    let mut stalled = begin(&tested, sorted(view::Format::Ndjson));
    lab::wait_until(PATIENCE, "an answer that is kept", || {
        (kept(&tested) > CLIENT_BYTES).then_some(())
    })
    .unwrap();
    old_snapshot_goes(&mut tested);
    let (kind, text, _) = rest(&mut stalled);
    assert_eq!(kind, protocol::END);
    assert!(
        text == expected,
        "{} of {} bytes",
        text.len(),
        expected.len()
    );
    tested.until(|answered| answered.clients == 0);
    assert_eq!(kept(&tested), 0);
}

#[test]
fn a_watcher_that_stalls_holds_no_snapshot_and_goes_on() {
    let mut tested = Tested::new(Patience::default(), MANY);
    let mut stalled = begin(&tested, Ask::Watch(links(Filter::default())));
    tested.until(|answered| answered.clients == 1);
    // More than the socket takes, whenever it began to watch.
    let is_stalled = |tested: &Tested| tested.server.shared.kept.taken() > CLIENT_BYTES;
    let mut index = MANY;
    lab::wait_until(PATIENCE, "a watcher that stalls", || {
        index += 1_000;
        tested
            .writer
            .commit((index..index + 1_000).map(link))
            .unwrap();
        is_stalled(&tested).then_some(())
    })
    .unwrap();
    old_snapshot_goes(&mut tested);
    // It takes again, and is told of what comes.
    stalled
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let last = Change::PutLink(Link {
        index: 1,
        name: "the last".into(),
        ..Link::default()
    });
    tested.writer.commit([last]).unwrap();
    let (mut text, mut payload) = (Vec::new(), Vec::new());
    while !String::from_utf8_lossy(&text).contains("the last") {
        let kind = protocol::read_frame(&mut stalled, &mut payload).unwrap();
        assert!(matches!(kind, protocol::HELLO | protocol::DATA), "{kind}");
        text.drain(..text.len().saturating_sub(1_000));
        text.extend_from_slice(&payload);
    }
}

#[test]
fn what_is_kept_has_a_bound_and_beyond_it_the_client_is_told() {
    let bounds = [
        (1 << 20, 64 << 20, "1 MiB of one client's answer are kept"),
        (64 << 20, 2 << 20, "2 MiB of answers are kept"),
    ];
    for (of_client, all, named) in bounds {
        let patience = Patience {
            kept_of_client: of_client,
            kept: all,
            ..Patience::default()
        };
        let tested = Tested::new(patience, MANY);
        let mut stalled = begin(&tested, sorted(view::Format::Json));
        tested.until(|answered| answered.refusals == 1);
        let (kind, _, why) = rest(&mut stalled);
        assert_eq!(kind, protocol::ERROR, "{why}");
        assert!(why.contains(named), "{why}");
        tested.until(|answered| answered.clients == 0);
        let is_free = || (tested.server.shared.kept.taken() == 0).then_some(());
        lab::wait_until(PATIENCE, "its memory", is_free).unwrap();
        // And back: who takes the answer gets it.
        let (rows, _) = tested.ask(sorted(view::Format::Json)).unwrap();
        assert_eq!(rows, u64::from(MANY));
    }
}

#[test]
fn the_client_too_many_is_refused_until_a_place_is_free() {
    let patience = Patience {
        clients: 64,
        stalled_when_full: Duration::from_secs(3600),
        ..Patience::default()
    };
    let tested = Tested::new(patience, 1);
    let mut waiting: Vec<_> = (0..64).map(|_| tested.connect()).collect();
    tested.until(|answered| answered.clients == 64);
    let error = tested.ask(Ask::Status { json: true }).unwrap_err();
    assert!(error.to_string().contains("64 clients"), "{error}");
    assert_eq!(tested.server.answered().refusals, 1);
    waiting.pop();
    tested.until(|answered| answered.clients == 63);
    tested.ask(Ask::Status { json: true }).unwrap();
}

#[test]
fn a_stalled_client_gives_its_place_to_another() {
    let patience = Patience {
        clients: 2,
        stalled_when_full: Duration::ZERO,
        ..Patience::default()
    };
    let tested = Tested::new(patience, MANY);
    let _stalled = stall(&tested);
    let _also = stall(&tested);
    tested.until(|answered| answered.clients == 2);
    // Until both wait in a write, the third may still be refused.
    let deadline = Instant::now() + Duration::from_secs(30);
    while tested.ask(Ask::Status { json: true }).is_err() {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn watchers_see_changes_until_they_go() {
    let mut tested = Tested::new(Patience::default(), 1);
    let mut stream = tested.connect();
    let request = protocol::Request {
        v: protocol::VERSION,
        ask: Ask::Watch(links(Filter::default())),
    };
    let mut line = serde_json::to_vec(&request).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut seen = Vec::new();
    let mut octets = [0; 4096];
    let deadline = Instant::now() + Duration::from_secs(30);
    // Changes are made until one was seen: when the watch began is not
    // told.
    let mut index = 1;
    let is_change = |seen: &[u8]| String::from_utf8_lossy(seen).contains("\"event\":\"added\"");
    while !is_change(&seen) {
        assert!(Instant::now() < deadline);
        index += 1;
        tested.writer.commit([link(index)]).unwrap();
        if let Ok(read) = stream.read(&mut octets) {
            seen.extend_from_slice(&octets[..read]);
        }
    }
    drop(stream);
    tested.until(|answered| answered.clients == 0);
}

#[test]
fn an_answer_that_may_lack_rows_says_so_before_it_begins() {
    let tested = Tested::of(Patience::default(), 1, table::Phase::Resyncing);
    let stream = tested.connect();
    let ask = Ask::Question(links(Filter::default()));
    let begun = client::begin(&stream, ask).unwrap();
    assert_eq!(begun.incomplete.as_deref(), Some("resyncing"));
    let outcome = begun.finish(&mut std::io::sink()).unwrap();
    assert_eq!(outcome.incomplete.as_deref(), Some("resyncing"));
    assert_eq!(outcome.end.rows, 1);
    let whole = Tested::new(Patience::default(), 1);
    let stream = whole.connect();
    let begun = client::begin(&stream, Ask::Status { json: true }).unwrap();
    assert_eq!(begun.incomplete, None);
}

#[test]
fn a_flood_of_clients_does_not_hold_up_whoever_accepts() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = Server::new(Patience::default(), Names::default());
    let writer = Writer::default();
    let answers = answers(writer.reader(), table::Phase::Live);
    let _flood: Vec<_> = (0..2 * AT_ONCE)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    server.accept(&listener, &answers);
    assert_eq!(server.answered().clients, AT_ONCE);
    server.accept(&listener, &answers);
    assert_eq!(server.answered().clients, 2 * AT_ONCE);
    server.stop();
}

#[test]
fn who_connects_and_goes_takes_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let patience = Patience {
        clients: 1,
        ..Patience::default()
    };
    let server = Server::new(patience, Names::default());
    let writer = Writer::default();
    let answers = answers(writer.reader(), table::Phase::Live);
    let connect = || UnixStream::connect(&socket).unwrap();
    (0..AT_ONCE - 2).for_each(|_| drop(connect()));
    // This one has asked all that it will, and reads.
    let mut last = connect();
    let ask = protocol::Request {
        v: protocol::VERSION,
        ask: Ask::Status { json: true },
    };
    let mut line = serde_json::to_vec(&ask).unwrap();
    line.push(b'\n');
    last.write_all(&line).unwrap();
    last.shutdown(std::net::Shutdown::Write).unwrap();
    server.accept(&listener, &answers);
    let (kind, status, _) = rest(&mut last);
    assert!(kind == protocol::END && status.starts_with('{'), "{status}");
    assert_eq!(server.answered().refusals, 0);
    server.stop();
}

/// An IPv4 route via a gateway over a link.
fn routed(prefix: &str, gateway: u8) -> Route {
    Route {
        table: table::row::route::table_id::MAIN,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        body: RouteBody {
            kind: 1,
            protocol: 4,
            next_hops: NextHops::One(NextHop {
                link: 1,
                gateway: Some([192, 0, 2, gateway].into()),
                weight: 1,
                ..NextHop::default()
            }),
            ..RouteBody::default()
        },
    }
}

fn put(prefix: &str, gateway: u8) -> Change {
    Change::PutRoute(routed(prefix, gateway), Placement::InsteadOfFirst)
}

fn compared(first: &str, second: &str) -> Box<RouteDiffQuestion> {
    Box::new(RouteDiffQuestion {
        sources: [first.to_owned(), second.to_owned()],
        strict: false,
        filter: Filter::default(),
        output: Output {
            format: Format::Ndjson,
            ..Output::default()
        },
    })
}

#[test]
fn two_sources_are_compared_and_each_is_asked_why() {
    let mut tested = Tested::new(Patience::default(), 2);
    let ask = |tested: &Tested, ask| tested.ask(ask).map_err(|error| error.to_string());
    let diff = || Ask::RouteDiff(compared(table::KERNEL, "frr"));
    let unknown = ask(&tested, diff()).unwrap_err();
    assert!(unknown.contains("no source `frr`"), "{unknown}");
    let same = Ask::RouteDiff(compared(table::KERNEL, table::KERNEL));
    let same = ask(&tested, same).unwrap_err();
    assert!(same.contains("compared with itself"), "{same}");
    let feeders = tested.writer.feeders();
    let mut feeder = feeders.join("frr", Limits::default()).unwrap();
    feeder.update_status(|status| status.phase = table::Phase::Live);
    feeder
        .commit([put("10.0.0.0/8", 1), put("10.1.0.0/16", 1)])
        .unwrap();
    tested.writer.commit([put("10.0.0.0/8", 2)]).unwrap();
    let (rows, text) = ask(&tested, diff()).unwrap();
    assert_eq!(rows, 2, "{text}");
    assert!(text.contains("\"difference\":\"different\""), "{text}");
    assert!(text.contains("\"difference\":\"extra\""), "{text}");
    // What may lack rows is named.
    feeder.begin();
    let mut out = Vec::new();
    let outcome = client::ask(&tested.connect(), diff(), &mut out).unwrap();
    assert_eq!(outcome.incomplete.as_deref(), Some("frr: resyncing"));
    let flaps = |source: Option<&str>| {
        Ask::RouteFlaps(Box::new(RouteFlapsQuestion {
            source: source.map(str::to_owned),
            table: None,
            within: None,
            secs: 3_600,
            limit: 10,
            sort: None,
            parts: 0,
            output: Output::default(),
        }))
    };
    let (rows, text) = ask(&tested, flaps(Some("frr"))).unwrap();
    assert_eq!(rows, 2, "{text}");
    assert!(
        text.contains("10.1.0.0/16 changed 1 time: 1 added"),
        "{text}"
    );
    let (rows, text) = ask(&tested, flaps(None)).unwrap();
    assert!(rows == 2 && text.contains("kernel changed"), "{text}");
    let unknown = ask(&tested, flaps(Some("fish"))).unwrap_err();
    assert!(unknown.contains("no source `fish`"), "{unknown}");
    let why = Ask::RouteWhy(Box::new(RouteWhyQuestion {
        to: "10.1.2.3/32".parse().unwrap(),
        table: None,
        output: Output::default(),
    }));
    let outcome = client::ask(&tested.connect(), why.clone(), &mut out).unwrap();
    assert_eq!(outcome.incomplete.as_deref(), Some("frr: resyncing"));
    assert_eq!(outcome.end.rows, 2);
    drop(feeder);
    let (rows, text) = ask(&tested, why).unwrap();
    assert!(rows == 1 && text.contains("kernel: 10.0.0.0/8"), "{text}");
    let left = ask(&tested, diff()).unwrap_err();
    assert!(left.contains("no source `frr`"), "{left}");
}

/// Hands on what is written, line by line.
struct Lines(Vec<u8>, Sender<String>);

impl Write for Lines {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(octets);
        while let Some(at) = self.0.iter().position(|octet| *octet == b'\n') {
            let line: Vec<u8> = self.0.drain(..=at).collect();
            let line = String::from_utf8(line).map_err(io::Error::other)?;
            self.1.send(line).map_err(io::Error::other)?;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn who_watches_a_difference_hears_of_changes_on_both_sides() {
    let mut tested = Tested::new(Patience::default(), 2);
    let feeders = tested.writer.feeders();
    let mut feeder = feeders.join("frr", Limits::default()).unwrap();
    tested.writer.commit([put("10.0.0.0/8", 1)]).unwrap();
    let (lines, heard) = channel();
    let watching = tested.connect();
    let watcher = thread::spawn(move || {
        let ask = Ask::WatchDiff(compared(table::KERNEL, "frr"));
        client::ask(&watching, ask, &mut Lines(Vec::new(), lines)).map(drop)
    });
    let hears = |what: &[&str]| {
        let line = heard.recv_timeout(PATIENCE).unwrap();
        assert!(what.iter().all(|what| line.contains(what)), "{line}");
    };
    hears(&["\"event\":\"differs\"", "10.0.0.0/8", "missing"]);
    feeder.commit([put("10.0.0.0/8", 1)]).unwrap();
    hears(&["\"event\":\"agrees\"", "10.0.0.0/8"]);
    tested.writer.commit([put("10.0.0.0/8", 2)]).unwrap();
    hears(&["\"event\":\"differs\"", "different"]);
    // More than is kept for watchers: everything is compared anew.
    feeder.without_events();
    feeder
        .commit([put("10.0.0.0/8", 2), put("10.2.0.0/16", 1)])
        .unwrap();
    hears(&["\"event\":\"differs\"", "10.2.0.0/16", "extra"]);
    hears(&["\"event\":\"agrees\"", "10.0.0.0/8"]);
    drop(feeder);
    let ended = watcher.join().unwrap().unwrap_err().to_string();
    assert!(ended.contains("frr left"), "{ended}");
}

fn stated(statement: &str) -> Ask {
    Ask::Sql(Box::new(query::Question {
        statement: statement.to_owned(),
        format: Format::Csv,
        explain: false,
    }))
}

const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n) \
                       select count(*) from n";

#[test]
fn a_statement_is_answered_as_other_questions_are() {
    let tested = Tested::new(Patience::default(), 40);
    let (rows, text) = tested
        .ask(stated(
            "select ifindex, ifname from links where ifindex < 3 order by 1",
        ))
        .unwrap();
    assert_eq!((rows, text.lines().count()), (2, 3), "{text}");
    let refused = tested.ask(stated("create table x(y)")).unwrap_err();
    assert!(refused.to_string().contains("only reads"), "{refused}");
    let degraded = Tested::of(Patience::default(), 2, table::Phase::Loading);
    let mut out = Vec::new();
    let ask = stated("select count(*) from links");
    let outcome = client::ask(&degraded.connect(), ask, &mut out).unwrap();
    assert_eq!(outcome.incomplete.as_deref(), Some("loading"));
}

#[test]
fn a_statement_ends_when_its_client_goes_and_others_are_answered_meanwhile() {
    let tested = Tested::new(Patience::default(), 40);
    let going: Vec<UnixStream> = (0..3).map(|_| begin(&tested, stated(ENDLESS))).collect();
    for _ in 0..20 {
        let (_, text) = tested.ask(stated("select count(*) from links")).unwrap();
        assert!(text.ends_with("\n40\n"), "{text}");
    }
    drop(going);
    let begun = Instant::now();
    while tested.server.answered().clients > 0 {
        assert!(begun.elapsed() < PATIENCE, "a statement goes on for nobody");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ten_million_rows_for_a_client_that_takes_none_are_cut_off() {
    let patience = Patience {
        kept_of_client: 1 << 20,
        ..Patience::default()
    };
    let tested = Tested::new(patience, 4_000);
    let many = stated("select a.ifname, b.ifname from links a, links b");
    let mut slow = begin(&tested, many);
    let (_, text) = tested.ask(stated("select count(*) from links")).unwrap();
    assert!(text.ends_with("\n4000\n"), "{text}");
    let begun = Instant::now();
    while tested.server.answered().refusals == 0 {
        assert!(begun.elapsed() < PATIENCE, "nobody cuts it off");
        thread::sleep(Duration::from_millis(10));
    }
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut all = Vec::new();
    slow.read_to_end(&mut all).unwrap();
    let said = String::from_utf8_lossy(&all);
    assert!(said.contains("the answer was not taken"), "{}", all.len());
}
