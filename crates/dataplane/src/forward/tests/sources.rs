//! Sources that are not routed by where they came from.

use super::*;

const TO: [u8; 4] = [198, 51, 100, 7];

fn checking(source_check: SourceCheck) -> Router {
    let settings = Settings {
        source_check,
        ..Settings::default()
    };
    let mut router = router_with(None, settings);
    let members = vec![hop(3, Some("10.0.3.254"), 1), hop(5, None, 1)];
    router.commit(vec![via("198.55.0.0/16", members)]);
    router
}

/// Whether a packet of a source that comes in by a port goes on.
fn passes(router: &mut Router, port: u16, source: [u8; 4]) -> bool {
    let packet = Ip::new(source.into(), TO.into()).udp(4_000, 53, b"question");
    let before = count(router, Reason::SourceNotRouted);
    let bytes = match port {
        3 => packet,
        port => frame(mac(1, 2 + u32::from(port)), &packet),
    };
    let out = router.take(port, &[bytes], 1_000);
    let dropped = count(router, Reason::SourceNotRouted) - before;
    assert_eq!(out.len() as u64 + dropped, 1, "{source:?}: in silence");
    out.len() == 1
}

#[test]
fn a_source_is_held_against_the_way_back() {
    use SourceCheck::{Loose, Off, Strict};
    // Port, source, and by which checks it passes.
    let cases: [(u16, [u8; 4], &[SourceCheck]); 12] = [
        (0, [10, 0, 2, 5], &[Off, Loose, Strict]),
        (0, [10, 0, 3, 9], &[Off, Loose]),
        (1, [10, 0, 3, 9], &[Off, Loose, Strict]),
        (0, [198, 52, 1, 1], &[Off, Loose]),
        (1, [198, 51, 1, 1], &[Off, Loose, Strict]),
        (3, [198, 53, 1, 1], &[Off, Loose, Strict]),
        // Of two ways back one is enough.
        (1, [198, 55, 1, 1], &[Off, Loose, Strict]),
        (3, [198, 55, 1, 1], &[Off, Loose, Strict]),
        (0, [198, 55, 1, 1], &[Off, Loose]),
        // The router's own, none, and nobody's.
        (0, [10, 0, 2, 1], &[Off]),
        (0, [192, 0, 2, 1], &[Off]),
        (0, [203, 0, 113, 1], &[Off]),
    ];
    for check in [Off, Loose, Strict] {
        let mut router = checking(check);
        for (port, source, by) in cases {
            let goes = passes(&mut router, port, source);
            assert_eq!(goes, by.contains(&check), "{check:?} {port} {source:?}");
        }
    }
}

#[test]
fn of_a_batch_those_alone_that_are_not_routed() {
    let mut router = checking(SourceCheck::Strict);
    let sources = [[10, 0, 2, 5], [10, 0, 3, 9], [10, 0, 2, 6], [192, 0, 2, 1]];
    let frames = sources.map(|source| {
        let packet = Ip::new(source.into(), TO.into()).udp(4_000, 53, b"question");
        frame(mac(1, 2), &packet)
    });
    let out = router.take(0, &frames, 1_000);
    let seen: Vec<[u8; 4]> = out
        .iter()
        .map(|(_, bytes)| Ipv4::new(&bytes[14..]).unwrap().source().octets())
        .collect();
    assert_eq!(seen, [sources[0], sources[2]]);
    assert_eq!(count(&router, Reason::SourceNotRouted), 2);
}

/// From outside comes what is routed to the outside, by whatever port; nobody
/// there is of the inside, or the router itself.
#[test]
fn nobody_outside_is_of_the_inside() {
    for source_check in [SourceCheck::Loose, SourceCheck::Strict] {
        let nat = Nat::new(nat::Config::new(&[Ipv4Addr::new(192, 0, 2, 1)])).unwrap();
        let settings = Settings {
            source_check,
            ..Settings::default()
        };
        let mut router = router_with(Some(nat), settings);
        let mut refused = |source: [u8; 4]| {
            let to = Ipv4Addr::new(192, 0, 2, 1);
            let packet = Ip::new(source.into(), to).udp(4_000, 53, b"question");
            let before = count(&router, Reason::SourceNotRouted);
            router.take(1, &[frame(mac(1, 3), &packet)], 1_000);
            count(&router, Reason::SourceNotRouted) - before
        };
        assert_eq!(refused([198, 51, 100, 7]), 0);
        assert_eq!(refused([10, 0, 2, 5]), 1);
        assert_eq!(refused([10, 0, 3, 1]), 1);
        assert_eq!(refused([192, 0, 2, 77]), 1);
    }
}

#[test]
fn ipv6_as_well_but_for_a_link_s_own() {
    let mut router = checking(SourceCheck::Strict);
    let mut send = |source: &str| {
        let packet = v6(source, "2001:db8:51::7", 9, protocol::UDP, &[0; 12]);
        let out = router.take(0, &[frame(mac(1, 2), &packet)], 1_000);
        (out.len(), count(&router, Reason::SourceNotRouted))
    };
    assert_eq!(send("2001:db8:2::5"), (1, 0));
    assert_eq!(send("2001:db8:3::5"), (0, 1));
    assert_eq!(send("2001:db8:9::5"), (0, 2));
    // Refused for its scope, not for its way.
    assert_eq!(send("fe80::5").1, 2);
}
