//! `ip OBJECT flush`: the rows that a listing with these words would show,
//! each deleted; again while some are left. Called by the table of commands.

use std::io::Write;
use std::ops::ControlFlow;

use linux::bulk;
use netlink::decode::{self, Item, Operation};
use netlink::encode::{self, Request};
use netlink::request::Dump;
use table::{Address, Neighbour, Nexthop, Route, Rule};
use view::{Context, Filter, Object, Output, Question, Selection};

use super::options::AF_PACKET;
use super::session::Session;
use super::show;
use super::stop::{FAILED, Stop, WRONG_WORDS};

/// So often rows are listed and deleted, as in `ip`.
const ROUNDS: u32 = 10;

/// Deletes the rows that the words name.
pub fn flush(
    session: &mut Session,
    object: Object,
    arguments: &[String],
    out: &mut impl Write,
) -> Result<(), Stop> {
    if let Some(stop) = lacking(object, arguments) {
        return Err(stop);
    }
    if session.options.statistics > 0 {
        return Err(Stop::NotBuilt("flush with -statistics".to_owned()));
    }
    if object == Object::Addr && session.options.family == Some(AF_PACKET) {
        return Err(Stop::failed("Cannot flush link addresses."));
    }
    if object == Object::Nexthop && arguments.iter().any(|word| word == "id") {
        return Err(Stop::NotBuilt("nexthop flush id".to_owned()));
    }
    let mut filter = show::filter(session, object, arguments)?;
    if object == Object::Neigh && filter.state.is_empty() && !filter.proxy {
        // What somebody wrote stays, unless it is named.
        let passing = [
            "incomplete",
            "reachable",
            "stale",
            "delay",
            "probe",
            "failed",
            "none",
        ];
        filter.state = passing.map(str::to_owned).to_vec();
    }
    if object == Object::Route {
        show::check_table(session, &filter)?;
    }
    let mut deleted = 0;
    let is_once = object == Object::Nexthop || leaves_secondary(&filter);
    for round in 0.. {
        let rows = rows(session, object, &filter)?;
        if rows.is_empty() {
            break;
        }
        if round == ROUNDS {
            return Err(incomplete(object));
        }
        deleted += rows.len();
        delete(session, object, &rows)?;
        if is_once {
            break;
        }
    }
    match (object, deleted) {
        (Object::Nexthop, 0) => writeln!(out, "Nothing to flush")?,
        (Object::Nexthop, _) => writeln!(out, "Flushed {deleted} nexthops")?,
        _ => {}
    }
    Ok(())
}

/// Whether only primary addresses are meant: a secondary one that comes into
/// the place of a deleted one (`promote_secondaries`) is not meant, so there
/// is one round.
fn leaves_secondary(filter: &Filter) -> bool {
    let primary = ["primary", "-secondary"];
    let mut flags = filter.flags.iter();
    flags.any(|flag| primary.contains(&flag.as_str()))
}

/// What `ip` says where rows are left or come again.
fn incomplete(object: Object) -> Stop {
    Stop::failed(match object {
        Object::Addr => format!("*** Flush remains incomplete after {ROUNDS} rounds. ***"),
        _ => format!("*** Flush not complete bailing out after {ROUNDS} rounds"),
    })
}

/// What `ip` says to who names nothing.
fn lacking(object: Object, arguments: &[String]) -> Option<Stop> {
    if !arguments.is_empty() {
        return None;
    }
    match object {
        Object::Addr | Object::Neigh => Some(Stop::Said {
            status: FAILED,
            text: "Flush requires arguments.".to_owned(),
        }),
        Object::Route => Some(Stop::failed("\"ip route flush\" requires arguments.")),
        Object::Rule | Object::Nexthop => None,
        Object::Link | Object::Fdb => Some(Stop::Said {
            status: WRONG_WORDS,
            text: "this is not flushed".to_owned(),
        }),
    }
}

/// The rows that a filter has, in the kernel's order.
fn rows(session: &Session, object: Object, filter: &Filter) -> Result<Vec<Item>, Stop> {
    let links = linux::once::links(&session.namespace)?;
    let question = Question {
        object,
        filter: filter.clone(),
        output: Output::default(),
    };
    let context = Context {
        links: &links,
        tables: None,
        now_millis: linux::mirror::now_millis(),
        names: &session.names,
    };
    let selection = Selection::new(&question, &context).map_err(anyhow::Error::from)?;
    let narrow = selection.kernel_filter();
    let request = match object {
        Object::Addr => Dump::Addresses {
            family: narrow.family,
            link: narrow.link,
        },
        Object::Neigh => Dump::Neighbours {
            family: narrow.family,
            link: narrow.link,
            master: None,
            proxy: narrow.proxy,
        },
        Object::Route => Dump::Routes {
            family: narrow.family,
            table: narrow.table,
            link: narrow.link,
            protocol: narrow.protocol,
            kind: narrow.kind,
        },
        Object::Rule => Dump::Rules {
            family: narrow.family,
        },
        _ => Dump::Nexthops,
    };
    let mut rows = Vec::new();
    let each = &mut |message: &netlink::message::Message<'_>| -> Result<(), linux::Error> {
        let payload = message.payload;
        match object {
            Object::Addr => {
                let row: Address = decode::address(payload, 0)?;
                if selection.address(&row) && on_link(&selection, &links, row.link) {
                    rows.push(Item::Address(row));
                }
            }
            Object::Neigh => {
                let row: Neighbour = decode::neighbour(payload)?;
                if selection.neighbour(&row) {
                    rows.push(Item::Neighbour(row));
                }
            }
            Object::Route => {
                let row: Route = decode::route(payload, 0)?;
                if selection.route(&row.with_body(&row.body)) {
                    rows.push(Item::Route(row));
                }
            }
            Object::Rule => {
                let row: Rule = decode::rule(payload)?;
                // The first rule of all has no place, and stays.
                if selection.rule(&row) && row.priority != 0 {
                    rows.push(Item::Rule(row));
                }
            }
            _ => {
                let row: Nexthop = decode::nexthop(payload)?;
                if selection.nexthop(&row) {
                    rows.push(Item::Nexthop(row));
                }
            }
        }
        Ok(())
    };
    match linux::once::rows(&session.namespace, &request, each) {
        Ok(_) => Ok(rows),
        Err(linux::Error::Refused {
            source, message, ..
        }) => Err(Stop::refused(&linux::error::Refusal { source, message })),
        Err(error) => Err(error.into()),
    }
}

/// Whether a selection has the link of an address.
fn on_link(selection: &Selection, links: &table::Links, index: u32) -> bool {
    links.get(index).is_some_and(|link| selection.link(link))
}

/// Deletes rows in packs; what is gone meanwhile is as well gone.
fn delete(session: &Session, object: Object, rows: &[Item]) -> Result<(), Stop> {
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    const EADDRNOTAVAIL: i32 = 99;
    let requests = rows.iter().map(|row| {
        move |sequence, out: &mut Vec<u8>| {
            let request = Request::plain(Operation::Delete, sequence);
            let _ = encode::row(out, &request, row);
        }
    });
    let mut refused = None;
    bulk::apply(&session.namespace, requests, &mut |_, done| {
        if let Err(refusal) = done {
            let number = refusal.source.raw_os_error();
            let is_gone = matches!(number, Some(ENOENT | ESRCH | EADDRNOTAVAIL));
            if !is_gone {
                refused.get_or_insert(refusal);
            }
        }
    })?;
    match refused {
        Some(refusal) if object != Object::Nexthop => Err(Stop::refused(&refusal)),
        _ => Ok(()),
    }
}

/// Whether a table of routes is there, as `ip` asks before it lists it.
pub fn table_is_there(session: &Session, family: u8, number: u32) -> Result<(), Stop> {
    let request = Dump::Routes {
        family,
        table: Some(number),
        link: None,
        protocol: None,
        kind: None,
    };
    let seen = linux::dump(
        &session.namespace,
        &request,
        &mut |_| ControlFlow::Break(()),
    );
    match seen {
        Err(linux::Error::Refused {
            source, message, ..
        }) => Err(Stop::refused(&linux::error::Refusal { source, message })),
        seen => {
            seen?;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_secondary_addresses_has_one_round() {
        for (flag, is_once) in [
            ("primary", true),
            ("-secondary", true),
            ("secondary", false),
            ("permanent", false),
        ] {
            let filter = Filter {
                flags: vec![flag.to_owned()],
                ..Filter::default()
            };
            assert_eq!(leaves_secondary(&filter), is_once, "{flag}");
        }
    }
}
