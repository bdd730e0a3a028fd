//! What Prometheus is told of a translation: by direction and verdict, by
//! protocol, by pool. Never by subscriber, of which there are a million.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::translation::request::{Filter, Request, Table};
use serde_json::Value;
use tokio::sync::Mutex;

use super::super::background::Background;
use super::super::prometheus::{escape, head, labelled};
use super::asking::{self, Bounds, Trouble};
use super::translation::Translation;

/// How long a scrape waits for each of two answers.
const PATIENCE: Duration = Duration::from_millis(500);
/// How old what is told may be: so many scrapers ask once.
const FRESH: Duration = Duration::from_millis(500);
/// Bytes of what a translation says of its addresses: the most there are.
const BYTES: usize = 65_536 * 128;
/// Pools that are told apart; the last one has all further addresses.
const POOLS: usize = 64;

/// What a translation counted, as it was told last.
#[derive(Debug, Default)]
pub struct Counted(Mutex<Option<(Instant, Arc<Sample>)>>);

/// One look at a translation.
#[derive(Debug)]
pub struct Sample {
    /// `None`: nobody is there, and nobody said that there would be.
    said: Option<Result<Told, String>>,
}

#[derive(Debug, Default)]
struct Told {
    statistics: Value,
    pools: Vec<Pool>,
    /// Why there are none.
    without_pools: Option<String>,
}

/// Outside addresses in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pool {
    first: Ipv4Addr,
    last: Ipv4Addr,
    addresses: u64,
    blocks: u64,
    free_blocks: u64,
}

/// Looks at the translation, or has what was seen a moment ago.
pub async fn sample(asked: &Translation, background: &Background) -> Arc<Sample> {
    // One asks, the others wait for what it is told.
    let mut counted = asked.counted.0.lock().await;
    if let Some((at, sample)) = &*counted
        && at.elapsed() < FRESH
    {
        return Arc::clone(sample);
    }
    let said = match asked.path() {
        Some(path) if path.exists() || *path != *Path::new(::translation::USUAL) => {
            let work = async move { Ok(look(&path).await) };
            let looked = background.run(work).await;
            Some(looked.unwrap_or_else(|problem| Err(problem.detail)))
        }
        _ => None,
    };
    let sample = Arc::new(Sample { said });
    *counted = Some((Instant::now(), Arc::clone(&sample)));
    sample
}

async fn look(path: &Path) -> Result<Told, String> {
    let bounds = Bounds {
        patience: PATIENCE,
        bytes: BYTES,
    };
    let ask = async |request| {
        let asked = asking::ask(path, &request, bounds).await;
        asked.map_err(|trouble| trouble.in_words())
    };
    let statistics = ask(Request::Statistics).await?.rows;
    let statistics: Option<Value> = serde_json::from_slice(&statistics).ok();
    // Counters that began anew would be told where it is another's words.
    let statistics = statistics.filter(|it| it["flows"].is_u64());
    let statistics = statistics.ok_or_else(|| Trouble::Nonsense.in_words())?;
    // Many workers have many rows of addresses: without them all else is told.
    let pools = ask(Request::rows(Table::Pools, Filter::default())).await;
    let (pools, without_pools) = match pools {
        Ok(pools) => (pools_of(&pools.rows), None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Ok(Told {
        statistics,
        pools,
        without_pools,
    })
}

/// Rows of addresses, put together.
fn pools_of(lines: &[u8]) -> Vec<Pool> {
    let lines = lines.split(|byte| *byte == b'\n');
    let rows = lines.filter_map(|line| {
        let row: Value = serde_json::from_slice(line).ok()?;
        let alias: Ipv4Addr = row["alias"].as_str()?.parse().ok()?;
        let number = |name: &str| row[name].as_u64().unwrap_or(0);
        let (blocks, free_blocks) = (number("blocks"), number("free_blocks"));
        let is_open = row["open"].as_bool()?;
        is_open.then_some(Pool {
            first: alias,
            last: alias,
            addresses: 1,
            blocks,
            free_blocks,
        })
    });
    let mut rows: Vec<Pool> = rows.collect();
    rows.sort_unstable_by_key(|row| row.first);
    let mut pools: Vec<Pool> = Vec::new();
    for row in rows {
        let is_full = pools.len() == POOLS;
        match pools.last_mut() {
            // Workers share an address.
            Some(pool) if pool.last == row.first => pool.add(row, 0),
            Some(pool) if is_full || pool.last.to_bits() + 1 == row.first.to_bits() => {
                pool.add(row, 1);
            }
            _ => pools.push(row),
        }
    }
    pools
}

impl Pool {
    fn add(&mut self, row: Self, addresses: u64) {
        self.last = row.last;
        self.addresses += addresses;
        self.blocks += row.blocks;
        self.free_blocks += row.free_blocks;
    }
}

/// Families of one value: name, what it is, kind, where the value stands.
const FAMILIES: [(&str, &str, &str, &str); 13] = [
    ("flows", "Conversations", "gauge", "flows"),
    ("flows_max", "Most conversations", "gauge", "flows_max"),
    (
        "flows_of_strangers",
        "Conversations that somebody outside began and nobody inside answered",
        "gauge",
        "flows_of_strangers",
    ),
    (
        "flows_made_total",
        "Conversations begun",
        "counter",
        "flows_made",
    ),
    (
        "flows_expired_total",
        "Conversations ended by their timeout",
        "counter",
        "flows_expired",
    ),
    (
        "flows_evicted_total",
        "Conversations ended to make room",
        "counter",
        "flows_evicted",
    ),
    (
        "flows_removed_total",
        "Conversations ended by the operator or the rules",
        "counter",
        "flows_removed",
    ),
    ("leases", "Ports asked for by PCP", "gauge", "leases"),
    ("subscribers", "Subscribers", "gauge", "subscribers"),
    (
        "subscribers_max",
        "Most subscribers",
        "gauge",
        "subscribers_max",
    ),
    ("blocks", "Blocks somebody has", "gauge", "blocks"),
    (
        "events_lost_total",
        "Events that nobody wrote down in time",
        "counter",
        "events_lost",
    ),
    (
        "memory_bytes",
        "Memory of its tables",
        "gauge",
        "memory_bytes",
    ),
];

/// Of protocols: name, what it is, kind.
const OF_PROTOCOLS: [(&str, &str, &str); 4] = [
    ("translated", "Packets translated", "counter"),
    ("refused", "Packets that began nothing", "counter"),
    ("mappings_made", "Mappings made", "counter"),
    ("mappings", "Mappings", "gauge"),
];

impl Sample {
    /// Writes what it has.
    pub fn write(&self, out: &mut String) {
        let Some(said) = &self.said else {
            return;
        };
        let name = "fingerpost_nat_up";
        head(
            out,
            name,
            "Whether the translation answers: 0 where not",
            "gauge",
        );
        match said {
            Ok(told) => {
                let _ = writeln!(out, "{name} 1");
                told.write(out);
            }
            Err(why) => {
                let _ = writeln!(out, "{name} 0");
                let why = why.replace('\n', " ");
                let _ = writeln!(out, "# {why}");
            }
        }
    }
}

impl Told {
    fn write(&self, out: &mut String) {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        for (name, help, kind, at) in FAMILIES {
            // A translation of another version may not count it.
            let Some(value) = self.statistics[at].as_u64() else {
                continue;
            };
            let name = format!("fingerpost_nat_{name}");
            head(out, &name, help, kind);
            let _ = writeln!(out, "{name} {value}");
        }
        let name = "fingerpost_nat_packets_total";
        let help = "Packets, by direction and what became of them";
        head(out, name, help, "counter");
        for direction in ["out", "in"] {
            let verdicts = self.statistics["packets"][direction].as_object();
            for (verdict, packets) in verdicts.into_iter().flatten() {
                let labels = [("direction", Some(direction)), ("verdict", Some(verdict))];
                labelled(out, name, &labels, number(packets));
            }
        }
        let protocols = self.statistics["protocols"].as_object();
        for (of, help, kind) in OF_PROTOCOLS {
            let ending = if kind == "counter" { "_total" } else { "" };
            let name = format!("fingerpost_nat_protocol_{of}{ending}");
            head(out, &name, help, kind);
            for (protocol, counted) in protocols.into_iter().flatten() {
                let labels = [("protocol", Some(protocol.as_str()))];
                labelled(out, &name, &labels, number(&counted[of]));
            }
        }
        self.of_pools(out);
    }

    fn of_pools(&self, out: &mut String) {
        if let Some(why) = &self.without_pools {
            let _ = writeln!(out, "# no pools: {}", why.replace('\n', " "));
            return;
        }
        type Value = fn(&Pool) -> u64;
        let families: [(&str, &str, Value); 3] = [
            ("addresses", "Outside addresses", |pool| pool.addresses),
            ("blocks", "Blocks of ports of addresses in use", |pool| {
                pool.blocks
            }),
            ("free_blocks", "Those of them that are free", |pool| {
                pool.free_blocks
            }),
        ];
        for (of, help, value) in families {
            let name = format!("fingerpost_nat_pool_{of}");
            head(out, &name, help, "gauge");
            for pool in &self.pools {
                let mut range = pool.first.to_string();
                if pool.first != pool.last {
                    let _ = write!(range, "-{}", pool.last);
                }
                out.push_str(&name);
                out.push_str("{pool=\"");
                escape(out, &range);
                let _ = writeln!(out, "\"}} {}", value(pool));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(alias: &str, blocks: u64) -> String {
        format!("{{\"alias\":\"{alias}\",\"open\":true,\"blocks\":{blocks},\"free_blocks\":1}}\n")
    }

    #[test]
    fn addresses_in_a_row_are_a_pool_and_workers_share_them() {
        let lines: String = [
            row("192.0.2.2", 4),
            row("192.0.2.1", 4),
            row("198.51.100.1", 8),
            row("192.0.2.1", 4),
        ]
        .concat();
        let pools = pools_of(lines.as_bytes());
        let told = Told {
            pools,
            ..Told::default()
        };
        let mut out = String::new();
        told.of_pools(&mut out);
        for line in [
            "fingerpost_nat_pool_addresses{pool=\"192.0.2.1-192.0.2.2\"} 2",
            "fingerpost_nat_pool_blocks{pool=\"192.0.2.1-192.0.2.2\"} 12",
            "fingerpost_nat_pool_free_blocks{pool=\"198.51.100.1\"} 1",
        ] {
            assert!(out.contains(line), "{out}");
        }
    }

    #[test]
    fn pools_are_bounded() {
        let lines: String = (0..100)
            .map(|number| row(&format!("192.0.{number}.1"), 1))
            .collect();
        let pools = pools_of(lines.as_bytes());
        assert_eq!(pools.len(), POOLS);
        let addresses: u64 = pools.iter().map(|pool| pool.addresses).sum();
        assert_eq!(addresses, 100);
    }

    #[test]
    fn a_translation_that_fails_is_told_in_one_line() {
        let mut out = String::new();
        let said = Some(Err("late\nfingerpost_nat_up 1".to_owned()));
        Sample { said }.write(&mut out);
        assert!(out.ends_with("fingerpost_nat_up 0\n# late fingerpost_nat_up 1\n"));
        let mut out = String::new();
        Sample { said: None }.write(&mut out);
        assert_eq!(out, "");
    }
}
