//! Links of other kinds than veth: what takes no program is refused by its
//! name, and what is on a port is in the way or not.

use crate::place::{Router, place, refused_on};

#[test]
fn links_that_take_no_program_are_refused_by_name() {
    let Some(place) = place("xkinds") else { return };
    let netns = &place.router;
    for (name, kind) in [
        ("mv0", "link wan type macvlan mode bridge"),
        ("mt0", "link wan type macvtap mode bridge"),
        ("br0", "type bridge"),
    ] {
        let line = format!("link add {name} {kind}\nlink set {name} up\n");
        netns.ip_batch(&line).unwrap();
        let said = refused_on(netns, &format!("lan {name}"));
        assert!(
            said.contains(&format!("{name} takes no program for XDP"))
                && said.contains("its driver has no XDP"),
            "{said}"
        );
    }
    // What is on a port and has an address of its own is in nobody's way.
    let router = Router::start(netns, &[]);
    assert_eq!(router.receives("wan"), [true; 2]);
    for (mode, is_in_the_way) in [("private", false), ("source", true)] {
        netns
            .ip(&[
                "link", "add", "mv1", "link", "wan", "type", "macvlan", "mode", mode,
            ])
            .unwrap();
        match is_in_the_way {
            true => router.until_told("upper", true),
            false => router.looks_again(),
        }
        assert_eq!(router.receives("wan"), [!is_in_the_way; 2], "{mode}");
        netns.ip(&["link", "del", "mv1"]).unwrap();
        router.until_told("upper", false);
    }
}
