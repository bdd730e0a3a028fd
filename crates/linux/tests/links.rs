//! Links by the thousand in a real kernel.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use fingerpost_linux::Namespace;
use fingerpost_linux::error::Error;
use fingerpost_linux::links::{self, Agreed, Deletion, How, Listing, New, Terms, Told, Way};
use lab::Netns;
use netlink::encode::{LinkEnd, LinkKind, NewLink};

fn namespace(tag: &str) -> Option<(Netns, Namespace)> {
    let netns = lab::skip::unless(Netns::new(tag))?;
    let namespace = Namespace::open(netns.name()).unwrap();
    Some((netns, namespace))
}

fn end(name: String, group: u32) -> LinkEnd {
    LinkEnd {
        name: name.into(),
        group: Some(group),
        ..LinkEnd::default()
    }
}

fn pair(number: u32, group: u32) -> New {
    New::of(NewLink {
        end: end(format!("testa{number}"), group),
        master: None,
        lower: None,
        alias: None,
        kind: LinkKind::Veth {
            peer: Box::new(end(format!("testb{number}"), group)),
        },
    })
}

fn pairs(namespace: &Namespace, count: u32, group: u32) {
    let news = (1..=count).map(|number| pair(number, group));
    let added = links::add(namespace, None, news, How::default(), &mut |told| {
        assert!(!matches!(told, Told::Failed(_)), "{told:?}");
    });
    assert_eq!(added.unwrap().done, count as usize);
}

fn macvlan(name: &str, lower: u32) -> New {
    New::of(NewLink {
        end: end(name.to_owned(), 7),
        master: None,
        lower: Some(lower),
        alias: None,
        kind: LinkKind::plain("macvlan"),
    })
}

fn names(namespace: &Namespace) -> Vec<String> {
    let listing = Listing::read(namespace).unwrap();
    let mut names: Vec<String> = listing.iter().map(|link| link.name.to_string()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_group_of_ours_goes_whole_and_half() {
    let Some((netns, namespace)) = namespace("delete") else {
        return;
    };
    netns
        .ip(&["link", "add", "foreign", "type", "bridge"])
        .unwrap();
    let group = links::random_group();
    pairs(&namespace, 300, group);
    // Half: they have a group of their own, which the others are in too.
    let number = |name: &str| {
        name.get(5..)
            .unwrap_or_default()
            .parse::<u32>()
            .unwrap_or(0)
    };
    let half = Deletion::plan(&namespace, &mut |link| {
        link.group == group && number(&link.name) % 2 == 0
    });
    let half = half.unwrap();
    assert_eq!((half.links().len(), half.along().len()), (300, 0));
    assert!(
        matches!(half.way(), Way::Group { moved: 150, .. }),
        "{:?}",
        half.way()
    );
    let mut heard = 0;
    let deleted = half.run(Terms::default(), How::default(), &mut |told| {
        heard += usize::from(matches!(told, Told::Done { .. }));
    });
    let deleted = deleted.unwrap();
    assert_eq!((deleted.done, deleted.failed, deleted.gone), (300, 0, 0));
    assert_eq!(heard, 300);
    let rest = Deletion::plan(&namespace, &mut |link| link.group == group).unwrap();
    assert_eq!(rest.way(), Way::Group { group, moved: 0 });
    assert_eq!(rest.links().len(), 300);
    rest.run(Terms::default(), How::default(), &mut |_| {})
        .unwrap();
    assert_eq!(names(&namespace), ["foreign", "lo"]);
}

#[test]
fn what_goes_along_is_listed_and_refused() {
    let Some((netns, namespace)) = namespace("along") else {
        return;
    };
    let Some((_other_netns, other)) = self::namespace("along-there") else {
        return;
    };
    pairs(&namespace, 3, 0);
    let lower = Listing::read(&namespace)
        .unwrap()
        .named("testa1")
        .unwrap()
        .index;
    let news = ["mac1", "mac2"].map(|name| macvlan(name, lower));
    links::add(&namespace, None, news, How::default(), &mut |_| {}).unwrap();
    netns
        .ip(&["link", "set", "mac2", "netns", other.name().unwrap()])
        .unwrap();
    netns
        .ip(&["link", "set", "testb2", "netns", other.name().unwrap()])
        .unwrap();
    netns
        .ip(&[
            "link", "add", "vx1", "type", "vxlan", "id", "7", "dev", "testa3", "remote",
            "10.0.0.9", "dstport", "4789",
        ])
        .unwrap();
    let before = names(&namespace);
    let plan = Deletion::plan(&namespace, &mut |link| link.name.starts_with("testa")).unwrap();
    let mut along: Vec<_> = plan
        .along()
        .iter()
        .map(|along| {
            let place = along.elsewhere.as_deref().unwrap_or("here");
            (&*along.link.name, &*along.with, place == "here")
        })
        .collect();
    along.sort_unstable();
    let expected = [
        ("mac1", "testa1", true),
        ("mac2", "testa1", false),
        ("testb1", "testa1", true),
        ("testb2", "testa2", false),
        ("testb3", "testa3", true),
        ("vx1", "testa3", true),
    ];
    assert_eq!(along, expected);
    let refused = plan.run(Terms::default(), How::default(), &mut |_| {});
    assert!(matches!(refused, Err(Error::Along { .. })), "{refused:?}");
    assert_eq!(names(&namespace), before);
    let terms = Terms {
        along: Agreed::All,
        atomic: false,
    };
    let deleted = plan.run(terms, How::default(), &mut |_| {}).unwrap();
    assert_eq!(deleted.done, 3);
    assert_eq!(names(&namespace), ["lo"]);
    assert_eq!(names(&other), ["lo"]);
}

/// All that a deletion is to bring back, as `ip` shows it.
fn shown(netns: &Netns) -> String {
    let text = netns.ip(&["-d", "-o", "addr"]).unwrap();
    // Lifetimes run, states settle and link-local addresses are the kernel's.
    let lines = text.lines().filter(|line| !line.contains("inet6 fe80"));
    lines.map(|line| format!("{line}\n")).collect::<String>() + &links_shown(netns)
}

fn links_shown(netns: &Netns) -> String {
    let text = netns.ip(&["-d", "-o", "link"]).unwrap();
    let cut = |line: &str| {
        let words = line.split_whitespace();
        // What moves by itself.
        let unsteady = [
            "state",
            "gc_timer",
            "hello_timer",
            "tcn_timer",
            "topology_change_timer",
        ];
        let mut skip = false;
        let kept: Vec<&str> = words
            .filter(|word| {
                let is_value = std::mem::replace(&mut skip, unsteady.contains(word));
                !is_value && !skip
            })
            .collect();
        kept.join(" ")
    };
    text.lines().map(|line| cut(line) + "\n").collect()
}

#[test]
fn a_deletion_taken_back_brings_back_what_it_can() {
    let Some((netns, namespace)) = namespace("back") else {
        return;
    };
    let Some((other_netns, other)) = self::namespace("back-there") else {
        return;
    };
    netns
        .ip_batch(
            "link add br0 address 02:00:00:00:00:01 type bridge ageing_time 1000 forward_delay 300\n\
             link add va mtu 1400 type veth peer name vb\n\
             link add vc type veth peer name vd\n\
             link set va master br0\n\
             link set vb alias customer-7 up\n\
             link set va up\n\
             link set br0 up\n\
             link set vc up\n\
             link add mac0 link vc type macvlan mode bridge\n\
             link set mac0 up\n\
             link add vx0 type vxlan id 9 dev vc remote 10.0.0.9 dstport 4789 ttl 7\n\
             link add ifb9 group 44 type ifb\n\
             addr add 10.1.0.1/30 brd + dev vb label vb:1\n\
             addr add 2001:db8::1/64 dev mac0 nodad\n\
             addr add 2001:db8::7/64 dev mac0 nodad\n\
             addr add 2001:db8:1::3/64 dev mac0 nodad\n\
             addr add 10.4.0.9/24 dev mac0\n\
             addr add 10.4.0.3/24 dev mac0\n\
             addr add 10.2.0.1 peer 10.2.0.2/32 dev vc\n",
        )
        .unwrap();
    let there = other.name().unwrap();
    netns.ip(&["link", "set", "vd", "netns", there]).unwrap();
    other_netns
        .ip(&["addr", "add", "10.3.0.1/24", "dev", "vd"])
        .unwrap();
    other_netns.ip(&["link", "set", "vd", "up"]).unwrap();
    let settled = || {
        let before = (shown(&netns), shown(&other_netns));
        std::thread::sleep(std::time::Duration::from_millis(30));
        (before == (shown(&netns), shown(&other_netns))).then_some(before)
    };
    let patience = std::time::Duration::from_secs(20);
    let before = lab::wait_until(patience, "the links to settle", settled).unwrap();
    let plan = Deletion::plan(&namespace, &mut |link| &*link.name != "lo").unwrap();
    let rows = links::rows(&plan).unwrap();
    let terms = Terms {
        along: Agreed::All,
        atomic: false,
    };
    plan.run(terms, How::default(), &mut |_| {}).unwrap();
    assert_eq!(names(&namespace), ["lo"]);
    assert_eq!(names(&other), ["lo"]);
    let mut failures = Vec::new();
    let back = links::recreate(&namespace, rows, 0, How::default(), &mut |told| {
        if let Told::Failed(failure) = told {
            failures.push(failure);
        }
    });
    let back = back.unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!((back.made, back.failed), (8, 0));
    let after = || {
        let after = (shown(&netns), shown(&other_netns));
        (after == before).then_some(())
    };
    if lab::wait_until(patience, "the links to be as before", after).is_err() {
        assert_eq!(shown(&netns), before.0);
        assert_eq!(shown(&other_netns), before.1);
    }
}

#[test]
fn answers_that_are_lost_are_asked_for_again() {
    let Some((_netns, namespace)) = namespace("lost") else {
        return;
    };
    let group = links::random_group();
    // No answer but the first of a pack fits: the acknowledgement is lost.
    let how = How {
        receive_buffer: 1,
        ..How::default()
    };
    let news = (1..=40).map(|number| pair(number, group));
    let added = links::add(&namespace, None, news, how, &mut |told| {
        assert!(!matches!(told, Told::Failed(_)), "{told:?}");
    });
    assert_eq!(added.unwrap().done, 40);
    assert_eq!(names(&namespace).len(), 81);
    let plan = Deletion::plan(&namespace, &mut |link| link.group == group).unwrap();
    let deleted = plan.run(Terms::default(), how, &mut |_| {}).unwrap();
    assert_eq!((deleted.done, deleted.failed), (80, 0));
    assert_eq!(names(&namespace), ["lo"]);
}
