//! `top` without a screen: one report as text, or JSON objects.

use std::io::Write;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::Top;
use super::daemon::Daemon;
use super::events;
use super::gather::{self, Gathered, Gathering};
use super::grid::{self, Cell, Row};
use super::model::{Model, View};
use super::sample::RouterRates;
use super::subscribers::Subscriber;
use super::units::{grouped, short, span};
use serve::status::human;

/// Rows of each list in a text.
const TEXT_ROWS: usize = 20;
/// Rows of those that change most in an object.
const JSON_ROWS: usize = 100;
/// Longer than an interval may a look take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes a report after each interval, only one where that is wanted.
pub fn run(daemon: &Daemon, top: &Top, out: &mut impl Write) -> Result<()> {
    let gathered = gather::start(daemon, top)?;
    let mut model = Model::default();
    let mut looked = Instant::now();
    loop {
        look(&gathered, &mut model, &mut looked, top.interval)?;
        // Rates are between two looks at counters that were read anew.
        if model.looks < 2 || (top.once && model.rates.is_empty() && model.looks < 5) {
            continue;
        }
        if top.json {
            serde_json::to_writer(&mut *out, &Report::of(&model)).context("cannot write")?;
            writeln!(out)?;
        } else {
            text(&model, out)?;
        }
        out.flush()?;
        if top.once {
            return Ok(());
        }
    }
}

fn look(
    gathered: &Gathered,
    model: &mut Model,
    looked: &mut Instant,
    interval: Duration,
) -> Result<()> {
    match gathered.said.recv_timeout(interval + PATIENCE) {
        Ok(Gathering::Sample(sample)) => {
            let time = looked.elapsed();
            *looked = Instant::now();
            model.look(*sample, &mut events::lock(&gathered.tally), time);
            model.subscribers = gathered.subscribers.now();
            Ok(())
        }
        Ok(Gathering::Trouble(trouble)) => bail!(trouble),
        Err(RecvTimeoutError::Timeout) => bail!("the daemon did not answer in time"),
        Err(RecvTimeoutError::Disconnected) => bail!("the thread that asks the daemon ended"),
    }
}

fn text(model: &Model, out: &mut impl Write) -> Result<()> {
    let status = &model.sample.status;
    writeln!(
        out,
        "fingerpost {}, up {}, memory {}, {} events/s",
        status.mirror.phase,
        span(status.uptime_secs),
        human(status.resident_bytes),
        short(model.events)
    )?;
    if let Some(line) = model.router_line() {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "\n{:<11}{:>11}{:>12}{:>9}{:>11}{:>9}",
        "TABLE", "ROWS", "MEMORY", "NEW/S", "CHANGED/S", "GONE/S"
    )?;
    for table in &model.tables {
        writeln!(
            out,
            "{:<11}{:>11}{:>12}{:>9}{:>11}{:>9}",
            super::screen::marked(table),
            grouped(table.rows),
            human(table.bytes),
            short(table.added),
            short(table.changed),
            short(table.deleted)
        )?;
    }
    for view in View::ALL {
        let rows = model.rows(view);
        // Most hosts translate nothing.
        if view != View::Subscribers || !rows.is_empty() {
            list(view, &rows, out)?;
        }
    }
    for warning in status.warnings() {
        writeln!(out, "WARNING: {warning}")?;
    }
    Ok(())
}

fn list(view: View, rows: &[Row], out: &mut impl Write) -> Result<()> {
    let columns = view.columns();
    let places = grid::arranged(rows, &view.first_order());
    writeln!(out)?;
    let titles: Vec<String> = columns
        .iter()
        .map(|column| column.title.to_owned())
        .collect();
    let shown = places.iter().take(TEXT_ROWS).filter_map(|at| rows.get(*at));
    let shown = shown.map(|row| row.iter().map(Cell::shown).collect());
    for line in std::iter::once(titles).chain(shown) {
        let mut text = String::new();
        for (column, cell) in columns.iter().zip(&line) {
            let width = match column.width {
                0 => 16,
                width => usize::from(width),
            };
            text += &if column.is_number {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:<width$}  ")
            };
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    match places.len().saturating_sub(TEXT_ROWS) {
        0 => Ok(()),
        more => Ok(writeln!(out, "… and {} more", grouped(more as u64))?),
    }
}

/// A report as JSON. Rates are a second.
#[derive(Debug, Serialize)]
struct Report<'a> {
    netns: Option<&'a str>,
    phase: &'a str,
    uptime_secs: u64,
    resident_bytes: u64,
    generation: u64,
    events_per_sec: f64,
    /// Times that changes came faster than they could be told.
    fell_behind: u64,
    /// What is forwarded at XDP, packets and bits; `null` without a router.
    router: Option<RouterRates>,
    tables: Vec<TableReport>,
    links: Vec<LinkReport<'a>>,
    neighbours: Vec<serde_json::Value>,
    prefixes: Vec<serde_json::Value>,
    /// Of a translation, those with the most sessions.
    subscribers: &'a [Subscriber],
    /// Why there are none.
    subscribers_trouble: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct TableReport {
    table: &'static str,
    /// Whether it misses no row that is known to be missing.
    complete: bool,
    rows: u64,
    bytes: u64,
    added_per_sec: f64,
    changed_per_sec: f64,
    deleted_per_sec: f64,
}

#[derive(Debug, Serialize)]
struct LinkReport<'a> {
    ifindex: u32,
    ifname: &'a str,
    operstate: &'a str,
    /// `null` when they are not known yet.
    rates: Option<RatesReport>,
}

#[derive(Debug, Serialize)]
struct RatesReport {
    rx_packets: f64,
    rx_bits: f64,
    tx_packets: f64,
    tx_bits: f64,
    errors: f64,
    drops: f64,
}

impl<'a> Report<'a> {
    fn of(model: &'a Model) -> Self {
        let status = &model.sample.status;
        Self {
            netns: status.netns.as_deref(),
            phase: &status.mirror.phase,
            uptime_secs: status.uptime_secs,
            resident_bytes: status.resident_bytes,
            generation: status.generation,
            events_per_sec: model.events,
            fell_behind: model.fell_behind,
            router: model.router,
            tables: model.tables.iter().map(table_report).collect(),
            links: model
                .sample
                .links
                .iter()
                .map(|link| link_report(link, model))
                .collect(),
            neighbours: busy(model, View::Neighbours, "dev"),
            prefixes: busy(model, View::Prefixes, "table"),
            subscribers: model
                .subscribers
                .rows
                .get(..JSON_ROWS)
                .unwrap_or(&model.subscribers.rows),
            subscribers_trouble: model.subscribers.trouble.as_deref(),
        }
    }
}

fn table_report(table: &super::model::Table) -> TableReport {
    TableReport {
        table: table.name,
        complete: !table.lacks,
        rows: table.rows,
        bytes: table.bytes,
        added_per_sec: table.added,
        changed_per_sec: table.changed,
        deleted_per_sec: table.deleted,
    }
}

fn link_report<'a>(link: &'a super::sample::Link, model: &Model) -> LinkReport<'a> {
    LinkReport {
        ifindex: link.ifindex,
        ifname: &link.ifname,
        operstate: &link.operstate,
        rates: model.rates.get(&link.ifindex).map(|rates| RatesReport {
            rx_packets: rates.rx_packets,
            rx_bits: rates.rx_bits,
            tx_packets: rates.tx_packets,
            tx_bits: rates.tx_bits,
            errors: rates.errors,
            drops: rates.drops,
        }),
    }
}

/// The rows that change most, `place` being what their second column is.
fn busy(model: &Model, view: View, place: &str) -> Vec<serde_json::Value> {
    let rows = model.rows(view);
    let places = grid::arranged(&rows, &view.first_order());
    let shown = places.iter().take(JSON_ROWS).filter_map(|at| rows.get(*at));
    let object = |row: &Row| match &row[..] {
        [
            Cell::Text(dst),
            Cell::Text(at),
            Cell::Rate(rate),
            Cell::Count(total),
            Cell::Text(last),
            Cell::Text(detail),
        ] => Some(serde_json::json!({
            "dst": dst, place: at, "changes_per_sec": rate, "changes": total,
            "last": last, "as": detail,
        })),
        _ => None,
    };
    shown.filter_map(object).collect()
}
