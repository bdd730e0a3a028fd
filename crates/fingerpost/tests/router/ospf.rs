//! Routing daemons beside the program: FRR's OSPF on the router and on both
//! hosts, over the links that packets are forwarded between.

use lab::routers::Frr;
use lab::{Netns, wait_until};
use tempfile::TempDir;

use crate::common::PATIENCE;
use crate::place::{Router, place};

/// zebra and ospfd on some links; a neighbour that is not heard for four
/// seconds is gone.
fn start(netns: &Netns, id: u8, links: &[&str]) -> (Frr, TempDir) {
    let mut ospf = format!(
        "router ospf\n ospf router-id 9.9.9.{id}\n network 10.0.0.0/8 area 0\n timers \
         throttle spf 50 100 500\n"
    );
    for link in links {
        ospf.push_str(&format!(
            "interface {link}\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n ip ospf \
             network point-to-point\n"
        ));
    }
    let directory = tempfile::tempdir().unwrap();
    let frr = Frr::start(netns, directory.path(), &[("ospfd", ospf)]).unwrap();
    (frr, directory)
}

#[test]
fn adjacencies_stay_up_and_what_is_learnt_is_used() {
    let Some(place) = place("xospf") else { return };
    let router = Router::start(&place.router, &[]);
    for (netns, address) in [
        (&place.left, "10.11.0.1/32"),
        (&place.right, "10.12.0.1/32"),
    ] {
        netns.ip(&["addr", "add", address, "dev", "lo"]).unwrap();
        netns.ip(&["route", "del", "default"]).unwrap();
    }
    let _left = start(&place.left, 1, &["eth0"]);
    let _right = start(&place.right, 2, &["eth0"]);
    let between = start(&place.router, 3, &["lan", "wan"]);
    for (netns, learnt) in [(&place.left, "10.12.0.1"), (&place.right, "10.11.0.1")] {
        wait_until(PATIENCE, "a route learnt", || {
            let shown = netns.ip(&["route", "show", "proto", "ospf"]).unwrap();
            shown.contains(learnt).then_some(())
        })
        .unwrap();
    }
    // Longer than a neighbour may be silent.
    let ping = ["-q", "-i0.01", "-c600", "-I", "10.11.0.1", "10.12.0.1"];
    place.left.run("ping", &ping).unwrap();
    assert!(router.packets("lan", "forwarded") >= 500);
    assert!(router.packets("wan", "forwarded") >= 500);
    assert_eq!(between.0.ospf_full().unwrap(), 2);
}
