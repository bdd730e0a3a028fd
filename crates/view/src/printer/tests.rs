use std::net::{IpAddr, Ipv4Addr};

use table::row::neighbour::{flag, state};
use table::{Change, Limits, LinkLayerAddress, Tables, Writer};

use super::*;
use crate::{AnswerError, Filter, Within, answer, answer_within};
use words::Names;

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.into(),
        flags: 0x1_1043,
        ..Link::default()
    }
}

fn neighbour(link: u32, last: u8, bits: u16) -> Neighbour {
    Neighbour {
        link,
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)),
        proxy: false,
        lladdr: LinkLayerAddress::new(&[0, 0x0c, 0x29, 0x65, 0x4d, last]).unwrap(),
        state: bits,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

fn tables() -> Tables {
    let mut writer = Writer::new(Limits::default());
    let router = Neighbour {
        flags: flag::ROUTER,
        ..neighbour(2, 9, state::STALE)
    };
    let changes = [
        Change::PutLink(link(1, "em1")),
        Change::PutLink(link(2, "em\"2,")),
        Change::PutNeighbour(neighbour(1, 20, state::PERMANENT)),
        Change::PutNeighbour(neighbour(1, 3, state::NOARP)),
        Change::PutNeighbour(neighbour(1, 4, state::REACHABLE)),
        Change::PutNeighbour(router),
    ];
    writer.commit(changes).unwrap();
    writer.tables().clone()
}

fn ask(filter: Filter, output: Output) -> Result<String, String> {
    let question = Question {
        object: Object::Neigh,
        filter,
        output,
    };
    let mut out = Vec::new();
    answer(&question, &tables(), &Names::default(), 0, &mut out)
        .map(|_| String::from_utf8(out).unwrap())
        .map_err(|error| error.to_string())
}

fn shown(output: Output) -> String {
    ask(Filter::default(), output).unwrap()
}

fn with(format: Format, fields: &[&str], sort: Option<&str>) -> Output {
    Output {
        format,
        fields: fields.iter().map(|&f| f.into()).collect(),
        sort: sort.map(Into::into),
        ..Output::default()
    }
}

// `ip neigh`, `ip -j neigh` of iproute2 6.1 print these rows so.
#[test]
fn text_and_json_as_ip_prints_them() {
    assert_eq!(
        shown(Output::default()),
        "192.0.2.4 dev em1 lladdr 00:0c:29:65:4d:04 REACHABLE \n\
         192.0.2.20 dev em1 lladdr 00:0c:29:65:4d:14 PERMANENT \n\
         192.0.2.9 dev em\"2, lladdr 00:0c:29:65:4d:09 router STALE \n"
    );
    assert_eq!(
        shown(with(Format::Json, &[], None)),
        "[{\"dst\":\"192.0.2.4\",\"dev\":\"em1\",\"lladdr\":\"00:0c:29:65:4d:04\",\"state\":[\"REACHABLE\"]},\
         {\"dst\":\"192.0.2.20\",\"dev\":\"em1\",\"lladdr\":\"00:0c:29:65:4d:14\",\"state\":[\"PERMANENT\"]},\
         {\"dst\":\"192.0.2.9\",\"dev\":\"em\\\"2,\",\"lladdr\":\"00:0c:29:65:4d:09\",\"router\":null,\"state\":[\"STALE\"]}]\n"
    );
}

#[test]
fn columns_are_chosen_ordered_and_quoted() {
    assert_eq!(
        shown(with(Format::Csv, &["state", "dev", "router"], None)),
        "state,dev,router\nREACHABLE,em1,\nPERMANENT,em1,\nSTALE,\"em\"\"2,\",true\n"
    );
    assert_eq!(
        shown(with(Format::Ndjson, &["state", "dst"], None)),
        "{\"state\":[\"REACHABLE\"],\"dst\":\"192.0.2.4\"}\n\
         {\"state\":[\"PERMANENT\"],\"dst\":\"192.0.2.20\"}\n\
         {\"state\":[\"STALE\"],\"dst\":\"192.0.2.9\"}\n"
    );
    assert_eq!(
        shown(with(Format::Text, &["router", "dev", "proxy"], None)),
        "router  dev  proxy\n-       em1  -\n-       em1  -\ntrue    em\"2,  -\n"
    );
    assert_eq!(
        shown(with(Format::Text, &["dst", "dev"], None)),
        "dst  dev\n192.0.2.4  em1\n192.0.2.20  em1\n192.0.2.9   em\"2,\n"
    );
    let csv = shown(with(Format::Csv, &[], None));
    assert!(
        csv.starts_with(
            "dst,dev,lladdr,router,proxy,managed,extern_learn,offload,state,protocol\n"
        )
    );
    let error = ask(Filter::default(), with(Format::Csv, &["dst", "mac"], None)).unwrap_err();
    assert!(error.starts_with("Field \"mac\" is not known: there are dst, dev, lladdr"));
}

#[test]
fn a_cell_of_csv_is_never_a_formula() {
    for (alias, cell) in [
        ("=1+1", "\"'=1+1\""),
        ("+x", "\"'+x\""),
        ("@x", "\"'@x\""),
        ("-x\"y", "\"'-x\"\"y\""),
        ("-17", "-17"),
        ("a=b", "a=b"),
    ] {
        let change = Change::PutLink(Link {
            index: 1,
            name: "em1".into(),
            alias: Some(alias.into()),
            ..Link::default()
        });
        let mut writer = Writer::new(Limits::default());
        writer.commit([change]).unwrap();
        let question = Question {
            object: Object::Link,
            filter: Filter::default(),
            output: with(Format::Csv, &["ifalias"], None),
        };
        let mut out = Vec::new();
        answer(&question, writer.tables(), &Names::default(), 0, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("ifalias\n{cell}\n")
        );
    }
}

#[test]
fn forwarding_entries_are_picked_by_their_state() {
    let mut writer = Writer::new(Limits::default());
    let states = [
        state::PERMANENT,
        state::NOARP,
        state::STALE,
        state::REACHABLE,
    ];
    for (at, state) in states.into_iter().enumerate() {
        let row = FdbEntry {
            state,
            ..crate::walk::tests::fdb(1, at as u8, 0)
        };
        writer.commit([Change::PutFdb(row)]).unwrap();
    }
    let macs = |names: &[&str]| {
        let question = Question {
            object: Object::Fdb,
            filter: Filter {
                state: names.iter().map(|name| (*name).into()).collect(),
                ..Filter::default()
            },
            output: with(Format::Csv, &["mac"], None),
        };
        let mut out = Vec::new();
        let answered = answer(&question, writer.tables(), &Names::default(), 0, &mut out);
        answered.map(|_| {
            let text = String::from_utf8(out).unwrap();
            text.lines()
                .skip(1)
                .map(|mac| mac[16..].to_owned())
                .collect::<String>()
        })
    };
    assert_eq!(macs(&[]).unwrap(), "0123");
    assert_eq!(macs(&["permanent"]).unwrap(), "0");
    assert_eq!(macs(&["static", "stale"]).unwrap(), "12");
    assert_eq!(macs(&["all"]).unwrap(), "0123");
    assert!(macs(&["bogus"]).is_err());
}

#[test]
fn rows_are_sorted_by_value_both_ways() {
    let dsts = |sort| shown(with(Format::Csv, &["dst"], Some(sort)));
    assert_eq!(dsts("dst"), "dst\n192.0.2.4\n192.0.2.9\n192.0.2.20\n");
    assert_eq!(dsts("-dst"), "dst\n192.0.2.20\n192.0.2.9\n192.0.2.4\n");
    let json = shown(with(Format::Json, &["state"], Some("state")));
    assert_eq!(
        json,
        "[{\"state\":[\"PERMANENT\"]},{\"state\":[\"REACHABLE\"]},{\"state\":[\"STALE\"]}]\n"
    );
}

/// Many neighbours, of a few states.
fn many() -> Tables {
    let mut writer = Writer::new(Limits::default());
    writer.commit([Change::PutLink(link(1, "em1"))]).unwrap();
    let states = [state::STALE, state::REACHABLE, state::PERMANENT];
    let row = |at: u8| neighbour(1, at, states[usize::from(at) % states.len()]);
    writer
        .commit((1..=200).map(|at| Change::PutNeighbour(row(at))))
        .unwrap();
    writer.tables().clone()
}

#[test]
fn rows_are_sorted_in_little_room_as_in_much() {
    let tables = many();
    let ask = |room, output: &Output| {
        let question = Question {
            object: Object::Neigh,
            filter: Filter::default(),
            output: output.clone(),
        };
        let mut out = Vec::new();
        let within = Within {
            octets: room,
            is_over: &|| false,
        };
        let rows = answer_within(&within, &question, &tables, &Names::default(), 0, &mut out);
        let rows = rows.map_err(|error| error.to_string());
        (rows, String::from_utf8(out).unwrap())
    };
    for format in [Format::Text, Format::Json, Format::Ndjson, Format::Csv] {
        for by in ["dst", "-dst", "state", "-state", "lladdr"] {
            let output = with(format, &[], Some(by));
            let all = ask(usize::MAX, &output);
            assert_eq!(all.0, Ok(200));
            for room in [3_000, 5_000, 50_000] {
                assert_eq!(ask(room, &output), all, "{by} {format:?} in {room}");
            }
            // Not looked at without an end, and refused before anything is
            // written.
            let (refused, written) = ask(500, &output);
            assert!(refused.is_err() && written.is_empty(), "{written}");
        }
    }
    // Equal rows stay in the order of their table, downwards too.
    let (_, states) = ask(4_000, &with(Format::Csv, &["dst", "state"], Some("-state")));
    let of = |line: &str| {
        let (dst, state) = line.split_once(',').unwrap();
        let dst: IpAddr = dst.parse().unwrap();
        (state.to_owned(), dst)
    };
    let rows: Vec<_> = states.lines().skip(1).map(of).collect();
    let is_ordered = |a: &(String, IpAddr), b: &(String, IpAddr)| (&b.0, &a.1) < (&a.0, &b.1);
    assert!(rows.is_sorted_by(is_ordered), "{states}");
}

#[test]
fn what_waits_to_be_sorted_takes_no_more_than_its_room() {
    let tables = many();
    let question = Question {
        object: Object::Neigh,
        filter: Filter::default(),
        output: with(Format::Text, &[], Some("dst")),
    };
    let names = Names::default();
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: 0,
        names: &names,
    };
    let room = 5_000;
    let mut printer = Printer::within(room, &question, context, Vec::new()).unwrap();
    for row in tables.neighbours.iter() {
        printer.neighbour(row).unwrap();
        let octets = printer.sorted.as_ref().map(sorted::Sorted::octets);
        assert!(octets.is_some_and(|octets| octets <= room), "{octets:?}");
    }
    assert!(printer.ends_round().unwrap(), "not all had room");
}

#[test]
fn an_empty_answer_is_valid_and_a_count_is_a_number() {
    let none = Filter {
        mac: Some("2:0:0:0:0:1".into()),
        ..Filter::default()
    };
    let json = with(Format::Json, &[], None);
    assert_eq!(ask(none.clone(), json.clone()).unwrap(), "[]\n");
    let sorted = with(Format::Json, &[], Some("dst"));
    assert_eq!(ask(none.clone(), sorted).unwrap(), "[]\n");
    assert_eq!(ask(none.clone(), Output::default()).unwrap(), "");
    let count = |filter| {
        let output = Output {
            count: true,
            ..json.clone()
        };
        ask(filter, output).unwrap()
    };
    assert_eq!(
        (count(none), count(Filter::default())),
        ("0\n".into(), "3\n".into())
    );
}

#[test]
fn a_question_that_has_no_answer_says_why_and_what_to_do() {
    let told = |set: fn(&mut Filter)| {
        let mut filter = Filter::default();
        set(&mut filter);
        ask(filter, Output::default()).unwrap_err()
    };
    assert!(told(|f| f.dev = Some("foo".into())).starts_with("Cannot find device \"foo\": "));
    assert!(
        told(|f| f.mac = Some("00:0c:29:65:4d:".into())).contains("is not a link-layer address")
    );
    assert!(told(|f| f.mac = Some("00:+c".into())).contains("is not a link-layer address"));
    assert!(told(|f| f.state = vec!["dead".into()]).contains("give one of incomplete, reachable"));
    assert!(told(|f| f.proto = Some("x".into())).contains("rt_protos"));
    assert!(told(|f| f.vrf = Some("em1".into())).contains("is not a VRF"));
    assert!(told(|f| f.family = Some(5)).contains("give 4 or 6"));
    let differ = told(|f| (f.family, f.to) = (Some(6), "10.0.0.0/8".parse().ok()));
    assert!(differ.contains("not of IPv6"), "{differ}");
}

/// However the index is picked, the rows are those a walk finds.
#[test]
fn every_index_gives_what_a_walk_gives() {
    let filters: [fn(&mut Filter); 6] = [
        |f| f.dev = Some("em1".into()),
        |f| f.mac = Some("00:0C:29:65:4d:09".into()),
        |f| f.to = "192.0.2.4/32".parse().ok(),
        |f| f.to = "192.0.2.0/28".parse().ok(),
        |f| f.name = Some("em[1]".into()),
        |f| (f.state, f.up) = (vec!["all".into()], true),
    ];
    let tables = tables();
    for (at, set) in filters.iter().enumerate() {
        let mut question = Question {
            object: Object::Neigh,
            filter: Filter::default(),
            output: Output::default(),
        };
        set(&mut question.filter);
        let names = Names::default();
        let context = Context {
            links: &tables.links,
            tables: Some(&tables),
            now_millis: 0,
            names: &names,
        };
        let mut walk = Printer::new(&question, context, Vec::new()).unwrap();
        tables
            .neighbours
            .iter()
            .for_each(|row| walk.neighbour(row).unwrap());
        let mut indexed = Vec::new();
        let rows = answer(&question, &tables, &names, 0, &mut indexed).unwrap();
        assert!(rows > 0, "filter {at}");
        assert_eq!(walk.finish().unwrap(), indexed, "filter {at}");
    }
}

/// Before the first row is written all are gathered.
#[test]
fn rows_are_not_sorted_for_nobody() {
    let mut writer = Writer::new(Limits::default());
    let row = |at: u32| Neighbour {
        address: IpAddr::V4(at.into()),
        ..neighbour(1, 1, state::PERMANENT)
    };
    writer
        .commit((0..20_000).map(|at| Change::PutNeighbour(row(at))))
        .unwrap();
    let question = Question {
        object: Object::Neigh,
        filter: Filter::default(),
        output: with(Format::Text, &[], Some("dst")),
    };
    let looks = std::cell::Cell::new(0);
    let within = Within {
        octets: usize::MAX,
        is_over: &|| looks.replace(looks.get() + 1) == 1,
    };
    let mut out = Vec::new();
    let tables = writer.tables();
    let ended = answer_within(&within, &question, tables, &Names::default(), 0, &mut out);
    assert!(matches!(ended, Err(AnswerError::Write(_))), "{ended:?}");
    assert!(out.is_empty());
    assert_eq!(looks.get(), 2, "it ended at once");
}
