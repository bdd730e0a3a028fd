//! Changes as the daemon tells them, counted.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::busiest::{Busiest, Key};

/// Rows of neighbours and of prefixes that are kept.
pub const KEPT: usize = 4_096;
/// Bytes of a line at most; what is longer is not read.
const LINE_BYTES: usize = 64 << 10;
/// Bytes of a text that is kept at most.
const TEXT_BYTES: usize = 128;

/// The tables in the order in which a status tells them: its word for
/// each, and that of an event.
pub const TABLES: [(&str, &str); 7] = [
    ("links", "link"),
    ("addresses", "addr"),
    ("neighbours", "neigh"),
    ("routes", "route"),
    ("nexthops", "nexthop"),
    ("rules", "rule"),
    ("fdb", "fdb"),
];

/// Changes of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that came.
    pub added: u64,
    /// Rows that became others.
    pub changed: u64,
    /// Rows that went.
    pub deleted: u64,
}

/// All changes since somebody last looked.
#[derive(Debug)]
pub struct Tally {
    /// By table, as [`TABLES`].
    pub counts: [Counts; TABLES.len()],
    /// Neighbours.
    pub neighbours: Busiest,
    /// Prefixes.
    pub prefixes: Busiest,
    /// Times that changes came faster than they could be told.
    pub fell_behind: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counts: Default::default(),
            neighbours: Busiest::new(KEPT),
            prefixes: Busiest::new(KEPT),
            fell_behind: 0,
        }
    }
}

#[derive(Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    object: String,
    #[serde(default)]
    dst: String,
    #[serde(default)]
    dev: String,
    #[serde(default)]
    lladdr: String,
    #[serde(default)]
    state: State,
    #[serde(default)]
    gateway: String,
    via: Option<Via>,
    #[serde(default, rename = "type")]
    kind: String,
    table: Option<String>,
}

/// A neighbour's is a list, a forwarding entry's a word.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum State {
    List(Vec<String>),
    #[default]
    None,
    Word(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Via {
    host: String,
}

impl Tally {
    /// Counts one line of a watch. What makes no sense is left out: the
    /// daemon may know more than we do.
    pub fn line(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(line) else {
            return;
        };
        if event.event == "fell_behind" {
            self.fell_behind += 1;
            return;
        }
        let Some(at) = TABLES
            .iter()
            .position(|(_, object)| *object == event.object)
        else {
            return;
        };
        let counts = &mut self.counts[at];
        match event.event.as_str() {
            "added" => counts.added += 1,
            "changed" => counts.changed += 1,
            "deleted" => counts.deleted += 1,
            _ => return,
        }
        match event.object.as_str() {
            "neigh" => self.neighbour(event),
            "route" => self.route(event),
            _ => {}
        }
    }

    fn neighbour(&mut self, event: Event) {
        let state = match &event.state {
            State::List(states) => states.join(","),
            _ => String::new(),
        };
        let detail = format!("{} {state}", event.lladdr);
        let key = Key {
            dst: short(event.dst),
            place: short(event.dev),
        };
        self.neighbours
            .count(key, event.event, short(detail.trim().to_owned()));
    }

    fn route(&mut self, event: Event) {
        let via = event.via.map_or(event.gateway, |via| via.host);
        let mut words = Vec::new();
        if !matches!(event.kind.as_str(), "" | "unicast") {
            words.push(event.kind);
        }
        if !via.is_empty() {
            words.push(format!("via {via}"));
        }
        if !event.dev.is_empty() {
            words.push(format!("dev {}", event.dev));
        }
        let key = Key {
            dst: short(event.dst),
            place: short(event.table.unwrap_or_else(|| "main".to_owned())),
        };
        self.prefixes
            .count(key, event.event, short(words.join(" ")));
    }
}

/// A text that is kept: nobody's names fill the memory.
fn short(mut text: String) -> String {
    if text.len() > TEXT_BYTES {
        let end = text.floor_char_boundary(TEXT_BYTES);
        text.truncate(end);
    }
    text
}

/// Where a watch writes: lines, counted.
#[derive(Debug)]
pub struct Lines {
    tally: Arc<Mutex<Tally>>,
    /// The beginning of a line that has no end yet.
    begun: Vec<u8>,
    too_long: bool,
}

impl Lines {
    /// Counts into a tally.
    pub fn new(tally: Arc<Mutex<Tally>>) -> Self {
        Self {
            tally,
            begun: Vec::new(),
            too_long: false,
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        self.too_long |= self.begun.len() + piece.len() > LINE_BYTES;
        if !self.too_long {
            self.begun.extend_from_slice(piece);
        }
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let tally = Arc::clone(&self.tally);
        let mut tally = lock(&tally);
        let mut pieces = bytes.split_inclusive(|octet| *octet == b'\n');
        for piece in &mut pieces {
            self.keep(piece);
            if piece.ends_with(b"\n") {
                if !self.too_long {
                    tally.line(&self.begun);
                }
                self.begun.clear();
                self.too_long = false;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A tally is whole after any panic of another thread.
pub fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_wherever_they_are_cut() {
        let text = concat!(
            r#"{"event":"added","object":"neigh","dst":"10.9.0.7","dev":"veth0","lladdr":"02:00:00:00:00:07","state":["PERMANENT"]}"#,
            "\n",
            r#"{"event":"deleted","object":"neigh","dst":"10.9.0.7","dev":"veth0","state":["FAILED"]}"#,
            "\n",
            r#"{"event":"added","object":"route","dst":"10.1.0.0/16","gateway":"10.9.0.9","dev":"veth0","flags":[]}"#,
            "\n",
            r#"{"event":"changed","object":"route","type":"blackhole","dst":"10.3.0.0/16","table":"100","flags":[]}"#,
            "\n",
            r#"{"event":"added","object":"fdb","mac":"aa:0f:d8:3d:73:d0","ifname":"if4","flags":[],"state":"permanent"}"#,
            "\n",
            r#"{"event":"fell_behind"}"#,
            "\n",
            "nonsense\n",
            r#"{"event":"added","object":"dance"}"#,
            "\n",
        );
        for cut in [1, 7, 64, text.len()] {
            let tally = Arc::new(Mutex::new(Tally::default()));
            let mut lines = Lines::new(Arc::clone(&tally));
            for piece in text.as_bytes().chunks(cut) {
                lines.write_all(piece).unwrap();
            }
            let tally = lock(&tally);
            let [_, _, neighbours, routes, _, _, fdb] = tally.counts;
            assert_eq!((neighbours.added, neighbours.deleted), (1, 1));
            assert_eq!((routes.added, routes.changed, fdb.added), (1, 1, 1));
            assert_eq!(tally.fell_behind, 1);
            let (key, busy) = tally.neighbours.rows().next().unwrap();
            assert_eq!((&*key.dst, &*key.place), ("10.9.0.7", "veth0"));
            assert_eq!(
                (busy.total, &*busy.last, &*busy.detail),
                (2, "deleted", "FAILED")
            );
            let mut prefixes: Vec<_> = tally.prefixes.rows().collect();
            prefixes.sort_by_key(|(key, _)| *key);
            assert_eq!(prefixes[0].1.detail, "via 10.9.0.9 dev veth0");
            assert_eq!(
                (&*prefixes[1].0.place, &*prefixes[1].1.detail),
                ("100", "blackhole")
            );
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let tally = Arc::new(Mutex::new(Tally::default()));
        let mut lines = Lines::new(Arc::clone(&tally));
        for _ in 0..100 {
            lines.write_all(&[b'x'; 4_096]).unwrap();
        }
        assert!(lines.begun.len() <= LINE_BYTES);
        lines.write_all(b"\n{\"event\":\"fell_behind\"}\n").unwrap();
        assert_eq!(lock(&tally).fell_behind, 1);
        assert_eq!(short("ü".repeat(100)).len(), TEXT_BYTES);
    }
}
