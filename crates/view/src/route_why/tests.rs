//! The verdicts, in full texts; the oracle of the packet is `route get`,
//! whose function it shares.

use serde_json::Value;
use table::row::route::{NextHops, RouteBody, kind};
use table::row::rule::action;
use table::{AF_INET, Change, Limits, Link, Placement, Route, Rule, Writer};

use super::*;
use crate::walk::tests::{body, mac, neighbour};

fn put(prefix: &str, metric: u32, body: RouteBody) -> Change {
    let route = Route {
        table: table_id::MAIN,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric,
        body,
    };
    Change::PutRoute(route, Placement::Last)
}

/// A link that is up and one that is down, and a neighbour.
fn kernel() -> Writer {
    let mut writer = Writer::new(Limits::default());
    let link = |index, flags| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags,
            ..Link::default()
        })
    };
    let mut known = neighbour(1, 0, 7);
    known.address = [192, 0, 2, 1].into();
    let rule = |priority, table| {
        Change::PutRule(Rule {
            family: AF_INET,
            priority,
            action: action::TO_TABLE,
            table,
            ..Rule::default()
        })
    };
    let changes = [
        link(1, 0x1_0043),
        link(2, 0),
        Change::PutNeighbour(known),
        rule(0, table_id::LOCAL),
        rule(32_766, table_id::MAIN),
    ];
    writer.commit(changes).unwrap();
    writer
}

fn asked(to: &str, format: Format) -> RouteWhyQuestion {
    RouteWhyQuestion {
        to: to.parse().unwrap(),
        table: None,
        output: Output {
            format,
            ..Output::default()
        },
    }
}

fn told(writers: &[(&str, &Writer)], question: &RouteWhyQuestion) -> String {
    let readers: Vec<_> = writers.iter().map(|(_, writer)| writer.reader()).collect();
    let tables: Vec<_> = readers.iter().map(Reader::snapshot).collect();
    // A feeder's tables have the kernel's links for their names.
    let sources: Vec<_> = (writers.iter().zip(&tables).zip(&readers))
        .map(|(((name, _), tables), reader)| WhySource {
            name,
            tables,
            reader,
        })
        .collect();
    let (kernel, others) = sources.split_first().unwrap();
    let mut out = Vec::new();
    let names = Names::default();
    route_why(question, kernel, others, &names, 100_000, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn verdicts(text: &str) -> Vec<(String, String)> {
    let json: Value = serde_json::from_str(text).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |source: &Value| -> Vec<_> {
        let routes = source["routes"].as_array().unwrap().iter();
        routes
            .map(|route| (word(&source["source"]), word(&route["verdict"])))
            .collect()
    };
    json["sources"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(of)
        .collect()
}

#[test]
fn the_answer_names_who_won_and_where_the_packet_goes() {
    let [mut kernel, mut frr, other] = [(); 3].map(|()| kernel());
    kernel.set_time(40_000);
    kernel
        .commit([put("10.0.0.0/8", 20, body(1, 1, None))])
        .unwrap();
    kernel.set_time(88_000);
    kernel
        .commit([put("10.0.0.0/8", 30, body(1, 9, None))])
        .unwrap();
    frr.set_time(70_000);
    frr.commit([put("10.0.0.0/8", 20, body(1, 1, None))])
        .unwrap();
    let sources = [("kernel", &kernel), ("frr", &frr), ("bmp", &other)];
    assert_eq!(
        told(&sources, &asked("10.1.2.3/32", Format::Text)),
        "10.1.2.3 in table main\n\
         kernel: 10.0.0.0/8 via 192.0.2.1 dev em1 proto static metric 20\n    \
         taken; changed 12s ago, 2 times\n\
         kernel: 10.0.0.0/8 via 192.0.2.9 dev em1 proto static metric 30\n    \
         not taken: the one above comes first\n    \
         1m ago added 10.0.0.0/8 via 192.0.2.1 dev em1 proto static metric 20\n    \
         12s ago added 10.0.0.0/8 via 192.0.2.9 dev em1 proto static metric 30\n\
         frr: 10.0.0.0/8 via 192.0.2.1 dev em1 proto static metric 20\n    \
         goes where the kernel goes; changed 30s ago, 1 time\n    \
         30s ago added 10.0.0.0/8 via 192.0.2.1 dev em1 proto static metric 20\n\
         bmp: no route\n\
         a packet to 10.1.2.3 is decided by table main\n    \
         via 192.0.2.1 dev em1 link up neighbour 192.0.2.1 dev em1 lladdr 02:00:00:00:00:07 STALE\n"
    );
    assert_eq!(mac(7).to_string(), "02:00:00:00:00:07");
}

#[test]
fn each_reason_not_to_be_taken_is_told() {
    let mut kernel = kernel();
    kernel
        .commit([
            put("10.0.0.0/8", 10, body(2, 1, None)),
            put("10.0.0.0/8", 20, body(1, 1, None)),
            put("10.0.0.0/8", 30, body(1, 2, None)),
            put("10.0.0.0/9", 0, body(1, 1, None)),
        ])
        .unwrap();
    let verdicts = |to: &str, writers: &[(&str, &Writer)]| {
        let told = verdicts(&told(writers, &asked(to, Format::Json)));
        told.into_iter()
            .map(|(_, verdict)| verdict)
            .collect::<Vec<_>>()
    };
    let only = [("kernel", &kernel)];
    assert_eq!(
        verdicts("10.200.0.1/32", &only),
        ["unusable", "taken", "not_best"]
    );
    // Asked about the shorter prefix, whose first address the longer covers.
    assert_eq!(verdicts("10.0.0.0/8", &only), ["longer_prefix"; 3]);
    let mut frr = self::kernel();
    let elsewhere = put("10.0.0.0/8", 20, body(1, 3, None));
    frr.commit([elsewhere, put("10.0.0.0/8", 40, body(1, 1, None))])
        .unwrap();
    let both = [("kernel", &kernel), ("frr", &frr)];
    let told = verdicts("10.200.0.1/32", &both);
    assert_eq!(told[3..], ["differs", "not_best"]);
}

#[test]
fn a_route_that_refuses_and_no_route_at_all() {
    let [mut kernel, mut frr] = [(); 2].map(|()| kernel());
    let refusing = || RouteBody {
        kind: kind::PROHIBIT,
        next_hops: NextHops::None,
        ..body(1, 1, None)
    };
    kernel.commit([put("10.0.0.0/8", 0, refusing())]).unwrap();
    frr.commit([put("10.0.0.0/8", 0, refusing())]).unwrap();
    let sources = [("kernel", &kernel), ("frr", &frr)];
    let text = told(&sources, &asked("10.0.0.1/32", Format::Text));
    assert!(
        text.contains("taken, and refuses: Permission denied"),
        "{text}"
    );
    assert!(text.contains("goes where the kernel goes"), "{text}");
    assert!(text.ends_with("a packet to 10.0.0.1 is refused: Permission denied\n"));
    let none = told(&sources, &asked("198.51.100.1/32", Format::Text));
    assert!(none.contains("kernel: no route\n"), "{none}");
    assert!(
        none.ends_with("is refused: Network is unreachable\n"),
        "{none}"
    );
}

#[test]
fn many_routes_of_one_prefix_are_bounded_and_so_is_their_history() {
    let mut kernel = kernel();
    for metric in 0..200 {
        kernel.set_time(1_000 * u64::from(metric));
        kernel
            .commit([put("10.0.0.0/8", metric, body(1, 1, None))])
            .unwrap();
    }
    let told = told(&[("kernel", &kernel)], &asked("10.0.0.1/32", Format::Json));
    let json: Value = serde_json::from_str(&told).unwrap();
    let source = &json["sources"][0];
    assert_eq!(source["routes"].as_array().unwrap().len(), MAX_ROUTES);
    assert_eq!(source["history"].as_array().unwrap().len(), HISTORY);
    assert_eq!(source["changes"], 200);
    assert_eq!(source["history"][7]["at_millis"], 199_000);
}
