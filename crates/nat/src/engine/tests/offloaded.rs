//! Offloaded flows: what may be one, what keeps it alive, and that it is
//! recalled before anybody else gets its alias endpoint.

use std::collections::HashMap;

use packet::tcp::{FIN, RST};

use super::saved::{saved, taken_up};
use super::*;
use crate::rules::{ProxyWord, Redirect, parse_proxy};
use crate::{Blocks, SubscriberConfig, TakenUp};

const FAR: (Ipv4Addr, u16) = (REMOTE, 5_300);
/// Milliseconds, shorter than UDP's timeout.
const MINUTE: u64 = 60_000;

/// A datagram out and its answer, as it is behind the translation.
fn answered(nat: &mut Nat, source: (Ipv4Addr, u16), to: (Ipv4Addr, u16), now: u64) -> Vec<u8> {
    let (verdict, port) = out(nat, source, to, now);
    assert_eq!(verdict, Verdict::Translated);
    let mut answer = Ip::new(to.0, ALIAS).udp(to.1, port, b"data");
    assert_eq!(nat.translate_in(&mut answer, now), Verdict::Translated);
    answer
}

/// The same, offloaded.
fn offloaded(nat: &mut Nat, source: (Ipv4Addr, u16), to: (Ipv4Addr, u16), now: u64) -> Offloaded {
    let answer = answered(nat, source, to, now);
    nat.offload(Direction::In, &answer).unwrap()
}

fn recalled(nat: &mut Nat) -> Vec<Recall> {
    std::iter::from_fn(|| nat.next_recalled()).collect()
}

fn view(nat: &Nat, flow: &Offloaded) -> Option<FlowView> {
    let [inside, remote] = [
        (flow.inside, flow.inside_port),
        (flow.remote, flow.remote_port),
    ];
    nat.lookup(Direction::Out, flow.protocol, end(inside), end(remote))
}

/// How far a connection is on both sides.
struct Connection {
    port: u16,
    sequences: [u32; 2],
}

impl Connection {
    const INSIDE: (Ipv4Addr, u16) = (HOST, 4_000);
    const REMOTE: (Ipv4Addr, u16) = (REMOTE, 80);

    /// One that is established.
    fn open(nat: &mut Nat) -> Self {
        let sequences = [1_000, 2_000];
        let mut connection = Self { port: 0, sequences };
        let opening = connection.send(nat, Direction::Out, SYN);
        connection.port = u16::from_be_bytes([opening[20], opening[21]]);
        assert_eq!(nat.offload(Direction::Out, &opening), None);
        connection.sequences[0] += 1;
        let answer = connection.send(nat, Direction::In, SYN | ACK);
        assert_eq!(nat.offload(Direction::In, &answer), None);
        connection.sequences[1] += 1;
        connection
    }

    /// One that is established and offloaded.
    fn offloaded(nat: &mut Nat) -> (Self, Offloaded) {
        let mut connection = Self::open(nat);
        let bytes = connection.send(nat, Direction::Out, ACK);
        let flow = nat.offload(Direction::Out, &bytes).unwrap();
        (connection, flow)
    }

    /// So many bytes go both ways, unseen by the engine.
    fn go_on(&mut self, bytes: u32) {
        self.sequences = self.sequences.map(|sequence| sequence.wrapping_add(bytes));
    }

    fn segment(&self, direction: Direction, flags: u8) -> Vec<u8> {
        let [inside, remote] = self.sequences;
        let (sequence, acknowledgement) = match direction {
            Direction::Out => (inside, remote),
            Direction::In => (remote, inside),
        };
        let segment = Segment {
            flags,
            sequence,
            acknowledgement: if flags & ACK == 0 { 0 } else { acknowledgement },
            window: 1_000,
            ..Segment::default()
        };
        match direction {
            Direction::Out => Ip::new(HOST, REMOTE).tcp(&Segment {
                source_port: Self::INSIDE.1,
                destination_port: Self::REMOTE.1,
                ..segment
            }),
            Direction::In => Ip::new(REMOTE, ALIAS).tcp(&Segment {
                source_port: Self::REMOTE.1,
                destination_port: self.port,
                ..segment
            }),
        }
    }

    /// A segment, as it is behind the translation.
    fn send(&mut self, nat: &mut Nat, direction: Direction, flags: u8) -> Vec<u8> {
        let mut bytes = self.segment(direction, flags);
        let verdict = match direction {
            Direction::Out => nat.translate_out(&mut bytes, 0),
            Direction::In => nat.translate_in(&mut bytes, 0),
        };
        assert_eq!(verdict, Verdict::Translated);
        bytes
    }

    /// The same, taken back before.
    fn send_back(&mut self, nat: &mut Nat, direction: Direction, flags: u8) {
        nat.take_back(direction, &self.segment(direction, flags));
        self.send(nat, direction, flags);
    }

    fn state(nat: &Nat) -> State {
        let (inside, remote) = (end(Self::INSIDE), end(Self::REMOTE));
        let view = nat.lookup(Direction::Out, protocol::TCP, inside, remote);
        view.unwrap().state
    }
}

#[test]
fn udp_is_offloaded_once_when_it_was_answered() {
    let mut nat = Nat::new(config(100)).unwrap();
    let mut bytes = Ip::new(HOST, REMOTE).udp(1, 5_300, b"data");
    nat.translate_out(&mut bytes, 0);
    assert_eq!(nat.offload(Direction::Out, &bytes), None);
    let port = u16::from_be_bytes([bytes[20], bytes[21]]);
    assert_eq!(back(&mut nat, FAR, port, 0), Verdict::Translated);
    // By a packet of either direction; not by one as it came.
    let mut other = Nat::new(config(100)).unwrap();
    let answer = answered(&mut other, (HOST, 1), FAR, 0);
    assert_eq!(nat.offload(Direction::In, &bytes), None);
    assert_eq!(other.offload(Direction::Out, &answer), None);
    let flow = nat.offload(Direction::Out, &bytes).unwrap();
    let expected = Offloaded {
        protocol: protocol::UDP,
        inside: HOST,
        inside_port: 1,
        remote: REMOTE,
        remote_port: 5_300,
        alias: ALIAS,
        alias_port: port,
    };
    assert_eq!(flow, expected);
    assert_eq!(other.offload(Direction::In, &answer), Some(expected));
    assert_eq!(nat.offload(Direction::Out, &bytes), None);
    assert_eq!(nat.next_recalled(), None);
}

#[test]
fn tcp_is_offloaded_when_it_is_established() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (mut connection, flow) = Connection::offloaded(&mut nat);
    assert_eq!((flow.inside, flow.inside_port), Connection::INSIDE);
    assert_eq!((flow.remote, flow.remote_port), Connection::REMOTE);
    assert_eq!((flow.alias, flow.alias_port), (ALIAS, connection.port));
    // A FIN within the window, of which nobody told the engine before.
    connection.send(&mut nat, Direction::Out, FIN | ACK);
    assert_eq!(Connection::state(&nat), State::TcpHalfClosed);
    let (inside, remote) = (end(Connection::INSIDE), end(Connection::REMOTE));
    assert!(nat.remove(Direction::Out, protocol::TCP, inside, remote));
    assert_eq!(recalled(&mut nat), [Recall::Flow(flow)]);
    let mut connection = Connection::open(&mut nat);
    connection.send(&mut nat, Direction::Out, ACK);
    let bytes = connection.send(&mut nat, Direction::In, FIN | ACK);
    assert_eq!(nat.offload(Direction::In, &bytes), None);
    let bytes = connection.send(&mut nat, Direction::In, ACK);
    assert_eq!(nat.offload(Direction::In, &bytes), None);
}

#[test]
fn what_has_something_special_about_it_is_not_offloaded() {
    let refused = |change: fn(&mut Nat), to: (Ipv4Addr, u16)| {
        let mut nat = Nat::new(config(100)).unwrap();
        change(&mut nat);
        let answer = answered(&mut nat, (HOST, 4_000), to, 0);
        nat.offload(Direction::In, &answer).is_none()
    };
    assert!(!refused(|_| {}, FAR));
    assert!(refused(|_| {}, (REMOTE, 53)), "a question of DNS");
    assert!(refused(|_| {}, (REMOTE, 69)), "a helper's");
    let without = |nat: &mut Nat| nat.set_helpers(Helped::NONE);
    assert!(!refused(without, (REMOTE, 69)));
    let proxied = |nat: &mut Nat| {
        let text = "port 5060 server 203.0.113.80:3128 proto udp";
        let Ok(ProxyWord::Add(rule)) = parse_proxy(text) else {
            unreachable!("{text}");
        };
        nat.rules_mut().add_proxy(rule).unwrap();
    };
    let mut nat = Nat::new(config(100)).unwrap();
    proxied(&mut nat);
    let mut bytes = Ip::new(HOST, REMOTE).udp(4_000, 5_060, b"data");
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let server = (Ipv4Addr::from([203, 0, 113, 80]), 3_128);
    assert_eq!(bytes[16..20], server.0.octets());
    let port = u16::from_be_bytes([bytes[20], bytes[21]]);
    assert_eq!(back(&mut nat, server, port, 0), Verdict::Translated);
    assert_eq!(nat.offload(Direction::Out, &bytes), None, "a proxy's");
}

/// Neither half of it, whoever turns its packets back.
#[test]
fn a_hairpin_is_not_offloaded() {
    let other = host(5);
    for hairpin in [Hairpin::Engine, Hairpin::Caller] {
        let mut nat = Nat::new(config(100)).unwrap();
        nat.set_hairpin(hairpin);
        let redirect = Redirect::port(protocol::UDP, other, 9, 40_000);
        nat.rules_mut().insert(redirect.at(ALIAS)).unwrap();
        let turn_back = |nat: &mut Nat, bytes: &mut Vec<u8>| {
            if nat.translate_out(bytes, 0) == Verdict::Translated {
                assert_eq!(nat.offload(Direction::Out, bytes), None);
                assert_eq!(nat.translate_in(bytes, 0), Verdict::Translated);
            }
            assert_eq!(nat.offload(Direction::In, bytes), None);
        };
        let mut bytes = Ip::new(HOST, ALIAS).udp(4_000, 40_000, b"data");
        for _ in 0..2 {
            turn_back(&mut nat, &mut bytes);
            assert_eq!(bytes[16..20], other.octets());
            let port = u16::from_be_bytes([bytes[20], bytes[21]]);
            bytes = Ip::new(other, ALIAS).udp(9, port, b"data");
            turn_back(&mut nat, &mut bytes);
            assert_eq!(bytes[16..20], HOST.octets());
            bytes = Ip::new(HOST, ALIAS).udp(4_000, 40_000, b"data");
        }
        let (inside, remote) = (end((HOST, 4_000)), end((ALIAS, 40_000)));
        let view = nat.lookup(Direction::Out, protocol::UDP, inside, remote);
        assert_eq!(view.unwrap().state, State::Udp);
    }
}

#[test]
fn only_whole_plain_packets_offload_their_flow() {
    let mut nat = Nat::new(config(100)).unwrap();
    let answer = answered(&mut nat, (HOST, 1), FAR, 0);
    let mut fragment = answer.clone();
    fragment[6] |= 0x20;
    assert_eq!(nat.offload(Direction::In, &fragment), None);
    assert_eq!(nat.offload(Direction::In, &answer[..27]), None);
    let ip = Ip::new(REMOTE, HOST);
    let with_options = ip.packet(protocol::UDP, &[1; 4], &answer[20..]);
    assert_eq!(nat.offload(Direction::In, &with_options), None);
    assert!(nat.offload(Direction::In, &answer).is_some());
}

#[test]
fn nothing_is_offloaded_that_has_expired_or_was_forgotten() {
    let mut nat = Nat::new(config(100)).unwrap();
    let answer = answered(&mut nat, (HOST, 1), FAR, 0);
    nat.maintain(10 * MINUTE, 0);
    assert_eq!(nat.offload(Direction::In, &answer), None);
    let answer = answered(&mut nat, (HOST, 1), FAR, 10 * MINUTE);
    nat.forget_flows();
    assert_eq!(nat.offload(Direction::In, &answer), None);
    assert_eq!(nat.next_recalled(), None, "nothing was offloaded");
}

#[test]
fn nothing_is_offloaded_that_would_go_uncounted_or_backwards() {
    let mut counting = config(100);
    counting.subscribers = SubscriberConfig {
        counted: true,
        ..SubscriberConfig::default()
    };
    let mut nat = Nat::new(counting).unwrap();
    let answer = answered(&mut nat, (HOST, 1), FAR, 0);
    assert_eq!(nat.offload(Direction::In, &answer), None);
    // Subscribers with blocks alone are no hindrance.
    let mut with_blocks = config(100);
    with_blocks.blocks = Some(Blocks::default());
    let mut nat = Nat::new(with_blocks).unwrap();
    let flow = offloaded(&mut nat, (HOST, 1), FAR, 0);
    let reverse = Mode {
        reverse: true,
        ..nat.config().mode
    };
    nat.set_mode(reverse);
    assert_eq!(recalled(&mut nat), [Recall::All]);
    assert!(!nat.touch_offloaded(&flow, 0, 0));
    let mut bytes = Ip::new(ALIAS, REMOTE).udp(flow.alias_port, 5_300, b"data");
    assert_eq!(nat.offload(Direction::Out, &bytes), None);
    bytes = Ip::new(REMOTE, HOST).udp(5_300, 1, b"data");
    assert_eq!(nat.offload(Direction::In, &bytes), None);
    nat.set_mode(Mode {
        reverse: false,
        ..reverse
    });
    assert_eq!(nat.offload(Direction::In, &bytes), Some(flow));
}

#[test]
fn a_connection_closes_after_gigabytes_that_nobody_saw() {
    for gigabytes in [1, 3] {
        for [first, second] in [
            [Direction::Out, Direction::In],
            [Direction::In, Direction::Out],
        ] {
            let mut nat = Nat::new(config(100)).unwrap();
            let (mut connection, flow) = Connection::offloaded(&mut nat);
            connection.go_on(gigabytes << 30);
            connection.send(&mut nat, first, FIN | ACK);
            assert_eq!(Connection::state(&nat), State::TcpEstablished);
            connection.send_back(&mut nat, first, FIN | ACK);
            assert_eq!(Connection::state(&nat), State::TcpHalfClosed);
            assert!(!nat.touch_offloaded(&flow, 0, 0));
            let side = usize::from(first == Direction::In);
            connection.sequences[side] = connection.sequences[side].wrapping_add(1);
            let bytes = connection.send(&mut nat, second, ACK);
            assert_eq!(nat.offload(second, &bytes), None);
            connection.send_back(&mut nat, second, FIN | ACK);
            assert_eq!(Connection::state(&nat), State::TcpClosed);
            assert_eq!(nat.next_recalled(), None);
        }
    }
}

#[test]
fn a_connection_is_reset_after_gigabytes_that_nobody_saw() {
    for flags in [RST, RST | ACK] {
        for direction in [Direction::Out, Direction::In] {
            let mut nat = Nat::new(config(100)).unwrap();
            let (mut connection, _) = Connection::offloaded(&mut nat);
            connection.go_on(3 << 30);
            connection.send(&mut nat, direction, flags);
            assert_eq!(Connection::state(&nat), State::TcpEstablished);
            connection.send_back(&mut nat, direction, flags);
            assert_eq!(Connection::state(&nat), State::TcpReset);
        }
    }
}

/// What is believed may have been forged: the connection goes on by its own
/// segments, and is offloaded again.
#[test]
fn a_forged_reset_shuts_nobody_out() {
    for direction in [Direction::Out, Direction::In] {
        for off_by in [1 << 30, 3 << 30] {
            let mut nat = Nat::new(config(100)).unwrap();
            let (mut connection, flow) = Connection::offloaded(&mut nat);
            connection.go_on(3 << 30);
            connection.go_on(off_by);
            connection.send_back(&mut nat, direction, RST);
            assert_eq!(Connection::state(&nat), State::TcpReset);
            connection.go_on(0_u32.wrapping_sub(off_by));
            for _ in 0..2 {
                connection.send(&mut nat, Direction::Out, ACK);
                connection.send(&mut nat, Direction::In, ACK);
            }
            assert_eq!(Connection::state(&nat), State::TcpEstablished);
            let bytes = connection.send(&mut nat, Direction::Out, ACK);
            assert_eq!(nat.offload(Direction::Out, &bytes), Some(flow));
        }
    }
}

/// A host that was started anew asks for a connection that its remote still
/// has (RFC 9293 §3.5.1).
#[test]
fn a_restart_resets_what_the_remote_still_has() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (mut connection, flow) = Connection::offloaded(&mut nat);
    connection.go_on(3 << 30);
    let former = connection.sequences;
    connection.sequences[0] = 77;
    connection.send_back(&mut nat, Direction::Out, SYN);
    assert_eq!(Connection::state(&nat), State::TcpEstablished);
    assert!(!nat.touch_offloaded(&flow, 0, 0));
    connection.sequences = former;
    let challenge = connection.send(&mut nat, Direction::In, ACK);
    assert_eq!(nat.offload(Direction::In, &challenge), None, "not settled");
    connection.send(&mut nat, Direction::Out, RST);
    assert_eq!(Connection::state(&nat), State::TcpReset);
}

#[test]
fn only_what_changes_a_connection_takes_it_back() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (connection, flow) = Connection::offloaded(&mut nat);
    let udp = offloaded(&mut nat, (HOST, 1), FAR, 0);
    for direction in [Direction::Out, Direction::In] {
        nat.take_back(direction, &connection.segment(direction, ACK));
        nat.take_back(direction, &connection.segment(direction, FIN)[..39]);
    }
    nat.take_back(Direction::In, &connection.segment(Direction::Out, FIN));
    let bytes = Ip::new(HOST, REMOTE).udp(1, 5_300, &[0xff; 20]);
    nat.take_back(Direction::Out, &bytes);
    assert!(nat.touch_offloaded(&flow, 0, 0) && nat.touch_offloaded(&udp, 0, 0));
    // With IPv4 options, too.
    let fin = connection.segment(Direction::Out, FIN);
    let ip = Ip::new(HOST, REMOTE);
    let bytes = ip.packet(protocol::TCP, &[1; 4], &fin[20..]);
    nat.take_back(Direction::Out, &bytes);
    assert!(!nat.touch_offloaded(&flow, 0, 0));
}

/// Its own segments may come here all the same, from far behind the window
/// that the engine knows.
#[test]
fn what_comes_here_all_the_same_is_translated() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (mut connection, flow) = Connection::offloaded(&mut nat);
    for _ in 0..10 {
        connection.go_on(1_234_567_890);
        for direction in [Direction::Out, Direction::In] {
            let bytes = connection.send(&mut nat, direction, ACK);
            assert_eq!(nat.offload(direction, &bytes), None);
        }
        assert_eq!(Connection::state(&nat), State::TcpEstablished);
    }
    assert!(nat.touch_offloaded(&flow, 0, 0));
    connection.send_back(&mut nat, Direction::In, RST);
    assert_eq!(Connection::state(&nat), State::TcpReset);
}

#[test]
fn what_nobody_touches_expires_and_is_recalled() {
    let mut nat = Nat::new(config(100)).unwrap();
    let first = offloaded(&mut nat, (HOST, 1), FAR, 0);
    let second = offloaded(&mut nat, (HOST, 2), FAR, 0);
    answered(&mut nat, (HOST, 3), FAR, 0);
    assert!(nat.touch_offloaded(&second, 0, 4 * MINUTE));
    nat.maintain(6 * MINUTE, 1_000);
    assert_eq!(recalled(&mut nat), [Recall::Flow(first)]);
    assert!(!nat.touch_offloaded(&first, 0, 6 * MINUTE));
    assert!(nat.touch_offloaded(&second, 0, 6 * MINUTE));
    // Found expired by a packet, without a sweep.
    let (verdict, _) = out(&mut nat, (HOST, 2), FAR, 12 * MINUTE);
    assert_eq!(verdict, Verdict::Translated);
    assert_eq!(recalled(&mut nat), [Recall::Flow(second)]);
    assert!(!nat.touch_offloaded(&second, 0, 12 * MINUTE));
}

#[test]
fn a_touch_lets_a_flow_live_as_its_packet_would() {
    let mut nat = Nat::new(config(100)).unwrap();
    let flow = offloaded(&mut nat, (HOST, 1), FAR, 0);
    let idle = |nat: &Nat| view(nat, &flow).map(|view| view.idle_millis / 1_024);
    assert!(nat.touch_offloaded(&flow, 1_024, 4 * MINUTE));
    assert_eq!(idle(&nat), Some(1));
    // What is longer ago changes nothing.
    assert!(nat.touch_offloaded(&flow, 2 * MINUTE, 4 * MINUTE));
    assert!(nat.touch_offloaded(&flow, u64::MAX, 4 * MINUTE));
    assert_eq!(idle(&nat), Some(1));
    // It looks expired, and was alive in truth.
    nat.maintain(12 * MINUTE, 0);
    assert_eq!(view(&nat, &flow), None);
    assert!(nat.touch_offloaded(&flow, 10_240, 12 * MINUTE));
    assert_eq!(idle(&nat), Some(10));
    nat.maintain(12 * MINUTE, 1_000);
    let verdict = back(&mut nat, FAR, flow.alias_port, 12 * MINUTE);
    assert_eq!(verdict, Verdict::Translated);
    assert_eq!(nat.next_recalled(), None);
    // Another flow is not meant, be it at the same endpoints.
    let other = Offloaded {
        alias_port: flow.alias_port ^ 1,
        ..flow
    };
    assert!(!nat.touch_offloaded(&other, 0, 12 * MINUTE));
}

#[test]
fn a_touch_lets_the_shared_mapping_live_on() {
    let mut config = config(100);
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let flow = offloaded(&mut nat, (HOST, 1), FAR, 0);
    let mapping = |nat: &Nat| nat.mapping(protocol::UDP, end((HOST, 1)), REMOTE.into());
    for minute in 1..=12 {
        assert!(nat.touch_offloaded(&flow, 0, minute * MINUTE));
        nat.maintain(minute * MINUTE, 1_000);
        assert_eq!(mapping(&nat).unwrap().alias_port, flow.alias_port);
    }
    // So it does where both look expired.
    let now = 20 * MINUTE;
    nat.maintain(now, 0);
    assert_eq!(mapping(&nat), None);
    assert!(nat.touch_offloaded(&flow, 1_000, now));
    nat.maintain(now, 1_000);
    assert_eq!(mapping(&nat).unwrap().alias_port, flow.alias_port);
    // Another remote gets in, another flow of the inside goes by it.
    let stranger = (Ipv4Addr::new(203, 0, 113, 9), 7);
    let verdict = back(&mut nat, stranger, flow.alias_port, now);
    assert_eq!(verdict, Verdict::Translated);
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_301), now);
    assert_eq!(port, flow.alias_port);
    assert_eq!(nat.next_recalled(), None);
}

#[test]
fn what_gives_way_or_is_removed_is_recalled() {
    let mut config = config(4);
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let own = offloaded(&mut nat, (HOST, 1), FAR, 0);
    // A stranger's flow, taken up by the inside; the next one's takes its
    // place.
    let stranger = (Ipv4Addr::new(203, 0, 113, 9), 7);
    back(&mut nat, stranger, own.alias_port, 0);
    let mut bytes = Ip::new(HOST, stranger.0).udp(1, stranger.1, b"data");
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let taken_up = nat.offload(Direction::Out, &bytes).unwrap();
    assert_eq!(taken_up.remote, stranger.0);
    let verdict = back(&mut nat, (stranger.0, 8), own.alias_port, 0);
    assert_eq!(verdict, Verdict::Translated);
    assert_eq!(nat.statistics().flows_evicted, 1);
    assert_eq!(recalled(&mut nat), [Recall::Flow(taken_up)]);
    assert!(remove(&mut nat, (HOST, 1), FAR));
    assert_eq!(recalled(&mut nat), [Recall::Flow(own)]);
}

#[test]
fn all_are_recalled_when_they_are_forgotten_and_once_only() {
    let mut nat = Nat::new(config(1_000)).unwrap();
    // Epochs go round.
    for round in 0..300 {
        let first = offloaded(&mut nat, (HOST, 1), FAR, round);
        let second = offloaded(&mut nat, (HOST, 2), FAR, round);
        nat.forget_flows();
        assert!(!nat.touch_offloaded(&first, 0, round));
        assert_eq!(recalled(&mut nat), [Recall::All]);
        // What is left of it is swept without a word, by its packet as well.
        let again = offloaded(&mut nat, (HOST, 2), FAR, round);
        assert_eq!(again.inside_port, second.inside_port);
        nat.maintain(round, 1_000);
        assert_eq!(nat.next_recalled(), None);
        assert!(nat.touch_offloaded(&again, 0, round));
        // The recall of one is in the recall of all.
        assert!(remove(&mut nat, (HOST, 2), FAR));
        nat.forget_flows();
        assert_eq!(recalled(&mut nat), [Recall::All]);
    }
    let mut config = config(100);
    config.mode.reset_on_address_change = true;
    let mut nat = Nat::new(config).unwrap();
    offloaded(&mut nat, (HOST, 1), FAR, 0);
    nat.set_addresses(&[Ipv4Addr::new(192, 0, 2, 2)]).unwrap();
    assert_eq!(recalled(&mut nat), [Recall::All]);
}

#[test]
fn nothing_is_offloaded_while_recalls_wait() {
    let mut nat = Nat::new(config(100)).unwrap();
    let mut offloads = 0;
    for port in 1..=1_000 {
        let answer = answered(&mut nat, (HOST, port), FAR, 0);
        offloads += usize::from(nat.offload(Direction::In, &answer).is_some());
        assert!(remove(&mut nat, (HOST, port), FAR));
    }
    assert_eq!((offloads, recalled(&mut nat).len()), (1, 1));
    offloaded(&mut nat, (HOST, 1), FAR, 0);
}

#[test]
fn a_flow_that_was_taken_up_is_not_offloaded() {
    let mut nat = Nat::new(config(100)).unwrap();
    let flow = offloaded(&mut nat, (HOST, 1), FAR, 0);
    let bytes = saved(&mut nat, 0);
    assert!(nat.touch_offloaded(&flow, 0, 0));
    let mut other = Nat::new(nat.config().clone()).unwrap();
    let taken: TakenUp = taken_up(&mut other, &bytes, 0, 0).unwrap();
    assert_eq!(taken.flows, 1);
    assert!(!other.touch_offloaded(&flow, 0, 0));
    let again = offloaded(&mut other, (HOST, 1), FAR, 0);
    assert_eq!(again, flow);
    assert!(remove(&mut other, (HOST, 1), FAR));
    assert_eq!(recalled(&mut other), [Recall::Flow(flow)]);
}

/// What another translates by, filled and emptied as the engine says.
#[derive(Default)]
struct Elsewhere {
    flows: HashMap<Offloaded, ()>,
    offloads: usize,
    recalls: usize,
    recalls_of_all: usize,
}

impl Elsewhere {
    fn offload(&mut self, nat: &mut Nat, came: &[(Verdict, Vec<u8>)]) {
        for (_, bytes) in came.iter().filter(|(what, _)| *what == Verdict::Translated) {
            let source = Ipv4Addr::from([bytes[12], bytes[13], bytes[14], bytes[15]]);
            let is_out = source.octets().starts_with(&ALIAS.octets()[..3]);
            let direction = [Direction::In, Direction::Out][usize::from(is_out)];
            if let Some(flow) = nat.offload(direction, bytes) {
                self.offloads += 1;
                assert_eq!(self.flows.insert(flow, ()), None, "offloaded twice");
            }
        }
    }

    fn drain(&mut self, nat: &mut Nat) {
        while let Some(recall) = nat.next_recalled() {
            match recall {
                Recall::Flow(flow) => {
                    self.recalls += 1;
                    assert_eq!(self.flows.remove(&flow), Some(()), "nobody had it");
                }
                Recall::All => {
                    self.recalls_of_all += 1;
                    self.flows.clear();
                }
            }
        }
    }

    /// One of them at random.
    fn any(&self, random: &mut Random) -> Option<Offloaded> {
        let mut flows: Vec<_> = self.flows.keys().copied().collect();
        flows.sort_by_key(|flow| {
            (
                flow.protocol,
                flow.inside,
                flow.inside_port,
                flow.remote_port,
            )
        });
        let at = random.below(flows.len().max(1) as u32);
        flows.get(at as usize).copied()
    }

    /// Whatever it holds is the engine's as well, and nobody else's.
    fn audit(&self, nat: &Nat) {
        let mut marked = 0;
        for name in 0..nat.table.places() as u32 {
            let flow = nat.table.get(name).unwrap();
            if flow.has(flag::LIVE | flag::OFFLOADED) && flow.epoch() == nat.epoch {
                marked += 1;
                assert!(self.flows.contains_key(&flow.ends().into()));
            }
        }
        assert_eq!(marked, self.flows.len());
        for flow in self.flows.keys() {
            let (remote, alias) = (
                (flow.remote, flow.remote_port),
                (flow.alias, flow.alias_port),
            );
            let incoming = nat.lookup(Direction::In, flow.protocol, end(remote), end(alias));
            // One that has expired is not seen, and nobody else's yet.
            for view in [incoming, view(nat, flow)].into_iter().flatten() {
                assert_eq!(view.inside, IpAddr::from(flow.inside));
                assert_eq!(view.inside_port, flow.inside_port);
                assert_eq!(view.alias, IpAddr::from(flow.alias));
                assert_eq!(view.alias_port, flow.alias_port);
                assert_eq!(view.remote, IpAddr::from(flow.remote));
            }
        }
    }
}

/// What ends the connection of an offloaded flow comes.
fn end_connection(nat: &mut Nat, flow: &Offloaded, random: &mut Random, now: u64) {
    let flags = [SYN, FIN | ACK, RST][random.below(3) as usize];
    let sequence = random.next() as u32;
    let segment = Segment {
        flags,
        sequence,
        ..Segment::default()
    };
    if random.below(2) == 0 {
        let mut bytes = Ip::new(flow.inside, flow.remote).tcp(&Segment {
            source_port: flow.inside_port,
            destination_port: flow.remote_port,
            ..segment
        });
        nat.take_back(Direction::Out, &bytes);
        nat.translate_out(&mut bytes, now);
    } else {
        let mut bytes = Ip::new(flow.remote, flow.alias).tcp(&Segment {
            source_port: flow.remote_port,
            destination_port: flow.alias_port,
            ..segment
        });
        nat.take_back(Direction::In, &bytes);
        nat.translate_in(&mut bytes, now);
    }
}

/// A datagram of anybody, and its answer.
fn question(nat: &mut Nat, random: &mut Random, now: u64) -> Vec<(Verdict, Vec<u8>)> {
    let source = (host(random.below(9)), 1 + random.below(6) as u16);
    let to = 54 + random.below(2) as u16;
    let mut bytes = Ip::new(source.0, REMOTE).udp(source.1, to, b"data");
    let verdict = nat.translate_out(&mut bytes, now);
    let alias = Ipv4Addr::from([bytes[12], bytes[13], bytes[14], bytes[15]]);
    let port = u16::from_be_bytes([bytes[20], bytes[21]]);
    let mut answer = Ip::new(REMOTE, alias).udp(to, port, b"data");
    let answered = nat.translate_in(&mut answer, now);
    vec![(verdict, bytes), (answered, answer)]
}

#[test]
fn nobody_elses_packets_are_translated_elsewhere() {
    let mut seen = [0; 4];
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let mut config = generated::config(&mut random, seed);
        if config.blocks.is_none() {
            // Few, which go from one to the next.
            config.ports = 40_000..=40_007;
        }
        let mut nat = Nat::new(config).unwrap();
        let mut elsewhere = Elsewhere::default();
        let mut now = 0;
        for _ in 0..800 {
            let came = match random.below(2) {
                0 => generated::step(&mut nat, &mut random, &mut now),
                _ => question(&mut nat, &mut random, now),
            };
            elsewhere.drain(&mut nat);
            elsewhere.audit(&nat);
            elsewhere.offload(&mut nat, &came);
            elsewhere.audit(&nat);
            let Some(flow) = elsewhere.any(&mut random) else {
                continue;
            };
            match random.below(8) {
                0..4 => {
                    let idle = u64::from(random.below(100_000));
                    assert!(nat.touch_offloaded(&flow, idle, now));
                }
                4 if flow.protocol == protocol::TCP => {
                    seen[3] += 1;
                    elsewhere.flows.remove(&flow);
                    end_connection(&mut nat, &flow, &mut random, now);
                    assert!(!nat.touch_offloaded(&flow, 0, now));
                }
                5 if random.below(20) == 0 => {
                    let mode = nat.config().mode;
                    let reverse = Mode {
                        reverse: true,
                        ..mode
                    };
                    nat.set_mode(reverse);
                    nat.set_mode(mode);
                }
                6 => {
                    let inside = end((flow.inside, flow.inside_port));
                    let remote = end((flow.remote, flow.remote_port));
                    assert!(nat.remove(Direction::Out, flow.protocol, inside, remote));
                }
                7 if random.below(4) == 0 => now += 301_000,
                _ => {}
            }
            elsewhere.drain(&mut nat);
            elsewhere.audit(&nat);
            super::books::audit(&nat);
        }
        nat.maintain(now + 100_000_000, usize::MAX);
        elsewhere.drain(&mut nat);
        assert_eq!((elsewhere.flows.len(), nat.statistics().flows), (0, 0));
        seen[0] += elsewhere.offloads;
        seen[1] += elsewhere.recalls;
        seen[2] += elsewhere.recalls_of_all;
    }
    // All of it happened, and often.
    assert!(seen.iter().all(|times| *times > 200), "{seen:?}");
}
