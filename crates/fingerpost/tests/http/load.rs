//! Stalled clients, event streams and a table that changes all the time:
//! others do not notice.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::{Netns, wait_until};

use super::hostile::connect;
use super::{asked, configured, get, with_loopback};
use crate::common::{PATIENCE, furnished};

const ROUTES: usize = 20_000;

fn lines(what: &str, from: usize, count: usize) -> String {
    (from..from + count)
        .map(|n| {
            format!(
                "route {what} 10.{}.{}.{}/32 dev br0\n",
                64 + n / 65536,
                n / 256 % 256,
                n % 256
            )
        })
        .collect()
}

/// A connection that keeps asking.
struct Asker {
    stream: BufReader<TcpStream>,
}

impl Asker {
    fn new(netns: &Netns) -> Self {
        Self {
            stream: BufReader::new(connect(netns)),
        }
    }

    /// Asks for a path; the head and the body, which has a length.
    fn ask(&mut self, path: &str) -> (String, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).unwrap();
            assert!(read > 0, "{head}");
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap_or_else(|| panic!("{head}"));
        let mut body = vec![0; length.parse().unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }
}

fn resident(daemon: &crate::common::Daemon, netns: &Netns) -> u64 {
    let _ = daemon;
    let metrics = get(netns, "/metrics");
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.unwrap().parse().unwrap()
}

#[test]
fn stalled_clients_and_streams_change_nothing_for_the_others() {
    let Some(netns) = furnished("httpstall") else {
        return;
    };
    with_loopback(&netns);
    let directory = tempfile::tempdir().unwrap();
    // Patience for as long as the test takes: who stalls stays.
    let daemon = configured(&netns, directory.path(), "write_timeout_secs = 600");
    netns.ip_batch(&lines("add", 0, ROUTES)).unwrap();
    wait_until(PATIENCE, "all routes", || {
        let count: usize = get(&netns, "/v1/routes?count").trim().parse().unwrap();
        (count >= ROUTES).then_some(())
    })
    .unwrap();
    let before = resident(&daemon, &netns);
    // They ask for everything and take nothing.
    let stalled: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect(&netns);
            stream
                .write_all(b"GET /v1/routes HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    let streams: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect(&netns);
            stream
                .write_all(b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    let mut asker = Asker::new(&netns);
    for round in 0..20 {
        let what = if round % 2 == 0 { "add" } else { "del" };
        netns.ip_batch(&lines(what, 100_000, 500)).unwrap();
        for n in 0..20 {
            let (_, body) = asker.ask(&format!("/v1/routes?exact=10.64.1.{n}/32"));
            assert!(body.contains(&format!("10.64.1.{n}\"")), "{body}");
        }
    }
    // Long answers to others come too: who stalls keeps nothing from them.
    let all = get(&netns, "/v1/routes?format=ndjson&fields=dst");
    assert!(all.lines().count() >= ROUTES);
    let page = get(&netns, "/v1/routes?format=ndjson&fields=dst&limit=10000");
    assert_eq!(page.lines().count(), 10_000);
    let mut watching = BufReader::new(connect(&netns));
    let request = b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    watching.get_mut().write_all(request).unwrap();
    let mut line = String::new();
    while line.trim_end() != "event: start" {
        line.clear();
        assert!(watching.read_line(&mut line).unwrap() > 0);
    }
    drop(watching);
    let after = resident(&daemon, &netns);
    let grown = after.saturating_sub(before);
    assert!(grown < 200 << 20, "{before} -> {after}");
    // All are still there: nobody was in need of their places. The one that
    // left is noticed when it is next written to.
    wait_until(PATIENCE, "200 streams", || {
        let metrics = get(&netns, "/metrics");
        metrics
            .contains("fingerpost_http_event_streams 200\n")
            .then_some(())
    })
    .unwrap();
    assert_eq!(get(&netns, "/healthz"), "{\"status\":\"ok\"}\n");
    drop((stalled, streams));
}

#[test]
fn a_walk_during_churn_tells_every_row_that_stays_once() {
    let Some((netns, _daemon)) = asked("httpchurn") else {
        return;
    };
    netns.ip_batch(&lines("add", 0, ROUTES)).unwrap();
    wait_until(PATIENCE, "all routes", || {
        let count: usize = get(&netns, "/v1/routes?count").trim().parse().unwrap();
        (count >= ROUTES).then_some(())
    })
    .unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let churning = Arc::clone(&ended);
        let churned = &netns;
        scope.spawn(move || {
            // Every other 500 of the first half, again and again.
            while !churning.load(Ordering::Relaxed) {
                for from in (0..ROUTES / 2).step_by(1000) {
                    churned.ip_batch(&lines("del", from, 500)).unwrap();
                    churned.ip_batch(&lines("add", from, 500)).unwrap();
                }
            }
        });
        for _ in 0..3 {
            let mut told: HashMap<String, usize> = HashMap::new();
            let mut asker = Asker::new(&netns);
            let mut next = Some("/v1/routes?fields=dst&format=csv&limit=300".to_owned());
            while let Some(path) = next {
                let (head, body) = asker.ask(&path);
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                for row in body.lines().skip(1) {
                    *told.entry(row.to_owned()).or_default() += 1;
                }
                next = head
                    .lines()
                    .find_map(|line| line.strip_prefix("link: <"))
                    .and_then(|link| Some(link.split_once('>')?.0.to_owned()));
            }
            let stays = |n: &usize| *n >= ROUTES / 2 || n % 1000 >= 500;
            for n in (0..ROUTES).filter(stays) {
                let dst = format!("10.{}.{}.{}", 64 + n / 65536, n / 256 % 256, n % 256);
                assert_eq!(told.get(&dst), Some(&1), "{dst}");
            }
            assert!(told.values().all(|times| *times == 1));
        }
        ended.store(true, Ordering::Relaxed);
    });
}
