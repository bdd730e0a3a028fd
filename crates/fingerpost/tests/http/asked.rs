//! Questions: the same answers as on the command line, page by page, in
//! every format.

use std::collections::BTreeSet;

use super::{Reply, ask, asked, get};
use lab::wait_until;

use crate::common::{Daemon, PATIENCE, furnished, inode, says, sorted};

/// Paths and the commands that ask the same.
const TABLES: [(&str, &str); 7] = [
    ("links", "link"),
    ("addresses", "addr"),
    ("neighbours", "neigh"),
    ("routes", "route"),
    ("nexthops", "nexthop"),
    ("rules", "rule"),
    ("fdb", "fdb"),
];

const FILTERED: &[(&str, &[&str])] = &[
    ("links?dev=veth0", &["link", "--dev", "veth0"]),
    ("links?kind=veth", &["link", "--kind", "veth"]),
    ("links?up&name=veth*", &["link", "--up", "--name", "veth*"]),
    ("addresses?dev=br0", &["addr", "--dev", "br0"]),
    (
        "addresses?ipv6&to=2001:db8::/32",
        &["addr", "-6", "--to", "2001:db8::/32"],
    ),
    (
        "neighbours?mac=02:00:00:00:00:07",
        &["neigh", "--mac", "02:00:00:00:00:07"],
    ),
    (
        "neighbours?dev=br0&state=permanent",
        &["neigh", "--dev", "br0", "--state", "permanent"],
    ),
    ("routes?to=10.0.0.0/8", &["route", "--to", "10.0.0.0/8"]),
    (
        "routes?to=2001:db8::/32",
        &["route", "--to", "2001:db8::/32"],
    ),
    (
        "routes?exact=10.1.0.0/16",
        &["route", "--exact", "10.1.0.0/16"],
    ),
    (
        "routes?covering=10.1.2.3",
        &["route", "--covering", "10.1.2.3"],
    ),
    ("routes?table=100", &["route", "--table", "100"]),
    ("routes?table=all", &["route", "--table", "all"]),
    ("routes?proto=bgp", &["route", "--proto", "bgp"]),
    ("routes?via=10.9.0.7", &["route", "--via", "10.9.0.7"]),
    ("routes?dev=veth1", &["route", "--dev", "veth1"]),
    ("routes?nhid=3", &["route", "--nhid", "3"]),
    ("nexthops?groups", &["nexthop", "--groups"]),
    ("rules?priority=1000", &["rule", "--priority", "1000"]),
    ("fdb?dev=veth0", &["fdb", "--dev", "veth0"]),
    ("fdb?state=permanent", &["fdb", "--state", "permanent"]),
    (
        "routes?filter=to+root+10/8+dev+br0",
        &["route", "show", "to", "root", "10/8", "dev", "br0"],
    ),
    ("links?filter=veth0", &["link", "show", "veth0"]),
    ("rules?filter=--priority=1000", &["rule", "pref", "1000"]),
];

/// Both say the same in the end. A fresh namespace is not at rest: its
/// link-local addresses are checked for duplicates and then get routes, and
/// the bridge learns what its ports say; so one reading may be of a moment
/// before, and the next of one after.
fn agree(what: &str, mut both: impl FnMut() -> (String, String)) {
    let mut last = (String::new(), String::new());
    let waited = wait_until(PATIENCE, what, || {
        last = both();
        (last.0 == last.1).then_some(())
    });
    let (ours, theirs) = (&last.0, &last.1);
    assert!(
        waited.is_ok(),
        "{what}: {ours}\nbut the command line says\n{theirs}"
    );
}

/// A decision; of a group its members alone. Which of them it is the command
/// line asks the kernel, and HTTP cannot.
fn decided(answer: &str) -> String {
    let told: serde_json::Value = serde_json::from_str(answer).unwrap();
    match told[0].get("nexthops") {
        Some(members) => members.to_string(),
        None => answer.to_owned(),
    }
}

/// The lines in an order of their own, as one text.
fn rows(text: &str) -> String {
    sorted(text).join("\n")
}

#[test]
fn answers_are_those_of_the_command_line() {
    let Some((netns, _daemon)) = asked("httpasked") else {
        return;
    };
    for (path, command) in TABLES {
        agree(path, || {
            let ours = get(&netns, &format!("/v1/{path}?format=csv"));
            assert!(ours.lines().count() > 1, "{path}");
            (rows(&ours), rows(&says(&netns, &[command, "--csv"])))
        });
        if command == "addr" {
            continue;
        }
        agree(path, || {
            let ours = get(&netns, &format!("/v1/{path}?format=ndjson"));
            (rows(&ours), rows(&says(&netns, &[command, "--ndjson"])))
        });
        agree(path, || {
            let ours = get(&netns, &format!("/v1/{path}?format=ndjson"));
            let json = ask(&netns, &format!("/v1/{path}"), &[]).json();
            let count = json.as_array().unwrap().len();
            (format!("{count}"), format!("{}", ours.lines().count()))
        });
    }
    for (path, command) in FILTERED {
        agree(path, || {
            let counted = get(&netns, &format!("/v1/{path}&count"));
            assert_ne!(counted, "0\n", "{path}");
            (counted, says(&netns, &[*command, &["--count"]].concat()))
        });
        agree(path, || {
            let whole = get(&netns, &format!("/v1/{path}&format=csv"));
            let theirs = says(&netns, &[*command, &["--csv"]].concat());
            (rows(&whole), rows(&theirs))
        });
        agree(path, || {
            let whole = get(&netns, &format!("/v1/{path}&format=csv"));
            (pages(&netns, &format!("/v1/{path}&format=csv"), 1), whole)
        });
    }
    for to in ["10.1.7.7", "10.1.2.3", "192.0.2.1", "2001:db8:1::1"] {
        agree(to, || {
            let ours = get(&netns, &format!("/v1/routes/get?address={to}"));
            let theirs = says(&netns, &["route", "get", to, "--json"]);
            (decided(&ours), decided(&theirs))
        });
    }
    ask(&netns, "/v1/routes/get?address=10.3.0.1&mark=7", &[]).refuses(404);
}

/// All pages of CSV as one answer, following the links.
fn pages(netns: &lab::Netns, path: &str, limit: usize) -> String {
    let mut next = Some(format!("{path}&limit={limit}"));
    let mut all = String::new();
    while let Some(path) = next {
        let reply = ask(netns, &path, &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
        let rows = match all.is_empty() {
            true => &reply.body,
            false => reply.body.split_once('\n').unwrap().1,
        };
        assert!(rows.lines().count() <= limit + usize::from(all.is_empty()));
        all.push_str(rows);
        next = next_page(&reply);
    }
    all
}

fn next_page(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?;
    let (path, rel) = link.strip_prefix('<')?.split_once('>')?;
    assert_eq!(rel, "; rel=\"next\"");
    Some(path.to_owned())
}

#[test]
fn a_filter_is_read_as_the_command_line_is_and_rows_have_its_words() {
    let Some((netns, _daemon)) = asked("httpwords") else {
        return;
    };
    for (wrong, named) in [
        ("routes?filter=bogus", "exact"),
        ("rules?filter=bogus", "bogus"),
        ("links?filter=--bogus+7", "--bogus"),
        ("routes?filter=dev", "a value is expected"),
    ] {
        let reply = ask(&netns, &format!("/v1/{wrong}"), &[]);
        assert_eq!(reply.status, 400, "{wrong}");
        assert!(reply.body.contains(named), "{wrong}: {}", reply.body);
    }
    let rows = ask(&netns, "/v1/rules?words", &[]).json();
    let words: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["words"].as_str().unwrap().to_owned())
        .collect();
    let listed = says(&netns, &["rule"]);
    let listed: Vec<String> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(!words.is_empty());
    assert_eq!(words, listed);
}

#[test]
fn what_is_skipped_is_left_out_of_any_page() {
    let Some((netns, _daemon)) = asked("httpskip") else {
        return;
    };
    for path in ["routes?table=all", "routes?dev=veth1", "links?up"] {
        agree(path, || {
            let whole = get(&netns, &format!("/v1/{path}&format=ndjson"));
            let page = |skip: usize| {
                get(
                    &netns,
                    &format!("/v1/{path}&format=ndjson&limit=1&skip={skip}"),
                )
            };
            let count = whole.lines().count();
            let rows: String = (0..count).map(page).collect();
            assert_eq!(page(count) + &page(100_000_000), "");
            (rows, whole)
        });
    }
}

#[test]
fn pages_follow_each_other_and_a_foreign_cursor_is_refused() {
    let Some((netns, daemon)) = asked("httppage") else {
        return;
    };
    for (path, _) in TABLES {
        for limit in [1, 2, 1000] {
            // Addresses may still be checked for duplicates.
            wait_until(PATIENCE, path, || {
                let whole = get(&netns, &format!("/v1/{path}?format=csv"));
                let paged = pages(&netns, &format!("/v1/{path}?format=csv"), limit);
                (paged == whole).then_some(())
            })
            .unwrap();
        }
    }
    let page = ask(&netns, "/v1/routes?limit=1", &[]);
    let next = next_page(&page).unwrap();
    let after = next.split("after=").nth(1).unwrap();
    for wrong in [
        format!("/v1/routes?ipv6&limit=1&after={after}"),
        format!("/v1/links?limit=1&after={after}"),
        format!("/v1/routes?limit=1&after={}", &after[1..]),
        "/v1/routes?limit=1&after=".to_owned(),
        "/v1/routes?limit=1&after=AAAA".to_owned(),
        "/v1/routes?limit=0".to_owned(),
        "/v1/routes?limit=100000".to_owned(),
        "/v1/routes?limit=1&count".to_owned(),
    ] {
        ask(&netns, &wrong, &[]).refuses(400);
    }
    // One of another start, for a walk whose order is of one start.
    let page = ask(&netns, "/v1/routes?via=10.9.0.7&limit=1", &[]);
    let next = next_page(&page).unwrap();
    assert_eq!(ask(&netns, &next, &[]).status, 200);
    daemon.end();
    let _again = Daemon::up(&netns, &[]);
    ask(&netns, &next, &[]).refuses(410);
}

#[test]
fn formats_compression_and_what_is_known_already() {
    let Some((netns, _daemon)) = asked("httpformat") else {
        return;
    };
    let lines: String = (0..3000)
        .map(|n| format!("route add 10.64.{}.{}/32 dev br0\n", n / 256, n % 256))
        .collect();
    netns.ip_batch(&lines).unwrap();
    wait_until(PATIENCE, "3,000 routes", || {
        let count: u64 = get(&netns, "/v1/routes?count").trim().parse().unwrap();
        (count >= 3000).then_some(())
    })
    .unwrap();
    for (accept, media_type) in [
        ("application/json", "application/json"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("text/csv;q=0.9, text/html", "text/csv"),
        ("*/*", "application/json"),
    ] {
        let accept = format!("Accept: {accept}");
        let reply = ask(&netns, "/v1/routes", &["-H", &accept]);
        assert_eq!(reply.header("content-type"), Some(media_type));
        for (accepted, coding) in [("gzip", Some("gzip")), ("zstd, gzip;q=0", None)] {
            let coded = format!("Accept-Encoding: {accepted}");
            let wanted = ["--compressed", "-H", &accept, "-H", &coded];
            for path in ["/v1/routes", "/v1/routes?limit=10000"] {
                let packed = ask(&netns, path, &wanted);
                assert_eq!(packed.header("content-encoding"), coding);
                assert_eq!(packed.body, reply.body);
            }
        }
    }
    ask(&netns, "/v1/links", &["-H", "Accept: image/png"]).refuses(406);

    // Something else may change meanwhile, and then it is another generation.
    let known = wait_until(PATIENCE, "a generation that stays", || {
        let reply = ask(&netns, "/v1/rules", &[]);
        let known = format!("If-None-Match: \"x\", {}", reply.header("etag").unwrap());
        let again = ask(&netns, "/v1/rules", &["-H", &known]);
        ((again.status, again.body.as_str()) == (304, "")).then_some(known)
    })
    .unwrap();
    netns
        .ip(&["rule", "add", "pref", "7", "table", "7"])
        .unwrap();
    wait_until(PATIENCE, "another generation", || {
        (ask(&netns, "/v1/rules", &["-H", &known]).status == 200).then_some(())
    })
    .unwrap();
    let counters = ask(&netns, "/v1/links?statistics", &[]);
    assert_eq!(counters.header("etag"), None);
    assert!(counters.json()[0]["stats64"]["rx"]["bytes"].is_u64());
    let head = ask(&netns, "/v1/links", &["-I"]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn several_namespaces_are_asked_by_name() {
    let (Some(one), Some(two)) = (furnished("httpone"), furnished("httptwo")) else {
        return;
    };
    super::with_loopback(&one);
    two.ip(&["link", "add", "only2", "type", "bridge"]).unwrap();
    let names = [one.name(), two.name()];
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("fingerpost.toml");
    let said = |http: &str| {
        let text = format!("netns = ['{}', '{}']\n[http]\n{http}\n", names[0], names[1]);
        std::fs::write(&config, text).unwrap();
    };
    said("");
    let daemon = Daemon::up(&one, &["--config", config.to_str().unwrap()]);
    assert_ne!(inode(&one), inode(&two));
    let links = |query: &str| -> BTreeSet<String> {
        let rows = ask(&one, &format!("/v1/links?format=ndjson{query}"), &[]).rows();
        rows.iter()
            .map(|row| row["ifname"].as_str().unwrap().to_owned())
            .collect()
    };
    // The other's are not for everybody, as they are not for who asks the
    // kernel without rights.
    let of_other = format!("/v1/links?netns={}", names[1]);
    let refused = ask(&one, &of_other, &[]);
    refused.refuses(403);
    assert!(refused.body.contains("token_file"), "{refused:?}");
    for path in [
        "/v1/status?",
        "/v1/changes?",
        "/metrics?",
        "/v1/routes/get?address=10.0.0.1&",
    ] {
        ask(&one, &format!("{path}netns={}", names[1]), &[]).refuses(403);
    }
    assert!(!get(&one, "/metrics").contains("only2"));
    said("netns_without_token = true");
    daemon.reload();
    daemon.logs("was read again");
    assert!(!links("").contains("only2"));
    assert!(!links(&format!("&netns={}", names[0])).contains("only2"));
    assert!(links(&format!("&netns={}", names[1])).contains("only2"));
    ask(&one, "/v1/links?netns=nope", &[]).refuses(404);
    let metrics = get(&one, "/metrics");
    assert!(metrics.contains(&format!("{{device=\"only2\",netns=\"{}\"}}", names[1])));
}
