//! Connections and questions through it, and what becomes of their flows.

use std::net::UdpSocket;
use std::time::Duration;

use lab::wait_until;

use crate::common::PATIENCE;
use crate::nat::sockets::{Call, Server, ask, asking, bytes};
use crate::nat::{ALIAS, FAR, Natted, Seen, Sums, natted, until_flows};
use crate::place::Router;

const MEGABYTES: usize = 4 << 20;

/// Some megabytes there and back; then the connection ends.
fn transfer(place: &Natted) {
    let _server = Server::tcp(&place.outside, "0.0.0.0:80");
    let mut call = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    assert_eq!(call.seen.ip().to_string(), ALIAS);
    call.echo(&bytes(MEGABYTES)).unwrap();
    call.close().unwrap();
}

/// Questions that are answered, of a flow that lasts (DNS is the engine's).
fn questions(place: &Natted) {
    let _server = Server::udp(&place.outside, "198.51.100.2:9000");
    let socket = asking(&place.inside, &format!("{FAR}:9000"));
    let first = ask(&socket, b"first").unwrap();
    assert_eq!(first.ip().to_string(), ALIAS);
    for number in 0..200_u32 {
        assert_eq!(ask(&socket, &number.to_be_bytes()).unwrap(), first);
    }
}

/// Packets of both ports that became of something.
fn packets(router: &Router, reason: &str) -> [u64; 2] {
    ["lan", "wan"].map(|port| router.packets(port, reason))
}

#[test]
fn tcp_is_translated_at_xdp() {
    let Some(place) = natted("xntcp", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    transfer(&place);
    let reasons = router.ask("reasons").unwrap();
    for (translated, engine) in packets(&router, "translated")
        .into_iter()
        .zip(packets(&router, "engine"))
    {
        assert!(translated > 100 && engine < 20, "{reasons}");
    }
    until_flows(&router, 0);
}

#[test]
fn udp_is_translated_at_xdp() {
    let Some(place) = natted("xnudp", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    questions(&place);
    let reasons = router.ask("reasons").unwrap();
    for (translated, engine) in packets(&router, "translated")
        .into_iter()
        .zip(packets(&router, "engine"))
    {
        assert!(translated > 190 && engine < 10, "{reasons}");
    }
    until_flows(&router, 1);
}

#[test]
fn unfinished_checksums_are_finished_by_the_engine() {
    let Some(place) = natted("xnsum", Sums::Unfinished) else {
        return;
    };
    let router = place.start(&[]);
    transfer(&place);
    questions(&place);
    let reasons = router.ask("reasons").unwrap();
    let engine = packets(&router, "engine");
    assert!(engine.iter().all(|packets| *packets > 300), "{reasons}");
    for host in [&place.inside, &place.outside] {
        let sums = host
            .run("nstat", &["-asz", "TcpInCsumErrors", "UdpInCsumErrors"])
            .unwrap();
        let errors = sums.lines().filter(|line| line.contains("CsumErrors"));
        for line in errors {
            assert_eq!(line.split_whitespace().nth(1), Some("0"), "{sums}");
        }
    }
}

#[test]
fn a_reset_ends_a_flow() {
    let Some(place) = natted("xnrst", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    let _server = Server::tcp(&place.outside, "0.0.0.0:80");
    let mut call = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    call.echo(&bytes(10_000)).unwrap();
    until_flows(&router, 1);
    call.reset();
    until_flows(&router, 0);
}

#[test]
fn a_redirect_lets_in_and_nothing_else_does() {
    let Some(place) = natted("xnred", Sums::Finished) else {
        return;
    };
    place.rules("alias_address 192.0.2.1\nredirect_port tcp 10.0.0.2:80 8080\n");
    let router = place.start(&[]);
    let _server = Server::tcp(&place.inside, "0.0.0.0:80");
    let _other = Server::udp(&place.inside, "0.0.0.0:53");
    let mut call = Call::open(&place.outside, "192.0.2.1:8080").unwrap();
    assert_eq!(call.seen.ip().to_string(), "192.0.2.2");
    call.echo(&bytes(1 << 20)).unwrap();
    call.close().unwrap();
    until_flows(&router, 0);
    let reasons = router.ask("reasons").unwrap();
    for translated in packets(&router, "translated") {
        assert!(translated > 30, "{reasons}");
    }
    // Others than the router's own words.
    let seen = Seen::at(
        &place.inside,
        place.directory.path(),
        "ip and not src 10.0.0.1",
    );
    let brief = Duration::from_millis(700);
    for to in ["192.0.2.1:80", "10.0.0.2:80", "10.0.0.2:8080"] {
        let error = Call::within(&place.outside, to, brief)
            .map(drop)
            .unwrap_err();
        assert!(error.kind() != std::io::ErrorKind::Other, "{to}: {error}");
    }
    for to in ["192.0.2.1:53", "10.0.0.2:53"] {
        let socket = asking(&place.outside, to);
        socket.set_read_timeout(Some(brief)).unwrap();
        assert!(ask(&socket, b"unasked").is_err(), "{to}");
    }
    let pinged = ["-c2", "-i0.2", "-W1", "10.0.0.2"];
    assert!(place.outside.run("ping", &pinged).is_err());
    assert_eq!(seen.end(), "");
}

/// A host inside by the alias address: its packets turn back.
#[test]
fn a_redirect_is_reached_from_inside_as_well() {
    for (tag, sums) in [("xnhair", Sums::Finished), ("xnhaiu", Sums::Unfinished)] {
        let Some(place) = natted(tag, sums) else {
            return;
        };
        place.rules("alias_address 192.0.2.1\nredirect_port tcp 10.0.0.2:80 8080\n");
        let _router = place.start(&[]);
        let _server = Server::tcp(&place.inside, "0.0.0.0:80");
        let mut call = Call::open(&place.inside, "192.0.2.1:8080").unwrap();
        assert_eq!(call.seen.ip().to_string(), ALIAS);
        call.echo(&bytes(100_000)).unwrap();
        call.close().unwrap();
    }
}

/// Linux forwards to and from addresses that are for nothing.
#[test]
fn reserved_addresses_are_translated_as_well() {
    let Some(place) = natted("xnres", Sums::Finished) else {
        return;
    };
    for (netns, line) in [
        (&place.router, "route add default via 192.0.2.2\n"),
        (&place.outside, "addr add 240.0.0.9/32 dev lo\n"),
    ] {
        netns.ip_batch(line).unwrap();
    }
    let _router = place.start(&[]);
    let out = Seen::at(&place.outside, place.directory.path(), "udp");
    let comes_in = Seen::at(&place.inside, place.directory.path(), "udp");
    for to in ["240.0.0.1:9", "0.1.2.3:9", "198.51.100.2:9"] {
        let socket = asking(&place.inside, to);
        socket.send(b"out").unwrap();
    }
    let bind = || UdpSocket::bind("240.0.0.9:9");
    let socket = place.outside.inside(bind).unwrap().unwrap();
    socket.send_to(b"in", "10.0.0.2:9").unwrap();
    wait_until(PATIENCE, "packets", || {
        (out.so_far().lines().count() >= 3).then_some(())
    })
    .unwrap();
    let out = out.end();
    assert!(out.lines().all(|line| line.contains(ALIAS)), "{out}");
    assert_eq!(comes_in.end(), "");
}

/// What the kernel would do beside routing it does behind the engine.
#[test]
fn with_an_obstacle_all_goes_by_the_engine() {
    let Some(place) = natted("xnobst", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    let _server = Server::udp(&place.outside, "198.51.100.2:9000");
    let socket = asking(&place.inside, &format!("{FAR}:9000"));
    let from = ask(&socket, b"first").unwrap();
    until_flows(&router, 1);
    let nft = |line: &str| place.router.run("nft", &[line]).unwrap();
    nft("add table ip slow");
    nft("add chain ip slow on { type filter hook forward priority 0; }");
    nft("add rule ip slow on counter accept");
    router.until_told("nft", true);
    let count = || {
        [
            router.packets("lan", "translated"),
            router.packets("lan", "engine"),
        ]
    };
    let before = count();
    for _ in 0..10 {
        assert_eq!(ask(&socket, b"again").unwrap(), from);
    }
    let after = count();
    assert_eq!([after[0], after[1] - before[1]], [before[0], 10]);
    nft("delete table ip slow");
    router.until_told("nft", false);
    let before = count();
    assert_eq!(ask(&socket, b"fast").unwrap(), from);
    assert_eq!(count(), [before[0] + 1, before[1]]);
}

/// The kernel would not see it behind the engine.
#[test]
fn a_source_without_a_way_back_goes_nowhere() {
    let Some(place) = natted("xnspoof", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    place
        .inside
        .ip(&["addr", "add", "172.16.9.9/32", "dev", "lo"])
        .unwrap();
    let socket = place
        .inside
        .inside(|| UdpSocket::bind("172.16.9.9:0").unwrap())
        .unwrap();
    let seen = Seen::at(&place.outside, place.directory.path(), "udp port 9000");
    socket.send_to(b"from nowhere", (FAR, 9_000)).unwrap();
    wait_until(PATIENCE, "a packet that was dropped", || {
        (router.packets("lan", "bad-source") == 1).then_some(())
    })
    .unwrap();
    assert_eq!(seen.end(), "");
}
