//! What conditions are looked up in: how many rows a statement visits.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use table::{Change, Link, NextHops, Nexthop, Writer};
use view::Format;

use crate::tables::{Namespace, WIDE, body, filled, hop, net, route};

/// So many /24s of one table, over ten links and twenty gateways.
pub fn many_routes(routes: u32) -> Writer {
    let mut writer = Writer::default();
    let mut changes: Vec<Change> = (1..=10)
        .map(|index| {
            Change::PutLink(Link {
                index,
                name: format!("eth{index}").into(),
                ..Link::default()
            })
        })
        .collect();
    changes.push(Change::PutNexthop(Nexthop {
        id: 7,
        link: Some(1),
        ..Nexthop::default()
    }));
    for number in 0..routes {
        let prefix = IpNet::new((0x0100_0000 + (number << 8)).to_be_bytes().into(), 24).unwrap();
        let gateway = IpAddr::from([192, 0, 2, (number % 20) as u8]);
        let hops = NextHops::One(hop(1 + number % 10, Some(gateway)));
        changes.push(route(254, prefix, 0, body(hops)));
    }
    changes.push(route(
        254,
        net("0.0.0.0/0"),
        0,
        body(NextHops::One(hop(1, None))),
    ));
    writer.commit(changes).unwrap();
    writer
}

#[test]
fn a_statement_visits_the_rows_that_it_returns() {
    let routes = 20_000;
    let writer = many_routes(routes);
    let namespace = Namespace::new(&writer);
    for (condition, rows) in [
        ("prefix = '1.0.7.0/24'", 1),
        ("prefix = '1.0.7.0/25'", 0),
        ("prefix = '0.0.0.0/0'", 1),
        ("prefix in ('1.0.7.0/24', '1.0.9.0/24', '9.9.9.0/24')", 2),
        ("within(prefix, '1.0.0.0/20')", 16),
        ("in_cidr_range(prefix, '1.0.0.0/20')", 16),
        ("covers(prefix, '1.0.7.9')", 2),
        ("in_cidr_block(prefix, '1.0.7.9')", 2),
        ("longest_match(prefix, '9.9.9.9')", 1),
        ("prefix between '1.0.7.0/24' and '1.0.9.0/24'", 3),
        ("dev = 'eth3'", 2_000),
        ("gateway = '192.0.2.4'", 1_000),
        ("nhid = 7", 0),
        ("table_name = '99'", 0),
        ("prefix = null", 0),
        ("dev = 'none'", 0),
    ] {
        let counts = namespace.counts(&format!("select * from routes where {condition}"));
        assert_eq!(counts, (rows, rows), "{condition}");
    }
    // The default route covers too, and is looked at.
    let counts = namespace.counts("select * from routes where longest_match(prefix, '1.0.7.9')");
    assert_eq!(counts, (1, 2));
    let first = "select prefix from routes where table_name = 'main' order by prefix limit 5";
    let (rows, visited) = namespace.counts(first);
    assert!(rows == 5 && visited < 100, "{visited}");
    assert_eq!(namespace.rows(first)[..2], ["0.0.0.0/0", "1.0.0.0/24"]);
    let all = namespace.counts("select prefix from routes where protocol = 'bgp'");
    assert_eq!(all, (0, u64::from(routes) + 1), "nothing to look it up in");
}

#[test]
fn other_tables_are_looked_up_too() {
    let writer = filled(1);
    let namespace = Namespace::new(&writer);
    for statement in [
        "select * from links where ifname = 'l7'",
        "select * from links where ifindex = 7",
        "select * from counters where ifname = 'l7'",
        "select * from addresses where ifname = 'l7'",
        "select * from addresses where local = '10.1.7.3'",
        "select * from addresses where within(local, '10.1.7.0/24')",
        "select * from neighbours where dev = 'l7'",
        "select * from neighbours where dst = '10.0.1.3'",
        "select * from neighbours where within(dst, '10.0.1.0/24')",
        "select * from neighbours where lladdr = '02:00:00:00:AB:01'",
        "select * from next_hops where id = 7",
        "select * from next_hops where dev = 'l2'",
        "select * from fdb where mac = '02:00:00:00:ab:01'",
        "select * from fdb where ifname = 'l7'",
    ] {
        let (rows, visited) = namespace.counts(statement);
        assert!(rows > 0, "{statement}");
        assert_eq!(rows, visited, "{statement}");
    }
    // A name that has no row is no other's, and one beside the name none.
    assert_eq!(
        namespace.counts("select * from links where ifname = 'alt7'"),
        (0, 1)
    );
    assert_eq!(
        namespace
            .counts("select * from links where ifname = 'L7' collate nocase")
            .0,
        1
    );
}

#[test]
fn a_join_looks_each_row_up() {
    let writer = many_routes(500);
    let namespace = Namespace::new(&writer);
    let (rows, visited) = namespace.counts(
        "select r.prefix, l.ifindex, c.rx_bytes from routes r \
         join links l on l.ifname = r.dev left join counters c on c.ifindex = l.ifindex",
    );
    assert_eq!(rows, 501);
    assert!(visited <= 3 * 501 + 20, "{visited}");
}

#[test]
fn explain_says_what_was_looked_up_and_how_many_rows_that_were() {
    let writer = many_routes(500);
    let namespace = Namespace::new(&writer);
    let question = fingerpost_query::Question {
        statement: "select * from routes where within(prefix, '1.0.0.0/20') and dev = 'eth3'"
            .to_owned(),
        format: Format::Csv,
        explain: true,
    };
    let mut out = Vec::new();
    fingerpost_query::answer(&question, &namespace, &WIDE, || false, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "table,handed_on,way,times,rows_visited\n\
         routes,\"dev = ? and within(prefix, ?)\",the routes inside a prefix,1,16\n\
         (answer),,rows of the answer,1,2\n"
    );
    let plan = namespace
        .rows("explain query plan select * from routes where prefix = '1.0.7.0/24' and metric = 7");
    assert!(plan[0].contains("prefix = ?"), "{plan:?}");
}

#[test]
fn the_longest_match_is_of_each_table_and_is_no_value() {
    let mut writer = many_routes(10);
    writer
        .commit([
            route(100, net("1.0.0.0/16"), 0, body(NextHops::One(hop(2, None)))),
            route(100, net("1.0.0.0/8"), 0, body(NextHops::One(hop(3, None)))),
        ])
        .unwrap();
    let namespace = Namespace::new(&writer);
    let found = |condition: &str| {
        namespace.rows(&format!(
            "select table_name, prefix from routes where longest_match(prefix, '1.0.3.9'){condition}"
        ))
    };
    assert_eq!(found(""), ["100,1.0.0.0/16", "main,1.0.3.0/24"]);
    assert_eq!(found(" and table_name = '100'"), ["100,1.0.0.0/16"]);
    assert_eq!(found(" and metric = 7"), [""; 0]);
    let joined = namespace.rows(
        "select value, prefix from json_each('[\"1.0.3.9\",\"9.9.9.9\"]') \
         join routes on longest_match(prefix, value) where table_name = 'main'",
    );
    assert_eq!(joined, ["1.0.3.9,1.0.3.0/24", "9.9.9.9,0.0.0.0/0"]);
    for refused in [
        "select longest_match(prefix, '1.0.3.9') from routes",
        "select * from routes where longest_match(prefix, '1.0.3.9') or metric = 7",
        "select longest_match('1.0.0.0/8', '1.0.3.9')",
    ] {
        let error = namespace.error(refused);
        assert!(
            error.contains("is a condition on `routes.prefix`"),
            "{refused}: {error}"
        );
    }
    let error = namespace.error("select * from routes where within(prefix, '10.0.0')");
    assert!(
        error.contains("`10.0.0` is no address and no prefix"),
        "{error}"
    );
}

#[test]
fn the_longest_match_is_one_beside_other_conditions_and_many_prefixes() {
    let mut writer = many_routes(10);
    // All lengths from 0 to 32, each several times: more than come at once.
    let covering = (1..=32).flat_map(|len| {
        let prefix = IpNet::new([1, 0, 3, 9].into(), len).unwrap().trunc();
        (1..=3).map(move |metric| route(100, prefix, metric, body(NextHops::One(hop(2, None)))))
    });
    writer.commit(covering).unwrap();
    let namespace = Namespace::new(&writer);
    let found = |condition: &str| {
        namespace.rows(&format!(
            "select prefix, metric from routes where table_name = '100' and {condition}"
        ))
    };
    let longest = ["1.0.3.9,1", "1.0.3.9,2", "1.0.3.9,3"];
    assert_eq!(found("longest_match(prefix, '1.0.3.9')"), longest);
    assert_eq!(
        found("covers(prefix, '1.0.0.0/12') and longest_match(prefix, '1.0.3.9')"),
        [""; 0]
    );
    assert_eq!(
        found("longest_match(prefix, '1.0.3.9') and covers(prefix, '1.0.0.0/12')"),
        [""; 0]
    );
    assert_eq!(
        found("prefix = '1.0.0.0/8' and longest_match(prefix, '1.0.3.9')"),
        [""; 0]
    );
    assert_eq!(
        found("prefix = '1.0.3.9' and longest_match(prefix, '1.0.3.9')"),
        longest
    );
    let error = namespace.error(
        "select 1 from routes where longest_match(prefix, '1.0.3.9') \
         and longest_match(prefix, '1.0.3.8')",
    );
    assert!(error.contains("two longest matches"), "{error}");
}

#[test]
fn routes_of_one_prefix_are_all_found_however_many() {
    for many in [15, 16, 17, 40] {
        let mut writer = many_routes(10);
        let routes = (1..=many).map(|metric| {
            let prefix = net("1.0.7.0/24");
            route(100, prefix, metric, body(NextHops::One(hop(2, None))))
        });
        writer.commit(routes).unwrap();
        let namespace = Namespace::new(&writer);
        let count = |condition: &str| {
            let statement = format!("select count(*) from routes where {condition}");
            namespace.rows(&statement).concat().parse::<u32>().unwrap()
        };
        assert_eq!(count("prefix = '1.0.7.0/24'"), many + 1);
        assert_eq!(count("prefix = '1.0.7.0/24' and table_name = '100'"), many);
        assert_eq!(count("prefix = '1.0.7.0/24' and table_name = 'main'"), 1);
        assert_eq!(count("prefix = '1.0.7.0/24' and metric > 3"), many - 3);
        assert_eq!(
            count("prefix = '1.0.7.0/24' and prefix = '1.0.7.0/24'"),
            many + 1
        );
    }
}

#[test]
fn what_is_no_prefix_equals_none() {
    let writer = many_routes(10);
    let namespace = Namespace::new(&writer);
    for value in [
        "'1.0.7.0/25'",
        "'1.0.7.9/24'",
        "'1.0.7.0/24 '",
        "'1.0.7'",
        "'default'",
        "''",
        "7",
        "1.5",
        "x'312e302e372e302f3234'",
        "null",
    ] {
        let statement = format!("select prefix from routes where prefix = {value}");
        assert_eq!(namespace.rows(&statement), [""; 0], "{value}");
    }
    // As the order of prefixes has it, a length may be spelt otherwise.
    let statement = "select prefix from routes where prefix = '1.0.7.0/024'";
    assert_eq!(namespace.rows(statement), ["1.0.7.0/24"]);
    let statement = "select prefix from routes where prefix = '1.0.7.0/024' collate binary";
    assert_eq!(namespace.rows(statement), [""; 0]);
    let statement = "select prefix from routes where '1.0.7.0/024' = prefix \
                     or prefix = '1.0.8.0/24' order by prefix";
    assert_eq!(namespace.rows(statement), ["1.0.7.0/24", "1.0.8.0/24"]);
}

#[test]
fn what_an_owner_feeds_is_asked_for_by_its_name() {
    let writer = many_routes(10);
    let namespace = Namespace::new(&writer);
    let feeders = writer.feeders();
    let mut feeder = feeders.join("frr", table::Limits::default()).unwrap();
    feeder
        .commit([route(
            254,
            net("5.0.0.0/8"),
            0,
            body(NextHops::One(hop(2, None))),
        )])
        .unwrap();
    let rows = namespace.rows("select prefix, dev, source from routes where source = 'frr'");
    assert_eq!(rows, ["5.0.0.0/8,eth2,frr"]);
    let both = namespace.rows(
        "select prefix, source from routes where source in ('frr', 'kernel') and masklen(prefix) < 9",
    );
    assert_eq!(both, ["5.0.0.0/8,frr", "0.0.0.0/0,kernel"]);
    let joined =
        namespace.rows("select f.name, r.prefix from feeds f join routes r on r.source = f.name");
    assert_eq!(joined, ["frr,5.0.0.0/8"]);
    let error = namespace.error("select * from routes where source = 'nobody'");
    assert_eq!(
        error,
        "no source `nobody` feeds rows here; there are: kernel, frr"
    );
}

#[test]
fn feeds_and_their_peers_are_tables() {
    let writer = many_routes(10);
    let namespace = Namespace::new(&writer);
    assert!(namespace.rows("select * from feeds").is_empty());
    assert!(namespace.rows("select * from peers").is_empty());
    let feeders = writer.feeders();
    let mut feeder = feeders
        .join("bmp:192.0.2.1@r1", table::Limits::default())
        .unwrap();
    let told = table::MonitoredPeer {
        router: "r1".to_owned(),
        address: "192.0.2.1".to_owned(),
        rib: "adj-rib-in",
        asn: 4_200_000_000,
        is_up: true,
        ups: 2,
        downs: 1,
        ..table::MonitoredPeer::default()
    };
    feeder.update_status(|status| {
        status.phase = table::Phase::Live;
        status.feed = Some(Box::new(table::FeedStatus {
            listening: "0.0.0.0:1790".to_owned(),
            messages: 7,
            monitored: Some(Arc::new(told)),
            ..table::FeedStatus::default()
        }));
    });
    let row = body(NextHops::One(hop(2, None)));
    feeder
        .commit([route(254, net("5.0.0.0/8"), 0, row)])
        .unwrap();
    let feeds = namespace.rows("select name, complete, routes, listening, messages from feeds");
    assert_eq!(feeds, ["bmp:192.0.2.1@r1,1,1,0.0.0.0:1790,7"]);
    let peers = namespace
        .rows("select source, router, address, asn, rib, up, ups, downs, routes from peers");
    assert_eq!(
        peers,
        ["bmp:192.0.2.1@r1,r1,192.0.2.1,4200000000,adj-rib-in,1,2,1,1"]
    );
    let joined = namespace.rows(
        "select p.address, r.prefix from peers p join routes r on r.source = p.source where p.up",
    );
    assert_eq!(joined, ["192.0.2.1,5.0.0.0/8"]);
    drop(feeder);
    assert!(namespace.rows("select * from peers").is_empty());
}

#[test]
fn what_changed_is_a_table() {
    let writer = filled(2);
    let namespace = Namespace::new(&writer);
    let links = namespace.rows(
        "select event, change ->> 'ifname' from events where object = 'link' \
         order by change ->> 'ifindex' limit 2",
    );
    assert_eq!(links, ["added,l1", "added,l2"]);
    let of_objects = namespace.rows("select object, count(*) from events group by 1 order by 1");
    assert_eq!(of_objects.len(), 7, "{of_objects:?}");
}
