//! From lines to rows.

use linux::Namespace;

use super::*;
use crate::rows::lookup::Lookup;

/// What a line is read as, with `lo` for the only link.
fn read_as(object: Object, verb: Verb, line: &str) -> Result<Asked, ParseError> {
    let namespace = Namespace::current().map_err(|error| error.to_string())?;
    let mut links = Lookup::new(&namespace).map_err(|error| error.to_string())?;
    let mut context = Context {
        links: &mut links,
        names: &words::Names::default(),
        family: None,
        verb,
        now_millis: 1_000_000,
    };
    read(line, object, verb, &mut context)
}

#[test]
fn what_makes_no_sense_is_named() {
    for (object, line, says) in [
        (Object::Route, "", "a route wants a prefix"),
        (Object::Route, "10.0.0.0/8 via", "`via` wants a value"),
        (Object::Route, "10.0.0.0/8 metric x", "metric `x`: a number"),
        (Object::Route, "10.0.0.0/8 metric 0x1ffffffff", "a number"),
        (Object::Route, "10.0.0.0/8 proto fish", "proto `fish`"),
        (Object::Route, "10.0.0.0/8 scope 300", "scope `300`"),
        (
            Object::Route,
            "10.0.0.0/8 via inet 2001:db8::1",
            "of that family",
        ),
        (
            Object::Route,
            "10.0.0.0/8 nexthop dev lo weight 257",
            "from 1 to 256",
        ),
        (
            Object::Route,
            "10.0.0.0/8 dev lo nexthop dev lo",
            "stand beside",
        ),
        (Object::Route, "10.0.0.0/8 vrf lo", "`lo` is no VRF"),
        (Object::Route, "10.0.0.0/8 pref best", "low, medium or high"),
        (Object::Route, "type fish 10.0.0.0/8", "a type of route"),
        (Object::Route, "-5 10.0.0.0/8", "`-5` is not understood"),
        (Object::Route, "neigh flush dev lo", "`flush` is no change"),
        (
            Object::Addr,
            "10.0.0.1/33 dev lo",
            "an address with its length",
        ),
        (Object::Addr, "10.0.0.1/24", "`dev` is wanted"),
        (Object::Addr, "dev lo", "an address is wanted"),
        (
            Object::Addr,
            "10.0.0.1 dev lo valid_lft soon",
            "seconds or forever",
        ),
        (
            Object::Neigh,
            "10.0.0.1 dev lo lladdr 2:zz",
            "a link-layer address",
        ),
        (Object::Neigh, "10.0.0.1 dev lo nud happy", "nud `happy`"),
        (Object::Neigh, "10.0.0.1", "`dev` is wanted"),
        (Object::Nexthop, "via 10.0.0.1", "wants its `id`"),
        (Object::Nexthop, "id 5", "wants `via`, `dev`"),
        (Object::Nexthop, "id 5 group 1,0", "ID[,WEIGHT]"),
        (
            Object::Rule,
            "from 10.0.0.0/8 to 2001:db8::/32",
            "a prefix of IPv4",
        ),
        (Object::Rule, "sport 9-5", "FROM-TO"),
        (Object::Rule, "fish", "`fish` is not understood here"),
    ] {
        let wrong = read_as(object, Verb::Add, line).err().unwrap_or_default();
        assert!(wrong.contains(says), "{line}: {wrong}");
    }
}

#[test]
fn a_line_s_own_object_and_verb_count() {
    let asked = read_as(Object::Route, Verb::Add, "-6 rule del pref 5").unwrap();
    assert_eq!(asked.verb, Verb::Delete);
    assert!(asked.is_placed);
    let Item::Rule(rule) = asked.item else {
        panic!("{:?}", asked.item);
    };
    assert_eq!((rule.family, rule.priority), (table::AF_INET6, 5));
    // A route may begin as an object does not.
    let asked = read_as(Object::Route, Verb::Delete, "default").unwrap();
    assert!(matches!(asked.item, Item::Route(_)));
    assert_eq!(asked.verb, Verb::Delete);
}

#[test]
fn lifetimes_end_at_a_time() {
    let line = "10.0.0.1/24 dev lo valid_lft 100 preferred_lft 50sec";
    let Item::Address(address) = read_as(Object::Addr, Verb::Add, line).unwrap().item else {
        panic!("no address");
    };
    assert_eq!(address.valid_until_millis, Some(1_100_000));
    assert_eq!(address.preferred_until_millis, Some(1_050_000));
    let line = "10.0.0.1/24 dev lo valid_lft forever preferred_lft 0";
    let Item::Address(address) = read_as(Object::Addr, Verb::Add, line).unwrap().item else {
        panic!("no address");
    };
    assert_eq!(address.valid_until_millis, None);
    assert_eq!(address.preferred_until_millis, Some(1_000_000));
}
