//! The words that may follow a command, in the order in which `ip` looks
//! for them: which may be abbreviated, and what stands behind each. What is
//! wrong with a value is said as `ip` says it, and nothing is done. Called by
//! the objects' files beside this one.

use std::borrow::Cow;
use std::net::IpAddr;

use words::NameFile;
use words::line::spelt_out;

use super::session::Session;
use super::stop::{REFUSED, Stop};

/// What stands behind a word.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Nothing.
    None,
    /// Anything.
    Text,
    /// A number, or `lock` and a number.
    Metric,
    /// A word, or `lock` and a word.
    Locked,
    /// 0 or 1, or `lock` and one of them.
    Flag,
    /// An address, or a family and an address.
    Address,
    /// An address of this family.
    AddressOf(u8),
    /// One of these; else this is said.
    OneOf(&'static [&'static str], &'static str),
    /// IPv6 addresses with commas between.
    Segments,
    /// A prefix.
    Prefix,
    /// A prefix for a listing, where `10/8` is one.
    Selector,
    /// The name of a link that is there.
    Link,
    /// The same, as `bridge` says it.
    BridgeLink,
    /// The same, of a bridge.
    Bridge,
    /// The same, with what `ip` says of another one.
    LinkOr(&'static str),
    /// The name of a VRF; else this is said.
    Vrf(&'static str),
    /// A number; else this is said.
    Number(&'static str),
    /// The same, of which `ip` takes a negative one too; refused here.
    Signed(&'static str),
    /// A name of one of iproute2's files, or a number; else this is said.
    Named(NameFile, &'static str),
    /// A link-layer address.
    LinkLayer,
    /// A kind of tunnel, and the words that are its own.
    Encap,
    /// A time; else this is said.
    Time(&'static str),
    /// The same, or `lock` and a time.
    LockedTime(&'static str),
    /// The word is `ip`'s, and not built here.
    NotBuilt,
}

/// A word of a tunnel, which our readers have as it is.
const OF_ENCAP: Key = whole("", Value::Text);

/// The words of tunnels by their kinds: how many values stand behind each.
const ENCAPS: &[(&str, &[(&str, Value)])] = &[
    ("mpls", &[("ttl", Value::Text)]),
    (
        "ip",
        &[
            ("dst", Value::AddressOf(table::AF_INET)),
            ("src", Value::AddressOf(table::AF_INET)),
            ("tos", Value::Text),
            ("ttl", Value::Number("\"ttl\" value is invalid\n")),
        ],
    ),
    (
        "ip6",
        &[
            ("dst", Value::AddressOf(table::AF_INET6)),
            ("src", Value::AddressOf(table::AF_INET6)),
            ("tc", Value::Text),
            ("hoplimit", Value::Number("\"hoplimit\" value is invalid\n")),
        ],
    ),
    (
        "seg6",
        &[
            (
                "mode",
                Value::OneOf(&words::encap::SEG6_MODES, "\"mode\" value is invalid\n"),
            ),
            ("segs", Value::Segments),
            ("hmac", Value::NotBuilt),
        ],
    ),
    (
        "seg6local",
        &[
            (
                "action",
                Value::OneOf(&words::encap::SEG6_ACTIONS, "\"action\" value is invalid\n"),
            ),
            (
                "table",
                Value::Named(NameFile::Tables, "\"table\" value is invalid\n"),
            ),
            (
                "vrftable",
                Value::Named(NameFile::Tables, "\"vrftable\" value is invalid\n"),
            ),
            ("nh4", Value::AddressOf(table::AF_INET)),
            ("nh6", Value::AddressOf(table::AF_INET6)),
            ("iif", Value::Link),
            ("oif", Value::Link),
            ("srh", Value::NotBuilt),
            ("endpoint", Value::NotBuilt),
            ("count", Value::NotBuilt),
            ("flavors", Value::NotBuilt),
        ],
    ),
];

/// What both kinds of IP's tunnels have.
const OF_BOTH_IP: &[(&str, Value)] = &[
    ("id", Value::Number("\"id\" value is invalid\n")),
    ("key", Value::None),
    ("csum", Value::None),
    ("seq", Value::None),
    ("geneve_opts", Value::NotBuilt),
    ("vxlan_opts", Value::NotBuilt),
    ("erspan_opts", Value::NotBuilt),
];

/// A word.
#[derive(Debug)]
pub struct Key {
    /// The word.
    pub name: &'static str,
    /// A beginning of it is taken for it.
    pub abbreviates: bool,
    /// The word that our own readers have for it.
    pub means: &'static str,
    /// What stands behind it.
    pub value: Value,
    /// It may be said once; what `ip` calls it when it is said again.
    pub once: Option<&'static str>,
}

/// A word that must be whole. None begins with a digit, as addresses and
/// numbers do, which are most words that are none ([`meant`]).
pub const fn whole(name: &'static str, value: Value) -> Key {
    if let [first, ..] = name.as_bytes() {
        assert!(!first.is_ascii_digit(), "a word that begins with a digit");
    }
    Key {
        name,
        abbreviates: false,
        means: name,
        value,
        once: None,
    }
}

/// A word that may be abbreviated.
pub const fn begun(name: &'static str, value: Value) -> Key {
    Key {
        abbreviates: true,
        ..whole(name, value)
    }
}

impl Key {
    /// The same under another name.
    pub const fn means(mut self, means: &'static str) -> Self {
        self.means = means;
        self
    }

    /// The same, said once at most: `ip` has this name for a second.
    pub const fn once(mut self, name: &'static str) -> Self {
        self.once = Some(name);
        self
    }
}

/// A word that was said, or a value that stands alone.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// `None`: a value that stands alone.
    pub key: Option<&'static Key>,
    /// What was said.
    pub said: &'a str,
    /// What stood behind the word.
    pub value: &'a str,
    /// A second value, of `mtu lock 1400` and `via inet6 ADDRESS`.
    pub more: &'a str,
}

impl Told<'_> {
    /// Whether it is this word, by our readers' name.
    pub fn is(&self, means: &str) -> bool {
        self.key.is_some_and(|key| key.means == means)
    }
}

/// Whether `said` is a beginning of `name`, which `ip` takes for it.
pub fn begins(said: &str, name: &str) -> bool {
    !said.is_empty() && name.starts_with(said)
}

/// Whether it asks for a listing, in any of the words for that.
pub fn lists(said: &str) -> bool {
    ["show", "lst", "list"]
        .iter()
        .any(|name| begins(said, name))
}

/// The word that is meant.
pub fn meant(keys: &'static [Key], said: &str) -> Option<&'static Key> {
    let first = said.as_bytes().first();
    if first.is_some_and(u8::is_ascii_digit) {
        return None;
    }
    keys.iter().find(|key| {
        if key.name.as_bytes().first() != first {
            false
        } else if key.abbreviates {
            begins(said, key.name)
        } else {
            key.name == said
        }
    })
}

/// Tells the words of a command apart, and checks their values.
pub fn read<'a>(
    keys: &'static [Key],
    arguments: &'a [String],
    session: &mut Session,
) -> Result<Vec<Told<'a>>, Stop> {
    let mut told = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(said) = rest.next() {
        let Some(key) = meant(keys, said) else {
            told.push(Told {
                key: None,
                said,
                value: said,
                more: "",
            });
            continue;
        };
        let mut more = "";
        let value = match key.value {
            Value::None => "",
            Value::NotBuilt => return Err(Stop::NotBuilt(said.clone())),
            Value::Encap => {
                let kind = rest.next().ok_or_else(Stop::incomplete)?;
                told.push(Told {
                    key: Some(key),
                    said,
                    value: kind,
                    more: "",
                });
                encap(kind, &mut rest, &mut told, session)?;
                continue;
            }
            value => {
                let text = rest.next().ok_or_else(Stop::incomplete)?;
                said_once(key, text, &told)?;
                let checked = check_beside(value, text, &told, session);
                // Inside a list of next hops `ip` leaves with another status.
                checked.map_err(|stop| match stop {
                    Stop::Said { text, .. } if told.iter().any(|told| told.is("nexthop")) => {
                        Stop::wrong(text)
                    }
                    stop => stop,
                })?;
                let is_first = match value {
                    Value::Metric | Value::LockedTime(_) | Value::Locked | Value::Flag => {
                        text == "lock"
                    }
                    Value::Address => matches!(text.as_str(), "inet" | "inet6"),
                    _ => false,
                };
                if is_first {
                    more = rest.next().ok_or_else(Stop::incomplete)?;
                }
                metric(key, if is_first { more } else { text })?;
                text
            }
        };
        told.push(Told {
            key: Some(key),
            said,
            value,
            more,
        });
    }
    Ok(told)
}

/// Whether a word that is said once at most is said again.
fn said_once(key: &Key, text: &str, told: &[Told<'_>]) -> Result<(), Stop> {
    let Some(name) = key.once else {
        return Ok(());
    };
    let is_it = |told: &Told<'_>| told.key.is_some_and(|key| key.once == Some(name));
    match told.iter().any(is_it) {
        true => Err(Stop::duplicate(name, text)),
        false => Ok(()),
    }
}

/// What a metric must be, said with its name.
fn metric(key: &Key, text: &str) -> Result<(), Stop> {
    let name = key.name;
    let why = match key.value {
        Value::Metric if number(text).is_none() => format!("\"{name}\" value is invalid"),
        Value::Metric if name == "hoplimit" && number(text) > Some(255) => {
            format!("\"{name}\" value is invalid")
        }
        Value::Flag if number(text).is_none() => format!("\"{name}\" value is invalid"),
        Value::Flag if number(text) > Some(1) => format!("\"{name}\" value should be 0 or 1"),
        _ => return Ok(()),
    };
    Err(Stop::argument(text, &why))
}

/// The words of a tunnel.
fn encap<'a>(
    kind: &'a str,
    rest: &mut std::slice::Iter<'a, String>,
    told: &mut Vec<Told<'a>>,
    session: &mut Session,
) -> Result<(), Stop> {
    let known = ENCAPS.iter().find(|(name, _)| *name == kind);
    let Some((_, known)) = known else {
        return Err(match kind {
            "ila" | "bpf" | "rpl" | "ioam6" | "xfrm" => Stop::NotBuilt(format!("encap {kind}")),
            _ => Stop::argument(kind, "\"encap type\" value is invalid\n"),
        });
    };
    let mut own = |value: &'a str, more: &'a str| {
        told.push(Told {
            key: Some(&OF_ENCAP),
            said: value,
            value,
            more,
        });
    };
    if kind == "mpls" {
        own(rest.next().ok_or_else(Stop::incomplete)?, "");
    }
    loop {
        let mut ahead = rest.clone();
        let Some(word) = ahead.next() else {
            return Ok(());
        };
        let of_both = match kind {
            "ip" | "ip6" => OF_BOTH_IP,
            _ => &[],
        };
        let mut known = known.iter().chain(of_both);
        let Some((_, value)) = known.find(|(name, _)| *name == word) else {
            return Ok(());
        };
        *rest = ahead;
        match value {
            Value::NotBuilt => return Err(Stop::NotBuilt(format!("encap {kind} {word}"))),
            Value::None => own(word, ""),
            value => {
                let text = rest.next().ok_or_else(Stop::incomplete)?;
                check(*value, text, session)?;
                own(word, text);
            }
        }
    }
}

/// Bytes that a line seldom exceeds.
const USUAL_LINE: usize = 128;

/// The words as our own readers take them, with blanks between.
pub fn line(told: &[Told<'_>]) -> String {
    let mut line = String::with_capacity(USUAL_LINE);
    for told in told {
        let words = match told.key {
            Some(key) => {
                let value = spelt_as(key.value, told.value);
                [key.means.into(), value, spelt_as(key.value, told.more)]
            }
            None => [spelt_out(told.said), "".into(), "".into()],
        };
        for word in words.iter().filter(|word| !word.is_empty()) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

/// A value in the one spelling that our readers have.
pub fn spelt_as(value: Value, text: &str) -> Cow<'_, str> {
    let is_octal = text.len() > 1 && text.starts_with('0');
    match value {
        Value::Number(_) | Value::Metric if is_octal => match number(text) {
            Some(number) => number.to_string().into(),
            None => text.into(),
        },
        Value::Address | Value::AddressOf(_) | Value::Prefix | Value::Selector => spelt_out(text),
        _ => text.into(),
    }
}

/// Whether `ip` would read an octet as an octal or hexadecimal number, which
/// nobody means.
fn has_odd_octet(text: &str) -> bool {
    let bits = text.split('/').next().unwrap_or_default();
    let is_odd = |part: &str| part.len() > 1 && part.starts_with('0');
    bits.contains('.') && !bits.contains(':') && bits.split('.').any(is_odd)
}

/// [`check`], where an address must be of the family of a prefix that stood
/// before it.
fn check_beside(
    value: Value,
    text: &str,
    told: &[Told<'_>],
    session: &mut Session,
) -> Result<(), Stop> {
    let is_plain = !matches!(text, "inet" | "inet6");
    if !matches!(value, Value::Address) || !is_plain || session.family().is_some() {
        return check(value, text, session);
    }
    let before = told.iter().find(|told| told.key.is_none());
    let prefix = before.and_then(|told| words::line::prefix(told.said, None).ok());
    match prefix.filter(|prefix| prefix.prefix_len() > 0) {
        Some(prefix) => {
            let family = words::line::family_of(prefix.addr());
            address(text, Some(family)).map(drop)
        }
        None => check(value, text, session),
    }
}

/// Whether a value is what it has to be.
pub fn check(value: Value, text: &str, session: &mut Session) -> Result<(), Stop> {
    match value {
        Value::None | Value::Text | Value::NotBuilt | Value::Encap => Ok(()),
        Value::Metric | Value::Locked | Value::Flag => Ok(()),
        Value::LockedTime(_) if text == "lock" => Ok(()),
        Value::Time(why) | Value::LockedTime(why) => {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let unit = text.get(digits.len()..).unwrap_or_default();
            let units = ["", "s", "sec", "secs", "ms", "msec", "msecs"];
            match digits.parse::<f64>().is_ok() && units.contains(&unit) {
                true => Ok(()),
                false => Err(Stop::argument(text, why)),
            }
        }
        Value::AddressOf(family) => address(text, Some(family)).map(drop),
        Value::OneOf(known, why) => match known.contains(&text) {
            true => Ok(()),
            false => Err(Stop::argument(text, why)),
        },
        Value::Segments => {
            let mut all = text.split(',');
            all.try_for_each(|one| address(one, Some(table::AF_INET6)).map(drop))
        }
        Value::Address if matches!(text, "inet" | "inet6") => Ok(()),
        Value::Address => address(text, session.family()).map(drop),
        Value::Prefix | Value::Selector => prefix(text, session.family()).map(drop),
        Value::Link => session.index(text).map(drop),
        Value::BridgeLink => match session.index(text) {
            Err(Stop::Said { text, .. }) => Err(Stop::wrong(text)),
            found => found.map(drop),
        },
        Value::Bridge => match session.index(text) {
            Err(Stop::Said { .. }) => {
                Err(Stop::wrong(format!("Cannot find bridge device \"{text}\"")))
            }
            found => found.map(drop),
        },
        Value::LinkOr(why) => match session.index(text) {
            Err(Stop::Said { .. }) => Err(Stop::argument(text, why)),
            found => found.map(drop),
        },
        Value::Vrf(why) => match session.vrf_table(text)? {
            Some(_) => Ok(()),
            None => Err(Stop::argument(text, why)),
        },
        Value::Number(why) => match number(text) {
            Some(_) => Ok(()),
            None => Err(Stop::argument(text, why)),
        },
        Value::Signed(why) => match number(text) {
            Some(_) => Ok(()),
            None if text.strip_prefix('-').and_then(number).is_some() => {
                Err(Stop::NotBuilt(format!("the number {text}")))
            }
            None => Err(Stop::argument(text, why)),
        },
        Value::Named(file, why) => match session.names.number(file, text) {
            Some(_) => Ok(()),
            None if text.len() > 9 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(Stop::NotBuilt(format!("the number {text}")))
            }
            None => Err(Stop::argument(text, why)),
        },
        Value::LinkLayer => match words::line::lladdr(text) {
            Ok(_) if text.contains('-') => Err(Stop::Said {
                status: REFUSED,
                text: "Error: Invalid link address.".to_owned(),
            }),
            Ok(_) => Ok(()),
            Err(_) => Err(Stop::failed(format!("\"{text}\" is invalid lladdr."))),
        },
    }
}

/// An address of a family, if one is told.
pub fn address(text: &str, family: Option<u8>) -> Result<IpAddr, Stop> {
    let expected = |what: &str| {
        Stop::no_address(format!(
            "Error: {what} address is expected rather than \"{text}\"."
        ))
    };
    let mut read = words::line::address(text);
    if read.is_none() {
        if matches!(text, "default" | "any" | "all") || has_odd_octet(text) {
            return Err(Stop::NotBuilt(format!("the address {text}")));
        }
        read = words::line::address(&spelt_out(text));
    }
    match (read, family) {
        (Some(address), Some(family)) if words::line::family_of(address) != family => {
            Err(expected(name_of(Some(family))))
        }
        (Some(address), _) => Ok(address),
        (None, _) if family.is_none() && text.contains(':') => Err(expected("inet6")),
        (None, None) => Err(expected("any valid")),
        (None, family) => Err(expected(name_of(family))),
    }
}

/// A prefix of a family, if one is told.
pub fn prefix(text: &str, family: Option<u8>) -> Result<ipnet::IpNet, Stop> {
    let expected = || {
        let what = name_of(family);
        Stop::no_address(format!(
            "Error: {what} prefix is expected rather than \"{text}\"."
        ))
    };
    let read = match words::line::plain_prefix(text) {
        Some(read) => read,
        None if has_odd_octet(text) => {
            return Err(Stop::NotBuilt(format!("the prefix {text}")));
        }
        None => words::line::prefix(&spelt_out(text), family).map_err(|_| expected())?,
    };
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic());
    match family {
        Some(table::AF_INET6) if !text.contains(':') && !is_word => Err(expected()),
        Some(family) if words::line::family_of(read.addr()) != family => Err(expected()),
        _ => Ok(read),
    }
}

fn name_of(family: Option<u8>) -> &'static str {
    match family {
        Some(table::AF_INET) => "inet",
        Some(table::AF_INET6) => "inet6",
        _ => "any valid",
    }
}

/// A number as `strtoul(3)` with base 0 takes it.
pub fn number(text: &str) -> Option<u32> {
    let octal = text.strip_prefix('0').filter(|rest| !rest.is_empty());
    match octal {
        Some(rest) if rest.starts_with(['x', 'X']) => u32::from_str_radix(rest.get(1..)?, 16).ok(),
        Some(rest) => u32::from_str_radix(rest, 8).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}
