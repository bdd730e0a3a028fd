//! `fingerpost nat who`: whose an alias port is or was, and which ports
//! somebody had. From a journal, from rules by which ports can be reckoned,
//! or both.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use nat::{AddressRange, PortSet, Reckoning};
use serde_json::{Value, json};
use words::calendar;

use super::control::{client, shown};
use super::log::journal::{self, Asked};
use super::log::record::Record;
use super::settings::Settings;

const AFTER_HELP: &str = "\
ADDRESS:PORT asks whose an outside port is; an inside ADDRESS alone asks which
outside ports it has. `--control` asks what runs; a journal is what `nat run --log-journal DIR` writes;
with rules that have `deterministic` ports are reckoned, without any log.
  fingerpost nat who 192.0.2.1:40000 --at 2026-11-24T14:05:00Z --journal /var/log/nat
  fingerpost nat who 100.64.3.9 --rules nat.conf
Exit status: 0 somebody was found, 1 nobody or it failed, 2 the command line is
wrong.";

/// What is asked.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Who {
    /// An outside address and port, or an inside address
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = asked)]
    asked: Asked,
    /// At which time (RFC 3339, with its zone) [default: now]
    #[arg(long, value_name = "TIME", value_parser = at, allow_hyphen_values = true)]
    at: Option<u64>,
    /// The control socket of a translation that runs
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with_all = ["at", "journal", "rules"])]
    control: Option<PathBuf>,
    /// The directory of a journal
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present_any = ["rules", "control"])]
    journal: Option<PathBuf>,
    /// Rules by which ports can be reckoned
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rules: Option<PathBuf>,
    /// As JSON, an object a line
    #[arg(short, long)]
    json: bool,
}

fn asked(text: &str) -> Result<Asked, String> {
    let address = |text: &str| text.parse::<Ipv4Addr>().ok();
    let asked = match text.split_once(':') {
        None => address(text).map(Asked::Inside),
        Some((host, port)) => {
            let port = port.parse().ok().filter(|port| *port != 0);
            address(host)
                .zip(port)
                .map(|(host, port)| Asked::Port(host, port))
        }
    };
    asked.ok_or_else(|| "an IPv4 address, or one with a port: 192.0.2.1:40000".to_owned())
}

fn at(text: &str) -> Result<u64, String> {
    let micros = calendar::parse(text).map(|micros| micros / 1_000);
    micros.ok_or_else(|| "a time with its zone: 2026-11-24T14:05:00Z".to_owned())
}

/// One who was found.
struct Found {
    subscriber: AddressRange,
    alias: Ipv4Addr,
    ports: PortSet,
    /// By which record; `None`: it was reckoned.
    record: Option<Record>,
}

/// Answers.
pub fn run(who: &Who) -> anyhow::Result<ExitCode> {
    if let Some(control) = &who.control {
        return running(who, control);
    }
    privileges::give_up().context("giving up privileges")?;
    let mut found = Vec::new();
    if let Some(path) = &who.rules {
        found.extend(reckoned(who, path)?);
    }
    let mut notes = Vec::new();
    if let Some(directory) = &who.journal {
        // Without a time: its end, whatever the time of day was set to since.
        let at_millis = who.at.unwrap_or(u64::MAX);
        let answer = journal::ask(directory, who.asked, at_millis)
            .with_context(|| format!("asking the journal {}", directory.display()))?;
        match answer.from_millis {
            None => notes.push("the journal is empty".to_owned()),
            Some(from) if from > at_millis => {
                notes.push(format!("the journal begins at {} only", text(from)));
            }
            Some(_) => {}
        }
        if answer.is_cut {
            notes.push("there are more sessions than are told".to_owned());
        }
        found.extend(answer.found.into_iter().map(of_record));
    }
    let mut out = io::stdout().lock();
    for found in &found {
        let line = if who.json {
            json_of(found).to_string()
        } else {
            text_of(found)
        };
        writeln!(out, "{line}").context("writing the answer")?;
    }
    for note in notes {
        eprintln_note(&note)?;
    }
    match found.is_empty() {
        true => {
            eprintln_note("nobody is known to have had it")?;
            Ok(ExitCode::FAILURE)
        }
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Asks a translation that runs.
fn running(who: &Who, control: &Path) -> anyhow::Result<ExitCode> {
    let Asked::Port(alias, port) = who.asked else {
        bail!("for what an inside address has: nat show blocks --inside ADDRESS");
    };
    let found = client::who(control, alias, port)?;
    let mut out = io::stdout().lock();
    for row in &found {
        let line = if who.json {
            row.to_string()
        } else {
            shown::line(row)
        };
        writeln!(out, "{line}").context("writing the answer")?;
    }
    match found.is_empty() {
        true => {
            eprintln_note("nobody has it")?;
            Ok(ExitCode::FAILURE)
        }
        false => Ok(ExitCode::SUCCESS),
    }
}

fn eprintln_note(note: &str) -> anyhow::Result<()> {
    writeln!(io::stderr(), "fingerpost: {note}").context("writing a note")
}

fn reckoned(who: &Who, path: &Path) -> anyhow::Result<Option<Found>> {
    let config = Settings::of_rules(path).config()?;
    let reckoning = Reckoning::new(&config).with_context(|| path.display().to_string())?;
    let Some(reckoning) = reckoning else {
        if who.journal.is_none() {
            bail!(
                "{}: no `deterministic` in it: nothing can be reckoned",
                path.display()
            );
        }
        return Ok(None);
    };
    let subscriber = match who.asked {
        Asked::Inside(inside) => Some(inside),
        Asked::Port(alias, port) => reckoning.inside(alias, port).map(|range| range.first),
    };
    let reckoned = subscriber.and_then(|inside| reckoning.outside(inside));
    Ok(reckoned.map(|reckoned| Found {
        subscriber: reckoned.subscriber,
        alias: reckoned.alias,
        ports: reckoned.ports,
        record: None,
    }))
}

fn of_record(record: Record) -> Found {
    let (first, last) = record.ports;
    Found {
        subscriber: AddressRange::of_prefix(record.inside, record.bits),
        alias: record.alias,
        ports: PortSet::Row(first, last),
        record: Some(record),
    }
}

fn text_of(found: &Found) -> String {
    let ports = match &found.ports {
        PortSet::Row(first, last) if first == last => first.to_string(),
        PortSet::Row(first, last) => format!("{first}-{last}"),
        PortSet::Shuffled(ports) => {
            let all: Vec<String> = ports.iter().map(u16::to_string).collect();
            all.join(",")
        }
    };
    let mut line = format!("{} {}:{ports}", found.subscriber, found.alias);
    match &found.record {
        None => line.push_str(" deterministic"),
        Some(record) if record.is_session() => {
            line.push_str(&format!(
                " protocol {} from port {} to {}:{} since {}",
                record.protocol,
                record.inside_port,
                record.remote,
                record.remote_port,
                text(record.at_millis)
            ));
        }
        Some(record) => {
            line.push_str(&format!(
                " {} {}",
                record.what.name(),
                text(record.at_millis)
            ));
        }
    }
    line
}

fn json_of(found: &Found) -> Value {
    let mut object = json!({
        "subscriber": found.subscriber.first.to_string(),
        "subscriber_last": found.subscriber.last.to_string(),
        "alias": found.alias.to_string(),
    });
    let ports = match &found.ports {
        PortSet::Row(first, last) => json!({"first_port": first, "last_port": last}),
        PortSet::Shuffled(ports) => json!({"ports": ports}),
    };
    let more = match &found.record {
        None => json!({"by": "deterministic"}),
        Some(record) => json!({"by": record.what.name(), "at": text(record.at_millis)}),
    };
    let session = found.record.filter(Record::is_session).map(|record| {
        json!({
            "protocol": record.protocol,
            "inside_port": record.inside_port,
            "remote": record.remote.to_string(),
            "remote_port": record.remote_port,
        })
    });
    for part in [Some(ports), Some(more), session].into_iter().flatten() {
        if let (Value::Object(all), Value::Object(part)) = (&mut object, part) {
            all.extend(part);
        }
    }
    object
}

/// A time with its milliseconds.
fn text(millis: u64) -> String {
    let seconds = calendar::text(millis / 1_000);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), millis % 1_000)
}
