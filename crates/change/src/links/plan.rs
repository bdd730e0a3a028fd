//! What `link add` is asked to make: patterns and numbers, checked, and
//! turned into links one by one.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result, anyhow, bail};
use ipnet::IpNet;
use linux::Namespace;
use linux::links::New;
use linux::socket::Socket;
use netlink::encode::{LinkEnd, LinkKind, LinkNetns, NewLink, kind_of_words};
use serde::{Deserialize, Serialize};
use table::{Address, LinkLayerAddress};

use crate::pattern::{fill, is_pattern};

/// `IFNAMSIZ` less its NUL.
const MAX_NAME: usize = 15;
/// VLANs of a parent: identifiers 1 to 4094 (IEEE 802.1Q).
const VLANS: u64 = 4094;

/// A prefix whose parts' addresses are given, and the length of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The whole.
    pub prefix: IpNet,
    /// Prefix length of a part.
    pub len: u8,
}

/// Links that are to be made. Patterns hold `{}` for the number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// `IFLA_INFO_KIND`, or `tun`, `tap`.
    pub kind: String,
    /// The kind's options, in `ip`'s words.
    pub words: Vec<String>,
    /// The first number and the last.
    pub numbers: (u64, u64),
    /// Pattern of names.
    pub name: String,
    /// Of a veth's peers.
    pub peer: Option<String>,
    /// Name or path of the peers' namespace.
    pub peer_netns: Option<String>,
    /// Links below: several take the VLANs in turn, 4,094 each.
    pub parents: Vec<String>,
    /// QinQ: pattern of the names of 802.1ad VLANs between parent and
    /// links, 4,094 links on each.
    pub qinq: Option<String>,
    /// `IFLA_MTU`, of peers too.
    pub mtu: Option<u32>,
    /// Pattern of link-layer addresses.
    pub address: Option<String>,
    /// Of the peers'.
    pub peer_address: Option<String>,
    /// Patterns of IP addresses with their prefix length.
    pub addrs: Vec<String>,
    /// Of the peers'.
    pub peer_addrs: Vec<String>,
    /// Addresses from the parts of a prefix: the first of the n-th part for
    /// the n-th link, the second for its peer.
    pub split: Option<Split>,
    /// Pattern of the names of masters.
    pub master: Option<String>,
    /// The group they are in at the end.
    pub group: Option<u32>,
    /// Up at once, peers too.
    pub up: bool,
    /// MTU, queue length and whether they are up are not the peers': in
    /// `ip`'s words they are said of the first end.
    #[serde(default)]
    pub of_first_end: bool,
    /// `IFLA_TXQLEN`.
    pub tx_queue_len: Option<u32>,
}

impl Plan {
    /// So many links.
    pub fn count(&self) -> usize {
        usize::try_from(self.numbers.1 - self.numbers.0 + 1).unwrap_or(usize::MAX)
    }

    /// Whether it is TUN or TAP devices, which no message makes.
    pub fn is_tun(&self) -> bool {
        matches!(self.kind.as_str(), "tun" | "tap")
    }

    /// The name of a number.
    pub fn name_of(&self, number: u64) -> Result<String, String> {
        filled(&self.name, number)
    }

    /// The name of a number's peer.
    pub fn peer_of(&self, number: u64) -> Result<Option<String>, String> {
        self.peer
            .as_deref()
            .map(|peer| filled(peer, number))
            .transpose()
    }

    /// Whether all of it makes sense, number by number, before anything is
    /// made.
    pub fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("the links need a name: --name 'test{}'".to_owned());
        }
        if self.peer.is_some() != (self.kind == "veth") {
            return Err(match self.peer {
                Some(_) => format!("links of kind {} have no peer", self.kind),
                None => "veths come in pairs: say what the other ends are called, --peer 'testb{}'"
                    .to_owned(),
            });
        }
        if self.peer.is_none() && (self.peer_netns.is_some() || !self.peer_addrs.is_empty()) {
            return Err("only veths have peers".to_owned());
        }
        self.check_vlans()?;
        self.check_split()?;
        let mut names = HashSet::new();
        let mut peers = HashSet::new();
        for number in self.numbers.0..=self.numbers.1 {
            let name = self.name_of(number)?;
            check_name(&name)?;
            if !names.insert(name.clone()) {
                return Err(collision(&self.name, &name, number));
            }
            if let Some(peer) = self.peer_of(number)? {
                check_name(&peer)?;
                let same = if self.peer_netns.is_some() {
                    &mut peers
                } else {
                    &mut names
                };
                if !same.insert(peer.clone()) {
                    let pattern = self.peer.as_deref().unwrap_or_default();
                    return Err(collision(pattern, &peer, number));
                }
            }
            self.addresses(number)?;
            for pattern in self.address.iter().chain(&self.peer_address) {
                lladdr(pattern, number)?;
            }
        }
        Ok(())
    }

    fn check_vlans(&self) -> Result<(), String> {
        if self.kind != "vlan" {
            return match self.qinq {
                Some(_) => Err("--qinq is for links of kind vlan".to_owned()),
                None => Ok(()),
            };
        }
        if self.parents.is_empty() {
            return Err("VLANs need a parent: --link eth0".to_owned());
        }
        if self.qinq.is_some() && self.parents.len() > 1 {
            return Err("with --qinq there is one parent".to_owned());
        }
        if self.says_id() {
            return Ok(());
        }
        let room = match self.qinq {
            Some(_) => VLANS * VLANS,
            None => VLANS * self.parents.len() as u64,
        };
        if self.count() as u64 > room {
            return Err(format!(
                "{} VLANs do not fit {} parent: {VLANS} each; name more, with commas (--link eth0,eth1), or put them on 802.1ad VLANs (--qinq 'outer{{}}')",
                self.count(),
                self.parents.len(),
            ));
        }
        Ok(())
    }

    fn says_id(&self) -> bool {
        self.words
            .iter()
            .any(|word| word == "id" || word.starts_with("id="))
    }

    fn check_split(&self) -> Result<(), String> {
        let Some(split) = &self.split else {
            return Ok(());
        };
        let whole = split.prefix.prefix_len();
        if split.len < whole || split.len > split.prefix.max_prefix_len() {
            return Err(format!(
                "{} has no parts of length {}",
                split.prefix, split.len
            ));
        }
        let parts = 1_u128 << u32::from(split.len - whole).min(127);
        if self.count() as u128 > parts {
            return Err(format!(
                "{} has {parts} parts of length {}, for {} links",
                split.prefix,
                split.len,
                self.count()
            ));
        }
        Ok(())
    }

    /// The addresses of a number's link, and of its peer.
    fn addresses(&self, number: u64) -> Result<(Vec<IpNet>, Vec<IpNet>), String> {
        let each = |patterns: &[String]| -> Result<Vec<IpNet>, String> {
            patterns
                .iter()
                .map(|pattern| address(pattern, number))
                .collect()
        };
        let (mut own, mut peer) = (each(&self.addrs)?, each(&self.peer_addrs)?);
        if let Some(split) = &self.split {
            let [first, second] = part(split, number - self.numbers.0)
                .ok_or_else(|| format!("{} has no part {number}", split.prefix))?;
            own.push(first);
            if self.peer.is_some() {
                peer.push(second);
            }
        }
        Ok((own, peer))
    }

    /// Which parent a place's VLAN is on, and its identifier.
    pub fn vlan(place: u64) -> (usize, u16) {
        ((place / VLANS) as usize, (place % VLANS) as u16 + 1)
    }

    /// The 802.1ad VLANs that stand between, as a plan of their own; to be
    /// made first.
    pub fn outer(&self) -> Option<Plan> {
        let pattern = self.qinq.as_ref()?;
        let last = Self::vlan(self.count() as u64 - 1).0 as u64 + 1;
        Some(Plan {
            kind: "vlan".to_owned(),
            words: ["protocol", "802.1ad"].map(str::to_owned).into(),
            numbers: (1, last),
            name: pattern.clone(),
            parents: self.parents.clone(),
            up: self.up,
            ..Plan::default()
        })
    }
}

fn collision(pattern: &str, name: &str, number: u64) -> String {
    let more = if is_pattern(pattern) {
        ""
    } else {
        " (a place for the number is missing: {})"
    };
    format!("`{pattern}` gives the name `{name}` twice, the second time for {number}{more}")
}

/// A pattern with a number in the place of its braces.
pub fn filled(pattern: &str, number: u64) -> Result<String, String> {
    let mut out = String::with_capacity(16);
    fill(pattern, number, &mut out)?;
    Ok(out)
}

/// What the kernel takes for a name (`dev_valid_name`), and `%`, which it
/// would take for a pattern of its own.
pub fn check_name(name: &str) -> Result<(), String> {
    let octets = table::text::octets(name).len();
    let why = if octets > MAX_NAME {
        format!("{octets} octets, {MAX_NAME} at most")
    } else if name.is_empty() || name == "." || name == ".." {
        "no name for a link".to_owned()
    } else if name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | ':' | '%')) {
        "spaces, `/`, `:` and `%` are not for names".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("`{name}`: {why}"))
}

/// `10.0.{}.1/30`: an address of a pattern.
fn address(pattern: &str, number: u64) -> Result<IpNet, String> {
    let text = filled(pattern, number)?;
    let (address, len) = text.split_once('/').unwrap_or((&text, ""));
    let parsed: Option<IpAddr> = address.parse().ok();
    let Some(parsed) = parsed else {
        return Err(format!(
            "`{pattern}` with {number} gives `{text}`, which is no address; carry on into the next octet with 10.{{/256}}.{{%256}}.1/30, or take the parts of a prefix with --split 10.0.0.0/16 --len 30"
        ));
    };
    let most = if parsed.is_ipv4() { 32 } else { 128 };
    let len = if len.is_empty() {
        Some(most)
    } else {
        len.parse().ok().filter(|len| *len <= most)
    };
    len.and_then(|len| IpNet::new(parsed, len).ok())
        .ok_or_else(|| format!("`{text}`: a prefix length up to {most} is expected"))
}

/// First and second address of a part.
fn part(split: &Split, nth: u64) -> Option<[IpNet; 2]> {
    let bits = u32::from(split.prefix.max_prefix_len() - split.len);
    // A /31 and a /32 have no network address of their own (RFC 3021).
    let skipped = u128::from(bits > 1);
    let offset = u128::from(nth).checked_shl(bits)?;
    let at = |host: u128| match split.prefix {
        IpNet::V4(prefix) => {
            let base = u128::from(prefix.network().to_bits());
            let bits = u32::try_from(base.checked_add(offset)?.checked_add(host)?).ok()?;
            IpNet::new(IpAddr::V4(bits.into()), split.len).ok()
        }
        IpNet::V6(prefix) => {
            let base = prefix.network().to_bits();
            let bits = base.checked_add(offset)?.checked_add(host)?;
            IpNet::new(IpAddr::V6(bits.into()), split.len).ok()
        }
    };
    Some([at(skipped)?, at(skipped + 1)?])
}

/// `02:00:00:{/65536}:{/256%256}:{%256}`: what stands in braces becomes an
/// octet, the others are hexadecimal.
pub fn lladdr(pattern: &str, number: u64) -> Result<LinkLayerAddress, String> {
    let octet = |text: &str| -> Option<u8> {
        if is_pattern(text) {
            filled(text, number).ok()?.parse().ok()
        } else {
            u8::from_str_radix(text, 16).ok()
        }
    };
    let octets: Option<Vec<u8>> = pattern.split(':').map(octet).collect();
    octets
        .filter(|octets| octets.len() == 6)
        .and_then(|octets| LinkLayerAddress::new(&octets))
        .ok_or_else(|| {
            format!(
                "`{pattern}` with {number} gives no link-layer address; write 02:00:00:{{/65536}}:{{/256%256}}:{{%256}}"
            )
        })
}

/// Turns a plan's numbers into links.
pub struct Maker<'a> {
    plan: &'a Plan,
    /// Marks what is ours.
    group: u32,
    questions: Socket,
    known: HashMap<String, Option<u32>>,
    /// The kind without numbers in its words.
    kind: Option<LinkKind>,
    peer_netns: Option<LinkNetns>,
    /// Indexes of the 802.1ad VLANs.
    outer: Vec<u32>,
}

impl<'a> Maker<'a> {
    /// Looks up nothing yet.
    pub fn new(
        plan: &'a Plan,
        namespace: &Namespace,
        peers: Option<&Namespace>,
        group: u32,
        outer: Vec<u32>,
    ) -> Result<Self> {
        Ok(Self {
            plan,
            group,
            questions: Socket::open(namespace)?,
            known: HashMap::new(),
            kind: None,
            peer_netns: peers.map(|peers| LinkNetns::Fd(peers.as_fd().as_raw_fd())),
            outer,
        })
    }

    /// The index of a link's name; asked for once.
    fn index(&mut self, name: &str) -> Result<u32> {
        if let Some(known) = self.known.get(name) {
            return known.ok_or_else(|| missing(name));
        }
        let link = linux::links::named(&self.questions, name)
            .with_context(|| format!("looking up the link {name}"))?;
        let index = link.map(|link| link.index);
        self.known.insert(name.to_owned(), index);
        index.ok_or_else(|| missing(name))
    }

    /// The link of a number.
    pub fn make(&mut self, number: u64) -> Result<New> {
        let plan = self.plan;
        let text = |text: Result<String, String>| text.map_err(|why| anyhow!(why));
        let end = |name: String, address: &Option<String>| -> Result<LinkEnd> {
            let address = address.as_deref().map(|pattern| lladdr(pattern, number));
            Ok(LinkEnd {
                name: name.into(),
                up: plan.up,
                mtu: plan.mtu,
                address: address.transpose().map_err(|why| anyhow!(why))?,
                group: Some(self.group),
                tx_queue_len: plan.tx_queue_len,
                ..LinkEnd::default()
            })
        };
        let own = end(text(plan.name_of(number))?, &plan.address)?;
        let peer_name = plan.peer_of(number).map_err(|why| anyhow!(why))?;
        let peer = match peer_name {
            Some(name) => {
                let mut peer = end(name, &plan.peer_address)?;
                peer.netns = self.peer_netns;
                if plan.of_first_end {
                    (peer.up, peer.mtu, peer.tx_queue_len) = (false, None, None);
                }
                Some(peer)
            }
            None => None,
        };
        let kind = match peer {
            Some(peer) => LinkKind::Veth {
                peer: Box::new(peer),
            },
            // Made by their device file: the kind is never sent.
            None if plan.is_tun() => LinkKind::plain("tun"),
            None => self.kind(number)?,
        };
        let lower = self.lower(number)?;
        let master = match &plan.master {
            Some(master) => {
                let name = text(filled(master, number))?;
                Some(self.index(&name).context("its master")?)
            }
            None => None,
        };
        let (addresses, peer_addresses) = plan.addresses(number).map_err(|why| anyhow!(why))?;
        Ok(New {
            addresses: addresses.into_iter().map(row).collect(),
            peer_addresses: peer_addresses.into_iter().map(row).collect(),
            ..New::of(NewLink {
                end: own,
                master,
                lower,
                alias: None,
                kind,
            })
        })
    }

    fn lower(&mut self, number: u64) -> Result<Option<u32>> {
        let place = number - self.plan.numbers.0;
        if self.plan.qinq.is_some() {
            let (outer, _) = Plan::vlan(place);
            let index = self.outer.get(outer).copied();
            return index.map(Some).context("its 802.1ad VLAN is missing");
        }
        let parents = &self.plan.parents;
        let spread = self.plan.kind == "vlan" && !self.plan.says_id();
        let at = if spread {
            Plan::vlan(place).0
        } else {
            // Several parents without numbers of VLANs: in turn.
            (place % parents.len().max(1) as u64) as usize
        };
        let Some(parent) = parents.get(at) else {
            return Ok(None);
        };
        let name = filled(parent, number).map_err(|why| anyhow!(why))?;
        Ok(Some(self.index(&name).context("its parent")?))
    }

    fn kind(&mut self, number: u64) -> Result<LinkKind> {
        if let Some(kind) = &self.kind {
            return Ok(kind.clone());
        }
        let plan = self.plan;
        let is_numbered = plan.words.iter().any(|word| is_pattern(word));
        let mut words = Vec::new();
        for word in &plan.words {
            words.push(filled(word, number).map_err(|why| anyhow!(why))?);
        }
        let by_place = plan.kind == "vlan" && !plan.says_id();
        if by_place {
            let (_, id) = Plan::vlan(number - plan.numbers.0);
            words.extend(["id".to_owned(), id.to_string()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut failed = None;
        let kind = kind_of_words(&plan.kind, &words, &mut |name| match self.index(name) {
            Ok(index) => Some(index),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let kind = kind?;
        if !is_numbered && !by_place {
            self.kind = Some(kind.clone());
        }
        Ok(kind)
    }

    /// What concerns all links, before the first is made: the kind's words
    /// and the links that are named.
    pub fn try_first(&mut self) -> Result<()> {
        let plan = self.plan;
        for name in plan.parents.iter().chain(&plan.master) {
            if !is_pattern(name) {
                self.index(name)?;
            }
        }
        if self.plan.is_tun() {
            if !self.plan.words.is_empty() {
                bail!("{} devices have no options of their own", self.plan.kind);
            }
            return Ok(());
        }
        if self.plan.peer.is_some() && !self.plan.words.is_empty() {
            bail!("veth has no option `{}`", self.plan.words.join(" "));
        }
        if self.plan.peer.is_none() {
            self.kind(self.plan.numbers.0)?;
        }
        Ok(())
    }
}

fn missing(name: &str) -> anyhow::Error {
    anyhow!("there is no link `{name}`")
}

/// An address as `ip addr add` makes it.
fn row(net: IpNet) -> Address {
    Address {
        broadcast: match net {
            IpNet::V4(net) if net.prefix_len() < 31 => Some(net.broadcast().into()),
            _ => None,
        },
        ..Address::new(0, net.addr(), net.prefix_len())
    }
}

#[cfg(test)]
mod tests;
