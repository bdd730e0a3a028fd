//! Oracle: all rows, filtered one by one and put in the order that the
//! access path promises. And the rows that a path looks at are counted.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use proptest::prelude::*;
use table::{
    AF_INET, Address, Change, FdbEntry, Limits, Link, Neighbour, Nexthop, Placement, RouteBody,
    RouteRef, Rule, Tables, Writer,
};

use super::*;
use crate::walk::Scan;
use crate::walk::tests::{body, fdb, lines, mac, neighbour, paged, route};
use crate::{Context, Filter, Format, Names, Output, Printer, Question, answer};

fn address(number: u8) -> IpAddr {
    // A few networks with a few hosts, and some that nest.
    IpAddr::from([10, number & 1, number >> 1 & 3, number >> 3])
}

fn prefix() -> impl Strategy<Value = IpNet> {
    let v4 = (any::<u8>(), 0u8..=32)
        .prop_map(|(number, len)| IpNet::new(address(number), len).unwrap().trunc());
    let v6 = (0u16..4, 0u8..=128).prop_map(|(number, len)| {
        let address = IpAddr::from([0x2001, 0xdb8, number, 0, 0, 0, 0, number]);
        IpNet::new(address, len).unwrap().trunc()
    });
    prop_oneof![4 => v4, 1 => v6]
}

fn link() -> impl Strategy<Value = Change> {
    (1u32..7, any::<bool>(), proptest::option::of(1u32..3)).prop_map(|(index, up, master)| {
        Change::PutLink(Link {
            index,
            name: format!("l{index}").into(),
            flags: u32::from(up),
            master: master.filter(|master| *master != index),
            ..Link::default()
        })
    })
}

fn change() -> impl Strategy<Value = Change> {
    let number = any::<u8>;
    let row = (1u32..7, number(), 0u8..4);
    let neighbour = row.prop_map(|(link, at, lladdr)| {
        Change::PutNeighbour(Neighbour {
            address: address(at),
            proxy: at % 5 == 0,
            lladdr: mac(lladdr),
            ..neighbour(link, 0, lladdr)
        })
    });
    let row = (1u32..7, number(), 8u8..=32);
    let on_link =
        row.prop_map(|(link, at, len)| Change::PutAddress(Address::new(link, address(at), len)));
    let row = (prefix(), 253u32..256, 0u32..3, 1u32..7, 0u8..4);
    let routed = row.prop_map(|(prefix, table, metric, link, gateway)| {
        let object = (link > 4).then_some(u32::from(gateway));
        let body = RouteBody {
            preferred_source: (gateway == 1).then(|| address(link as u8)),
            ..body(link, gateway, object)
        };
        Change::PutRoute(route(table, prefix, metric, body), Placement::Last)
    });
    let row = (0u32..9, proptest::option::of(1u32..7));
    let object = row.prop_map(|(id, link)| {
        Change::PutNexthop(Nexthop {
            id,
            link,
            ..Nexthop::default()
        })
    });
    let row = (any::<bool>(), 0u32..4, 253u32..256);
    let rule = row.prop_map(|(v4, priority, table)| {
        Change::PutRule(Rule {
            family: if v4 { AF_INET } else { table::AF_INET6 },
            priority,
            table,
            ..Rule::default()
        })
    });
    let row = (1u32..7, 0u8..4, 0u16..6);
    let entry = row.prop_map(|(link, lladdr, vlan)| Change::PutFdb(fdb(link, lladdr, vlan)));
    prop_oneof![1 => neighbour, 1 => on_link, 3 => routed, 1 => object, 1 => rule, 1 => entry]
}

fn tables() -> impl Strategy<Value = Writer> {
    let links = proptest::collection::vec(link(), 1..8);
    let others = proptest::collection::vec(change(), 0..120);
    (links, others).prop_map(|(links, others)| {
        let mut writer = Writer::new(Limits::default());
        writer.commit(links.into_iter().chain(others)).unwrap();
        writer
    })
}

/// A condition that is set now and then.
fn seldom<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.15, value)
}

fn filter() -> impl Strategy<Value = Filter> {
    let name = || (1u32..7).prop_map(|index| format!("l{index}"));
    let links = (
        seldom(name()),
        seldom(Just("l[1-4]".to_owned())),
        proptest::bool::weighted(0.1),
        seldom(name()),
    );
    let nets = (seldom(prefix()), seldom(prefix()), seldom(prefix()));
    let table = prop_oneof![Just("all".to_owned()), Just("254".to_owned())];
    let routes = (
        proptest::option::weighted(0.5, table),
        seldom((0u8..4).prop_map(|last| IpAddr::from([192, 0, 2, last]))),
        seldom((1u8..7).prop_map(address)),
        seldom(0u32..4),
        seldom(0u32..4),
    );
    let others = (
        seldom((0u8..4).prop_map(|last| format!("02:00:00:00:00:{last:02x}"))),
        seldom(prop_oneof![Just(4u8), Just(6)]),
        proptest::bool::weighted(0.1),
        seldom(0u16..6),
    );
    (links, nets, routes, others).prop_map(|(links, nets, routes, others)| Filter {
        dev: links.0,
        name: links.1,
        up: links.2,
        master: links.3,
        to: nets.0,
        exact: nets.1,
        covering: nets.2,
        table: routes.0,
        via: routes.1,
        src: routes.2,
        id: routes.3,
        priority: routes.4,
        mac: others.0,
        family: others.1,
        proxy: others.2,
        vlan: others.3,
        ..Filter::default()
    })
}

const OBJECTS: [(Object, &[&str]); 7] = [
    (Object::Link, &["ifindex"]),
    (
        Object::Addr,
        &["ifname", "addr_info.local", "addr_info.prefixlen"],
    ),
    (Object::Neigh, &["dst", "dev", "proxy", "lladdr"]),
    (
        Object::Route,
        &[
            "dst", "table", "metric", "gateway", "dev", "nhid", "prefsrc",
        ],
    ),
    (Object::Nexthop, &["id"]),
    (Object::Rule, &["priority", "table"]),
    (Object::Fdb, &["ifname", "mac", "vlan"]),
];

/// A row of any table.
#[derive(Clone)]
enum Any<'t> {
    Link(&'t Arc<Link>),
    Address(&'t Arc<Address>),
    Neighbour(&'t Arc<Neighbour>),
    Route(RouteRef<'t>),
    Nexthop(&'t Arc<Nexthop>),
    Rule(&'t Arc<Rule>),
    Fdb(&'t Arc<FdbEntry>),
}

fn all(object: Object, tables: &Tables) -> Vec<Any<'_>> {
    match object {
        Object::Link => tables.links.iter().map(Any::Link).collect(),
        Object::Addr => tables.addresses.iter().map(Any::Address).collect(),
        Object::Neigh => tables.neighbours.iter().map(Any::Neighbour).collect(),
        Object::Route => tables.routes.iter().map(Any::Route).collect(),
        Object::Nexthop => tables.nexthops.iter().map(Any::Nexthop).collect(),
        Object::Rule => tables.rules.iter().map(Any::Rule).collect(),
        Object::Fdb => tables.fdb.iter().map(Any::Fdb).collect(),
    }
}

impl Any<'_> {
    /// Whether an access path leads over the row.
    fn is_on(&self, access: &Access) -> bool {
        let link = match self {
            Self::Link(row) => Some(row.index),
            Self::Address(row) => Some(row.link),
            Self::Neighbour(row) => Some(row.link),
            Self::Nexthop(row) => row.link,
            Self::Fdb(row) => Some(row.link),
            Self::Route(_) | Self::Rule(_) => None,
        };
        let address = match self {
            Self::Address(row) => Some(row.local),
            Self::Neighbour(row) => Some(row.address),
            _ => None,
        };
        let is_inside = |net: &IpNet| address.is_some_and(|address| net.contains(&address));
        match (access, self) {
            (Access::All, _) => true,
            (Access::Key(index), Self::Link(row)) => row.index == *index,
            (Access::Key(id), Self::Nexthop(row)) => row.id == *id,
            (Access::ByLink(links, net), _) => {
                link.is_some_and(|link| links.contains(&link)) && net.as_ref().is_none_or(is_inside)
            }
            (Access::Inside(net), _) => is_inside(net),
            (Access::ByMac(mac), Self::Neighbour(row)) => row.lladdr == *mac,
            (Access::ByMac(mac), Self::Fdb(row)) => row.lladdr == *mac,
            (Access::ByPriority(family, priority), Self::Rule(row)) => {
                row.family == *family && priority.is_none_or(|priority| priority == row.priority)
            }
            (_, Self::Route(row)) => is_route_on(row, access),
            _ => panic!("{access:?} for a row of another table"),
        }
    }
}

fn is_route_on(row: &RouteRef<'_>, access: &Access) -> bool {
    let in_table = |tables: &InTable| match tables {
        InTable::Any => true,
        InTable::Only(table) => row.table == *table,
    };
    let hops = row.body.next_hops.as_slice();
    match access {
        Access::ByBody(BodyKey::Link(link)) => hops.iter().any(|hop| hop.link == *link),
        Access::ByBody(BodyKey::Gateway(gateway)) => {
            hops.iter().any(|hop| hop.gateway == Some(*gateway))
        }
        Access::ByBody(BodyKey::Nexthop(id)) => row.body.nexthop_id == Some(*id),
        Access::ByBody(BodyKey::Source(source)) => row.body.preferred_source == Some(*source),
        Access::Exact(tables, net) => in_table(tables) && row.prefix == *net,
        Access::Covering(tables, net) => in_table(tables) && row.prefix.contains(net),
        Access::Within(tables, net) => in_table(tables) && net.contains(&row.prefix),
        Access::ByTable(tables, family) => {
            in_table(tables)
                && family.is_none_or(|family| (family == AF_INET) == row.prefix.addr().is_ipv4())
        }
        _ => panic!("{access:?} for routes"),
    }
}

/// Puts rows that are in the order of their table in that of a path. The
/// order of bodies is nobody's business: it is taken from the answer.
fn put_in_order(rows: &mut [Any<'_>], access: &Access, bodies: &[*const RouteBody]) {
    rows.sort_by_key(|row| match (row, access) {
        (Any::Neighbour(row), Access::Inside(_)) => (Some(row.address), 0, row.link as usize),
        (Any::Route(row), Access::ByBody(_)) => {
            let body = Arc::as_ptr(row.body);
            // The others are filtered out.
            let at = bodies.iter().position(|of| *of == body);
            (None, 0, at.unwrap_or(usize::MAX))
        }
        (Any::Route(row), Access::Covering(..)) => {
            let table = row.table;
            (None, table, usize::from(u8::MAX - row.prefix.prefix_len()))
        }
        _ => (None, 0, 0),
    });
}

/// The bodies of routes by a key, each once.
fn bodies(tables: &Tables, access: &Access) -> Vec<*const RouteBody> {
    let Access::ByBody(key) = access else {
        return Vec::new();
    };
    let ids = tables.routes.bodies(*key, table::BodyId::of_number(0));
    ids.filter_map(|id| Some(Arc::as_ptr(tables.routes.of_body(id).next()?.body)))
        .collect()
}

/// What a printer makes of rows.
fn printed(question: &Question, tables: &Tables, rows: &[Any<'_>]) -> Vec<String> {
    let names = Names::default();
    let mut printer = Printer::new(question, context(tables, &names), Vec::new()).unwrap();
    for row in rows {
        match row {
            Any::Link(row) => printer.link(row),
            Any::Address(row) => printer.address(row),
            Any::Neighbour(row) => printer.neighbour(row),
            Any::Route(row) => printer.route(&row.with_body(&**row.body)),
            Any::Nexthop(row) => printer.nexthop(row),
            Any::Rule(row) => printer.rule(row),
            Any::Fdb(row) => printer.fdb(row),
        }
        .unwrap();
    }
    lines(&printer.finish().unwrap())
}

fn context<'a>(tables: &'a Tables, names: &'a Names) -> Context<'a> {
    Context {
        links: &tables.links,
        tables: Some(tables),
        now_millis: 0,
        names,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_rows_of_a_plan_are_those_of_a_plain_filter(
        writer in tables(),
        filter in filter(),
        object in 0..OBJECTS.len(),
        limit in 1u64..40,
    ) {
        let tables = writer.tables();
        let (object, fields) = OBJECTS[object];
        let question = Question {
            object,
            filter,
            output: Output {
                format: Format::Ndjson,
                fields: fields.iter().map(|field| (*field).to_owned()).collect(),
                ..Output::default()
            },
        };
        let names = Names::default();
        // A name that no link has, two families.
        let Ok(selection) = Selection::new(&question, &context(tables, &names)) else {
            return Ok(());
        };
        let access = plan(&selection);
        let mut rows = all(object, tables);
        put_in_order(&mut rows, &access, &bodies(tables, &access));
        let expected = printed(&question, tables, &rows);
        let mut out = Vec::new();
        answer(&question, tables, &names, 0, &mut out).unwrap();
        prop_assert_eq!(lines(&out), expected.clone(), "{:?}", access);

        let mut counting = question.clone();
        counting.output.count = true;
        let mut out = Vec::new();
        answer(&counting, tables, &names, 0, &mut out).unwrap();
        prop_assert_eq!(lines(&out), [expected.len().to_string()]);

        let mut pages = paged(&question, tables, limit);
        if object == Object::Addr {
            // In pieces they come by address, as a whole by link.
            pages.sort();
            let mut expected = expected.clone();
            expected.sort();
            prop_assert_eq!(pages, expected, "{:?}", access);
        } else {
            prop_assert_eq!(pages, expected, "{:?}", access);
        }
        looks_at_its_rows_only(&question, tables, &access)?;
    }
}

fn looks_at_its_rows_only(
    question: &Question,
    tables: &Tables,
    access: &Access,
) -> Result<(), TestCaseError> {
    let names = Names::default();
    let mut printer = Printer::new(question, context(tables, &names), Vec::new()).unwrap();
    let mut scan = Scan::whole(&mut printer, tables);
    prop_assert!(scan.run(None).unwrap());
    let on_path = all(question.object, tables);
    let on_path = on_path.iter().filter(|row| row.is_on(access)).count();
    prop_assert_eq!(scan.visited(), on_path, "{:?}", access);
    Ok(())
}

#[test]
fn the_narrowest_path_is_chosen() {
    let writer = {
        let mut writer = Writer::new(Limits::default());
        writer
            .commit([Change::PutLink(Link {
                index: 3,
                name: "l3".into(),
                ..Link::default()
            })])
            .unwrap();
        writer
    };
    let names = Names::default();
    let planned = |object, filter| {
        let question = Question {
            object,
            filter,
            output: Output::default(),
        };
        plan(&Selection::new(&question, &context(writer.tables(), &names)).unwrap())
    };
    let dev = || Filter {
        dev: Some("l3".into()),
        ..Filter::default()
    };
    let host = IpNet::from(IpAddr::from([10, 0, 0, 1]));
    assert_eq!(planned(Object::Link, dev()), Access::Key(3));
    assert_eq!(planned(Object::Fdb, dev()), Access::ByLink(vec![3], None));
    assert_eq!(
        planned(Object::Route, dev()),
        Access::ByBody(BodyKey::Link(3))
    );
    assert_eq!(
        planned(
            Object::Neigh,
            Filter {
                to: Some(host),
                mac: Some("02:00:00:00:00:01".into()),
                ..dev()
            }
        ),
        Access::Inside(host)
    );
    assert_eq!(
        planned(
            Object::Route,
            Filter {
                exact: Some(host),
                table: Some("all".into()),
                ..dev()
            }
        ),
        Access::Exact(InTable::Any, host)
    );
    assert_eq!(
        planned(Object::Rule, Filter::default()),
        Access::ByPriority(AF_INET, None)
    );
}
