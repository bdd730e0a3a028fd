//! What `-d` tells of links of every kind against `ip -d`, whole: JSON and
//! text.
//!
//! Of kinds that this kernel has by links made on it. Of all kinds by
//! messages with drawn settings: `ip` itself reads them instead of the
//! kernel's listing (`support/listing.c`, preloaded).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use fingerpost_view as view;
use lab::Netns;
use netlink::decode::{Decoded, Item, decode};
use netlink::message;
use support::{Rows, dump, forged};
use view::{Context, Format, Names, Object, Printer, Question};

fn ours(rows: &Rows, format: Format) -> String {
    let tables = rows.tables();
    let names = Names::default();
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: 0,
        names: &names,
    };
    let mut question = Question {
        object: Object::Link,
        filter: view::Filter::default(),
        output: view::Output::default(),
    };
    question.output.format = format;
    question.output.details = true;
    let mut printer = Printer::new(&question, context, Vec::new()).unwrap();
    for link in rows.links() {
        printer.link(link).unwrap();
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

/// Rows of JSON, or of text whose rows start at a line's start.
fn split(text: &str, format: Format) -> Vec<String> {
    match format {
        Format::Json => text
            .trim()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .replace("},{\"ifindex\"", "}\n{\"ifindex\"")
            .lines()
            .map(str::to_owned)
            .collect(),
        _ => {
            let mut rows: Vec<String> = Vec::new();
            for line in text.lines() {
                match rows.last_mut() {
                    Some(row) if line.starts_with(' ') => {
                        row.push('\n');
                        row.push_str(line);
                    }
                    _ => rows.push(line.to_owned()),
                }
            }
            rows
        }
    }
}

/// Compares row by row; the first that differs, both ways.
fn difference(ours: &[String], theirs: &[String]) -> Option<String> {
    assert_eq!(ours.len(), theirs.len());
    let mut rows = ours.iter().zip(theirs);
    let (ours, theirs) = rows.find(|(ours, theirs)| ours != theirs)?;
    Some(format!("ours:   {ours}\ntheirs: {theirs}"))
}

/// The library that makes `ip` read messages from a file.
fn preloaded(directory: &Path) -> anyhow::Result<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/listing.c");
    let library = directory.join("listing.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .output();
    match made {
        Ok(made) if made.status.success() => Ok(library),
        Ok(made) => panic!("{}", String::from_utf8_lossy(&made.stderr)),
        Err(why) => Err(anyhow::anyhow!("no C compiler: {why}")),
    }
}

fn rows_of(bytes: &[u8]) -> Rows {
    let items =
        message::messages(bytes).map(|message| match decode(&message.unwrap(), 0).unwrap() {
            Decoded::Announcement(announcement) => announcement.item,
            other => panic!("{other:?}"),
        });
    Rows {
        items: items.collect::<Vec<Item>>(),
    }
}

#[test]
fn settings_of_every_kind_are_shown_as_ip_shows_them() {
    let Some(netns) = lab::skip::unless(Netns::new("settings")) else {
        return;
    };
    let directory = std::env::temp_dir().join(format!("fp-settings-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let library = preloaded(&directory);
    if let Some(library) = lab::skip::unless(library) {
        compare_drawn(&netns, &directory, &library);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The paths of the values of an object.
fn paths(value: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(object) = value.as_object() else {
        found.insert(path.to_owned());
        return;
    };
    for (key, inside) in object {
        paths(inside, &format!("{path}.{key}"), found);
    }
}

/// What rows of drawn links tell, and the columns that there are.
#[test]
fn every_setting_is_a_column() {
    let mut told = BTreeSet::new();
    for (_, bytes) in forged::listings(29, 40) {
        let shown: serde_json::Value =
            serde_json::from_str(&ours(&rows_of(&bytes), Format::Json)).unwrap();
        for row in shown.as_array().unwrap() {
            paths(&row["linkinfo"], "linkinfo", &mut told);
        }
    }
    let columns = view::columns(Object::Link);
    let known: BTreeSet<String> = columns
        .iter()
        .filter(|column| column.name.starts_with("linkinfo."))
        .map(|column| column.name.to_owned())
        .collect();
    let missing: Vec<&str> = told.difference(&known).map(|path| &**path).collect();
    // Owners are not drawn: `ip` shows their names.
    let unused: Vec<&str> = known.difference(&told).map(|path| &**path).collect();
    assert_eq!((missing, unused), (vec![], vec!["linkinfo.info_data.user"]));
}

fn compare_drawn(netns: &Netns, directory: &Path, library: &Path) {
    // The loopback is there for names of links.
    let loopback = dump(netns, netlink::request::Dump::Links { counters: false });
    let listing = directory.join("listing");
    let preload = format!("LD_PRELOAD={}", library.display());
    let file = format!("LISTING={}", listing.display());
    let mut differing = Vec::new();
    for (kind, bytes) in forged::listings(28, 40) {
        std::fs::write(&listing, &bytes).unwrap();
        let mut rows = rows_of(&bytes);
        let drawn = rows.items.len();
        rows.items.extend(loopback.clone());
        for (format, words) in [
            (Format::Json, &["-d", "-j", "link", "show"][..]),
            (Format::Text, &["-d", "link", "show"]),
        ] {
            let arguments = [&[&*preload, &*file, "ip"], words].concat();
            let Ok(theirs) = netns.run("env", &arguments) else {
                println!("{kind}: `ip` does not bear it");
                differing.push((kind.clone(), format));
                continue;
            };
            let shown = split(&ours(&rows, format), format);
            let theirs = split(&theirs, format);
            if let Some(difference) = difference(&shown[..drawn], &theirs) {
                println!("{kind}\n{difference}");
                differing.push((kind.clone(), format));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
}
