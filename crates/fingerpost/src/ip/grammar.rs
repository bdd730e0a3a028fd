//! The words that may follow a command, in the order in which `ip` looks
//! for them: which may be abbreviated, and what stands behind each. What is
//! wrong with a value is said as `ip` says it, and nothing is done. Called by
//! the objects' files beside this one.

use std::net::IpAddr;

use words::NameFile;

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
    /// The same, with what `ip` says of another one.
    LinkOr(&'static str),
    /// The name of a VRF; else this is said.
    Vrf(&'static str),
    /// A number; else this is said.
    Number(&'static str),
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
}

/// A word that must be whole.
pub const fn whole(name: &'static str, value: Value) -> Key {
    Key {
        name,
        abbreviates: false,
        means: name,
        value,
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
    keys.iter().find(|key| {
        if key.abbreviates {
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
                check_beside(value, text, &told, session)?;
                let is_first = match value {
                    Value::Metric | Value::LockedTime(_) => text == "lock",
                    Value::Address => matches!(text.as_str(), "inet" | "inet6"),
                    _ => false,
                };
                if is_first {
                    more = rest.next().ok_or_else(Stop::incomplete)?;
                }
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

/// The words as our own readers take them, with blanks between.
pub fn line(told: &[Told<'_>]) -> String {
    let mut line = String::new();
    for told in told {
        let words = match told.key {
            Some(key) => [key.means, told.value, told.more],
            None => [told.said, "", ""],
        };
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

/// [`check`], where an address must be of the family of a prefix that stood
/// before it.
fn check_beside(
    value: Value,
    text: &str,
    told: &[Told<'_>],
    session: &mut Session,
) -> Result<(), Stop> {
    let before = told.iter().find(|told| told.key.is_none());
    let family = before.and_then(|told| words::line::prefix(told.said, None).ok());
    let is_plain = !matches!(text, "inet" | "inet6");
    match (value, family.filter(|prefix| prefix.prefix_len() > 0)) {
        (Value::Address, Some(prefix)) if session.family().is_none() && is_plain => {
            let family = words::line::family_of(prefix.addr());
            address(text, Some(family)).map(drop)
        }
        _ => check(value, text, session),
    }
}

/// Whether a value is what it has to be.
pub fn check(value: Value, text: &str, session: &mut Session) -> Result<(), Stop> {
    match value {
        Value::None | Value::Text | Value::Metric | Value::NotBuilt | Value::Encap => Ok(()),
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
        Value::Named(file, why) => match session.names.number(file, text) {
            Some(_) => Ok(()),
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
    let read = words::line::address(text);
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
    let read = words::line::prefix(text, family).map_err(|_| expected())?;
    match family {
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
