//! What is counted for each subscriber where that is asked for, and ports that
//! helpers await.

use super::blocks::{audit, with_blocks};
use super::*;
use crate::{Direction, Packet, SubscriberCounts};

fn counts(nat: &Nat, inside: Ipv4Addr) -> Option<SubscriberCounts> {
    nat.subscriber_at(inside)?.counted
}

/// A batch of UDP: how many passed.
fn batch(nat: &mut Nat, direction: Direction, packets: &mut [Vec<u8>], now: u64) -> usize {
    let mut packets: Vec<Packet<'_>> = packets.iter_mut().map(|of| Packet::new(of)).collect();
    match direction {
        Direction::Out => nat.translate_out_batch(&mut packets, now),
        Direction::In => nat.translate_in_batch(&mut packets, now),
    }
    let passed = packets.iter().filter(|of| of.verdict.goes_on());
    passed.count()
}

#[test]
fn packets_mappings_and_refusals_are_counted_for_whom_they_are() {
    let mut config = with_blocks(64, 1);
    // Two blocks in all.
    config.ports = 40_000..=40_127;
    config.subscribers.counted = true;
    config.subscribers.quotas.ports.all = 30;
    let mut nat = Nat::new(config).unwrap();
    nat.maintain(1_000, 1);
    let sent = |number: u32, flows: u16| -> Vec<Vec<u8>> {
        let packet = |flow| Ip::new(host(number), REMOTE).udp(1_000 + flow, 5_300, b"data");
        (0..flows).map(packet).collect()
    };
    // Of 40 flows 30 fit; more packets of a batch than are staged at once.
    let mut all = sent(0, 40);
    all.extend(sent(1, 20));
    assert_eq!(batch(&mut nat, Direction::Out, &mut all, 3_000), 50);
    assert_eq!(batch(&mut nat, Direction::Out, &mut sent(1, 20), 3_000), 20);
    // Their answers.
    let port = |bytes: &Vec<u8>| u16::from_be_bytes([bytes[20], bytes[21]]);
    let answer = |bytes: &Vec<u8>| Ip::new(REMOTE, ALIAS).udp(5_300, port(bytes), b"back");
    let mut back: Vec<_> = all[..7].iter().map(answer).collect();
    assert_eq!(batch(&mut nat, Direction::In, &mut back, 3_000), 7);
    // No block is left for the third.
    assert_eq!(batch(&mut nat, Direction::Out, &mut sent(2, 3), 3_000), 0);
    let since_millis = nat.clock.lived_millis();
    let of = |translated, addresses_made, mappings_made, addresses_exhausted, refused| {
        Some(SubscriberCounts {
            since_millis,
            translated,
            addresses_made,
            mappings_made,
            addresses_exhausted,
            refused,
        })
    };
    assert_eq!(counts(&nat, HOST), of(37, 1, 30, 0, 10));
    assert_eq!(counts(&nat, host(1)), of(40, 1, 20, 0, 0));
    assert_eq!(counts(&nat, host(2)), of(0, 0, 0, 3, 0));
    assert_eq!(nat.statistics().addresses_exhausted, 3);
    assert_eq!(nat.subscriber_at(host(3)), None);
    // Who has nothing for a while is none, and begins anew at the same place.
    for late in [400_000, 700_000] {
        nat.maintain(late, usize::MAX);
    }
    let places = nat.tracked.as_ref().unwrap().subscribers.places();
    for number in 10..10 + 2 * places as u32 {
        batch(&mut nat, Direction::Out, &mut sent(number, 1), 800_000);
    }
    let mut began = 0;
    nat.subscribers(Cursor::default(), 1_000, &mut |view| {
        let of = view.counted.unwrap();
        assert!(of.translated <= 1 && of.refused == 0, "{view:?}");
        began += usize::from(of.since_millis > since_millis);
    });
    assert!(began >= places, "{began} of {places}");
    audit(&nat);
}

#[test]
fn nobody_is_counted_unasked() {
    let mut nat = Nat::new(with_blocks(64, 1)).unwrap();
    let mut sent = [Ip::new(HOST, REMOTE).udp(1_000, 53, b"data")];
    assert_eq!(batch(&mut nat, Direction::Out, &mut sent, 0), 1);
    assert_eq!(counts(&nat, HOST), None);
    assert!(nat.subscriber_at(HOST).is_some());
}

/// A port that a helper has opened is one of its subscriber's, from the
/// moment that it is awaited (RFC 6888 REQ-4).
#[test]
fn ports_that_helpers_open_count_for_their_subscriber() {
    for in_blocks in [false, true] {
        let mut config = if in_blocks {
            with_blocks(64, 1)
        } else {
            config(1_000)
        };
        config.subscribers.quotas.ports.all = 3;
        let mut nat = Nat::new(config).unwrap();
        let ask = |nat: &mut Nat, from: u16, now| {
            let mut bytes = Ip::new(HOST, REMOTE).udp(from, 69, b"\0\x01file\0octet\0");
            let verdict = nat.translate_out(&mut bytes, now);
            (verdict, u16::from_be_bytes([bytes[20], bytes[21]]))
        };
        let ports = |nat: &Nat| -> u32 { nat.subscriber_at(HOST).unwrap().ports.iter().sum() };
        // A request and the transfer that is awaited: two.
        let (verdict, first) = ask(&mut nat, 1_000, 0);
        assert_eq!(verdict, Verdict::Translated);
        assert_eq!(ask(&mut nat, 1_000, 0).0, Verdict::Translated, "once more");
        // The third is the next request's; its transfer has no room.
        let (verdict, second) = ask(&mut nat, 1_001, 0);
        assert_eq!((verdict, ports(&nat)), (Verdict::Translated, 2));
        assert_eq!(ask(&mut nat, 1_002, 0).0, Verdict::OverQuota);
        assert_eq!(
            back(&mut nat, (REMOTE, 2_001), second, 0),
            Verdict::NoMapping
        );
        // What was awaited comes: the port is a flow's now, and counts once.
        assert_eq!(
            back(&mut nat, (REMOTE, 2_000), first, 0),
            Verdict::Translated
        );
        audit(&nat);
        assert_eq!(ports(&nat), 3);
        assert_eq!(ask(&mut nat, 1_003, 1_000).0, Verdict::OverQuota);
        // One that waits in vain is free again after its minute.
        assert!(remove(&mut nat, (HOST, 1_001), (REMOTE, 69)));
        assert!(remove(&mut nat, (HOST, 1_000), (REMOTE, 2_000)));
        assert_eq!(ports(&nat), 1);
        assert_eq!(ask(&mut nat, 1_004, 1_000).0, Verdict::Translated);
        assert_eq!(ask(&mut nat, 1_005, 30_000).0, Verdict::OverQuota);
        nat.maintain(62_000, 1_000);
        assert_eq!(ask(&mut nat, 1_006, 62_000).0, Verdict::Translated);
        audit(&nat);
    }
}

/// Rules are read again between a request and its answer.
#[test]
fn what_a_helper_awaits_outlives_new_rules() {
    let mut nat = Nat::new(config(1_000)).unwrap();
    let ask = |nat: &mut Nat, from: u16| {
        let mut bytes = Ip::new(HOST, REMOTE).udp(from, 69, b"\0\x01file\0octet\0");
        assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
        u16::from_be_bytes([bytes[20], bytes[21]])
    };
    let (kept, lost) = (ask(&mut nat, 1_000), ask(&mut nat, 1_001));
    let mut rules = crate::rules::Rules::default();
    let redirect = crate::rules::Redirect::port(protocol::UDP, host(9), 9, lost);
    rules.insert(redirect).unwrap();
    nat.set_rules(rules);
    assert_eq!(
        back(&mut nat, (REMOTE, 2_000), kept, 1),
        Verdict::Translated
    );
    let mut bytes = Ip::new(REMOTE, ALIAS).udp(2_000, lost, b"data");
    assert_eq!(nat.translate_in(&mut bytes, 1), Verdict::Translated);
    assert_eq!(bytes[16..20], host(9).octets());
    // Late ones are not kept.
    ask(&mut nat, 1_002);
    nat.maintain(70_000, 10);
    nat.set_rules(crate::rules::Rules::default());
    assert_eq!(nat.rules().len(), 0);
}
