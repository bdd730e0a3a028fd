//! Answers straight from the kernel: rows are printed as they come, and
//! nothing is kept but the links, for their names.

pub mod arp;
pub mod ifconfig;
pub mod route_get;
pub mod rows;
pub mod sql;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use linux::mirror::now_millis;
use linux::{Mirror, Namespace, Options, Phase, once};
use netlink::decode;
use netlink::message::Message;
use netlink::request::Dump;
use table::{Change, Sample, Tables, Writer};
use view::{Context, KernelFilter, Object, Output, Printer, Question};

/// How long a mirror of this process's own may take to read the tables.
const LOADING_PATIENCE: Duration = Duration::from_secs(120);

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answered {
    /// Rows of the answer.
    pub rows: u64,
    /// Why rows may be missing, in words, if they may.
    pub incomplete: Option<String>,
}

impl From<u64> for Answered {
    fn from(rows: u64) -> Self {
        Self {
            rows,
            incomplete: None,
        }
    }
}

/// A table that changed while the kernel listed it.
const INTERRUPTED: &str = "the table changed while it was listed: rows may be missing or twice";

/// Lists a table.
pub fn question(
    question: &Question,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    let names = words::load();
    let mut interrupted = false;
    let mut tables = Tables::default();
    if question.object != Object::Rule {
        (tables, interrupted) = links(namespace, &question.output)?;
    }
    if question.object == Object::Neigh && question.output.statistics {
        tables.neighbour_samples = Arc::new(ages(question, namespace)?);
    }
    let with_objects = question.object == Object::Route && question.output.details;
    if with_objects || question.object == Object::Nexthop {
        interrupted |= objects(namespace, &mut tables)?;
    }
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: now_millis(),
        names: &names,
    };
    let mut printer = Printer::new(question, context, out)?;
    if question.object == Object::Link {
        for link in tables.links.iter() {
            printer.link(link)?;
        }
    } else {
        let request = request(question.object, printer.kernel_filter());
        let each = &mut |message: &Message<'_>| print(question.object, message, &mut printer);
        interrupted |= each_row(namespace, &request, each)?;
    }
    let rows = printer.rows();
    printer.finish()?;
    Ok(Answered {
        rows,
        incomplete: interrupted.then(|| INTERRUPTED.to_owned()),
    })
}

/// Writes rows that the caller has, as a listing would.
pub fn rows_of(
    question: &Question,
    namespace: &Namespace,
    out: &mut impl Write,
    print: impl FnOnce(&mut Printer<'_, &mut dyn Write>) -> io::Result<()>,
) -> Result<()> {
    let names = words::load();
    let (tables, _) = links(namespace, &question.output)?;
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: now_millis(),
        names: &names,
    };
    let out: &mut dyn Write = out;
    let mut printer = Printer::new(question, context, out)?;
    print(&mut printer)?;
    printer.finish()?;
    Ok(())
}

/// Prints a row of a dump.
fn print(object: Object, message: &Message<'_>, to: &mut Printer<'_, impl Write>) -> Result<()> {
    let payload = message.payload;
    let now = now_millis();
    match object {
        Object::Link => {}
        Object::Addr => to.address(&decode::address(payload, now)?)?,
        Object::Neigh => to.neighbour(&decode::neighbour(payload)?)?,
        Object::Route => {
            let route = decode::route(payload, now)?;
            to.route(&route.with_body(&route.body))?;
        }
        Object::Nexthop => to.nexthop(&decode::nexthop(payload)?)?,
        Object::Rule => to.rule(&decode::rule(payload)?)?,
        Object::Fdb => to.fdb(&decode::fdb(payload)?)?,
    }
    Ok(())
}

/// What to ask the kernel, as narrow as it can filter by itself.
fn request(object: Object, filter: KernelFilter) -> Dump {
    let KernelFilter {
        family,
        link,
        table,
        protocol,
        kind,
        proxy,
    } = filter;
    match object {
        Object::Link => Dump::Links { counters: false },
        Object::Addr => Dump::Addresses { family, link },
        Object::Neigh => Dump::Neighbours {
            family,
            link,
            master: None,
            proxy,
        },
        Object::Fdb => Dump::Fdb { link, master: None },
        Object::Route => Dump::Routes {
            family,
            table,
            link,
            protocol,
            kind,
        },
        Object::Nexthop => Dump::Nexthops,
        Object::Rule => Dump::Rules { family },
    }
}

/// Dumps, until a row fails. Gives whether the table changed meanwhile, so
/// that rows may be missing or twice.
pub fn each_row(
    namespace: &Namespace,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>) -> Result<()>,
) -> Result<bool> {
    match once::rows(namespace, request, each) {
        Ok(end) => Ok(end.interrupted),
        Err(error) if is_empty_table(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A table of routes that is not there has no routes.
fn is_empty_table(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(linux::Error::Refused { source, .. }) => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// The links, and their counters and timers if they are wanted; and whether
/// they changed meanwhile.
pub fn links(namespace: &Namespace, output: &Output) -> Result<(Tables, bool)> {
    let counters = output.statistics;
    let more = output.details || output.errors;
    let mut writer = Writer::default();
    let (mut sampled, mut unannounced) = (Vec::new(), Vec::new());
    let interrupted = each_row(namespace, &Dump::Links { counters }, &mut |message| {
        let link = decode::link(message.payload)?;
        if counters && let Some(counted) = decode::link_counters(message.payload) {
            sampled.push((link.index, counted.into()));
        }
        if more {
            unannounced.push((link.index, decode::unannounced(message.payload)));
        }
        writer.apply(Change::PutLink(link))?;
        Ok(())
    })
    .context("cannot list the links")?;
    let mut tables = writer.tables().clone();
    tables.link_counters = Arc::new(Sample::new(now_millis(), sampled));
    tables.host.unannounced = Arc::new(Sample::new(now_millis(), unannounced));
    Ok((tables, interrupted))
}

/// Next-hop objects, and how long groups of them have been unbalanced. Gives
/// whether they changed meanwhile.
fn objects(namespace: &Namespace, tables: &mut Tables) -> Result<bool> {
    let mut writer = Writer::default();
    let mut unbalanced = Vec::new();
    let interrupted = each_row(namespace, &Dump::Nexthops, &mut |message| {
        let row = decode::nexthop(message.payload)?;
        if let Some(time) = decode::nexthop_unbalanced(message.payload) {
            unbalanced.push((row.id, time));
        }
        writer.apply(Change::PutNexthop(row))?;
        Ok(())
    })
    .context("cannot list next hops")?;
    tables.nexthops = writer.tables().nexthops.clone();
    tables.host.unbalanced = Arc::new(Sample::new(now_millis(), unbalanced));
    Ok(interrupted)
}

/// The ages of neighbours: they are no part of the rows.
fn ages(
    question: &Question,
    namespace: &Namespace,
) -> Result<Sample<table::NeighbourKey, table::NeighbourSample>> {
    let mut sampled = Vec::new();
    let request = Dump::Neighbours {
        family: 0,
        link: None,
        master: None,
        proxy: question.filter.proxy,
    };
    each_row(namespace, &request, &mut |message| {
        if let Some(ages) = decode::neighbour_ages(message.payload) {
            let key = decode::neighbour(message.payload)?.key();
            sampled.push((key, table::NeighbourSample { ages }));
        }
        Ok(())
    })?;
    Ok(Sample::new(now_millis(), sampled))
}

/// Shows changes as they happen, by a mirror of this process's own.
pub fn watch(question: &Question, namespace: &Namespace, out: &mut impl Write) -> Result<u64> {
    let mirror = Mirror::start(namespace.clone(), Options::default())?;
    loaded(&mirror)?;
    // The mirror's threads have what they need.
    privileges::drop_all()?;
    let names = words::load();
    Ok(serve::watch::watch(
        &mirror.reader(),
        question,
        &names,
        &now_millis,
        out,
        &|| false,
    )?)
}

/// Waits until a mirror has read the tables.
fn loaded(mirror: &Mirror) -> Result<()> {
    match mirror.wait_ready(LOADING_PATIENCE) {
        Phase::Loading => bail!("the tables were not read within {LOADING_PATIENCE:?}"),
        Phase::Ended(why) | Phase::Disconnected(why) => bail!("the mirror ended: {why}"),
        Phase::Live | Phase::Resyncing => Ok(()),
    }
}
