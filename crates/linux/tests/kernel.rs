//! Dumps and bulk changes against the kernel.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use std::time::Duration;

use fingerpost_linux::{Error, Mirror, Namespace, Options, Phase, bulk, dump};
use lab::{Netns, skip, wait_until};
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use netlink::request::Dump;
use table::row::neighbour::state;
use table::{Limits, LinkLayerAddress, Neighbour};

const PATIENCE: Duration = Duration::from_secs(10);

/// A namespace with a link `v`, and the link's index.
fn with_link(tag: &str) -> Option<(Netns, Namespace, u32)> {
    let netns = skip::unless(Netns::new(tag))?;
    netns
        .ip_batch("link add name v type veth peer name p\nlink set v up\nlink set p up\n")
        .unwrap();
    let namespace = Namespace::open(netns.name()).unwrap();
    let listed = netns.ip(&["-o", "link", "show", "v"]).unwrap();
    let index = listed.split(':').next().unwrap().trim().parse().unwrap();
    Some((netns, namespace, index))
}

fn neighbour(link: u32, host: u32) -> Neighbour {
    Neighbour {
        link,
        address: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + host)),
        proxy: false,
        lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
        state: state::PERMANENT,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

fn add(row: &Neighbour) -> impl FnOnce(u32, &mut Vec<u8>) {
    move |sequence, out| {
        let request = Request {
            operation: Operation::New,
            flags: flag::CREATE | flag::EXCL,
            sequence,
            now_millis: 0,
        };
        encode::neighbour(out, &request, row).unwrap();
    }
}

#[test]
fn each_refusal_is_told_by_its_place() {
    let Some((_netns, namespace, link)) = with_link("bulk") else {
        return;
    };
    let mut rows: Vec<Neighbour> = (0..700).map(|host| neighbour(link, host + 1)).collect();
    // Refused: the first, two around a pack's border, the last.
    let bad = [0usize, 127, 128, 400, 699];
    for at in bad {
        rows[at].link = 9_999;
    }
    let mut heard = Vec::new();
    let mut refused = Vec::new();
    bulk::apply(&namespace, rows.iter().map(add), &mut |at, result| {
        heard.push(at);
        if let Err(refusal) = result {
            assert!(!refusal.to_string().is_empty());
            refused.push(at);
        }
    })
    .unwrap();
    assert_eq!(heard, (0..700).collect::<Vec<_>>());
    assert_eq!(refused, bad);
    let mut listed = 0;
    let all = Dump::Neighbours {
        family: 2,
        link: Some(link),
        master: None,
        proxy: false,
    };
    let end = dump(&namespace, &all, &mut |_| {
        listed += 1;
        ControlFlow::Continue(())
    });
    assert!(!end.unwrap().broken_off);
    assert_eq!(listed, 695);
}

#[test]
fn a_long_dump_may_be_broken_off() {
    let Some((netns, namespace, _)) = with_link("break") else {
        return;
    };
    netns
        .ip(&["addr", "add", "10.0.0.1/8", "dev", "v"])
        .unwrap();
    let routes =
        (0..20_000).map(|n| format!("route add 172.{}.{}.0/24 dev v\n", 16 + n / 256, n % 256));
    netns.ip_batch(&routes.collect::<String>()).unwrap();
    let request = Dump::Routes {
        family: 2,
        table: None,
        link: None,
        protocol: None,
        kind: None,
    };
    for stop in [1, 1_000, 15_000] {
        let mut seen = 0;
        let end = dump(&namespace, &request, &mut |_| {
            seen += 1;
            if seen == stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(end.unwrap().broken_off);
        assert_eq!(seen, stop);
    }
    let mut seen = 0;
    dump(&namespace, &request, &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(seen >= 20_000, "{seen}");
}

#[test]
fn a_refused_dump_says_why() {
    let Some((_netns, namespace, _)) = with_link("refuse") else {
        return;
    };
    let of_no_link = Dump::Addresses {
        family: 2,
        link: Some(9_999),
    };
    let error = dump(&namespace, &of_no_link, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("No such device"), "{error}");
}

#[test]
fn a_full_table_keeps_what_it_has_and_says_so() {
    let Some((netns, namespace, link)) = with_link("full") else {
        return;
    };
    let rows: Vec<Neighbour> = (0..30).map(|host| neighbour(link, host + 1)).collect();
    bulk::apply(
        &namespace,
        rows.iter().take(10).map(add),
        &mut |_, result| result.unwrap(),
    )
    .unwrap();
    let options = Options {
        limits: Limits {
            neighbours: 20,
            ..Limits::default()
        },
        ..Options::default()
    };
    let mirror = Mirror::start(namespace.clone(), options).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    assert_eq!(mirror.status().full, None);
    bulk::apply(
        &namespace,
        rows.iter().skip(10).map(add),
        &mut |_, result| result.unwrap(),
    )
    .unwrap();
    let full = wait_until(PATIENCE, "the table to be full", || mirror.status().full).unwrap();
    assert!(full.contains("neighbours") && full.contains("20"), "{full}");
    assert_eq!(mirror.reader().snapshot().neighbours.len(), 20);
    drop(netns);
}

#[test]
fn a_deleted_namespace_ends_its_mirror() {
    let Some((netns, namespace, _)) = with_link("gone") else {
        return;
    };
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let links = mirror.reader().snapshot().links.len();
    drop(netns);
    let why = wait_until(PATIENCE, "the mirror to end", || {
        match mirror.status().phase {
            Phase::Ended(why) => Some(why),
            _ => None,
        }
    });
    assert!(why.unwrap().contains("gone"));
    assert_eq!(
        mirror.reader().snapshot().links.len(),
        links,
        "nothing is lost"
    );
}
