//! HTTP of a real daemon, asked by real programs: curl, jq, Prometheus,
//! openssl, and by hand where no program is rude enough.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

#[path = "../common/mod.rs"]
mod common;

mod asked;
mod changes;
mod guarded;
mod hostile;
mod load;
mod nat;
mod peers;
mod schema;
mod sql;

use std::fs;
use std::path::Path;

use common::Daemon;
use lab::Netns;

/// Where it is asked unless a test says otherwise.
pub const BASE: &str = "http://127.0.0.1:9797";

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// The lines of its head, names in lower case.
    pub head: String,
    /// Its body.
    pub body: String,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Its body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Its body as lines of JSON.
    pub fn rows(&self) -> Vec<serde_json::Value> {
        let lines = self.body.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Checks that it is a refusal in words.
    pub fn refuses(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let said = self.json();
        assert_eq!(said["status"], status);
        assert!(
            said["detail"].as_str().is_some_and(|said| said.len() > 10),
            "{said}"
        );
    }
}

/// Splits an answer as it came.
pub fn reply(text: &str) -> Reply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).unwrap_or_default();
    let lines = head.lines().map(|line| match line.split_once(':') {
        Some((name, value)) => format!("{}:{value}\n", name.to_ascii_lowercase()),
        None => format!("{line}\n"),
    });
    Reply {
        status: status.parse().unwrap_or_default(),
        head: lines.collect(),
        body: body.to_owned(),
    }
}

/// What curl gets for a path.
pub fn ask(netns: &Netns, path: &str, arguments: &[&str]) -> Reply {
    let url = if path.starts_with('/') {
        format!("{BASE}{path}")
    } else {
        path.to_owned()
    };
    let output = netns
        .command("curl")
        .args(["-sS", "-i", "-g", "--path-as-is", "--max-time", "60"])
        .args(arguments)
        .arg(url)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path}: {complaint}");
    reply(&String::from_utf8_lossy(&output.stdout))
}

/// The body of a good answer.
pub fn get(netns: &Netns, path: &str) -> String {
    let reply = ask(netns, path, &[]);
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.body
}

/// Loopback, up: a fresh namespace has it down.
pub fn with_loopback(netns: &Netns) {
    netns.ip(&["link", "set", "lo", "up"]).unwrap();
}

/// A daemon with an `[http]` section.
pub fn configured(netns: &Netns, directory: &Path, http: &str) -> Daemon {
    let path = directory.join("fingerpost.toml");
    fs::write(&path, format!("[http]\n{http}\n")).unwrap();
    Daemon::up(netns, &["--config", path.to_str().unwrap()])
}

/// A namespace with rows in every table, and its daemon.
pub fn asked(tag: &str) -> Option<(Netns, Daemon)> {
    let netns = common::furnished(tag)?;
    with_loopback(&netns);
    let daemon = Daemon::up(&netns, &[]);
    Some((netns, daemon))
}
