//! Helpers, proxies and fragments through the whole engine.

use std::net::Ipv4Addr;

use fingerpost_nat::rules::{ProxyWord, parse_proxy};
use fingerpost_nat::{Config, Direction, Nat, Verdict};
use packet::build::{Ip, Segment};
use packet::{Gre, Ipv4, Tcp, Udp, ipv4, protocol, tcp};

use crate::trial::{EXT, MASQ, PRIVATE, PRIVATES, Trial};

const CLIENT: u16 = 3_000;
const ROOM: usize = 64;

/// A TCP packet as it comes out of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    source: (Ipv4Addr, u16),
    destination: (Ipv4Addr, u16),
    sequence: u32,
    acknowledgement: u32,
    data: String,
}

fn seen(bytes: &[u8]) -> Seen {
    let ip = Ipv4::new(bytes).unwrap();
    assert!(ip.checksum_is_right());
    let tcp = Tcp::new(ip.payload()).unwrap();
    assert!(tcp.checksum_is_right(ip.pseudo_header()));
    Seen {
        source: (ip.source(), tcp.source_port()),
        destination: (ip.destination(), tcp.destination_port()),
        sequence: tcp.sequence(),
        acknowledgement: tcp.acknowledgement(),
        data: String::from_utf8_lossy(tcp.payload()).into_owned(),
    }
}

impl Trial {
    fn segment(
        &mut self,
        out: bool,
        from: (Ipv4Addr, u16),
        to: (Ipv4Addr, u16),
        (sequence, acknowledgement, flags): (u32, u32, u8),
        data: &[u8],
    ) -> (Verdict, Seen) {
        let segment = Segment {
            source_port: from.1,
            destination_port: to.1,
            sequence,
            acknowledgement,
            flags,
            window: u16::MAX,
            data,
            ..Segment::default()
        };
        let mut bytes = Ip::new(from.0, to.0).tcp(&segment);
        bytes.resize(bytes.len() + ROOM, 0);
        let verdict = if out {
            self.nat.translate_out(&mut bytes, self.now)
        } else {
            self.nat.translate_in(&mut bytes, self.now)
        };
        (verdict, seen(&bytes))
    }

    /// A handshake from inside; the alias port.
    fn connect(&mut self, to: (Ipv4Addr, u16), server: (Ipv4Addr, u16)) -> u16 {
        let from = (PRIVATE, CLIENT);
        let (verdict, syn) = self.segment(true, from, to, (999, 0, tcp::SYN), b"");
        assert_eq!(verdict, Verdict::Translated);
        assert_eq!(syn.destination, server);
        let alias = syn.source;
        let answer = (4_999, 1_000, tcp::SYN | tcp::ACK);
        let (verdict, back) = self.segment(false, server, alias, answer, b"");
        assert_eq!(verdict, Verdict::Translated);
        assert_eq!((back.source, back.destination), (to, from));
        self.segment(true, from, to, (1_000, 5_000, tcp::ACK), b"");
        alias.1
    }
}

#[test]
fn active_ftp_opens_one_way_for_the_server() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let (server, client) = ((EXT, 21), (PRIVATE, CLIENT));
    let control = trial.connect(server, server);
    let line = b"PORT 10,0,222,173,19,137\r\n";
    let (verdict, sent) = trial.segment(true, client, server, (1_000, 5_000, tcp::ACK), line);
    assert_eq!(verdict, Verdict::Translated);
    let numbers = sent.data.strip_prefix("PORT 1,2,3,4,").unwrap();
    let (high, low) = numbers.trim_end().split_once(',').unwrap();
    let port = high.parse::<u16>().unwrap() * 256 + low.parse::<u16>().unwrap();
    // The server acknowledges what it got, the client hears what it sent.
    let acknowledgement = 1_000 + sent.data.len() as u32;
    let answer = (5_000, acknowledgement, tcp::ACK);
    let (_, back) = trial.segment(false, server, (MASQ, control), answer, b"200 Ok\r\n");
    assert_eq!(back.acknowledgement, 1_000 + line.len() as u32);
    let stranger = (Ipv4Addr::new(18, 52, 86, 121), 20);
    let (verdict, _) = trial.segment(false, stranger, (MASQ, port), (1, 0, tcp::SYN), b"");
    assert!(!verdict.goes_on(), "{verdict:?}");
    let data = (EXT, 20);
    let (verdict, back) = trial.segment(false, data, (MASQ, port), (1, 0, tcp::SYN), b"");
    assert_eq!(
        (verdict, back.destination),
        (Verdict::Translated, (PRIVATE, 5_001))
    );
    let next = (1_000 + line.len() as u32, 5_008, tcp::ACK);
    let (_, list) = trial.segment(true, client, server, next, b"LIST\r\n");
    assert_eq!(list.sequence, acknowledgement);
}

#[test]
fn without_room_a_helper_refuses() {
    let mut trial = Trial::new();
    trial
        .nat
        .set_addresses(&[Ipv4Addr::new(111, 222, 111, 222)])
        .unwrap();
    trial.connect((EXT, 21), (EXT, 21));
    let data = b"PORT 10,0,222,173,9,9\r\n";
    let segment = Segment {
        source_port: CLIENT,
        destination_port: 21,
        sequence: 1_000,
        flags: tcp::ACK,
        data,
        ..Segment::default()
    };
    let mut bytes = Ip::new(PRIVATE, EXT).tcp(&segment);
    let before = bytes.clone();
    let verdict = trial.nat.translate_out(&mut bytes, 0);
    assert_eq!((verdict, bytes == before), (Verdict::HelperRefused, true));
}

#[test]
fn a_pptp_call_and_its_packets() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let (server, client) = ((EXT, 1_723), (PRIVATE, CLIENT));
    let control = trial.connect(server, server);
    let message = |kind: u16, own: u16, peer: u16| {
        let fields = [16, 1, 0x1a2b, 0x3c4d, kind, 0, own, peer];
        fields.map(u16::to_be_bytes).concat()
    };
    let request = (1_000, 5_000, tcp::ACK);
    let (verdict, _) = trial.segment(true, client, server, request, &message(7, 77, 0));
    assert_eq!(verdict, Verdict::Translated);
    // Nobody else has the call, so its number is kept.
    let reply = (5_000, 1_016, tcp::ACK);
    trial.segment(false, server, (MASQ, control), reply, &message(8, 555, 77));
    let gre = |from, to, call: u16| {
        let mut payload = vec![0x20, 0x01, 0x88, 0x0b, 0, 0];
        payload.extend(call.to_be_bytes());
        Ip::new(from, to).packet(protocol::GRE, &[], &payload)
    };
    let mut out = gre(PRIVATE, EXT, 555);
    assert_eq!(trial.nat.translate_out(&mut out, 0), Verdict::Translated);
    assert_eq!(Ipv4::new(&out).unwrap().source(), MASQ);
    let mut back = gre(EXT, MASQ, 77);
    assert_eq!(trial.nat.translate_in(&mut back, 0), Verdict::Translated);
    let ip = Ipv4::new(&back).unwrap();
    assert_eq!(ip.destination(), PRIVATE);
    assert_eq!(Gre::new(ip.payload()).unwrap().call_id(), Some(77));
}

fn proxy(trial: &mut Trial, text: &str) {
    let Ok(ProxyWord::Add(rule)) = parse_proxy(text) else {
        unreachable!("{text}");
    };
    trial.nat.rules_mut().add_proxy(rule).unwrap();
}

#[test]
fn a_proxy_in_the_place_of_the_remote() {
    let mut trial = Trial::new();
    let server = (Ipv4Addr::new(18, 52, 86, 200), 3_128);
    proxy(&mut trial, "port 80 server 18.52.86.200:3128 proto tcp");
    let web = (EXT, 80);
    trial.connect(web, server);
    let client = (PRIVATE, CLIENT);
    let (_, sent) = trial.segment(true, client, web, (1_000, 5_000, tcp::ACK), b"GET /");
    assert_eq!((sent.destination, sent.data.as_str()), (server, "GET /"));
    let (_, other) = trial.segment(true, client, (EXT, 81), (1, 0, tcp::SYN), b"");
    assert_eq!(
        other.destination,
        (EXT, 81),
        "other ports go where they were meant"
    );
}

#[test]
fn flows_to_proxies_are_limited() {
    let mut config = Config::new(&[MASQ]);
    config.limits.proxied = 100;
    let nat = Nat::new(config).unwrap();
    let mut trial = Trial { nat, now: 0 };
    proxy(&mut trial, "port 80 server 18.52.86.200:3128");
    let syn = (1, 0, tcp::SYN);
    let verdicts = |trial: &mut Trial, ports: std::ops::Range<u16>| -> Vec<Verdict> {
        let each = ports.map(|port| (PRIVATE, port));
        each.map(|client| trial.segment(true, client, (EXT, 80), syn, b"").0)
            .collect()
    };
    assert_eq!(verdicts(&mut trial, 1..101), [Verdict::Translated; 100]);
    assert_eq!(verdicts(&mut trial, 101..103), [Verdict::TableFull; 2]);
    assert_eq!(verdicts(&mut trial, 1..101), [Verdict::Translated; 100]);
    trial.nat.forget_flows();
    trial.nat.maintain(0, 1_000);
    assert_eq!(verdicts(&mut trial, 101..103), [Verdict::Translated; 2]);
}

#[test]
fn a_proxy_is_told_in_the_stream() {
    let mut trial = Trial::new();
    let server = (Ipv4Addr::new(18, 52, 86, 200), 3_128);
    proxy(
        &mut trial,
        "type encode_tcp_stream port 80 server 18.52.86.200:3128",
    );
    let (web, client) = ((EXT, 80), (PRIVATE, CLIENT));
    let alias = trial.connect(web, server);
    let (_, sent) = trial.segment(true, client, web, (1_000, 5_000, tcp::ACK), b"GET /");
    assert_eq!(
        sent.data,
        "[DEST 18.52.86.120 80]\nGET /".replace("]\n", "] \n")
    );
    let acknowledged = (5_000, 1_000 + sent.data.len() as u32, tcp::ACK);
    let (_, back) = trial.segment(false, server, (MASQ, alias), acknowledged, b"200");
    assert_eq!((back.source, back.acknowledgement), (web, 1_005));
}

#[test]
fn a_proxy_is_told_by_an_option() {
    let mut trial = Trial::new();
    proxy(
        &mut trial,
        "type encode_ip_hdr proto udp port 53 server 18.52.86.200",
    );
    let mut bytes = Ip::new(PRIVATE, EXT).udp(CLIENT, 53, b"question");
    let before = bytes.clone();
    assert_eq!(
        trial.nat.translate_out(&mut bytes, 0),
        Verdict::HelperRefused
    );
    assert_eq!(bytes, before);
    bytes.resize(before.len() + 8, 0);
    assert_eq!(trial.nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let ip = Ipv4::new(&bytes).unwrap();
    assert!(ip.checksum_is_right());
    assert_eq!(ip.options(), [0x64, 8, 18, 52, 86, 120, 0, 53]);
    assert_eq!(ip.destination(), Ipv4Addr::new(18, 52, 86, 200));
}

/// A datagram in pieces of 64 bytes, the first first.
fn pieces(from: Ipv4Addr, to: Ipv4Addr, ports: (u16, u16), identification: u16) -> Vec<Vec<u8>> {
    let data: Vec<u8> = (0..200).collect();
    let whole = Ip::new(from, to).udp(ports.0, ports.1, &data);
    let payload = Ipv4::new(&whole).unwrap().payload().to_vec();
    let count = payload.len().div_ceil(64);
    let piece = |(number, bytes): (usize, &[u8])| {
        let more = if number + 1 < count {
            ipv4::MORE_FRAGMENTS
        } else {
            0
        };
        let ip = Ip {
            identification,
            flags_and_offset: more | (number * 8) as u16,
            ..Ip::new(from, to)
        };
        ip.packet(protocol::UDP, &[], bytes)
    };
    payload.chunks(64).enumerate().map(piece).collect()
}

/// Puts pieces together and checks the datagram.
fn whole(mut pieces: Vec<Vec<u8>>) -> (Ipv4Addr, Ipv4Addr, (u16, u16)) {
    pieces.sort_by_key(|piece| Ipv4::new(piece).unwrap().fragment_offset_bytes());
    let first = Ipv4::new(&pieces[0]).unwrap();
    let (source, destination) = (first.source(), first.destination());
    let mut payload = Vec::new();
    for piece in &pieces {
        let ip = Ipv4::new(piece).unwrap();
        assert!(ip.checksum_is_right());
        assert_eq!((ip.source(), ip.destination()), (source, destination));
        payload.extend(ip.payload());
    }
    let bytes = Ip::new(source, destination).packet(protocol::UDP, &[], &payload);
    let ip = Ipv4::new(&bytes).unwrap();
    let udp = packet::Udp::new(ip.payload()).unwrap();
    assert!(udp.checksum_is_right(ip.pseudo_header()));
    (
        source,
        destination,
        (udp.source_port(), udp.destination_port()),
    )
}

#[test]
fn fragments_in_any_order_both_ways() {
    let mut trial = Trial::new();
    let mut random = lab::Random::new(7);
    trial.mode(|mode| mode.deny_incoming = true);
    for round in 0..50_u16 {
        let inside = PRIVATES[usize::from(round) % 3];
        let mut alias_port = 0;
        for out in [true, false] {
            let mut packets = if out {
                pieces(inside, EXT, (CLIENT, 53), round)
            } else {
                pieces(EXT, MASQ, (53, alias_port), round)
            };
            random.shuffle(&mut packets);
            let mut arrived = Vec::new();
            for mut packet in packets {
                let verdict = if out {
                    trial.nat.translate_out(&mut packet, 0)
                } else {
                    trial.nat.translate_in(&mut packet, 0)
                };
                match verdict {
                    Verdict::Translated => arrived.push(packet),
                    other => assert_eq!(other, Verdict::FragmentWaiting),
                }
                let mut buffer = [0; 256];
                while let Some((len, direction, verdict)) = trial.nat.next_fragment(&mut buffer, 0)
                {
                    assert_eq!(verdict, Verdict::Translated);
                    assert_eq!(direction == Direction::Out, out);
                    arrived.push(buffer[..len].to_vec());
                }
            }
            assert_eq!(arrived.len(), 4);
            let (source, destination, ports) = whole(arrived);
            if out {
                assert_eq!((source, destination, ports.1), (MASQ, EXT, 53));
                alias_port = ports.0;
            } else {
                assert_eq!((source, destination, ports), (EXT, inside, (53, CLIENT)));
            }
        }
    }
    let mut lost = pieces(EXT, MASQ, (53, 1), 999);
    assert!(!trial.nat.translate_in(&mut lost[0], 0).goes_on());
    assert_eq!(trial.nat.translate_in(&mut lost[1], 0), Verdict::NoMapping);
}

#[test]
fn with_proxy_rules_only_a_proxied_connection_keeps_its_source() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.proxy_only = true);
    let rule = "port 80 server 10.0.0.1:3128 type no_encode";
    let Ok(ProxyWord::Add(proxy)) = parse_proxy(rule) else {
        unreachable!("{rule}");
    };
    trial.nat.rules_mut().add_proxy(proxy).unwrap();
    let (from, to) = ((PRIVATE, CLIENT), (EXT, 80));
    let syn = (999, 0, tcp::SYN);
    let (verdict, sent) = trial.segment(true, from, to, syn, b"");
    assert_eq!(verdict, Verdict::Translated);
    let server = (Ipv4Addr::new(10, 0, 0, 1), 3_128);
    assert_eq!((sent.source, sent.destination), (from, server));
    let answer = (4_999, 1_000, tcp::SYN | tcp::ACK);
    let (verdict, back) = trial.segment(false, server, from, answer, b"");
    assert_eq!(verdict, Verdict::Translated);
    assert_eq!((back.source, back.destination), (to, from));
    // Anything else passes as it is.
    let (verdict, _) = trial.segment(true, from, (EXT, 81), syn, b"");
    assert_eq!(verdict, Verdict::Passed);
}

#[test]
fn a_tftp_server_answers_from_another_port() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let (client, server) = ((PRIVATE, CLIENT), (EXT, 69));
    let request = |trial: &mut Trial, data: &[u8]| {
        let mut bytes = Ip::new(client.0, server.0).udp(client.1, server.1, data);
        assert_eq!(
            trial.nat.translate_out(&mut bytes, trial.now),
            Verdict::Translated
        );
        Udp::new(&bytes[20..]).unwrap().source_port()
    };
    // An answer of the server's own opens nothing.
    let port = request(&mut trial, b"\0\x04\0\x01");
    trial.udp_in_fails((EXT, 50_000), (MASQ, port));
    for _ in 0..2 {
        assert_eq!(request(&mut trial, b"\0\x01file\0octet\0"), port);
    }
    trial.udp_in_fails((PRIVATES[1], 50_000), (MASQ, port));
    // The transfer goes both ways, and a second server's port gets nowhere.
    trial.udp_in((EXT, 50_000), (MASQ, port), client);
    assert_eq!(trial.udp_out(client, (EXT, 50_000), MASQ), port);
    trial.udp_in((EXT, 50_000), (MASQ, port), client);
    trial.udp_in_fails((EXT, 50_001), (MASQ, port));
    assert!(trial.nat.rules().is_empty());
    // A request that nobody answers waits a minute.
    request(&mut trial, b"\0\x02file\0octet\0");
    trial.now += 61_000;
    trial.udp_in_fails((EXT, 50_002), (MASQ, port));
}

#[test]
fn an_offer_through_irc_lets_one_in_from_anywhere() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let (server, client) = ((EXT, 6_667), (PRIVATE, CLIENT));
    trial.connect(server, server);
    let own = PRIVATE.to_bits();
    let line = format!("PRIVMSG bob :\x01DCC SEND f {own} 5001 9\x01\r\n");
    let numbers = (1_000, 5_000, tcp::ACK);
    let (verdict, sent) = trial.segment(true, client, server, numbers, line.as_bytes());
    assert_eq!(verdict, Verdict::Translated);
    let rest = sent
        .data
        .strip_prefix("PRIVMSG bob :\x01DCC SEND f 16909060 ");
    let (port, rest) = rest.unwrap().split_once(' ').unwrap();
    assert_eq!(rest, "9\x01\r\n");
    let to = (MASQ, port.parse().unwrap());
    let syn = (1, 0, tcp::SYN);
    let stranger = (Ipv4Addr::new(18, 52, 86, 121), 4_000);
    let (verdict, back) = trial.segment(false, stranger, to, syn, b"");
    assert_eq!(
        (verdict, back.destination),
        (Verdict::Translated, (PRIVATE, 5_001))
    );
    // One and no more; and nobody's address but the speaker's is opened.
    let other = (Ipv4Addr::new(18, 52, 86, 122), 4_000);
    assert!(!trial.segment(false, other, to, syn, b"").0.goes_on());
    let next = (1_000 + line.len() as u32, 5_000, tcp::ACK);
    let foreign = line.replace(&own.to_string(), &PRIVATES[1].to_bits().to_string());
    let (_, sent) = trial.segment(true, client, server, next, foreign.as_bytes());
    assert_eq!(sent.data, foreign);
}

#[test]
fn a_media_server_sends_to_the_ports_that_were_named_to_it() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let (server, client) = ((EXT, 554), (PRIVATE, CLIENT));
    trial.connect(server, server);
    let line = "Transport: x-real-rdt/udp;client_port=6970,RTP/AVP;client_port=6970-6971\r\n";
    let request = format!("SETUP rtsp://far/a RTSP/1.0\r\nCSeq: 1\r\n{line}\r\n");
    let numbers = (1_000, 5_000, tcp::ACK);
    let (verdict, sent) = trial.segment(true, client, server, numbers, request.as_bytes());
    assert_eq!(verdict, Verdict::Translated);
    let named = sent.data.split("client_port=").nth(2).unwrap();
    let (first, second) = named.split_once('\r').unwrap().0.split_once('-').unwrap();
    let (first, second): (u16, u16) = (first.parse().unwrap(), second.parse().unwrap());
    assert_eq!((first & 1, second), (0, first + 1));
    let ports = format!("{first}-{second}");
    let single = request.replace("=6970,", &format!("={first},"));
    assert_eq!(sent.data, single.replace("6970-6971", &ports));
    // What comes again is changed in the same way.
    let (_, again) = trial.segment(true, client, server, numbers, request.as_bytes());
    assert_eq!(again.data, sent.data);
    // Media and their control, from whatever port; nobody else's.
    trial.udp_in_fails((PRIVATES[1], 7_000), (MASQ, first));
    trial.udp_in((EXT, 7_000), (MASQ, first), (PRIVATE, 6_970));
    trial.udp_in((EXT, 7_001), (MASQ, second), (PRIVATE, 6_971));
    trial.udp_in((EXT, 7_000), (MASQ, first), (PRIVATE, 6_970));
    assert_eq!(trial.udp_out((PRIVATE, 6_971), (EXT, 7_001), MASQ), second);
    trial.udp_in_fails((EXT, 7_002), (MASQ, second));
    assert!(trial.nat.rules().is_empty());
}
