//! Strangers' programs: jq, Prometheus and its promtool.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use lab::{Child, Netns, wait_until};

use super::{ask, asked, get};
use crate::common::PATIENCE;

#[test]
fn a_line_of_shell_gets_what_it_wants() {
    let Some((netns, _daemon)) = asked("httpjq") else {
        return;
    };
    for (line, says) in [
        (
            "curl -s 127.0.0.1:9797/v1/neighbours | jq -r '.[] | select(.dev==\"veth1\") | .lladdr'",
            "02:00:00:00:00:02\n",
        ),
        (
            "curl -s '127.0.0.1:9797/v1/routes?via=10.9.0.7&proto=bgp' | jq -r '.[].dst'",
            "10.1.0.0/16\n",
        ),
        (
            "curl -s '127.0.0.1:9797/v1/routes/get?address=10.1.7.7' | jq -r '.[0].gateway'",
            "10.9.0.7\n",
        ),
        (
            "curl -s '127.0.0.1:9797/v1/addresses?dev=br0&ipv4' | jq -r '.[].addr_info[].local'",
            "10.9.0.1\n",
        ),
        ("curl -s '127.0.0.1:9797/v1/nexthops?groups&count'", "1\n"),
        (
            "curl -s '127.0.0.1:9797/v1/links?format=csv&fields=ifname&dev=br0'",
            "ifname\nbr0\n",
        ),
    ] {
        let output = netns.command("sh").args(["-c", line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), says, "{line}");
    }
}

#[test]
fn prometheus_scrapes_it() {
    let Some((netns, _daemon)) = asked("httpprom") else {
        return;
    };
    // Its own check of the text.
    let metrics = get(&netns, "/metrics");
    let mut promtool = netns
        .command("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(metrics.as_bytes())
        .unwrap();
    let checked = promtool.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{complaint}");

    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("prometheus.yml");
    fs::write(
        &config,
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: fingerpost\n    \
         static_configs:\n      - targets: ['127.0.0.1:9797']\n",
    )
    .unwrap();
    let mut command = netns.command("prometheus");
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            directory.path().display()
        ))
        .arg("--web.listen-address=127.0.0.1:9790")
        .stdout(Stdio::null())
        .stderr(fs::File::create(directory.path().join("log")).unwrap());
    let _prometheus = Child::spawn(command).unwrap();
    for (query, value) in [
        ("up", "1"),
        ("node_network_mtu_bytes{device=\"veth0\"}", "1500"),
        ("node_network_up{device=\"br0\"}", "1"),
        ("count(node_network_receive_bytes_total)", "4"),
        ("fingerpost_table_rows{table=\"nexthops\"}", "3"),
        ("fingerpost_mirror_drift_total", "0"),
    ] {
        let mut last = String::new();
        let found = wait_until(PATIENCE, query, || {
            last = prometheus_says(&netns, query);
            let json: serde_json::Value = serde_json::from_str(&last).ok()?;
            (json["data"]["result"][0]["value"][1] == value).then_some(())
        });
        let log = fs::read_to_string(directory.path().join("log")).unwrap();
        assert!(found.is_ok(), "{query}: {last}\n{log}");
    }
    // What the dashboard asks for is there, but for what has not happened.
    let queries = queries_of_the_dashboard();
    assert!(queries.len() > 12, "{queries:?}");
    for query in &queries {
        let mut last = String::new();
        let found = wait_until(PATIENCE, query, || {
            last = prometheus_says(&netns, query);
            let json: serde_json::Value = serde_json::from_str(&last).ok()?;
            assert_eq!(json["status"], "success", "{query}: {last}");
            let is_there = !json["data"]["result"].as_array()?.is_empty();
            (is_there || query.contains("> 0")).then_some(())
        });
        assert!(found.is_ok(), "{query}: {last}");
    }
    // No label names a prefix or a neighbour.
    assert!(!metrics.contains("10.9.0.7"), "{metrics}");
    assert_eq!(
        ask(&netns, "/metrics", &[]).header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
}

/// What Prometheus answers to a query, as JSON.
fn prometheus_says(netns: &Netns, query: &str) -> String {
    let asked = format!("query={query}");
    let output = netns
        .command("curl")
        .args(["-s", "--max-time", "10", "-G", "--data-urlencode", &asked])
        .arg("http://127.0.0.1:9790/api/v1/query")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The queries of the guide's dashboard, with what Grafana puts in the place
/// of its variables.
fn queries_of_the_dashboard() -> Vec<String> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/grafana-dashboard.json"
    );
    let dashboard: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| {
        let query = target["expr"].as_str().unwrap();
        let query = query.replace("$job", ".*").replace("$instance", ".*");
        query.replace("$__rate_interval", "1m")
    });
    queries.collect()
}
