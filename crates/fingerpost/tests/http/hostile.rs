//! What no good program sends: each gets a clear refusal, and the next
//! client its answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lab::{Netns, Random, wait_until};

use super::{Reply, ask, asked, configured, get, reply, with_loopback};
use crate::common::{PATIENCE, furnished};

/// A connection from inside a namespace.
pub fn connect(netns: &Netns) -> TcpStream {
    let stream = netns
        .inside(|| TcpStream::connect(("127.0.0.1", 9797)))
        .unwrap()
        .unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What octets get, up to the end of the connection.
fn send(netns: &Netns, octets: &[u8]) -> Reply {
    let mut stream = connect(netns);
    // It may be refused before all of it is sent.
    let _ = stream.write_all(octets);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    reply(&String::from_utf8_lossy(&said))
}

#[test]
fn rude_requests_get_a_refusal_in_words() {
    let Some((netns, _daemon)) = asked("httprude") else {
        return;
    };
    let head =
        |line: &str, rest: &str| format!("{line}\r\nHost: localhost\r\n{rest}\r\n").into_bytes();
    let many = "A: b\r\n".repeat(200);
    let large = format!("A: {}\r\n", "x".repeat(1 << 20));
    let long = format!("GET /v1/links?name={} HTTP/1.1", "x".repeat(6000));
    let deep = format!("GET /{} HTTP/1.1", "a/".repeat(2000));
    for (octets, status) in [
        (b"NONSENSE\r\n\r\n".to_vec(), 400),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            400,
        ),
        (b"GET /v1/links HTTP/1.1\r\n\r\n".to_vec(), 400),
        (
            b"GET /v1/links HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec(),
            400,
        ),
        (
            b"GET /v1/links HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
            421,
        ),
        (
            b"GET http://evil.example/v1/links HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            421,
        ),
        (
            b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            400,
        ),
        (
            b"GET /v1/links HTTP/1.1\r\nHost: localhost\r\nA b: c\r\n\r\n".to_vec(),
            400,
        ),
        (head("GET /v1/links HTTP/1.1", &many), 431),
        (head("GET /v1/links HTTP/1.1", &large), 431),
        (head(&long, ""), 414),
        (head(&deep, ""), 414),
        (head("GET /v1/links HTTP/1.1", "Content-Length: 5\r\n"), 413),
        (
            head("GET /v1/links HTTP/1.1", "Transfer-Encoding: chunked\r\n"),
            413,
        ),
        (
            head(
                "GET /v1/links HTTP/1.1",
                "Content-Length: 5\r\nContent-Length: 6\r\n",
            ),
            400,
        ),
        (
            head("POST /v1/links HTTP/1.1", "Content-Length: 1\r\n"),
            405,
        ),
        (head("DELETE /v1/routes HTTP/1.1", ""), 405),
        (head("OPTIONS /v1/routes HTTP/1.1", ""), 405),
        (
            head("GET /v1/links HTTP/1.1", "Origin: http://evil.example\r\n"),
            403,
        ),
        (
            head("GET /v1/links HTTP/1.1", "Sec-Fetch-Site: cross-site\r\n"),
            403,
        ),
        (head("GET /v1/ HTTP/1.1", ""), 404),
        (head("GET /v1/links/ HTTP/1.1", ""), 404),
        (head("GET //v1/links HTTP/1.1", ""), 404),
        (head("GET /v1/../../etc/passwd HTTP/1.1", ""), 404),
        (head("GET /assets/../../../etc/passwd HTTP/1.1", ""), 404),
        (head("GET /assets/%2e%2e%2fetc%2fpasswd HTTP/1.1", ""), 404),
        (head("GET /v1%2flinks HTTP/1.1", ""), 404),
        (head("GET /v1/links?dev=%00 HTTP/1.1", ""), 400),
        (head("GET /v1/links?dev=%ff HTTP/1.1", ""), 400),
        (head("GET /v1/links?dev=%zz&dev HTTP/1.1", ""), 400),
        (head("GET /v1/routes?table=no-such-table HTTP/1.1", ""), 400),
        (
            head("GET /v1/routes?ipv4&to=2001:db8::/32 HTTP/1.1", ""),
            400,
        ),
        (head("GET /v1/neighbours?mac=zz HTTP/1.1", ""), 400),
        (head("GET /v1/neighbours?fields=nope HTTP/1.1", ""), 400),
        (head("GET /v1/neighbours?state=nope HTTP/1.1", ""), 400),
        (head("GET /v1/routes/get HTTP/1.1", ""), 400),
        (head("GET /v1/routes/get?address=x HTTP/1.1", ""), 400),
        (head("GET /metrics?x HTTP/1.1", ""), 400),
    ] {
        let shown: String = String::from_utf8_lossy(&octets).chars().take(70).collect();
        let got = send(&netns, &octets);
        assert_eq!(got.status, status, "{shown}: {got:?}");
        got.refuses(status);
        assert!(!got.head.contains("access-control-"), "{shown}");
    }
    assert_eq!(get(&netns, "/healthz"), "{\"status\":\"ok\"}\n");
    let page = ask(&netns, "/", &[]);
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("default-src 'none'")
    );
}

#[test]
fn random_requests_do_no_harm() {
    let Some((netns, daemon)) = asked("httpfuzz") else {
        return;
    };
    let words = [
        "GET ",
        "/v1/",
        "routes",
        "links",
        "?",
        "&",
        "=",
        "limit",
        "after",
        "dev",
        "to",
        "10.0.0.0/8",
        "%",
        "%41",
        "%c3%28",
        " HTTP/1.1",
        "\r\n",
        "Host: localhost",
        ": ",
        "\0",
        "\u{fffd}",
        "//",
        "..",
        "format",
        "csv",
        "9999999999999999999999",
        "-1",
        "If-None-Match",
        "*",
        ",",
        "W/\"",
        "Accept",
        "Accept-Encoding: gzip\r\n",
        "count",
        "true",
        "changes",
        "object",
        "from",
    ];
    for seed in 0..3 {
        let mut random = Random::new(seed);
        for _ in 0..150 {
            let mut octets = Vec::new();
            if random.below(2) == 0 {
                octets.extend_from_slice(b"GET /v1/routes?");
            }
            for _ in 0..random.below(12) {
                octets.extend_from_slice(words[random.below(words.len())].as_bytes());
            }
            if random.below(3) > 0 {
                octets.extend_from_slice(
                    b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                );
            }
            let got = send(&netns, &octets);
            let shown = String::from_utf8_lossy(&octets).into_owned();
            if (400..500).contains(&got.status) {
                got.refuses(got.status);
            } else {
                assert!(
                    matches!(got.status, 0 | 200 | 304),
                    "seed {seed}: {shown:?}: {got:?}"
                );
            }
        }
    }
    assert_eq!(get(&netns, "/healthz"), "{\"status\":\"ok\"}\n");
    assert!(!daemon.log().contains("panic"), "{}", daemon.log());
}

#[test]
fn slow_and_greedy_clients_meet_their_limits() {
    let Some(netns) = furnished("httplimit") else {
        return;
    };
    with_loopback(&netns);
    let directory = tempfile::tempdir().unwrap();
    let _daemon = configured(
        &netns,
        directory.path(),
        "clients = 12\nevent_streams = 3\nheader_timeout_secs = 2\nwrite_timeout_secs = 2",
    );
    // A head that does not end.
    let mut slow = connect(&netns);
    slow.write_all(b"GET /v1/links HTTP/1.1\r\nHost: loc")
        .unwrap();
    let mut said = String::new();
    slow.read_to_string(&mut said).unwrap();
    reply(&said).refuses(408);
    // A connection on which nothing is asked ends without a word.
    let mut idle = connect(&netns);
    let mut said = String::new();
    idle.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
    // Event streams.
    let open = || {
        let mut stream = connect(&netns);
        stream
            .write_all(b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        (stream, String::from_utf8_lossy(&start).into_owned())
    };
    let streams: Vec<_> = (0..3).map(|_| open()).collect();
    assert!(
        streams.iter().all(|(_, start)| start == "HTTP/1.1 200"),
        "{streams:?}"
    );
    assert_eq!(open().1, "HTTP/1.1 503");
    // Connections: those that are idle, but not for long, keep their place
    // for a while.
    let mut held = Vec::new();
    let refusal = wait_until(PATIENCE, "a refusal", || {
        let mut stream = connect(&netns);
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let mut said = [0; 4096];
        match stream.read(&mut said) {
            Ok(read) if read > 0 => Some(String::from_utf8_lossy(&said[..read]).into_owned()),
            _ => {
                held.push(stream);
                None
            }
        }
    });
    reply(&refusal.unwrap()).refuses(503);
    // They are let go; whoever comes then is answered, and streams go on.
    wait_until(PATIENCE, "a place", || {
        let mut stream = connect(&netns);
        let asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(asked);
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        (reply(&said).status == 200).then_some(())
    })
    .unwrap();
    let metrics = get(&netns, "/metrics");
    assert!(
        metrics.contains("fingerpost_http_event_streams 3\n"),
        "{metrics}"
    );
}

#[test]
fn a_rate_has_a_limit_and_an_answer_beyond_it() {
    let Some(netns) = furnished("httprate") else {
        return;
    };
    with_loopback(&netns);
    let directory = tempfile::tempdir().unwrap();
    let _daemon = configured(&netns, directory.path(), "requests_per_sec = 5");
    let mut stream = connect(&netns);
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(&request.repeat(40)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&said).contains("429") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0);
        said.extend_from_slice(&piece[..read]);
    }
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}
