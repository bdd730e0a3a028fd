//! systemd.netdev(5) and systemd.network(5), with drop-ins.

mod sections;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use netlink::encode::named_value;

use super::draft::{Draft, Place, hardware, hundredths, is_name, is_plain, yes};
use super::{Imported, Texts};

/// A section of a file, with its lines.
struct Section {
    path: PathBuf,
    line: usize,
    name: String,
    said: Vec<Said>,
}

/// `KEY=VALUE`, and where it stands.
#[derive(Debug, Clone)]
struct Said {
    path: PathBuf,
    line: usize,
    key: String,
    value: String,
}

impl Said {
    fn place(&self) -> Place<'_> {
        Place {
            path: &self.path,
            line: self.line,
        }
    }
}

/// Reads a directory of such files, or one of them.
pub fn import(texts: &mut dyn Texts, path: &Path) -> Result<Imported, String> {
    let mut draft = Draft::default();
    let ends = |path: &Path, end: &str| path.extension().is_some_and(|found| found == end);
    let files = match ends(path, "netdev") || ends(path, "network") {
        true => vec![path.to_owned()],
        false => texts.matching(&path.join("*"))?,
    };
    if files.is_empty() {
        return Err(format!("{}: there are no files", path.display()));
    }
    for file in files.iter().filter(|file| ends(file, "netdev")) {
        let sections = sections_of(texts, &mut draft, file)?;
        netdev(&mut draft, file, &sections);
    }
    // Of two files that match a link the first is its.
    let mut matched = BTreeSet::new();
    for file in files.iter().filter(|file| ends(file, "network")) {
        let sections = sections_of(texts, &mut draft, file)?;
        network(&mut draft, file, &sections, &mut matched);
    }
    for file in files.iter().filter(|file| ends(file, "link")) {
        let at = Place {
            path: file,
            line: 1,
        };
        draft.leave(
            at,
            "[Link]",
            "names of links and settings of devices are not declared",
        );
    }
    Ok(draft.finish())
}

/// The sections of a file and its drop-ins, in their order.
fn sections_of(
    texts: &mut dyn Texts,
    draft: &mut Draft,
    path: &Path,
) -> Result<Vec<Section>, String> {
    let mut found = Vec::new();
    let text = texts.read(path)?;
    parse(draft, path, &text, &mut found);
    let mut beside = path.as_os_str().to_owned();
    beside.push(".d");
    for extra in texts.matching(&Path::new(&beside).join("*"))? {
        if extra.extension().is_some_and(|found| found == "conf") {
            let text = texts.read(&extra)?;
            parse(draft, &extra, &text, &mut found);
        }
    }
    Ok(found)
}

fn parse(draft: &mut Draft, path: &Path, text: &str, found: &mut Vec<Section>) {
    let begins = found.len();
    let mut open: Option<(usize, String)> = None;
    for (at, raw) in text.lines().enumerate() {
        let is_comment = raw.trim_start().starts_with(['#', ';']);
        if is_comment {
            continue;
        }
        let (line, mut whole) = open.take().unwrap_or((at + 1, String::new()));
        if let Some(begun) = raw.strip_suffix('\\') {
            whole += begun;
            whole.push(' ');
            open = Some((line, whole));
            continue;
        }
        whole += raw;
        let whole = whole.trim();
        let place = Place { path, line };
        if whole.is_empty() {
            continue;
        }
        if let Some(name) = whole
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            found.push(Section {
                path: path.to_owned(),
                line,
                name: name.to_owned(),
                said: Vec::new(),
            });
            continue;
        }
        let section = found.get_mut(begins..).and_then(<[Section]>::last_mut);
        match (section, whole.split_once('=')) {
            (Some(section), Some((key, value))) => section.said.push(Said {
                path: path.to_owned(),
                line,
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => draft.leave(
                place,
                whole,
                "this is no `[SECTION]` and no `KEY=VALUE` in one",
            ),
        }
    }
}

/// What stands in the sections of a name, each key's values in order: an
/// empty one takes back those before it.
fn said_in(sections: &[Section], name: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for section in sections.iter().filter(|one| one.name == name) {
        for said in &section.said {
            match said.value.is_empty() {
                true => all.retain(|before| before.key != said.key),
                false => all.push(said.clone()),
            }
        }
    }
    all
}

const NOT_KNOWN: &str = "it is not known, or its value is not understood";

fn netdev(draft: &mut Draft, path: &Path, sections: &[Section]) {
    let own = said_in(sections, "NetDev");
    let last = |key: &str| own.iter().rev().find(|said| said.key == key);
    let at = Place { path, line: 1 };
    let (Some(name), Some(kind)) = (last("Name"), last("Kind")) else {
        return draft.leave(at, "[NetDev]", "it has no Name= or no Kind=");
    };
    const KINDS: &[&str] = &[
        "bond", "bridge", "dummy", "ipvlan", "macvlan", "veth", "vlan", "vrf", "vxlan",
    ];
    if !is_name(&name.value) {
        return draft.leave(name.place(), "Name", "this is no name of a link");
    }
    if !KINDS.contains(&kind.value.as_str()) {
        let why = format!("links of kind {} are not carried over", kind.value);
        return draft.leave(kind.place(), "Kind", why);
    }
    let name = name.value.clone();
    draft.link(&name).kind = Some(kind.value.clone());
    for said in &own {
        let link = draft.link(&name);
        let done = match said.key.as_str() {
            "Name" | "Kind" => Some(()),
            "MTUBytes" => bytes(&said.value).map(|mtu| link.mtu = Some(mtu)),
            "MACAddress" => hardware(&said.value).map(|address| link.address = Some(address)),
            // Of the file, not of the link.
            "Description" => Some(()),
            _ => None,
        };
        if done.is_none() {
            draft.leave(said.place(), &said.key, NOT_KNOWN);
        }
    }
    for section in distinct(sections) {
        if section == "NetDev" {
            continue;
        }
        for said in said_in(sections, section) {
            if option(draft, &name, section, &said.key, &said.value).is_none() {
                draft.leave(said.place(), &said.key, NOT_KNOWN);
            }
        }
    }
    // Where nothing is said networkd asks for none; the kernel has them.
    let of_vxlan = said_in(sections, "VXLAN");
    if kind.value == "vxlan" && !of_vxlan.iter().any(|said| said.key == "UDPChecksum") {
        draft.option(&name, "noudpcsum", "");
    }
}

/// Names of sections, each once.
fn distinct(sections: &[Section]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for section in sections {
        if !names.contains(&section.name.as_str()) {
            names.push(&section.name);
        }
    }
    names
}

/// `1500`, `9K`.
fn bytes(text: &str) -> Option<u32> {
    let (number, shift) = match text.chars().last()? {
        'K' => (text.get(..text.len() - 1)?, 10),
        'M' => (text.get(..text.len() - 1)?, 20),
        _ => (text, 0),
    };
    number.parse::<u32>().ok()?.checked_mul(1 << shift)
}

/// An option of a kind, in `ip`'s words.
fn option(draft: &mut Draft, link: &str, section: &str, key: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok().map(|value| value.to_string());
    let switch = || yes(value).map(|value| u32::from(value).to_string());
    let centis = || hundredths(value).map(|value| value.to_string());
    let millis = || hundredths(value).map(|value| (value * 10).to_string());
    let address = || Some(value.parse::<std::net::IpAddr>().ok()?.to_string());
    let either = |word: &'static str, not: &'static str| {
        Some((if yes(value)? { word } else { not }, String::new()))
    };
    let (word, value) = match (section, key) {
        ("VLAN", "Id") => ("id", number()?),
        ("VLAN", "Protocol") if matches!(value, "802.1q" | "802.1ad") => {
            ("protocol", value.to_owned())
        }
        ("VRF", "Table") => ("table", number()?),
        ("Peer", "Name") if is_name(value) => {
            draft.link(link).peer = Some(value.to_owned());
            return Some(());
        }
        ("Peer", "MACAddress") => {
            draft.link(link).peer_address = Some(hardware(value)?);
            return Some(());
        }
        ("MACVLAN", "Mode") if matches!(value, "private" | "vepa" | "bridge" | "passthru") => {
            ("mode", value.to_owned())
        }
        ("IPVLAN", "Mode") if matches!(value, "L2" | "L3" | "L3S") => {
            ("mode", value.to_lowercase())
        }
        ("Bridge", "STP") => ("stp_state", switch()?),
        ("Bridge", "ForwardDelaySec") => ("forward_delay", centis()?),
        ("Bridge", "HelloTimeSec") => ("hello_time", centis()?),
        ("Bridge", "MaxAgeSec") => ("max_age", centis()?),
        ("Bridge", "AgeingTimeSec") => ("ageing_time", centis()?),
        ("Bridge", "Priority") => ("priority", number()?),
        ("Bridge", "GroupForwardMask") => ("group_fwd_mask", number()?),
        ("Bridge", "VLANFiltering") => ("vlan_filtering", switch()?),
        ("Bridge", "DefaultPVID") => match value {
            "none" => ("vlan_default_pvid", "0".to_owned()),
            _ => ("vlan_default_pvid", number()?),
        },
        ("Bridge", "MulticastSnooping") => ("mcast_snooping", switch()?),
        ("Bridge", "MulticastQuerier") => ("mcast_querier", switch()?),
        ("Bond", "Mode") => ("mode", named_value("bond", "mode", value)?.to_owned()),
        ("Bond", "MIIMonitorSec") => ("miimon", millis()?),
        ("Bond", "UpDelaySec") => ("updelay", millis()?),
        ("Bond", "DownDelaySec") => ("downdelay", millis()?),
        ("Bond", "LACPTransmitRate") if matches!(value, "slow" | "fast") => {
            ("lacp_rate", value.to_owned())
        }
        ("Bond", "TransmitHashPolicy")
            if matches!(
                value,
                "layer2" | "layer3+4" | "layer2+3" | "encap2+3" | "encap3+4"
            ) =>
        {
            ("xmit_hash_policy", value.to_owned())
        }
        ("VXLAN", "VNI") => ("id", number()?),
        ("VXLAN", "Local") => ("local", address()?),
        ("VXLAN", "Remote") => ("remote", address()?),
        ("VXLAN", "Group") => ("group", address()?),
        ("VXLAN", "DestinationPort") => ("dstport", number()?),
        ("VXLAN", "TTL") => ("ttl", number()?),
        ("VXLAN", "FDBAgeingSec") => ("ageing", (hundredths(value)? / 100).to_string()),
        ("VXLAN", "MacLearning") => either("learning", "nolearning")?,
        ("VXLAN", "ReduceARPProxy") => either("proxy", "noproxy")?,
        ("VXLAN", "UDPChecksum") => either("udpcsum", "noudpcsum")?,
        ("VXLAN", "Independent") => return yes(value).map(|_| ()),
        _ => return None,
    };
    draft.option(link, word, &value);
    Some(())
}

fn network(draft: &mut Draft, path: &Path, sections: &[Section], matched: &mut BTreeSet<String>) {
    let at = Place { path, line: 1 };
    let mut names: Vec<String> = Vec::new();
    for said in said_in(sections, "Match") {
        let all = said.value.split_whitespace();
        if said.key != "Name" {
            let why = "links are declared by their names: this file matches by something else";
            return draft.leave(said.place(), &said.key, why);
        }
        for name in all {
            if !is_name(name) || name.contains(['*', '?', '[', '!']) {
                let why = "links are declared by their names: this matches several, or is none";
                return draft.leave(said.place(), "Name", why);
            }
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return draft.leave(at, "[Match]", "it names no link");
    }
    for name in &names {
        if !matched.insert(name.clone()) {
            draft.leave(
                at,
                name,
                "an earlier file matches this link, and is the one that counts",
            );
            continue;
        }
        draft.link(name).up = Some(true);
        for section in sections {
            sections::of(draft, name, section);
        }
        // A bridge's port has no link-local address unless it is said.
        let own = said_in(sections, "Network");
        let says = |key: &str| own.iter().any(|said| said.key == key);
        if says("Bridge") && !says("LinkLocalAddressing") {
            draft.sysctl(name, "ipv6", "addr_gen_mode", 1);
        }
    }
}

/// What a section says once, by key; lists are not among them.
fn by_key(section: &Section) -> BTreeMap<&str, &Said> {
    let said = section.said.iter().filter(|said| !said.value.is_empty());
    said.map(|said| (said.key.as_str(), said)).collect()
}

/// Whether all of a section's values mean themselves in our file.
fn are_plain(section: &Section) -> bool {
    section.said.iter().all(|said| is_plain(&said.value))
}

#[cfg(test)]
mod tests;
