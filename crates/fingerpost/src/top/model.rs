//! What `top` knows at a moment, made of looks and changes. No clock, no
//! socket.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::busiest::Busiest;
use super::events::{Counts, TABLES, Tally};
use super::grid::{Cell, Column, Order, Row, number, text};
use super::sample::{Rates, RouterRates, Sample};
use super::subscribers::{Subscriber, Subscribers};
use super::units::{plain, short};

/// Looks whose changes are kept for the bars.
pub const PAST: usize = 300;

/// The lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Links with their rates.
    Links,
    /// The neighbours that change most.
    Neighbours,
    /// The prefixes that change most.
    Prefixes,
    /// The subscribers of a translation that have most.
    Subscribers,
}

impl View {
    /// In the order of their numbers.
    pub const ALL: [Self; 4] = [
        Self::Links,
        Self::Neighbours,
        Self::Prefixes,
        Self::Subscribers,
    ];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Links => "Links",
            Self::Neighbours => "Neighbours",
            Self::Prefixes => "Prefixes",
            Self::Subscribers => "Subscribers",
        }
    }

    /// Its columns.
    pub fn columns(self) -> &'static [Column] {
        const LINKS: &[Column] = &[
            text("LINK", 0),
            text("STATE", 14),
            number("RX PKT/S", 9),
            number("RX BIT/S", 9),
            number("TX PKT/S", 9),
            number("TX BIT/S", 9),
            number("ERR/S", 6),
            number("DROP/S", 6),
        ];
        const NEIGHBOURS: &[Column] = &[
            text("NEIGHBOUR", 0),
            text("LINK", 15),
            number("CHANGES/S", 10),
            number("TOTAL", 9),
            text("LAST", 7),
            text("AS", 0),
        ];
        const PREFIXES: &[Column] = &[
            text("PREFIX", 0),
            text("TABLE", 11),
            number("CHANGES/S", 10),
            number("TOTAL", 9),
            text("LAST", 7),
            text("AS", 0),
        ];
        const SUBSCRIBERS: &[Column] = &[
            text("SUBSCRIBER", 0),
            text("ALIAS", 15),
            number("SESSIONS", 9),
            number("TCP", 9),
            number("UDP", 9),
            number("HALF OPEN", 9),
            number("PORTS", 7),
            number("BLOCKS", 6),
        ];
        match self {
            Self::Links => LINKS,
            Self::Neighbours => NEIGHBOURS,
            Self::Prefixes => PREFIXES,
            Self::Subscribers => SUBSCRIBERS,
        }
    }

    /// How it is shown at first: the busiest above.
    pub fn first_order(self) -> Order {
        Order {
            column: match self {
                Self::Links => 3,
                Self::Neighbours | Self::Prefixes | Self::Subscribers => 2,
            },
            downwards: true,
            filter: String::new(),
        }
    }
}

/// A table with what changes in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Whether it misses rows of the kernel's.
    pub lacks: bool,
    /// Bytes of memory.
    pub bytes: u64,
    /// Rows that came, a second.
    pub added: f64,
    /// Rows that became others, a second.
    pub changed: f64,
    /// Rows that went, a second.
    pub deleted: f64,
    /// All changes a second at the last looks, the newest last.
    pub past: VecDeque<f64>,
}

/// What is known.
#[derive(Debug, Default)]
pub struct Model {
    /// The last look.
    pub sample: Sample,
    /// Rates of links by index.
    pub rates: HashMap<u32, Rates>,
    /// The tables.
    pub tables: Vec<Table>,
    /// What is forwarded at XDP, where a router is.
    pub router: Option<RouterRates>,
    /// Events of the kernel a second.
    pub events: f64,
    /// Looks so far.
    pub looks: u64,
    /// Times that changes came faster than they could be told.
    pub fell_behind: u64,
    /// Why nothing new comes, in words.
    pub trouble: Option<String>,
    /// The subscribers of a translation.
    pub subscribers: Subscribers,
    neighbours: Vec<Row>,
    prefixes: Vec<Row>,
    /// The last look whose counters were new.
    counted: Sample,
}

impl Model {
    /// Takes in a look, and what changed in the time since the one before.
    pub fn look(&mut self, sample: Sample, tally: &mut Tally, time: Duration) {
        let secs = time.as_secs_f64().max(0.001);
        if let Some(rates) = sample.rates_since(&self.counted) {
            self.rates = rates;
        }
        if sample.links_at_millis.is_some() {
            self.counted = sample.clone();
        }
        let events = sample.status.mirror.events;
        let before = self.sample.status.mirror.events;
        // Another daemon than before counts from nothing.
        self.events = match self.looks {
            0 => 0.0,
            _ => events.saturating_sub(before) as f64 / secs,
        };
        self.router = sample.router().map(|now| {
            let before = self.sample.router();
            let rates = before.and_then(|before| RouterRates::between(before, now));
            rates.or(self.router).unwrap_or_default()
        });
        self.tables = self.tables_now(&sample, &std::mem::take(&mut tally.counts), secs);
        for busiest in [&mut tally.neighbours, &mut tally.prefixes] {
            busiest.pass(time);
        }
        self.neighbours = busy_rows(&tally.neighbours);
        self.prefixes = busy_rows(&tally.prefixes);
        self.fell_behind = tally.fell_behind;
        self.sample = sample;
        self.trouble = None;
        self.looks += 1;
    }

    /// The daemon does not answer: what is known stays, what flowed stands
    /// still.
    pub fn fail(&mut self, trouble: String) {
        self.trouble = Some(trouble);
        self.rates.clear();
        self.counted = Sample::default();
        self.events = 0.0;
        self.router = None;
        for table in &mut self.tables {
            (table.added, table.changed, table.deleted) = (0.0, 0.0, 0.0);
            push_past(&mut table.past, 0.0);
        }
    }

    fn tables_now(&mut self, sample: &Sample, counts: &[Counts], secs: f64) -> Vec<Table> {
        let mut before = std::mem::take(&mut self.tables).into_iter();
        TABLES
            .iter()
            .zip(counts)
            .map(|((name, _), counts)| {
                let mut past = before.next().unwrap_or_default().past;
                let all = counts.added + counts.changed + counts.deleted;
                push_past(&mut past, all as f64 / secs);
                let now = sample
                    .status
                    .tables
                    .iter()
                    .find(|table| table.table == *name);
                let lacking = &sample.status.mirror.incomplete;
                Table {
                    name,
                    lacks: lacking.iter().any(|table| table == name),
                    rows: now.map_or(0, |table| table.rows as u64),
                    bytes: now.map_or(0, |table| table.bytes as u64),
                    added: counts.added as f64 / secs,
                    changed: counts.changed as f64 / secs,
                    deleted: counts.deleted as f64 / secs,
                    past,
                }
            })
            .collect()
    }

    /// What is forwarded at XDP, in a line; `None` without a router.
    pub fn router_line(&self) -> Option<String> {
        let status = self.sample.status.router.as_ref()?;
        let rates = self.router.unwrap_or_default();
        Some(format!(
            "router at XDP {} pkt/s {} bit/s, up {} pkt/s; {}",
            short(rates.forwarded),
            short(rates.forwarded_bits),
            short(rates.up),
            plain(&status.ports())
        ))
    }

    /// The rows of a list, in no order. O(rows).
    pub fn rows(&self, view: View) -> Vec<Row> {
        match view {
            View::Links => self.links(),
            View::Neighbours => self.neighbours.clone(),
            View::Prefixes => self.prefixes.clone(),
            View::Subscribers => self.subscribers.rows.iter().map(Subscriber::row).collect(),
        }
    }

    fn links(&self) -> Vec<Row> {
        let row = |link: &super::sample::Link| {
            let rates = self.rates.get(&link.ifindex).copied().unwrap_or_default();
            vec![
                Cell::Text(plain(&link.ifname)),
                Cell::Text(plain(&link.operstate).to_lowercase()),
                Cell::Rate(rates.rx_packets),
                Cell::Rate(rates.rx_bits),
                Cell::Rate(rates.tx_packets),
                Cell::Rate(rates.tx_bits),
                Cell::Rate(rates.errors),
                Cell::Rate(rates.drops),
            ]
        };
        self.sample.links.iter().map(row).collect()
    }
}

fn push_past(past: &mut VecDeque<f64>, value: f64) {
    if past.len() == PAST {
        past.pop_front();
    }
    past.push_back(value);
}

fn busy_rows(busiest: &Busiest) -> Vec<Row> {
    busiest
        .rows()
        .map(|(key, busy)| {
            vec![
                Cell::Text(plain(&key.dst)),
                Cell::Text(plain(&key.place)),
                Cell::Rate(busy.rate),
                Cell::Count(busy.total),
                Cell::Text(plain(&busy.last)),
                Cell::Text(plain(&busy.detail)),
            ]
        })
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::super::sample::{Counters, Direction, Link};
    use super::*;
    use serve::status::TableStatus;

    /// A look at two links, `packets` received by the first so far.
    pub fn sample(at_millis: u64, packets: u64) -> Sample {
        let link = |ifindex, name: &str, packets| Link {
            ifindex,
            ifname: name.to_owned(),
            operstate: "UP".to_owned(),
            stats64: Counters {
                rx: Direction {
                    bytes: packets * 125,
                    packets,
                    ..Direction::default()
                },
                ..Counters::default()
            },
        };
        let mut sample = Sample {
            links: vec![link(1, "eth0", packets), link(2, "evil\u{1b}[2J", 0)],
            links_at_millis: Some(at_millis),
            ..Sample::default()
        };
        sample.status.mirror.phase = "live".to_owned();
        sample.status.mirror.events = packets;
        sample.status.tables = vec![TableStatus {
            table: "routes".to_owned(),
            rows: 1_000_000,
            bytes: 1 << 27,
        }];
        sample
    }

    /// A model after two looks a second apart, with a change or two.
    pub fn model() -> Model {
        let mut model = Model::default();
        let mut tally = Tally::default();
        model.look(sample(1_000, 0), &mut tally, Duration::ZERO);
        tally.line(br#"{"event":"added","object":"route","dst":"10.1.0.0/16","dev":"eth0"}"#);
        tally.line(br#"{"event":"changed","object":"neigh","dst":"10.9.0.7","dev":"eth0"}"#);
        model.look(sample(2_000, 1_000), &mut tally, Duration::from_secs(1));
        model
    }

    #[test]
    fn two_looks_make_rates() {
        let model = model();
        assert_eq!(model.rates[&1].rx_bits, 1_000_000.0);
        assert_eq!(model.events, 1_000.0);
        let routes = &model.tables[3];
        assert_eq!(
            (routes.name, routes.rows, routes.added),
            ("routes", 1_000_000, 1.0)
        );
        assert_eq!(routes.past, [0.0, 1.0]);
        assert_eq!(model.rows(View::Prefixes).len(), 1);
        let links = model.rows(View::Links);
        assert_eq!(links[1][0], Cell::Text("evil\u{fffd}[2J".to_owned()));
    }

    #[test]
    fn a_table_that_misses_rows_is_marked() {
        let mut model = model();
        assert!(model.tables.iter().all(|table| !table.lacks));
        let mut lacking = sample(3_000, 1_000);
        lacking.status.mirror.incomplete = vec!["routes".to_owned()];
        model.look(lacking, &mut Tally::default(), Duration::from_secs(1));
        let marked: Vec<_> = model.tables.iter().filter(|table| table.lacks).collect();
        assert!(matches!(marked[..], [table] if table.name == "routes"));
    }

    #[test]
    fn without_a_daemon_nothing_flows_and_what_was_known_stays() {
        let mut model = model();
        model.fail("gone".to_owned());
        assert!(model.rates.is_empty());
        assert_eq!(model.rows(View::Links).len(), 2);
        assert_eq!(model.tables[3].rows, 1_000_000);
        let mut tally = Tally::default();
        model.look(sample(9_000, 5), &mut tally, Duration::from_secs(1));
        assert_eq!(model.trouble, None);
        assert!(model.rates.is_empty(), "one look makes no rate");
    }

    #[test]
    fn the_past_is_bounded() {
        let mut past = VecDeque::new();
        for value in 0..1_000 {
            push_past(&mut past, f64::from(value));
        }
        assert_eq!((past.len(), past.back()), (PAST, Some(&999.0)));
    }
}
