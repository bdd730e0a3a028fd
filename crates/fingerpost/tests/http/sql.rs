//! Statements of SQL by `POST`, and what they may not do.

use lab::Netns;

use super::{Reply, asked, reply};

/// Sends a statement; `arguments` are curl's.
fn posted(netns: &Netns, arguments: &[&str]) -> Reply {
    let mut curl = netns.command("curl");
    let output = curl.args(["-sS", "-i"]).args(arguments).output().unwrap();
    reply(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn statements_are_answered_within_bounds_and_on_loopback() {
    let Some((netns, _daemon)) = asked("httpsql") else {
        return;
    };
    const AT: &str = "http://127.0.0.1:9797/v1/sql";
    let ask = |statement: &str| posted(&netns, &["-d", statement, AT]);
    let some = ask("select prefix, dev from routes where prefix = '10.1.0.0/16'");
    assert_eq!(some.status, 200, "{some:?}");
    assert_eq!(
        some.json(),
        serde_json::json!([{"prefix": "10.1.0.0/16", "dev": "br0"}])
    );
    assert_eq!(some.header("content-type"), Some("application/json"));
    let csv = posted(
        &netns,
        &["-d", "select 1 as n", &format!("{AT}?format=csv")],
    );
    assert_eq!(csv.body, "n\n1\n");
    let explained = posted(
        &netns,
        &[
            "-d",
            "select * from links where ifname = 'br0'",
            &format!("{AT}?explain&format=ndjson"),
        ],
    );
    assert_eq!(explained.rows()[0]["rows_visited"], 1);
    for refused in [
        "drop table links",
        "selct",
        "select 1; select 2",
        "attach 'x' as y",
        "",
    ] {
        ask(refused).refuses(400);
    }
    let numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit 100001) \
                   select i from n";
    ask(numbers).refuses(422);
    ask("select hex(zeroblob(100000)) from links a, links b, links c").refuses(422);
    posted(&netns, &[AT]).refuses(405);
    posted(&netns, &["-X", "PUT", "-d", "select 1", AT]).refuses(405);
    posted(&netns, &["-d", &"x".repeat(65 << 10), AT]).refuses(413);
    posted(
        &netns,
        &["-H", "Transfer-Encoding: chunked", "-d", "select 1", AT],
    )
    .refuses(411);
    posted(
        &netns,
        &[
            "-H",
            "Origin: http://elsewhere.example",
            "-d",
            "select 1",
            AT,
        ],
    )
    .refuses(403);
    posted(&netns, &["-d", "select 1", &format!("{AT}?bogus")]).refuses(400);
    posted(&netns, &["-d", "x", "http://127.0.0.1:9797/v1/links"]).refuses(405);
}
