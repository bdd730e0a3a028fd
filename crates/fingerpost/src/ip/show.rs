//! `ip OBJECT show`: `ip`'s words become conditions of a question
//! ([`view::conditions`]), which is answered like any other. Called by the
//! table of commands.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write};

use serve::control::protocol::Ask;
use view::conditions::{self, FILTERS};
use view::{BadQuestion, Filter, Format, Object, Output, Question, Units};
use words::NameFile;

use super::grammar::{self, Key, Told, Value, begins, begun, whole};
use super::options::{AF_PACKET, When};
use super::session::Session;
use super::stop::{REFUSED, Stop};
use crate::ask;
use crate::direct::{self, Answered};

const TOS_VALUE: Value = Value::Named(NameFile::DsField, "TOS value is invalid\n");
const TOS: Key = whole("tos", TOS_VALUE);
const DSFIELD: Key = begun("dsfield", TOS_VALUE).means("tos");

const METRIC: &str = "\"metric\" value is invalid\n";
const NO_DEVICE: &str = "Device does not exist";

/// Of `ip address` and `ip link`, which take the same.
const LINKS: &[Key] = &[
    whole("to", Value::Selector),
    whole("scope", Value::Text),
    whole("up", Value::None),
    whole("dynamic", Value::None),
    whole("permanent", Value::None),
    whole("temporary", Value::None).means("secondary"),
    whole("secondary", Value::None),
    whole("primary", Value::None),
    whole("tentative", Value::None),
    whole("deprecated", Value::None),
    whole("dadfailed", Value::None),
    whole("-dynamic", Value::None),
    whole("-permanent", Value::None),
    whole("-temporary", Value::None).means("-secondary"),
    whole("-secondary", Value::None),
    whole("-primary", Value::None),
    whole("-tentative", Value::None),
    whole("-deprecated", Value::None),
    whole("-dadfailed", Value::None),
    whole("nodad", Value::None),
    whole("-nodad", Value::None),
    whole("optimistic", Value::None),
    whole("-optimistic", Value::None),
    whole("home", Value::None),
    whole("-home", Value::None),
    whole("mngtmpaddr", Value::None),
    whole("-mngtmpaddr", Value::None),
    whole("noprefixroute", Value::None),
    whole("-noprefixroute", Value::None),
    whole("autojoin", Value::None),
    whole("-autojoin", Value::None),
    whole("stable-privacy", Value::None),
    whole("-stable-privacy", Value::None),
    whole("label", Value::Text),
    whole(
        "group",
        Value::Named(NameFile::Groups, "Invalid \"group\" value\n"),
    ),
    whole("master", Value::LinkOr(NO_DEVICE)),
    whole("vrf", Value::Vrf("Not a valid VRF name\n")),
    whole("nomaster", Value::None),
    whole("novf", Value::None),
    whole("type", Value::Text),
    whole("proto", Value::Text),
    whole("dev", Value::Text),
];

const ROUTES: &[Key] = &[
    begun("table", Value::Text),
    begun("vrf", Value::Vrf("Invalid VRF\n")),
    begun("cached", Value::NotBuilt),
    begun("cloned", Value::NotBuilt),
    TOS,
    DSFIELD,
    begun("protocol", Value::Text),
    begun("scope", Value::Text),
    begun("type", Value::Text),
    whole("dev", Value::Link),
    whole("oif", Value::Link).means("dev"),
    whole("iif", Value::NotBuilt),
    whole("mark", Value::NotBuilt),
    begun("metric", Value::Number(METRIC)),
    begun("priority", Value::Number(METRIC)).means("metric"),
    whole("preference", Value::Number(METRIC)).means("metric"),
    whole("via", Value::Address),
    whole("src", Value::Prefix),
    begun("realms", Value::NotBuilt),
    begun("from", Value::NotBuilt),
    begun("root", Value::Selector),
    begun("match", Value::Selector),
    begun("exact", Value::Selector),
];

const NEIGHBOURS: &[Key] = &[
    whole("dev", Value::Link).once("dev"),
    whole("master", Value::LinkOr(NO_DEVICE)),
    whole("vrf", Value::Vrf("Not a valid VRF name\n")),
    whole("nomaster", Value::None),
    whole("unused", Value::NotBuilt),
    whole("nud", Value::Text),
    whole("proxy", Value::None),
    begun("protocol", Value::Text),
    whole("to", Value::Selector),
];

const RULES: &[Key] = &[
    begun("preference", Value::Number("preference value is invalid\n")),
    begun("order", Value::Number("preference value is invalid\n")),
    begun("priority", Value::Number("preference value is invalid\n")),
    whole("not", Value::None),
    TOS,
    DSFIELD,
    whole("fwmark", Value::Text),
    whole("dev", Value::Text).means("iif"),
    whole("iif", Value::Text),
    whole("oif", Value::Text),
    whole("l3mdev", Value::None),
    whole("uidrange", Value::Text),
    begun("tun_id", Value::Text),
    begun(
        "table",
        Value::Named(NameFile::Tables, "table id value is invalid\n"),
    ),
    begun(
        "lookup",
        Value::Named(NameFile::Tables, "table id value is invalid\n"),
    )
    .means("table"),
    begun("from", Value::Prefix),
    begun("src", Value::Prefix).means("from"),
    begun("to", Value::Prefix),
    begun("dst", Value::Prefix).means("to"),
    begun("suppress_prefixlength", Value::NotBuilt),
    begun("suppress_ifgroup", Value::NotBuilt),
    begun("realms", Value::NotBuilt),
    // `ip` takes it and picks nothing by it.
    begun("protocol", Value::NotBuilt),
    whole("ipproto", Value::Text),
    whole("sport", Value::Text),
    whole("dport", Value::Text),
];

const NEXTHOPS: &[Key] = &[
    begun("dev", Value::LinkOr(NO_DEVICE)),
    begun("groups", Value::None),
    begun("master", Value::LinkOr(NO_DEVICE)),
    begun("vrf", Value::Vrf("Invalid VRF")),
    whole("id", Value::Number("invalid id value")),
    begun("protocol", Value::NotBuilt),
    whole("fdb", Value::NotBuilt),
];

/// States of forwarding entries that may be asked for.
const FDB_STATES: [&str; 4] = ["permanent", "static", "stale", "reachable"];

const FDB: &[Key] = &[
    whole("brport", Value::BridgeLink).means("dev"),
    whole("dev", Value::BridgeLink),
    whole("br", Value::Bridge).means("master"),
    whole("vlan", Value::Text),
    begun("state", Value::Text),
    whole("dynamic", Value::NotBuilt),
];

fn keys(object: Object) -> &'static [Key] {
    match object {
        Object::Link | Object::Addr => LINKS,
        Object::Route => ROUTES,
        Object::Neigh => NEIGHBOURS,
        Object::Rule => RULES,
        Object::Nexthop => NEXTHOPS,
        Object::Fdb => FDB,
    }
}

/// Lists rows of an object.
pub fn show(
    session: &mut Session,
    object: Object,
    arguments: &[String],
    out: &mut impl Write,
) -> Result<(), Stop> {
    if object == Object::Addr && session.options.family == Some(AF_PACKET) {
        return Err(Stop::NotBuilt("-0 address".to_owned()));
    }
    if object == Object::Fdb && session.options.statistics > 0 {
        return Err(Stop::NotBuilt("-statistics fdb".to_owned()));
    }
    // One by its number is asked for at once, whatever follows.
    let by_id = arguments.iter().position(|word| word == "id");
    let arguments = match by_id.filter(|_| object == Object::Nexthop) {
        Some(at) => arguments
            .get(..(at + 2).min(arguments.len()))
            .unwrap_or_default(),
        None => arguments,
    };
    let filter = filter(session, object, arguments)?;
    if object == Object::Route {
        check_table(session, &filter)?;
    }
    let is_one = object == Object::Nexthop && filter.id.is_some();
    let question = Question {
        object,
        filter,
        output: output(session),
    };
    let ask = Ask::Question(Box::new(question));
    if is_one {
        let mut row = Vec::new();
        if answer(session, ask, &mut row)? == 0 {
            return Err(Stop::Said {
                status: REFUSED,
                text: "RTNETLINK answers: No such file or directory".to_owned(),
            });
        }
        out.write_all(&row)?;
        return Ok(());
    }
    answer(session, ask, out).map(drop)
}

/// Whether the table of routes that is asked for is there.
pub fn check_table(session: &Session, filter: &Filter) -> Result<(), Stop> {
    let name = match filter.table.as_deref() {
        None | Some("all") => return Ok(()),
        Some(name) => name,
    };
    let number = session.names.number(NameFile::Tables, name);
    let family = match filter.family {
        Some(6) => table::AF_INET6,
        _ => table::AF_INET,
    };
    match number {
        None | Some(0) => Ok(()),
        Some(number) => super::flush::table_is_there(session, family, number),
    }
}

/// Answers a question for [`show`] and its like.
/// Gives the number of rows.
pub fn answer(session: &Session, ask: Ask, out: &mut impl Write) -> Result<u64, Stop> {
    let direct = is_for_the_kernel(&ask);
    let is_named = has_namespaces(&ask);
    // An answer lasts as long as its reader does. Lines of a batch follow.
    if !session.is_batch {
        ask::give_up(is_named || session.options.netns.is_some())?;
    }
    if session.options.pretty && session.options.json {
        let mut compact = Vec::new();
        let answered = asked(ask, session, direct, &mut compact);
        let rows = answered.map_err(no_route)?.rows;
        super::pretty::write(&compact, out)?;
        return Ok(rows);
    }
    if is_named {
        let mut text = Vec::new();
        let answered = asked(ask, session, direct, &mut text)?;
        session.name_namespaces(&text, out)?;
        return Ok(answered.rows);
    }
    let answered = asked(ask, session, direct, out);
    Ok(answered.map_err(no_route)?.rows)
}

/// Asks; of several ways that a packet may take only the one that it takes.
fn asked(
    ask: Ask,
    session: &Session,
    direct: bool,
    out: &mut impl Write,
) -> anyhow::Result<Answered> {
    match ask {
        Ask::RouteGet(question) => direct::route_get::one_way(&question, &session.namespace, out),
        ask => ask::one_namespace(ask, &session.namespace, direct, out),
    }
}

/// What the kernel has to be asked for, though a daemon may be there: how
/// often a carrier came and how long groups have been unbalanced, which no
/// row has and nobody samples.
fn is_for_the_kernel(ask: &Ask) -> bool {
    match ask {
        Ask::Question(question) => {
            let of_links = matches!(question.object, Object::Link | Object::Addr);
            of_links && question.output.errors || question.object == Object::Nexthop
        }
        _ => false,
    }
}

/// Whether an answer may name the numbers of other namespaces.
fn has_namespaces(ask: &Ask) -> bool {
    let Ask::Question(question) = ask else {
        return false;
    };
    let is_text = question.output.format == Format::Text && !question.output.brief;
    is_text && matches!(question.object, Object::Link | Object::Addr)
}

/// What `ip` says where there is no way to an address.
pub fn no_route(error: anyhow::Error) -> Stop {
    match error.downcast_ref::<BadQuestion>() {
        Some(BadQuestion::NoRoute { why, .. }) => Stop::Said {
            status: REFUSED,
            text: format!("RTNETLINK answers: {why}"),
        },
        _ => error.into(),
    }
}

/// How rows are to be written.
pub fn output(session: &Session) -> Output {
    let options = &session.options;
    Output {
        format: match options.json {
            true => Format::Json,
            false => Format::Text,
        },
        details: options.details > 0,
        statistics: options.statistics > 0,
        errors: options.statistics > 1,
        units: match (options.human, options.iec) {
            (false, _) => Units::Exact,
            (true, false) => Units::Decimal,
            (true, true) => Units::Binary,
        },
        colour: !options.json
            && match options.colour {
                When::Never => false,
                When::Auto => std::io::stdout().is_terminal(),
                When::Always => true,
            },
        oneline: options.oneline,
        brief: options.brief,
        numeric: options.numeric,
        ..Output::default()
    }
}

/// The conditions that the words of a listing are.
pub fn filter(session: &mut Session, object: Object, arguments: &[String]) -> Result<Filter, Stop> {
    let mut filter = Filter::default();
    match session.options.family {
        None => {}
        Some(table::AF_INET) => filter.family = Some(4),
        Some(table::AF_INET6) => filter.family = Some(6),
        Some(AF_PACKET) if matches!(object, Object::Addr | Object::Link) => {}
        Some(_) => return Err(Stop::NotBuilt("this family".to_owned())),
    }
    let arguments = match object {
        Object::Route => selectors(arguments),
        _ => arguments.to_vec(),
    };
    let told = grammar::read(keys(object), &arguments, session)?;
    let is_link = |told: &&Told<'_>| {
        told.is("dev") || told.key.is_none() && matches!(object, Object::Addr | Object::Link)
    };
    // Whether a link is there is looked at when all words are read.
    if matches!(object, Object::Addr | Object::Link)
        && let Some(second) = told.iter().filter(is_link).nth(1)
        && !told.iter().any(|told| told.said == "help")
    {
        return Err(Stop::garbage("dev", second.value));
    }
    filter.one_hop = object == Object::Route;
    for told in &told {
        if told.said == "help" || object != Object::Addr && begins(told.said, "help") {
            return Err(Stop::wrong(super::usage::of_object(
                object.name(),
                "show SELECTOR",
            )));
        }
        condition(session, object, told, &mut filter)?;
    }
    Ok(filter)
}

/// `to root 10/8` and its like as one word each.
fn selectors(arguments: &[String]) -> Vec<String> {
    let mut out = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter().peekable();
    while let Some(word) = rest.next() {
        if !begins(word, "to") || grammar::meant(ROUTES, word).is_some() {
            out.push(word.clone());
            continue;
        }
        let is_kind = |next: &&String| {
            let next = next.as_str();
            ["root", "match", "exact"]
                .iter()
                .any(|kind| begins(next, kind))
        };
        match rest.next_if(is_kind) {
            Some(kind) => out.push(kind.clone()),
            None => out.push("exact".to_owned()),
        }
    }
    out
}

/// Sets a condition.
fn condition(
    session: &mut Session,
    object: Object,
    told: &Told<'_>,
    filter: &mut Filter,
) -> Result<(), Stop> {
    if is_everything(session, object, told) {
        return Ok(());
    }
    check(session, object, told)?;
    if let Some(flag) = told.key.filter(|key| is_flag(object, key.means)) {
        filter.flags.push(flag.means.to_owned());
        return Ok(());
    }
    if object == Object::Rule && super::rules::condition(session, told, filter)? {
        return Ok(());
    }
    let words: Vec<_> = conditions::of_object(FILTERS, object).collect();
    let (word, value) = match told.key {
        Some(key) => {
            let spoken = conditions::spoken(&words, key.means, None);
            let word = spoken.map(|(word, _)| word);
            (
                word.ok_or_else(|| Stop::NotBuilt(told.said.to_owned()))?,
                told.value,
            )
        }
        None => {
            let flag = conditions::unnamed(object);
            let named = words.iter().find(|word| Some(word.flag) == flag);
            (*named.ok_or_else(|| garbage(object, told.said))?, told.said)
        }
    };
    let spelt = said_for_us(session, object, told, word.flag, value)?;
    let value = spelt.as_ref();
    if object == Object::Route && !told.more.is_empty() && filter.family.is_none() {
        filter.family = Some(4);
    }
    // All of IPv6, where that is asked for.
    let value = match (value, filter.family) {
        ("default" | "any" | "all", Some(6)) if takes_prefix(object, word.flag) => "::/0",
        (value, _) => value,
    };
    (word.set)(filter, value).map_err(|why| Stop::wrong(format!("Error: {why}")))
}

/// Whether a word picks all rows: a prefix of every address, of no family.
fn is_everything(session: &Session, object: Object, told: &Told<'_>) -> bool {
    let is_to = told.key.is_none_or(|key| key.means == "to");
    let is_any = matches!(told.value, "any" | "all");
    let is_default = is_any || told.value == "default";
    match (object, told.key.map(|key| key.means)) {
        (Object::Addr | Object::Link, Some("scope")) => told.value == "all",
        (Object::Addr | Object::Link, Some("to")) => is_default,
        (Object::Neigh | Object::Rule, _) if is_to => is_default && session.family().is_none(),
        (Object::Route, None | Some("exact")) => is_any && session.family().is_none(),
        _ => false,
    }
}

/// A value in the spelling that our own filters have.
fn said_for_us<'a>(
    session: &Session,
    object: Object,
    told: &Told<'a>,
    flag: &str,
    value: &'a str,
) -> Result<Cow<'a, str>, Stop> {
    Ok(match (object, told.key.map(|key| key.means)) {
        (Object::Route, Some("via")) if !told.more.is_empty() => told.more.into(),
        (Object::Route, Some("table")) if value == "unspec" => "0".into(),
        (Object::Neigh, Some("nud")) if value != "all" => {
            super::rows::neighbour_state(value)?.into()
        }
        (Object::Route, Some("type")) => match grammar::number(value) {
            Some(kind) => u8::try_from(kind)
                .ok()
                .and_then(words::route_kind_name)
                .map_or_else(|| value.into(), Cow::from),
            None => value.into(),
        },
        (Object::Addr | Object::Link, None | Some("dev")) => {
            match super::session::number_of(value) {
                Some(index) => match session.name_of(index)? {
                    Some(name) => String::from(name).into(),
                    None => value.into(),
                },
                None => value.into(),
            }
        }
        (_, Some("from" | "to" | "root" | "match" | "exact" | "via" | "src")) => {
            words::line::spelt_out(value)
        }
        (_, None) if flag != "dev" => words::line::spelt_out(value),
        _ => value.into(),
    })
}

fn takes_prefix(object: Object, flag: &str) -> bool {
    let flags = ["to", "exact", "covering"];
    matches!(object, Object::Route | Object::Neigh | Object::Addr) && flags.contains(&flag)
}

/// What `ip` says of a word that it does not know.
fn garbage(object: Object, word: &str) -> Stop {
    match object {
        Object::Rule => match grammar::prefix(word, Some(table::AF_INET)) {
            Err(stop) => stop,
            Ok(_) => Stop::NotBuilt(word.to_owned()),
        },
        Object::Nexthop => Stop::argument(word, ""),
        _ => Stop::NotBuilt(word.to_owned()),
    }
}

/// Whether a word is a flag of addresses, or one that they must not have.
fn is_flag(object: Object, word: &str) -> bool {
    let plain = word.strip_prefix('-').unwrap_or(word);
    matches!(object, Object::Addr | Object::Link) && view::address_flag(plain)
}

/// Values that `ip` looks at before it asks, in its words.
fn check(session: &mut Session, object: Object, told: &Told<'_>) -> Result<(), Stop> {
    let value = told.value;
    match (object, told.key.map(|key| key.means)) {
        (Object::Addr | Object::Link, None | Some("dev")) => {
            let is_numbered = super::session::number_of(value).is_some();
            if is_numbered && object == Object::Link {
                return Err(Stop::failed("RTNETLINK answers: No such device"));
            }
            session.index(value).map_err(|stop| match stop {
                Stop::Said { .. } => Stop::failed(format!("Device \"{value}\" does not exist.")),
                other => other,
            })?;
        }
        (Object::Addr | Object::Link, Some("group"))
            if session.names.number(NameFile::Groups, value) == Some(u32::MAX) =>
        {
            return Err(Stop::argument(value, "Invalid \"group\" value\n"));
        }
        (Object::Addr | Object::Link, Some("label")) if value.is_empty() => {
            return Err(Stop::NotBuilt("a label without a name".to_owned()));
        }
        (Object::Fdb, Some("master")) => {
            let link = linux::once::link_named(value, &session.namespace)?;
            if link.is_none_or(|link| link.kind.as_deref() != Some("bridge")) {
                return Err(Stop::NotBuilt(format!("br {value}, which is no bridge")));
            }
        }
        (Object::Fdb, Some("vlan")) => {
            let number = grammar::number(value).filter(|vlan| *vlan < 4096);
            number.ok_or_else(|| Stop::NotBuilt(format!("vlan {value}")))?;
        }
        (Object::Fdb, Some("state")) if !FDB_STATES.contains(&value) => {
            return Err(Stop::argument(value, "invalid state\n"));
        }
        (Object::Addr | Object::Link, Some("scope")) => {
            let known = session.names.number(NameFile::Scopes, value);
            if value != "all" && known.is_none() {
                return Err(Stop::argument(value, "invalid \"scope\"\n"));
            }
        }
        (Object::Route, None | Some("exact")) => {
            grammar::prefix(value, session.family())?;
        }
        (Object::Neigh, None) => {
            grammar::prefix(value, session.family())?;
        }
        (Object::Route, Some("table")) => {
            let known = session.names.number(NameFile::Tables, value);
            if value == "cache" {
                return Err(Stop::NotBuilt("table cache".to_owned()));
            }
            if value != "all" && known.is_none() {
                return Err(Stop::argument(value, "table id value is invalid\n"));
            }
        }
        (Object::Route, Some("protocol")) => {
            let known = session.names.number(NameFile::Protocols, value);
            if value != "all" && known.is_none() {
                return Err(Stop::argument(value, "invalid \"protocol\"\n"));
            }
        }
        (Object::Route, Some("scope")) => {
            let known = session.names.number(NameFile::Scopes, value);
            if value != "all" && known.is_none() {
                return Err(Stop::argument(value, "invalid \"scope\"\n"));
            }
        }
        (Object::Route, Some("type"))
            if words::route_kind(value).is_none() && grammar::number(value).is_none() =>
        {
            return Err(Stop::argument(value, "node type value is invalid\n"));
        }
        (Object::Neigh | Object::Nexthop | Object::Rule, Some("protocol")) => {
            let known = session.names.number(NameFile::Protocols, value);
            if known.is_none() {
                return Err(Stop::argument(value, "\"protocol\" value is invalid\n"));
            }
        }
        _ => {}
    }
    Ok(())
}
