use table::row::link;
use table::{Change, Limits, Link, NextHops, RawAttributes, Tables, Writer};

use super::*;
use crate::{Context, Filter, Format, Names, Object, Output, Printer, Question};

/// Alive, without a carrier, down.
const ALIVE: u32 = 1;
const NO_CARRIER: u32 = 2;
const DOWN: u32 = 3;

fn tables() -> Tables {
    let up = link::flag::UP | link::flag::RUNNING | link::flag::LOWER_UP;
    let states = [(ALIVE, up), (NO_CARRIER, link::flag::UP), (DOWN, 0)];
    let links = states.map(|(index, flags)| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags,
            ..Link::default()
        })
    });
    let mut writer = Writer::new(Limits::default());
    writer.commit(links).unwrap();
    writer.tables().clone()
}

fn hop(link: u32, flags: u32) -> NextHop {
    NextHop {
        link,
        flags,
        weight: 1,
        ..NextHop::default()
    }
}

fn route(prefix: &str, next_hops: NextHops) -> Route {
    Route {
        table: table_id::MAIN,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        body: RouteBody {
            kind: kind::UNICAST,
            protocol: protocol::BOOT,
            scope: scope::UNIVERSE,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops,
            metrics: None,
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    }
}

fn shown(routes: &[Route], output: Output) -> String {
    let question = Question {
        object: Object::Route,
        filter: Filter {
            table: Some("all".into()),
            ..Filter::default()
        },
        output,
    };
    let (tables, names) = (tables(), Names::default());
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: 0,
        names: &names,
    };
    let mut printer = Printer::new(&question, context, Vec::new()).unwrap();
    for row in routes {
        printer.route(&row.with_body(&row.body)).unwrap();
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

fn one(next_hops: NextHops, format: Format) -> String {
    let output = Output {
        format,
        ..Output::default()
    };
    shown(&[route("10.0.0.0/8", next_hops)], output)
}

#[test]
fn flags_of_a_hop_are_those_of_its_row_and_those_of_its_link() {
    let cases = [
        (ALIVE, 0, "", "[]"),
        (ALIVE, hop_flag::DEAD, "dead ", r#"["dead"]"#),
        (NO_CARRIER, 0, "linkdown ", r#"["linkdown"]"#),
        (
            NO_CARRIER,
            hop_flag::DEAD,
            "dead linkdown ",
            r#"["dead","linkdown"]"#,
        ),
        (DOWN, 0, "dead linkdown ", r#"["dead","linkdown"]"#),
        (
            DOWN,
            hop_flag::DEAD | hop_flag::ONLINK,
            "dead onlink linkdown ",
            r#"["dead","onlink","linkdown"]"#,
        ),
    ];
    for (link, flags, text, json) in cases {
        let hops = || NextHops::One(hop(link, flags));
        assert_eq!(
            one(hops(), Format::Text),
            format!("10.0.0.0/8 dev em{link} {text}\n")
        );
        assert_eq!(
            one(hops(), Format::Json),
            format!("[{{\"dst\":\"10.0.0.0/8\",\"dev\":\"em{link}\",\"flags\":{json}}}]\n")
        );
    }
}

#[test]
fn of_several_hops_each_has_its_own_flags_and_the_route_what_all_share() {
    let many = |hops: [NextHop; 2]| NextHops::Many(hops.into());
    let mixed = || many([hop(ALIVE, hop_flag::DEAD), hop(NO_CARRIER, 0)]);
    assert_eq!(
        one(mixed(), Format::Text),
        "10.0.0.0/8 \n\tnexthop dev em1 weight 1 dead \n\tnexthop dev em2 weight 1 linkdown \n"
    );
    let flags = |next_hops| {
        let output = Output {
            format: Format::Csv,
            fields: vec!["flags".into(), "nexthops.flags".into()],
            ..Output::default()
        };
        let csv = shown(&[route("10.0.0.0/8", next_hops)], output);
        csv.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(flags(mixed()), ",dead linkdown");
    let both = many([hop(ALIVE, hop_flag::DEAD), hop(DOWN, 0)]);
    assert_eq!(flags(both), "dead,dead dead linkdown");
}

#[test]
fn routes_are_sorted_by_number_address_and_name() {
    let row = |prefix, table, metric, link, gateway: &str| {
        let mut row = route(prefix, NextHops::None);
        let mut hop = hop(link, 0);
        hop.gateway = gateway.parse().ok();
        (row.table, row.metric, row.body.next_hops) = (table, metric, NextHops::One(hop));
        row
    };
    let rows = [
        row("10.0.0.0/16", 100, 100, DOWN, "192.0.2.10"),
        row("9.0.0.0/8", table_id::MAIN, 20, ALIVE, "192.0.2.9"),
        row("10.0.0.0/8", 20, 3, NO_CARRIER, ""),
        row("0.0.0.0/0", table_id::LOCAL, 1000, ALIVE, "192.0.2.100"),
    ];
    let sorted = |by: &str| {
        let output = Output {
            format: Format::Csv,
            fields: vec![by.trim_start_matches('-').into()],
            sort: Some(by.into()),
            ..Output::default()
        };
        let csv = shown(&rows, output);
        csv.lines().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sorted("dst"), "default 9.0.0.0/8 10.0.0.0/8 10.0.0.0/16");
    assert_eq!(sorted("metric"), "3 20 100 1000");
    assert_eq!(sorted("-metric"), "1000 100 20 3");
    assert_eq!(sorted("gateway"), " 192.0.2.9 192.0.2.10 192.0.2.100");
    assert_eq!(sorted("table"), "20 100 local main");
    assert_eq!(sorted("dev"), "em1 em1 em2 em3");
}
