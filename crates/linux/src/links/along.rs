//! What the kernel takes along when links are deleted: the peer of a veth,
//! and what stands on a link (VLANs, macvlans, VXLANs), in other namespaces
//! too.

use std::collections::{HashMap, HashSet};

use netlink::request::Dump;
use table::{KindData, Link};

use super::listing::{each_of, one};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::Socket;

/// Kinds whose links are pairs: one goes with the other.
const PAIRS: &[&str] = &["veth", "netkit", "vxcan"];
/// Tunnels over a link that they outlive.
const SURVIVORS: &[&str] = &[
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "sit",
    "vti",
    "vti6",
    "xfrm",
];
/// Kinds that stand on a link, perhaps one of another namespace.
const STANDING: &[&str] = &[
    "macvlan", "macvtap", "vlan", "ipvlan", "ipvtap", "vxlan", "macsec",
];
/// So many namespaces are looked through.
const MOST_NAMESPACES: usize = 4096;

/// A link that goes along with another.
#[derive(Debug, Clone)]
pub struct Along {
    /// The link. Of one in a namespace that cannot be found only the index
    /// is known.
    pub link: Link,
    /// Name of the link it goes with.
    pub with: Box<str>,
    /// Where it is, if not beside the others: name or path of the
    /// namespace; empty when it cannot be found.
    pub elsewhere: Option<String>,
    /// The other end of a pair of which one end was asked for: no stranger.
    pub is_peer: bool,
}

/// Links by their index.
pub(super) type ByIndex<'a> = HashMap<u32, &'a Link>;

/// What one deletion takes along beside `set`, given the `others` that are
/// in the namespace. O(links), and a short look into each other namespace.
pub(super) fn along(
    namespace: &Namespace,
    set: &ByIndex<'_>,
    others: &[Link],
) -> Result<Vec<Along>, Error> {
    let here = here(set, others);
    let elsewhere = elsewhere(namespace, &Gone { set, here: &here })?;
    let mut found: Vec<Along> = here.into_values().collect();
    found.sort_by_key(|along| along.link.index);
    found.extend(elsewhere);
    let pairs = set.values().filter(|link| is_pair(link));
    let pairs: HashSet<&str> = pairs.map(|link| &*link.name).collect();
    for along in &mut found {
        along.is_peer = is_pair(&along.link) && pairs.contains(&*along.with);
    }
    Ok(found)
}

/// All that goes from the namespace.
struct Gone<'a> {
    set: &'a ByIndex<'a>,
    here: &'a HashMap<u32, Along>,
}

impl Gone<'_> {
    fn get(&self, index: u32) -> Option<&Link> {
        let here = || self.here.get(&index).map(|along| &along.link);
        self.set.get(&index).copied().or_else(here)
    }

    fn iter(&self) -> impl Iterator<Item = &Link> {
        let here = self.here.values().map(|along| &along.link);
        self.set.values().copied().chain(here)
    }
}

/// What goes along inside the namespace, by index. A pass over the others
/// for each level of links on links.
fn here(set: &ByIndex<'_>, others: &[Link]) -> HashMap<u32, Along> {
    let mut found: HashMap<u32, Along> = HashMap::new();
    loop {
        let found_before = found.len();
        for link in others {
            if found.contains_key(&link.index) {
                continue;
            }
            let gone = Gone { set, here: &found };
            let with = taken_with(link).and_then(|lower| gone.get(lower));
            if let Some(with) = with.map(|with| with.name.clone()) {
                let along = Along {
                    link: link.clone(),
                    with,
                    elsewhere: None,
                    is_peer: false,
                };
                found.insert(link.index, along);
            }
        }
        if found.len() == found_before {
            return found;
        }
    }
}

/// The link of the same namespace whose end is this one's.
pub(super) fn taken_with(link: &Link) -> Option<u32> {
    let kind = link.kind.as_deref()?;
    // Its lower link is told only here.
    if let KindData::Vxlan(vxlan) = &link.kind_data {
        return vxlan.link;
    }
    if link.lower_netns_id.is_some() || SURVIVORS.contains(&kind) {
        return None;
    }
    link.lower
        .filter(|lower| *lower != link.index && *lower != 0)
}

pub(super) fn is_pair(link: &Link) -> bool {
    link.kind
        .as_deref()
        .is_some_and(|kind| PAIRS.contains(&kind))
}

/// What goes along in other namespaces.
fn elsewhere(namespace: &Namespace, gone: &Gone<'_>) -> Result<Vec<Along>, Error> {
    let peers: Vec<&Link> = gone
        .iter()
        .filter(|link| is_pair(link) && link.lower_netns_id.is_some())
        .collect();
    let others = namespace.others(MOST_NAMESPACES);
    let ids = if peers.is_empty() {
        HashMap::new()
    } else {
        numbers(namespace, &others)?
    };
    let mut found = Vec::new();
    let mut wanted: HashMap<usize, Vec<&Link>> = HashMap::new();
    for link in peers {
        match link.lower_netns_id.and_then(|id| ids.get(&id)) {
            Some(at) => wanted.entry(*at).or_default().push(link),
            None => found.push(unknown_peer(link)),
        }
    }
    let mut unknown = HashSet::new();
    let sockets = Socket::open_in_each(&others)?;
    for (at, (other, socket)) in others.iter().zip(sockets).enumerate() {
        let peers = wanted.remove(&at).unwrap_or_default();
        match socket {
            Some(socket) => {
                let other = (other, socket);
                look_into(namespace, other, gone, &peers, &mut unknown, &mut found)?;
            }
            // It may not be entered: its links are another user's.
            None => found.extend(peers.into_iter().map(unknown_peer)),
        }
    }
    found.sort_by_key(|along| along.link.index);
    Ok(found)
}

fn unknown_peer(link: &Link) -> Along {
    Along {
        link: Link {
            index: link.lower.unwrap_or(0),
            kind: link.kind.clone(),
            ..Link::default()
        },
        with: link.name.clone(),
        elsewhere: Some(String::new()),
        is_peer: false,
    }
}

/// Finds in another namespace the peers of some of our links, and what
/// stands on others. `unknown` gathers kinds that the kernel does not have.
fn look_into(
    ours: &Namespace,
    (other, mut socket): (&Namespace, Socket),
    gone: &Gone<'_>,
    peers: &[&Link],
    unknown: &mut HashSet<&'static str>,
    found: &mut Vec<Along>,
) -> Result<(), Error> {
    let place = Some(other.spec());
    let mut there: HashMap<u32, Box<str>> = HashMap::new();
    for link in peers {
        let peer = link.lower.map(|index| one(&socket, index));
        found.push(match peer.transpose()?.flatten() {
            Some(peer) => {
                there.insert(peer.index, peer.name.clone());
                Along {
                    link: peer,
                    with: link.name.clone(),
                    elsewhere: place.clone(),
                    is_peer: false,
                }
            }
            None => unknown_peer(link),
        });
    }
    let mut standing = Vec::new();
    for kind in STANDING {
        if unknown.contains(kind) {
            continue;
        }
        let counters = false;
        let of_kind = Dump::LinksOfKind { kind, counters };
        let all_are = each_of(&socket, &of_kind, &mut |link| {
            let is_kind = link.kind.as_deref() == Some(*kind);
            let on_peer = taken_with(&link).and_then(|lower| there.get(&lower));
            if let (true, Some(peer)) = (is_kind, on_peer) {
                found.push(Along {
                    with: peer.clone(),
                    link,
                    elsewhere: place.clone(),
                    is_peer: false,
                });
            } else if is_kind && link.lower_netns_id.is_some() {
                standing.push(link);
            }
            is_kind
        })?;
        if !all_are {
            // The kernel knows no such kind, and answers with all links;
            // the rest of them is still on this socket.
            unknown.insert(*kind);
            socket = Socket::open(other)?;
        }
    }
    if standing.is_empty() {
        return Ok(());
    }
    let number = crate::once::number_of(&socket, ours)?;
    for link in standing {
        let with = link.lower.and_then(|lower| gone.get(lower));
        if let (Some(with), true) = (with, link.lower_netns_id == number) {
            found.push(Along {
                with: with.name.clone(),
                link,
                elsewhere: place.clone(),
                is_peer: false,
            });
        }
    }
    Ok(())
}

/// The place in `others` of each namespace that has a number in ours.
fn numbers(namespace: &Namespace, others: &[Namespace]) -> Result<HashMap<i32, usize>, Error> {
    let socket = Socket::open(namespace)?;
    let mut numbers = HashMap::new();
    for (at, other) in others.iter().enumerate() {
        if let Some(number) = crate::once::number_of(&socket, other)? {
            numbers.insert(number, at);
        }
    }
    Ok(numbers)
}
