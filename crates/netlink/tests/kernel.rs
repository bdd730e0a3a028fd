//! Against the kernel: one of everything is made by `ip`
//! (`fuzz/situation.sh`), read, deleted and made again by our own requests,
//! and read again: equal. Dumps are answered as filtered as they are asked.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]

mod support;

use std::fmt::Debug;

use fingerpost_netlink::TooLong;
use fingerpost_netlink::decode::{self, Decoded, Item, Operation, decode};
use fingerpost_netlink::encode::{self, LinkSettings, Request};
use fingerpost_netlink::message::{flag, kind, messages};
use fingerpost_netlink::request::{Dump, RouteQuery, get_link, get_link_by_name, get_route};
use lab::{Netns, skip};
use support::{DUMPS, Kernel};
use table::row::route::protocol;
use table::row::{address, neighbour};
use table::{Address, FdbEntry, KindData, Link, Neighbour, Nexthop, PortData, Route, Rule};

const NOW_MILLIS: u64 = 1_700_000_000_000;
const ENODEV: i32 = 19;
const ENOENT: i32 = 2;

/// What a test does in a namespace with one of everything.
fn in_situation(tag: &str, work: impl FnOnce(&mut Kernel) + Send) {
    let Some(netns) = skip::unless(Netns::new(tag)) else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/situation.sh");
    netns.run("sh", &[script]).expect("the situation");
    netns
        .inside(|| work(&mut Kernel::open()))
        .expect("work inside the namespace");
}

fn items(kernel: &mut Kernel, dump: Dump) -> Vec<Item> {
    let mut items = Vec::new();
    for datagram in kernel.dump(dump).expect("a dump") {
        for message in messages(&datagram) {
            let message = message.expect("a message");
            match decode(&message, NOW_MILLIS).expect("a sound message") {
                Decoded::Announcement(announcement) => items.push(announcement.item),
                // Rules of multicast forwarding have no row.
                Decoded::Done { .. } | Decoded::Unknown(kind::NEWRULE) => {}
                other => panic!("in a dump: {other:?}"),
            }
        }
    }
    items
}

macro_rules! rows {
    ($name:ident, $row:ty, $variant:ident) => {
        fn $name(kernel: &mut Kernel, dump: Dump) -> Vec<$row> {
            items(kernel, dump)
                .into_iter()
                .map(|item| match item {
                    Item::$variant(row) => row,
                    other => panic!("not what was asked for: {other:?}"),
                })
                .collect()
        }
    };
}
rows!(links, Link, Link);
rows!(addresses, Address, Address);
rows!(neighbours, Neighbour, Neighbour);
rows!(fdb, FdbEntry, Fdb);
rows!(routes, Route, Route);
rows!(nexthops, Nexthop, Nexthop);
rows!(rules, Rule, Rule);

const ALL_ROUTES: Dump = Dump::Routes {
    family: 0,
    table: None,
    link: None,
    protocol: None,
    kind: None,
};

const ALL_ADDRESSES: Dump = Dump::Addresses {
    family: 0,
    link: None,
};

type Encode<R> = fn(&mut Vec<u8>, &Request, &R) -> Result<(), TooLong>;

/// Sends one change; it must be acknowledged without an error.
fn change<R: Debug>(
    kernel: &mut Kernel,
    operation: Operation,
    flags: u16,
    encode: Encode<R>,
    row: &R,
) {
    let request = Request {
        operation,
        flags: flags | flag::ACK,
        sequence: kernel.next_sequence(),
        now_millis: NOW_MILLIS,
    };
    let mut bytes = Vec::new();
    encode(&mut bytes, &request, row).expect("a row that fits");
    kernel.send(&bytes);
    let answer = only(&kernel.receive());
    let Decoded::Error {
        errno, sequence, ..
    } = &answer
    else {
        panic!("not an acknowledgement: {answer:?}");
    };
    assert_eq!(
        (*errno, *sequence),
        (0, request.sequence),
        "{operation:?} {row:?}: {answer:?}"
    );
}

fn only(datagram: &[u8]) -> Decoded {
    let message = messages(datagram).next().expect("a message");
    decode(&message.expect("a message"), NOW_MILLIS).expect("a sound message")
}

/// Deletes the rows, the last first, and makes them again.
fn delete_and_make<R: Debug>(kernel: &mut Kernel, rows: &[R], flags: u16, encode: Encode<R>) {
    assert!(!rows.is_empty());
    for row in rows.iter().rev() {
        change(kernel, Operation::Delete, 0, encode, row);
    }
    for row in rows {
        change(kernel, Operation::New, flags | flag::CREATE, encode, row);
    }
}

/// Equal in any order, but for what moves by itself.
fn assert_same<R: Debug>(before: &[R], after: &[R]) {
    let sorted = |rows: &[R]| {
        let mut texts: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        texts.sort();
        texts
    };
    let (before, after) = (sorted(before), sorted(after));
    let missing: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
    let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
    assert_eq!((missing, new), (vec![], vec![]));
    assert_eq!(before.len(), after.len());
}

fn without_time(mut route: Route) -> Route {
    let until = &mut route.body.expires_at_millis;
    *until = until.map(|_| 0);
    route
}

#[test]
fn routes_are_made_again_as_they_were() {
    in_situation("routes", |kernel| {
        let read = |kernel: &mut Kernel| -> Vec<Route> {
            routes(kernel, ALL_ROUTES)
                .into_iter()
                .filter(|route| route.body.protocol != protocol::KERNEL)
                .collect()
        };
        let before = read(kernel);
        assert!(before.len() > 30, "{}", before.len());
        // One after the other, since deleting the way to a gateway makes
        // the kernel refuse routes through it.
        for route in &before {
            let one = std::slice::from_ref(route);
            delete_and_make(kernel, one, flag::APPEND, encode::route);
        }
        let time_apart = |rows: Vec<Route>| rows.into_iter().map(without_time).collect::<Vec<_>>();
        let after = read(kernel);
        assert_same(&time_apart(before), &time_apart(after));
    });
}

#[test]
fn what_the_kernel_tells_of_routes_has_a_field() {
    in_situation("typed", |kernel| {
        let rows = routes(kernel, ALL_ROUTES);
        let hops = rows.iter().flat_map(|row| row.body.next_hops.as_slice());
        let tunnels: Vec<_> = hops.filter_map(|hop| hop.encap.as_deref()).collect();
        for encap in &tunnels {
            assert!(encap.rest.is_empty(), "{encap:?}");
        }
        let metrics = rows.iter().filter_map(|row| row.body.metrics.as_deref());
        assert!(metrics.clone().count() >= 2);
        assert!(metrics.clone().all(|metrics| metrics.rest.is_empty()));
        assert!(rows.iter().all(|row| row.body.rest.is_empty()));
        for rule in rules(kernel, Dump::Rules { family: 0 }) {
            assert!(rule.rare.is_none_or(|rare| rare.rest.is_empty()));
        }
    });
}

#[test]
fn next_hop_objects_are_made_again_as_they_were() {
    in_situation("nexthops", |kernel| {
        let before = nexthops(kernel, Dump::Nexthops);
        assert!(before.len() >= 10, "{before:?}");
        assert!(before.iter().any(|row| row.resilient.is_some()));
        assert!(
            before
                .iter()
                .any(|row| row.group.iter().any(|m| m.weight > 1))
        );
        delete_and_make(kernel, &before, 0, encode::nexthop);
        assert_same(&before, &nexthops(kernel, Dump::Nexthops));
    });
}

#[test]
fn rules_are_made_again_as_they_were() {
    in_situation("rules", |kernel| {
        let read = |kernel: &mut Kernel| -> Vec<Rule> {
            rules(kernel, Dump::Rules { family: 0 })
                .into_iter()
                .filter(|rule| (1..32_766).contains(&rule.priority))
                .collect()
        };
        let before = read(kernel);
        assert!(before.len() >= 12, "{before:?}");
        delete_and_make(kernel, &before, flag::EXCL, encode::rule);
        assert_same(&before, &read(kernel));
    });
}

#[test]
fn neighbours_are_made_again_as_they_were() {
    in_situation("neighbours", |kernel| {
        for proxy in [false, true] {
            let dump = Dump::Neighbours {
                family: 0,
                link: None,
                master: None,
                proxy,
            };
            let lasting = neighbour::state::PERMANENT | neighbour::state::NOARP;
            let read = |kernel: &mut Kernel| -> Vec<Neighbour> {
                neighbours(kernel, dump)
                    .into_iter()
                    .filter(|row| proxy || row.state & lasting != 0)
                    .filter(|row| !row.address.is_multicast())
                    .collect()
            };
            let before = read(kernel);
            assert!(before.len() >= 2, "{before:?}");
            assert!(before.iter().all(|row| row.proxy == proxy));
            delete_and_make(kernel, &before, flag::EXCL, encode::neighbour);
            assert_same(&before, &read(kernel));
        }
    });
}

#[test]
fn forwarding_entries_are_made_again_as_they_were() {
    in_situation("fdb", |kernel| {
        let every = Dump::Fdb {
            link: None,
            master: None,
        };
        let ours = |row: &FdbEntry| row.lladdr.octets().starts_with(&[2, 0, 0, 0, 2]);
        let read = |kernel: &mut Kernel| -> Vec<FdbEntry> {
            fdb(kernel, every).into_iter().filter(ours).collect()
        };
        let before = read(kernel);
        assert!(before.len() >= 5, "{before:?}");
        delete_and_make(kernel, &before, 0, encode::fdb);
        assert_same(&before, &read(kernel));
    });
}

#[test]
fn addresses_are_made_again_as_they_were() {
    in_situation("addresses", |kernel| {
        let read = |kernel: &mut Kernel| -> Vec<Address> {
            let rows = addresses(kernel, ALL_ADDRESSES);
            let own = |row: &Address| !is_automatic(row);
            rows.into_iter().filter(own).collect()
        };
        // Whether DAD is over is a matter of time.
        let time_apart = |rows: Vec<Address>| -> Vec<Address> {
            let time_apart = |row: Address| Address {
                created_centisecs: 0,
                flags: row.flags & !address::flag::TENTATIVE,
                valid_until_millis: row.valid_until_millis.map(|_| 0),
                preferred_until_millis: row.preferred_until_millis.map(|_| 0),
                ..row
            };
            rows.into_iter().map(time_apart).collect()
        };
        let before = read(kernel);
        assert!(before.len() >= 10, "{before:?}");
        delete_and_make(kernel, &before, flag::EXCL, encode::address);
        let after = read(kernel);
        assert_same(&time_apart(before), &time_apart(after));
    });
}

/// The loopback's, and link-local ones of IPv6.
fn is_automatic(row: &Address) -> bool {
    match row.local {
        std::net::IpAddr::V4(v4) => v4.is_loopback(),
        std::net::IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

#[test]
fn links_are_set_and_deleted() {
    in_situation("links", |kernel| {
        let all = Dump::Links { counters: false };
        let named = |kernel: &mut Kernel, name: &str| -> Option<Link> {
            let found = |row: &Link| &*row.name == name;
            links(kernel, all).into_iter().find(found)
        };
        let before = named(kernel, "v3").expect("v3");
        let settings = LinkSettings {
            up: Some(false),
            name: Some("other".into()),
            mtu: Some(1400),
            group: Some(9),
            tx_queue_len: Some(55),
            alias: Some("set by a test".into()),
            address: table::LinkLayerAddress::new(&[2, 0, 0, 0, 9, 9]),
            ..LinkSettings::default()
        };
        fn set(
            out: &mut Vec<u8>,
            request: &Request,
            row: &(u32, LinkSettings),
        ) -> Result<(), TooLong> {
            encode::set_link(out, request, row.0, &row.1)
        }
        let row = (before.index, settings);
        change(kernel, Operation::New, 0, set, &row);
        let after = named(kernel, "other").expect("the new name");
        assert!(before.is_up() && !after.is_up());
        assert_eq!(
            (after.index, after.mtu, after.group),
            (before.index, 1400, 9)
        );
        assert_eq!(after.tx_queue_len, 55);
        assert_eq!(after.alias.as_deref(), Some("set by a test"));
        assert_eq!(after.address.to_string(), "02:00:00:00:09:09");
        change(kernel, Operation::Delete, 0, encode::link, &after);
        assert_eq!(named(kernel, "other"), None);
    });
}

#[test]
fn links_are_read_with_all_that_is_known_of_them() {
    in_situation("linkread", |kernel| {
        let rows = links(kernel, Dump::Links { counters: false });
        let named = |name: &str| rows.iter().find(|row| &*row.name == name).expect("a link");
        let v0 = named("v0");
        let alt_names: Vec<&str> = v0.alt_names.iter().map(|name| &**name).collect();
        assert_eq!(alt_names, ["uplink-to-the-first-switch", "second-name"]);
        assert_eq!(v0.kind.as_deref(), Some("veth"));
        assert_eq!((v0.lower, v0.group, v0.tx_queue_len), (Some(11), 5, 77));
        assert_eq!(v0.alias.as_deref(), Some("an alias"));
        assert_eq!(v0.address.to_string(), "02:00:00:00:00:01");
        assert_eq!(named("p0").slave_kind.as_deref(), Some("bridge"));
        assert_eq!(named("p0").master, Some(20));
        let PortData::Bridge(port) = &named("p0").slave_data else {
            panic!("{:?}", named("p0").slave_data);
        };
        assert_eq!((port.cost, port.designated_port), (Some(9), port.id));
        let KindData::Bridge(bridge) = &named("br0").kind_data else {
            panic!("{:?}", named("br0").kind_data);
        };
        assert_eq!(bridge.forward_delay, Some(1500));
        assert!(bridge.rest.is_empty() && port.rest.is_empty());
        assert_eq!(named("mv0").kind.as_deref(), Some("macvlan"));
        assert_eq!(named("mv0").lower, Some(12));
        assert_eq!(named("vx0").kind.as_deref(), Some("vxlan"));
        assert_eq!(named("mv0").promiscuity, 1);
        // The bridge's timers run, and are no part of the row.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_same(&rows, &links(kernel, Dump::Links { counters: false }));
    });
}

#[test]
fn dumps_are_filtered_by_the_kernel() {
    in_situation("filters", |kernel| {
        for dump in DUMPS {
            assert!(!items(kernel, *dump).is_empty(), "{dump:?}");
        }
        let some = |table, link, protocol, kind| Dump::Routes {
            family: 2,
            table,
            link,
            protocol,
            kind,
        };
        let of_table = routes(kernel, some(Some(10_000), None, None, None));
        assert!(!of_table.is_empty() && of_table.iter().all(|row| row.table == 10_000));
        let of_link = routes(kernel, some(None, Some(12), None, None));
        assert!(of_link.iter().all(|row| {
            let hops = row.body.next_hops.as_slice();
            hops.iter().any(|hop| hop.link == 12)
        }));
        assert!(!of_link.is_empty());
        let of_protocol = routes(kernel, some(None, None, Some(protocol::BGP), None));
        assert!(!of_protocol.is_empty());
        assert!(
            of_protocol
                .iter()
                .all(|row| row.body.protocol == protocol::BGP)
        );
        let blackholes = routes(kernel, some(None, None, None, Some(7)));
        assert!(!blackholes.is_empty() && blackholes.iter().all(|row| row.body.kind == 7));
        let nowhere = kernel.dump(some(Some(4_000_000), None, None, None));
        assert_eq!(nowhere.map(drop), Err(ENOENT));
        let of_link = Dump::Addresses {
            family: 0,
            link: Some(12),
        };
        let of_link = addresses(kernel, of_link);
        assert!(!of_link.is_empty() && of_link.iter().all(|row| row.link == 12));
        let of_link = Dump::Neighbours {
            family: 2,
            link: Some(10),
            master: None,
            proxy: false,
        };
        let of_link = neighbours(kernel, of_link);
        assert!(!of_link.is_empty());
        assert!(
            of_link
                .iter()
                .all(|row| row.link == 10 && row.address.is_ipv4())
        );
        let of_port = Dump::Fdb {
            link: Some(40),
            master: None,
        };
        let of_port = fdb(kernel, of_port);
        assert!(!of_port.is_empty() && of_port.iter().all(|row| row.link == 40));
        let of_bridge = Dump::Fdb {
            link: None,
            master: Some(20),
        };
        let of_bridge = fdb(kernel, of_bridge);
        assert!(!of_bridge.is_empty());
        assert!(
            of_bridge
                .iter()
                .all(|row| row.master == Some(20) || row.link == 20 || row.link == 21)
        );
    });
}

#[test]
fn counters_and_ages_come_when_asked_for() {
    in_situation("counters", |kernel| {
        let mut sizes = Vec::new();
        for counters in [false, true] {
            let datagrams = kernel.dump(Dump::Links { counters }).expect("a dump");
            sizes.push(datagrams.iter().map(Vec::len).sum::<usize>());
            for message in datagrams.iter().flat_map(|datagram| messages(datagram)) {
                let message = message.expect("a message");
                if decode::link_index(message.payload).is_some() {
                    assert!(decode::link_counters(message.payload).is_some());
                }
            }
        }
        assert!(sizes[0] < sizes[1], "{sizes:?}");
        let dump = Dump::Neighbours {
            family: 2,
            link: None,
            master: None,
            proxy: false,
        };
        let datagrams = kernel.dump(dump).expect("a dump");
        let mut ages = datagrams
            .iter()
            .flat_map(|datagram| messages(datagram).flatten())
            .filter_map(|message| decode::neighbour_ages(message.payload));
        // The situation ends with a wait of a second.
        assert!(ages.any(|ages| ages.updated_millis >= 1000));
    });
}

#[test]
fn single_questions_and_refusals() {
    in_situation("single", |kernel| {
        let ask = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            kernel.send(&bytes);
            only(&kernel.receive())
        };
        for name in ["v0", "uplink-to-the-first-switch", "second-name"] {
            let answer = ask(&|out| get_link_by_name(name, 1, out).expect("a short name"));
            let Decoded::Announcement(announcement) = answer else {
                panic!("{name}: {answer:?}");
            };
            assert!(matches!(announcement.item, Item::Link(link) if link.index == 10));
        }
        let answer = ask(&|out| get_link(21, 1, out));
        assert!(matches!(answer, Decoded::Announcement(_)), "{answer:?}");
        let answer = ask(&|out| get_link_by_name("nosuchlink", 7, out).expect("a short name"));
        let Decoded::Error {
            errno, sequence, ..
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!((errno, sequence), (ENODEV, 7));
        let to = "10.4.0.1".parse().expect("an address");
        let answer = ask(&|out| get_route(to, &RouteQuery::default(), 1, out));
        let Decoded::Announcement(announcement) = answer else {
            panic!("{answer:?}");
        };
        let Item::Route(route) = announcement.item else {
            panic!("not a route");
        };
        let cached = table::row::route::flag::CLONED;
        assert!(route.body.flags & cached != 0 && route.table == 254);
        // A message of the kernel says what is wrong with a request.
        let nonsense = Nexthop {
            id: 99,
            link: Some(10),
            blackhole: true,
            family: 2,
            ..Nexthop::default()
        };
        let request = Request {
            operation: Operation::New,
            flags: flag::CREATE | flag::ACK,
            sequence: 8,
            now_millis: NOW_MILLIS,
        };
        let answer =
            ask(&|out| encode::nexthop(out, &request, &nonsense).expect("a row that fits"));
        let Decoded::Error { errno, message, .. } = answer else {
            panic!("{answer:?}");
        };
        assert!(errno > 0 && message.is_some_and(|text| !text.is_empty()));
    });
}

#[test]
fn a_bridge_s_word_about_its_port_is_no_link() {
    let Some(netns) = skip::unless(Netns::new("port")) else {
        return;
    };
    netns
        .ip_batch("link add br0 type bridge\nlink add p0 index 21 type veth peer name p1\n")
        .expect("links");
    let seen = netns.inside(|| {
        let mut kernel = Kernel::open();
        kernel.listen();
        netns
            .ip(&["link", "set", "p0", "master", "br0"])
            .expect("a port");
        netns
            .ip(&["link", "set", "p0", "nomaster"])
            .expect("no port");
        let mut ports = 0;
        let mut deleted = 0;
        while let Some(datagram) = kernel.try_receive() {
            for message in messages(&datagram).flatten() {
                match decode(&message, NOW_MILLIS).expect("a sound message") {
                    Decoded::BridgePort { link } => {
                        assert_eq!(link, 21);
                        ports += 1;
                    }
                    Decoded::Announcement(announcement)
                        if matches!(announcement.item, Item::Link(_)) =>
                    {
                        deleted += u32::from(announcement.operation == Operation::Delete);
                    }
                    _ => {}
                }
            }
        }
        (ports, deleted)
    });
    let (ports, deleted) = seen.expect("work inside the namespace");
    assert!(ports >= 2, "{ports}");
    assert_eq!(deleted, 0, "taken for the end of the link");
}
