//! Other rules while packets go on.

use std::time::Duration;

use crate::nat::sockets::{Call, Server, ask, asking, bytes};
use crate::nat::{ALIAS, FAR, Natted, Sums, natted};

fn reloaded(place: &Natted, rules: &str) {
    place.rules(rules);
    let done = place.reload();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn other_redirects_are_obeyed_and_flows_go_on() {
    let Some(place) = natted("xnrel", Sums::Finished) else {
        return;
    };
    let redirect = |port| format!("alias_address {ALIAS}\nredirect_port tcp 10.0.0.2:80 {port}\n");
    place.rules(&redirect(8_080));
    let _router = place.start(&[]);
    let _inside = Server::tcp(&place.inside, "0.0.0.0:80");
    let _outside = Server::tcp(&place.outside, "0.0.0.0:80");
    let mut out = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    let mut comes_in = Call::open(&place.outside, "192.0.2.1:8080").unwrap();
    out.echo(&bytes(10_000)).unwrap();
    comes_in.echo(&bytes(10_000)).unwrap();
    reloaded(&place, &redirect(8_081));
    Call::open(&place.outside, "192.0.2.1:8081").unwrap();
    let brief = Duration::from_millis(700);
    assert!(Call::within(&place.outside, "192.0.2.1:8080", brief).is_err());
    out.echo(&bytes(100_000)).unwrap();
    comes_in.echo(&bytes(100_000)).unwrap();
    // What is wrong changes nothing.
    place.rules("alias_address 192.0.2.1\nnonsense\n");
    let refused = place.reload();
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("nonsense"), "{said}");
    Call::open(&place.outside, "192.0.2.1:8081").unwrap();
}

/// The other address is no address of the router: it is routed to it.
#[test]
fn another_alias_is_the_one_of_new_flows() {
    let Some(place) = natted("xnali", Sums::Finished) else {
        return;
    };
    let lines = "route add 203.0.113.0/24 via 192.0.2.1\n";
    place.outside.ip_batch(lines).unwrap();
    // The kernel wants a way back to what the engine gives it.
    place
        .router
        .ip(&["route", "add", "default", "via", "192.0.2.2"])
        .unwrap();
    let router = place.start(&[]);
    let _tcp = Server::tcp(&place.outside, "0.0.0.0:80");
    let _udp = Server::udp(&place.outside, "198.51.100.2:9000");
    let seen = || {
        let mut call = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
        call.echo(&bytes(1 << 20)).unwrap();
        let socket = asking(&place.inside, &format!("{FAR}:9000"));
        let seen = [call.seen, ask(&socket, b"who?").unwrap()];
        call.close().unwrap();
        seen.map(|end| end.ip().to_string())
    };
    assert_eq!(seen(), [ALIAS; 2]);
    reloaded(&place, "alias_address 203.0.113.5\n");
    let before = router.packets("wan", "translated");
    assert_eq!(seen(), ["203.0.113.5"; 2]);
    assert!(router.packets("wan", "translated") > before + 30);
    place
        .outside
        .run("ping", &["-c1", "-W5", "192.0.2.1"])
        .unwrap();
}
