//! `ip address|route|neighbour|rule|nexthop add …`: a line's words, made
//! whole, are read by `words` and sent as one request. Called by the table
//! of commands.

use change::rows::{Asked, message};
use netlink::decode::Item;
use words::{NameFile, Object, Verb};

use super::grammar::{self, Key, Told, Value, begun, whole};
use super::session::Session;
use super::stop::Stop;

const ADDRESS: &[Key] = &[
    begun("peer", Value::Prefix),
    begun("remote", Value::Prefix),
    begun("broadcast", Value::Text),
    whole("brd", Value::Text),
    begun("anycast", Value::Address),
    begun("scope", Value::Named(NameFile::Scopes, "invalid scope value.")),
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
    whole("tos", Value::Named(NameFile::DsField, "\"tos\" value is invalid")),
    begun("dsfield", Value::Named(NameFile::DsField, "\"tos\" value is invalid")).means("tos"),
    whole("expires", Value::Number("\"expires\" value is invalid")),
    begun("metric", Value::Number("\"metric\" value is invalid")),
    begun("priority", Value::Number("\"metric\" value is invalid")).means("metric"),
    whole("preference", Value::Number("\"metric\" value is invalid")).means("metric"),
    whole("scope", Value::Named(NameFile::Scopes, "\"scope\" value is invalid")),
    whole("mtu", Value::Text),
    whole("hoplimit", Value::Text),
    whole("advmss", Value::Text),
    begun("reordering", Value::Text),
    whole("rtt", Value::NotBuilt),
    begun("rto_min", Value::NotBuilt),
    begun("window", Value::Text),
    begun("cwnd", Value::Text),
    whole("initcwnd", Value::Text),
    whole("initrwnd", Value::Text),
    whole("features", Value::NotBuilt),
    whole("quickack", Value::Text),
    whole("congctl", Value::NotBuilt),
    begun("rttvar", Value::NotBuilt),
    begun("ssthresh", Value::Text),
    begun("realms", Value::Text),
    whole("onlink", Value::None),
    whole("nexthop", Value::None),
    begun("protocol", Value::Named(NameFile::Protocols, "\"protocol\" value is invalid")),
    begun("table", Value::Named(NameFile::Tables, "\"table\" value is invalid")),
    whole("vrf", Value::Text),
    whole("dev", Value::Link),
    whole("oif", Value::Link).means("dev"),
    whole("pref", Value::Text),
    whole("encap", Value::NotBuilt),
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
    begun("protocol", Value::Named(NameFile::Protocols, "\"protocol\" value is invalid")),
    whole("to", Value::Address),
];

const RULE: &[Key] = &[
    whole("not", Value::None),
    whole("from", Value::Prefix),
    whole("to", Value::Prefix),
    begun("preference", Value::Number("preference value is invalid")),
    begun("order", Value::Number("preference value is invalid")).means("preference"),
    begun("priority", Value::Number("preference value is invalid")).means("preference"),
    whole("tos", Value::Named(NameFile::DsField, "TOS value is invalid")),
    begun("dsfield", Value::Named(NameFile::DsField, "TOS value is invalid")).means("tos"),
    whole("fwmark", Value::Text),
    begun("realms", Value::Text),
    begun("protocol", Value::Named(NameFile::Protocols, "\"protocol\" value is invalid")),
    begun("tun_id", Value::Number("\"tun_id\" value is invalid")),
    begun("table", Value::Named(NameFile::Tables, "invalid table ID")),
    whole("lookup", Value::Named(NameFile::Tables, "invalid table ID")).means("table"),
    begun("suppress_prefixlength", Value::Number("suppress_prefixlength value is invalid")),
    whole("sup_pl", Value::Number("suppress_prefixlength value is invalid"))
        .means("suppress_prefixlength"),
    begun("suppress_ifgroup", Value::Named(NameFile::Groups, "Invalid \"suppress_ifgroup\" value\n")),
    whole("sup_group", Value::Named(NameFile::Groups, "Invalid \"suppress_ifgroup\" value\n"))
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
    whole("encap", Value::NotBuilt),
    whole("blackhole", Value::None),
    whole("fdb", Value::None),
    whole("onlink", Value::None),
    whole("group", Value::Text),
    whole("type", Value::Text),
    begun("protocol", Value::Named(NameFile::Protocols, "\"protocol\" value is invalid")),
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
    let asked = read(session, object, verb, arguments)?;
    let now = linux::mirror::now_millis();
    session.apply(|sequence, out| {
        // What does not fit a message is told as a request that the kernel
        // does not take.
        let _ = message(&asked, sequence, now, out);
    })
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
    let line = grammar::line(&told);
    session.with_context(verb, |context| {
        change::rows::read_row(&line, object, context)
    })
}

/// What a line must say, by `ip`'s own rules; what stands alone in it.
fn complete(
    object: Object,
    verb: Verb,
    told: &[Told<'_>],
    session: &Session,
) -> Result<(), Stop> {
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
        }
        Object::Route => {
            let is_kind = |word: &str| words::route_kind(word).is_some();
            let mut prefixes = alone.filter(|told| !is_kind(told.said));
            if let Some(first) = prefixes.next() {
                grammar::prefix(first.said, family_of_route(told, session))?;
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
        }
        Object::Nexthop => {
            if let Some(first) = alone.next() {
                return Err(Stop::argument(first.said, ""));
            }
        }
        Object::Link | Object::Fdb => {}
    }
    Ok(())
}

/// The family of a route's prefix, where something beside it says so.
fn family_of_route(told: &[Told<'_>], session: &Session) -> Option<u8> {
    let _ = told;
    session.family()
}

/// Whether a row is an address on a link: such changes move routes too.
pub fn item_of(asked: &Asked) -> &Item {
    &asked.item
}
