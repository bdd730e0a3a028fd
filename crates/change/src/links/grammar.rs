//! `ip`'s words of `link add`, `link set` and `link delete`. Each word is
//! understood, or refused before anything is done: none of them is taken
//! for a link's name because nothing else fits. Pure; called by
//! [`super::command`].

use words::{ParseError, values};

use super::{Plan, Select, Settings};

/// Words of `ip link` that are no names, unless `dev` or `name` stands
/// before them (`iplink_parse` of iproute2).
const KEYWORDS: &[&str] = &[
    "addr",
    "address",
    "addrgenmode",
    "alias",
    "allmulticast",
    "arp",
    "brd",
    "broadcast",
    "carrier",
    "dev",
    "down",
    "dynamic",
    "group",
    "gro_ipv4_max_size",
    "gro_max_size",
    "gso_ipv4_max_size",
    "gso_max_segs",
    "gso_max_size",
    "index",
    "link",
    "link-netns",
    "link-netnsid",
    "master",
    "mode",
    "mtu",
    "multicast",
    "name",
    "netns",
    "nomaster",
    "novrf",
    "numrxqueues",
    "numtxqueues",
    "off",
    "on",
    "parentbus",
    "parentdev",
    "peer",
    "promisc",
    "protodown",
    "protodown_reason",
    "qlen",
    "state",
    "trailers",
    "txqlen",
    "txqueuelen",
    "type",
    "up",
    "vf",
    "vrf",
    "xdp",
    "xdpdrv",
    "xdpgeneric",
    "xdpoffload",
];

/// Of a pair made in `ip`'s words only the first end gets these.
const FIRST_END: &[&str] = &["up", "mtu", "txqueuelen", "txqlen", "qlen"];

/// A link's name that no word announces.
fn name(word: &str) -> Result<String, ParseError> {
    if KEYWORDS.contains(&word) {
        Err(format!(
            "`{word}` is not understood here; a link of that name is `dev {word}`"
        ))
    } else {
        Ok(word.to_owned())
    }
}

/// `ip link set` begins with names; once settings are said, one name may
/// still come if there was none.
pub fn set(
    words: &[String],
    settings: &mut Settings,
    select: &mut Select,
) -> Result<(), ParseError> {
    let had = select.names.len();
    let (mut has_settings, mut group) = (false, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || value(&mut words, word);
        match word.as_str() {
            "up" => settings.up = Some(true),
            "down" => settings.up = Some(false),
            "mtu" => settings.mtu = Some(values::number(next()?)?),
            "master" => settings.master = Some(next()?.clone()),
            "nomaster" => settings.master = Some(String::new()),
            "group" if group.is_some() => return Err("`group` is said twice".to_owned()),
            "group" => group = Some(values::group(next()?)?),
            "name" => settings.rename = Some(next()?.clone()),
            "address" => settings.address = Some(next()?.clone()),
            "txqueuelen" | "txqlen" | "qlen" => {
                settings.tx_queue_len = Some(values::number(next()?)?);
            }
            "alias" => settings.alias = Some(next()?.clone()),
            "dev" => {
                select.names.push(next()?.clone());
                continue;
            }
            _ if has_settings && select.names.len() > had => {
                return Err(format!(
                    "`{word}` is not understood here; names come before the settings"
                ));
            }
            _ => {
                select.names.push(name(word)?);
                continue;
            }
        }
        has_settings = true;
    }
    // As in ip: the group that links are in, where no link is named.
    if select.is_empty() {
        select.group = group;
    } else if group.is_some() {
        settings.group = group;
    }
    Ok(())
}

/// `ip link delete [dev] NAME… | group N [type KIND]`.
pub fn delete(words: &[String], select: &mut Select) -> Result<(), ParseError> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || value(&mut words, word);
        match word.as_str() {
            "dev" => select.names.push(next()?.clone()),
            "group" => match values::group(next()?)? {
                // Links that nobody put into a group are in it.
                0 => return Err("group 0 is all links' own: no links are deleted by it".to_owned()),
                group => select.group = Some(group),
            },
            "type" => {
                select.kind = Some(next()?.clone());
                if let Some(word) = words.next() {
                    return Err(format!("`{word}` is not understood after `type KIND`"));
                }
            }
            _ => select.names.push(name(word)?),
        }
    }
    Ok(())
}

fn value<'a>(
    words: &mut std::slice::Iter<'a, String>,
    word: &str,
) -> Result<&'a String, ParseError> {
    let value = words.next();
    value.ok_or_else(|| format!("a value is missing after `{word}`"))
}

/// `link eth0 name v{} mtu 1400 type vlan id {}`
pub fn add(words: &[String], plan: &mut Plan) -> Result<(), ParseError> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || {
            let value = words.next().cloned();
            value.ok_or_else(|| format!("a value is missing after `{word}`"))
        };
        plan.of_first_end |= FIRST_END.contains(&word.as_str());
        match word.as_str() {
            "type" => {
                plan.kind = next()?;
                plan.words = words.cloned().collect();
                return Ok(());
            }
            "link" => plan.parents.push(next()?),
            "name" | "dev" => plan.name = next()?,
            "address" => plan.address = Some(next()?),
            "mtu" => plan.mtu = Some(values::number(&next()?)?),
            "txqueuelen" | "txqlen" | "qlen" => {
                plan.tx_queue_len = Some(values::number(&next()?)?);
            }
            "master" => plan.master = Some(next()?),
            "group" => plan.group = Some(values::group(&next()?)?),
            "up" => plan.up = true,
            _ if plan.name.is_empty() => plan.name = name(word)?,
            _ => {
                return Err(format!("`{word}` is not understood before `type KIND`"));
            }
        }
    }
    Err("of which kind? --kind veth, or ip's: type veth …".to_owned())
}

/// `peer name testb{} netns blue`
pub fn peer(plan: &mut Plan) -> Result<(), ParseError> {
    let words = std::mem::take(&mut plan.words);
    let mut words = words.into_iter().peekable();
    if words.next_if(|word| word == "peer").is_none() {
        plan.words = words.collect();
        return Ok(());
    }
    while let Some(word) = words.next() {
        let mut next = || {
            let value = words.next();
            value.ok_or_else(|| format!("a value is missing after `{word}`"))
        };
        match word.as_str() {
            "name" => plan.peer = Some(next()?),
            "netns" => plan.peer_netns = Some(next()?),
            "address" => plan.peer_address = Some(next()?),
            _ if plan.peer.is_none() => plan.peer = Some(word),
            _ => return Err(format!("`{word}` is not understood of a peer")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_word_of_ip_is_no_name() {
        for line in [
            "dev e0 up promisc on",
            "e0 promisc on",
            "e0 up e1",
            "up e0 e1",
            "e0 mtu",
            "e0 group 5 group 6",
            "e0 netns blue",
            "on",
        ] {
            let result = set(
                &words(line),
                &mut Settings::default(),
                &mut Select::default(),
            );
            assert!(result.is_err(), "{line}");
        }
        for line in [
            "br0 up",
            "dev",
            "group default",
            "br0 type bridge up",
            "promisc",
        ] {
            assert!(
                delete(&words(line), &mut Select::default()).is_err(),
                "{line}"
            );
        }
        for line in ["promisc type dummy", "d0 up promisc on type dummy", "d0"] {
            assert!(add(&words(line), &mut Plan::default()).is_err(), "{line}");
        }
    }

    #[test]
    fn names_settings_and_conditions_are_told_apart() {
        for (line, names, group, selected) in [
            ("dev e0 up", &["e0"][..], None, None),
            ("up e0", &["e0"], None, None),
            ("e0 e1 up group 5", &["e0", "e1"], Some(5), None),
            ("dev up down", &["up"], None, None),
            // ip's way to speak of all links of a group.
            ("group 5 up", &[], None, Some(5)),
        ] {
            let (mut settings, mut select) = Default::default();
            set(&words(line), &mut settings, &mut select).unwrap();
            assert_eq!(select.names, names, "{line}");
            assert_eq!((settings.group, select.group), (group, selected), "{line}");
            assert!(settings.up.is_some(), "{line}");
        }
        for (line, names, group, kind) in [
            ("dev br0 type bridge", &["br0"][..], None, Some("bridge")),
            ("group 5", &[], Some(5), None),
            ("a b", &["a", "b"], None, None),
            ("dev type", &["type"], None, None),
        ] {
            let mut select = Select::default();
            delete(&words(line), &mut select).unwrap();
            assert_eq!(select.names, names, "{line}");
            assert_eq!(
                (select.group, select.kind.as_deref()),
                (group, kind),
                "{line}"
            );
        }
    }
}
