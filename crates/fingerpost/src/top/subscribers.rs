//! The subscribers of a translation that have most, which `top` asks for at
//! its control socket, on a thread of its own: one that does not answer
//! delays nothing else.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use translation::client::Connection;
use translation::request::{Filter, Request, Table};

use super::grid::{Cell, Row};
use super::units::plain;

/// Subscribers that are asked for.
const TOP: usize = 1_000;
/// Between two questions: each is a walk over all subscribers.
const PAUSE: Duration = Duration::from_secs(2);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subscribers {
    /// Those with the most sessions, the first one with most.
    pub rows: Vec<Subscriber>,
    /// Why there are none, in words.
    pub trouble: Option<String>,
}

/// A subscriber, as a translation tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subscriber {
    subscriber: String,
    alias: Option<IpAddr>,
    ports: Classes,
    sessions: Classes,
    half_open: Classes,
    blocks: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Classes {
    tcp: u64,
    udp: u64,
    other: u64,
}

impl Classes {
    fn all(self) -> u64 {
        self.tcp.saturating_add(self.udp).saturating_add(self.other)
    }
}

/// What the asking thread has found.
#[derive(Debug, Clone, Default)]
pub struct Found(Arc<Mutex<Subscribers>>);

impl Found {
    /// What is known now.
    pub fn now(&self) -> Subscribers {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks again and again, for as long as the process lives.
pub fn follow(control: &Path, interval: Duration, found: &Found) {
    loop {
        let (rows, trouble) = match ask(control) {
            Ok(rows) => (rows, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        *found.lock() = Subscribers { rows, trouble };
        thread::sleep(interval.max(PAUSE));
    }
}

/// Where a translation is asked when nothing is said.
pub fn usual() -> PathBuf {
    translation::USUAL.into()
}

fn ask(control: &Path) -> Result<Vec<Subscriber>> {
    let request = Request::Show {
        table: Table::Subscribers,
        filter: Filter::default(),
        count: false,
        limit: None,
        top: Some(TOP),
        after: None,
    };
    let mut rows = Vec::new();
    let mut take = |row: Value| {
        rows.push(serde_json::from_value(row)?);
        Ok(())
    };
    Connection::open(control)?.ask(&request, Some(PATIENCE), &mut take)?;
    rows.truncate(TOP);
    Ok(rows)
}

impl Subscriber {
    /// As a row of the list.
    pub fn row(&self) -> Row {
        let alias = self.alias.map_or("-".to_owned(), |alias| alias.to_string());
        vec![
            Cell::Text(plain(&self.subscriber)),
            Cell::Text(alias),
            Cell::Count(self.sessions.all()),
            Cell::Count(self.sessions.tcp),
            Cell::Count(self.sessions.udp),
            Cell::Count(self.half_open.all()),
            Cell::Count(self.ports.all()),
            Cell::Count(self.blocks),
        ]
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One, as a translation tells it.
    pub fn subscriber(text: &str, sessions: u64) -> Subscriber {
        let row = serde_json::json!({
            "subscriber": text,
            "alias": "192.0.2.1",
            "ports": {"tcp": 1, "udp": 2, "other": 3},
            "sessions": {"tcp": sessions, "udp": 1, "other": 0},
            "half_open": {"tcp": 4, "udp": 5},
            "blocks": 1,
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_row_has_sums_and_nothing_that_moves_a_cursor() {
        let row = subscriber("10.0.0.9\u{1b}[2J", 7).row();
        assert_eq!(row[0], Cell::Text("10.0.0.9\u{fffd}[2J".to_owned()));
        assert_eq!((&row[2], &row[5]), (&Cell::Count(8), &Cell::Count(9)));
        assert_eq!((&row[6], &row[7]), (&Cell::Count(6), &Cell::Count(1)));
    }

    #[test]
    fn nobody_there_is_said() {
        let trouble = ask(Path::new("/nowhere/socket")).unwrap_err();
        assert!(format!("{trouble:#}").contains("/nowhere/socket"));
    }
}
