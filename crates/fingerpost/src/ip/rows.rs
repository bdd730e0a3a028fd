//! `ip address|route|neighbour|rule|nexthop add …`: a line's words, made
//! whole, are read by `words` and sent as one request. Called by the table
//! of commands.

use std::borrow::Cow;

use change::rows::Asked;
use netlink::decode::{self, Item};
use netlink::request::Dump;
use words::{NameFile, Object, Verb};

use super::grammar::{self, Key, Told, Value, begun, whole};
use super::session::Session;
use super::stop::{REFUSED, Stop};

/// What `ip` ends with where it hands a system's error on (`EINVAL`).
const INVALID: u8 = 22;
/// The longest name of a link (`IFNAMSIZ` less its NUL).
const MAX_NAME: usize = 15;

const ADDRESS: &[Key] = &[
    begun("peer", Value::Prefix).once("peer"),
    begun("remote", Value::Prefix).once("peer"),
    begun("broadcast", Value::Text).once("broadcast"),
    whole("brd", Value::Text).once("broadcast"),
    whole("any", Value::NotBuilt),
    begun("anycast", Value::Address).once("anycast"),
    begun(
        "scope",
        Value::Named(NameFile::Scopes, "invalid scope value."),
    ),
    whole("dev", Value::Link),
    whole("label", Value::Text),
    begun("metric", Value::Number("\"metric\" value is invalid")),
    begun("priority", Value::Number("\"metric\" value is invalid")).means("metric"),
    whole("preference", Value::Number("\"metric\" value is invalid")).means("metric"),
    begun("valid_lft", Value::Text),
    begun("preferred_lft", Value::Text),
    whole("home", Value::None),
    whole("nodad", Value::None),
    whole("mngtmpaddr", Value::None),
    whole("noprefixroute", Value::None),
    whole("autojoin", Value::None),
    whole("optimistic", Value::None),
    // Of newer versions of `ip`.
    whole("proto", Value::NotBuilt),
    whole("local", Value::Prefix),
];

const ROUTE: &[Key] = &[
    whole("src", Value::Address),
    whole("as", Value::NotBuilt),
    whole("via", Value::Address),
    whole("from", Value::Prefix),
    whole(
        "tos",
        Value::Named(NameFile::DsField, "\"tos\" value is invalid"),
    ),
    begun(
        "dsfield",
        Value::Named(NameFile::DsField, "\"tos\" value is invalid"),
    )
    .means("tos"),
    whole("expires", Value::Number("\"expires\" value is invalid")),
    begun("metric", Value::Number("\"metric\" value is invalid")),
    begun("priority", Value::Number("\"metric\" value is invalid")).means("metric"),
    whole("preference", Value::Number("\"metric\" value is invalid")).means("metric"),
    whole(
        "scope",
        Value::Named(NameFile::Scopes, "\"scope\" value is invalid"),
    ),
    whole("mtu", Value::Metric),
    whole("hoplimit", Value::Metric),
    whole("advmss", Value::Metric),
    begun("reordering", Value::Metric),
    whole("rtt", Value::LockedTime("\"rtt\" value is invalid\n")),
    begun("rto_min", Value::Time("\"rto_min\" value is invalid\n")),
    begun("window", Value::Metric),
    begun("cwnd", Value::Metric),
    whole("initcwnd", Value::Metric),
    whole("initrwnd", Value::Metric),
    whole(
        "features",
        Value::OneOf(&["ecn"], "\"features\" value not valid\n"),
    ),
    whole("quickack", Value::Flag),
    whole("congctl", Value::Locked),
    begun("rttvar", Value::LockedTime("\"rttvar\" value is invalid\n")),
    begun("ssthresh", Value::Metric),
    begun("realms", Value::Text),
    whole("onlink", Value::None),
    whole("nexthop", Value::None),
    begun(
        "protocol",
        Value::Named(NameFile::Protocols, "\"protocol\" value is invalid"),
    ),
    begun(
        "table",
        Value::Named(NameFile::Tables, "\"table\" value is invalid"),
    ),
    begun("vrf", Value::Vrf("Invalid VRF\n")),
    whole("dev", Value::Link),
    whole("oif", Value::Link).means("dev"),
    whole("pref", Value::Text),
    whole("encap", Value::Encap),
    whole("ttl-propagate", Value::NotBuilt),
    whole("fastopen_no_cookie", Value::Flag),
    whole("nhid", Value::Number("\"id\" value is invalid")),
    whole("weight", Value::Text),
    whole("to", Value::Prefix),
];

const NEIGHBOUR: &[Key] = &[
    begun("lladdr", Value::LinkLayer).once("lladdr"),
    whole("nud", Value::Text),
    begun("proxy", Value::Address).once("address"),
    whole("router", Value::None),
    whole("use", Value::None),
    whole("managed", Value::None),
    begun("extern_learn", Value::None),
    whole("dev", Value::Link),
    begun(
        "protocol",
        Value::Named(NameFile::Protocols, "\"protocol\" value is invalid"),
    ),
    whole("to", Value::Address),
];

const RULE: &[Key] = &[
    whole("not", Value::None),
    whole("from", Value::Prefix),
    whole("to", Value::Prefix),
    begun("preference", Value::Number("preference value is invalid")),
    begun("order", Value::Number("preference value is invalid")).means("preference"),
    begun("priority", Value::Number("preference value is invalid")).means("preference"),
    whole(
        "tos",
        Value::Named(NameFile::DsField, "TOS value is invalid"),
    ),
    begun(
        "dsfield",
        Value::Named(NameFile::DsField, "TOS value is invalid"),
    )
    .means("tos"),
    whole("fwmark", Value::Text),
    begun("realms", Value::Text),
    begun(
        "protocol",
        Value::Named(NameFile::Protocols, "\"protocol\" value is invalid"),
    ),
    begun("tun_id", Value::Text),
    begun("table", Value::Named(NameFile::Tables, "invalid table ID")),
    whole("lookup", Value::Named(NameFile::Tables, "invalid table ID")).means("table"),
    begun(
        "suppress_prefixlength",
        Value::Number("suppress_prefixlength value is invalid"),
    ),
    whole(
        "sup_pl",
        Value::Number("suppress_prefixlength value is invalid"),
    )
    .means("suppress_prefixlength"),
    begun(
        "suppress_ifgroup",
        Value::Named(NameFile::Groups, "Invalid \"suppress_ifgroup\" value\n"),
    ),
    whole(
        "sup_group",
        Value::Named(NameFile::Groups, "Invalid \"suppress_ifgroup\" value\n"),
    )
    .means("suppress_ifgroup"),
    whole("dev", Value::Text).means("iif"),
    whole("iif", Value::Text),
    whole("oif", Value::Text),
    whole("l3mdev", Value::None),
    whole("uidrange", Value::Text),
    whole("nat", Value::NotBuilt),
    whole("map-to", Value::NotBuilt),
    whole("ipproto", Value::Text),
    whole("sport", Value::Text),
    whole("dport", Value::Text),
    whole("goto", Value::Number("invalid target")),
    begun("type", Value::NotBuilt),
    whole("nop", Value::None),
    whole("blackhole", Value::None),
    whole("prohibit", Value::None),
    whole("unreachable", Value::None),
];

const NEXTHOP: &[Key] = &[
    whole("id", Value::Number("invalid id value")),
    whole("dev", Value::LinkOr("Device does not exist")),
    whole("via", Value::Address),
    whole("encap", Value::Encap),
    whole("blackhole", Value::None),
    whole("fdb", Value::None),
    whole("onlink", Value::None),
    whole("group", Value::Text),
    whole("type", Value::Text),
    begun(
        "protocol",
        Value::Named(NameFile::Protocols, "\"protocol\" value is invalid"),
    ),
    whole("buckets", Value::Text),
    whole("idle_timer", Value::Text),
    whole("unbalanced_timer", Value::Text),
];

fn keys(object: Object) -> &'static [Key] {
    match object {
        Object::Addr => ADDRESS,
        Object::Route => ROUTE,
        Object::Neigh => NEIGHBOUR,
        Object::Rule => RULE,
        Object::Nexthop => NEXTHOP,
        Object::Link | Object::Fdb => &[],
    }
}

/// Makes a change of a row.
pub fn change(
    session: &mut Session,
    object: Object,
    verb: Verb,
    arguments: &[String],
) -> Result<(), Stop> {
    // Which address is meant depends on those that are there.
    if (object, verb) == (Object::Addr, Verb::Delete) {
        session.settle()?;
    }
    let asked = read(session, object, verb, arguments)?;
    session.change(asked)
}

/// Reads a change of a row.
fn read(
    session: &mut Session,
    object: Object,
    verb: Verb,
    arguments: &[String],
) -> Result<Asked, Stop> {
    let cut = (object == Object::Route).then(|| cut_to_length(arguments));
    let arguments = cut.flatten().map_or(Cow::Borrowed(arguments), Cow::Owned);
    let mut told = grammar::read(keys(object), &arguments, session)?;
    if object == Object::Route {
        route_words(verb, &told, session)?;
    }
    complete(object, verb, &told, session)?;
    match object {
        Object::Rule => rule_words(&told, session)?,
        Object::Nexthop => nexthop_words(verb, &told)?,
        _ => {}
    }
    if object == Object::Route {
        told.retain(|told| !(told.said == "unicast" && told.key.is_none()));
    }
    if object == Object::Addr {
        lifetimes(&told, session)?;
        // Two addresses have none beside them.
        let is_small = |told: &Told<'_>| told.value.ends_with("/31") || told.value.ends_with("/32");
        if told
            .iter()
            .any(|told| (told.key.is_none() || told.is("local")) && is_small(told))
        {
            told.retain(|told| !((told.is("brd") || told.is("broadcast")) && told.value == "+"));
        }
        if verb == Verb::Delete {
            return deletion(session, &told);
        }
    }
    if object == Object::Neigh {
        for told in told.iter_mut().filter(|told| told.is("nud")) {
            told.value = neighbour_state(told.value)?;
        }
    }
    let line = grammar::line(&told);
    let mut asked = session.with_context(verb, |context| {
        change::rows::read_row(&line, object, context)
    })?;
    as_ip_asks(&mut asked, verb, &told);
    Ok(asked)
}

/// The name of a state of neighbours that is begun or told as a number.
pub fn neighbour_state(text: &str) -> Result<&'static str, Stop> {
    let known = STATES.iter().find(|(name, _)| grammar::begins(text, name));
    let numbered = || {
        let number = grammar::number(text)?;
        STATES.iter().find(|(_, bit)| *bit == number)
    };
    match (known.or_else(numbered), grammar::number(text)) {
        (Some((name, _)), _) => Ok(name),
        (None, Some(_)) => Err(Stop::NotBuilt(format!("nud {text}"))),
        (None, None) => Err(Stop::argument(text, "nud state is bad")),
    }
}

/// States of neighbours in `ip`'s order, and their bits (`NUD_…`).
const STATES: [(&str, u32); 9] = [
    ("permanent", 0x80),
    ("reachable", 0x02),
    ("noarp", 0x40),
    ("none", 0),
    ("stale", 0x04),
    ("incomplete", 0x01),
    ("delay", 0x08),
    ("probe", 0x10),
    ("failed", 0x20),
];

/// What `ip` leaves out of a request, where our own words say it.
fn as_ip_asks(asked: &mut Asked, verb: Verb, told: &[Told<'_>]) {
    let has = |means: &str| told.iter().any(|told| told.is(means));
    match &mut asked.item {
        // Whatever a rule does is meant, unless it is said.
        Item::Rule(row) if verb == Verb::Delete => {
            let acts = ["goto", "nop", "blackhole", "prohibit", "unreachable"];
            if !acts.iter().any(|act| has(act)) {
                row.action = 0;
            }
        }
        // The kernel finds out who that is.
        Item::Neighbour(row) if has("managed") && !has("nud") && !has("lladdr") => row.state = 0,
        _ => {}
    }
}

/// Prefixes of IPv6 without the bits beyond their lengths, as the kernel
/// takes them; `None`: no word is one that has such bits.
fn cut_to_length(arguments: &[String]) -> Option<Vec<String>> {
    let mut cut = None;
    for (place, word) in arguments.iter().enumerate() {
        let net = word.contains(':').then(|| word.parse::<ipnet::IpNet>());
        if let Some(Ok(net)) = net
            && net.trunc() != net
        {
            let words = cut.get_or_insert_with(|| arguments.to_vec());
            if let Some(word) = words.get_mut(place) {
                *word = net.trunc().to_string();
            }
        }
    }
    cut
}

/// What `ip` says of a route's words that each alone are right.
fn route_words(verb: Verb, told: &[Told<'_>], session: &Session) -> Result<(), Stop> {
    let at = told.iter().position(|told| told.is("nexthop"));
    let (before, hops) = told.split_at(at.unwrap_or(told.len()));
    let of = |means: &str| before.iter().filter(|told| told.is(means)).count();
    if of("via") > 1 {
        let why = "use nexthop syntax to specify multiple via\n";
        return Err(Stop::argument("via", why));
    }
    if of("weight") > 0 {
        return Err(Stop::garbage("to", "weight"));
    }
    if !hops.is_empty() && of("via") + of("dev") > 0 {
        return Err(Stop::NotBuilt("via or dev beside nexthop".to_owned()));
    }
    if hops.last().is_some_and(|told| told.is("nexthop")) {
        return Err(Stop::wrong(
            "Error: unexpected end of line after \"nexthop\"",
        ));
    }
    let is_alone = |told: &&Told<'_>| told.key.is_none();
    if let Some(word) = hops.iter().find(is_alone) {
        return Err(Stop::wrong(format!(
            "Error: \"nexthop\" or end of line is expected instead of \"{}\"",
            word.said
        )));
    }
    for told in told {
        let value = told.value;
        let is_any = matches!(told.said, "any" | "all") && told.key.is_none();
        match told.key.map(|key| key.means) {
            Some("from") if !value.contains(':') => {
                return Err(Stop::NotBuilt(format!("from {value}")));
            }
            Some("nhid") if grammar::number(value) == Some(0) => {
                return Err(Stop::NotBuilt("nhid 0".to_owned()));
            }
            Some("weight") if !(1..=256).contains(&grammar::number(value).unwrap_or(0)) => {
                return Err(Stop::argument(value, "\"weight\" is invalid\n"));
            }
            Some("pref") if !["low", "medium", "high"].contains(&value) => {
                return Err(Stop::argument(value, "\"pref\" value is invalid\n"));
            }
            Some("realms") => realms(value, "\"realm\" value is invalid\n", session)?,
            None if is_any && verb == Verb::Delete && told.said == value => {
                return Err(Stop::incomplete());
            }
            None if matches!(told.said, "xresolve" | "nat") => {
                return Err(Stop::NotBuilt(told.said.to_owned()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Realms are numbers of 16 bits each, or names; of one that has more `ip`
/// takes the rest.
fn realms(text: &str, why: &str, session: &Session) -> Result<(), Stop> {
    let numbers = text.split('/').filter_map(grammar::number);
    if numbers.into_iter().any(|number| number > 0xffff) {
        return Err(Stop::NotBuilt(format!("realms {text}")));
    }
    let is_known = |part: &&str| session.names.number(NameFile::Realms, part).is_some();
    let parts: Vec<&str> = text.split('/').collect();
    let is_right = parts.len() <= 2 && parts.iter().all(is_known);
    match is_right {
        true => Ok(()),
        false => Err(Stop::argument(text, why)),
    }
}

/// The same of a rule.
fn rule_words(told: &[Told<'_>], session: &Session) -> Result<(), Stop> {
    let find = |means: &str| told.iter().find(|told| told.is(means));
    if find("l3mdev").is_some() && find("table").is_some() {
        return Err(Stop::Left {
            status: INVALID,
            text: "table can not be specified for l3mdev rules".to_owned(),
        });
    }
    let family = session.family().unwrap_or_else(|| {
        let from = find("from").is_some_and(|told| told.value.contains(':'));
        if from {
            table::AF_INET6
        } else {
            table::AF_INET
        }
    });
    let is_other = |told: &Told<'_>| told.value.contains(':') != (family == table::AF_INET6);
    let is_prefix = |told: &&Told<'_>| told.value.contains(['.', ':']);
    if find("to").filter(is_prefix).is_some_and(is_other) {
        return Err(refused("Error: Invalid dst address."));
    }
    for told in told {
        let value = told.value;
        match told.key.map(|key| key.means) {
            Some("fwmark") => {
                let (mark, mask) = value.split_once('/').unwrap_or((value, "0"));
                if grammar::number(mark).is_none() {
                    return Err(Stop::argument(mark, "fwmark value is invalid\n"));
                }
                if grammar::number(mask).is_none() {
                    return Err(Stop::argument(mask, "fwmask value is invalid\n"));
                }
            }
            Some(name @ ("sport" | "dport")) => ports(name, value)?,
            Some("uidrange") => {
                let both = value.split_once('-').and_then(|(first, last)| {
                    Some((grammar::number(first)?, grammar::number(last)?))
                });
                let (first, last) =
                    both.ok_or_else(|| Stop::argument(value, "invalid UID range\n"))?;
                if first > last {
                    return Err(refused("Error: Invalid uid range."));
                }
            }
            Some("ipproto") if words::values::ip_protocol(value).is_err() => {
                return Err(Stop::argument(value, "Invalid \"ipproto\" value\n"));
            }
            Some("realms") => realms(value, "invalid realms\n", session)?,
            Some("tun_id") if value.parse::<u64>().is_err() => {
                return Err(Stop::argument(value, "\"tun_id\" value is invalid\n"));
            }
            Some("iif" | "oif") if value.is_empty() || value.len() > MAX_NAME => {
                let name = match told.said {
                    "oif" => "\"oif\"",
                    _ => "\"iif\"/\"dev\"",
                };
                return Err(Stop::argument(value, &format!("{name} not a valid ifname")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Ports of a rule: numbers that have more than 16 bits `ip` cuts off.
fn ports(name: &str, text: &str) -> Result<(), Stop> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (grammar::number(first), grammar::number(last)) {
        (Some(first), Some(last)) if first > 0xffff || last > 0xffff => {
            Err(Stop::NotBuilt(format!("{name} {text}")))
        }
        (Some(first), Some(last)) if first > last || first == 0 => {
            Err(refused(&format!("Error: Invalid {name} range.")))
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(Stop::argument(text, &format!("invalid {name} range\n"))),
    }
}

/// The same of a next hop.
fn nexthop_words(verb: Verb, told: &[Told<'_>]) -> Result<(), Stop> {
    let has = |means: &str| told.iter().any(|told| told.is(means));
    let is_id = |told: &Told<'_>| told.is("id");
    if verb == Verb::Delete && has("id") && !told.iter().all(is_id) {
        return Err(refused("Error: Unknown attribute type."));
    }
    let mut is_resilient = false;
    for told in told {
        let value = told.value;
        match told.key.map(|key| key.means) {
            Some("group") => group(value)?,
            Some("type") if !["mpath", "resilient"].contains(&value) => {
                return Err(Stop::argument(value, "\"type\" value is invalid\n"));
            }
            Some("type") => is_resilient = value == "resilient",
            Some("buckets" | "idle_timer" | "unbalanced_timer") if !is_resilient => {
                return Err(Stop::argument(told.said, ""));
            }
            Some("buckets") if grammar::number(value).is_none_or(|many| many > 0xffff) => {
                return Err(Stop::argument(value, "invalid buckets value\n"));
            }
            Some("idle_timer") if grammar::number(value).is_none() => {
                return Err(Stop::argument(value, "invalid idle timer value\n"));
            }
            Some("unbalanced_timer") if grammar::number(value).is_none() => {
                return Err(Stop::argument(value, "invalid unbalanced timer value\n"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Members of a group and their weights.
fn group(text: &str) -> Result<(), Stop> {
    for member in text
        .split('/')
        .filter(|member| !member.is_empty() || text.is_empty())
    {
        let (id, weight) = member.split_once(',').unwrap_or((member, "1"));
        if grammar::number(id).is_none_or(|id| id == 0) {
            return Err(Stop::argument(id, "\"group\" value is invalid\n"));
        }
        let weight_is = grammar::number(weight).unwrap_or(0);
        if !(1..=256).contains(&weight_is) {
            return Err(Stop::argument(weight, "\"weight\" is invalid\n"));
        }
    }
    match text.contains("//") {
        true => Err(Stop::NotBuilt(format!("group {text}"))),
        false => Ok(()),
    }
}

/// A deadline that is none, or lies behind another; a broadcast address that
/// is none, and words that are IPv6's.
fn lifetimes(told: &[Told<'_>], session: &mut Session) -> Result<(), Stop> {
    for told in told {
        let name = told.key.map_or("", |key| key.means);
        let is_lifetime = matches!(name, "valid_lft" | "preferred_lft");
        if is_lifetime && told.value != "forever" && grammar::number(told.value).is_none() {
            return Err(Stop::argument(told.value, &format!("{name} value\n")));
        }
        if name == "valid_lft" && grammar::number(told.value) == Some(0) {
            return Err(Stop::failed("valid_lft is zero"));
        }
    }
    broadcast(told, session)?;
    let seconds = |word: &str| {
        let told = told.iter().find(|told| told.is(word))?;
        Some(match told.value {
            "forever" => u32::MAX,
            text => grammar::number(text)?,
        })
    };
    let valid = seconds("valid_lft").unwrap_or(u32::MAX);
    match seconds("preferred_lft").is_some_and(|preferred| preferred > valid) {
        true => Err(Stop::failed("preferred_lft is greater than valid_lft")),
        false => Ok(()),
    }
}

/// `+` and `-`, or an address of IPv4, beside an address of IPv4.
fn broadcast(told: &[Told<'_>], session: &mut Session) -> Result<(), Stop> {
    let is_address = |told: &&Told<'_>| told.key.is_none() || told.is("local");
    let is_v6 = told
        .iter()
        .find(is_address)
        .is_some_and(|told| told.value.contains(':'));
    if let Some(told) = told
        .iter()
        .find(|told| told.is("broadcast") || told.is("brd"))
    {
        if !matches!(told.value, "+" | "-") {
            grammar::address(told.value, Some(table::AF_INET))?;
        }
        if is_v6 {
            return Err(Stop::failed("Broadcast can be set only for IPv4 addresses"));
        }
    }
    for name in ["home", "nodad", "mngtmpaddr"] {
        if !is_v6 && told.iter().any(|told| told.is(name)) {
            session.settle()?;
            super::session::complain(&format!(
                "Warning: {name} option can be set only for IPv6 addresses"
            ));
        }
    }
    Ok(())
}

/// The deletion of an address. Without a length the first with these bits is
/// meant, whatever its length.
fn deletion(session: &mut Session, told: &[Told<'_>]) -> Result<Asked, Stop> {
    let mut asked = session.with_context(Verb::Delete, |context| {
        change::rows::read_row(&grammar::line(told), Object::Addr, context)
    })?;
    let is_address = |told: &&Told<'_>| told.key.is_none() || told.is("local");
    let alone = told.iter().find(is_address);
    let says_length = alone.is_some_and(|told| told.value.contains('/'));
    let Item::Address(row) = &mut asked.item else {
        return Ok(asked);
    };
    if says_length || row.local.is_ipv6() || row.peer.is_some() {
        return Ok(asked);
    }
    super::session::complain(&format!(
        "Warning: Executing wildcard deletion to stay compatible with old scripts.\n         \
         Explicitly specify the prefix length ({}/32) to avoid this warning.",
        row.local
    ));
    let request = Dump::Addresses {
        family: table::AF_INET,
        link: Some(row.link),
    };
    let mut found = None;
    linux::once::rows(&session.namespace, &request, &mut |message| -> Result<
        (),
        linux::Error,
    > {
        let there = decode::address(message.payload, 0)?;
        if there.local == row.local && found.is_none() {
            found = Some((there.prefix_len, there.peer));
        }
        Ok(())
    })?;
    if let Some((len, peer)) = found {
        (row.prefix_len, row.peer) = (len, peer);
    }
    Ok(asked)
}

/// A refusal of the kernel that is known before it is asked.
fn refused(text: &str) -> Stop {
    Stop::Said {
        status: REFUSED,
        text: text.to_owned(),
    }
}

/// What a line must say, by `ip`'s own rules; what stands alone in it.
fn complete(object: Object, verb: Verb, told: &[Told<'_>], session: &Session) -> Result<(), Stop> {
    let has = |means: &str| told.iter().any(|told| told.is(means));
    let mut alone = told.iter().filter(|told| told.key.is_none());
    match object {
        Object::Addr => {
            if let Some(first) = alone.next() {
                if matches!(first.said, "default" | "any" | "all") {
                    return Err(Stop::NotBuilt(format!("the address {}", first.said)));
                }
                grammar::prefix(first.said, session.family())?;
                if let Some(second) = alone.next() {
                    return Err(Stop::garbage("local", second.said));
                }
            }
            if !has("dev") {
                return Err(Stop::failed(
                    "Not enough information: \"dev\" argument is required.",
                ));
            }
            if told.iter().all(|told| told.key.is_some()) && !has("local") {
                return Err(refused("RTNETLINK answers: Operation not supported"));
            }
        }
        Object::Route => {
            let is_kind = |word: &str| words::route_kind(word).is_some();
            let mut prefixes = alone.filter(|told| !is_kind(told.said));
            if let Some(first) = prefixes.next() {
                let prefix = grammar::prefix(first.said, session.family())?;
                if prefix.addr().is_ipv4() && prefix != prefix.trunc() {
                    return Err(refused("Error: Invalid prefix for given prefix length."));
                }
            } else if told.is_empty() {
                return Err(Stop::wrong(super::usage::of_object("ip route", "add …")));
            }
            if let Some(second) = prefixes.next() {
                return Err(Stop::garbage("to", second.said));
            }
        }
        Object::Neigh => {
            let first = alone.next();
            if let Some(first) = first {
                grammar::address(first.said, session.family())?;
            }
            if let Some(second) = alone.next() {
                return Err(Stop::garbage("to", second.said));
            }
            let has_address = first.is_some() || has("to") || has("proxy");
            if !has_address || !has("dev") && !has("proxy") {
                return Err(Stop::wrong(
                    "Device and destination are required arguments.",
                ));
            }
        }
        Object::Rule => {
            if told.is_empty() {
                let verb = if verb == Verb::Delete { "del" } else { "add" };
                return Err(Stop::failed(format!(
                    "\"ip rule {verb}\" requires arguments."
                )));
            }
            if let Some(first) = alone.next() {
                return Err(Stop::argument(first.said, "Failed to parse rule type"));
            }
            if session.family().is_none()
                && told
                    .iter()
                    .any(|told| told.is("from") && told.value.contains(':'))
            {
                return Err(refused("Error: Invalid source address."));
            }
        }
        Object::Nexthop => {
            if let Some(first) = alone.next() {
                return Err(Stop::argument(first.said, ""));
            }
            let leads = ["via", "dev", "blackhole", "fdb", "group"];
            match verb {
                Verb::Delete if !has("id") => {
                    return Err(refused("Error: Nexthop id is missing."));
                }
                Verb::Delete => {}
                _ if !leads.iter().any(|word| has(word)) => {
                    return Err(refused("Error: Invalid address family."));
                }
                _ => {}
            }
        }
        Object::Link | Object::Fdb => {}
    }
    Ok(())
}
