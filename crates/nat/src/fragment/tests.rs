use packet::build::Ip;
use proptest::prelude::*;

use super::*;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
const REMOTE: Ipv4Addr = Ipv4Addr::new(18, 0, 0, 1);

const TRANSLATION: Translation = Translation {
    source: ALIAS,
    destination: REMOTE,
    verdict: Verdict::Translated,
};

fn fragment(identification: u16, offset_bytes: usize, more: bool) -> Vec<u8> {
    let more = if more {
        packet::ipv4::MORE_FRAGMENTS
    } else {
        0
    };
    let ip = Ip {
        identification,
        flags_and_offset: more | (offset_bytes / 8) as u16,
        ..Ip::new(HOST, REMOTE)
    };
    ip.packet(protocol::UDP, &[], &[identification as u8; 64])
}

fn of(bytes: &[u8]) -> Datagram {
    Datagram::of(Direction::Out, &Ipv4::new(bytes).unwrap())
}

#[test]
fn later_ones_follow_the_first_and_wait_for_it() {
    let mut fragments: Fragments = Fragments::new(Limits::default());
    let later = [fragment(7, 64, true), fragment(7, 128, false)];
    for bytes in &later {
        assert_eq!(fragments.later(of(bytes), bytes, 0), Later::Held);
    }
    let mut buffer = [0; 2_048];
    assert_eq!(fragments.next_ready(&mut buffer), None);
    let first = of(&fragment(7, 0, true));
    fragments.first(first, Some(TRANSLATION), 1);
    for bytes in &later {
        let (datagram, len) = fragments.next_ready(&mut buffer).unwrap();
        assert_eq!((datagram, &buffer[..len]), (first, bytes.as_slice()));
        let again = fragments.later(datagram, bytes, 1);
        assert_eq!(again, Later::Known(TRANSLATION));
    }
    assert_eq!(fragments.next_ready(&mut buffer), None);
    assert_eq!(fragments.held_bytes(), 0);
    let mut copy = later[0].clone();
    TRANSLATION.apply(&mut Ipv4::new(&mut copy[..]).unwrap());
    let ip = Ipv4::new(&copy).unwrap();
    assert!(ip.checksum_is_right() && ip.source() == ALIAS);
}

#[test]
fn refused_with_the_first_and_forgotten_in_time() {
    let mut fragments: Fragments = Fragments::new(Limits::default());
    let (one, two) = (fragment(1, 64, false), fragment(2, 64, false));
    fragments.first(of(&one), None, 0);
    assert_eq!(fragments.later(of(&one), &one, 0), Later::Refused);
    fragments.later(of(&two), &two, 0);
    fragments.first(of(&two), None, 0);
    assert!(!fragments.has_ready(), "what waited goes with the first");
    fragments.forget(29_999);
    assert_eq!(fragments.len(), 2);
    fragments.forget(30_000);
    assert_eq!(fragments.len(), 0);
    assert_eq!(fragments.later(of(&one), &one, 30_000), Later::Held);
}

#[test]
fn floods_stay_within_bounds() {
    let limits = Limits {
        datagrams: 100,
        held_bytes: 10_000,
        per_datagram: 3,
        timeout_millis: 1_000,
    };
    let mut fragments: Fragments = Fragments::new(limits);
    for number in 0..5_000_u16 {
        let bytes = fragment(number, 64, true);
        let later = fragments.later(of(&bytes), &bytes, u64::from(number));
        assert!(matches!(later, Later::Held | Later::NoRoom));
        assert!(fragments.len() <= 100 && fragments.held_bytes() <= 10_000);
        assert!(fragments.order.len() <= 200);
    }
    let mut fragments: Fragments = Fragments::new(limits);
    let bytes = fragment(7, 64, true);
    let held = (0..10).filter(|_| fragments.later(of(&bytes), &bytes, 0) == Later::Held);
    assert_eq!(held.count(), 3);
    for round in 0..1_000 {
        fragments.first(of(&bytes), Some(TRANSLATION), round);
        assert!(fragments.order.len() <= 200 + FORGOTTEN_A_CALL);
    }
}

#[test]
fn lying_offsets() {
    let part = |protocol, offset: u16, len: usize| {
        let ip = Ip {
            flags_and_offset: (offset / 8) | packet::ipv4::MORE_FRAGMENTS,
            ..Ip::new(HOST, REMOTE)
        };
        let bytes = ip.packet(protocol, &[], &vec![0; len]);
        Part::of(&Ipv4::new(bytes).unwrap())
    };
    assert_eq!(part(protocol::UDP, 0, 64), Part::First);
    assert_eq!(part(protocol::TCP, 8, 64), Part::Lying);
    assert_eq!(part(protocol::UDP, 8, 64), Part::Later);
    assert_eq!(part(protocol::TCP, 16, 64), Part::Later);
    assert_eq!(part(protocol::UDP, 65_528, 64), Part::Lying);
    let whole = Ip::new(HOST, REMOTE).udp(1, 2, b"");
    assert_eq!(Part::of(&Ipv4::new(whole).unwrap()), Part::Whole);
}

proptest! {
    /// Whatever comes in whatever order: each fragment that was held comes
    /// out once, after its first, or not at all.
    #[test]
    fn each_comes_out_once(steps in prop::collection::vec((0..6_u16, 0..4_usize, 0..400_u64), 1..200)) {
        let limits = Limits { datagrams: 4, held_bytes: 1_000, per_datagram: 4, timeout_millis: 1_000 };
        let mut fragments: Fragments = Fragments::new(limits);
        let mut buffer = [0; 256];
        let (mut held, mut out, mut now) = (0, 0, 0);
        for (identification, place, pause) in steps {
            now += pause;
            let bytes = fragment(identification, place * 64, place < 3);
            if place == 0 {
                fragments.first(of(&bytes), Some(TRANSLATION), now);
            } else if fragments.later(of(&bytes), &bytes, now) == Later::Held {
                held += 1;
            }
            while let Some((datagram, len)) = fragments.next_ready(&mut buffer) {
                out += 1;
                prop_assert_eq!(datagram, of(&buffer[..len]));
                prop_assert_eq!(datagram.identification, identification);
            }
            prop_assert!(out <= held && fragments.len() <= 4);
        }
    }
}
