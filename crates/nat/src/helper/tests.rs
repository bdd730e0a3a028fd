use packet::build::{Ip, Segment as Built};
use packet::{Gre, Ipv4, Tcp, protocol, tcp};
use proptest::prelude::*;

use super::connection::{CHANGED_IDLE_MILLIS, IDLE_MILLIS};
use super::*;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
const REMOTE: Ipv4Addr = Ipv4Addr::new(18, 0, 0, 1);
const ROOM: usize = 64;

fn key(inside_port: u16, remote_port: u16) -> ControlKey {
    ControlKey {
        inside: HOST,
        inside_port,
        remote: REMOTE,
        remote_port,
    }
}

fn built(from: Ipv4Addr, to: Ipv4Addr, segment: &Built<'_>) -> Vec<u8> {
    let mut bytes = Ip::new(from, to).tcp(segment);
    bytes.resize(bytes.len() + ROOM, 0xee);
    bytes
}

/// A connection with a helper and everything that goes through it.
struct Trial {
    helpers: Helpers,
    key: ControlKey,
    given: u16,
}

impl Trial {
    fn new(kind: Kind, key: ControlKey) -> Self {
        let mut helpers = Helpers::new(Limits::default());
        assert!(helpers.open(kind, key, 0));
        // As after the handshake.
        helpers.connections.get_mut(&key).unwrap().opened = [true; 2];
        Self {
            helpers,
            key,
            given: 40_000,
        }
    }

    fn client() -> Self {
        let mut trial = Self::new(Kind::Ftp, key(3_000, ftp::PORT));
        let syn = Built {
            flags: tcp::SYN,
            sequence: 999,
            ..Built::default()
        };
        trial.out_segment(&syn).unwrap();
        trial.hear(tcp::SYN | tcp::ACK);
        trial
    }

    /// A segment of the remote without data.
    fn hear(&mut self, flags: u8) {
        let segment = Built {
            flags,
            acknowledgement: 1_000,
            ..Built::default()
        };
        let mut bytes = built(REMOTE, HOST, &segment);
        self.helpers.incoming(&self.key, ALIAS, &mut bytes, 0);
    }

    fn out_segment(&mut self, segment: &Built<'_>) -> Result<Vec<u8>, Refusal> {
        let mut bytes = built(HOST, REMOTE, segment);
        let given = &mut self.given;
        let mut give = |_: Wanted| {
            *given += 1;
            Some((ALIAS, *given))
        };
        let before = bytes.clone();
        let result = self
            .helpers
            .outgoing(&self.key, (ALIAS, 39_000), &mut bytes, &mut give, 0);
        if result.is_err() {
            assert_eq!(bytes, before, "a refused packet is as it was");
        }
        result.map(|()| checked(&bytes))
    }

    /// The data and the sequence number that arrive.
    fn out(&mut self, sequence: u32, data: &str) -> Result<(u32, String), Refusal> {
        let segment = Built {
            sequence,
            flags: tcp::ACK,
            data: data.as_bytes(),
            ..Built::default()
        };
        let bytes = self.out_segment(&segment)?;
        let ip = Ipv4::new(&bytes).unwrap();
        let tcp = Tcp::new(ip.payload()).unwrap();
        let text = String::from_utf8(tcp.payload().to_vec()).unwrap();
        Ok((tcp.sequence(), text))
    }

    /// The acknowledgement and the SACK edges that arrive.
    fn acknowledge(&mut self, number: u32, edges: &[u32]) -> (u32, Vec<u32>) {
        // One NOP in front, so that the edges lie at odd places.
        let mut options = vec![
            tcp::OPTION_NOP,
            tcp::OPTION_SACK,
            (2 + 4 * edges.len()) as u8,
        ];
        options.extend(edges.iter().flat_map(|edge| edge.to_be_bytes()));
        let mut bytes = built(
            REMOTE,
            HOST,
            &Built {
                acknowledgement: number,
                flags: tcp::ACK,
                options: &options,
                ..Built::default()
            },
        );
        self.helpers.incoming(&self.key, ALIAS, &mut bytes, 0);
        let bytes = checked(&bytes);
        let ip = Ipv4::new(&bytes).unwrap();
        let tcp = Tcp::new(ip.payload()).unwrap();
        let sack = tcp
            .options()
            .find(|option| option.kind == tcp::OPTION_SACK)
            .unwrap();
        let edges = sack
            .data
            .chunks_exact(4)
            .map(|edge| u32::from_be_bytes(edge.try_into().unwrap()));
        (tcp.acknowledgement(), edges.collect())
    }
}

/// The packet without its room, both checksums right.
fn checked(bytes: &[u8]) -> Vec<u8> {
    let ip = Ipv4::new(bytes).unwrap();
    assert!(ip.checksum_is_right());
    let tcp = Tcp::new(ip.payload()).unwrap();
    assert!(tcp.checksum_is_right(ip.pseudo_header()));
    bytes[..ip.total_len()].to_vec()
}

/// Neither a privileged port nor one that a segment without a handshake
/// names is opened; both lines go as they are.
#[test]
fn what_is_not_opened() {
    let mut trial = Trial::client();
    for (at, line) in [
        (1_000, "PORT 10,0,0,5,0,22\r\n"),
        (1_020, "EPRT |1|10.0.0.5|1023|\r\n"),
    ] {
        assert_eq!(trial.out(at, line), Ok((at, line.to_owned())));
    }
    let line = "PORT 10,0,0,5,19,137\r\n";
    let mut half = Trial::new(Kind::Ftp, key(3_000, ftp::PORT));
    half.out_segment(&Built {
        flags: tcp::SYN,
        sequence: 999,
        ..Built::default()
    })
    .unwrap();
    half.hear(tcp::ACK);
    assert_eq!(half.out(1_000, line), Ok((1_000, line.to_owned())));
    assert_eq!((trial.given, half.given), (40_000, 40_000));
}

#[test]
fn an_active_client() {
    let mut trial = Trial::client();
    let line = "PORT 10,0,0,5,19,137\r\n";
    let first = trial.out(1_000, line).unwrap();
    // 40001 is 156 * 256 + 65.
    assert_eq!(first, (1_000, "PORT 192,0,2,100,156,65\r\n".to_owned()));
    let (next, arrives) = (1_000 + line.len() as u32, 1_000 + first.1.len() as u32);
    assert_eq!(
        trial.out(next, "LIST\r\n"),
        Ok((arrives, "LIST\r\n".to_owned()))
    );
    assert_eq!(
        trial.acknowledge(arrives, &[arrives, arrives + 6]),
        (next, vec![next, next + 6])
    );
    // Half of the line acknowledged is none of it.
    assert_eq!(trial.acknowledge(1_010, &[]).0, 1_005);
    // Again, and in parts: the same bytes at the same numbers.
    assert_eq!(trial.out(1_000, line).unwrap(), first);
    let all = "PORT 192,0,2,100,156,65";
    assert_eq!(
        trial.out(1_000, &line[..8]).unwrap(),
        (1_000, all.to_owned())
    );
    let rest = trial.out(1_008, &line[8..]).unwrap();
    assert_eq!(rest, (1_000 + all.len() as u32, "\r\n".to_owned()));
    assert_eq!(trial.given, 40_001, "one port in all");
}

#[test]
fn several_commands_in_one_segment_and_one_over_two() {
    let mut trial = Trial::client();
    let both = "PORT 10,0,0,5,9,9\r\nEPRT |1|10.0.0.5|2580|\r\nPO";
    let (_, text) = trial.out(1_000, both).unwrap();
    assert_eq!(
        text,
        "PORT 192,0,2,100,156,65\r\nEPRT |1|192.0.2.100|40002|\r\nPO"
    );
    let next = 1_000 + both.len() as u32;
    let (_, text) = trial.out(next, "RT 10,0,0,5,9,3\r\n").unwrap();
    assert_eq!(text, "RT 192,0,2,100,156,67\r\n");
    // The endpoint itself split: its first half is gone already.
    let mut trial = Trial::client();
    trial.out(1_000, "PORT 10,0").unwrap();
    assert_eq!(trial.out(1_009, ",0,5,9,9\r\n").unwrap().1, ",0,5,9,9\r\n");
    let (_, after) = trial.out(1_019, "PORT 10,0,0,5,9,9\r\n").unwrap();
    assert!(after.starts_with("PORT 192"));
}

#[test]
fn a_passive_server_and_others_addresses() {
    let mut trial = Trial::new(Kind::Ftp, key(ftp::PORT, 3_000));
    let (_, text) = trial.out(1, "227 Passive (10,0,0,5,4,1).\r\n").unwrap();
    assert_eq!(text, "227 Passive (192,0,2,100,156,65).\r\n");
    let (_, text) = trial.out(30, "229 Extended (|||1025|)\r\n").unwrap();
    assert_eq!(text, "229 Extended (|||40002|)\r\n");
    let foreign = "227 Passive (10,0,0,6,4,1).\r\n";
    assert_eq!(trial.out(55, foreign).unwrap().1, foreign);
}

#[test]
fn out_of_order_data_waits_for_its_turn() {
    let mut trial = Trial::client();
    let line = "PORT 10,0,0,5,19,137\r\n";
    let later = trial.out(1_000 + line.len() as u32, "LIST\r\n");
    assert_eq!(later, Err(Refusal::OutOfOrder));
    trial.out(1_000, line).unwrap();
    assert!(trial.out(1_000 + line.len() as u32, "LIST\r\n").is_ok());
}

#[test]
fn without_room_nothing_is_overrun() {
    let mut trial = Trial::client();
    let data = b"PORT 10,0,0,5,9,9\r\n";
    let segment = Built {
        sequence: 1_000,
        flags: tcp::ACK,
        data,
        ..Built::default()
    };
    let mut bytes = Ip::new(HOST, REMOTE).tcp(&segment);
    let before = bytes.clone();
    let mut give = |_: Wanted| Some((ALIAS, 40_000));
    let tight = trial
        .helpers
        .outgoing(&trial.key, (ALIAS, 39_000), &mut bytes, &mut give, 0);
    assert_eq!((tight, bytes == before), (Err(Refusal::NoRoom), true));
    let mut none = |_: Wanted| None;
    let mut other = Trial::client();
    let mut bytes = built(HOST, REMOTE, &segment);
    let refused = other
        .helpers
        .outgoing(&other.key, (ALIAS, 39_000), &mut bytes, &mut none, 0);
    assert_eq!(refused, Err(Refusal::NoPort));
    // With room it goes on as if nothing had been.
    assert!(
        trial
            .out(1_000, "PORT 10,0,0,5,9,9\r\n")
            .unwrap()
            .1
            .starts_with("PORT 192")
    );
}

#[test]
fn any_number_of_changes_when_acknowledged() {
    let mut trial = Trial::client();
    let (mut sent, mut arrived) = (1_000_u32, 1_000_u32);
    let line = "PORT 10,0,0,5,9,9\r\n";
    for round in 0..200 {
        let (at, text) = trial.out(sent, line).unwrap();
        assert_eq!(at, arrived, "round {round}");
        sent += line.len() as u32;
        arrived += text.len() as u32;
        if round % 10 == 9 {
            assert_eq!(trial.acknowledge(arrived, &[arrived]), (sent, vec![sent]));
        }
    }
    for _ in 0..sequence::MAX_CHANGES {
        match trial.out(sent, line) {
            Ok(_) => sent += line.len() as u32,
            Err(refusal) => assert_eq!(refusal, Refusal::Unacknowledged),
        }
    }
    assert_eq!(trial.out(sent, line), Err(Refusal::Unacknowledged));
}

#[test]
fn a_proxy_is_told_before_all_else() {
    let key = key(3_000, 3_128);
    let mut trial = Trial::new(Kind::Proxied, key);
    assert!(trial.helpers.open_proxied(key, (REMOTE, 80), 0));
    let syn = Built {
        flags: tcp::SYN,
        sequence: 999,
        ..Built::default()
    };
    trial.out_segment(&syn).unwrap();
    let told = "[DEST 18.0.0.1 80] \n";
    let first = (1_000, format!("{told}GET /"));
    assert_eq!(trial.out(1_000, "GET /").unwrap(), first);
    assert_eq!(trial.out(1_000, "GET /").unwrap(), first, "and again");
    let behind = 1_005 + told.len() as u32;
    assert_eq!(
        trial.out(1_005, " HTTP").unwrap(),
        (behind, " HTTP".to_owned())
    );
    assert_eq!(trial.acknowledge(behind, &[]).0, 1_005);
    assert_eq!(trial.acknowledge(1_003, &[]).0, 1_000);
}

fn call_id(bytes: &[u8], place: usize) -> u16 {
    let segment = Segment::read(bytes).unwrap();
    pptp::number(segment.payload(bytes), place).unwrap()
}

fn gre(from: Ipv4Addr, to: Ipv4Addr, id: u16) -> Vec<u8> {
    let mut payload = vec![0x30, 0x01, 0x88, 0x0b, 0, 0];
    payload.extend(id.to_be_bytes());
    payload.extend([0; 4]);
    Ip::new(from, to).packet(protocol::GRE, &[], &payload)
}

#[test]
fn two_pptp_clients_with_the_same_call_to_one_server() {
    let other = Ipv4Addr::new(10, 0, 0, 6);
    let mut helpers = Helpers::new(Limits::default());
    let mut give = |_: Wanted| None;
    let mut aliases = Vec::new();
    for inside in [HOST, other] {
        let key = ControlKey {
            inside,
            ..key(3_000, pptp::PORT)
        };
        helpers.open(Kind::Pptp, key, 0);
        for _ in 0..2 {
            let data = pptp::message(7, 77, 0);
            let mut bytes = built(
                inside,
                REMOTE,
                &Built {
                    data: &data,
                    ..Built::default()
                },
            );
            helpers
                .outgoing(&key, (ALIAS, 39_000), &mut bytes, &mut give, 0)
                .unwrap();
            aliases.push(call_id(&checked(&bytes), 12));
        }
        let alias_id = *aliases.last().unwrap();
        let data = pptp::message(8, 500 + alias_id, alias_id);
        let mut bytes = built(
            REMOTE,
            ALIAS,
            &Built {
                data: &data,
                ..Built::default()
            },
        );
        helpers.incoming(&key, ALIAS, &mut bytes, 0);
        assert_eq!(call_id(&checked(&bytes), 14), 77);
        let mut out = gre(inside, REMOTE, 500 + alias_id);
        assert!(helpers.calls_mut().translate_out(&mut out, 1));
        assert_eq!(Ipv4::new(&out).unwrap().source(), ALIAS);
        let mut back = gre(REMOTE, ALIAS, alias_id);
        assert!(helpers.calls_mut().translate_in(&mut back, 1));
        let ip = Ipv4::new(&back).unwrap();
        assert!(ip.checksum_is_right() && ip.destination() == inside);
        assert_eq!(Gre::new(ip.payload()).unwrap().call_id(), Some(77));
    }
    assert_eq!(aliases[0], aliases[1], "a retransmission is the same");
    assert_ne!(aliases[0], aliases[2]);
    assert!(
        !helpers
            .calls_mut()
            .translate_in(&mut gre(REMOTE, ALIAS, 9), 1)
    );
    let late = 1_000_000_000;
    assert!(
        !helpers
            .calls_mut()
            .translate_in(&mut gre(REMOTE, ALIAS, aliases[0]), late)
    );
    assert_eq!(helpers.calls().len(), 1);
}

#[test]
fn a_connection_that_was_changed_keeps_its_numbers() {
    let mut trial = Trial::client();
    trial.out(1_000, "PORT 10,0,0,5,19,137\r\n").unwrap();
    trial.helpers.connections.set_limit(1);
    assert!(
        !trial
            .helpers
            .open(Kind::Ftp, key(9, ftp::PORT), IDLE_MILLIS)
    );
    assert!(
        trial
            .helpers
            .open(Kind::Ftp, key(9, ftp::PORT), CHANGED_IDLE_MILLIS)
    );
}

#[test]
fn a_full_table_refuses_and_makes_room_by_the_idle() {
    let mut helpers = Helpers::new(Limits {
        connections: 2,
        ends: 2,
        calls: 1,
    });
    assert!(helpers.open(Kind::Ftp, key(1, ftp::PORT), 0));
    assert!(helpers.open(Kind::Ftp, key(2, ftp::PORT), IDLE_MILLIS));
    assert!(!helpers.open(Kind::Ftp, key(3, ftp::PORT), IDLE_MILLIS - 1));
    assert!(helpers.open(Kind::Ftp, key(3, ftp::PORT), IDLE_MILLIS));
    assert_eq!(helpers.len(), 2);
    helpers.close(&key(3, ftp::PORT));
    assert_eq!(helpers.len(), 1);
}

proptest! {
    /// A client sends lines, cut and repeated at random; the other side puts
    /// them together by their numbers. What it gets is the lines with their
    /// endpoints replaced, whole and in order.
    #[test]
    fn a_stream_arrives_whole(
        lines in prop::collection::vec((0..4_u8, any::<u16>()), 1..12),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 1..60_usize), 1..60),
    ) {
        let mut stream = String::new();
        let mut ends = vec![0];
        for (which, number) in lines {
            let number = number.max(LEAST_PORT);
            let [high, low] = number.to_be_bytes();
            match which {
                0 => stream.push_str(&format!("PORT 10,0,0,5,{high},{low}\r\n")),
                1 => stream.push_str(&format!("EPRT |1|10.0.0.5|{number}|\r\n")),
                _ => stream.push_str(&format!("NOOP {number}\r\n")),
            }
            ends.push(stream.len());
        }
        let mut trial = Trial::client();
        let mut received = vec![None; stream.len() + 12 * 30];
        let mut sent = 0;
        let mut send = |trial: &mut Trial, from: usize, to: usize| {
            let (at, text) = trial.out(1_000 + from as u32, &stream[from..to]).unwrap();
            for (offset, byte) in text.bytes().enumerate() {
                let place = &mut received[(at - 1_000) as usize + offset];
                prop_assert!(place.is_none_or(|known| known == byte));
                *place = Some(byte);
            }
            Ok(())
        };
        for (index, len) in cuts {
            // New data goes line by line; what was sent goes again anyhow.
            if let Some(end) = ends.iter().copied().find(|end| *end > sent) {
                send(&mut trial, sent, end)?;
                sent = end;
            }
            let from = index.index(sent);
            send(&mut trial, from, (from + len).min(sent))?;
        }
        let text: Vec<u8> = received.iter().map_while(|byte| *byte).collect();
        let text = String::from_utf8(text).unwrap();
        prop_assert!(!text.contains("10,0,0,5") && !text.contains("10.0.0.5"));
        prop_assert_eq!(text.lines().count(), ends.iter().filter(|end| **end <= sent).count() - 1);
        let last = trial.out(1_000 + sent as u32, "NOOP\r\n").unwrap();
        prop_assert_eq!(last.0 - 1_000, text.len() as u32);
    }

    #[test]
    fn total_on_any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..120), honest in any::<bool>()) {
        if honest && bytes.len() > 40 {
            let len = (bytes.len() as u16).to_be_bytes();
            bytes[0] = 0x45;
            bytes[2..4].copy_from_slice(&len);
            bytes[6..8].fill(0);
            bytes[9] = protocol::TCP;
            bytes[32] = 0x50;
        }
        for kind in [Kind::Ftp, Kind::Pptp, Kind::Proxied, Kind::Rtsp, Kind::Skinny] {
            let mut trial = Trial::new(kind, key(3_000, ftp::PORT));
            let mut give = |_: Wanted| Some((ALIAS, 1));
            let mut copy = bytes.clone();
            let _ = trial.helpers.outgoing(&trial.key, (ALIAS, 1), &mut copy, &mut give, 0);
            trial.helpers.incoming(&trial.key, ALIAS, &mut copy, 0);
            trial.helpers.calls_mut().translate_out(&mut copy, 0);
        }
    }
}
