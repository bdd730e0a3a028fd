//! A plan as text or JSON: what would change, field by field, and what the
//! kernel would take along. Called by [`mod@super`].

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use anyhow::Result;
use linux::mirror::now_millis;
use netlink::decode::Item;
use serde_json::{Map, Value, json};
use table::{Row, Writer};
use view::Context;
use words::{Names, Object, Verb};

use super::Job;
use super::difference::{Change, Field, Plan};
use super::key::object;
use super::look::{Look, look_beside, wanted_beside_links};
use super::resolved::{Links, TO_BE_MADE};
use super::wanted::Wanted;
use crate::rows::undo::along_with;

/// Shows what would change; whether anything would.
pub fn diff(job: &Job<'_>) -> Result<bool> {
    let (wanted, links) = wanted_beside_links(job)?;
    let look = look_beside(job, &wanted, links)?;
    show(job, &wanted, &look)?;
    Ok(!look.plan.is_empty() || !look.resolved.waiting.is_empty())
}

/// Shows a plan.
pub fn show(job: &Job<'_>, wanted: &Wanted, look: &Look) -> Result<()> {
    let lines = lines(job, wanted, look)?;
    let stdout = io::stdout();
    let is_coloured = job.wanted.colour.unwrap_or_else(|| stdout.is_terminal());
    let mut out = io::BufWriter::new(stdout.lock());
    for line in lines {
        if job.wanted.json {
            writeln!(out, "{}", line.json())?;
        } else {
            line.text(is_coloured, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// One thing that changes.
struct Line {
    /// `add`, `change`, `delete`, `along`, `waits`.
    operation: &'static str,
    object: &'static str,
    /// Which: a name, or `ip`'s words.
    what: String,
    fields: Vec<Field>,
}

impl Line {
    fn new(operation: &'static str, object: &'static str, what: impl Into<String>) -> Self {
        Self {
            operation,
            object,
            what: what.into(),
            fields: Vec::new(),
        }
    }

    fn json(&self) -> Value {
        let mut line = json!({
            "change": self.operation, "object": self.object, "what": self.what,
        });
        if !self.fields.is_empty() {
            let fields: Map<String, Value> = self
                .fields
                .iter()
                .map(|field| {
                    (
                        field.name.clone(),
                        json!({"from": field.from, "to": field.to}),
                    )
                })
                .collect();
            line["fields"] = fields.into();
        }
        line
    }

    fn text(&self, is_coloured: bool, out: &mut impl Write) -> io::Result<()> {
        let (sign, colour) = match self.operation {
            "add" => ('+', "32"),
            "delete" => ('-', "31"),
            "change" => ('~', "33"),
            "along" => ('!', "31"),
            _ => ('?', "36"),
        };
        let mut text = format!("{sign} {}", self.object);
        if !self.what.is_empty() {
            let _ = write!(text, " {}", escaped(&self.what));
        }
        for (nth, field) in self.fields.iter().enumerate() {
            let lead = if nth == 0 { ": " } else { ", " };
            let said = |value: &str| match value {
                "" => "none".to_owned(),
                value => escaped(value),
            };
            let (from, to) = (said(&field.from), said(&field.to));
            let _ = write!(text, "{lead}{} {from} -> {to}", field.name);
        }
        match is_coloured {
            true => writeln!(out, "\x1b[{colour}m{text}\x1b[0m"),
            false => writeln!(out, "{text}"),
        }
    }
}

/// Without what a terminal would take for a command.
fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

fn lines(job: &Job<'_>, wanted: &Wanted, look: &Look) -> Result<Vec<Line>> {
    let plan = &look.plan;
    let shower = Shower::new(wanted, &look.links, &job.names);
    let mut lines = Vec::new();
    for change in &plan.deletes {
        lines.push(shower.row(change));
    }
    for (_, name) in &plan.delete_links {
        lines.push(Line::new("delete", "link", &**name));
    }
    lines.extend(along(job, plan, &shower)?);
    for at in plan.make.iter().flatten() {
        lines.push(made(&wanted.links[*at]));
    }
    for setting in &plan.sysctl {
        let mut line = Line::new("change", "sysctl", setting.path.as_str());
        line.fields.push(Field {
            name: "value".to_owned(),
            from: setting.from.clone().unwrap_or_default(),
            to: setting.to.clone(),
        });
        lines.push(line);
    }
    for set in &plan.set {
        let mut line = Line::new("change", "link", &*set.name);
        line.fields.clone_from(&set.fields);
        lines.push(line);
    }
    lines.extend(plan.rows.iter().map(|change| shower.row(change)));
    let waiting = look.resolved.waiting.iter();
    lines.extend(waiting.map(|why| Line::new("waits", "", why.as_str())));
    Ok(lines)
}

/// A link that is made, in words like those of `link add`.
fn made(link: &super::wanted::Link) -> Line {
    let mut what = format!(
        "{} type {}",
        link.name,
        link.kind.as_deref().unwrap_or_default()
    );
    let mut put = |word: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(what, " {word} {value}");
        }
    };
    put("peer", link.peer.as_ref().map(ToString::to_string));
    put("link", link.lower.as_ref().map(ToString::to_string));
    put("master", link.master.as_ref().map(ToString::to_string));
    put("mtu", link.mtu.map(|mtu| mtu.to_string()));
    if link.up == Some(true) {
        what.push_str(" up");
    }
    if !link.options.is_empty() {
        let _ = write!(what, " {}", link.options.join(" "));
    }
    Line::new("add", "link", what)
}

/// What the kernel takes along with links that go or go down, and does not
/// bring back.
fn along(job: &Job<'_>, plan: &Plan, shower: &Shower<'_>) -> Result<Vec<Line>> {
    let down = plan.set.iter().filter(|set| set.settings.up == Some(false));
    let mut links: HashSet<u32> = down.map(|set| set.index).collect();
    links.extend(plan.delete_links.iter().map(|(index, _)| index));
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let deleted: HashSet<u32> = plan.delete_links.iter().map(|(index, _)| *index).collect();
    let mut lines = Vec::new();
    for link in shower.links.iter() {
        let goes = link
            .lower
            .or(link.below())
            .is_some_and(|lower| deleted.contains(&lower));
        if goes && !deleted.contains(&link.index) {
            lines.push(Line::new("along", "link", &*link.name));
        }
    }
    for item in along_with(&job.namespace, &links, now_millis())? {
        let named = plan.deletes.iter().any(|change| change.item == item);
        // IPv4 addresses stay where a link only goes down.
        let stays = matches!(&item, Item::Address(row) if row.local.is_ipv4() && !deleted.contains(&row.link));
        if !named && !stays {
            let (object, what) = shower.words(&item);
            lines.push(Line::new("along", object, what));
        }
    }
    Ok(lines)
}

/// Writes rows with the names of links, those to be made too.
pub struct Shower<'a> {
    links: &'a Links,
    writer: Writer,
    names: &'a Names,
    now_millis: u64,
}

impl<'a> Shower<'a> {
    pub fn new(wanted: &Wanted, links: &'a Links, names: &'a Names) -> Self {
        let mut writer = Writer::default();
        let made = wanted
            .links
            .iter()
            .enumerate()
            .map(|(at, link)| table::Link {
                index: TO_BE_MADE | at as u32,
                name: link.name.clone(),
                ..table::Link::default()
            });
        let made = made.filter(|link| links.named(&link.name).is_none());
        for link in links.iter().cloned().chain(made) {
            // A table that is full shows indexes instead of names.
            let _ = writer.apply(table::Change::PutLink(link));
        }
        Self {
            links,
            writer,
            names,
            now_millis: now_millis(),
        }
    }

    /// A row as the listing prints it, as JSON.
    pub fn json(&self, item: &Item) -> Vec<u8> {
        let row = match item.clone() {
            Item::Link(row) => Row::Link(Arc::new(row)),
            Item::Address(row) => Row::Address(Arc::new(row)),
            Item::Neighbour(row) => Row::Neighbour(Arc::new(row)),
            Item::Fdb(row) => Row::Fdb(Arc::new(row)),
            Item::Route(row) => {
                let body = Arc::new(row.body.clone());
                Row::Route(row.with_body(body))
            }
            Item::Nexthop(row) => Row::Nexthop(Arc::new(row)),
            Item::Rule(row) => Row::Rule(Arc::new(row)),
            Item::OtherRoute(row) => Row::OtherRoute(Arc::new(row)),
        };
        let context = Context {
            links: &self.writer.tables().links,
            tables: None,
            now_millis: self.now_millis,
            names: self.names,
        };
        view::row(&row, context)
    }

    /// The keys of a row as the listing has them.
    pub fn keys(&self, item: &Item) -> Map<String, Value> {
        let value = serde_json::from_slice(&self.json(item));
        let Ok(Value::Object(mut keys)) = value else {
            return Map::new();
        };
        if let Item::Address(_) = item {
            let link = keys.get("ifname").cloned();
            let addresses = keys.remove("addr_info");
            let first = addresses.as_ref().and_then(|list| list.get(0));
            keys = first
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            keys.insert("dev".to_owned(), link.unwrap_or_default());
        }
        keys
    }

    /// A row in `ip`'s words, and its table.
    fn words(&self, item: &Item) -> (&'static str, String) {
        let object = object(item);
        let keys = self.keys(item);
        let text = |key: &str| keys.get(key).and_then(Value::as_str).unwrap_or_default();
        let words = match object {
            Object::Fdb => format!("{} dev {}", text("mac"), text("ifname")),
            Object::Addr => {
                let len = keys.get("prefixlen").and_then(Value::as_u64).unwrap_or(0);
                format!("{}/{len} dev {}", text("local"), text("dev"))
            }
            _ => {
                let value = Value::Object(without_ours(keys)).to_string();
                let mut lines = Vec::new();
                // What cannot be said in words is shown as it is.
                match words::json::lines(object, value.as_bytes(), &mut lines) {
                    Ok(()) => lines.pop().unwrap_or_default().trim_start().to_owned(),
                    Err(_) => value,
                }
            }
        };
        (object.name(), words)
    }

    /// A row that changes.
    fn row(&self, change: &Change) -> Line {
        let (object, what) = self.words(&change.item);
        let operation = match (change.verb, &change.before) {
            (Verb::Delete, _) => "delete",
            (_, Some(_)) => "change",
            (_, None) => "add",
        };
        let mut line = Line::new(operation, object, what);
        if let Some(before) = &change.before {
            line.what = self.place(&change.item);
            line.fields = fields(&self.keys(before), &self.keys(&change.item));
        }
        line
    }

    /// What tells a row apart, in words.
    fn place(&self, item: &Item) -> String {
        let keys = self.keys(item);
        let names: &[&str] = match item {
            Item::Route(_) => &["dst", "table", "tos", "metric"],
            Item::Nexthop(_) => &["id"],
            Item::Address(_) => &["local", "dev"],
            Item::Fdb(_) => &["mac", "ifname"],
            _ => &["dst", "dev"],
        };
        let said = names.iter().filter_map(|name| {
            let text = match keys.get(*name)? {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            Some(match *name {
                "dst" | "local" | "mac" => text,
                "ifname" => format!("dev {text}"),
                name => format!("{name} {text}"),
            })
        });
        said.collect::<Vec<_>>().join(" ")
    }
}

/// Without the protocol that is our mark: it goes without saying.
fn without_ours(mut keys: Map<String, Value>) -> Map<String, Value> {
    let mark = super::key::MARK.to_string();
    keys.retain(|key, value| key != "protocol" || *value != Value::String(mark.clone()));
    keys
}

/// The keys that differ.
fn fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Field> {
    let text = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    differs
        .map(|name| Field {
            name: name.clone(),
            from: text(before.get(name)),
            to: text(after.get(name)),
        })
        .collect()
}
