//! The router as a host beside the translation.

use lab::{Netns, wait_until};

use crate::common::PATIENCE;
use crate::nat::sockets::{Call, Server, ask, asking};
use crate::nat::{FAR, Natted, Sums, natted};

/// Both sides, and the router's addresses on them.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "10.0.0.1"];

fn sides(place: &Natted) -> [&Netns; 2] {
    [&place.inside, &place.outside]
}

/// Whether the router's own server answers at both addresses to both sides.
pub fn is_reachable(place: &Natted) {
    let _server = Server::tcp(&place.router, "0.0.0.0:2222");
    for side in sides(place) {
        for address in ADDRESSES {
            let call = Call::open(side, &format!("{address}:2222"));
            assert!(call.is_ok(), "{address} from {}", side.name());
            let mut call = call.unwrap();
            call.echo(b"there?").unwrap();
            call.close().unwrap();
        }
    }
}

#[test]
fn the_router_is_reached_by_ssh_from_both_sides() {
    let Some(place) = natted("xnssh", Sums::Finished) else {
        return;
    };
    let _router = place.start(&[]);
    is_reachable(&place);
    let sshd = lab::Sshd::start(&place.router, place.directory.path(), None).unwrap();
    wait_until(PATIENCE, "sshd", || {
        sshd.log().contains("listening").then_some(())
    })
    .unwrap();
    for side in sides(&place) {
        for address in ADDRESSES {
            let mut session = sshd.session(side, address, &["-o", "ConnectTimeout=10"]);
            let output = session.args(["echo", "there"]).output().unwrap();
            assert_eq!(output.stdout, b"there\n", "{output:?}\n{}", sshd.log());
        }
    }
}

#[test]
fn the_router_is_pinged_from_both_sides() {
    let Some(place) = natted("xnping", Sums::Finished) else {
        return;
    };
    let _router = place.start(&[]);
    for side in sides(&place) {
        for address in ADDRESSES {
            let pinged = side.run("ping", &["-c3", "-i0.1", "-W2", address]);
            assert!(pinged.is_ok(), "{}: {pinged:?}", side.name());
        }
    }
    // And through it.
    let pinged = ["-c3", "-i0.1", "-W2", FAR];
    place.inside.run("ping", &pinged).unwrap();
}

#[test]
fn the_router_asks_outside_itself() {
    for (tag, sums) in [("xnown", Sums::Finished), ("xnowu", Sums::Unfinished)] {
        let Some(place) = natted(tag, sums) else {
            return;
        };
        let _router = place.start(&[]);
        let _tcp = Server::tcp(&place.outside, "0.0.0.0:80");
        let _udp = Server::udp(&place.outside, "198.51.100.2:9000");
        let mut call = Call::open(&place.router, &format!("{FAR}:80")).unwrap();
        assert_eq!(call.seen.ip().to_string(), "192.0.2.1");
        call.echo(&[7; 300_000]).unwrap();
        call.close().unwrap();
        let socket = asking(&place.router, &format!("{FAR}:9000"));
        for _ in 0..5 {
            ask(&socket, b"who?").unwrap();
        }
    }
}

#[test]
fn the_router_pings_outside_itself() {
    let Some(place) = natted("xnecho", Sums::Finished) else {
        return;
    };
    let _router = place.start(&[]);
    for to in [FAR, "192.0.2.2", "10.0.0.2"] {
        let pinged = ["-c3", "-i0.1", "-W2", to];
        place.router.run("ping", &pinged).unwrap();
    }
}
