//! What `-d` tells of addresses against `ip -d addr`, whole: JSON and text.
//!
//! By messages with drawn flags, scopes, lifetimes, peers, labels and
//! metrics: `ip` itself reads them instead of the kernel's listing
//! (`support/listing.c`, preloaded).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use std::path::Path;

use fingerpost_view as view;
use lab::Netns;
use netlink::decode::Item;
use netlink::request::Dump;
use support::{Rows, dump, forged, rows_of};
use view::{Context, Format, Names, Object, Output, Printer, Question};

/// The loopback's index, in every namespace.
const LOOPBACK: u32 = 1;

fn ours(rows: &Rows, output: &Output) -> String {
    let tables = rows.tables();
    let names = Names::default();
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: 0,
        names: &names,
    };
    let question = Question {
        object: Object::Addr,
        filter: view::Filter::default(),
        output: output.clone(),
    };
    let mut printer = Printer::new(&question, context, Vec::new()).unwrap();
    for item in &rows.items {
        if let Item::Address(address) = item {
            printer.address(address).unwrap();
        }
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

/// Lines of text, or of JSON a line for each address.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("{\"family\"", "\n{\"family\"");
    text.trim().lines().map(str::to_owned).collect()
}

fn compare(netns: &Netns, directory: &Path, library: &Path) {
    let listing = directory.join("addresses");
    let bytes = forged::addresses(45, 2_000, LOOPBACK);
    std::fs::write(&listing, &bytes).unwrap();
    let mut rows = rows_of(&bytes);
    rows.items
        .extend(dump(netns, Dump::Links { counters: false }));
    let preload = format!("LD_PRELOAD={}", library.display());
    let file = format!("ADDRESSES={}", listing.display());
    for (format, oneline, words) in [
        (Format::Json, false, &["-d", "-j", "addr", "show"][..]),
        (Format::Text, false, &["-d", "addr", "show"]),
        (Format::Text, true, &["-d", "-o", "addr", "show"]),
    ] {
        let output = Output {
            format,
            oneline,
            details: true,
            ..Output::default()
        };
        let arguments = [&[&*preload, &*file, "ip"], words].concat();
        let theirs = lines(&netns.run("env", &arguments).unwrap());
        let ours = lines(&ours(&rows, &output));
        assert!(theirs.len() >= 2_000, "{theirs:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{words:?}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn addresses_are_shown_as_ip_shows_them() {
    support::beside_ip("addresses", compare);
}
