//! `fingerpost ifaceseq`: the second report's own script as a command. It
//! creates links, deletes them, and tells what both cost: in all, for each,
//! at either end of the run, and how much of it was waiting in the kernel.

mod listening;
mod report;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use linux::Namespace;

use super::making::{self, Making};
use crate::arguments::switch;
use report::{Json, Run};

/// The sizes of a growth.
const GROWTH: [u32; 5] = [100, 500, 1_000, 5_000, 10_000];
/// More than any host holds.
const MOST: i64 = 1_000_000;

/// The command's definition.
pub fn command() -> Command {
    Command::new("ifaceseq")
        .about("Create links, delete them, and report what each costs")
        .after_help(
            "In a fresh namespace, which needs root (or `unshare -rn`), unless told otherwise.\n\
             A veth is counted as a pair. `waiting` is time without a processor: the kernel\n\
             waiting for its own grace periods. More than 200 links are deleted in three groups,\n\
             so that either end of the run is timed by itself.",
        )
        .arg(
            Arg::new("count")
                .short('n')
                .long("count")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=MOST))
                .default_value("10")
                .help("How many links"),
        )
        .arg(
            Arg::new("kind")
                .short('t')
                .long("kind")
                .value_name("KIND")
                .default_value("veth")
                .help("What kind of links: veth, vlan, macvlan, vxlan, bridge, dummy, …"),
        )
        .arg(switch(
            "one-by-one",
            None,
            "One request at a time, each timed",
        ))
        .arg(
            switch(
                "growth",
                None,
                "At several sizes: a table, and a picture in a file",
            )
            .conflicts_with("count"),
        )
        .arg(
            Arg::new("sizes")
                .long("sizes")
                .value_name("N,N,…")
                .value_delimiter(',')
                .value_parser(value_parser!(u32).range(1..=MOST))
                .requires("growth")
                .help("The sizes of --growth [default: 100,500,1000,5000,10000]"),
        )
        .arg(
            Arg::new("svg")
                .long("svg")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .requires("growth")
                .help("Where --growth puts its picture [default: ifaceseq-KIND.svg]"),
        )
        .arg(switch("here", None, "In this namespace, among its links"))
        .arg(
            Arg::new("netns")
                .long("netns")
                .value_name("NAME|PATH|PID")
                .conflicts_with("here")
                .help("In that namespace, among its links"),
        )
        .arg(switch("json", Some('j'), "One JSON object for each size"))
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Wanted {
    kind: String,
    sizes: Vec<u32>,
    /// Where the picture of a growth goes; `None`: one size only.
    picture: Option<PathBuf>,
    one_by_one: bool,
    here: bool,
    netns: Option<String>,
    json: bool,
}

/// What the command line says.
pub fn wanted(matches: &ArgMatches) -> Wanted {
    let kind: String = matches.get_one("kind").cloned().unwrap_or_default();
    let growth = matches.get_flag("growth");
    let sizes = match matches.get_many("sizes") {
        Some(sizes) => sizes.copied().collect(),
        None if growth => GROWTH.to_vec(),
        None => matches.get_one("count").copied().into_iter().collect(),
    };
    let picture = matches.get_one::<PathBuf>("svg").cloned();
    let picture = picture.unwrap_or_else(|| format!("ifaceseq-{kind}.svg").into());
    Wanted {
        kind,
        sizes,
        picture: growth.then_some(picture),
        one_by_one: matches.get_flag("one-by-one"),
        here: matches.get_flag("here"),
        netns: matches.get_one("netns").cloned(),
        json: matches.get_flag("json"),
    }
}

/// Runs it.
pub fn run(wanted: &Wanted, out: &mut impl Write) -> Result<ExitCode> {
    let place = place(wanted)?;
    making::give_up_the_rest()?;
    match &wanted.picture {
        Some(picture) => growth(wanted, &place, picture, out)?,
        None => {
            for count in &wanted.sizes {
                let run = measure(wanted, &place, *count)?;
                if wanted.json {
                    json(&run, out)?;
                } else {
                    report::text(&run, &place.name, out)?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One size after another, and a picture of what they took.
fn growth(wanted: &Wanted, place: &Place, picture: &Path, out: &mut impl Write) -> Result<()> {
    if !wanted.json {
        report::growth_head(&wanted.kind, &place.name, out)?;
    }
    let mut runs = Vec::new();
    for count in &wanted.sizes {
        let run = measure(wanted, place, *count)?;
        if wanted.json {
            json(&run, out)?;
        } else {
            report::growth_row(&run, out)?;
        }
        out.flush()?;
        runs.push(run);
    }
    let svg = report::svg(&wanted.kind, &runs);
    fs::write(picture, svg).with_context(|| picture.display().to_string())?;
    if !wanted.json {
        writeln!(out, "picture: {}", picture.display())?;
    }
    Ok(())
}

/// Where links are made.
struct Place {
    /// A fresh one for each size, unless it is given.
    namespace: Option<Namespace>,
    name: String,
}

fn place(wanted: &Wanted) -> Result<Place> {
    let given = match &wanted.netns {
        Some(name) => Some((Namespace::open(name)?, format!("namespace {name}"))),
        None if wanted.here => Some((Namespace::current()?, "this namespace".into())),
        None => None,
    };
    let Some((namespace, name)) = given else {
        return Ok(Place {
            namespace: None,
            name: "a fresh namespace".into(),
        });
    };
    let managers = listening::managers(&namespace);
    if !managers.is_empty() {
        // Without anybody to read it the figures still are what they are.
        let _ = writeln!(
            io::stderr(),
            "fingerpost: warning: {} works on every new link in {name}: these times are its as well",
            managers.join(" and "),
        );
    }
    Ok(Place {
        namespace: Some(namespace),
        name,
    })
}

fn measure(wanted: &Wanted, place: &Place, count: u32) -> Result<Run> {
    let Wanted {
        kind, one_by_one, ..
    } = wanted;
    let namespace = match &place.namespace {
        Some(namespace) => namespace.clone(),
        None => making::fresh()?,
    };
    let making = Making::prepare(&namespace, kind, count)?;
    let created = making.create(*one_by_one);
    // What was made goes, whether all was or not.
    let deleted = making.delete(*one_by_one && created.is_ok());
    let cleared = making.clear();
    let run = Run {
        count,
        kind: kind.to_owned(),
        create: created?,
        delete: deleted?,
    };
    cleared.map(|()| run)
}

fn json(run: &Run, out: &mut impl Write) -> Result<()> {
    serde_json::to_writer(&mut *out, &Json::of(run))?;
    Ok(writeln!(out)?)
}
