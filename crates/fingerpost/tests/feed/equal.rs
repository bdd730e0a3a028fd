//! Zebra, the kernel and the feed have the same routes.

use lab::speaker::Speaker;
use lab::{Netns, wait_until};

use crate::common::PATIENCE;
use crate::frr::{Configuration, Frr};
use crate::{FPM, fed, kernels, ours, status, wired};

const ROUTES: &str = "\
    ip route 192.0.2.0/24 10.1.0.2\n\
    ip route 198.51.100.0/24 10.1.0.2\n\
    ip route 198.51.100.0/24 10.1.0.3\n\
    ip route 198.51.100.0/24 10.2.0.2\n\
    ip route 203.0.113.0/24 blackhole\n\
    ip route 100.64.0.0/10 reject\n\
    ip route 203.0.113.7/32 v1\n\
    ipv6 route 2001:db8:9::/48 2001:db8:1::2\n\
    ipv6 route 2001:db8:a::/48 2001:db8:1::2\n\
    ipv6 route 2001:db8:a::/48 2001:db8:1::3\n\
    ipv6 route 2001:db8:b::/48 blackhole\n";

/// Waits until all three have the same, and so many.
fn are_equal(netns: &Netns, frr: &Frr<'_>, routes: usize) {
    let mut seen = (None, Vec::new(), Vec::new());
    let same = || {
        seen = (frr.routes(), kernels(netns), ours(netns));
        let (zebra, kernel, ours) = &seen;
        (zebra.as_ref() == Some(ours) && kernel == ours && ours.len() == routes).then_some(())
    };
    let waited = wait_until(PATIENCE, "equal routes", same);
    assert!(waited.is_ok(), "{routes}: {seen:#?}");
}

#[test]
fn all_kinds_of_routes_with_each_setting_of_zebra() {
    for (groups, replace) in [(true, true), (false, true), (true, false), (false, false)] {
        let Some(netns) = wired("feed-kinds") else {
            return;
        };
        let _daemon = fed(&netns);
        let not = |is: bool| if is { "" } else { "no " };
        let zebra = format!(
            "{FPM}{}fpm use-next-hop-groups\n{}fpm use-route-replace\n",
            not(groups),
            not(replace)
        );
        let frr = Frr::start(
            &netns,
            Configuration {
                zebra: &zebra,
                staticd: ROUTES,
                bgpd: None,
            },
        );
        are_equal(&netns, &frr, 8);
        // Of tables that are no VRF's zebra tells only what changes.
        frr.vtysh(&[
            "conf t",
            "ip route 172.16.0.0/12 10.1.0.9 table 1000",
            "ip route 172.16.0.0/12 10.1.0.8 table 77",
        ]);
        are_equal(&netns, &frr, 10);
        // Changed, and taken back: also to another metric, and to a group.
        frr.vtysh(&[
            "conf t",
            "no ip route 192.0.2.0/24 10.1.0.2",
            "ip route 192.0.2.0/24 10.1.0.7",
            "ip route 192.0.2.0/24 10.2.0.7",
            "no ip route 203.0.113.0/24 blackhole",
            "no ip route 172.16.0.0/12 10.1.0.8 table 77",
            "no ipv6 route 2001:db8:a::/48 2001:db8:1::3",
            "ip route 203.0.113.7/32 10.1.0.4",
        ]);
        are_equal(&netns, &frr, 8);
        // A link goes and comes: groups lose a member and get it back.
        netns.ip(&["link", "set", "v1", "down"]).unwrap();
        let lost = || (!ours(&netns).concat().contains("@v1")).then_some(());
        wait_until(PATIENCE, "no route over v1", lost).unwrap();
        are_equal(&netns, &frr, 8);
        netns.ip(&["link", "set", "v1", "up"]).unwrap();
        // The kernel lost next hops over v1, which zebra 8.4 does not put
        // back: the feed has what zebra says.
        let same = || (frr.routes()? == ours(&netns)).then_some(());
        wait_until(PATIENCE, "zebra's routes", same).unwrap();
        assert_eq!(status(&netns)["malformed"], 0);
    }
}

#[test]
fn routes_of_bgp_come_and_go() {
    let Some(netns) = wired("feed-bgp") else {
        return;
    };
    let peer = Netns::new("feed-peer").unwrap();
    netns
        .ip(&["link", "set", "w0", "netns", peer.name()])
        .unwrap();
    peer.ip_batch("addr add 10.1.0.2/24 dev w0\nlink set w0 up\n")
        .unwrap();
    let _daemon = fed(&netns);
    let bgpd = "router bgp 65001\n bgp router-id 10.1.0.1\n no bgp ebgp-requires-policy\n \
                neighbor 10.1.0.2 remote-as 65002\n neighbor 10.1.0.2 passive\n";
    let frr = Frr::start(
        &netns,
        Configuration {
            zebra: FPM,
            staticd: "",
            bgpd: Some(bgpd),
        },
    );
    let connect = || {
        let opened = peer.inside(|| {
            let bgpd = "10.1.0.1:179".parse().unwrap();
            Speaker::open(bgpd, 65_002, [10, 1, 0, 2].into())
        });
        opened.unwrap().ok()
    };
    let mut speaker = wait_until(PATIENCE, "a session with bgpd", connect).unwrap();
    let gateway = [10, 1, 0, 2].into();
    speaker.announce(0..5_000, gateway).unwrap();
    are_equal(&netns, &frr, 5_000);
    speaker.withdraw(1_000..2_000).unwrap();
    speaker
        .announce(3_000..4_000, [10, 1, 0, 9].into())
        .unwrap();
    are_equal(&netns, &frr, 4_000);
    drop(speaker);
    are_equal(&netns, &frr, 0);
}
