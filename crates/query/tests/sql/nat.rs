//! Tables of a translation: from a socket that answers as one does, and from
//! some that do not.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_query::{Limits, SqlError};
use serde_json::{Value, json};
use tempfile::TempDir;
use translation::request::{Filter, Request, Table};
use view::Format;

use crate::tables::{Namespace, WIDE, filled};

/// Flows that there are.
const FLOWS: usize = 2_500;

/// What was asked, page by page.
type Heard = Arc<Mutex<Vec<Request>>>;

/// A namespace beside something that listens as a translation does, and what
/// it was asked.
struct Trial {
    namespace: Namespace,
    heard: Heard,
    directory: TempDir,
}

impl Trial {
    fn new(answer: fn(&Request, &mut UnixStream)) -> Self {
        let writer = filled(3);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let listener = UnixListener::bind(&path).unwrap();
        let heard = Heard::default();
        let told = Arc::clone(&heard);
        // Until the test's process ends.
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut line = String::new();
                BufReader::new(&client).read_line(&mut line).unwrap();
                let request: Request = serde_json::from_str(&line).unwrap();
                told.lock().unwrap().push(request.clone());
                answer(&request, &mut client);
            }
        });
        let mut namespace = Namespace::new(&writer);
        namespace.translation = Ok(Arc::from(path));
        Self {
            namespace,
            heard,
            directory,
        }
    }

    /// The filters of what was asked since this was last called.
    fn filters(&self) -> Vec<Filter> {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        let filter = |request| match request {
            Request::Show { filter, .. } => filter,
            other => panic!("{other:?}"),
        };
        heard.into_iter().map(filter).collect()
    }
}

fn flow(number: usize) -> Value {
    json!({
        "protocol": if number.is_multiple_of(2) { 6 } else { 17 }, "state": "udp",
        "inside": format!("10.0.{}.{}", number / 200, number % 200), "inside_port": number,
        "alias": "192.0.2.1", "alias_port": 1024 + number,
        "remote": "198.51.100.9", "remote_port": 53,
        "idle_millis": 5, "expires_millis": 60_000,
    })
}

/// The rows of all tables.
fn rows(table: Table) -> Vec<Value> {
    let classes = json!({"tcp": 1, "udp": 2, "other": 3});
    match table {
        Table::Flows => (0..FLOWS).map(flow).collect(),
        Table::Subscribers => vec![
            json!({"subscriber": "10.0.0.0-10.0.0.7", "alias": null, "ports": classes,
                "sessions": classes, "half_open": {"tcp": 4, "udp": 5}, "blocks": 1}),
            json!({"subscriber": "10.0.0.8", "alias": "192.0.2.1", "ports": classes,
                "sessions": classes, "half_open": {"tcp": 4, "udp": 5}, "blocks": 1,
                "counted": {"translated": 6, "addresses_made": 7, "mappings_made": 8,
                    "addresses_exhausted": 9, "refused": 10}}),
        ],
        Table::Pools => vec![json!({"alias": "192.0.2.1", "open": true, "blocks": 2})],
        _ => Vec::new(),
    }
}

/// A page, as a translation gives it.
fn answers(request: &Request, client: &mut UnixStream) {
    let Request::Show {
        table,
        filter,
        limit,
        after,
        ..
    } = request
    else {
        panic!("{request:?}");
    };
    assert_eq!(filter.stray(*table), None);
    let first: usize = after.as_ref().map_or(0, |at| at.parse().unwrap());
    let is_wanted = |row: &&Value| match (filter.inside, row["inside"].as_str()) {
        (Some(net), Some(inside)) => net.contains(&inside.parse::<std::net::Ipv4Addr>().unwrap()),
        _ => true,
    };
    let all = rows(*table);
    let some = all.iter().skip(first).take(limit.unwrap());
    let mut answer = Vec::new();
    for row in some.filter(is_wanted) {
        writeln!(answer, "{row}").unwrap();
    }
    let behind = first + limit.unwrap();
    let next = (behind < all.len()).then(|| behind.to_string());
    writeln!(answer, "{}", json!({"end": true, "next": next})).unwrap();
    client.write_all(&answer).unwrap();
}

#[test]
fn a_translation_s_rows_are_taken_page_by_page() {
    let trial = Trial::new(answers);
    let namespace = &trial.namespace;
    let all =
        namespace.rows("select count(*), count(distinct inside), max(inside_port) from nat_flows");
    assert_eq!(all, [format!("{FLOWS},{FLOWS},{}", FLOWS - 1)]);
    assert_eq!(
        trial.filters(),
        vec![Filter::default(); 4],
        "64, and 1,000 at a time"
    );
    let few = namespace.rows("select inside from nat_flows limit 3");
    assert_eq!(few, ["10.0.0.0", "10.0.0.1", "10.0.0.2"]);
    assert_eq!(trial.filters().len(), 1, "no more than is wanted");
    let ordered = namespace.rows("select inside from nat_flows order by inside desc limit 1");
    assert_eq!(ordered, ["10.0.12.99"]);
    let subscribers = namespace.rows(
        "select subscriber, last_inside, alias, ports_udp, half_open_tcp, refused from nat_subscribers",
    );
    assert_eq!(
        subscribers,
        [
            "10.0.0.0-10.0.0.7,10.0.0.7,,2,4,",
            "10.0.0.8,10.0.0.8,192.0.2.1,2,4,10"
        ]
    );
    assert_eq!(
        namespace.rows("select is_open, free_blocks from nat_pools"),
        ["1,"]
    );
    assert!(namespace.rows("select * from nat_leases").is_empty());
}

#[test]
fn conditions_are_handed_to_the_translation_s_filters() {
    let trial = Trial::new(answers);
    let namespace = &trial.namespace;
    for (conditions, rows, expected) in [
        (
            "inside = '10.0.1.7'",
            1,
            Filter {
                inside: "10.0.1.7/32".parse().ok(),
                ..Filter::default()
            },
        ),
        (
            "within(inside, '10.0.2.0/24') and protocol = 6",
            100,
            Filter {
                inside: "10.0.2.0/24".parse().ok(),
                protocol: Some(6),
                ..Filter::default()
            },
        ),
        (
            "alias = '192.0.2.1' and alias_port = 1030",
            1,
            Filter {
                alias: "192.0.2.1/32".parse().ok(),
                port: Some(1030),
                ..Filter::default()
            },
        ),
        (
            "in_cidr_range(remote, '198.51.100.0/24') and inside_port < 10",
            10,
            Filter {
                remote: "198.51.100.0/24".parse().ok(),
                ..Filter::default()
            },
        ),
    ] {
        let found = namespace.rows(&format!("select inside from nat_flows where {conditions}"));
        assert_eq!(found.len(), rows, "{conditions}");
        let filters = trial.filters();
        assert!(
            filters.iter().all(|filter| *filter == expected),
            "{conditions}: {filters:?}"
        );
    }
    let whose = "select subscriber from nat_subscribers where first_inside <= '10.0.0.5' \
                 and last_inside >= '10.0.0.5'";
    assert_eq!(namespace.rows(whose), ["10.0.0.0-10.0.0.7"]);
    assert_eq!(trial.filters()[0].inside, "10.0.0.5/32".parse().ok());
    let nobody = "select * from nat_flows where inside = 'fd00::1'";
    assert!(namespace.rows(nobody).is_empty() && trial.filters().is_empty());
    // The flows are walked once, and links looked up for them.
    let joined =
        "select count(*) from nat_flows f join links l on l.ifindex = 1 + f.inside_port % 5";
    assert_eq!(namespace.rows(joined), [FLOWS.to_string()]);
    assert_eq!(trial.filters().len(), 4);
}

#[test]
fn where_no_translation_answers_it_is_said_and_others_are_not_kept() {
    let writer = filled(3);
    let mut namespace = Namespace::new(&writer);
    let nobody = namespace.error("select * from nat_flows");
    assert!(nobody.contains("no translation runs here"), "{nobody}");
    assert_eq!(namespace.rows("select count(*) from links"), ["30"]);
    namespace.translation = Ok(Arc::from(Path::new("/nowhere/control")));
    let nowhere = namespace.error("select * from nat_flows");
    assert!(nowhere.contains("nat run --control"), "{nowhere}");
    for (answer, why) in [
        (
            (|_, client| writeln!(client, "220 mail.example ESMTP").unwrap())
                as fn(&_, &mut UnixStream),
            "who answers there is no translation",
        ),
        (
            |_, client| writeln!(client, "{{\"error\":\"busy\"}}").unwrap(),
            "busy",
        ),
        (
            |_, client| writeln!(client, "{}", flow(1)).unwrap(),
            "cut off",
        ),
        (
            |_, client| {
                for number in 0..3_000 {
                    // Who has had enough has gone.
                    let _ = writeln!(client, "{}", flow(number));
                }
            },
            "more rows than were asked for",
        ),
    ] {
        let trial = Trial::new(answer);
        let error = trial.namespace.error("select * from nat_flows");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn one_that_stalls_takes_no_more_than_a_statement_s_time() {
    let trial = Trial::new(|_, client| {
        // Until nobody waits, and at most for a minute.
        for _ in 0..600 {
            if client.write_all(b" ").is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
    let limits = Limits {
        time: Duration::from_millis(300),
        ..WIDE
    };
    let begun = Instant::now();
    let (answered, _) = trial
        .namespace
        .ask("select * from nat_flows", &limits, Format::Csv);
    let error = answered.unwrap_err();
    assert!(matches!(error, SqlError::TooLong(_)) || error.to_string().contains("in time"));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_statement_walks_a_few_tables_at_a_time() {
    let trial = Trial::new(answers);
    let union = |walks: usize| {
        let from: Vec<String> = (0..walks).map(|at| format!("nat_flows f{at}")).collect();
        let same: Vec<String> = (1..walks)
            .map(|at| format!("f{at}.inside = f0.inside"))
            .collect();
        let same = same.join(" and ");
        format!(
            "select count(*) from {} where f0.inside = '10.0.0.1' and {same}",
            from.join(", ")
        )
    };
    assert_eq!(trial.namespace.rows(&union(8)), ["1"]);
    let error = trial.namespace.error(&union(9));
    assert!(
        error.contains("8 tables of a translation at a time"),
        "{error}"
    );
    assert_eq!(trial.namespace.rows(&union(7)), ["1"]);
    assert!(fs::metadata(trial.directory.path()).is_ok());
}
