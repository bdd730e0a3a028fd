//! The conditions a question may be narrowed by, each defined once: its
//! flag, what `ip` calls it, its help and what it does. The command line
//! with its help, man pages and completions, the parameters of HTTP and
//! the OpenAPI document are all made from these tables.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use words::values;

use crate::path_patterns::{AsPathPattern, CommunityPattern};
use crate::{Filter, Object, RouteQuestion};

/// What a word does to the question, given its value.
type Set<T> = fn(&mut T, &str) -> Result<(), String>;

/// One condition, as a flag and in `ip`'s words.
pub struct Word<T: 'static> {
    /// `--flag`.
    pub flag: &'static str,
    /// `-f`.
    pub short: Option<char>,
    /// What `ip` calls it; two words may follow each other.
    pub bare: &'static [&'static str],
    /// Name of its value in help; `None`: it takes none.
    pub value: Option<&'static str>,
    /// May be said several times, and with commas.
    pub many: bool,
    /// The objects it makes sense for.
    pub objects: &'static [Object],
    /// One line of help.
    pub help: &'static str,
    /// What it does.
    pub set: Set<T>,
}

use Object::{Addr, Fdb, Link, Neigh, Nexthop, Route, Rule};

const EVERY: &[Object] = &[Link, Addr, Neigh, Route, Nexthop, Rule, Fdb];
const ON_LINKS: &[Object] = &[Link, Addr, Neigh, Route, Nexthop, Fdb];

/// The start of a definition: a flag with a value.
const fn flag(
    flag: &'static str,
    value: &'static str,
    bare: &'static [&'static str],
    objects: &'static [Object],
    help: &'static str,
    set: Set<Filter>,
) -> Word<Filter> {
    Word {
        flag,
        short: None,
        bare,
        value: Some(value),
        many: false,
        objects,
        help,
        set,
    }
}

/// A flag without a value.
const fn switch(
    name: &'static str,
    bare: &'static [&'static str],
    objects: &'static [Object],
    help: &'static str,
    set: Set<Filter>,
) -> Word<Filter> {
    Word {
        value: None,
        ..flag(name, "", bare, objects, help, set)
    }
}

/// The conditions of listings.
pub static FILTERS: &[Word<Filter>] = &[
    Word {
        short: Some('4'),
        ..switch("ipv4", &[], EVERY, "Only IPv4", |f, _| {
            f.family = Some(4);
            Ok(())
        })
    },
    Word {
        short: Some('6'),
        ..switch("ipv6", &[], EVERY, "Only IPv6", |f, _| {
            f.family = Some(6);
            Ok(())
        })
    },
    flag(
        "dev",
        "NAME",
        &["dev", "brport"],
        ON_LINKS,
        "Of this link",
        |f, v| set(&mut f.dev, values::name(v)),
    ),
    flag(
        "name",
        "PATTERN",
        &["name"],
        ON_LINKS,
        "Of links whose name matches: * ? [a-z]",
        |f, v| set(&mut f.name, values::name(v)),
    ),
    flag(
        "to",
        "PREFIX",
        &["to"],
        &[Addr, Neigh],
        "Inside this prefix",
        |f, v| set(&mut f.to, values::prefix(v)),
    ),
    flag(
        "to",
        "PREFIX",
        &["to root", "root"],
        &[Route],
        "Inside this prefix",
        |f, v| set(&mut f.to, values::prefix(v)),
    ),
    flag(
        "exact",
        "PREFIX",
        &["to exact", "exact", "to"],
        &[Route],
        "Of exactly this prefix",
        |f, v| set(&mut f.exact, values::prefix(v)),
    ),
    flag(
        "covering",
        "PREFIX",
        &["to match", "match"],
        &[Route],
        "That cover this prefix or address",
        |f, v| set(&mut f.covering, values::prefix(v)),
    ),
    flag(
        "mac",
        "LLADDR",
        &["lladdr", "address"],
        &[Link, Neigh, Fdb],
        "With this link-layer address",
        |f, v| set(&mut f.mac, values::lladdr(v)),
    ),
    Word {
        many: true,
        ..flag(
            "state",
            "STATE",
            &["nud", "state"],
            &[Link, Neigh, Fdb],
            "In this state (stale, up, …; all)",
            |f, v| {
                f.state.extend(values::list(v));
                Ok(())
            },
        )
    },
    flag(
        "table",
        "TABLE",
        &["table"],
        &[Route, Rule],
        "Of this table, by name or number; all",
        |f, v| set(&mut f.table, values::name(v)),
    ),
    flag(
        "proto",
        "PROTOCOL",
        &["proto", "protocol"],
        &[Addr, Neigh, Route, Nexthop, Rule],
        "Made by this protocol",
        |f, v| set(&mut f.proto, values::name(v)),
    ),
    flag(
        "type",
        "TYPE",
        &["type"],
        &[Route],
        "Of this type (unicast, local, …)",
        |f, v| set(&mut f.route_type, values::name(v)),
    ),
    flag(
        "scope",
        "SCOPE",
        &["scope"],
        &[Addr, Route],
        "Of this scope",
        |f, v| set(&mut f.scope, values::name(v)),
    ),
    flag(
        "src",
        "ADDRESS",
        &["src"],
        &[Route],
        "With this preferred source",
        |f, v| set(&mut f.src, values::address(v)),
    ),
    flag(
        "src",
        "ADDRESS",
        &["from"],
        &[Rule],
        "For packets from this address",
        |f, v| set(&mut f.src, values::address(v)),
    ),
    flag(
        "source",
        "NAME",
        &[],
        &[Route, Nexthop],
        "Told by this source: kernel (without it), or the name of a feed",
        |f, v| {
            f.source = feed_of(v);
            Ok(())
        },
    ),
    flag(
        "via",
        "ADDRESS",
        &["via"],
        &[Route, Nexthop],
        "Over this gateway",
        |f, v| set(&mut f.via, values::address(v)),
    ),
    flag(
        "as-path",
        "PATTERN",
        &["as-path"],
        &[Route],
        "Whose AS path matches: ASes behind each other, .* ^ $",
        |f, v| {
            AsPathPattern::parse(v)?;
            f.as_path = Some(v.to_owned());
            Ok(())
        },
    ),
    Word {
        many: true,
        ..flag(
            "community",
            "COMMUNITY",
            &["community"],
            &[Route],
            "With this community, A:B or A:B:C; with all of several",
            |f, v| {
                for one in values::list(v) {
                    CommunityPattern::parse(&one)?;
                    f.community.push(one);
                }
                Ok(())
            },
        )
    },
    flag(
        "origin-as",
        "ASN",
        &["origin-as"],
        &[Route],
        "That this AS originates",
        |f, v| set(&mut f.origin_as, values::number(v)),
    ),
    flag(
        "id",
        "ID",
        &["id"],
        &[Nexthop],
        "The object of this id",
        |f, v| set(&mut f.id, values::number(v)),
    ),
    flag(
        "nhid",
        "ID",
        &["nhid"],
        &[Route],
        "That use this next-hop object",
        |f, v| set(&mut f.id, values::number(v)),
    ),
    switch("groups", &["groups"], &[Nexthop], "Only groups", |f, _| {
        f.groups = true;
        Ok(())
    }),
    switch("up", &["up"], ON_LINKS, "Of links that are up", |f, _| {
        f.up = true;
        Ok(())
    }),
    flag(
        "master",
        "NAME",
        &["master", "br"],
        &[Link, Addr, Neigh, Nexthop, Fdb],
        "Of links in this bridge, bond or VRF",
        |f, v| set(&mut f.master, values::name(v)),
    ),
    switch(
        "nomaster",
        &["nomaster"],
        &[Link, Addr, Neigh],
        "Of links in no bridge, bond or VRF",
        |f, _| {
            f.nomaster = true;
            Ok(())
        },
    ),
    flag(
        "kind",
        "KIND",
        &["type", "kind"],
        &[Link, Addr],
        "Of links of this kind (veth, bridge, …)",
        |f, v| set(&mut f.kind, values::name(v)),
    ),
    flag(
        "vrf",
        "NAME",
        &["vrf"],
        &[Link, Addr, Neigh, Route, Nexthop],
        "Of this VRF",
        |f, v| set(&mut f.vrf, values::name(v)),
    ),
    flag(
        "group",
        "GROUP",
        &["group"],
        &[Link, Addr],
        "Of links in this group, by number",
        |f, v| set(&mut f.group, values::group(v)),
    ),
    flag(
        "priority",
        "NUMBER",
        &["pref", "preference", "priority", "order"],
        &[Rule],
        "Of this priority",
        |f, v| set(&mut f.priority, values::number(v)),
    ),
    flag(
        "metric",
        "NUMBER",
        &["metric", "priority", "preference"],
        &[Route],
        "Of this metric",
        |f, v| set(&mut f.priority, values::number(v)),
    ),
    switch(
        "proxy",
        &["proxy"],
        &[Neigh],
        "The addresses answered for",
        |f, _| {
            f.proxy = true;
            Ok(())
        },
    ),
    switch("permanent", &["permanent"], &[Addr], "That stay", |f, _| {
        f.flags.push("permanent".to_owned());
        Ok(())
    }),
    switch(
        "dynamic",
        &["dynamic"],
        &[Addr],
        "With a lifetime",
        |f, _| {
            f.flags.push("dynamic".to_owned());
            Ok(())
        },
    ),
    switch(
        "secondary",
        &["secondary", "temporary"],
        &[Addr],
        "Behind another of their prefix; of IPv6: temporary ones",
        |f, _| {
            f.flags.push("secondary".to_owned());
            Ok(())
        },
    ),
    switch(
        "primary",
        &["primary"],
        &[Addr],
        "The first of their prefix",
        |f, _| {
            f.flags.push("primary".to_owned());
            Ok(())
        },
    ),
    switch(
        "deprecated",
        &["deprecated"],
        &[Addr],
        "That are no more preferred",
        |f, _| {
            f.flags.push("deprecated".to_owned());
            Ok(())
        },
    ),
    switch(
        "tentative",
        &["tentative"],
        &[Addr],
        "Not yet known to be unique",
        |f, _| {
            f.flags.push("tentative".to_owned());
            Ok(())
        },
    ),
    switch(
        "dadfailed",
        &["dadfailed"],
        &[Addr],
        "That another host has as well",
        |f, _| {
            f.flags.push("dadfailed".to_owned());
            Ok(())
        },
    ),
    flag(
        "label",
        "PATTERN",
        &["label"],
        &[Addr],
        "Whose label matches: * ? [a-z]",
        |f, v| set(&mut f.label, values::name(v)),
    ),
    flag("vlan", "ID", &["vlan"], &[Fdb], "Of this VLAN", |f, v| {
        set(&mut f.vlan, values::vlan(v))
    }),
];

/// What `route get` may be told of a packet beside its destination.
#[derive(Debug, Clone, Default)]
pub struct Packet {
    /// Where it comes from.
    pub from: Option<IpAddr>,
    /// Name of the link it came in by.
    pub iif: Option<String>,
    /// Name of the link it must leave by.
    pub oif: Option<String>,
    /// Its firewall mark.
    pub mark: u32,
    /// Name of the VRF it is in.
    pub vrf: Option<String>,
    /// Its type of service.
    pub tos: u8,
    /// The user whose it is.
    pub uid: Option<u32>,
    /// Its protocol.
    pub ipproto: Option<u8>,
    /// Its source port.
    pub sport: Option<u16>,
    /// Its destination port.
    pub dport: Option<u16>,
    /// Whose routes it would take, if not the kernel's.
    pub source: Option<String>,
    /// In which table of that source.
    pub table: Option<String>,
}

impl Packet {
    /// The question which route it would take.
    pub fn question(self, to: IpAddr) -> RouteQuestion {
        RouteQuestion {
            from: self.from,
            iif: self.iif,
            oif: self.oif,
            mark: self.mark,
            vrf: self.vrf,
            tos: self.tos,
            uid: self.uid,
            ipproto: self.ipproto,
            sport: self.sport,
            dport: self.dport,
            source: self.source,
            table: self.table,
            ..RouteQuestion::to(to)
        }
    }
}

/// The start of a condition of `route get`.
const fn get(
    flag: &'static str,
    value: &'static str,
    bare: &'static [&'static str],
    help: &'static str,
    set: Set<Packet>,
) -> Word<Packet> {
    Word {
        flag,
        short: None,
        bare,
        value: Some(value),
        many: false,
        objects: &[Route],
        help,
        set,
    }
}

/// The conditions of `route get`.
pub static GET: &[Word<Packet>] = &[
    get(
        "from",
        "ADDRESS",
        &["from"],
        "Of a packet from this address",
        |g, v| set(&mut g.from, values::address(v)),
    ),
    get(
        "iif",
        "NAME",
        &["iif"],
        "That came in by this link",
        |g, v| set(&mut g.iif, values::name(v)),
    ),
    get(
        "oif",
        "NAME",
        &["oif", "dev"],
        "That must leave by this link",
        |g, v| set(&mut g.oif, values::name(v)),
    ),
    get(
        "mark",
        "NUMBER",
        &["mark"],
        "With this firewall mark",
        |g, v| {
            g.mark = values::number(v)?;
            Ok(())
        },
    ),
    get("vrf", "NAME", &["vrf"], "Inside this VRF", |g, v| {
        set(&mut g.vrf, values::name(v))
    }),
    get("uid", "NUMBER", &["uid"], "Of this user", |g, v| {
        set(&mut g.uid, values::number(v))
    }),
    get(
        "tos",
        "NUMBER",
        &["tos", "dsfield"],
        "With this type of service",
        |g, v| {
            g.tos = values::byte(v)?;
            Ok(())
        },
    ),
    get(
        "ipproto",
        "PROTOCOL",
        &["ipproto"],
        "Of this protocol (tcp, udp, a number), for rules that ask",
        |g, v| set(&mut g.ipproto, values::ip_protocol(v)),
    ),
    get(
        "sport",
        "PORT",
        &["sport"],
        "From this port, for rules that ask",
        |g, v| set(&mut g.sport, values::port(v)),
    ),
    get(
        "dport",
        "PORT",
        &["dport"],
        "To this port, for rules that ask",
        |g, v| set(&mut g.dport, values::port(v)),
    ),
    get(
        "source",
        "NAME",
        &[],
        "By the routes of this source, which has neither rules nor addresses of its own: \
         kernel (without it), or the name of a feed",
        |g, v| {
            g.source = feed_of(v);
            Ok(())
        },
    ),
    get(
        "table",
        "TABLE",
        &["table"],
        "In this table of the source, by name or number; without: main",
        |g, v| set(&mut g.table, values::name(v)),
    ),
];

/// The feed of a name; `None`: that is the kernel's.
fn feed_of(name: &str) -> Option<String> {
    Some(name.to_owned()).filter(|name| name != table::KERNEL)
}

fn set<V>(slot: &mut Option<V>, value: Result<V, String>) -> Result<(), String> {
    *slot = Some(value?);
    Ok(())
}

/// The conditions that make sense for an object.
pub fn of_object<T>(
    words: &'static [Word<T>],
    object: Object,
) -> impl Iterator<Item = &'static Word<T>> {
    words
        .iter()
        .filter(move |word| word.objects.contains(&object))
}

/// The condition that one or two words begin, as `ip` calls it, and how
/// many words that took: `to root` is one.
pub fn spoken<T>(
    words: &[&'static Word<T>],
    word: &str,
    next: Option<&str>,
) -> Option<(&'static Word<T>, usize)> {
    let find = |spoken: &str| {
        let mut found = words.iter().filter(|word| word.bare.contains(&spoken));
        found.next().copied()
    };
    next.and_then(|next| find(&format!("{word} {next}")))
        .map(|found| (found, 2))
        .or_else(|| find(word).map(|found| (found, 1)))
}

/// The flag of a value that stands alone: `ip link show eth0`.
pub fn unnamed(object: Object) -> Option<&'static str> {
    match object {
        Object::Link | Object::Addr => Some("dev"),
        Object::Neigh => Some("to"),
        Object::Route => Some("exact"),
        Object::Nexthop | Object::Rule | Object::Fdb => None,
    }
}

/// Reads the conditions of a listing as they are written on the command
/// line behind the object, in `ip`'s words or as flags: `dev eth0 proto bgp`,
/// `--dev eth0`. For who has a line of text and no command line.
pub fn read(object: Object, text: &str, to: &mut Filter) -> Result<(), String> {
    let words: Vec<_> = of_object(FILTERS, object).collect();
    let mut tokens = text.split_whitespace().peekable();
    let mut told = Vec::new();
    while let Some(token) = tokens.next() {
        let (word, said) = match found(&words, object, token, tokens.peek().copied()) {
            Some(Found::Flag(word, value)) => (word, value),
            Some(Found::Spoken(word, 2)) => {
                tokens.next();
                (word, None)
            }
            Some(Found::Spoken(word, _)) => (word, None),
            Some(Found::Value(word)) => (word, Some(token)),
            None => return Err(unknown(&words, token)),
        };
        if told.contains(&word.flag) && !word.many {
            return Err(format!("`{token}`: `{}` is said already", word.flag));
        }
        told.push(word.flag);
        let value = match (word.value, said) {
            (None, None) => "",
            (None, Some(_)) => return Err(format!("`{token}`: no value is expected")),
            (Some(_), Some(value)) => value,
            (Some(name), None) => tokens
                .next()
                .ok_or_else(|| format!("`{token}`: a value is expected: {name}"))?,
        };
        (word.set)(to, value).map_err(|why| format!("`{}`: {why}", word.flag))?;
    }
    Ok(())
}

/// What a token of a line is.
enum Found<'t> {
    /// `--flag`, with what follows its `=`.
    Flag(&'static Word<Filter>, Option<&'t str>),
    /// One of `ip`'s words, and how many tokens it is.
    Spoken(&'static Word<Filter>, usize),
    /// A value that stands alone.
    Value(&'static Word<Filter>),
}

fn found<'t>(
    words: &[&'static Word<Filter>],
    object: Object,
    token: &'t str,
    next: Option<&str>,
) -> Option<Found<'t>> {
    let named = |name: &str| words.iter().find(|word| word.flag == name).copied();
    if let Some(long) = token.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return Some(Found::Flag(named(name)?, value));
    }
    if let Some(short) = token.strip_prefix('-') {
        let is_it = |word: &&&Word<Filter>| {
            let name = word.short.map(String::from);
            name.as_deref() == Some(short)
        };
        return Some(Found::Flag(words.iter().find(is_it)?, None));
    }
    match spoken(words, token, next) {
        Some((word, tokens)) => Some(Found::Spoken(word, tokens)),
        None => Some(Found::Value(named(unnamed(object)?)?)),
    }
}

fn unknown(words: &[&'static Word<Filter>], token: &str) -> String {
    let known: Vec<_> = words
        .iter()
        .filter_map(|word| word.bare.first().copied())
        .collect();
    let shown: String = token.chars().take(64).collect();
    format!(
        "`{shown}` is not known here: there are {}",
        known.join(", ")
    )
}

/// `default` is said of both families: the one asked for decides. And a
/// prefix decides the family where nothing else does.
pub fn settle_family(filter: &mut Filter) {
    let prefixes = [&mut filter.to, &mut filter.exact, &mut filter.covering];
    for prefix in prefixes.into_iter().flatten() {
        if filter.family == Some(6) && prefix.prefix_len() == 0 {
            *prefix = IpNet::V6(Ipv6Net::default());
        }
        filter
            .family
            .get_or_insert(if prefix.addr().is_ipv4() { 4 } else { 6 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(object: Object, text: &str) -> Result<Filter, String> {
        let mut filter = Filter::default();
        read(object, text, &mut filter).map(|()| filter)
    }

    #[test]
    fn a_line_is_read_as_the_command_line_is() {
        let expected = Filter {
            dev: Some("eth0".to_owned()),
            to: Some("10.0.0.0/8".parse().unwrap()),
            proto: Some("bgp".to_owned()),
            family: Some(4),
            ..Filter::default()
        };
        for text in [
            "to root 10/8 dev eth0 proto bgp -4",
            "  --to 10/8 --dev=eth0 protocol bgp --ipv4 ",
        ] {
            assert_eq!(filter(Object::Route, text), Ok(expected.clone()), "{text}");
        }
        let alone = filter(Object::Route, "10.1.0.0/16").unwrap();
        assert_eq!(alone.exact, Some("10.1.0.0/16".parse().unwrap()));
        assert!(filter(Object::Link, "eth0 up").unwrap().up);
        assert_eq!(filter(Object::Rule, ""), Ok(Filter::default()));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (object, text, named) in [
            (Object::Rule, "bogus", "`bogus` is not known here"),
            (Object::Route, "--bogus 7", "`--bogus` is not known here"),
            (Object::Route, "-x", "`-x` is not known here"),
            (Object::Route, "dev", "`dev`: a value is expected: NAME"),
            (Object::Link, "--up=1", "no value is expected"),
            (Object::Route, "bgp", "`exact`: "),
            (Object::Fdb, "vlan 9999", "`vlan`: "),
            (
                Object::Link,
                "dev eth0 eth1",
                "`eth1`: `dev` is said already",
            ),
        ] {
            let why = filter(object, text).unwrap_err();
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
