//! Samples of what stands beside the tables, against the kernel.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use fingerpost_linux::{Mirror, Namespace, Options, Phase};
use lab::{Netns, skip, wait_until};
use table::{Endpoint, Reach, Sampled};

const PATIENCE: Duration = Duration::from_secs(20);

/// A namespace with a pair of links, and a mirror of it.
fn mirrored(tag: &str) -> Option<(Netns, Mirror)> {
    let netns = skip::unless(Netns::new(tag))?;
    let made =
        "link set lo up\nlink add name v type veth peer name p\nlink set v up\nlink set p up\n";
    netns.ip_batch(made).unwrap();
    let namespace = Namespace::open(netns.name()).unwrap();
    let mirror = Mirror::start(namespace, Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    Some((netns, mirror))
}

#[test]
fn how_ip_is_set_and_duplex_are_sampled_while_somebody_reads() {
    let Some((netns, mirror)) = mirrored("ipif") else {
        return;
    };
    for (name, value) in [
        ("net/ipv4/neigh/v/retrans_time_ms", "1500"),
        ("net/ipv6/neigh/v/retrans_time_ms", "2500"),
        ("net/ipv6/conf/v/forwarding", "1"),
    ] {
        netns.sysctl(name, value).unwrap();
    }
    let before = mirror.reader().snapshot();
    assert_eq!(before.sampled_at_millis(Sampled::IpInterfaces), None);
    assert!(before.host.protocols.is_none() && before.host.machine.is_none());
    let link = before.links.by_name("v").unwrap().index;
    let tables = wait_until(PATIENCE, "samples", || {
        mirror.want(Sampled::IpInterfaces);
        mirror.want(Sampled::Links);
        let tables = mirror.reader().snapshot();
        let set = tables.host.ip_interfaces.get(&link).copied();
        // They are taken one after another, each at its own time.
        let is_taken = set.is_some_and(|set| set.forwards_v6)
            && tables.host.protocols.is_some()
            && tables.host.duplex.get(&link).is_some();
        is_taken.then_some(tables)
    });
    let tables = tables.unwrap();
    let set = tables.host.ip_interfaces.get(&link).unwrap();
    assert_eq!(set.v4.unwrap().retransmit_millis, 1_500);
    assert_eq!(set.v6.unwrap().retransmit_millis, 2_500);
    assert!(set.v6.unwrap().reachable_millis > 0);
    let peer = tables.links.by_name("p").unwrap().index;
    assert!(!tables.host.ip_interfaces.get(&peer).unwrap().forwards_v6);
    // DUPLEX_FULL, as a veth says; of the loopback nothing is known.
    let duplex = [link, 1].map(|link| tables.host.duplex.get(&link).copied());
    assert_eq!(duplex, [Some(1), None]);
}

#[test]
fn sockets_come_and_go_with_what_the_kernel_has() {
    let Some((netns, mirror)) = mirrored("socks") else {
        return;
    };
    let made = netns.inside(|| {
        let udp: Vec<UdpSocket> = (0..500)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        (TcpListener::bind("127.0.0.1:8080").unwrap(), udp)
    });
    let made = made.unwrap();
    assert_eq!(
        mirror
            .reader()
            .snapshot()
            .sampled_at_millis(Sampled::Sockets),
        None,
        "nobody has asked"
    );
    let listed = |wanted: usize| {
        wait_until(PATIENCE, "sockets", || {
            mirror.want(Sampled::Sockets);
            let sockets = mirror.reader().snapshot().host.sockets.clone();
            let is_taken = sockets.taken_at_millis.is_some();
            (is_taken && sockets.len() == wanted).then_some(sockets)
        })
        .unwrap()
    };
    let sockets = listed(501);
    let first = Endpoint {
        reach: Reach::Any,
        address: [0, 0, 0, 0].into(),
        zone: 0,
        port: 0,
    };
    let listeners: Vec<_> = sockets.listeners_from(first).collect();
    assert_eq!((listeners.len(), listeners[0].local.port), (1, 8_080));
    let udp: Vec<_> = sockets.udp_from((first, first, 0)).collect();
    assert!(udp.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!((udp.len(), sockets.left_out), (500, 0));
    drop(made);
    listed(0);
}
