use std::collections::HashMap;

use lab::Random;
use packet::build::{Ip, Segment};
use packet::{Udp, icmp};

use super::*;
use crate::rules::{Redirect, Server};
use crate::{Behaviour, Nat, PortChoice, Verdict, put_back, source_of};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ELSE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

fn host(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number as u8 + 1)
}

fn remote(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, number as u8 + 1)
}

fn config() -> Config {
    let mut config = Config::new(&[ALIAS, SECOND]);
    config.limits.max_flows = 1 << 14;
    config.limits.initial_flows = 0;
    config.seed = 7;
    config
}

/// Engines that are parts of one, and who distributes the packets.
struct Parts {
    shards: Arc<Shards>,
    engines: Vec<Nat>,
    now: u64,
}

impl Parts {
    fn new(parts: u16, config: &Config, lay_down: impl Fn(&mut Rules)) -> Self {
        let made = |_| {
            let mut nat = Nat::new(config.clone()).unwrap();
            lay_down(nat.rules_mut());
            nat
        };
        let mut engines: Vec<Nat> = (0..parts).map(made).collect();
        let shards = Arc::new(engines[0].shards(parts).unwrap());
        for (number, nat) in engines.iter_mut().enumerate() {
            nat.join_shards(Arc::clone(&shards), number as u16);
        }
        Self {
            shards,
            engines,
            now: 1_000,
        }
    }

    /// The part that a packet ends up with.
    fn of(&self, direction: Direction, bytes: &[u8]) -> usize {
        let knows = |part: u16| self.engines[usize::from(part)].knows_call(direction, bytes);
        let part = match self.shards.owner(direction, bytes) {
            Owner::Any => 0,
            Owner::Shard(part) => part,
            Owner::Meets(_) => match self.shards.owner_of_first(direction, bytes) {
                Owner::Shard(part) => part,
                other => panic!("{other:?}"),
            },
            Owner::Call(part, other) => match knows(part) {
                true => part,
                false => other,
            },
            Owner::Each => (0..self.shards.parts())
                .find(|part| knows(*part))
                .unwrap_or(0),
        };
        usize::from(part)
    }

    /// Out, and where it turns back in again, or back as it was.
    fn out(&mut self, bytes: &mut [u8]) -> Verdict {
        let part = self.of(Direction::Out, bytes);
        let source = source_of(bytes);
        let verdict = self.engines[part].translate_out(bytes, self.now);
        let to = Ipv4::new(&*bytes).unwrap().destination();
        if verdict != Verdict::Translated || !(to == ALIAS || to == SECOND) {
            return verdict;
        }
        match self.back(bytes) {
            Verdict::Translated => Verdict::Hairpinned,
            verdict => {
                assert!(put_back(bytes, source));
                verdict
            }
        }
    }

    fn back(&mut self, bytes: &mut [u8]) -> Verdict {
        let part = self.of(Direction::In, bytes);
        self.engines[part].translate_in(bytes, self.now)
    }
}

/// An end of a flow.
type End = (Ipv4Addr, u16);

fn packet(of: u8, from: End, to: End) -> Vec<u8> {
    let ip = Ip::new(from.0, to.0);
    match of {
        protocol::UDP => ip.udp(from.1, to.1, b"data"),
        protocol::TCP => ip.tcp(&Segment {
            source_port: from.1,
            destination_port: to.1,
            flags: packet::tcp::ACK,
            data: b"data",
            ..Segment::default()
        }),
        protocol::ICMP => {
            // An identifier is whose side is asked for: the other's is 0.
            let kind = if from.1 == 0 {
                icmp::ECHO_REPLY
            } else {
                icmp::ECHO
            };
            let [a, b] = from.1.max(to.1).to_be_bytes();
            ip.icmp(kind, 0, [a, b, 0, 1], b"data")
        }
        other => ip.packet(other, &[], b"data of no port"),
    }
}

/// Both ends, all checksums being right.
fn ends(bytes: &[u8]) -> (End, End) {
    let ip = Ipv4::new(bytes).unwrap();
    assert!(ip.checksum_is_right());
    let ports = match ip.protocol() {
        protocol::UDP => {
            let udp = Udp::new(ip.payload()).unwrap();
            assert!(udp.checksum_is_right(ip.pseudo_header()));
            (udp.source_port(), udp.destination_port())
        }
        protocol::TCP => {
            let tcp = packet::Tcp::new(ip.payload()).unwrap();
            assert!(tcp.checksum_is_right(ip.pseudo_header()));
            (tcp.source_port(), tcp.destination_port())
        }
        protocol::ICMP => {
            let message = Icmp::new(ip.payload()).unwrap();
            assert!(message.checksum_is_right(packet::checksum::Sum::default()));
            let identifier = message.identifier();
            match message.icmp_type() {
                icmp::ECHO => (identifier, 0),
                _ => (0, identifier),
            }
        }
        _ => (0, 0),
    };
    ((ip.source(), ports.0), (ip.destination(), ports.1))
}

/// Port unreachable about a packet.
fn error(about: &[u8], from: Ipv4Addr) -> Vec<u8> {
    let to = Ipv4::new(about).unwrap().source();
    Ip::new(from, to).icmp(icmp::UNREACHABLE, 3, [0; 4], &about[..28])
}

/// What is random of a flow.
fn flow(random: &mut Random) -> (u8, End, End) {
    let of = [
        protocol::UDP,
        protocol::TCP,
        protocol::ICMP,
        protocol::GRE,
        50,
    ];
    let of = of[random.below(of.len())];
    let (ours, theirs) = match of {
        protocol::UDP | protocol::TCP => {
            (4_000 + random.below(60) as u16, 53 + random.below(3) as u16)
        }
        protocol::ICMP => (1 + random.below(60) as u16, 0),
        _ => (0, 0),
    };
    (
        of,
        (host(random.below(24)), ours),
        (remote(random.below(3)), theirs),
    )
}

fn flows_and_answers(parts: u16, change: impl Fn(&mut Config)) {
    let mut config = config();
    change(&mut config);
    let is_shared = config.udp == Behaviour::FULL_CONE;
    let mut all = Parts::new(parts, &config, |_| {});
    let mut random = Random::new(u64::from(parts));
    // Which inside end an outside tuple stands for; which alias an inside
    // end has.
    let mut seen: HashMap<(u8, End, End), End> = HashMap::new();
    let mut shared: HashMap<(u8, End), End> = HashMap::new();
    let mut paired: HashMap<Ipv4Addr, Ipv4Addr> = HashMap::new();
    for _ in 0..6_000 {
        let (of, from, to) = flow(&mut random);
        let mut bytes = packet(of, from, to);
        let before = bytes.clone();
        assert_eq!(all.out(&mut bytes), Verdict::Translated);
        let (alias, meant) = ends(&bytes);
        assert_eq!(meant, to);
        assert_eq!(*paired.entry(from.0).or_insert(alias.0), alias.0);
        if matches!(of, protocol::UDP | protocol::TCP | protocol::ICMP) {
            assert_eq!(*seen.entry((of, alias, to)).or_insert(from), from);
            if is_shared && of == protocol::UDP {
                assert_eq!(*shared.entry((of, from)).or_insert(alias), alias);
            }
        }
        // An error about it comes to who sent it, and shows what was sent.
        if to.1 != 0 || of == protocol::ICMP {
            let mut about = error(&bytes, ELSE);
            assert_eq!(all.back(&mut about), Verdict::Translated);
            assert_eq!(Ipv4::new(&about[..]).unwrap().destination(), from.0);
            assert_eq!(about[28..56], before[..28]);
        }
        let mut answer = packet(of, to, alias);
        let came = answer.clone();
        assert_eq!(all.back(&mut answer), Verdict::Translated, "{of} {from:?}");
        assert_eq!(ends(&answer), (to, from));
        let mut about = error(&answer, from.0);
        if matches!(of, protocol::UDP | protocol::TCP) {
            assert_eq!(all.out(&mut about), Verdict::Translated);
            assert_eq!(about[28..56], came[..28]);
        }
        all.now += 1;
    }
    let counted = all.engines.iter().map(|nat| nat.statistics().flows);
    let counted: Vec<usize> = counted.collect();
    assert!(counted.iter().all(|flows| *flows > 0), "{counted:?}");
}

#[test]
fn both_directions_of_a_flow_are_one_parts() {
    for parts in [1, 2, 3, 8] {
        flows_and_answers(parts, |_| {});
        flows_and_answers(parts, |config| config.port_choice = PortChoice::Same);
        flows_and_answers(parts, |config| config.udp = Behaviour::FULL_CONE);
        flows_and_answers(parts, |config| config.ports = 40_000..=40_511);
    }
}

#[test]
fn a_block_is_one_parts() {
    for parts in [1, 2, 3, 8] {
        for is_reckoned in [false, true] {
            flows_and_answers(parts, |config| {
                config.subscribers.bits = if parts < 3 { 31 } else { 32 };
                config.udp = Behaviour::FULL_CONE;
                let mut blocks = crate::Blocks {
                    size: 64,
                    most: 16,
                    ..crate::Blocks::default()
                };
                if is_reckoned {
                    config.subscribers.inside = vec![crate::AddressRange::of_prefix(host(0), 24)];
                    blocks.deterministic = Some(crate::Deterministic {
                        ratio: 0,
                        dynamic: 10,
                        key: Some(crate::blocks::Key([5; 16])),
                    });
                }
                config.blocks = Some(blocks);
            });
        }
    }
}

#[test]
fn more_parts_than_blocks_are_refused() {
    let mut config = config();
    config.ports = 40_000..=40_255;
    config.blocks = Some(crate::Blocks {
        size: 80,
        ..crate::Blocks::default()
    });
    let nat = Nat::new(config).unwrap();
    assert!(nat.shards(3).is_ok());
    // The ports behind the last block are of none.
    let refused = nat.shards(4).unwrap_err();
    let few = ShardsError::FewBlocks {
        blocks: 3,
        parts: 4,
    };
    assert_eq!(refused, few);
}

#[test]
fn a_port_is_kept_where_it_can_be_and_else_one_like_it() {
    let mut config = config();
    config.port_choice = PortChoice::Same;
    let mut all = Parts::new(2, &config, |_| {});
    let mut kept = 0;
    for port in 1_024..2_024 {
        let mut bytes = packet(protocol::UDP, (host(3), port), (remote(0), 53));
        let part = all.of(Direction::Out, &bytes);
        assert_eq!(all.out(&mut bytes), Verdict::Translated);
        let ((_, got), _) = ends(&bytes);
        assert_eq!(usize::from(all.shards.slots.of(got)), part);
        let is_ours = usize::from(all.shards.slots.of(port)) == part;
        // One may be taken by another that was moved there.
        kept += usize::from(is_ours && got == port);
        if port < 1_100 {
            assert_eq!(got & 1, port & 1);
        }
    }
    assert!(kept >= 250, "{kept}");
}

#[test]
fn every_port_is_had_by_some_part() {
    let mut config = config();
    config.addresses = vec![ALIAS];
    config.ports = 50_000..=50_999;
    let mut all = Parts::new(3, &config, |_| {});
    let mut seen = std::collections::BTreeSet::new();
    let mut full = [false; 3];
    for number in 0..4_000_u16 {
        let from = (host(usize::from(number % 200)), number);
        let mut bytes = packet(protocol::UDP, from, (remote(0), 53));
        let part = all.of(Direction::Out, &bytes);
        match all.out(&mut bytes) {
            Verdict::Translated => {
                assert!(!full[part]);
                let ((_, port), _) = ends(&bytes);
                assert!((50_000..51_000).contains(&port) && seen.insert(port));
            }
            Verdict::PortsExhausted => full[part] = true,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((seen.len(), full), (1_000, [true; 3]));
}

#[test]
fn redirects_are_the_inside_hosts() {
    let pool = [host(20), host(21), host(22)];
    let lay_down = |rules: &mut Rules| {
        for number in 0..12_u16 {
            let to = host(usize::from(number));
            rules
                .insert(Redirect::port(protocol::TCP, to, 80, 8_000 + number))
                .unwrap();
            rules
                .insert(
                    Redirect::protocol(protocol::GRE, to)
                        .at(ALIAS)
                        .from(Some(remote(usize::from(number))), None),
                )
                .unwrap();
        }
        let served = rules
            .insert(Redirect::port(protocol::TCP, pool[0], 443, 443))
            .unwrap();
        for address in pool {
            rules
                .add_server(served, Server { address, port: 443 })
                .unwrap();
        }
        rules.insert(Redirect::address(host(30), ELSE)).unwrap();
        // Two hosts behind one port, by who asks.
        rules
            .insert(Redirect::port(protocol::UDP, host(40), 7, 33_000))
            .unwrap();
        let other = Redirect::port(protocol::UDP, host(41), 7, 33_000);
        rules.insert(other.from(Some(remote(1)), None)).unwrap();
    };
    for parts in [2, 5] {
        let mut config = config();
        config.mode.deny_incoming = false;
        let mut all = Parts::new(parts, &config, lay_down);
        let mut reaches = |of, from: End, alias: End, to: &[End]| {
            let mut bytes = packet(of, from, alias);
            assert_eq!(all.back(&mut bytes), Verdict::Translated);
            let (_, got) = ends(&bytes);
            assert!(to.contains(&got), "{got:?}");
            let mut answer = packet(of, got, from);
            assert_eq!(all.out(&mut answer), Verdict::Translated);
            assert_eq!(ends(&answer), (alias, from));
            got
        };
        for number in 0..12 {
            let (port, to) = (8_000 + number as u16, host(number));
            for from in 0..9 {
                reaches(
                    protocol::TCP,
                    (remote(from), 999),
                    (ALIAS, port),
                    &[(to, 80)],
                );
            }
            reaches(protocol::GRE, (remote(number), 0), (ALIAS, 0), &[(to, 0)]);
        }
        let servers = pool.map(|address| (address, 443));
        let mut served: Vec<End> = (0..9)
            .map(|from| reaches(protocol::TCP, (remote(from), 999), (SECOND, 443), &servers))
            .collect();
        served.sort_unstable();
        served.dedup();
        assert_eq!(served.len(), 3);
        for port in [1, 80, 40_000] {
            reaches(
                protocol::UDP,
                (remote(0), 5),
                (ELSE, port),
                &[(host(30), port)],
            );
        }
        reaches(
            protocol::UDP,
            (remote(0), 5),
            (ALIAS, 33_000),
            &[(host(40), 7)],
        );
        reaches(
            protocol::UDP,
            (remote(1), 5),
            (ALIAS, 33_000),
            &[(host(41), 7)],
        );
        // What redirects name no flow gets.
        for port in 0..60 {
            for to in 0..40 {
                let mut bytes = packet(protocol::UDP, (host(port), 33_000), (remote(to), 5));
                assert_eq!(all.out(&mut bytes), Verdict::Translated);
                assert_ne!(ends(&bytes).0.1, 33_000);
            }
        }
    }
}

#[test]
fn hosts_of_two_parts_meet_and_what_gets_nowhere_is_as_it_was() {
    let mut config = config();
    config.udp = Behaviour::FULL_CONE;
    let mut all = Parts::new(4, &config, |_| {});
    let mut apart = 0;
    for number in 0..30 {
        let (one, other) = ((host(number), 5_000), (host(number + 1), 6_000));
        let mut first = packet(protocol::UDP, other, (remote(0), 53));
        assert_eq!(all.out(&mut first), Verdict::Translated);
        let (alias, _) = ends(&first);
        let mut bytes = packet(protocol::UDP, one, alias);
        let part = all.of(Direction::Out, &bytes);
        apart += usize::from(part != all.of(Direction::Out, &packet(protocol::UDP, other, alias)));
        assert_eq!(all.out(&mut bytes), Verdict::Hairpinned);
        let (from, to) = ends(&bytes);
        assert_eq!(to, other);
        let mut answer = packet(protocol::UDP, other, from);
        assert_eq!(all.out(&mut answer), Verdict::Hairpinned);
        assert_eq!(ends(&answer), (alias, one));
        // An error turns back as well.
        let mut about = error(&bytes, other.0);
        let part = all.of(Direction::Out, &about);
        let verdict = all.engines[part].translate_out(&mut about, all.now);
        if verdict == Verdict::Translated {
            assert_eq!(all.back(&mut about), Verdict::Translated);
        }
        assert_eq!(Ipv4::new(&about[..]).unwrap().destination(), one.0);
        for of in [protocol::TCP, protocol::UDP] {
            let mut nowhere = packet(of, (host(number), 7), (ALIAS, 6));
            let before = nowhere.clone();
            assert!(!all.out(&mut nowhere).goes_on());
            assert_eq!(nowhere, before);
        }
    }
    assert!(apart > 10, "{apart}");
}

#[test]
fn a_calls_gre_is_who_knows_it() {
    let control = |kind, own, peer| {
        let fields = [32, 1, 0x1a2b, 0x3c4d, kind, 0, own, peer];
        let mut bytes: Vec<u8> = fields.into_iter().flat_map(u16::to_be_bytes).collect();
        bytes.resize(32, 0);
        bytes
    };
    let gre = |from, to, call: u16| {
        let [a, b] = call.to_be_bytes();
        Ip::new(from, to).packet(
            protocol::GRE,
            &[],
            &[0x30, 1, 0x88, 0x0b, 0, 0, a, b, 0, 0, 0, 1],
        )
    };
    let mut all = Parts::new(4, &config(), |_| {});
    for number in 0..20 {
        let (from, to) = (host(number), remote(number));
        let speak = |(from, source_port), (to, destination_port), data: &[u8]| {
            Ip::new(from, to).tcp(&Segment {
                source_port,
                destination_port,
                sequence: 100,
                flags: packet::tcp::ACK,
                data,
                ..Segment::default()
            })
        };
        let mut ask = speak((from, 4_000), (to, 1_723), &control(7, 5, 0));
        assert_eq!(all.out(&mut ask), Verdict::Translated);
        let ((alias, port), _) = ends(&ask);
        let call = u16::from_be_bytes([ask[52], ask[53]]);
        let mut reply = speak((to, 1_723), (alias, port), &control(8, 9, call));
        assert_eq!(all.back(&mut reply), Verdict::Translated);
        let mut sent = gre(from, to, 9);
        assert_eq!(all.out(&mut sent), Verdict::Translated);
        assert_eq!(ends(&sent).0.0, alias);
        let mut came = gre(to, alias, call);
        assert_eq!(all.back(&mut came), Verdict::Translated);
        assert_eq!((ends(&came).1.0, came[27]), (from, 5));
        let mut about = error(&sent, ELSE);
        assert_eq!(all.back(&mut about), Verdict::Translated);
        assert_eq!(Ipv4::new(&about[..]).unwrap().destination(), from);
        // One that no helper has heard of goes by its addresses.
        let mut sent = gre(from, remote(100), 77);
        assert_eq!(all.out(&mut sent), Verdict::Translated);
        let mut came = gre(remote(100), ends(&sent).0.0, 78);
        assert_eq!(all.back(&mut came), Verdict::Translated);
        assert_eq!(ends(&came).1.0, from);
    }
}

#[test]
fn fragments_say_where_they_meet_and_the_first_where_they_go() {
    let all = Parts::new(4, &config(), |_| {});
    let mut ip = Ip::new(remote(0), ALIAS);
    ip.identification = 99;
    ip.flags_and_offset = packet::ipv4::MORE_FRAGMENTS;
    let whole = Ip::new(remote(0), ALIAS).udp(53, 40_001, &[1; 100]);
    let first = ip.packet(protocol::UDP, &[], &whole[20..60]);
    ip.flags_and_offset = 5;
    let later = ip.packet(protocol::UDP, &[], &whole[60..]);
    let of = |packet: &[u8]| all.shards.owner(Direction::In, packet);
    assert!(matches!(of(&first), Owner::Meets(_)));
    assert_eq!(of(&first), of(&later));
    let owner = all.shards.owner_of_first(Direction::In, &first);
    assert_eq!(owner, of(&whole));
    for packet in [&first, &later] {
        assert!(matches!(
            all.shards.owner(Direction::Out, packet),
            Owner::Shard(_)
        ));
    }
}

#[test]
fn what_one_engine_alone_can_do_is_refused() {
    let refused = |change: &dyn Fn(&mut Config), redirect: Option<Redirect>, parts| {
        let mut config = config();
        config.mode.deny_incoming = false;
        change(&mut config);
        let mut nat = Nat::new(config).unwrap();
        if let Some(redirect) = redirect {
            nat.rules_mut().insert(redirect).unwrap();
        }
        nat.shards(parts).err().map(|error| error.to_string())
    };
    assert_eq!(refused(&|_| {}, None, 2), None);
    let target = |config: &mut Config| config.target = Some(host(1));
    assert!(
        refused(&target, None, 2)
            .unwrap()
            .contains("target_address")
    );
    let own = Some(Redirect::address(host(1), SECOND));
    assert!(refused(&|_| {}, own, 2).unwrap().contains("192.0.2.2"));
    assert_eq!(
        refused(&|config| config.mode.deny_incoming = true, own, 2),
        None
    );
    let few = |config: &mut Config| config.ports = 2_000..=2_005;
    assert_eq!(refused(&few, None, 3), None);
    assert!(refused(&few, None, 4).unwrap().contains("2000-2005"));
    let all = Some(Redirect::port(protocol::TCP, host(1), 2_000, 2_000).ports(5));
    assert!(refused(&few, all, 3).unwrap().contains("redirects"));
    assert!(refused(&|_| {}, None, 0).is_some() && refused(&|_| {}, None, 257).is_some());
}

/// Where unsolicited packets pass an alias address answers by itself: the part that has
/// the question has the answer.
#[test]
fn an_alias_address_answers_where_it_was_asked() {
    let mut config = config();
    config.mode.deny_incoming = false;
    let nat = Nat::new(config.clone()).unwrap();
    let own = config.addresses[0];
    let shards = nat.shards(4).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..400 {
        for of in [protocol::TCP, protocol::UDP, protocol::ICMP] {
            let here = (own, 1_000 + number);
            let there = match of {
                protocol::ICMP => (remote(usize::from(number % 200)), 0),
                _ => (remote(usize::from(number % 200)), 7_000),
            };
            let asked = shards.owner(Direction::In, &packet(of, there, here));
            let answered = shards.owner(Direction::Out, &packet(of, here, there));
            assert_eq!(asked, answered, "{of} {here:?} {there:?}");
            seen.insert(format!("{asked:?}"));
        }
    }
    assert_eq!(seen.len(), 4);
}
