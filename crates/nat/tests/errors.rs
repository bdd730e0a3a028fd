//! ICMP errors about flows that have something beside them: proxies of every
//! kind, helpers that have moved TCP's numbers, PPTP's calls, two hosts
//! inside that meet by an alias address. Held against what the ends sent and
//! got: whoever hears an error has the packet inside as it knows it. Random
//! steps, packets of any length quoted to any length; all checksums are
//! verified by another crate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use std::net::Ipv4Addr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use fingerpost_nat::rules::{ProxyWord, Redirect, parse_proxy};
use fingerpost_nat::{Config, Nat, Verdict};
use lab::Random;
use packet::build::{Ip, Segment};
use packet::{Ipv4, icmp, protocol, tcp};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const PROXY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 99);
const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 200);
/// Room behind each packet; what is not used of it stays.
const ROOM: [u8; 64] = [0xbe; 64];
/// Of a quote that has so much of TCP, half a checksum is there, and stays.
const HALF_A_SUM: usize = 17;
const ROUNDS: u64 = 300;

/// A connection as one of its ends sees it, and where the other is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// To a proxy that is not told.
    Proxied,
    /// Told in the stream.
    Stream,
    /// Told by an IP option.
    Option,
    /// With an FTP helper that changed the length of something.
    Ftp,
}

struct World {
    nat: Nat,
    random: Random,
    errors: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut config = Config::new(&[ALIAS]);
        config.limits.initial_flows = 0;
        config.seed = seed;
        let mut nat = Nat::new(config).unwrap();
        for text in [
            "port 80 server 198.51.100.99:3128",
            "type encode_tcp_stream port 81 server 198.51.100.99:3129",
            "type encode_ip_hdr port 82 server 198.51.100.99",
            "type encode_ip_hdr proto udp port 82 server 198.51.100.99",
        ] {
            let Ok(ProxyWord::Add(rule)) = parse_proxy(text) else {
                panic!("{text}");
            };
            nat.rules_mut().add_proxy(rule).unwrap();
        }
        for port in [21, 1_723, 9_000] {
            let redirect = Redirect::port(protocol::TCP, NEIGHBOUR, port, port);
            nat.rules_mut().insert(redirect).unwrap();
        }
        let random = Random::new(seed);
        Self {
            nat,
            random,
            errors: 0,
        }
    }

    /// Through the engine; what came out, and how.
    fn pass(&mut self, out: bool, packet: &[u8]) -> (Verdict, Vec<u8>) {
        let mut bytes = [packet, &ROOM].concat();
        let verdict = if out {
            self.nat.translate_out(&mut bytes, 0)
        } else {
            self.nat.translate_in(&mut bytes, 0)
        };
        let len = Ipv4::new(&bytes).unwrap().total_len();
        bytes.truncate(len);
        check(&bytes);
        (verdict, bytes)
    }

    fn passes(&mut self, out: bool, packet: &[u8], verdict: Verdict) -> Vec<u8> {
        let (said, bytes) = self.pass(out, packet);
        assert_eq!(said, verdict, "{packet:?}");
        bytes
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    /// An error of `from` about a packet that had become `after`, on the way
    /// to who had sent it: to whom it goes, from whom, and what it quotes.
    fn error(
        &mut self,
        out: bool,
        from: Ipv4Addr,
        after: &[u8],
        verdict: Verdict,
    ) -> (Ipv4Addr, Ipv4Addr, Vec<u8>) {
        let least = Ipv4::new(after).unwrap().header_len() + 8;
        let mut cut = least + self.below(after.len() - least + 1);
        cut -= usize::from(cut + 8 == least + HALF_A_SUM);
        let to = Ipv4::new(after).unwrap().source();
        let error = Ip::new(from, to).icmp(icmp::UNREACHABLE, 4, [0, 0, 5, 0], &after[..cut]);
        let heard = self.passes(out, &error, verdict);
        let ip = Ipv4::new(&heard).unwrap();
        self.errors += 1;
        (ip.destination(), ip.source(), ip.payload()[8..].to_vec())
    }
}

/// All checksums of a packet, that is whole, are right.
fn check(bytes: &[u8]) {
    let packet = SlicedPacket::from_ip(bytes).expect("a sound packet");
    let Some(NetSlice::Ipv4(ip)) = &packet.net else {
        panic!("no IPv4");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    let (from, to) = (header.source, header.destination);
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let right = tcp.calc_checksum_ipv4(from, to).unwrap();
            assert_eq!(tcp.checksum(), right, "a TCP checksum");
        }
        Some(TransportSlice::Udp(udp)) => {
            let right = udp.to_header();
            let right = right.calc_checksum_ipv4_raw(from, to, udp.payload());
            assert_eq!(udp.checksum(), right.unwrap(), "a UDP checksum");
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            let right = icmp.icmp_type().calc_checksum(icmp.payload());
            assert_eq!(icmp.checksum(), right, "an ICMP checksum");
            let inner = Ipv4::parse_truncated(icmp.payload()).unwrap();
            assert!(inner.checksum_is_right(), "an inner header's checksum");
        }
        _ => {}
    }
}

/// A connection of the client, with numbers of its own.
struct Connection {
    kind: Kind,
    ports: (u16, u16),
    numbers: (u32, u32),
    /// Where its packets go, and come from.
    server: (Ipv4Addr, u16),
    alias_port: u16,
    /// What the far end has of the client's bytes.
    far: u32,
}

impl Connection {
    fn segment(&self, out: bool, flags: u8, data: &[u8]) -> Vec<u8> {
        let (near, far) = (self.numbers.0, self.numbers.1);
        let (ip, ports, numbers) = if out {
            (Ip::new(CLIENT, REMOTE), self.ports, (near, far))
        } else {
            let ports = (self.server.1, self.alias_port);
            (Ip::new(self.server.0, ALIAS), ports, (far, self.far))
        };
        ip.tcp(&Segment {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: numbers.0,
            acknowledgement: numbers.1,
            flags,
            window: 1_000,
            data,
            ..Segment::default()
        })
    }
}

/// The header of IPv4 but what a change of length changes, and eight bytes
/// behind it: ports and sequence number.
fn head(packet: &[u8]) -> (Ipv4Addr, Ipv4Addr, [u8; 8]) {
    let ip = Ipv4::parse_truncated(packet).unwrap();
    let first = ip.payload().first_chunk::<8>().unwrap();
    (ip.source(), ip.destination(), *first)
}

impl World {
    fn connect(&mut self, kind: Kind) -> Connection {
        let port = match kind {
            Kind::Proxied => 80,
            Kind::Stream => 81,
            Kind::Option => 82,
            Kind::Ftp => 21,
        };
        let mut connection = Connection {
            kind,
            ports: (2_000 + self.below(60_000) as u16, port),
            numbers: (self.random.number() as u32, self.random.number() as u32),
            server: (REMOTE, port),
            alias_port: 0,
            far: 0,
        };
        let syn = connection.segment(true, tcp::SYN, b"");
        let left = self.passes(true, &syn, Verdict::Translated);
        let ip = Ipv4::new(&left).unwrap();
        let tcp = packet::Tcp::new(ip.payload()).unwrap();
        connection.server = (ip.destination(), tcp.destination_port());
        assert_eq!(connection.server.0 == PROXY, kind != Kind::Ftp);
        connection.alias_port = tcp.source_port();
        connection.numbers.0 = connection.numbers.0.wrapping_add(1);
        connection.far = connection.numbers.0;
        self.heard_by_client(&connection, &syn, &left, true);
        connection
    }

    /// A segment of the client, and errors about it.
    fn says(&mut self, connection: &mut Connection, data: &[u8]) {
        let sent = connection.segment(true, tcp::ACK, data);
        let left = self.passes(true, &sent, Verdict::Translated);
        let ip = Ipv4::new(&left).unwrap();
        let tcp = packet::Tcp::new(ip.payload()).unwrap();
        assert_eq!(tcp.sequence(), connection.far);
        let is_same = tcp.payload() == data;
        connection.far = tcp.sequence().wrapping_add(tcp.payload().len() as u32);
        self.heard_by_client(connection, &sent, &left, is_same);
        // In the client's own numbers, which were not changed.
        connection.numbers.0 = connection.numbers.0.wrapping_add(data.len() as u32);
    }

    fn heard_by_client(&mut self, connection: &Connection, sent: &[u8], left: &[u8], same: bool) {
        for from in [ROUTER, connection.server.0] {
            let (to, shown, quoted) = self.error(false, from, left, Verdict::Translated);
            let expected = if from == ROUTER { ROUTER } else { REMOTE };
            assert_eq!((to, shown), (CLIENT, expected), "{:?}", connection.kind);
            assert_eq!(head(&quoted), head(sent), "{:?}", connection.kind);
            if same {
                assert_eq!(quoted, sent[..quoted.len()], "{:?}", connection.kind);
            }
        }
    }

    /// A segment of the server, and an error of the client about it.
    fn answers(&mut self, connection: &mut Connection, data: &[u8]) {
        let sent = connection.segment(false, tcp::ACK, data);
        let came = self.passes(false, &sent, Verdict::Translated);
        assert_eq!(Ipv4::new(&came).unwrap().source(), REMOTE);
        let (to, shown, quoted) = self.error(true, CLIENT, &came, Verdict::Translated);
        assert_eq!((to, shown), (connection.server.0, ALIAS));
        assert_eq!(quoted, sent[..quoted.len()], "{:?}", connection.kind);
        connection.numbers.1 = connection.numbers.1.wrapping_add(data.len() as u32);
    }
}

#[test]
fn about_proxied_connections_and_those_with_a_helper() {
    let mut world = World::new(5);
    for _ in 0..ROUNDS {
        for kind in [Kind::Proxied, Kind::Stream, Kind::Option, Kind::Ftp] {
            let mut connection = world.connect(kind);
            for _ in 0..6 {
                let len = world.below(40);
                let data: Vec<u8> = (0..len).map(|_| world.random.number() as u8).collect();
                match world.below(3) {
                    0 => world.answers(&mut connection, &data),
                    1 if kind == Kind::Ftp => {
                        let line = b"PORT 10,0,0,2,19,137\r\n";
                        world.says(&mut connection, line);
                    }
                    _ if kind == Kind::Ftp => world.says(&mut connection, b"NOOP\r\n"),
                    _ => world.says(&mut connection, &data),
                }
            }
        }
    }
    assert!(world.errors > 8 * ROUNDS);
}

/// A datagram to a proxy, told by an option in front of the others.
#[test]
fn about_datagrams_with_an_option_put_in() {
    let mut world = World::new(6);
    for round in 0..ROUNDS {
        let data: Vec<u8> = (0..world.below(60)).map(|at| at as u8).collect();
        let sent = Ip::new(CLIENT, REMOTE).udp(3_000 + round as u16, 82, &data);
        let left = world.passes(true, &sent, Verdict::Translated);
        assert_eq!(left.len(), sent.len() + 8);
        let (to, _, quoted) = world.error(false, ROUTER, &left, Verdict::Translated);
        assert_eq!(to, CLIENT);
        assert_eq!(quoted, sent[..quoted.len()]);
    }
}

fn gre(from: Ipv4Addr, to: Ipv4Addr, call: u16, data: &[u8]) -> Vec<u8> {
    let [high, low] = (data.len() as u16).to_be_bytes();
    let mut payload = vec![0x30, 0x01, 0x88, 0x0b, high, low];
    payload.extend(call.to_be_bytes());
    // A sequence number, which an error need not have any more.
    payload.extend([0, 0, 0, 1]);
    payload.extend(data);
    Ip::new(from, to).packet(protocol::GRE, &[], &payload)
}

fn message(kind: u16, own: u16, peer: u16) -> Vec<u8> {
    let fields = [16, 1, 0x1a2b, 0x3c4d, kind, 0, own, peer];
    fields.map(u16::to_be_bytes).concat()
}

/// PPTP's data as a TCP segment of a control connection.
fn control(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), flags: u8, data: &[u8]) -> Vec<u8> {
    Ip::new(from.0, to.0).tcp(&Segment {
        source_port: from.1,
        destination_port: to.1,
        sequence: 1,
        acknowledgement: 1,
        flags,
        data,
        ..Segment::default()
    })
}

fn source_port(bytes: &[u8]) -> u16 {
    let ip = Ipv4::new(bytes).unwrap();
    packet::Tcp::new(ip.payload()).unwrap().source_port()
}

/// The identifiers in a PPTP message.
fn identifiers(bytes: &[u8]) -> (u16, u16) {
    let ip = Ipv4::new(bytes).unwrap();
    let tcp = packet::Tcp::new(ip.payload()).unwrap();
    let at = |at: usize| u16::from_be_bytes([tcp.payload()[at], tcp.payload()[at + 1]]);
    (at(12), at(14))
}

#[test]
fn about_packets_of_pptp_calls() {
    let mut world = World::new(7);
    // Two hosts choose the same identifiers: outside they differ.
    for (host, theirs) in [(CLIENT, 500), (NEIGHBOUR, 501)] {
        let (near, far) = ((host, 4_000), (REMOTE, 1_723));
        world.passes(
            true,
            &control(near, far, tcp::SYN, b""),
            Verdict::Translated,
        );
        let request = control(near, far, tcp::ACK, &message(7, 77, 0));
        let left = world.passes(true, &request, Verdict::Translated);
        let (alias_id, _) = identifiers(&left);
        let alias = (ALIAS, source_port(&left));
        let reply = control(far, alias, tcp::ACK, &message(8, theirs, alias_id));
        world.passes(false, &reply, Verdict::Translated);
        for _ in 0..ROUNDS {
            let data = vec![7; world.below(40)];
            let sent = gre(host, REMOTE, theirs, &data);
            let left = world.passes(true, &sent, Verdict::Translated);
            let (to, shown, quoted) = world.error(false, ROUTER, &left, Verdict::Translated);
            assert_eq!((to, shown), (host, ROUTER));
            assert_eq!(quoted, sent[..quoted.len()]);
            let sent = gre(REMOTE, ALIAS, alias_id, &data);
            let came = world.passes(false, &sent, Verdict::Translated);
            let (to, shown, quoted) = world.error(true, host, &came, Verdict::Translated);
            assert_eq!((to, shown), (REMOTE, ALIAS));
            assert_eq!(quoted, sent[..quoted.len()]);
        }
    }
    // What left can be undone as well.
    let sent = gre(NEIGHBOUR, REMOTE, 501, b"ppp");
    let mut left = world.passes(true, &sent, Verdict::Translated);
    assert_eq!(world.nat.untranslate_out(&mut left, 0), Verdict::Translated);
    assert_eq!(left, sent);
}

/// Two hosts inside, by the alias address: both hear of their own packets,
/// and never of the other's inside address (RFC 5508 REQ-7).
#[test]
fn about_packets_that_turned_back() {
    let mut world = World::new(8);
    for round in 0..ROUNDS {
        let client = (CLIENT, 3_000 + round as u16);
        let sent = control(client, (ALIAS, 9_000), tcp::SYN, b"data that is quoted");
        let came = world.passes(true, &sent, Verdict::Hairpinned);
        assert_eq!(Ipv4::new(&came).unwrap().destination(), NEIGHBOUR);
        let (to, shown, quoted) = world.error(true, NEIGHBOUR, &came, Verdict::Hairpinned);
        assert_eq!((to, shown), (CLIENT, ALIAS));
        assert_eq!(quoted, sent[..quoted.len()]);
        let back = (ALIAS, source_port(&came));
        let sent = control((NEIGHBOUR, 9_000), back, tcp::SYN | tcp::ACK, b"an answer");
        let came = world.passes(true, &sent, Verdict::Hairpinned);
        let (to, shown, quoted) = world.error(true, CLIENT, &came, Verdict::Hairpinned);
        assert_eq!((to, shown), (NEIGHBOUR, ALIAS));
        assert_eq!(quoted, sent[..quoted.len()]);
    }
    // About a packet of nobody: nothing is changed.
    let stray = control((ALIAS, 1), (NEIGHBOUR, 2), tcp::ACK, b"");
    let error = Ip::new(NEIGHBOUR, ALIAS).icmp(icmp::UNREACHABLE, 1, [0; 4], &stray);
    let (verdict, after) = world.pass(true, &error);
    assert_eq!((verdict, after), (Verdict::NoMapping, error));
}
