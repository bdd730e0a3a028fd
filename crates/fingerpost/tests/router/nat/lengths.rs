//! Packets that are too long, fragments, and who is told on the way.

use lab::{Netns, skip, wait_until};

use crate::common::PATIENCE;
use crate::nat::sockets::{Call, Server, ask, asking, bytes};
use crate::nat::{ALIAS, FAR, Natted, Seen, Sums, natted};
use crate::place::forward;

/// A long packet that may not be cut, from inside to the far one: it does not
/// get there, and the MTU that is known then.
fn mtu_by_ping(place: &Natted) -> String {
    let long = ["-c1", "-W1", "-Mdo", "-s1472", FAR];
    assert!(place.inside.run("ping", &long).is_err());
    place.inside.ip(&["route", "get", FAR]).unwrap()
}

/// A host behind outside, by a link of 1,400 bytes; it has the far address.
fn farther(place: &Natted, tag: &str) -> Option<Netns> {
    let far = skip::unless(Netns::new(tag))?;
    let lines = format!(
        "addr del 198.51.100.2/32 dev lo\n\
         link add far mtu 1400 type veth peer name eth0 mtu 1400 netns {}\n\
         addr add 198.51.100.1/24 dev far\nlink set far up\n",
        far.name()
    );
    place.outside.ip_batch(&lines).unwrap();
    far.run("ethtool", &["-K", "eth0", "tx", "off"]).unwrap();
    let lines = "addr add 198.51.100.2/24 dev eth0\nlink set eth0 up\n\
                 route add default via 198.51.100.1 advmss 1460\n";
    far.ip_batch(lines).unwrap();
    forward(&place.outside);
    Some(far)
}

/// What inside knows of the way to an address.
fn known(place: &Natted, to: &str) -> String {
    place.inside.ip(&["route", "get", to]).unwrap()
}

/// A datagram and a connection find the MTU of the way, each to an address of
/// its own. `servers` has both, and announces longer segments than fit.
fn finds_the_mtu(place: &Natted, servers: &Netns) {
    let lines = "addr add 198.51.100.3/32 dev lo\naddr add 198.51.100.4/32 dev lo\n";
    servers.ip_batch(lines).unwrap();
    let _udp = Server::udp(servers, "198.51.100.3:9000");
    let socket = asking(&place.inside, "198.51.100.3:9000");
    ask(&socket, b"short").unwrap();
    // Linux says that it may not be cut, until it knows better.
    let long = bytes(1_472);
    socket.send(&long).unwrap();
    wait_until(PATIENCE, "the MTU by UDP", || {
        known(place, "198.51.100.3")
            .contains("mtu 1400")
            .then_some(())
    })
    .unwrap();
    // It is told to the socket, and then cut.
    let _ = ask(&socket, &long);
    ask(&socket, &long).unwrap();
    let _tcp = Server::tcp(servers, "0.0.0.0:80");
    let mut call = Call::open(&place.inside, "198.51.100.4:80").unwrap();
    call.echo(&bytes(1 << 20)).unwrap();
    call.close().unwrap();
    let found = known(place, "198.51.100.4");
    assert!(found.contains("mtu 1400"), "by TCP: {found}");
}

#[test]
fn a_way_too_narrow_at_the_router_is_told() {
    let Some(place) = natted("xnmtu", Sums::Finished) else {
        return;
    };
    let narrow = ["link", "set", "wan", "mtu", "1400"];
    place.router.ip(&narrow).unwrap();
    let lines = "link set eth0 mtu 1400\n\
                 route change 192.0.2.0/24 dev eth0 src 192.0.2.2 advmss 1460\n";
    place.outside.ip_batch(lines).unwrap();
    let router = place.start(&[]);
    assert!(mtu_by_ping(&place).contains("mtu 1400"));
    finds_the_mtu(&place, &place.outside);
    assert!(router.packets("lan", "too-big") > 0);
}

#[test]
fn a_way_too_narrow_farther_out_is_told() {
    let Some(place) = natted("xnfar", Sums::Finished) else {
        return;
    };
    let Some(far) = farther(&place, "xnfarf") else {
        return;
    };
    let _router = place.start(&[]);
    assert!(mtu_by_ping(&place).contains("mtu 1400"));
    finds_the_mtu(&place, &far);
}

/// The kernel forwards by its links' MTUs, whatever the router has found out
/// for itself of the way.
#[test]
fn what_is_longer_than_the_router_s_own_way_is_translated() {
    let Some(place) = natted("xnown", Sums::Finished) else {
        return;
    };
    let Some(_far) = farther(&place, "xnownf") else {
        return;
    };
    let _router = place.start(&[]);
    let own = asking(&place.router, &format!("{FAR}:9000"));
    own.send(&bytes(1_472)).unwrap();
    wait_until(PATIENCE, "the router's own MTU", || {
        let known = place.router.ip(&["route", "get", FAR]).unwrap();
        known.contains("mtu 1400").then_some(())
    })
    .unwrap();
    let seen = Seen::at(&place.outside, place.directory.path(), "icmp[0] == 8");
    let known = mtu_by_ping(&place);
    let seen = seen.end();
    assert!(seen.contains(ALIAS), "{seen}");
    assert!(known.contains("mtu 1400"), "{known}");
}

#[test]
fn the_way_outside_is_traced() {
    let Some(place) = natted("xntrace", Sums::Finished) else {
        return;
    };
    let Some(_far) = farther(&place, "xntracef") else {
        return;
    };
    let _router = place.start(&[]);
    for kind in [&["-n"][..], &["-n", "-I"]] {
        let arguments = [kind, &["-q1", "-w3", FAR]].concat();
        let shown = place.inside.run("traceroute", &arguments).unwrap();
        let hops: Vec<&str> = shown.lines().skip(1).collect();
        assert!(hops.len() == 3, "{shown}");
        for (hop, address) in hops.iter().zip(["10.0.0.1", "192.0.2.2", FAR]) {
            assert!(hop.contains(address), "{shown}");
        }
    }
}

#[test]
fn fragments_are_translated() {
    for (tag, sums) in [("xnfrag", Sums::Finished), ("xnfrau", Sums::Unfinished)] {
        let Some(place) = natted(tag, sums) else {
            return;
        };
        let _router = place.start(&[]);
        let _server = Server::udp(&place.outside, "198.51.100.2:9000");
        let socket = asking(&place.inside, &format!("{FAR}:9000"));
        for _ in 0..5 {
            let seen = ask(&socket, &bytes(4_000)).unwrap();
            assert_eq!(seen.ip().to_string(), ALIAS);
        }
    }
}
