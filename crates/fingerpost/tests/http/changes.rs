//! Changes as server-sent events, read with curl.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};

use lab::{Child, Netns};

use super::{BASE, ask, asked};

/// A stream that curl reads.
struct Stream {
    _curl: Child,
    lines: BufReader<ChildStdout>,
}

/// An event: its id, its kind, its data.
#[derive(Debug, Default)]
struct Event {
    id: Option<String>,
    event: String,
    data: serde_json::Value,
}

impl Stream {
    fn open(netns: &Netns, path: &str, arguments: &[&str]) -> Self {
        let mut command = netns.command("curl");
        command
            .args(["-sSN", "--max-time", "120"])
            .args(arguments)
            .arg(format!("{BASE}{path}"))
            .stdout(Stdio::piped());
        let mut curl = Child::spawn(command).unwrap();
        let lines = BufReader::new(curl.process().stdout.take().unwrap());
        Self { _curl: curl, lines }
    }

    /// The next event that has data.
    fn next(&mut self) -> Event {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the stream ended");
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", kind)) => event.event = kind.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                Some(_) => {}
                None if event.event.is_empty() => event = Event::default(),
                None => return event,
            }
        }
    }
}

fn add(netns: &Netns, last: u8) {
    let address = format!("10.9.0.{last}");
    let words = [
        "neigh",
        "replace",
        &address,
        "lladdr",
        "02:00:00:00:00:99",
        "dev",
        "br0",
    ];
    netns.ip(&words).unwrap();
}

#[test]
fn changes_are_told_as_they_happen_and_from_where_one_stopped() {
    let Some((netns, _daemon)) = asked("httpsse") else {
        return;
    };
    let mut all = Stream::open(&netns, "/v1/changes", &[]);
    let mut some = Stream::open(&netns, "/v1/changes?object=neighbours&dev=br0", &[]);
    let start = all.next();
    assert_eq!(start.event, "start");
    assert_eq!(some.next().event, "start");
    netns.ip(&["link", "set", "veth1", "mtu", "1400"]).unwrap();
    netns
        .ip(&["rule", "add", "pref", "3", "table", "7"])
        .unwrap();
    netns
        .ip(&["-6", "rule", "add", "pref", "4", "table", "7"])
        .unwrap();
    netns
        .ip(&["route", "add", "10.77.0.0/16", "dev", "br0", "table", "77"])
        .unwrap();
    add(&netns, 100);
    let mut wanted = vec!["link", "rule", "rule", "route", "neigh"];
    while let Some(object) = wanted.first().copied() {
        let event = all.next();
        if event.data["object"] == object {
            wanted.remove(0);
        }
    }
    // What the kernel does to other rows of the bridge may come between.
    let mut event = some.next();
    while event.data["dst"] != "10.9.0.100" {
        event = some.next();
    }
    assert_eq!(event.data["object"], "neigh");
    assert_eq!(event.data["dev"], "br0");
    let id = event.id.unwrap();

    // What changed is told with what it was, and what did not is not.
    assert_eq!(event.event, "added");
    assert!(event.data["before"].is_null(), "{:?}", event.data);
    assert!(event.data["time_millis"].as_u64() > Some(0));
    let other = [
        "neigh",
        "replace",
        "10.9.0.100",
        "lladdr",
        "02:00:00:00:00:98",
    ];
    let permanent = ["dev", "br0", "nud", "permanent"];
    netns.ip(&[&other[..], &permanent].concat()).unwrap();
    let is_other = |event: &Event| event.data["lladdr"] == "02:00:00:00:00:98";
    let mut changed = some.next();
    while !is_other(&changed) {
        changed = some.next();
    }
    assert_eq!(changed.event, "changed");
    assert_eq!(changed.data["before"]["dst"], "10.9.0.100");
    assert_eq!(changed.data["before"]["lladdr"], "02:00:00:00:00:99");
    assert!(changed.data["before"]["event"].is_null());
    let id = changed.id.unwrap_or(id);

    // Later, from there on: by the header that browsers send, and by query.
    drop(some);
    add(&netns, 101);
    let last = format!("Last-Event-ID: {id}");
    for mut again in [
        Stream::open(&netns, "/v1/changes?object=neighbours", &["-H", &last]),
        Stream::open(
            &netns,
            &format!("/v1/changes?object=neighbours&from={id}"),
            &[],
        ),
    ] {
        let begin = again.next();
        assert_eq!(
            (begin.event.as_str(), begin.id.as_deref()),
            ("start", Some(&*id))
        );
        let mut event = again.next();
        while event.data["dst"] != "10.9.0.101" {
            assert_ne!(event.data["dst"], "10.9.0.100", "told twice");
            event = again.next();
        }
    }
    // An answer says where to go on, too.
    let generation = ask(&netns, "/v1/neighbours", &[]);
    let generation = generation
        .header("fingerpost-generation")
        .unwrap()
        .to_owned();
    add(&netns, 102);
    let mut on = Stream::open(&netns, &format!("/v1/changes?from={generation}"), &[]);
    assert_eq!(on.next().event, "start");
    while on.next().data["dst"] != "10.9.0.102" {}

    // What was of another start, or is yet to come, is lost.
    let start = start.id.unwrap();
    let (of, _) = start.split_once('-').unwrap();
    for lost in ["00000000-1".to_owned(), format!("{of}-999999999")] {
        let mut stream = Stream::open(&netns, &format!("/v1/changes?from={lost}"), &[]);
        assert_eq!(stream.next().event, "start");
        let behind = stream.next();
        assert_eq!(behind.event, "fell_behind");
        add(&netns, 103);
        let _ = netns.ip(&["neigh", "del", "10.9.0.103", "dev", "br0"]);
        while stream.next().data["dst"] != "10.9.0.103" {}
    }
    for wrong in [
        "/v1/changes?object=nothing",
        "/v1/changes?from=yesterday",
        "/v1/changes?dev=br0",
    ] {
        ask(&netns, wrong, &[]).refuses(400);
    }
    ask(&netns, "/v1/changes?object=neighbours&dev=nope", &[]).refuses(404);
}
