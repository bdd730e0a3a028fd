//! `/v1/nat/…` and the metrics of a translation: of a real one, with packets
//! through real TUN devices, and of processes that are none.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use lab::{Child, Netns, skip, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{Reply, ask, get, reply, with_loopback};
use crate::common::{Daemon, PATIENCE, program, put_clients_behind, says};

const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const RULES: &str = "alias_address 192.0.2.1-192.0.2.2\nport_range 1024-65535\n\
                     subscribers 10.0.0.0/24\nport_blocks size 256 most 2\n\
                     limit sessions 1500\n";

/// A client behind a translation, and a daemon beside it that asks it.
struct Trial {
    client: Netns,
    middle: Netns,
    directory: TempDir,
}

impl Trial {
    fn new(tag: &str) -> Option<Self> {
        skip::unless(skip::tun())?;
        let client = skip::unless(Netns::new(&format!("{tag}in")))?;
        let middle = Netns::new(tag).unwrap();
        with_loopback(&middle);
        let directory = TempDir::new().unwrap();
        // The daemon and who runs `curl` as nobody look into it.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.path().join("rules"), RULES).unwrap();
        Some(Self {
            client,
            middle,
            directory,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn translation(&self) -> Child {
        let mut command = self.middle.command(program());
        command
            .args(["nat", "run", "--tun", "fpin", "fpout", "--rules"])
            .arg(self.path("rules"))
            .arg("--control")
            .arg(self.path("control"))
            .stdout(Stdio::null());
        let nat = Child::spawn(command).unwrap();
        put_clients_behind(&self.middle, &self.client, 5);
        nat
    }

    fn daemon(&self, http: &str) -> Daemon {
        let path = self.path("fingerpost.toml");
        let control = self.path("control");
        let control = control.display();
        let text = format!("[http]\n{http}\n[nat]\ncontrol = \"{control}\"\n");
        fs::write(&path, text).unwrap();
        Daemon::up(&self.middle, &["--config", path.to_str().unwrap()])
    }

    /// A host sends to so many ports.
    fn send(&self, host: u8, ports: u16) {
        let sent = self.client.inside(|| {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, host), 4_000)).unwrap();
            for port in 0..ports {
                socket.send_to(b"data", (REMOTE, 9_000 + port)).unwrap();
            }
        });
        sent.unwrap();
    }

    fn ask(&self, path: &str) -> Reply {
        ask(&self.middle, path, &[])
    }

    fn count(&self, query: &str) -> u64 {
        let counted = get(&self.middle, &format!("/v1/nat/{query}"));
        counted.trim().parse().unwrap()
    }
}

/// Where the next page is.
fn next(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?;
    let path = link.strip_prefix('<')?.split_once('>')?.0;
    Some(path.to_owned())
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

#[test]
fn sql_has_a_translation_s_tables_where_one_runs() {
    let Some(trial) = Trial::new("sqlnat") else {
        return;
    };
    let daemon = trial.daemon("");
    let sql = |statement: &str| {
        let mut command = trial.middle.command(program());
        command
            .args(["sql", statement, "--ndjson"])
            .output()
            .unwrap()
    };
    let rows = |statement: &str| {
        let output = sql(statement);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statement}: {complaint}");
        let text = String::from_utf8(output.stdout).unwrap();
        let row = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        text.lines().map(row).collect::<Vec<Value>>()
    };
    let none = sql("select * from nat_flows");
    let none = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.contains("is there a `nat run --control`"), "{none}");
    assert_eq!(
        rows("select count(*) as n from links where ifname = 'lo'")[0]["n"],
        1
    );
    let mut nat = trial.translation();
    wait_until(PATIENCE, "the flows", || {
        trial.send(2, 700);
        trial.send(3, 1_400);
        (trial.count("flows?count") == 2_100).then_some(())
    })
    .unwrap();
    let count = rows("select count(*) as n, count(distinct remote_port) as ports from nat_flows");
    assert_eq!(
        (&count[0]["n"], &count[0]["ports"]),
        (&2_100.into(), &1_400.into())
    );
    let few = rows("select inside, count(*) as n from nat_flows group by inside order by n desc");
    assert_eq!(
        (text(&few[0], "inside"), &few[0]["n"]),
        ("10.0.0.3", &1_400.into())
    );
    // Each table is what `/v1/nat/` tells, value by value.
    for (table, path, names) in [
        (
            "nat_flows",
            "flows?inside=10.0.0.2&limit=10000",
            "protocol, state, inside, inside_port, alias, alias_port, remote, remote_port",
        ),
        ("nat_pools", "pools", "alias, blocks, free_blocks"),
        (
            "nat_subscribers",
            "subscribers",
            "subscriber, alias, blocks",
        ),
        (
            "nat_blocks",
            "blocks",
            "subscriber, alias, first_port, last_port, used",
        ),
    ] {
        let only = match table {
            "nat_flows" => "where inside = '10.0.0.2'",
            _ => "",
        };
        let told = rows(&format!("select {names} from {table} {only}"));
        let expected = trial.ask(&format!("/v1/nat/{path}")).json();
        let expected: Vec<Value> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let some = names
                    .split(", ")
                    .map(|name| (name.to_owned(), row[name].clone()));
                Value::Object(some.collect())
            })
            .collect();
        assert!(!told.is_empty());
        assert_eq!(told, expected, "{table}");
    }
    let one = rows(
        "select sessions_udp, ports_udp from nat_subscribers where first_inside <= '10.0.0.3' and last_inside >= '10.0.0.3'",
    );
    assert_eq!(one[0]["sessions_udp"], 1_400);
    for table in ["nat_mappings", "nat_leases", "nat_helpers"] {
        let path = table.replace("nat_", "/v1/nat/");
        let expected = trial.ask(&path).json();
        assert_eq!(
            rows(&format!("select * from {table}")).len(),
            expected.as_array().unwrap().len()
        );
    }
    let posted = |user: &[&str]| {
        let mut curl = trial.middle.command("setpriv");
        curl.args(user).args(["curl", "-sS", "-i", "-d"]);
        curl.args([
            "select inside from nat_flows limit 3",
            "http://127.0.0.1:9797/v1/sql",
        ]);
        reply(&String::from_utf8(curl.output().unwrap().stdout).unwrap())
    };
    // Its thread lets all others go first, and may be late on a busy machine.
    wait_until(PATIENCE, "the rows over HTTP", || {
        let told = posted(&["--reuid=0"]);
        let told = (told.status == 200).then(|| told.json())?;
        (told.as_array().map(Vec::len) == Some(3)).then_some(())
    })
    .unwrap();
    // Who talks to whom is not for everybody.
    let stranger = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let refused = posted(&stranger);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("is told to root"), "{refused:?}");
    let mut as_stranger = trial.middle.command("setpriv");
    as_stranger.args(stranger).arg(program());
    let refused = as_stranger
        .args(["sql", "select * from nat_flows"])
        .output()
        .unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("is told to root"), "{why}");
    nat.signal(Signal::TERM).unwrap();
    let _ = nat.wait(PATIENCE);
    drop(daemon);
}

#[test]
fn what_a_translation_has_is_told_page_by_page() {
    let Some(trial) = Trial::new("httpnat") else {
        return;
    };
    let mut nat = trial.translation();
    let _daemon = trial.daemon("");
    wait_until(PATIENCE, "the flows", || {
        // A device drops what it has no room for.
        trial.send(2, 700);
        trial.send(3, 30);
        (trial.count("flows?count") == 730).then_some(())
    })
    .unwrap();
    // A walk tells each once, though flows come meanwhile.
    let mut seen: Vec<u64> = Vec::new();
    let mut path = Some("/v1/nat/flows?limit=97&inside=10.0.0.2".to_owned());
    let mut pages = 0;
    while let Some(at) = path {
        let page = trial.ask(&at);
        assert_eq!(page.status, 200, "{page:?}");
        let rows = page.json();
        let rows = rows.as_array().unwrap();
        assert!(rows.len() <= 97);
        seen.extend(rows.iter().map(|row| row["remote_port"].as_u64().unwrap()));
        path = next(&page);
        pages += 1;
        trial.send(4, pages * 3);
    }
    seen.sort_unstable();
    let all: Vec<u64> = (9_000..9_700).collect();
    assert_eq!(seen, all, "in {pages} pages");
    // Filters, tops, and whose a port is.
    assert_eq!(trial.count("flows?count&protocol=tcp"), 0);
    assert_eq!(trial.count("blocks?count&inside=10.0.0.3"), 1);
    let top = trial.ask("/v1/nat/subscribers?top=1").json();
    assert_eq!(top[0]["subscriber"], "10.0.0.2", "{top}");
    assert_eq!(top[0]["sessions"]["udp"], 700, "{top}");
    let flows = trial.ask("/v1/nat/flows?top=2").json();
    assert_eq!(flows[0]["rows"], 700, "{flows}");
    let rows = trial.ask("/v1/nat/flows?inside=10.0.0.3&limit=1&format=ndjson");
    let row = &rows.rows()[0];
    let who = format!(
        "/v1/nat/who?alias={}&port={}",
        text(row, "alias"),
        row["alias_port"]
    );
    assert_eq!(trial.ask(&who).json()[0]["subscriber"], "10.0.0.3");
    // They are opened in an order that nobody can guess.
    let pools = trial.ask("/v1/nat/pools").json();
    let pools = pools.as_array().unwrap().iter();
    let mut aliases: Vec<&str> = pools.map(|row| text(row, "alias")).collect();
    aliases.sort_unstable();
    assert_eq!(aliases, ["192.0.2.1", "192.0.2.2"]);
    let counted = trial.ask("/v1/nat/statistics").json();
    let udp = &counted["protocols"]["udp"];
    assert!(udp["translated"].as_u64() >= Some(730), "{counted}");
    assert_eq!(udp["mappings"], counted["flows"], "{counted}");
    every_answer_fits_the_document(&trial);
    top_lists_who_has_most(&trial);
    for wrong in [
        "flows?limit=0",
        "flows?limit=10001",
        "flows?inside=300.1.1.1",
        "pools?remote=10.0.0.1",
        "flows?nonsense",
        "flows?details",
        "flows?port=65536",
        "flows?count&top=3",
        "who?alias=192.0.2.1",
        "flows?protocol=sctq",
    ] {
        trial.ask(&format!("/v1/nat/{wrong}")).refuses(400);
    }
    trial.ask("/v1/nat/flows?after=12.0.0").refuses(410);
    trial.ask("/v1/nat/flows?format=csv").refuses(406);
    metrics_are_told(&trial);
    nat.signal(Signal::INT).unwrap();
    assert!(nat.wait(PATIENCE).unwrap().success());
    trial.ask("/v1/nat/flows").refuses(503);
    // What was gathered for a scrape a moment ago is told once more.
    wait_until(PATIENCE, "a translation that is down", || {
        let metrics = get(&trial.middle, "/metrics");
        metrics.contains("\nfingerpost_nat_up 0\n").then_some(())
    })
    .unwrap();
}

fn every_answer_fits_the_document(trial: &Trial) {
    let document = trial.ask("/openapi.json").json();
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/v1/nat/") || path == "/v1/nat/who" {
            continue;
        }
        let reply = trial.ask(path);
        assert_eq!(reply.status, 200, "{path}");
        let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let wrong = super::schema::misfit(&reply.json(), schema, &document, path);
        assert_eq!(wrong, None, "{path}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

fn top_lists_who_has_most(trial: &Trial) {
    let control = trial.path("control");
    let control = control.to_str().unwrap();
    let words = ["top", "--once", "--json", "--nat", control];
    let report: Value = serde_json::from_str(&says(&trial.middle, &words)).unwrap();
    let first = &report["subscribers"][0];
    assert_eq!(first["subscriber"], "10.0.0.2", "{report}");
    assert_eq!(report["subscribers_trouble"], Value::Null);
    let text = says(&trial.middle, &["top", "--once", "--nat", control]);
    assert!(
        text.contains("SUBSCRIBER") && text.contains("10.0.0.2"),
        "{text}"
    );
}

fn metrics_are_told(trial: &Trial) {
    let told = get(&trial.middle, "/metrics");
    for line in [
        "fingerpost_nat_up 1",
        "fingerpost_nat_pool_addresses{pool=\"192.0.2.1-192.0.2.2\"} 2",
        "fingerpost_nat_protocol_refused_total{protocol=\"tcp\"} 0",
        "fingerpost_nat_packets_total{direction=\"in\",verdict=\"denied\"} 0",
        "fingerpost_nat_flows_max 1048576",
    ] {
        assert!(told.lines().any(|said| said == line), "{line}: {told}");
    }
    let mut promtool = trial.middle.command("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let pipes = promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = pipes.spawn().unwrap();
    let mut stdin = promtool.stdin.take().unwrap();
    stdin.write_all(told.as_bytes()).unwrap();
    drop(stdin);
    let checked = promtool.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{complaint}");
}

#[test]
fn who_talks_to_whom_is_told_to_root_and_with_a_token() {
    let Some(trial) = Trial::new("httpnatwho") else {
        return;
    };
    let _nat = trial.translation();
    let _daemon = trial.daemon("");
    let as_stranger = |path: &str| {
        let mut curl = trial.middle.command("setpriv");
        curl.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        curl.args(["curl", "-sS", "-i", "--max-time", "60"]);
        let output = curl.arg(format!("{}{path}", super::BASE)).output().unwrap();
        reply(&String::from_utf8_lossy(&output.stdout))
    };
    for path in [
        "flows",
        "subscribers",
        "statistics",
        "who?alias=192.0.2.1&port=2000",
    ] {
        as_stranger(&format!("/v1/nat/{path}")).refuses(403);
    }
    assert_eq!(as_stranger("/v1/links").status, 200);
    // The status says so before, for the page.
    let told = |reply: Reply| {
        let status: Value = serde_json::from_str(&reply.body).unwrap();
        status["translation"]["told"].as_bool()
    };
    assert_eq!(told(as_stranger("/v1/status")), Some(false));
    assert_eq!(told(trial.ask("/v1/status")), Some(true));
    assert_eq!(trial.ask("/v1/nat/flows").status, 200);
}

/// Somebody who answers at a control socket and is no translation.
fn pretend(path: &PathBuf, said: &'static [u8]) {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            thread::spawn(move || {
                let _ = client.write_all(said);
                // Until the other one has enough.
                while client.read(&mut [0; 512]).is_ok_and(|read| read > 0) {}
            });
        }
    });
}

#[test]
fn a_process_that_is_no_translation_costs_nobody_else_anything() {
    let Some(netns) = skip::unless(Netns::new("httpnatno")) else {
        return;
    };
    with_loopback(&netns);
    let directory = TempDir::new().unwrap();
    let [control, config] = ["control", "toml"].map(|name| directory.path().join(name));
    let text = format!("[nat]\ncontrol = \"{}\"\n", control.display());
    fs::write(&config, text).unwrap();
    let _daemon = Daemon::up(&netns, &["--config", config.to_str().unwrap()]);
    ask(&netns, "/v1/nat/flows", &[]).refuses(503);
    pretend(&control, b"220 mail.example ESMTP\r\n");
    ask(&netns, "/v1/nat/flows", &[]).refuses(502);
    // One that says nothing: who asks it waits, the others do not.
    pretend(&control, b"");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&netns, "/v1/nat/flows", &[]));
        let mut others = 0;
        while !waiting.is_finished() {
            let began = Instant::now();
            assert_eq!(ask(&netns, "/v1/links", &[]).status, 200);
            others += usize::from(!waiting.is_finished());
            assert!(began.elapsed() < PATIENCE);
        }
        assert!(others >= 3, "{others} others were answered meanwhile");
        waiting.join().unwrap().refuses(504);
    });
    let told = get(&netns, "/metrics");
    assert!(told.contains("\nfingerpost_nat_up 0\n# the translation did not answer"));
}
