//! A kind and its options from `ip`'s words: `vlan`, `id 5 protocol
//! 802.1ad`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::kinds::{Form, KINDS, Kind, Number, Setting};
use super::{LinkEnd, LinkKind};
use crate::attribute::Attributes;
use crate::link_data;

/// So many words may follow a kind: a map of quality-of-service values has
/// at most some hundred.
const MAX_WORDS: usize = 512;

/// Attributes whose value is gathered from several words.
pub(super) mod gathered {
    pub(crate) const GRE_IFLAGS: u16 = 2;
    pub(crate) const GRE_OFLAGS: u16 = 3;
    pub(crate) const GRE_IKEY: u16 = 4;
    pub(crate) const GRE_OKEY: u16 = 5;
    pub(crate) const GRE_ENCAP_LIMIT: u16 = 11;
    pub(crate) const GRE_FLOWINFO: u16 = 12;
    pub(crate) const GRE_FLAGS: u16 = 13;
    pub(crate) const VXLAN_LEARNING: u16 = 7;
    pub(crate) const VLAN_QOS_MAPPING: u16 = 1;
}

/// `GRE_KEY`, `linux/if_tunnel.h`, in host byte order.
pub(super) const GRE_KEY: u16 = 0x2000;
/// `IP6_TNL_F_IGN_ENCAP_LIMIT`, `linux/ip6_tunnel.h`.
pub(super) const IGNORE_ENCAP_LIMIT: u32 = 1;

/// What is wrong with the words of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KindError {
    /// No such kind.
    #[error("`{kind}` is no kind of link that can be made; there are {}", names())]
    Unknown {
        /// As it was said.
        kind: String,
    },
    /// The kind has no such option.
    #[error("{kind} has no option `{word}`{}", known(kind))]
    Option {
        /// Which kind.
        kind: &'static str,
        /// As it was said.
        word: String,
    },
    /// An option without what must follow it.
    #[error("{kind}: {expected} is missing after `{word}`")]
    Missing {
        /// Which kind.
        kind: &'static str,
        /// Which option.
        word: String,
        /// What should follow.
        expected: String,
    },
    /// An option with a value that makes no sense.
    #[error("{kind}: {word} `{value}`: {expected} is expected")]
    Value {
        /// Which kind.
        kind: &'static str,
        /// Which option.
        word: String,
        /// As it was said.
        value: String,
        /// What would make sense.
        expected: String,
    },
    /// More words than any kind has.
    #[error("{kind}: more than {MAX_WORDS} words")]
    TooMany {
        /// Which kind.
        kind: &'static str,
    },
}

fn names() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

fn known(kind: &str) -> String {
    let words: Vec<&str> = KINDS
        .iter()
        .filter(|known| known.name == kind)
        .flat_map(Kind::words)
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("; it has {}", words.join(", "))
    }
}

/// A kind from its name and options as `ip` spells them: `id 5 protocol
/// 802.1ad`, or `id=5`, or both mixed. `link` gives the index of a link's
/// name. Of `veth` the peer is the caller's to fill; `peer name NAME` is
/// understood. O(words).
pub fn kind_of_words(
    name: &str,
    words: &[&str],
    link: &mut dyn FnMut(&str) -> Option<u32>,
) -> Result<LinkKind, KindError> {
    let kind = KINDS
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| KindError::Unknown { kind: name.into() })?;
    if words.len() > MAX_WORDS {
        return Err(KindError::TooMany { kind: kind.name });
    }
    if kind.name == "veth" {
        return veth(words);
    }
    let mut reader = Reader {
        kind: kind.name,
        words,
        half: None,
        link,
        data: Said::default(),
        gathered: Gathered::default(),
    };
    while let Some(word) = reader.option() {
        match kind.options.iter().find(|setting| setting.word == word) {
            Some(setting) => reader.read(setting)?,
            None => {
                return Err(KindError::Option {
                    kind: kind.name,
                    word: word.into(),
                });
            }
        }
        reader.nothing_left(word)?;
    }
    let words = reader.finish(kind);
    let said = Attributes::new(&words.0, "words", 0);
    Ok(LinkKind::Other {
        name: kind.name,
        data: link_data::of_kind(kind.name, said).unwrap_or_default(),
    })
}

fn veth(words: &[&str]) -> Result<LinkKind, KindError> {
    let name = match words {
        [] => "",
        ["peer", "name", name] | ["peer", name] => name,
        [word, ..] => {
            return Err(KindError::Option {
                kind: "veth",
                word: (*word).into(),
            });
        }
    };
    let peer = Box::new(LinkEnd {
        name: name.into(),
        ..LinkEnd::default()
    });
    Ok(LinkKind::Veth { peer })
}

/// The attributes of what has been said.
#[derive(Default)]
struct Said(Vec<u8>);

const MAX_VALUE: usize = u16::MAX as usize - 4;

impl Said {
    /// Appends an attribute. Of two with one number the kernel takes the
    /// later. What is longer than an attribute can be is cut.
    fn put(&mut self, number: u16, value: &[u8]) {
        let value = value.get(..MAX_VALUE).unwrap_or(value);
        let len = value.len() as u16 + 4;
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&number.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends an attribute unless there is one with its number.
    fn put_unless_there(&mut self, number: u16, value: &[u8]) {
        if crate::attribute::value(&self.0, number).is_none() {
            self.put(number, value);
        }
    }
}

struct Reader<'a> {
    kind: &'static str,
    words: &'a [&'a str],
    /// What followed a `=`.
    half: Option<&'a str>,
    link: &'a mut dyn FnMut(&str) -> Option<u32>,
    data: Said,
    gathered: Gathered,
}

/// What is put at the end, when all words have been read.
#[derive(Default)]
struct Gathered {
    /// An attribute, its value and mask.
    bits: Option<(u16, u32, u32)>,
    gre: [u16; 2],
    flow_info: u32,
    flow_flags: u32,
    /// Its ends come from metadata: no default for them.
    external: bool,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        if let Some(half) = self.half.take() {
            return Some(half);
        }
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// The next option's word.
    fn option(&mut self) -> Option<&'a str> {
        let word = self.next()?;
        match word.split_once('=') {
            Some((word, value)) => {
                self.half = Some(value);
                Some(word)
            }
            None => Some(word),
        }
    }

    /// An option that takes nothing was given something after a `=`.
    fn nothing_left(&mut self, word: &str) -> Result<(), KindError> {
        match self.half.take() {
            None => Ok(()),
            Some(value) => Err(self.wrong(word, value, "nothing")),
        }
    }

    fn value(&mut self, word: &str, expected: &str) -> Result<&'a str, KindError> {
        self.next().ok_or_else(|| KindError::Missing {
            kind: self.kind,
            word: word.into(),
            expected: expected.into(),
        })
    }

    fn wrong(&self, word: &str, value: &str, expected: impl Into<String>) -> KindError {
        KindError::Value {
            kind: self.kind,
            word: word.into(),
            value: value.into(),
            expected: expected.into(),
        }
    }

    fn parsed<T>(
        &mut self,
        word: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, KindError> {
        let value = self.value(word, expected)?;
        parse(value).ok_or_else(|| self.wrong(word, value, expected))
    }

    fn read(&mut self, setting: &Setting) -> Result<(), KindError> {
        let Setting { word, number, form } = setting;
        let (word, number) = (*word, *number);
        match form {
            Form::Named(names, size) => self.named(word, number, names, *size)?,
            Form::Alone(value) => self.data.put(number, value),
            Form::Address4 => {
                let address = self.parsed(word, "an IPv4 address", any4)?;
                self.data.put(number, &address.octets());
            }
            Form::Address6 => {
                let address = self.parsed(word, "an IPv6 address", any6)?;
                self.data.put(number, &address.octets());
            }
            Form::Address(number6) => {
                match self.parsed(word, "an address", |text| text.parse().ok())? {
                    IpAddr::V4(v4) => self.data.put(number, &v4.octets()),
                    IpAddr::V6(v6) => self.data.put(*number6, &v6.octets()),
                }
            }
            Form::Link => {
                let name = self.value(word, "the name of a link")?;
                let index = (self.link)(name)
                    .ok_or_else(|| self.wrong(word, name, "a link that exists"))?;
                self.data.put(number, &index.to_ne_bytes());
            }
            Form::Range => {
                let low = self.parsed(word, "a port", |text| text.parse::<u16>().ok())?;
                let high = self.parsed(word, "a second port", |text| text.parse::<u16>().ok())?;
                let ([a, b], [c, d]) = (low.to_be_bytes(), high.to_be_bytes());
                self.data.put(number, &[a, b, c, d]);
            }
            Form::Ttl(inherit, said) => {
                match self.parsed(word, "a number up to 255, auto or inherit", ttl)? {
                    Some(ttl) => self.data.put(number, &[ttl]),
                    None => self.data.put(*inherit, said),
                }
            }
            Form::Bit(bit) => {
                let on = self.parsed(word, "on or off", on_off)?;
                self.bit(number, *bit, on);
            }
            Form::QosMap => self.qos_map(word, number)?,
            Form::Addresses4 => self.addresses(word, number)?,
            Form::ExternalVxlan => {
                self.data.put(number, &[1]);
                self.data.put_unless_there(gathered::VXLAN_LEARNING, &[0]);
            }
            Form::ExternalGre => {
                self.data.put(number, &[]);
                self.gathered.external = true;
            }
            Form::GreKey(sides) => self.gre_key(word, sides)?,
            Form::GreBit(bit, sides) => self.gre_bit(*bit, sides),
            Form::FlowInfo(shift, max, inherit) => self.flow_info(word, *shift, *max, *inherit)?,
            Form::EncapLimit => {
                let limit = self.parsed(word, "a number up to 255 or none", |text| {
                    if text == "none" {
                        return Some(None);
                    }
                    u8::try_from(integer(text)?).ok().map(Some)
                })?;
                match limit {
                    Some(limit) => self.data.put(gathered::GRE_ENCAP_LIMIT, &[limit]),
                    None => self.gathered.flow_flags |= IGNORE_ENCAP_LIMIT,
                }
            }
        }
        Ok(())
    }

    fn named(
        &mut self,
        word: &str,
        number: u16,
        names: &[(&str, u32)],
        size: Number,
    ) -> Result<(), KindError> {
        let max = match size {
            Number::U8 => u32::from(u8::MAX),
            Number::U16 | Number::Be16 => u32::from(u16::MAX),
            Number::U32 | Number::Be32 => u32::MAX,
        };
        let expected = || {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            if names.is_empty() {
                format!("a number up to {max}")
            } else {
                format!("{} or a number up to {max}", names.join(", "))
            }
        };
        let text = match self.next() {
            Some(text) => text,
            None => self.value(word, &expected())?,
        };
        let by_name = names.iter().find(|(name, _)| *name == text);
        let value = by_name.map(|(_, value)| *value).or_else(|| integer(text));
        let value = value
            .filter(|value| *value <= max)
            .ok_or_else(|| self.wrong(word, text, expected()))?;
        match size {
            Number::U8 => self.data.put(number, &[value as u8]),
            Number::U16 => self.data.put(number, &(value as u16).to_ne_bytes()),
            Number::U32 => self.data.put(number, &value.to_ne_bytes()),
            Number::Be16 => self.data.put(number, &(value as u16).to_be_bytes()),
            Number::Be32 => self.data.put(number, &value.to_be_bytes()),
        }
        Ok(())
    }

    fn bit(&mut self, number: u16, bit: u32, on: bool) {
        let (_, value, mask) = self.gathered.bits.get_or_insert((number, 0, 0));
        *mask |= bit;
        *value = if on { *value | bit } else { *value & !bit };
    }

    /// `struct ifla_vlan_qos_mapping`s.
    fn qos_map(&mut self, word: &str, number: u16) -> Result<(), KindError> {
        const EXPECTED: &str = "FROM:TO, two numbers";
        let mut nest = Said::default();
        let mapping = |text: &str| {
            let (from, to) = text.split_once(':')?;
            Some((integer(from)?, integer(to)?))
        };
        let (from, to) = self.parsed(word, EXPECTED, mapping)?;
        let mut pair = Some((from, to));
        while let Some((from, to)) = pair {
            let [a, b, c, d] = from.to_ne_bytes();
            let [e, f, g, h] = to.to_ne_bytes();
            nest.put(gathered::VLAN_QOS_MAPPING, &[a, b, c, d, e, f, g, h]);
            pair = self.words.first().and_then(|text| mapping(text));
            if pair.is_some() {
                self.next();
            }
        }
        self.data.put(number, &nest.0);
        Ok(())
    }

    /// A nest of addresses, numbered from 0.
    fn addresses(&mut self, word: &str, number: u16) -> Result<(), KindError> {
        const EXPECTED: &str = "IPv4 addresses with commas";
        let text = self.value(word, EXPECTED)?;
        let mut nest = Said::default();
        for (place, address) in (0u16..).zip(text.split(',')) {
            let address: Ipv4Addr = address
                .parse()
                .map_err(|_| self.wrong(word, address, EXPECTED))?;
            nest.put(place, &address.octets());
        }
        self.data.put(number, &nest.0);
        Ok(())
    }

    fn gre_key(&mut self, word: &str, sides: &[usize]) -> Result<(), KindError> {
        let key = self.parsed(word, "a number or four with dots", |text| {
            text.parse()
                .map(Ipv4Addr::to_bits)
                .ok()
                .or_else(|| integer(text))
        })?;
        for (side, number) in [gathered::GRE_IKEY, gathered::GRE_OKEY].iter().enumerate() {
            if sides.contains(&side) {
                self.data.put(*number, &key.to_be_bytes());
            }
        }
        self.gre_bit(GRE_KEY, sides);
        Ok(())
    }

    fn gre_bit(&mut self, bit: u16, sides: &[usize]) {
        for (side, bits) in self.gathered.gre.iter_mut().enumerate() {
            if sides.contains(&side) {
                *bits |= bit;
            }
        }
    }

    fn flow_info(
        &mut self,
        word: &str,
        shift: u32,
        max: u32,
        inherit: u32,
    ) -> Result<(), KindError> {
        let expected = format!("a number up to {max:#x} or inherit");
        let value = self.parsed(word, &expected, |text| {
            if text == "inherit" {
                return Some(None);
            }
            integer(text).filter(|value| *value <= max).map(Some)
        })?;
        match value {
            Some(value) => self.gathered.flow_info |= value << shift,
            None => self.gathered.flow_flags |= inherit,
        }
        Ok(())
    }

    fn finish(self, kind: &Kind) -> Said {
        let Self {
            mut data, gathered, ..
        } = self;
        if let Some((number, value, mask)) = gathered.bits {
            let [a, b, c, d] = value.to_ne_bytes();
            let [e, f, g, h] = mask.to_ne_bytes();
            data.put(number, &[a, b, c, d, e, f, g, h]);
        }
        let [incoming, outgoing] = gathered.gre;
        if incoming != 0 {
            data.put(gathered::GRE_IFLAGS, &incoming.to_be_bytes());
        }
        if outgoing != 0 {
            data.put(gathered::GRE_OFLAGS, &outgoing.to_be_bytes());
        }
        if gathered.flow_info != 0 {
            data.put(gathered::GRE_FLOWINFO, &gathered.flow_info.to_be_bytes());
        }
        if gathered.flow_flags != 0 {
            data.put(gathered::GRE_FLAGS, &gathered.flow_flags.to_ne_bytes());
        }
        if !gathered.external {
            for (number, value) in kind.defaults {
                data.put_unless_there(*number, value);
            }
        }
        data
    }
}

/// A number as `ip` reads it: decimal, `0x…` or octal.
fn integer(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', _, ..] => (text.get(1..)?, 8),
        _ => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" | "1" => Some(true),
        "off" | "0" => Some(false),
        _ => None,
    }
}

fn ttl(text: &str) -> Option<Option<u8>> {
    match text {
        "inherit" => Some(None),
        "auto" => Some(Some(0)),
        _ => u8::try_from(integer(text)?).ok().map(Some),
    }
}

fn any4(text: &str) -> Option<Ipv4Addr> {
    if text == "any" {
        return Some(Ipv4Addr::UNSPECIFIED);
    }
    text.parse().ok()
}

fn any6(text: &str) -> Option<Ipv6Addr> {
    if text == "any" {
        return Some(Ipv6Addr::UNSPECIFIED);
    }
    text.parse().ok()
}
