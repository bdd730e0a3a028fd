//! TUN and TAP devices that stay.

#![allow(clippy::expect_used, reason = "a test fails by it")]

use fingerpost_linux::Namespace;
use fingerpost_linux::tun::{TunKind, new_tuns};
use lab::{Netns, skip};

#[test]
fn devices_stay_are_down_and_are_not_joined() {
    let Some(netns) = skip::unless(Netns::new("tun")) else {
        return;
    };
    if std::fs::File::open("/dev/net/tun").is_err() {
        skip::skip("/dev/net/tun is not for us");
        return;
    }
    let namespace = Namespace::open(netns.name()).expect("the namespace");
    let mut results = Vec::new();
    let names = ["tap1", "tap2", "tap1", "sixteen-octets-x", "", "lo"];
    new_tuns(&namespace, TunKind::Tap, names, &mut |place, result| {
        results.push((place, result.map_err(|error| error.to_string())));
    })
    .expect("the namespace is there");
    let tun = ["tun1"];
    new_tuns(&namespace, TunKind::Tun, tun, &mut |_, result| {
        result.expect("tun1");
    })
    .expect("the namespace is there");
    let made: Vec<bool> = results.iter().map(|(_, result)| result.is_ok()).collect();
    assert_eq!(
        made,
        [true, true, false, false, false, false],
        "{results:?}"
    );
    let listed = netns.ip(&["-d", "-o", "link", "show"]).expect("ip");
    for (name, kind) in [
        ("tap1", "tun type tap"),
        ("tap2", "tun type tap"),
        ("tun1", "tun type tun"),
    ] {
        let line = listed
            .lines()
            .find(|line| line.contains(&format!(" {name}:")));
        let line = line.expect(name);
        assert!(line.contains(kind) && line.contains("persist on"), "{line}");
        assert!(!line.contains(",UP"), "{line}");
    }
}
