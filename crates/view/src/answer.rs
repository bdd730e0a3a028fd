//! Answers questions from a snapshot: picks the index that fits the
//! filter, then prints.

use std::io;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::{AF_INET, AF_INET6, Address, Neighbour, RouteRef, Tables};
use thiserror::Error;

use crate::context::Context;
use crate::printer::Printer;
use crate::question::{Object, Question};
use crate::selection::{BadQuestion, InTable};
use words::Names;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The question is at fault.
    #[error(transparent)]
    BadQuestion(#[from] BadQuestion),
    /// The answer could not be written.
    #[error("cannot write the answer: {0}")]
    Write(#[from] io::Error),
}

/// Writes the answer to a question; gives the number of rows.
///
/// O(log n + rows returned) where the filter has an index: a device, an
/// address, a link-layer address, a prefix (exact, within, covering), a
/// gateway, a table, a next-hop object. Else a walk of the object's table.
pub fn answer(
    question: &Question,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let context = Context {
        links: &tables.links,
        tables: Some(tables),
        now_millis,
        names,
    };
    let mut printer = Printer::new(question, context, out)?;
    match question.object {
        Object::Link => links(&mut printer, tables)?,
        Object::Addr => addresses(&mut printer, tables)?,
        Object::Neigh => neighbours(&mut printer, tables)?,
        Object::Route => routes(&mut printer, tables)?,
        Object::Nexthop => nexthops(&mut printer, tables)?,
        Object::Rule => rules(&mut printer, tables)?,
        Object::Fdb => fdb(&mut printer, tables)?,
    }
    Ok(printer.close()?)
}

type Done = io::Result<()>;

fn links<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let links = &tables.links;
    let selection = printer.selection().clone();
    match (selection.device, selection.links) {
        (Some(device), _) => links
            .get(device)
            .into_iter()
            .try_for_each(|row| printer.link(row)),
        (None, Some(some)) => some
            .iter()
            .filter_map(|index| links.get(*index))
            .try_for_each(|row| printer.link(row)),
        (None, None) => links.iter().try_for_each(|row| printer.link(row)),
    }
}

fn addresses<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let selection = printer.selection().clone();
    if let Some(net) = selection.inside() {
        let mut rows: Vec<&Arc<Address>> = tables.addresses.inside(net).collect();
        rows.sort_by_key(|row| row.link);
        return rows.chunk_by(|a, b| a.link == b.link).try_for_each(|rows| {
            let link = rows.first().and_then(|row| tables.links.get(row.link));
            link.map_or(Ok(()), |link| printer.on_link(link, rows))
        });
    }
    let mut of_link = |link: u32| match tables.links.get(link) {
        None => Ok(()),
        Some(link) => {
            let rows: Vec<_> = tables.addresses.of_link(link.index).collect();
            printer.on_link(link, &rows)
        }
    };
    match (selection.device, selection.links) {
        (Some(device), _) => of_link(device),
        (None, Some(some)) => some.into_iter().try_for_each(of_link),
        (None, None) => tables.links.iter().try_for_each(|link| of_link(link.index)),
    }
}

fn neighbours<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let all = &tables.neighbours;
    let selection = printer.selection().clone();
    let mut print = |row: &Arc<Neighbour>| printer.neighbour(row);
    if let Some(mac) = selection.mac {
        return all.by_lladdr(mac).try_for_each(print);
    }
    match (selection.device, selection.inside(), selection.links) {
        (Some(device), Some(net), _) => all.of_link_inside(device, net).try_for_each(print),
        (Some(device), None, _) => all.of_link(device).try_for_each(print),
        (None, Some(net), _) => all.inside(net).try_for_each(print),
        (None, None, Some(some)) => some
            .into_iter()
            .flat_map(|link| all.of_link(link))
            .try_for_each(print),
        (None, None, None) => all.iter().try_for_each(&mut print),
    }
}

/// Routes by the narrowest index the filter offers: a prefix in a table,
/// then a gateway, a next-hop object, a device, then a whole table.
fn routes<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let all = &tables.routes;
    let selection = printer.selection().clone();
    if let InTable::Only(table) = selection.in_table {
        if let Some(exact) = selection.exact {
            return all
                .exact(table, exact)
                .try_for_each(|row| route(printer, row));
        }
        if let Some(net) = selection.covering {
            return all
                .covering(table, net)
                .try_for_each(|row| route(printer, row));
        }
        if let Some(net) = selection.within.filter(|net| net.prefix_len() > 0) {
            return all
                .within(table, net)
                .try_for_each(|row| route(printer, row));
        }
    }
    if let Some(gateway) = selection.gateway {
        return all.via(gateway).try_for_each(|row| route(printer, row));
    }
    if let Some(id) = selection.id {
        return all.of_nexthop(id).try_for_each(|row| route(printer, row));
    }
    if let Some(device) = selection.device {
        return all
            .over_link(device)
            .try_for_each(|row| route(printer, row));
    }
    let wants = |family| selection.family.is_none_or(|asked| asked == family);
    match selection.in_table {
        InTable::Only(table) => {
            let first: [(u8, IpNet); 2] = [
                (AF_INET, Ipv4Net::default().into()),
                (AF_INET6, Ipv6Net::default().into()),
            ];
            for (_, first) in first.into_iter().filter(|(family, _)| wants(*family)) {
                all.from(table, first)
                    .try_for_each(|row| route(printer, row))?;
            }
        }
        InTable::Any => {
            if wants(AF_INET) {
                all.iter_v4().try_for_each(|row| route(printer, row))?;
            }
            if wants(AF_INET6) {
                all.iter_v6().try_for_each(|row| route(printer, row))?;
            }
        }
    }
    Ok(())
}

fn route<W: io::Write>(printer: &mut Printer<'_, W>, row: RouteRef<'_>) -> Done {
    printer.route(&row.with_body(&**row.body))
}

fn nexthops<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let all = &tables.nexthops;
    let (id, device) = (printer.selection().id, printer.selection().device);
    match (id, device) {
        (Some(id), _) => all
            .get(id)
            .into_iter()
            .try_for_each(|row| printer.nexthop(row)),
        (None, Some(link)) => all.of_link(link).try_for_each(|row| printer.nexthop(row)),
        (None, None) => all.iter().try_for_each(|row| printer.nexthop(row)),
    }
}

fn rules<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    tables.rules.iter().try_for_each(|row| printer.rule(row))
}

fn fdb<W: io::Write>(printer: &mut Printer<'_, W>, tables: &Tables) -> Done {
    let all = &tables.fdb;
    let (device, mac) = (printer.selection().device, printer.selection().mac);
    match (device, mac) {
        (_, Some(mac)) => all.by_lladdr(mac).try_for_each(|row| printer.fdb(row)),
        (Some(device), None) => all.of_link(device).try_for_each(|row| printer.fdb(row)),
        (None, None) => all.iter().try_for_each(|row| printer.fdb(row)),
    }
}
