//! `fingerpost sql`: statements of SQL over the tables, one from the command
//! line, some from standard input, or line by line on a terminal. Called by
//! the command line.

mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod row;
mod shell;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use linux::Namespace;
use query::Question;
use serve::control::protocol::Ask;
use view::Format;

use crate::ask::{self, From};
use crate::replay::past;

/// What is wanted.
#[derive(Debug)]
pub struct Sql {
    /// The statement; `None`: they come from standard input.
    pub statement: Option<String>,
    pub format: Format,
    pub explain: bool,
    /// A picture of the rows goes here; `-`: to the terminal.
    pub plot: Option<PathBuf>,
    /// The rows go here, as Parquet.
    #[cfg(feature = "parquet")]
    pub parquet: Option<PathBuf>,
    pub from: From,
}

const AFTER_HELP: &str = "\
Tables: links, addresses, neighbours, routes, next_hops, hops, rules, fdb,
counters, events, feeds, peers; osquery's osquery_routes, arp_cache,
interface_addresses, interface_details; of a translation that runs on this host
nat_flows, nat_mappings, nat_subscribers, nat_blocks, nat_pools, nat_leases,
nat_helpers. `events` are the last that the daemon keeps in memory; with `--at`
(`--at now`) they reach back to the beginning of the history.
What is looked up in an index: =, <, >, between, in, and
  within(prefix, '10.0.0.0/8')             inside it
  covers(prefix, '10.1.2.3')               around it
  longest_match(prefix, '192.0.2.1')       the longest that is around it
of routes; = and within() of addresses and neighbours; names of links, gateways,
next-hop ids, link-layer addresses; times of events. `--explain` says what was, and how many rows
were looked at.
Without a statement: a shell on a terminal, else the statements of standard
input, each ended by `;`.";

/// `fingerpost sql`.
pub fn command() -> Command {
    let switch = |id: &'static str, short: Option<char>, help: &'static str| {
        ask::switch(id, short, help).help_heading("How")
    };
    Command::new("sql")
        .about("SQL over the tables: `fingerpost sql 'select …'`, or a shell")
        .after_help(AFTER_HELP)
        .arg(
            Arg::new("statement")
                .value_name("STATEMENT")
                .help("One `select`; without: a shell, or statements from standard input"),
        )
        .arg(switch("json", Some('j'), "One JSON array").conflicts_with_all(["ndjson", "csv"]))
        .arg(switch("ndjson", None, "One JSON object a line").conflicts_with("csv"))
        .arg(switch("csv", None, "Comma-separated values with a header"))
        .arg(switch(
            "explain",
            None,
            "What was looked up in an index, and how many rows were looked at, instead of the rows",
        ))
        .arg(
            Arg::new("plot")
                .long("plot")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .requires("statement")
                .conflicts_with_all(["json", "ndjson", "csv", "explain"])
                .help(
                    "A picture (SVG): the other columns of numbers over the first; with `-` on the \
                       terminal, where text before a number makes a bar of it",
                )
                .help_heading("How"),
        )
        .arg(
            Arg::new("parquet")
                .long("parquet")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .requires("statement")
                .conflicts_with_all(["json", "ndjson", "csv", "explain", "plot"])
                .help("Into a file of Apache Parquet, as they come")
                .help_heading("How"),
        )
        .args(ask::from_arguments())
        .mut_arg("all-netns", |arg| arg.hide(true))
}

/// What the command line says.
pub fn wanted(matches: &ArgMatches) -> Result<Sql, String> {
    let from = ask::from(matches);
    if cfg!(not(feature = "parquet")) && matches.contains_id("parquet") {
        return Err(NO_PARQUET.to_owned());
    }
    if from.all_netns {
        return Err("a statement is about one namespace: name it with --netns".to_owned());
    }
    let format = match ["json", "ndjson", "csv"].map(|id| matches.get_flag(id)) {
        [true, ..] => Format::Json,
        [_, true, _] => Format::Ndjson,
        [.., true] => Format::Csv,
        _ => Format::Text,
    };
    Ok(Sql {
        statement: matches.get_one("statement").cloned(),
        format,
        explain: matches.get_flag("explain"),
        plot: matches.get_one("plot").cloned(),
        #[cfg(feature = "parquet")]
        parquet: matches.get_one("parquet").cloned(),
        from,
    })
}

/// Why a file of Parquet is refused.
const NO_PARQUET: &str = "--parquet: this build has no Parquet. The packages of a release have \
                          it, and a build with `--features parquet`; programs that read Parquet \
                          read what `--csv` writes as well";

/// Answers it.
pub fn run(asked: Sql, out: &mut impl Write) -> Result<ExitCode> {
    #[cfg(feature = "parquet")]
    if let (Some(statement), Some(file)) = (&asked.statement, &asked.parquet) {
        return parquet::write(statement, file, &asked.from);
    }
    match (&asked.statement, &asked.plot) {
        (Some(statement), Some(file)) => {
            let (rows, ended) = picture::rows_of(statement, &asked.from)?;
            match file.as_os_str() == "-" {
                true => picture::draw(&rows, out)?,
                false => picture::write(statement, &rows, file)?,
            }
            Ok(ended)
        }
        (Some(statement), None) => past::run(question(statement, &asked), &asked.from, out),
        (None, _) => {
            let asker = Asker::new(asked)?;
            match io::stdin().is_terminal() && io::stdout().is_terminal() {
                true => shell::run(asker, out),
                false => lines::run(&asker, out),
            }
        }
    }
}

fn question(statement: &str, asked: &Sql) -> Ask {
    Ask::Sql(Box::new(Question {
        statement: statement.to_owned(),
        format: asked.format,
        explain: asked.explain,
    }))
}

/// Asks statement after statement.
struct Asker {
    asked: Sql,
    /// Where no socket is said.
    namespace: Option<Namespace>,
}

impl Asker {
    /// Gives up what asking does not need, for good.
    fn new(asked: Sql) -> Result<Self> {
        let namespace = match (&asked.from.socket, &asked.from.netns) {
            (Some(_), _) => None,
            (None, Some(spec)) => Some(Namespace::open(spec)?),
            (None, None) => Some(Namespace::current()?),
        };
        ask::give_up(asked.from.netns.is_some())?;
        Ok(Self { asked, namespace })
    }

    /// Answers a statement; why rows may be missing, if they may.
    fn ask(&self, statement: &str, out: &mut impl Write) -> Result<Option<String>> {
        let mut out = BufWriter::new(out);
        let ask = question(statement, &self.asked);
        if let Some(at) = self.asked.from.at_micros {
            return past::answer_at(&ask, &self.asked.from, at, &mut out);
        }
        let incomplete = match (&self.namespace, &self.asked.from.socket) {
            (Some(namespace), _) => {
                ask::one_namespace(ask, namespace, self.asked.from.direct, &mut out)?.incomplete
            }
            (None, socket) => {
                let socket = socket.as_deref().context("no namespace and no socket")?;
                let daemon = serve::control::client::connect(socket)?
                    .with_context(|| format!("no daemon listens at {}", socket.display()))?;
                let outcome = serve::control::client::ask(&daemon, ask, &mut out)?;
                outcome.incomplete.map(ask::of_tables)
            }
        };
        out.flush()?;
        Ok(incomplete)
    }
}
