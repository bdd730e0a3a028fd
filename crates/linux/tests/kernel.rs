//! Dumps and bulk changes against the kernel.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fingerpost_linux::{Error, Mirror, Namespace, Options, Phase, bulk, dump};
use lab::{Netns, skip, wait_until};
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use netlink::request::Dump;
use table::row::neighbour::state;
use table::{IpPlace, IpSettings, Limits, LinkLayerAddress, Neighbour, Source};

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

/// A counter of `/proc/net/snmp6` or `dev_snmp6/LINK`.
fn counter(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    let mut found = words.find_map(|mut line| (line.next()? == name).then_some(line))?;
    found.next()?.parse().ok()
}

#[test]
fn what_ip_counted_is_sampled_while_somebody_reads() {
    let Some((netns, namespace, link)) = with_link("ipstat") else {
        return;
    };
    netns.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
    netns
        .sysctl("net/ipv6/conf/default/hop_limit", "61")
        .unwrap();
    netns.sysctl("net/ipv4/ip_default_ttl", "63").unwrap();
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let before = mirror.reader().snapshot();
    assert_eq!(before.ip_counters.taken_at_millis, None, "nobody has asked");
    assert_eq!(before.ip_settings, None);
    // Two ends that both speak IPv6: there is something to count.
    let as_counted = wait_until(PATIENCE, "a sample like the kernel's own files", || {
        mirror.want(table::Sampled::Links);
        let tables = mirror.reader().snapshot();
        let of = |link| {
            tables
                .ip_counters
                .get(&IpPlace { family: 10, link })
                .copied()
        };
        let (all, one) = (of(0)?, of(link)?);
        let read = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            netns
                .inside(|| std::fs::read_to_string(path))
                .unwrap()
                .unwrap()
        };
        let (system, device) = (read("snmp6"), read("dev_snmp6/v"));
        let sampled = [
            all.in_receives,
            all.out_multicast_octets,
            one.out_requests,
            one.out_octets,
        ];
        let told = [
            counter(&system, "Ip6InReceives")?,
            counter(&system, "Ip6OutMcastOctets")?,
            counter(&device, "Ip6OutRequests")?,
            counter(&device, "Ip6OutOctets")?,
        ];
        (sampled == told && one.out_octets > 0).then_some(tables)
    });
    let tables = as_counted.unwrap();
    let v4 = tables.ip_counters.get(&IpPlace { family: 2, link: 0 });
    assert!(v4.is_some_and(|all| all.in_no_routes == 0));
    let expected = IpSettings {
        v4_forwarding: false,
        v4_default_ttl: 63,
        v4_reassembly_secs: 30,
        v6_forwarding: true,
        v6_hop_limit: 61,
    };
    assert_eq!(tables.ip_settings, Some(expected));
}

#[test]
fn counters_are_read_of_the_links_that_somebody_reads() {
    let Some((netns, namespace, link)) = with_link("some") else {
        return;
    };
    let others: String = (0..200)
        .map(|other| format!("link add i{other} type ifb\n"))
        .collect();
    netns.ip_batch(&others).unwrap();
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let samples = mirror.samples().unwrap();
    let wanted = |links: &[u32]| {
        let mut ranges = table::LinkRanges::default();
        links.iter().for_each(|&link| ranges.add(link));
        samples.want_counters(&ranges);
    };
    // The link has sent what the kernel's own list says, by the end of it.
    let counted = |index: u32| -> u64 {
        let text = netns.ip(&["-s", "-j", "link"]).unwrap();
        let links: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut links = links.as_array().unwrap().iter();
        let link = links.find(|link| link["ifindex"] == index).unwrap();
        link["stats64"]["tx"]["bytes"].as_u64().unwrap()
    };
    let before = counted(link);
    let since = Instant::now();
    let tables = wait_until(PATIENCE, "counters of one link", || {
        wanted(&[link]);
        let tables = mirror.reader().snapshot();
        let at = tables.counted_alone.get(&link)?.at?;
        (at > since).then_some(tables)
    });
    let tables = tables.unwrap();
    let sent = tables.counters_of(link).unwrap().tx_bytes;
    assert!(before <= sent && sent <= counted(link));
    let alone: Vec<u32> = tables.counted_alone.iter().map(|(link, _)| *link).collect();
    assert_eq!(alone, [link]);
    assert_eq!(tables.link_counters.taken_at_millis, None);
    // Of one that is not there nothing comes, and others are not kept
    // waiting for it; where most are wanted all are read at once.
    wanted(&[link, 1_000_000]);
    let all: Vec<u32> = tables.links.iter().map(|row| row.index).collect();
    let tables = wait_until(PATIENCE, "counters of all links", || {
        wanted(&all);
        samples.begun(table::Sampled::Counters)?;
        Some(mirror.reader().snapshot())
    });
    let tables = tables.unwrap();
    assert!(all.iter().all(|&link| tables.counters_of(link).is_some()));
    assert!(tables.counted_alone.is_empty());
    // One that comes has its counters with its row.
    netns.ip(&["link", "add", "last", "type", "ifb"]).unwrap();
    let tables = wait_until(PATIENCE, "the new link", || {
        let tables = mirror.reader().snapshot();
        let row = tables.links.iter().find(|row| &*row.name == "last")?;
        Some((row.index, tables.clone()))
    });
    let (last, tables) = tables.unwrap();
    assert!(tables.counters_of(last).is_some());
}

#[test]
fn counters_of_a_listing_of_links_have_each_its_time() {
    let Some((_netns, namespace, link)) = with_link("times") else {
        return;
    };
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let samples = mirror.samples().unwrap();
    samples.want(table::Sampled::Links, Instant::now());
    wait_until(PATIENCE, "a listing of links", || {
        samples.begun(table::Sampled::Links)
    })
    .unwrap();
    // Behind the begin: the listing may have waited for the lock of links.
    let at = mirror.reader().snapshot().counted_of(link).unwrap().at;
    assert!(at > samples.begun(table::Sampled::Counters) && at <= Some(Instant::now()));
}

/// A namespace that goes holds the kernel's lock of links for as long as its
/// links take, and who asks for counters waits for it.
#[test]
fn counters_come_while_the_kernel_s_lock_of_links_is_held() {
    let Some((netns, namespace, link)) = with_link("held") else {
        return;
    };
    let counted = || -> u64 {
        let text = netns.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let text = text.unwrap().unwrap();
        let line = text.lines().find(|line| line.contains("v:")).unwrap();
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    };
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let samples = mirror.samples().unwrap();
    let mut wanted = table::LinkRanges::default();
    wanted.add(link);
    // What it goes on from.
    wait_until(PATIENCE, "counters of the link", || {
        samples.want_counters(&wanted);
        mirror.reader().snapshot().counters_of(link).map(drop)
    })
    .unwrap();
    let links: String = (0..2_000)
        .map(|other| format!("link add n{other} type ifb\n"))
        .collect();
    let going = std::sync::atomic::AtomicBool::new(true);
    let (before, beside) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while going.load(std::sync::atomic::Ordering::Acquire) {
                let other = Netns::new("holds").unwrap();
                other.ip_batch(&links).unwrap();
            }
        });
        let before = counted();
        let beside = wait_until(PATIENCE, "counters beside the mirror", || {
            samples.want_counters(&wanted);
            samples.beside()
        });
        going.store(false, std::sync::atomic::Ordering::Release);
        (before, beside.unwrap())
    });
    let link = beside.links.get(&link).unwrap();
    assert!(link.at >= Some(beside.begun));
    let sent = link.counters.tx_bytes;
    assert!(before <= sent && sent <= counted(), "{before} {sent}");
}

#[test]
fn speeds_are_sampled_while_somebody_reads_counters() {
    let Some((netns, namespace, link)) = with_link("speed") else {
        return;
    };
    netns.ip_batch("link add name br0 type bridge\n").unwrap();
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let before = mirror.reader().snapshot();
    assert_eq!(before.link_speeds.taken_at_millis, None, "nobody has asked");
    let tables = wait_until(PATIENCE, "a sample", || {
        mirror.want(table::Sampled::Links);
        mirror.samples()?.begun(table::Sampled::Links)?;
        Some(mirror.reader().snapshot())
    })
    .unwrap();
    // They are there for whoever waited: a veth's, as the driver says,
    // and none of what has none (a bridge without ports, the loopback).
    let all: Vec<_> = tables.link_speeds.from(&0).collect();
    assert!(all.contains(&(&link, &10_000)), "{all:?}");
    let bridge = tables.links.iter().find(|row| &*row.name == "br0").unwrap();
    let unknown = [1, bridge.index].map(|link| tables.link_speeds.get(&link));
    assert_eq!(unknown, [None, None]);
}

#[test]
fn a_mirror_that_is_abandoned_ends_by_itself() {
    let Some(netns) = skip::unless(Netns::new("abandoned")) else {
        return;
    };
    let namespace = Namespace::open(netns.name()).unwrap();
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    mirror.abandon();
    let ended = wait_until(PATIENCE, "the end", || {
        matches!(mirror.status().phase, Phase::Ended(_)).then_some(())
    });
    ended.unwrap();
}
