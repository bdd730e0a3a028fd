//! Several workers that share an alias address. Packets come to any of them,
//! and what one hands over another takes at once.

use std::collections::{HashMap, VecDeque};

use lab::Random;
use nat::rules::Redirect;
use nat::{Behaviour, Config};

use super::*;

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 99);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn host(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 2, 10 + number as u8)
}

/// Workers by their forwarders.
struct Many {
    all: Vec<Router>,
    random: Random,
    now: u64,
}

/// What left: by which port, without the link's header.
type Left = Vec<(u16, Vec<u8>)>;

impl Many {
    fn new(workers: u16, change: impl Fn(&mut Config)) -> Self {
        let mut config = Config::new(&[ALIAS]);
        config.limits.max_flows = 1 << 12;
        config.seed = 3;
        change(&mut config);
        let made = |_| {
            let mut nat = Nat::new(config.clone()).unwrap();
            let redirect = Redirect::port(protocol::UDP, host(1), 7, 7_000);
            nat.rules_mut().insert(redirect).unwrap();
            nat
        };
        let engines: Vec<Nat> = (0..workers).map(made).collect();
        let shards = Arc::new(engines[0].shards(workers).unwrap());
        let engines = engines.into_iter().zip(0..).map(|(mut nat, number)| {
            nat.join_shards(Arc::clone(&shards), number);
            let mut router = router_with(Some(nat), Settings::default());
            let mut own = address(3, "192.0.2.99/32");
            for number in 0..20 {
                let to = host(number).to_string();
                own.push(known(2, &to, [2, 8, 0, 0, 0, number as u8]));
            }
            router.commit(own);
            router
        });
        Self {
            all: engines.collect(),
            random: Random::new(5),
            now: 1_000,
        }
    }

    /// A packet that comes to some worker, to its end.
    fn take(&mut self, port: u16, packet: &[u8]) -> Left {
        let first = self.random.below(self.all.len());
        let frame = frame(mac(1, u32::from(port) + 2), packet);
        let came = self.all[first].take(port, &[frame], self.now);
        let mut under_way: VecDeque<(u16, Vec<u8>)> = came.into();
        let mut left = Vec::new();
        let mut handed = 0;
        while let Some((port, bytes)) = under_way.pop_front() {
            match worker_of(port) {
                Some(worker) => {
                    handed += 1;
                    assert!(handed < 100, "{bytes:?} for ever");
                    under_way.extend(self.all[worker].take_over(&[bytes], self.now));
                }
                None if port == HOST => left.push((port, bytes)),
                None => left.push((port, bytes[14..].to_vec())),
            }
        }
        left
    }

    fn count(&self, reason: Reason) -> u64 {
        let counted = self.all.iter().map(|router| count(router, reason));
        counted.sum()
    }
}

/// One packet that left by a port: source, destination, both ports.
fn ends(left: &Left, by: u16) -> ((Ipv4Addr, u16), (Ipv4Addr, u16)) {
    let [(port, bytes)] = left.as_slice() else {
        panic!("{left:?}");
    };
    assert_eq!(*port, by);
    let ip = Ipv4::new(&bytes[..]).unwrap();
    let udp = packet::Udp::new(ip.payload()).unwrap();
    assert!(ip.checksum_is_right() && udp.checksum_is_right(ip.pseudo_header()));
    assert_eq!(ip.ttl(), 63);
    let source = (ip.source(), udp.source_port());
    (source, (ip.destination(), udp.destination_port()))
}

fn data(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    Ip::new(from.0, to.0).udp(from.1, to.1, b"some data")
}

#[test]
fn flows_go_out_and_come_back_whoever_they_come_to() {
    for workers in [1, 2, 5] {
        let mut many = Many::new(workers, |_| {});
        let mut seen = HashMap::new();
        let remote = |number| (Ipv4Addr::new(198, 51, 100, number), 53);
        for _ in 0..2_000 {
            let from = (
                host(many.random.below(20)),
                4_000 + many.random.below(50) as u16,
            );
            let to = remote(many.random.below(3) as u8);
            let (alias, meant) = ends(&many.take(0, &data(from, to)), 1);
            assert_eq!((alias.0, meant), (ALIAS, to));
            assert_eq!(*seen.entry((alias, to)).or_insert(from), from);
            let back = many.take(1, &data(to, alias));
            assert_eq!(ends(&back, 0), (to, from));
        }
        // What a redirect lets in, and what nothing does.
        let asked = many.take(1, &data((REMOTE, 9), (ALIAS, 7_000)));
        assert_eq!(ends(&asked, 0), ((REMOTE, 9), (host(1), 7)));
        let answer = many.take(0, &data((host(1), 7), (REMOTE, 9)));
        assert_eq!(ends(&answer, 1), ((ALIAS, 7_000), (REMOTE, 9)));
        for port in 0..20 {
            assert_eq!(many.take(1, &data((REMOTE, 9), (ALIAS, port))), []);
        }
        assert_eq!(many.count(Reason::NatNoMapping), 20);
        // Between links inside nobody hands anything over.
        let handed = |many: &Many| -> u64 {
            let counted = many.all.iter().map(|router| router.forwarder.counters());
            counted
                .map(|counters| counters.of_node(Node::Handoff))
                .sum()
        };
        let before = handed(&many);
        assert_eq!(before > 1_000, workers > 1);
        for number in 0..20 {
            let left = many.take(0, &data((host(number), 1), ([198, 52, 1, 1].into(), 2)));
            assert_eq!(left[0].0, 2);
        }
        assert_eq!(handed(&many), before);
    }
}

/// A datagram in three pieces.
fn pieces(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), identification: u16) -> [Vec<u8>; 3] {
    let whole = Ip::new(from.0, to.0).udp(from.1, to.1, &[7; 440]);
    let mut ip = Ip::new(from.0, to.0);
    ip.identification = identification;
    [(20..220, 0x2000), (220..420, 0x2000 + 25), (420..468, 50)].map(|(bytes, flags)| {
        ip.flags_and_offset = flags;
        ip.packet(protocol::UDP, &[], &whole[bytes])
    })
}

const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

/// Takes the pieces in an order; gives the datagram as it was put together.
fn together(
    many: &mut Many,
    port: u16,
    pieces: &[Vec<u8>; 3],
    order: [usize; 3],
) -> (u16, Vec<u8>) {
    let mut left = Vec::new();
    for at in order {
        left.extend(many.take(port, &pieces[at]));
    }
    // What comes before its first one may be the host's: it hears of it.
    left.retain(|(port, _)| *port != HOST);
    assert_eq!(left.len(), 3, "{order:?}: {left:?}");
    left.sort_by_key(|(_, bytes)| Ipv4::new(&bytes[..]).unwrap().fragment_offset_bytes());
    let mut whole = Vec::new();
    for (by, bytes) in &left {
        let ip = Ipv4::new(&bytes[..]).unwrap();
        assert!(ip.checksum_is_right() && *by == left[0].0);
        assert_eq!(bytes[12..20], left[0].1[12..20]);
        whole.extend(ip.payload());
    }
    let first = Ipv4::new(&left[0].1[..]).unwrap();
    let mut ip = Ip::new(first.source(), first.destination());
    ip.ttl = first.ttl();
    (left[0].0, ip.packet(protocol::UDP, &[], &whole))
}

#[test]
fn fragments_in_any_order_come_to_who_has_their_flow() {
    let mut many = Many::new(4, |_| {});
    for number in 0..120_u16 {
        let from = (host(usize::from(number) % 20), 4_000 + number);
        let order = ORDERS[usize::from(number) % 6];
        let out = pieces(from, (REMOTE, 53), number);
        let (alias, _) = ends(&vec![together(&mut many, 0, &out, order)], 1);
        let answer = pieces((REMOTE, 53), alias, 1_000 + number);
        let back = together(&mut many, 1, &answer, order);
        assert_eq!(ends(&vec![back], 0), ((REMOTE, 53), from));
        // Of nobody's flow none gets in, whenever the first one comes.
        let strange = pieces((REMOTE, 54), alias, 2_000 + number);
        for at in order {
            assert_eq!(many.take(1, &strange[at]), []);
        }
    }
    assert!(many.count(Reason::HandoffHeld) > 0);
    assert_eq!(many.count(Reason::HandoffNoRoom), 0);
}

#[test]
fn hosts_of_two_workers_meet_also_in_pieces() {
    let mut many = Many::new(4, |config| config.udp = Behaviour::FULL_CONE);
    let mut apart = 0;
    for number in 0..100_u16 {
        let order = ORDERS[usize::from(number) % 6];
        let (one, other) = (
            (host(usize::from(number) % 20), 5_000),
            (host(7), 6_000 + number),
        );
        let (alias, _) = ends(&many.take(0, &data(other, (REMOTE, 53))), 1);
        let before = many
            .all
            .iter()
            .map(|router| router.forwarder.counters().of_node(Node::Handoff));
        let before: u64 = before.sum();
        let (from, to) = ends(&many.take(0, &data(one, alias)), 0);
        let after = many
            .all
            .iter()
            .map(|router| router.forwarder.counters().of_node(Node::Handoff));
        apart += usize::from(after.sum::<u64>() > before + 1);
        assert_eq!((from.0, to), (ALIAS, other));
        let answer = many.take(0, &data(other, from));
        assert_eq!(ends(&answer, 0), (alias, one));
        let sent = pieces(one, alias, number);
        let whole = together(&mut many, 0, &sent, order);
        assert_eq!(ends(&vec![whole], 0), (from, other));
    }
    assert!(apart > 0);
}

#[test]
fn what_gets_nowhere_inside_is_the_hosts_as_it_was() {
    let mut many = Many::new(4, |_| {});
    for number in 0..60_u16 {
        let one = (host(usize::from(number) % 20), 5_000 + number);
        let packet = data(one, (ALIAS, number));
        assert_eq!(many.take(0, &packet), [(HOST, packet)]);
        let sent = pieces(one, (ALIAS, number), number);
        for at in [0, 1, 2] {
            let expected = sent[at].clone();
            assert_eq!(many.take(0, &sent[at]), [(HOST, expected)]);
        }
    }
}

#[test]
fn errors_come_to_who_has_the_flow_and_own_ones_leave_with_the_alias() {
    let mut many = Many::new(4, |_| {});
    for number in 0..60_u16 {
        let from = (host(usize::from(number) % 20), 4_000 + number);
        let sent = many.take(0, &data(from, (REMOTE, 53)));
        let (alias, _) = ends(&sent, 1);
        let router = Ipv4Addr::new(198, 51, 7, 7);
        let error = Ip::new(router, ALIAS).icmp(icmp::TIME_EXCEEDED, 0, [0; 4], &sent[0].1[..28]);
        let told = many.take(1, &error);
        let ip = Ipv4::new(&told[0].1[..]).unwrap();
        assert_eq!(
            (told.len(), ip.source(), ip.destination()),
            (1, router, from.0)
        );
        // Its sender knows the packet.
        assert_eq!(
            Ipv4::parse_truncated(&ip.payload()[8..]).unwrap().source(),
            from.0
        );
        let mut late = Ip::new(REMOTE, ALIAS);
        late.ttl = 1;
        many.now += 100;
        let own = many.take(1, &late.udp(53, alias.1, b"late"));
        let ip = Ipv4::new(&own[0].1[..]).unwrap();
        assert_eq!((own.len(), own[0].0, ip.destination()), (1, 1, REMOTE));
        assert_eq!(
            Ipv4::parse_truncated(&ip.payload()[8..])
                .unwrap()
                .destination(),
            ALIAS
        );
    }
}
