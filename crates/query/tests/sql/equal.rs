//! A thousand random filters for each seed: what SQL answers is what the
//! command line answers.

use memory::Random;
use view::{Filter, Format, Object, Output, Question};
use words::Names;

use crate::tables::{NOW, Namespace, filled};

/// A filter of the command line, and the same as a condition.
struct Asked {
    object: Object,
    fields: &'static [&'static str],
    select: &'static str,
    filter: Filter,
    conditions: Vec<String>,
}

impl Asked {
    fn and(&mut self, condition: String) {
        self.conditions.push(condition);
    }

    fn statement(&self) -> String {
        match self.conditions.is_empty() {
            true => self.select.to_owned(),
            false => format!("{} where {}", self.select, self.conditions.join(" and ")),
        }
    }
}

fn is(random: &mut Random, one_of: usize) -> bool {
    random.below(one_of) == 0
}

fn routes(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Route,
        fields: &[
            "dst", "table", "protocol", "scope", "dev", "gateway", "nhid", "prefsrc",
        ],
        select: "select dst, table_name, protocol, scope, dev, gateway, nhid, prefsrc from routes",
        filter: Filter::default(),
        conditions: Vec::new(),
    };
    let v6 = is(random, 4);
    let family = if v6 { 6 } else { 4 };
    asked.filter.family = Some(family);
    asked.and(format!("family(prefix) = {family}"));
    match random.below(4) {
        0 => asked.filter.table = Some("all".to_owned()),
        1 => {
            asked.filter.table = Some("100".to_owned());
            asked.and("table_name = '100'".to_owned());
        }
        _ => asked.and("table_name = 'main'".to_owned()),
    }
    let prefix = match v6 {
        true => format!(
            "2001:db8:{:x}::/{}",
            random.below(64),
            32 + random.below(97)
        ),
        false => format!(
            "10.{}.{}.0/{}",
            random.below(4),
            random.below(8),
            random.below(33)
        ),
    };
    let prefix: ipnet::IpNet = prefix.parse().unwrap();
    match random.below(6) {
        0 | 1 => {
            asked.filter.to = Some(prefix);
            let name = ["within", "in_cidr_range"][random.below(2)];
            asked.and(format!("{name}(prefix, '{prefix}')"));
        }
        2 => {
            asked.filter.covering = Some(prefix);
            asked.and(format!("covers(prefix, '{prefix}')"));
        }
        3 => {
            let prefix = prefix.trunc();
            asked.filter.exact = Some(prefix);
            asked.and(format!("prefix = '{prefix}'"));
        }
        _ => {}
    }
    // Of several next hops none is meant.
    asked.filter.one_hop = true;
    if is(random, 3) {
        let link = 1 + random.below(5);
        asked.filter.dev = Some(format!("l{link}"));
        asked.and(format!("dev = 'l{link}'"));
    }
    if is(random, 3) {
        let gateway = format!("192.0.2.{}", random.below(4));
        asked.filter.via = Some(gateway.parse().unwrap());
        asked.and(format!("(gateway = '{gateway}' or via_host = '{gateway}')"));
    }
    if is(random, 4) {
        let id = 1 + random.below(5) as u32;
        asked.filter.id = Some(id);
        asked.and(format!("nhid = {id}"));
    }
    if !v6 && is(random, 5) {
        let source = format!("10.1.1.{}", random.below(4));
        asked.filter.src = Some(source.parse().unwrap());
        asked.and(format!("prefsrc = '{source}'"));
    }
    if is(random, 4) {
        asked.filter.proto = Some("bgp".to_owned());
        asked.and("protocol = 'bgp'".to_owned());
    }
    if is(random, 5) {
        asked.filter.scope = Some("link".to_owned());
        asked.and("scope = 'link'".to_owned());
    }
    if is(random, 4) {
        let metric = [0, 7, 1024][random.below(3)];
        asked.filter.priority = Some(metric);
        asked.and(format!("metric = {metric}"));
    }
    asked
}

fn neighbours(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Neigh,
        fields: &["dst", "dev", "lladdr", "state"],
        select: "select dst, dev, lladdr, state from neighbours",
        filter: Filter {
            state: vec!["all".to_owned()],
            ..Filter::default()
        },
        conditions: Vec::new(),
    };
    asked.filter.proxy = is(random, 6);
    asked.and(
        if asked.filter.proxy {
            "proxy"
        } else {
            "not proxy"
        }
        .to_owned(),
    );
    if is(random, 3) {
        let link = 1 + random.below(31);
        if link <= 30 {
            asked.filter.dev = Some(format!("l{link}"));
            asked.and(format!("dev = 'l{link}'"));
        }
    }
    match random.below(4) {
        0 => {
            let prefix = format!("10.0.{}.0/{}", random.below(4), 16 + random.below(17));
            asked.filter.to = Some(prefix.parse().unwrap());
            asked.and(format!("within(dst, '{prefix}')"));
        }
        1 => {
            let host = format!("10.0.{}.{}", random.below(4), random.below(9));
            asked.filter.to = Some(format!("{host}/32").parse().unwrap());
            asked.and(format!("dst = '{host}'"));
        }
        _ => {}
    }
    if is(random, 3) {
        let mac = format!("02:00:00:00:ab:0{}", random.below(6));
        asked.and(format!("lladdr = '{}'", mac.to_uppercase()));
        asked.filter.mac = Some(mac);
    }
    if is(random, 4) {
        asked.filter.family = Some(6);
        asked.and("family(dst) = 6".to_owned());
        asked.filter.to = None;
        asked.conditions.retain(|one| !one.contains("'10."));
    }
    asked
}

fn addresses(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Addr,
        fields: &[
            "ifname",
            "addr_info.local",
            "addr_info.prefixlen",
            "addr_info.scope",
        ],
        select: "select ifname, local, prefixlen, scope from addresses",
        filter: Filter::default(),
        conditions: Vec::new(),
    };
    if is(random, 2) {
        let link = 1 + random.below(30);
        asked.filter.dev = Some(format!("l{link}"));
        asked.and(format!("{} ", ["ifname", "ifindex"][0]) + &format!("= 'l{link}'"));
    }
    match random.below(4) {
        0 => {
            let prefix = format!("10.1.{}.0/{}", random.below(32), 16 + random.below(17));
            asked.filter.to = Some(prefix.parse().unwrap());
            asked.and(format!("within(local, '{prefix}')"));
        }
        1 => {
            let host = format!("10.1.{}.{}", random.below(32), random.below(10));
            asked.filter.exact = Some(format!("{host}/32").parse().unwrap());
            asked.and(format!("local = '{host}'"));
        }
        _ => {}
    }
    if is(random, 4) {
        asked.filter.scope = Some("link".to_owned());
        asked.and("scope = 'link'".to_owned());
    }
    asked
}

fn links(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Link,
        fields: &["ifindex", "ifname", "mtu", "address", "linkinfo.info_kind"],
        select: "select ifindex, ifname, mtu, address, kind from links",
        filter: Filter::default(),
        conditions: Vec::new(),
    };
    if is(random, 4) {
        let link = 1 + random.below(30);
        asked.filter.dev = Some(format!("l{link}"));
        asked.and(match random.below(2) {
            0 => format!("ifname = 'l{link}'"),
            _ => format!("ifindex = {link}"),
        });
    }
    if is(random, 3) {
        asked.filter.name = Some("l1?".to_owned());
        asked.and("ifname glob 'l1?'".to_owned());
    }
    if is(random, 3) {
        asked.filter.up = true;
        asked.and("' ' || flags || ' ' like '% UP %'".to_owned());
    }
    if is(random, 3) {
        asked.filter.kind = Some("veth".to_owned());
        asked.and("kind = 'veth'".to_owned());
    }
    if is(random, 4) {
        asked.filter.master = Some("l1".to_owned());
        asked.and("master = 'l1'".to_owned());
    }
    asked
}

fn next_hops(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Nexthop,
        fields: &["id", "gateway", "dev"],
        select: "select id, gateway, dev from next_hops",
        filter: Filter::default(),
        conditions: Vec::new(),
    };
    if is(random, 3) {
        let id = 1 + random.below(32) as u32;
        asked.filter.id = Some(id);
        asked.and(format!("id = {id}"));
    }
    if is(random, 3) {
        let link = 1 + random.below(4);
        asked.filter.dev = Some(format!("l{link}"));
        asked.and(format!("dev = 'l{link}'"));
    }
    if is(random, 3) {
        let gateway = format!("192.0.2.{}", random.below(4));
        asked.filter.via = Some(gateway.parse().unwrap());
        asked.and(format!("gateway = '{gateway}'"));
    }
    if is(random, 4) {
        asked.filter.groups = true;
        asked.and("group_id is not null".to_owned());
    }
    asked
}

fn fdb(random: &mut Random) -> Asked {
    let mut asked = Asked {
        object: Object::Fdb,
        fields: &["mac", "ifname", "vlan"],
        select: "select mac, ifname, vlan from fdb",
        filter: Filter::default(),
        conditions: Vec::new(),
    };
    if is(random, 2) {
        let mac = format!("02:00:00:00:ab:0{}", random.below(7));
        asked.and(format!("mac = '{mac}'"));
        asked.filter.mac = Some(mac);
    }
    if is(random, 2) {
        let link = 1 + random.below(30);
        asked.filter.dev = Some(format!("l{link}"));
        asked.and(format!("ifname = 'l{link}'"));
    }
    if is(random, 3) {
        let vlan = 2 * random.below(5) as u16;
        asked.filter.vlan = Some(vlan);
        asked.and(format!("vlan = {vlan}"));
    }
    asked
}

fn rules(random: &mut Random) -> Asked {
    let family = [4, 6][random.below(2)];
    let mut asked = Asked {
        object: Object::Rule,
        fields: &["priority", "table"],
        select: "select priority, table_name from rules",
        filter: Filter {
            family: Some(family),
            ..Filter::default()
        },
        conditions: Vec::new(),
    };
    // Their tables are odd for IPv6: what tells the family here.
    asked.and(format!(
        "cast(table_name as integer) % 2 = {}",
        u8::from(family == 6)
    ));
    if is(random, 2) {
        let priority = random.below(9) as u32;
        asked.filter.priority = Some(priority);
        asked.and(format!("priority = {priority}"));
    }
    asked
}

fn by_command_line(asked: &Asked, namespace: &Namespace) -> Vec<String> {
    let question = Question {
        object: asked.object,
        filter: asked.filter.clone(),
        output: Output {
            format: Format::Csv,
            fields: asked
                .fields
                .iter()
                .map(|field| (*field).to_owned())
                .collect(),
            ..Output::default()
        },
    };
    let mut out = Vec::new();
    let tables = namespace.reader.snapshot();
    view::answer(&question, &tables, &Names::default(), NOW, &mut out)
        .unwrap_or_else(|error| panic!("{question:?}: {error}"));
    let text = String::from_utf8(out).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_thousand_filters_are_answered_as_the_command_line_does() {
    let makers = [
        routes, routes, routes, neighbours, addresses, links, next_hops, fdb, rules,
    ];
    let (mut asked_in_all, mut rows_in_all) = (0, 0);
    for seed in 0..4 {
        let writer = filled(seed);
        let namespace = Namespace::new(&writer);
        let mut random = Random::new(seed);
        for number in 0..250 {
            let asked = makers[number % makers.len()](&mut random);
            let statement = asked.statement();
            let mut by_sql = namespace.rows(&statement);
            let mut by_view = by_command_line(&asked, &namespace);
            by_sql.sort_unstable();
            by_view.sort_unstable();
            assert_eq!(
                by_sql, by_view,
                "seed {seed}: {statement}\n{:?}",
                asked.filter
            );
            rows_in_all += by_sql.len();
            asked_in_all += 1;
        }
    }
    assert_eq!(asked_in_all, 1000);
    assert!(rows_in_all > 10_000, "{rows_in_all}");
}

#[test]
fn ranges_and_their_order_are_those_of_all_rows() {
    let writer = filled(9);
    let namespace = Namespace::new(&writer);
    let mut random = Random::new(9);
    let sorted = |table: &str| {
        let all =
            namespace.rows("select prefix, table_name from routes order by prefix collate ip");
        let of = |row: &String| {
            let (prefix, of) = row.split_once(',').unwrap();
            (of == table).then(|| prefix.to_owned())
        };
        all.iter().filter_map(of).collect::<Vec<_>>()
    };
    for (table, all) in [("main", sorted("main")), ("100", sorted("100"))] {
        assert!(all.len() > 50);
        for _ in 0..100 {
            let (low, high) = (random.below(all.len()), random.below(all.len()));
            let (low, high) = (&all[low.min(high)], &all[low.max(high)]);
            let first = all.iter().position(|one| one == low).unwrap();
            let last = all.iter().rposition(|one| one == high).unwrap();
            let between = namespace.rows(&format!(
                "select prefix from routes where table_name = '{table}' \
                 and prefix >= '{low}' and prefix <= '{high}' order by prefix"
            ));
            assert_eq!(between, all[first..=last], "{low} {high}");
        }
    }
    for (low, high) in [
        (3, 7),
        (0, 2),
        (29, 99),
        (7, 3),
        (-5, 1),
        (30, 5_000_000_000_i64),
    ] {
        let indexes = namespace.rows(&format!(
            "select ifindex from links where ifindex between {low} and {high} order by ifindex"
        ));
        let expected: Vec<String> = (1..=30)
            .filter(|i| (low..=high).contains(i))
            .map(|i: i64| i.to_string())
            .collect();
        assert_eq!(indexes, expected, "{low} {high}");
    }
}

#[test]
fn hops_are_those_of_routes_and_of_the_objects_that_they_name() {
    let writer = filled(5);
    let namespace = Namespace::new(&writer);
    let tables = namespace.reader.snapshot();
    let hops = |route: table::RouteRef<'_>| tables.nexthops.hops_of(route.body).unwrap_or_default();
    let expected: usize = tables.routes.iter().map(|route| hops(route).len()).sum();
    assert_eq!(namespace.rows("select * from hops").len(), expected);
    assert!(expected > 500);
    let main = namespace.rows("select gateway, dev, weight from hops where prefix = '0.0.0.0/0'");
    assert_eq!(main, ["192.0.2.1,l1,1"]);
    let of_group = namespace
        .rows("select count(*), count(distinct gateway) from hops where nhid = 100 and hop = 1");
    assert_eq!(of_group.len(), 1);
    let by_join = namespace.rows(
        "select h.prefix, l.mtu from hops h join links l on l.ifname = h.dev where l.mtu = 1501",
    );
    let by_dev = namespace.rows("select prefix, 1501 from hops where dev = 'l1'");
    let sorted = |mut rows: Vec<String>| {
        rows.sort_unstable();
        rows
    };
    assert_eq!(sorted(by_join), sorted(by_dev));
}

#[test]
fn conditions_joined_by_or_give_each_row_once() {
    let writer = filled(6);
    let namespace = Namespace::new(&writer);
    for (table, one, other) in [
        ("routes", "dev = 'l1'", "gateway = '192.0.2.1'"),
        ("routes", "within(prefix, '10.0.0.0/9')", "nhid = 2"),
        ("neighbours", "dev = 'l1'", "lladdr = '02:00:00:00:ab:01'"),
        (
            "addresses",
            "within(local, '10.1.1.0/24')",
            "ifname in ('l1', 'l2')",
        ),
        ("links", "ifname = 'l1'", "ifindex in (1, 2, 3)"),
        ("fdb", "ifname = 'l1'", "mac = '02:00:00:00:ab:01'"),
        ("next_hops", "id = 1", "dev = 'l2'"),
    ] {
        let count = |condition: &str| {
            let rows = namespace.rows(&format!("select count(*) from {table} where {condition}"));
            rows[0].parse::<u64>().unwrap()
        };
        let (first, second) = (count(one), count(other));
        let both = count(&format!("({one}) and ({other})"));
        let either = count(&format!("({one}) or ({other})"));
        assert_eq!(either, first + second - both, "{table}: {one}, {other}");
        assert!(first > 0 && second > 0, "{table}");
    }
}
