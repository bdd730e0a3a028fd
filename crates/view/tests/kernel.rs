//! Our output against `ip`'s and `bridge`'s, byte by byte, on a namespace
//! with a row of every kind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use fingerpost_view as view;
use lab::Netns;
use netlink::decode::Item;
use support::{Rows, now_millis, rich};
use view::{Context, Format, Names, Object, Printer, Question};

/// How often a comparison is taken anew when the kernel changed something
/// between two dumps (a neighbour that is being probed, a second gone by).
const TRIES: usize = 6;

fn ours(rows: &Rows, question: &Question) -> String {
    let tables = rows.tables();
    let names = Names::default();
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: now_millis(),
        names: &names,
    };
    let mut printer = Printer::new(question, context, Vec::new()).unwrap();
    for item in &rows.items {
        match (item, question.object) {
            (Item::Link(row), Object::Link) => printer.link(row),
            (Item::Address(row), Object::Addr) => printer.address(row),
            (Item::Neighbour(row), Object::Neigh) => printer.neighbour(row),
            (Item::Route(row), Object::Route) => printer.route(&row.with_body(&row.body)),
            (Item::Nexthop(row), Object::Nexthop) => printer.nexthop(row),
            (Item::Rule(row), Object::Rule) => printer.rule(row),
            (Item::Fdb(row), Object::Fdb) => printer.fdb(row),
            _ => Ok(()),
        }
        .unwrap();
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

/// Text with what depends on the moment or is sampled taken out, and what
/// `ip` prints wrongly put right: empty objects for rows left out, and the
/// unbalanced time of a resilient group.
fn comparable(text: &str) -> String {
    let mut text = text
        .replace("{},", "")
        .replace(",{}", "")
        .replace("[{}]", "[]");
    for key in ["\"expires\":", "_life_time\":", "_lft ", "expires "] {
        let mut parts = text.split(key);
        let mut joined = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            joined.push_str(key);
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            joined.push_str(if part.starts_with("4294967295") {
                "ever"
            } else {
                "N"
            });
            joined.push_str(&part[digits..]);
        }
        text = joined;
    }
    text
}

fn compare(netns: &Netns, program: &str, arguments: &str, question: &Question) {
    let mut question = question.clone();
    let words: Vec<&str> = arguments.split(' ').collect();
    for word in &words {
        match *word {
            "-j" => question.output.format = Format::Json,
            "-o" => question.output.oneline = true,
            "-d" => question.output.details = true,
            "-4" => question.filter.family = Some(4),
            "-6" => question.filter.family = Some(6),
            _ => {}
        }
    }
    let mut last = None;
    for _ in 0..TRIES {
        let theirs = comparable(&netns.run(program, &words).unwrap());
        let ours = comparable(&ours(&Rows::of(netns), &question));
        // `netns.run` may trim the end of the output.
        if ours.trim_end() == theirs.trim_end() {
            return;
        }
        last = Some((ours, theirs));
    }
    let (ours, theirs) = last.unwrap();
    let split = |text: &str| text.replace("},{", "},\n{");
    let (ours, theirs) = (split(&ours), split(&theirs));
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        if ours != theirs {
            println!("ours:   {ours}\ntheirs: {theirs}");
        }
    }
    let counts = (ours.lines().count(), theirs.lines().count());
    panic!("`{program} {arguments}` differs; lines: {counts:?}");
}

fn question(object: Object) -> Question {
    Question {
        object,
        filter: view::Filter::default(),
        output: view::Output::default(),
    }
}

#[test]
fn links_and_addresses_are_shown_as_ip_shows_them() {
    let Some(netns) = rich("view-link") else {
        return;
    };
    for arguments in ["link", "-j link", "-o link", "-o -j link"] {
        compare(&netns, "ip", arguments, &question(Object::Link));
    }
    for arguments in [
        "addr",
        "-j addr",
        "-o addr",
        "-4 addr",
        "-4 -j addr",
        "-6 addr",
        "-6 -j addr",
        "-4 -o addr",
    ] {
        compare(&netns, "ip", arguments, &question(Object::Addr));
    }
    let mut up = question(Object::Link);
    up.filter.up = true;
    compare(&netns, "ip", "link show up", &up);
    compare(&netns, "ip", "-j link show up", &up);
    let mut to = question(Object::Addr);
    to.filter.to = Some("192.0.2.0/24".parse().unwrap());
    compare(&netns, "ip", "addr show to 192.0.2.0/24", &to);
    compare(&netns, "ip", "-j addr show to 192.0.2.0/24", &to);
    let mut dev = question(Object::Addr);
    dev.filter.dev = Some("wan2".into());
    compare(&netns, "ip", "addr show dev wan2", &dev);
    compare(&netns, "ip", "-j addr show dev wan2", &dev);
    let mut kind = question(Object::Link);
    kind.filter.kind = Some("veth".into());
    compare(&netns, "ip", "link show type veth", &kind);
    let mut master = question(Object::Link);
    master.filter.master = Some("br0".into());
    compare(&netns, "ip", "-j link show master br0", &master);
}

#[test]
fn neighbours_are_shown_as_ip_shows_them() {
    let Some(netns) = rich("view-neigh") else {
        return;
    };
    let all = question(Object::Neigh);
    for arguments in ["neigh", "-j neigh", "-6 neigh", "-4 -j neigh", "-d neigh"] {
        compare(&netns, "ip", arguments, &all);
    }
    let mut states = all.clone();
    states.filter.state = vec!["all".into()];
    compare(&netns, "ip", "neigh show nud all", &states);
    compare(&netns, "ip", "-j neigh show nud all", &states);
    states.filter.state = vec!["permanent".into(), "failed".into()];
    compare(&netns, "ip", "neigh show nud permanent nud failed", &states);
    let mut dev = all.clone();
    dev.filter.dev = Some("veth0".into());
    compare(&netns, "ip", "neigh show dev veth0", &dev);
    compare(&netns, "ip", "-j neigh show dev veth0", &dev);
    let mut to = all.clone();
    to.filter.to = Some("192.0.2.8/30".parse().unwrap());
    compare(&netns, "ip", "-j neigh show to 192.0.2.8/30", &to);
    let mut proxy = all;
    proxy.filter.proxy = true;
    compare(&netns, "ip", "neigh show proxy", &proxy);
    compare(&netns, "ip", "-j neigh show proxy", &proxy);
}

#[test]
fn routes_are_shown_as_ip_shows_them() {
    let Some(netns) = rich("view-route") else {
        return;
    };
    let main = question(Object::Route);
    for arguments in ["route", "-j route", "-6 route", "-6 -j route", "-o route"] {
        compare(&netns, "ip", arguments, &main);
    }
    let mut all = main.clone();
    all.filter.table = Some("all".into());
    for arguments in [
        "route show table all",
        "-j route show table all",
        "-6 route show table all",
        "-4 -j route show table all",
    ] {
        compare(&netns, "ip", arguments, &all);
    }
    for table in ["100", "5000", "local"] {
        let mut one = main.clone();
        one.filter.table = Some(table.into());
        compare(&netns, "ip", &format!("route show table {table}"), &one);
        compare(&netns, "ip", &format!("-j route show table {table}"), &one);
    }
    type Set = fn(&mut view::Filter);
    let filters: [(&str, Set); 10] = [
        ("proto bird", |f| f.proto = Some("bird".into())),
        ("scope link", |f| f.scope = Some("link".into())),
        ("type blackhole", |f| {
            f.route_type = Some("blackhole".into())
        }),
        ("src 192.0.2.2", |f| f.src = "192.0.2.2".parse().ok()),
        ("via 10.99.0.1", |f| f.via = "10.99.0.1".parse().ok()),
        ("metric 100", |f| f.priority = Some(100)),
        ("10.1.0.0/16", |f| f.exact = "10.1.0.0/16".parse().ok()),
        ("root 10.0.0.0/12", |f| f.to = "10.0.0.0/12".parse().ok()),
        ("match 10.9.0.1", |f| {
            f.covering = "10.9.0.1/32".parse().ok()
        }),
        ("default", |f| f.exact = "0.0.0.0/0".parse().ok()),
    ];
    for (words, set) in filters {
        let mut one = main.clone();
        set(&mut one.filter);
        // `via` alone asks both families of us.
        one.filter.family = Some(4);
        compare(&netns, "ip", &format!("-4 route show {words}"), &one);
        compare(&netns, "ip", &format!("-4 -j route show {words}"), &one);
    }
}

#[test]
fn nexthops_rules_and_forwarding_entries_are_shown_as_ip_and_bridge_show_them() {
    let Some(netns) = rich("view-rest") else {
        return;
    };
    for arguments in ["nexthop", "-j nexthop", "-d nexthop", "-d -j nexthop"] {
        compare(&netns, "ip", arguments, &question(Object::Nexthop));
    }
    for arguments in [
        "rule",
        "-j rule",
        "-6 rule",
        "-d rule",
        "-d -j rule",
        "-6 -j rule",
    ] {
        compare(&netns, "ip", arguments, &question(Object::Rule));
    }
    for arguments in ["fdb", "-j fdb", "-d fdb"] {
        compare(&netns, "bridge", arguments, &question(Object::Fdb));
    }
    let mut dev = question(Object::Fdb);
    dev.filter.dev = Some("vx0".into());
    compare(&netns, "bridge", "fdb show dev vx0", &dev);
    compare(&netns, "bridge", "-j fdb show dev vx0", &dev);
}
