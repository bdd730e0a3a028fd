//! What goes beside links that are deleted, and comes back with them:
//! neighbours, next hops and routes, forwarding entries, the ports of a
//! bridge (or of another master) that goes, settings under `/proc/sys`. Read
//! before the deletion, and put back when the links are there again.
//! Called by `delete`.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use linux::Namespace;
use linux::links::journal::Rows;
use linux::links::{self, How, Listing, Told};
use linux::mirror::now_millis;
use netlink::decode::Item;
use netlink::encode::LinkSettings;
use serde::{Deserialize, Serialize};
use words::Object;

use super::configuration::Configuration;
use super::report::Report;
use crate::complaint::complain;
use crate::rows::undo::{Undo, along_with, comes_back, listed, relink};

/// Queueing disciplines that links have unasked.
const USUAL_QDISCS: [&str; 3] = ["noqueue", "noop", "mq"];
/// How often carriers are looked at, and the time between.
const CARRIER_LOOKS: usize = 40;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// So many links are named that are not wholly as they were.
const MAX_NAMED: usize = 5;

/// What a journal keeps beside rows, of each namespace: those of the rows,
/// in their order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Beside {
    places: Vec<Place>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Place {
    /// Links that stay, and lose a master that goes.
    ports: Vec<Port>,
    configuration: Configuration,
}

/// A link that stays: its index and name, and the master that goes.
#[derive(Debug, Serialize, Deserialize)]
struct Port(u32, Box<str>, u32);

/// What came back beside the links.
#[derive(Debug, Default)]
pub struct Back {
    rows: u64,
    ports: usize,
    settings: usize,
    /// What did not.
    pub failed: usize,
    /// Links whose queueing discipline was another.
    qdiscs: Vec<Box<str>>,
}

/// Reads what goes beside some links, into their rows and beside them.
pub fn read(rows: &mut [Rows], own: &Namespace) -> Result<Beside> {
    let mut beside = Beside::default();
    for rows in rows {
        let namespace = namespace_of(rows, own)?;
        let indexes: HashSet<u32> = rows.links.iter().map(|link| link.index).collect();
        if indexes.is_empty() {
            beside.places.push(Place::default());
            continue;
        }
        let along = along_with(&namespace, &indexes, now_millis())?;
        // Addresses are among the rows already.
        let is_address = |row: &Item| matches!(row, Item::Address(_));
        rows.others = along.into_iter().filter(|row| !is_address(row)).collect();
        let ports: Vec<Port> = Listing::read(&namespace)?
            .iter()
            .filter(|link| !indexes.contains(&link.index))
            .filter_map(|link| {
                let master = link.master.filter(|master| indexes.contains(master))?;
                Some(Port(link.index, link.name.clone(), master))
            })
            .collect();
        let lose: HashSet<u32> = ports.iter().map(|port| port.0).collect();
        rows.others
            .extend(listed(&namespace, Object::Fdb, now_millis(), &|row| {
                let Item::Fdb(entry) = row else { return false };
                let of_master = entry.master.is_some_and(|master| indexes.contains(&master));
                comes_back(row)
                    && (indexes.contains(&entry.link) || lose.contains(&entry.link) && of_master)
            })?);
        beside.places.push(Place {
            ports,
            configuration: Configuration::read(&namespace, &indexes)?,
        });
    }
    Ok(beside)
}

fn namespace_of(rows: &Rows, own: &Namespace) -> Result<Namespace> {
    Ok(match &rows.namespace {
        None => own.clone(),
        Some((name, _)) => Namespace::open(name)?,
    })
}

impl Beside {
    /// Puts back what is missing, once links are there again.
    pub fn put_back(&self, all: &[Rows], own: &Namespace, report: &Report) -> Result<Back> {
        let mut back = Back::default();
        let usual = Place::default();
        for (at, rows) in all.iter().enumerate() {
            let place = self.places.get(at).unwrap_or(&usual);
            let Ok(namespace) = namespace_of(rows, own) else {
                continue;
            };
            if rows
                .namespace
                .as_ref()
                .is_some_and(|(_, inode)| *inode != namespace.inode())
            {
                continue;
            }
            let now = indexes_now(rows, &Listing::read(&namespace)?);
            place.ports_again(&namespace, &now, report, &mut back)?;
            let (set, failed) = place.configuration.put_back(&namespace, &now)?;
            back.settings += set;
            for (name, why) in failed {
                back.failed += 1;
                report.fail(&name, "set it again", &why, None);
            }
            carriers(rows, &namespace)?;
            rows_again(rows, &namespace, &now, &mut back)?;
            let listing = Listing::read(&namespace)?;
            let lost = rows.links.iter().filter(|link| {
                let is_usual = |name: &str| USUAL_QDISCS.contains(&name);
                let before = link.qdisc.as_deref().filter(|name| !is_usual(name));
                let after = listing
                    .named(&link.name)
                    .and_then(|link| link.qdisc.as_deref());
                before.is_some() && before != after
            });
            back.qdiscs.extend(lost.map(|link| link.name.clone()));
        }
        Ok(back)
    }
}

impl Place {
    fn ports_again(
        &self,
        namespace: &Namespace,
        now: &HashMap<u32, u32>,
        report: &Report,
        back: &mut Back,
    ) -> Result<()> {
        let listing = Listing::read(namespace)?;
        let changes: Vec<links::Change> = self
            .ports
            .iter()
            .filter_map(|Port(index, name, master)| {
                let master = *now.get(master)?;
                let is_it = |link: &&table::Link| link.name == *name && link.master.is_none();
                listing.get(*index).filter(is_it)?;
                Some(links::Change {
                    index: *index,
                    name: name.clone(),
                    settings: LinkSettings {
                        master: Some(master),
                        ..LinkSettings::default()
                    },
                })
            })
            .collect();
        let set = links::set(namespace, &changes, How::default(), &mut |told| {
            if let Told::Failed(failure) = told {
                report.failed(&failure);
            }
        })?;
        back.ports += set.done;
        back.failed += set.failed;
        Ok(())
    }
}

/// The index that each link has now, by the one that it had.
fn indexes_now(rows: &Rows, listing: &Listing) -> HashMap<u32, u32> {
    let links = rows.links.iter();
    let now = links.filter_map(|link| Some((link.index, listing.named(&link.name)?.index)));
    now.collect()
}

/// Waits until links that had a carrier have one again, where a next hop is
/// to be made: the kernel takes none over a link without, and looks at
/// carriers by and by.
fn carriers(rows: &Rows, namespace: &Namespace) -> Result<()> {
    if !rows
        .others
        .iter()
        .any(|row| matches!(row, Item::Nexthop(_)))
    {
        return Ok(());
    }
    for _ in 0..CARRIER_LOOKS {
        let listing = Listing::read(namespace)?;
        let waits = |link: &table::Link| {
            let now = listing.named(&link.name);
            link.has_carrier() && now.is_some_and(|now| now.is_up() && !now.has_carrier())
        };
        if !rows.links.iter().any(waits) {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}

fn rows_again(
    rows: &Rows,
    namespace: &Namespace,
    now: &HashMap<u32, u32>,
    back: &mut Back,
) -> Result<()> {
    let mut others = rows.others.clone();
    if others.is_empty() {
        return Ok(());
    }
    let of = |index: u32| now.get(&index).copied().unwrap_or(index);
    others.iter_mut().for_each(|row| relink(row, &of));
    let undone = Undo::of(others, now_millis()).run(namespace, &mut |why| {
        complain(why.trim_start_matches("fingerpost: "));
    })?;
    back.rows += undone.rows;
    back.failed += undone.failed as usize;
    Ok(())
}

impl Back {
    /// Says what came back, and what did not.
    pub fn tell(&self, report: &Report) {
        let text = format!(
            "{} neighbours, next hops, routes and forwarding entries that had gone along are there again",
            self.rows
        );
        report.note("rows_put_back", self.rows, (self.rows > 0).then_some(text));
        let text = format!("{} ports are in their masters again", self.ports);
        report.note(
            "ports_put_back",
            self.ports,
            (self.ports > 0).then_some(text),
        );
        let text = format!(
            "{} settings under /proc/sys are as they were",
            self.settings
        );
        report.note(
            "settings_put_back",
            self.settings,
            (self.settings > 0).then_some(text),
        );
        let many = self.qdiscs.len();
        let named: Vec<&str> = self
            .qdiscs
            .iter()
            .take(MAX_NAMED)
            .map(|name| &**name)
            .collect();
        let more = match many.saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "their queueing discipline is another: {}{more}",
            named.join(", ")
        );
        report.note("qdiscs_lost", many, (many > 0).then_some(text));
    }
}
