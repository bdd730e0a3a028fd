//! The settings of a kind back into `ip`'s words: the inverse of
//! [`super::kind_of_words`], by the same table. For who writes files that
//! make links, and who compares settings field by field.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::KindData;

use super::kinds::{Form, KINDS, Number, Setting};
use super::words::gathered;
use crate::attribute::{Attributes, value};
use crate::build::Build;
use crate::link_data;

/// A header that is cut off again.
const HEADER: usize = 16;

/// Settings in `ip`'s words: each word with what follows it. `link` gives
/// the name of a link's index. What no word says is left out, and so are
/// addresses and keys that are not set. O(words of the kind).
pub fn words_of_kind(
    kind: &str,
    data: &KindData,
    link: &mut dyn FnMut(u32) -> Option<String>,
) -> Vec<(&'static str, String)> {
    let Some(kind) = KINDS.iter().find(|known| known.name == kind) else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    let mut build = Build::start(&mut bytes, 0, 0, 0, &[]);
    link_data::put_kind(&mut build, data);
    build.end_small();
    let data = bytes.get(HEADER..).unwrap_or_default();
    let mut said: Vec<(&'static str, String)> = Vec::new();
    let mut numbers = Vec::new();
    for setting in kind.options {
        let is_shared = matches!(
            setting.form,
            Form::Bit(_) | Form::GreKey(_) | Form::GreBit(..) | Form::FlowInfo(..)
        );
        if !is_shared && numbers.contains(&setting.number) {
            continue;
        }
        if let Some(text) = text(setting, data, link) {
            said.push((setting.word, text));
            numbers.push(setting.number);
        }
    }
    said
}

/// A value of a kind's setting that has names, by its name or its number;
/// `None`: it is none of them, or the setting has no names. O(settings of the
/// kind).
pub fn named_value(kind: &str, word: &str, said: &str) -> Option<&'static str> {
    let kind = KINDS.iter().find(|known| known.name == kind)?;
    let setting = kind.options.iter().find(|known| known.word == word)?;
    let Form::Named(names, _) = setting.form else {
        return None;
    };
    let number = said.parse().ok();
    let mut names = names.iter();
    let found = names.find(|(name, value)| *name == said || number == Some(*value));
    found.map(|(name, _)| *name)
}

fn text(
    setting: &Setting,
    data: &[u8],
    link: &mut dyn FnMut(u32) -> Option<String>,
) -> Option<String> {
    let is = value(data, setting.number);
    match setting.form {
        Form::Named(names, size) => {
            let number = number(is?, size)?;
            let named = names.iter().find(|(_, known)| *known == number);
            Some(named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned()))
        }
        Form::Alone(alone) => (is? == alone).then(String::new),
        Form::Address4 | Form::Address6 => address(is?).map(|address| address.to_string()),
        Form::Address(number6) => {
            let address = address(is.or_else(|| value(data, number6))?)?;
            let is_other = setting.word == "group" && !address.is_multicast();
            (!is_other).then(|| address.to_string())
        }
        Form::Link => link(u32_of(is?).filter(|index| *index != 0)?),
        Form::Range => match is? {
            [a, b, c, d] => Some(format!(
                "{} {}",
                u16::from_be_bytes([*a, *b]),
                u16::from_be_bytes([*c, *d])
            )),
            _ => None,
        },
        Form::Ttl(inherit, told) => match is {
            Some([ttl]) if *ttl != 0 => Some(ttl.to_string()),
            _ if value(data, inherit) == Some(told) => Some("inherit".to_owned()),
            _ => None,
        },
        Form::Bit(bit) => {
            let (on, mask) = is?.split_at_checked(4)?;
            let is_on = u32_of(on)? & bit != 0;
            (u32_of(mask)? & bit != 0).then(|| if is_on { "on" } else { "off" }.to_owned())
        }
        Form::QosMap => qos_map(is?),
        Form::Addresses4 => {
            let mut nest = Attributes::new(is?, "addresses", 0);
            let mut addresses = Vec::new();
            while let Ok(Some(attribute)) = nest.step() {
                addresses.push(address(attribute.value)?.to_string());
            }
            (!addresses.is_empty()).then(|| addresses.join(","))
        }
        Form::ExternalVxlan => (is? == [1]).then(String::new),
        Form::ExternalGre => is.map(|_| String::new()),
        Form::GreKey(sides) => gre_key(data, sides),
        Form::GreBit(bit, sides) => is_gre(data, |flags| flags & bit != 0, sides).then(String::new),
        Form::FlowInfo(shift, max, inherit) => {
            let flags = value(data, gathered::GRE_FLAGS).and_then(u32_of);
            if flags.unwrap_or(0) & inherit != 0 {
                return Some("inherit".to_owned());
            }
            let info = value(data, gathered::GRE_FLOWINFO)?;
            let info = u32::from_be_bytes(info.try_into().ok()?) >> shift & max;
            (info != 0).then(|| format!("{info:#x}"))
        }
        Form::EncapLimit => {
            let flags = value(data, gathered::GRE_FLAGS).and_then(u32_of);
            if flags.unwrap_or(0) & super::words::IGNORE_ENCAP_LIMIT != 0 {
                return Some("none".to_owned());
            }
            is?.first().map(u8::to_string)
        }
    }
}

fn number(value: &[u8], size: Number) -> Option<u32> {
    Some(match (size, value) {
        (Number::U8, [one]) => u32::from(*one),
        (Number::U16, [a, b]) => u16::from_ne_bytes([*a, *b]).into(),
        (Number::Be16, [a, b]) => u16::from_be_bytes([*a, *b]).into(),
        (Number::U32, [a, b, c, d]) => u32::from_ne_bytes([*a, *b, *c, *d]),
        (Number::Be32, [a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => return None,
    })
}

fn u32_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

/// An address that is set.
fn address(value: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = match value.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into(),
    };
    (!address.is_unspecified()).then_some(address)
}

fn qos_map(nest: &[u8]) -> Option<String> {
    let mut nest = Attributes::new(nest, "a map", 0);
    let mut pairs = Vec::new();
    while let Ok(Some(attribute)) = nest.step() {
        let (from, to) = attribute.value.split_at_checked(4)?;
        pairs.push(format!("{}:{}", u32_of(from)?, u32_of(to)?));
    }
    (!pairs.is_empty()).then(|| pairs.join(" "))
}

/// Whether a word of both sides, or of one where they differ, says it.
fn is_gre(data: &[u8], is_set: impl Fn(u16) -> bool, sides: &[usize]) -> bool {
    let side = |number| {
        let flags = value(data, number).and_then(|value| value.try_into().ok());
        flags.is_some_and(|flags| is_set(u16::from_be_bytes(flags)))
    };
    let both = [side(gathered::GRE_IFLAGS), side(gathered::GRE_OFLAGS)];
    match sides {
        [one] => both.get(*one) == Some(&true) && both.contains(&false),
        _ => both == [true, true],
    }
}

fn gre_key(data: &[u8], sides: &[usize]) -> Option<String> {
    let key = |side: usize| {
        let (flags, key) = match side {
            0 => (gathered::GRE_IFLAGS, gathered::GRE_IKEY),
            _ => (gathered::GRE_OFLAGS, gathered::GRE_OKEY),
        };
        let flags = u16::from_be_bytes(value(data, flags)?.try_into().ok()?);
        let key = u32::from_be_bytes(value(data, key)?.try_into().ok()?);
        (flags & super::words::GRE_KEY != 0).then_some(key)
    };
    let both = [key(0), key(1)];
    let said = match sides {
        [one] if both[0] != both[1] => both.get(*one).copied().flatten(),
        [_] => None,
        _ if both[0] == both[1] => both[0],
        _ => None,
    };
    said.map(|key| key.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{LinkKind, kind_of_words};
    use super::*;

    /// Words that read to the same settings as those that they are of.
    fn again(kind: &str, words: &str) -> String {
        let read = |words: &str| {
            let words: Vec<&str> = words.split_whitespace().collect();
            let kind = kind_of_words(kind, &words, &mut |_| Some(7));
            let LinkKind::Other { data, .. } = kind.unwrap() else {
                unreachable!("no veth is asked for")
            };
            data
        };
        let data = read(words);
        let said = words_of_kind(kind, &data, &mut |index| Some(format!("e{index}")));
        let said: Vec<String> = said
            .iter()
            .flat_map(|(word, text)| [(*word).to_owned(), text.clone()])
            .filter(|word| !word.is_empty())
            .collect();
        let said = said.join(" ");
        assert_eq!(read(&said), data, "{kind} {words}: {said}");
        said
    }

    #[test]
    fn settings_are_said_as_they_are_read() {
        for (kind, words) in [
            ("dummy", ""),
            ("vlan", "protocol 802.1ad id 5"),
            ("vlan", "id 5 gvrp on mvrp off egress-qos-map 0:1 2:3"),
            ("macvlan", "mode bridge"),
            (
                "bridge",
                "forward_delay 400 vlan_filtering 1 mcast_snooping 0",
            ),
            (
                "vxlan",
                "id 77 remote 192.0.2.1 local 192.0.2.2 dstport 4789 nolearning ttl inherit",
            ),
            ("vxlan", "id 77 group 239.1.1.1 dev e7 srcport 1 2 ttl 5"),
            ("vxlan", "external dstport 4789"),
            ("geneve", "id 9 remote 2001:db8::1 ttl 7"),
            ("vrf", "table 100"),
            ("vrf", "table main"),
            ("gre", "local 192.0.2.1 remote 192.0.2.2 key 5 csum ttl 64"),
            (
                "gre",
                "local 192.0.2.1 remote 192.0.2.2 ikey 5 okey 6 oseq nopmtudisc",
            ),
            (
                "ip6gre",
                "local 2001:db8::1 remote 2001:db8::2 tclass 0x20 encaplimit none",
            ),
            (
                "ip6gre",
                "local 2001:db8::1 remote 2001:db8::2 flowlabel inherit",
            ),
            (
                "bond",
                "mode 802.3ad miimon 100 arp_ip_target 192.0.2.1,192.0.2.2",
            ),
        ] {
            again(kind, words);
        }
        assert_eq!(again("vlan", "id=5"), "id 5");
        assert_eq!(
            again("vxlan", "vni 5 remote 192.0.2.1"),
            "id 5 remote 192.0.2.1"
        );
    }
}
