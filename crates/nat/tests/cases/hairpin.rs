//! Helpers where both ends are inside and meet by an alias address: each end
//! has a flow of its own, and each flow its helper.

use std::net::Ipv4Addr;

use fingerpost_nat::rules::Redirect;
use fingerpost_nat::{Config, Nat, Verdict};
use packet::build::{Ip, Segment};
use packet::{Gre, Ipv4, Tcp, protocol, tcp};

use crate::trial::End;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const POOL: [Ipv4Addr; 4] = [
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(192, 0, 2, 200),
    Ipv4Addr::new(192, 0, 2, 31),
    Ipv4Addr::new(192, 0, 2, 4),
];
/// Changes of each side: more than a helper remembers at a time.
const ROUNDS: u16 = 40;

fn engine(addresses: &[Ipv4Addr], port: u16) -> Nat {
    let mut config = Config::new(addresses);
    config.ports = 1_024..=65_535;
    config.limits.initial_flows = 16;
    config.seed = 7;
    let mut nat = Nat::new(config).unwrap();
    let redirect = Redirect::port(protocol::TCP, SERVER, port, port);
    nat.rules_mut().insert(redirect.at(addresses[0])).unwrap();
    nat
}

/// One end of a connection, as TCP keeps it.
#[derive(Debug, Clone, Copy)]
struct Side {
    own: End,
    peer: End,
    next: u32,
    expected: u32,
}

/// A segment from inside that must turn back there: where it came to, and
/// from whom.
fn turn(nat: &mut Nat, from: &Side, flags: u8, data: &[u8]) -> (End, End, u32, u32, Vec<u8>) {
    let mut bytes = Ip::new(from.own.0, from.peer.0).tcp(&Segment {
        source_port: from.own.1,
        destination_port: from.peer.1,
        sequence: from.next,
        acknowledgement: from.expected,
        flags,
        window: u16::MAX,
        data,
        ..Segment::default()
    });
    bytes.resize(bytes.len() + 64, 0);
    let verdict = nat.translate_out(&mut bytes, 0);
    assert_eq!(verdict, Verdict::Hairpinned, "{from:?}");
    let ip = Ipv4::new(&bytes).unwrap();
    let tcp = Tcp::new(ip.payload()).unwrap();
    assert!(ip.checksum_is_right() && tcp.checksum_is_right(ip.pseudo_header()));
    (
        (ip.source(), tcp.source_port()),
        (ip.destination(), tcp.destination_port()),
        tcp.sequence(),
        tcp.acknowledgement(),
        tcp.payload().to_vec(),
    )
}

/// A handshake; both sides.
fn connect(nat: &mut Nat, from: End, to: End, reached: End) -> (Side, Side) {
    let mut client = Side {
        own: from,
        peer: to,
        next: u32::MAX - 100,
        expected: 0,
    };
    let (source, destination, sequence, ..) = turn(nat, &client, tcp::SYN, b"");
    assert_eq!(destination, reached);
    client.next = client.next.wrapping_add(1);
    let mut server = Side {
        own: reached,
        peer: source,
        next: 5_000,
        expected: sequence.wrapping_add(1),
    };
    let (source, destination, sequence, ..) = turn(nat, &server, tcp::SYN | tcp::ACK, b"");
    assert_eq!((source, destination), (to, from));
    server.next += 1;
    client.expected = sequence.wrapping_add(1);
    (client, server)
}

/// Says a line, which the other side takes as the next and acknowledges.
fn say(nat: &mut Nat, from: &mut Side, to: &mut Side, line: &str) -> String {
    let (source, destination, sequence, acknowledgement, data) =
        turn(nat, from, tcp::ACK | tcp::PSH, line.as_bytes());
    assert_eq!((source, destination), (to.peer, to.own));
    assert_eq!(sequence, to.expected, "in order: {line}");
    assert_eq!(acknowledgement, to.next, "all of it: {line}");
    from.next = from.next.wrapping_add(line.len() as u32);
    to.expected = to.expected.wrapping_add(data.len() as u32);
    let (_, _, sequence, acknowledgement, _) = turn(nat, to, tcp::ACK, b"");
    assert_eq!((sequence, acknowledgement), (from.expected, from.next));
    String::from_utf8(data).unwrap()
}

/// An endpoint between brackets or behind a command: `a,b,c,d,high,low`.
fn commas(text: &str) -> End {
    let digits = |c: char| !(c.is_ascii_digit() || c == ',');
    let numbers = text.split(digits).find(|word| word.contains(',')).unwrap();
    let numbers: Vec<u8> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
    let [a, b, c, d, high, low] = numbers[..] else {
        unreachable!("{text}");
    };
    (Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
}

#[test]
fn ftp_between_two_hosts_inside() {
    for addresses in [&POOL[..1], &POOL] {
        let mut nat = engine(addresses, 21);
        let door = (addresses[0], 21);
        let (mut client, mut server) = connect(&mut nat, (CLIENT, 3_000), door, (SERVER, 21));
        let seen_as = server.peer.0;
        let mut lengths = 0;
        for round in 0..ROUNDS {
            let port = 5_000 + round;
            let [high, low] = port.to_be_bytes();
            let nat = &mut nat;
            let line = format!("PORT 10,0,0,2,{high},{low}\r\n");
            let got = say(nat, &mut client, &mut server, &line);
            let to = commas(&got);
            assert_eq!(to.0, seen_as, "{got}");
            lengths += usize::from(got.len() != line.len());
            connect(nat, (SERVER, 20), to, (CLIENT, port));

            let line = format!("227 Entering Passive Mode (10,0,0,3,{high},{low}).\r\n");
            let got = say(nat, &mut server, &mut client, &line);
            let to = commas(&got);
            assert_eq!(to.0, door.0, "{got}");
            connect(nat, (CLIENT, 20_000 + round), to, (SERVER, port));

            let line = format!("EPRT |1|10.0.0.2|{}|\r\n", port + 1_000);
            let got = say(nat, &mut client, &mut server, &line);
            let parts: Vec<&str> = got.split('|').collect();
            let to: End = (parts[2].parse().unwrap(), parts[3].parse().unwrap());
            assert_eq!(to.0, seen_as, "{got}");
            connect(nat, (SERVER, 20), to, (CLIENT, port + 1_000));

            let line = format!("229 Extended Passive Mode (|||{}|)\r\n", port + 1_000);
            let got = say(nat, &mut server, &mut client, &line);
            let to = (door.0, got.split('|').nth(3).unwrap().parse().unwrap());
            connect(nat, (CLIENT, 30_000 + round), to, (SERVER, port + 1_000));
            assert_eq!(say(nat, &mut client, &mut server, "NOOP\r\n"), "NOOP\r\n");
        }
        assert!(lengths > 0, "some became longer");
    }
}

/// What gets nowhere is as it was, though a helper had written in it.
#[test]
fn a_line_to_a_server_that_is_gone() {
    let mut nat = engine(&POOL[..1], 21);
    let (client, server) = connect(&mut nat, (CLIENT, 3_000), (POOL[0], 21), (SERVER, 21));
    let (from, to) = (server.own, server.peer);
    let (from, to) = ((from.0.into(), from.1), (to.0.into(), to.1));
    assert!(nat.remove(fingerpost_nat::Direction::Out, protocol::TCP, from, to));
    let (redirect, ..) = nat.rules().next_from(0).unwrap();
    nat.rules_mut().remove(redirect).unwrap();
    let mut bytes = Ip::new(CLIENT, POOL[0]).tcp(&Segment {
        source_port: client.own.1,
        destination_port: 21,
        sequence: client.next,
        acknowledgement: client.expected,
        flags: tcp::ACK,
        data: b"PORT 10,0,0,2,9,9\r\n",
        ..Segment::default()
    });
    bytes.resize(bytes.len() + 64, 0xbe);
    let before = bytes.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::NoMapping);
    assert_eq!(bytes, before);
}

#[test]
fn a_pptp_call_between_two_hosts_inside() {
    let message = |kind: u16, own: u16, peer: u16| {
        let fields = [16, 1, 0x1a2b, 0x3c4d, kind, 0, own, peer];
        fields.map(u16::to_be_bytes).concat()
    };
    let number = |data: &[u8], at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    for addresses in [&POOL[..1], &POOL] {
        let mut nat = engine(addresses, 1_723);
        let door = (addresses[0], 1_723);
        let (mut client, mut server) = connect(&mut nat, (CLIENT, 3_000), door, (SERVER, 1_723));
        // Both sides choose the same identifier.
        let (_, _, _, _, request) = turn(&mut nat, &client, tcp::ACK, &message(7, 9, 0));
        client.next = client.next.wrapping_add(16);
        server.expected = server.expected.wrapping_add(16);
        let seen_by_server = number(&request, 12);
        let reply = message(8, 9, seen_by_server);
        let (_, _, _, _, reply) = turn(&mut nat, &server, tcp::ACK, &reply);
        assert_eq!(number(&reply, 14), 9, "the client's own");
        let seen_by_client = number(&reply, 12);
        for (from, to, call, reached) in [
            (CLIENT, client.peer.0, seen_by_client, SERVER),
            (SERVER, server.peer.0, seen_by_server, CLIENT),
        ] {
            let mut payload = vec![0x20, 0x01, 0x88, 0x0b, 0, 0];
            payload.extend(call.to_be_bytes());
            let mut bytes = Ip::new(from, to).packet(protocol::GRE, &[], &payload);
            assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Hairpinned);
            let ip = Ipv4::new(&bytes).unwrap();
            assert!(ip.checksum_is_right());
            assert_eq!(ip.destination(), reached);
            assert!(addresses.contains(&ip.source()));
            assert_eq!(Gre::new(ip.payload()).unwrap().call_id(), Some(9));
        }
    }
}
