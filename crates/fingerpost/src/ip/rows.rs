//! `ip address|route|neighbour|rule|nexthop add …`: a line's words, made
//! whole, are read by `words` and sent as one request. Called by the table
//! of commands.

use change::rows::Asked;
use netlink::decode::{self, Item};
use netlink::request::Dump;
use words::{NameFile, Object, Verb};

use super::grammar::{self, Key, Told, Value, begun, whole};
use super::session::Session;
use super::stop::{REFUSED, Stop};

const ADDRESS: &[Key] = &[
    begun("peer", Value::Prefix),
    begun("remote", Value::Prefix),
    begun("broadcast", Value::Text),
    whole("brd", Value::Text),
    begun("anycast", Value::Address),
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
    whole("proto", Value::Text),
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
    whole("quickack", Value::Metric),
    whole("congctl", Value::Metric),
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
    whole("vrf", Value::Vrf("Invalid VRF\n")),
    whole("dev", Value::Link),
    whole("oif", Value::Link).means("dev"),
    whole("pref", Value::Text),
    whole("encap", Value::Encap),
    whole("ttl-propagate", Value::NotBuilt),
    whole("fastopen_no_cookie", Value::Text),
    whole("nhid", Value::Number("\"id\" value is invalid")),
    whole("weight", Value::Text),
    whole("to", Value::Prefix),
];

const NEIGHBOUR: &[Key] = &[
    whole("lladdr", Value::LinkLayer),
    whole("nud", Value::Text),
    begun("proxy", Value::Address),
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
    begun("tun_id", Value::Number("\"tun_id\" value is invalid")),
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
    if object == Object::Neigh {
        // `ip` leaves at once after a refusal, so none waits for others.
        session.settle()?;
        return session.change_now(&asked).map_err(Stop::leaves);
    }
    session.change(asked)
}

/// Reads a change of a row.
fn read(
    session: &mut Session,
    object: Object,
    verb: Verb,
    arguments: &[String],
) -> Result<Asked, Stop> {
    let mut told = grammar::read(keys(object), arguments, session)?;
    complete(object, verb, &told, session)?;
    if object == Object::Route {
        told.retain(|told| !(told.said == "unicast" && told.key.is_none()));
    }
    if object == Object::Addr {
        lifetimes(&told)?;
        if verb == Verb::Delete {
            return deletion(session, &told);
        }
    }
    if object == Object::Neigh
        && let Some(told) = told.iter().find(|told| told.is("nud"))
        && view::states_of(told.value).is_none()
    {
        return Err(Stop::argument(told.value, "nud state is bad"));
    }
    let line = grammar::line(&told);
    session.with_context(verb, |context| {
        change::rows::read_row(&line, object, context)
    })
}

/// A deadline that lies behind another.
fn lifetimes(told: &[Told<'_>]) -> Result<(), Stop> {
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
