//! Reloads, over real sockets: for each pair of before and after, who is
//! answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::budget::Budget;

/// For anything that should happen at once.
const PATIENCE: Duration = Duration::from_secs(30);

const HERE: [u8; 4] = [127, 0, 0, 1];
const OUTSIDE: [u8; 4] = [0, 0, 0, 0];

struct Tested {
    service: Service,
    config: Http,
    token: PathBuf,
    _directory: TempDir,
}

impl Tested {
    /// Listens at both addresses, and asks for a token.
    fn new() -> Self {
        Self::with(Budget::new(64 << 20))
    }

    fn with(budget: Arc<Budget>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        std::fs::write(&token, "a-token-that-is-long-enough-for-anybody\n").unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        let config = Http {
            listen: vec![(HERE, 0).into(), (OUTSIDE, 0).into()],
            token_file: Some(token.clone()),
            ..Http::default()
        };
        let sockets = BoundSockets::open(&config).unwrap();
        Self {
            service: Service::start(sockets, Names::default(), budget).unwrap(),
            config,
            token,
            _directory: directory,
        }
    }

    /// Goes on with these addresses, with or without the token.
    fn reload(&mut self, listen: &[[u8; 4]], with_token: bool) {
        self.config.listen = listen.iter().map(|ip| (*ip, 0).into()).collect();
        self.config.token_file = with_token.then(|| self.token.clone());
        self.service.reload(&self.config).unwrap();
    }

    fn connect(&self, which: usize) -> std::io::Result<TcpStream> {
        let port = self.service.listening[which].address().port();
        let stream = TcpStream::connect(SocketAddr::from((HERE, port)))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

/// The answer to a request, head and body.
fn answered(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Tables, and nothing that is sampled.
#[derive(Debug)]
struct Fixed(table::Reader);

impl table::Source for Fixed {
    fn reader(&self) -> table::Reader {
        self.0.clone()
    }

    fn status(&self) -> table::Status {
        table::Status {
            phase: table::Phase::Live,
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

#[test]
fn the_rows_of_a_feeder_are_asked_for_by_its_name() {
    let mut tested = Tested::new();
    tested.reload(&[HERE, OUTSIDE], false);
    let writer = table::Writer::default();
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(writer.reader())),
        feeder: None,
    };
    tested.service.set_namespaces([namespace].into_iter());
    let get = |path: &str| answered(&mut tested.connect(0).unwrap(), path);
    let path = "/v1/nexthops?source=bgp";
    let refused = get(path);
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    assert!(refused.contains("there are: kernel"), "{refused}");
    let mut feeder = writer
        .feeders()
        .join("bgp", table::Limits::default())
        .unwrap();
    // More than is answered at once.
    let nexthop = |id| {
        table::Change::PutNexthop(table::Nexthop {
            id,
            blackhole: true,
            ..table::Nexthop::default()
        })
    };
    feeder.begin();
    feeder.commit((1..=20_000).map(nexthop)).unwrap();
    feeder.end();
    let told = get(path);
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    assert_eq!(told.matches("\"id\":").count(), 20_000);
    assert!(get("/v1/nexthops?source=bgp&limit=1").contains("\"id\":1,"));
    let own = get("/v1/nexthops?source=kernel");
    assert!(
        own.starts_with("HTTP/1.1 200 ") && !own.contains("\"id\":"),
        "{own}"
    );
    let changes = get("/v1/changes?object=nexthops&source=nobody");
    assert!(changes.starts_with("HTTP/1.1 400 "), "{changes}");
    drop(feeder);
    assert!(get(path).starts_with("HTTP/1.1 400 "));
}

/// Answers from a writer's tables.
fn answering(writer: &table::Writer) -> Tested {
    let mut tested = Tested::new();
    tested.reload(&[HERE, OUTSIDE], false);
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(writer.reader())),
        feeder: None,
    };
    tested.service.set_namespaces([namespace].into_iter());
    tested
}

fn nexthop(id: u32) -> table::Change {
    table::Change::PutNexthop(table::Nexthop {
        id,
        blackhole: true,
        ..table::Nexthop::default()
    })
}

/// A route of a feeder; its body is its own.
fn route(last: u8) -> table::Change {
    route_to([192, 0, 2, last].into(), last)
}

fn route_to(address: std::net::Ipv4Addr, last: u8) -> table::Change {
    let body = table::RouteBody {
        kind: 1,
        protocol: 186,
        scope: 0,
        flags: 0,
        preferred_source: Some([10, 0, 0, last].into()),
        source: None,
        nexthop_id: Some(7),
        next_hops: table::NextHops::None,
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: Default::default(),
        path: Default::default(),
    };
    let route = table::Route {
        table: 254,
        prefix: std::net::IpAddr::from(address).into(),
        tos: 0,
        metric: 0,
        body,
    };
    table::Change::PutRoute(route, table::Placement::Last)
}

/// Asks for changes; what it gives reads until something was told.
fn watching(tested: &Tested, path: &str) -> impl FnMut(&str) {
    let mut stream = tested.connect(0).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    move |until| {
        let mut piece = [0; 4096];
        while !heard.contains(until) {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }
}

#[test]
fn what_a_feeder_tells_is_watched_by_its_name() {
    let writer = table::Writer::default();
    let tested = answering(&writer);
    let feeders = writer.feeders();
    let mut feeder = feeders.join("bgp", table::Limits::default()).unwrap();
    let mut hear = watching(&tested, "/v1/changes?object=nexthops&source=bgp");
    hear("event: start");
    feeder.commit([nexthop(4_711)]).unwrap();
    hear("\"id\":4711");
}

#[test]
fn a_page_of_a_feeder_that_came_again_goes_on_nowhere() {
    let writer = table::Writer::default();
    let tested = answering(&writer);
    let get = |path: &str| answered(&mut tested.connect(0).unwrap(), path);
    let fed = || {
        let feeders = writer.feeders();
        let mut feeder = feeders.join("bgp", table::Limits::default()).unwrap();
        feeder.begin();
        feeder.commit((1..=9).map(route)).unwrap();
        feeder.end();
        feeder
    };
    let feeder = fed();
    // By next-hop object: the cursor holds the number of a body.
    let first = get("/v1/routes?source=bgp&nhid=7&limit=3");
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let next = first.split("link: <").nth(1).unwrap();
    let next = next.split('>').next().unwrap().to_owned();
    assert!(get(&next).starts_with("HTTP/1.1 200 "));
    drop(feeder);
    let _feeder = fed();
    let gone = get(&next);
    assert!(gone.starts_with("HTTP/1.1 410 "), "{gone}");
    assert!(gone.contains("begin without it"), "{gone}");
}

#[test]
fn a_feeder_that_misses_rows_is_told_with_its_rows_in_the_status_and_the_metrics() {
    let writer = table::Writer::default();
    let tested = answering(&writer);
    let get = |path: &str| answered(&mut tested.connect(0).unwrap(), path);
    let limits = table::Limits {
        nexthops: 2,
        ..table::Limits::default()
    };
    let mut feeder = writer.feeders().join("bgp", limits).unwrap();
    feeder.begin();
    assert!(feeder.commit((1..=3).map(nexthop)).is_err());
    feeder.end();
    let rows = get("/v1/nexthops?source=bgp");
    let says = "fingerpost-incomplete: degraded: nexthops miss rows\r\n";
    assert!(rows.contains(says), "{rows}");
    assert!(!get("/v1/nexthops").contains("fingerpost-incomplete"));
    let status = get("/v1/status");
    let feeder = "{\"name\":\"bgp\",\"phase\":\"degraded: nexthops miss rows\",\"complete\":false,\
                  \"routes\":0,\"nexthops\":2,\"resyncs\":0,\"refused\":1}";
    let told: serde_json::Value =
        serde_json::from_str(status.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let expected: serde_json::Value = serde_json::from_str(feeder).unwrap();
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(told["feeders"][0][name], *value, "{name}");
    }
    assert_eq!(told["mirror"]["complete"], true);
    let metrics = get("/metrics");
    for line in [
        "fingerpost_complete 1",
        "fingerpost_table_complete{table=\"routes\"} 1",
        "fingerpost_feeder_complete{source=\"bgp\"} 0",
        "fingerpost_feeder_nexthops{source=\"bgp\"} 2",
        "fingerpost_feeder_refused_total{source=\"bgp\"} 1",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}: {metrics}"
        );
    }
}

fn link(index: u32) -> table::Change {
    table::Change::PutLink(table::Link {
        index,
        name: format!("test{index}").into(),
        ..table::Link::default()
    })
}

/// A service whose clients may keep little, and its tables.
fn with_little_memory() -> (Tested, table::Writer, Arc<Budget>) {
    let budget = Budget::new(128 << 10);
    let mut tested = Tested::with(Arc::clone(&budget));
    tested.reload(&[HERE, OUTSIDE], false);
    let writer = table::Writer::default();
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(writer.reader())),
        feeder: None,
    };
    tested.service.set_namespaces([namespace].into_iter());
    (tested, writer, budget)
}

#[test]
fn a_page_is_shorter_where_no_more_may_be_kept() {
    let (tested, mut writer, budget) = with_little_memory();
    writer.commit((1..=10_000).map(link)).unwrap();
    let get = |path: &str| answered(&mut tested.connect(0).unwrap(), path);
    let mut path = "/v1/links?limit=10000&format=ndjson&fields=ifname".to_owned();
    let (mut rows, mut pages) = (0, 0);
    loop {
        let page = get(&path);
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        rows += body.lines().count();
        pages += 1;
        let Some((_, next)) = head.split_once("link: <") else {
            break;
        };
        path = next.split_once('>').unwrap().0.to_owned();
    }
    assert_eq!(rows, 10_000);
    assert!(pages > 1, "{pages}");
    lab::wait_until(PATIENCE, "what was kept to be gone", || {
        (budget.taken() == 0).then_some(())
    })
    .unwrap();
}

#[test]
fn a_stream_that_would_have_to_keep_too_much_falls_behind() {
    let (tested, mut writer, budget) = with_little_memory();
    let mut until = watching(&tested, "/v1/changes?object=links");
    until("event: start");
    writer.commit([link(1)]).unwrap();
    until("\"test1\"");
    // Megabytes, of one generation.
    writer.commit((2..=20_000).map(link)).unwrap();
    until("event: fell_behind");
    writer.commit([link(20_001)]).unwrap();
    until("\"test20001\"");
    assert!(budget.taken() <= budget.most());
}

/// The status that a request without a token gets; `None`: the connection
/// ends without an answer.
fn asked(stream: &mut TcpStream) -> Option<u16> {
    let request = b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut head = Vec::new();
    let mut octet = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut octet) {
            Ok(1) => head.push(octet[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    stream.read_exact(&mut vec![0; length]).unwrap();
    head.split(' ').nth(1).unwrap().parse().ok()
}

const UNAUTHORIZED: Option<u16> = Some(401);
/// Let in; there is no namespace to answer from.
const LET_IN: Option<u16> = Some(503);

#[test]
fn an_address_that_is_left_out_with_its_token_is_closed_before_the_door_opens() {
    let mut tested = Tested::new();
    let (mut here, mut outside) = (tested.connect(0).unwrap(), tested.connect(1).unwrap());
    assert_eq!(asked(&mut here), UNAUTHORIZED);
    assert_eq!(asked(&mut outside), UNAUTHORIZED);
    tested.reload(&[HERE], false);
    assert_eq!(asked(&mut here), LET_IN);
    assert_ne!(asked(&mut outside), LET_IN);
    let new = tested.connect(1).ok();
    assert_ne!(new.and_then(|mut new| asked(&mut new)), LET_IN);
}

#[test]
fn an_address_that_stays_stays_open_and_has_the_new_token() {
    let mut tested = Tested::new();
    let mut outside = tested.connect(1).unwrap();
    assert_eq!(asked(&mut outside), UNAUTHORIZED);
    tested.reload(&[HERE, OUTSIDE], true);
    assert_eq!(asked(&mut outside), UNAUTHORIZED);
    assert_eq!(asked(&mut tested.connect(1).unwrap()), UNAUTHORIZED);
}

#[test]
fn without_addresses_nobody_is_answered() {
    let mut tested = Tested::new();
    let mut here = tested.connect(0).unwrap();
    assert_eq!(asked(&mut here), UNAUTHORIZED);
    tested.reload(&[], false);
    assert_ne!(asked(&mut here), LET_IN);
    assert!(tested.service.listening().is_empty());
    // One that was closed comes back with the next start only.
    tested.reload(&[HERE], false);
    let new = tested.connect(0).ok();
    assert_ne!(new.and_then(|mut new| asked(&mut new)), LET_IN);
}

#[test]
fn a_token_that_is_asked_for_from_now_on_is_asked_of_those_who_are_there() {
    let mut tested = Tested::new();
    tested.reload(&[HERE], false);
    let mut here = tested.connect(0).unwrap();
    assert_eq!(asked(&mut here), LET_IN);
    tested.reload(&[HERE], true);
    assert_eq!(asked(&mut here), UNAUTHORIZED);
}

#[test]
fn a_configuration_that_is_wrong_changes_nothing() {
    let mut tested = Tested::new();
    std::fs::remove_file(&tested.token).unwrap();
    tested.config.listen.truncate(1);
    assert!(tested.service.reload(&tested.config).is_err());
    for which in [0, 1] {
        assert_eq!(asked(&mut tested.connect(which).unwrap()), UNAUTHORIZED);
    }
}

#[test]
fn the_routes_of_two_sources_are_compared_piece_by_piece() {
    let mut writer = table::Writer::default();
    let tested = answering(&writer);
    let get = |path: &str| answered(&mut tested.connect(0).unwrap(), path);
    let path = "/v1/routes/diff?first=kernel&second=bgp";
    let unknown = get(path);
    assert!(unknown.starts_with("HTTP/1.1 400 "), "{unknown}");
    assert!(unknown.contains("there are: kernel"), "{unknown}");
    let missing = get("/v1/routes/diff?first=kernel");
    assert!(
        missing.contains("parameter `second` is missing"),
        "{missing}"
    );
    let feeders = writer.feeders();
    let mut feeder = feeders.join("bgp", table::Limits::default()).unwrap();
    feeder.update_status(|status| status.phase = table::Phase::Live);
    // More than a piece looks at.
    let many = |at: u32| route_to((0xc000_0200 + at).into(), 1);
    feeder.commit((1..=9_000).map(many)).unwrap();
    writer.commit((1..=8_999).map(many)).unwrap();
    let told = get(path);
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    assert!(
        !told.to_lowercase().contains("fingerpost-incomplete"),
        "{told}"
    );
    assert_eq!(told.matches("\"difference\":").count(), 1, "{told}");
    assert!(told.contains("\"difference\":\"extra\""), "{told}");
    let count = get("/v1/routes/diff?first=bgp&second=kernel&count");
    assert!(count.contains("\n1\n"), "{count}");
    for (query, says) in [
        ("&source=bgp", "named by `first` and `second`"),
        ("&format=csv", "json or ndjson"),
        ("&dev=nope", "Cannot find device"),
        ("&nonsense", "is not known here"),
    ] {
        let refused = get(&format!("{path}{query}"));
        assert!(refused.starts_with("HTTP/1.1 4"), "{query}: {refused}");
        assert!(refused.contains(says), "{query}: {refused}");
    }
    let why = get("/v1/routes/why?prefix=192.0.2.1");
    assert!(why.contains("\"source\":\"bgp\""), "{why}");
    assert!(get("/v1/routes/why?prefix=fish").starts_with("HTTP/1.1 400 "));
    let flaps = get("/v1/routes/flaps");
    assert!(
        flaps.contains("\"sources\":[{\"source\":\"bgp\""),
        "{flaps}"
    );
    let of_one = "/v1/routes/flaps?source=bgp&within=192.0.2.1/32";
    let flaps = get(of_one);
    let added =
        "\"count\":1,\"prefixes\":[{\"dst\":\"192.0.2.1\",\"table\":\"main\",\"changes\":1,";
    assert!(flaps.contains(added), "{flaps}");
    for query in [
        "&sort=colour",
        "&limit=0",
        "&secs=x",
        "&nonsense",
        "&table=fish",
    ] {
        let refused = get(&format!("{of_one}{query}"));
        assert!(refused.starts_with("HTTP/1.1 400 "), "{query}: {refused}");
    }
    assert!(get("/v1/routes/flaps?source=fish").starts_with("HTTP/1.1 400 "));
    feeder.begin();
    let told = get(path).to_lowercase();
    assert!(
        told.contains("fingerpost-incomplete: bgp: resyncing"),
        "{told}"
    );
    drop(feeder);
    assert!(get(path).starts_with("HTTP/1.1 400 "));
}
