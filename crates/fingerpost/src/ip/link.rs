//! `ip link add|set|delete`: one request each, as `ip` sends it. Called by
//! the table of commands. Links by the thousand, with a journal, are
//! `fingerpost link`'s.

use std::os::fd::{AsFd as _, AsRawFd as _};

use netlink::decode::Operation;
use netlink::encode::{
    self, KindError, LinkEnd, LinkKind, LinkNetns, LinkSettings, NewLink, Request, kind_of_words,
};
use netlink::message::flag as request_flag;
use table::LinkLayerAddress;
use table::row::link::flag;
use words::NameFile;

use super::grammar::{self, Key, Told, Value, begun, whole};
use super::session::Session;
use super::stop::{REFUSED, Stop};

/// The longest name of a link (`IFNAMSIZ` less its NUL).
const MAX_NAME: usize = 15;
/// What `ip` ends with where it hands a system's error on (`EINVAL`).
const INVALID: u8 = 22;

const QUEUE: Value = Value::Signed("Invalid \"txqueuelen\" value\n");

const KEYS: &[Key] = &[
    whole("up", Value::None),
    whole("down", Value::None),
    whole("name", Value::Text).once("name"),
    begun("index", Value::Number("Invalid \"index\" value")).once("index"),
    begun("link", Value::Text),
    begun("address", Value::Text),
    begun("broadcast", Value::Text),
    whole("brd", Value::Text).means("broadcast"),
    begun("txqueuelen", QUEUE).once("txqueuelen"),
    whole("qlen", QUEUE).means("txqueuelen").once("txqueuelen"),
    begun("txqlen", QUEUE)
        .means("txqueuelen")
        .once("txqueuelen"),
    whole("mtu", Value::Signed("Invalid \"mtu\" value\n")).once("mtu"),
    whole("xdpgeneric", Value::NotBuilt),
    whole("xdpdrv", Value::NotBuilt),
    whole("xdpoffload", Value::NotBuilt),
    whole("xdp", Value::NotBuilt),
    whole("netns", Value::Text).once("netns"),
    whole("multicast", Value::Text),
    whole("allmulticast", Value::Text),
    whole("promisc", Value::Text),
    whole("trailers", Value::Text),
    whole("arp", Value::Text),
    whole("carrier", Value::Text),
    whole("vf", Value::NotBuilt),
    begun("master", Value::LinkOr("Device does not exist\n")),
    whole("vrf", Value::Vrf("Not a valid VRF name\n")),
    begun("nomaster", Value::None),
    whole("novrf", Value::None).means("nomaster"),
    begun("dynamic", Value::Text),
    begun("alias", Value::Text),
    whole(
        "group",
        Value::Named(NameFile::Groups, "Invalid \"group\" value\n"),
    )
    .once("group"),
    whole("mode", Value::NotBuilt),
    whole("state", Value::NotBuilt),
    begun(
        "numtxqueues",
        Value::Number("Invalid \"numtxqueues\" value\n"),
    ),
    begun(
        "numrxqueues",
        Value::Number("Invalid \"numrxqueues\" value\n"),
    ),
    begun("addrgenmode", Value::Text),
    whole("link-netns", Value::NotBuilt),
    whole("link-netnsid", Value::NotBuilt),
    begun("protodown", Value::Text),
    begun("protodown_reason", Value::NotBuilt),
    whole(
        "gso_max_size",
        Value::Number("Invalid \"gso_max_size\" value\n"),
    ),
    whole(
        "gso_max_segs",
        Value::Number("Invalid \"gso_max_segs\" value\n"),
    ),
    whole(
        "gro_max_size",
        Value::Number("Invalid \"gro_max_size\" value\n"),
    ),
    whole("parentdev", Value::NotBuilt),
    whole("dev", Value::Text),
];

/// What a line says of a link.
#[derive(Default)]
struct Line<'a> {
    name: Option<&'a str>,
    renamed: Option<&'a str>,
    settings: LinkSettings,
    lower: Option<u32>,
    index: u32,
    tx_queues: Option<u32>,
    rx_queues: Option<u32>,
    group: Option<u32>,
    /// The kind, and the words behind it.
    kind: Option<(&'a str, &'a [String])>,
}

/// `ip link set`.
pub fn set(session: &mut Session, arguments: &[String]) -> Result<(), Stop> {
    let line = read(session, arguments)?;
    if let Some(name) = line.renamed {
        check_name("name", name)?;
    }
    let mut settings = line.settings;
    settings.kind = match line.kind {
        None => None,
        // Of other kinds more is sent than what is said.
        Some((kind @ "bridge", words)) => Some(kind_of(session, kind, words)?),
        Some((kind, _)) => return Err(Stop::NotBuilt(format!("ip link set … type {kind}"))),
    };
    if line.index != 0 && settings.netns.is_none() {
        return Err(Stop::wrong(
            "index can be used only when creating devices or when moving device to another netns.",
        ));
    }
    settings.name = line.renamed.map(Into::into);
    settings.group = line.group;
    // Without `dev` the new name is the link's own.
    let index = match (line.name.or(line.renamed), line.group) {
        (Some(name), _) => session.index(name)?,
        (None, Some(_)) => 0,
        (None, None) => return Err(no_dev()),
    };
    lengths(session, index, &settings)?;
    session.apply(|sequence, out| {
        let request = request(sequence, 0);
        let _ = encode::set_link(out, &request, index, &settings);
    })?;
    session.links_changed();
    Ok(())
}

/// Whether a new address is as long as the one that a link has.
fn lengths(session: &Session, index: u32, settings: &LinkSettings) -> Result<(), Stop> {
    let Some(wanted) = settings.address else {
        return Ok(());
    };
    let Some(link) = linux::once::link(index, &session.namespace)? else {
        return Ok(());
    };
    let (wanted, len) = (wanted.octets().len(), link.address.octets().len());
    match wanted == len {
        true => Ok(()),
        false => Err(Stop::failed(format!(
            "Invalid address length {wanted} - must be {len} bytes"
        ))),
    }
}

/// `ip link property add|delete dev NAME altname NAME…`
pub fn property(session: &mut Session, arguments: &[String]) -> Result<(), Stop> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Stop::wrong(super::usage::of_object(
            "ip link property",
            "add | delete",
        )));
    };
    let operation = match command.as_str() {
        word if grammar::begins(word, "add") => Operation::New,
        word if grammar::begins(word, "delete") => Operation::Delete,
        // `ip` says that one is missing.
        _ => return Err(Stop::wrong("Operator required")),
    };
    let (mut index, mut names) = (None, Vec::new());
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "dev" => {
                let name = words.next().ok_or_else(Stop::incomplete)?;
                index = Some(session.index(name)?);
            }
            "altname" => {
                let name = words.next().ok_or_else(Stop::incomplete)?;
                names.push(name.as_str());
            }
            name if index.is_none() => index = Some(session.index(name)?),
            other => return Err(Stop::garbage("dev", other)),
        }
    }
    let index = index
        .ok_or_else(|| Stop::wrong("Not enough of information: \"dev\" argument is required."))?;
    session.apply(|sequence, out| {
        let flags = request_flag::EXCL | request_flag::CREATE | request_flag::APPEND;
        let request = Request {
            operation,
            flags: match operation {
                Operation::New => flags,
                Operation::Delete => 0,
            },
            sequence,
            now_millis: 0,
        };
        let _ = encode::alternative_names(out, &request, index, &names);
    })?;
    session.links_changed();
    Ok(())
}

/// `ip link delete`.
pub fn delete(session: &mut Session, arguments: &[String]) -> Result<(), Stop> {
    let line = read(session, arguments)?;
    if line.name == Some("") {
        return Err(Stop::argument("", "\"dev\" not a valid ifname"));
    }
    let request = |sequence| Request {
        operation: Operation::Delete,
        ..request(sequence, 0)
    };
    match (line.name.or(line.renamed), line.group) {
        (Some(name), _) => {
            let index = session.index(name)?;
            session.apply(|sequence, out| {
                let _ = encode::delete_link(out, &request(sequence), index);
            })?;
        }
        (None, Some(group)) => session.apply(|sequence, out| {
            let _ = encode::delete_link_group(out, &request(sequence), group);
        })?,
        (None, None) => return Err(no_dev()),
    }
    session.links_changed();
    Ok(())
}

/// `ip link add`.
pub fn add(session: &mut Session, arguments: &[String]) -> Result<(), Stop> {
    let line = read(session, arguments)?;
    let Some((kind, words)) = line.kind else {
        return Err(Stop::failed(
            "Not enough information: \"type\" argument is required",
        ));
    };
    let name = line.name.or(line.renamed);
    check_names(&line)?;
    let settings = line.settings;
    if settings.flags_changed != 0 || settings.addr_gen_mode.is_some() {
        return Err(Stop::NotBuilt("a flag, of a link that is made".to_owned()));
    }
    let limits = [
        settings.gso_max_size,
        settings.gso_max_segs,
        settings.gro_max_size,
    ];
    let switches = [settings.proto_down, settings.carrier];
    if limits.iter().any(Option::is_some) || switches.iter().any(Option::is_some) {
        let what = "a limit of offloading, protodown or carrier, of a link that is made";
        return Err(Stop::NotBuilt(what.to_owned()));
    }
    let kind = kind_of(session, kind, words)?;
    let link = NewLink {
        end: LinkEnd {
            name: name.unwrap_or_default().into(),
            index: line.index,
            up: settings.up == Some(true),
            mtu: settings.mtu,
            address: settings.address,
            broadcast: settings.broadcast,
            group: line.group,
            tx_queue_len: settings.tx_queue_len,
            tx_queues: line.tx_queues,
            rx_queues: line.rx_queues,
            netns: settings.netns,
        },
        master: settings.master,
        lower: line.lower,
        alias: settings.alias,
        kind,
    };
    session.apply(|sequence, out| {
        let flags = request_flag::CREATE | request_flag::EXCL;
        let _ = encode::new_link(out, &request(sequence, flags), &link);
    })?;
    session.links_changed();
    Ok(())
}

/// The kind that is made, with its options.
fn kind_of(session: &mut Session, kind: &str, words: &[String]) -> Result<LinkKind, Stop> {
    if kind == "veth" {
        return veth(session, words);
    }
    let names_network = |word: &String| ["id", "vni", "external"].contains(&word.as_str());
    if kind == "vxlan" && !words.iter().any(names_network) {
        return Err(Stop::Said {
            status: REFUSED,
            text: "Error: Required attributes not provided to perform the operation.".to_owned(),
        });
    }
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    if kind == "vxlan" {
        vxlan(&texts)?;
    }
    let mut missing = None;
    let read = kind_of_words(kind, &texts, &mut |name| {
        let found = session.index(name).ok();
        if found.is_none() {
            missing = Some(name.to_owned());
        }
        found
    });
    match read {
        Ok(kind) => Ok(kind),
        Err(_) if missing.is_some() => Err(Stop::no_device(&missing.unwrap_or_default())),
        Err(KindError::Unknown { kind }) => Err(Stop::NotBuilt(format!("type {kind}"))),
        Err(KindError::Option { kind, word }) => Err(Stop::NotBuilt(format!("{kind} {word}"))),
        Err(KindError::Missing { .. }) => Err(Stop::incomplete()),
        Err(KindError::Value {
            kind: "macvlan" | "macvtap",
            word,
            value,
            ..
        }) if word == "mode" => Err(Stop::failed(format!(
            "Error: argument of \"mode\" must be \"private\", \"vepa\", \"bridge\", \"passthru\" or \
             \"source\", not \"{value}\""
        ))),
        Err(KindError::Value { word, value, .. }) => {
            Err(Stop::argument(&value, &format!("invalid {word}")))
        }
        Err(error) => Err(Stop::wrong(format!("Error: {error}"))),
    }
}

/// What `ip` says of a VXLAN's words that each alone are right.
fn vxlan(words: &[&str]) -> Result<(), Stop> {
    let value = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(word))?;
        words.get(at + 1).copied()
    };
    if let Some(id) = value(&["id", "vni"])
        && grammar::number(id).is_none_or(|id| id >> 24 != 0)
    {
        return Err(Stop::argument(id, "invalid id"));
    }
    if value(&["remote"]).is_some() && value(&["group"]).is_some() {
        return Err(Stop::failed(
            "vxlan: both group and remote cannot be specified",
        ));
    }
    let is_v6 = |address: &&str| address.contains(':');
    let remote = value(&["remote", "group"]);
    if let (Some(remote), Some(local)) = (remote, value(&["local"]))
        && is_v6(&remote) != is_v6(&local)
    {
        let family = if is_v6(&remote) {
            table::AF_INET6
        } else {
            table::AF_INET
        };
        grammar::address(local, Some(family))?;
    }
    Ok(())
}

/// A veth with what is said of its peer.
fn veth(session: &mut Session, words: &[String]) -> Result<LinkKind, Stop> {
    let mut peer = LinkEnd::default();
    let Some((first, rest)) = words.split_first() else {
        return Ok(LinkKind::Veth {
            peer: Box::new(peer),
        });
    };
    if first != "peer" {
        return Err(Stop::NotBuilt(format!("veth {first}")));
    }
    let line = read(session, rest)?;
    if line.kind.is_some() || line.lower.is_some() || line.settings.master.is_some() {
        return Err(Stop::NotBuilt("these words of a veth's peer".to_owned()));
    }
    check_names(&line)?;
    if let Some(name) = line.name.or(line.renamed) {
        peer.name = name.into();
    }
    let settings = line.settings;
    peer.index = line.index;
    peer.up = settings.up == Some(true);
    peer.mtu = settings.mtu;
    peer.address = settings.address;
    peer.broadcast = settings.broadcast;
    peer.group = line.group;
    peer.tx_queue_len = settings.tx_queue_len;
    peer.tx_queues = line.tx_queues;
    peer.rx_queues = line.rx_queues;
    peer.netns = settings.netns;
    Ok(LinkKind::Veth {
        peer: Box::new(peer),
    })
}

fn request(sequence: u32, flags: u16) -> Request {
    Request {
        operation: Operation::New,
        flags,
        sequence,
        now_millis: 0,
    }
}

fn no_dev() -> Stop {
    Stop::wrong("Not enough information: \"dev\" argument is required.")
}

/// Whether the name of a new link is one: without a word before it, one that
/// is too long is for the kernel to refuse.
fn check_names(line: &Line<'_>) -> Result<(), Stop> {
    match (line.name, line.renamed) {
        (Some(name), _) => check_name("dev", name),
        (None, Some(name)) => check_name("name", name),
        (None, None) => Ok(()),
    }
}

/// Whether a name is one that the kernel would take; `word` stands before it.
fn check_name(word: &str, name: &str) -> Result<(), Stop> {
    let is_wrong = |byte: u8| byte == b'/' || byte.is_ascii_whitespace();
    if word == "dev" && name.len() > MAX_NAME {
        return Err(Stop::Said {
            status: REFUSED,
            text: "Error: Attribute failed policy validation.".to_owned(),
        });
    }
    match name.is_empty() || name.len() > MAX_NAME || name.bytes().any(is_wrong) {
        true => Err(Stop::argument(
            name,
            &format!("\"{word}\" not a valid ifname"),
        )),
        false => Ok(()),
    }
}

/// Reads what stands behind `add`, `set`, `delete` or `peer`.
fn read<'a>(session: &mut Session, arguments: &'a [String]) -> Result<Line<'a>, Stop> {
    let at = kind_at(arguments);
    let before = arguments.get(..at).unwrap_or(arguments);
    let mut line = Line::default();
    for told in grammar::read(KEYS, before, session)? {
        take(session, &told, &mut line)?;
    }
    if at < arguments.len() {
        let kind = arguments.get(at + 1).ok_or_else(Stop::incomplete)?;
        line.kind = Some((kind, arguments.get(at + 2..).unwrap_or_default()));
    }
    Ok(line)
}

/// Where `type` stands, if it does; else the end.
fn kind_at(arguments: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        match grammar::meant(KEYS, word) {
            Some(key) if matches!(key.value, Value::None) => at += 1,
            Some(_) => at += 2,
            None if grammar::begins(word, "type") => return at,
            None => at += 1,
        }
    }
    arguments.len()
}

/// Takes in one word.
fn take<'a>(session: &mut Session, told: &Told<'a>, line: &mut Line<'a>) -> Result<(), Stop> {
    let value = told.value;
    let settings = &mut line.settings;
    let Some(key) = told.key else {
        if line.name.is_some() {
            return Err(Stop::garbage("dev", told.said));
        }
        line.name = Some(told.said);
        return Ok(());
    };
    match key.means {
        "up" => settings.up = Some(true),
        "down" => settings.up = Some(false),
        "name" => line.renamed = Some(value),
        "dev" if line.name.is_some() => return Err(Stop::garbage("dev", value)),
        "dev" => line.name = Some(value),
        "index" if number(value) == 0 => {
            return Err(Stop::argument(value, "Invalid \"index\" value"));
        }
        "index" => line.index = number(value),
        "link" => line.lower = Some(session.index(value)?),
        "address" => settings.address = Some(lladdr(value)?),
        "broadcast" => settings.broadcast = Some(lladdr(value)?),
        "txqueuelen" => settings.tx_queue_len = Some(number(value)),
        "mtu" => settings.mtu = Some(number(value)),
        "master" | "vrf" => settings.master = Some(session.index(value)?),
        "nomaster" => settings.master = Some(0),
        "alias" => settings.alias = Some(value.into()),
        "group" => {
            let group = session.names.number(NameFile::Groups, value);
            let known = group.filter(|group| *group != u32::MAX);
            let wrong = || Stop::argument(value, "Invalid \"group\" value\n");
            line.group = Some(known.ok_or_else(wrong)?);
        }
        "numtxqueues" => line.tx_queues = Some(number(value)),
        "numrxqueues" => line.rx_queues = Some(number(value)),
        "gso_max_size" => settings.gso_max_size = Some(number(value)),
        "gso_max_segs" => settings.gso_max_segs = Some(number(value)),
        "gro_max_size" => settings.gro_max_size = Some(number(value)),
        "netns" => {
            let other = session.other(value)?;
            settings.netns = Some(LinkNetns::Fd(other.as_fd().as_raw_fd()));
        }
        "carrier" => settings.carrier = Some(one_of(told)?),
        "protodown" => settings.proto_down = Some(one_of(told)?),
        "addrgenmode" => {
            let modes = ["eui64", "none", "stable_secret", "random"];
            let mode = modes.iter().position(|mode| *mode == value);
            let mode = mode.and_then(|mode| u8::try_from(mode).ok());
            settings.addr_gen_mode = Some(
                mode.ok_or_else(|| Stop::argument(value, "Invalid address generation mode\n"))?,
            );
        }
        flags => {
            let bit = match flags {
                "multicast" => flag::MULTICAST,
                "allmulticast" => flag::ALLMULTI,
                "promisc" => flag::PROMISC,
                "trailers" => flag::NOTRAILERS,
                "arp" => flag::NOARP,
                "dynamic" => flag::DYNAMIC,
                _ => return Err(Stop::NotBuilt(told.said.to_owned())),
            };
            // The bits of these two say the opposite of their words.
            let inverted = matches!(flags, "arp" | "trailers");
            settings.flags_changed |= bit;
            settings.flags &= !bit;
            if on_off(told)? != inverted {
                settings.flags |= bit;
            }
        }
    }
    Ok(())
}

/// A number that the grammar has looked at.
fn number(text: &str) -> u32 {
    grammar::number(text).unwrap_or_default()
}

fn lladdr(text: &str) -> Result<LinkLayerAddress, Stop> {
    if !text.contains([':', '.']) && text.len() > 2 {
        return Err(Stop::NotBuilt(format!("the address {text}")));
    }
    words::line::lladdr(text).map_err(|_| Stop::failed(format!("\"{text}\" is invalid lladdr.")))
}

/// The same of newer words, of which `ip` says another thing.
fn one_of(told: &Told<'_>) -> Result<bool, Stop> {
    on_off(told).map_err(|_| Stop::Left {
        status: INVALID,
        text: format!(
            "Error: argument of \"{}\" must be one of \"off\", \"on\", not \"{}\"",
            told.said, told.value
        ),
    })
}

fn on_off(told: &Told<'_>) -> Result<bool, Stop> {
    match told.value {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Stop::failed(format!(
            "Error: argument of \"{}\" must be \"on\" or \"off\", not \"{other}\"",
            told.key.map_or(told.said, |key| key.name)
        ))),
    }
}
