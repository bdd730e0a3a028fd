//! Bytes of nonsense: counted and dropped, never a panic.

use lab::Random;

use super::*;

/// Packets worth spoiling.
fn seeds() -> Vec<Vec<u8>> {
    let mut ip = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [198, 51, 1, 1].into());
    let mut all = vec![
        ip.udp(4_000, 53, b"question"),
        ip.udp(4_000, 53, &[7; 1_400]),
        ip.icmp(icmp::ECHO, 0, [0, 1, 0, 2], b"echo"),
        ip.icmp(icmp::UNREACHABLE, 1, [0; 4], &udp([10, 0, 2, 5])),
        ip.packet(protocol::UDP, &[7, 7, 4, 0, 0, 0, 0, 0], b"options!"),
        ip.packet(protocol::UDP, &[148, 4, 0, 0], b"alert!!!"),
        udp([10, 0, 3, 9]),
        udp([10, 0, 3, 200]),
        udp([10, 0, 3, 1]),
        udp([203, 0, 113, 70]),
        v6(
            "2001:db8:2::5",
            "2001:db8:51::7",
            9,
            protocol::UDP,
            &[1; 30],
        ),
        v6(
            "2001:db8:2::5",
            "2001:db8:3::7",
            9,
            0,
            &[58, 0, 5, 2, 0, 0, 0, 0, 1, 2],
        ),
        v6(
            "2001:db8:2::5",
            "2001:db8:51::7",
            9,
            44,
            &[17, 0, 0, 9, 1, 2, 3, 4, 5],
        ),
    ];
    ip.flags_and_offset = packet::ipv4::MORE_FRAGMENTS;
    all.push(ip.udp(4_000, 53, &[3; 64]));
    all.push(Ip::new([198, 51, 1, 1].into(), [192, 0, 2, 99].into()).udp(53, 4_000, b"in"));
    all
}

fn spoil(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.extend((0..random.below(40)).map(|byte| byte as u8)),
            2 if !bytes.is_empty() => bytes[at] = random.number() as u8,
            3 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            4 if at + 1 < bytes.len() => bytes[at] = [0, 255, 64, 128][random.below(4)],
            _ => {}
        }
    }
}

/// Puts a right checksum where there is an IPv4 header, so that not all ends
/// at the first check.
fn mend(bytes: &mut [u8]) {
    if let Some(rest) = bytes.get_mut(14..)
        && let Ok(mut ip) = Ipv4::parse_truncated(rest)
    {
        ip.fill_checksum();
    }
}

fn run(nat: Option<Nat>, seed: u64) {
    let mut router = router_with(nat, Settings::default());
    let mut random = Random::new(seed);
    let seeds = seeds();
    let mut sent = 0;
    let mut left = 0;
    for round in 0..1_500 {
        let port = random.below(4) as u16;
        let frames: Vec<Vec<u8>> = (0..random.below(40))
            .map(|_| {
                let packet = &seeds[random.below(seeds.len())];
                let mut bytes = match port {
                    3 => packet.clone(),
                    _ => frame(mac(1, 2 + u32::from(port)), packet),
                };
                spoil(&mut random, &mut bytes);
                if random.below(3) > 0 && port < 3 {
                    mend(&mut bytes);
                }
                bytes
            })
            .collect();
        sent += frames.len();
        for (port, bytes) in router.take(port, &frames, round * 10) {
            left += 1;
            check(port, &bytes);
        }
        for (port, bytes) in router.tend(round * 10 + 5) {
            left += 1;
            check(port, &bytes);
        }
    }
    let counters = router.forwarder.counters();
    let reasons: u64 = Reason::ALL.into_iter().map(|r| counters.of_reason(r)).sum();
    assert!(sent > 20_000 && left > 1_000, "{sent} in, {left} out");
    assert!(
        reasons + left >= sent as u64,
        "{sent} in, {left} out, {reasons} counted"
    );
    let (neighbours, bytes) = router.forwarder.waiting();
    assert!(neighbours <= 1_024 && bytes <= 4 << 20);
}

/// What leaves has a sound header.
fn check(port: u16, bytes: &[u8]) {
    let packet = match port {
        HOST => return,
        3 => bytes,
        2 => &bytes[18..],
        _ => &bytes[14..],
    };
    match packet[0] >> 4 {
        4 => {
            let ip = Ipv4::new(packet).unwrap();
            assert!(ip.checksum_is_right());
            assert_eq!(ip.total_len(), packet.len());
            assert!(!ip.destination().is_multicast() && !ip.destination().is_loopback());
        }
        6 => {
            let ip = Ipv6::new(packet).unwrap();
            assert_eq!(ip.total_len(), packet.len());
            assert!(!ip.destination().is_multicast() && !ip.destination().is_loopback());
        }
        version => panic!("version {version} left by {port}"),
    }
}

#[test]
fn mangled_packets_are_counted_and_dropped() {
    for seed in 0..4 {
        run(None, seed);
    }
}

#[test]
fn mangled_packets_in_front_of_a_translator_too() {
    for seed in 10..13 {
        run(Some(translated::engine(seed)), seed);
    }
}
