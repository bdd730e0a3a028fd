//! Routes of a real FRR by FPM: equal to what zebra and the kernel have,
//! through cuts and restarts; what its bgpd and GoBGP tell by BMP; and what
//! strangers at the door do not do.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod bmp;
#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod door;
mod equal;
mod forwarded;
mod frr;
mod million;
mod recorded;
mod shown;

use lab::Netns;
use serde_json::Value;

use common::{Daemon, at_rest, says};

/// The port that zebra connects to.
const FPM: &str = "fpm address 127.0.0.1 port 2620\n";

/// A namespace with a link on which next hops lie.
fn wired(tag: &str) -> Option<Netns> {
    let netns = at_rest(tag)?;
    netns
        .ip_batch(
            "link add v0 type veth peer name w0\n\
             link add v1 type veth peer name w1\n\
             link set v0 up\nlink set w0 up\n\
             link set v1 up\nlink set w1 up\n\
             addr add 10.1.0.1/24 dev v0\n\
             addr add 2001:db8:1::1/64 dev v0 nodad\n\
             addr add 10.2.0.1/24 dev v1\n",
        )
        .unwrap();
    Some(netns)
}

/// A daemon that FRR may feed.
fn fed(netns: &Netns) -> Daemon {
    Daemon::up(netns, &["--fpm", "127.0.0.1"])
}

/// The feed's part of the status.
fn status(netns: &Netns) -> Value {
    let status: Value = serde_json::from_str(&says(netns, &["status", "--json"])).unwrap();
    status["feeders"][0].clone()
}

/// The routes of the feed that routing daemons made, as all sides are
/// compared by: table, prefix, next hops.
fn ours(netns: &Netns) -> Vec<String> {
    let all = ["--source", "frr", "--table", "all", "--ndjson"];
    // While a feed tells all again the answer says that it may lack rows.
    let told = |family| {
        let asked = [&[family, "route"][..], &all].concat();
        String::from_utf8(common::fingerpost(netns, &asked).stdout).unwrap()
    };
    let text = told("-4") + &told("-6");
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    compared(rows)
}

/// Those that the kernel has.
fn kernels(netns: &Netns) -> Vec<String> {
    let told = |family| {
        let text = netns.ip(&["-j", family, "route", "show", "table", "all"]);
        let rows: Vec<Value> = serde_json::from_str(&text.unwrap()).unwrap();
        rows
    };
    compared(told("-4").into_iter().chain(told("-6")))
}

fn compared(rows: impl Iterator<Item = Value>) -> Vec<String> {
    let made = |row: &Value| matches!(row["protocol"].as_str(), Some("static" | "bgp"));
    let mut all: Vec<String> = rows.filter(made).filter_map(|row| shown(&row)).collect();
    all.sort();
    all
}

/// A row of `ip -j route`.
fn shown(row: &Value) -> Option<String> {
    let kind = match row["type"].as_str() {
        Some("blackhole" | "unreachable" | "prohibit") => "no way ",
        _ => "",
    };
    let hop = |hop: &Value| {
        let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str());
        Some(format!(
            "{}@{}",
            gateway.unwrap_or("-"),
            hop["dev"].as_str()?
        ))
    };
    let mut hops: Vec<String> = match row["nexthops"].as_array() {
        _ if !kind.is_empty() => Vec::new(),
        Some(hops) => hops.iter().filter_map(hop).collect(),
        None => hop(row).into_iter().collect(),
    };
    hops.sort();
    let table = match row["table"].as_str() {
        None | Some("main") => "254",
        Some(table) => table,
    };
    let dst = row["dst"].as_str()?;
    let prefix = match (dst, dst.contains('/'), dst.contains(':')) {
        ("default", ..) => "0.0.0.0/0".to_owned(),
        (_, true, _) => dst.to_owned(),
        (_, false, true) => format!("{dst}/128"),
        (_, false, false) => format!("{dst}/32"),
    };
    Some(format!("{table} {kind}{prefix} {}", hops.join(",")))
}
