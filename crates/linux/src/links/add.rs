//! New links with their addresses, packed, without a look at what is there.

use std::borrow::Cow;

use netlink::decode::{self, Operation};
use netlink::encode::{self, LinkKind, LinkSettings, NewLink, Request};
use netlink::message::{Message, flag};
use table::Address;

use super::listing::named;
use super::set::lost_answer;
use super::{Cost, Failure, How, Told};
use crate::bulk::{Bulk, Heard};
use crate::error::{Error, Refusal};
use crate::namespace::Namespace;
use crate::socket::Socket;

/// So often a request is sent again whose answer was lost.
const TRIES: usize = 3;

/// A link to be made, and what it gets as soon as it is there.
#[derive(Debug, Clone)]
pub struct New {
    /// The link. The mark of ours is `end.group`, of a peer too.
    pub link: NewLink,
    /// Its addresses; whose `link` is filled in.
    pub addresses: Vec<Address>,
    /// Those of a veth's peer.
    pub peer_addresses: Vec<Address>,
    /// The indexes of link and peer (0: none), if an earlier run has made
    /// it: only its addresses are given.
    pub there: Option<(u32, u32)>,
}

impl New {
    /// A link without addresses.
    pub fn of(link: NewLink) -> Self {
        Self {
            link,
            addresses: Vec::new(),
            peer_addresses: Vec::new(),
            there: None,
        }
    }
}

/// How an addition ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Links that are there, with all they were to get.
    pub done: usize,
    /// Links that are not, or lack something.
    pub failed: usize,
    /// It was told to stop before the last.
    pub stopped: bool,
    /// What it took.
    pub cost: Cost,
}

/// Makes links in a namespace, in order. `peers` is the namespace of the
/// veths' peers, if another, to give them addresses. A failure does not
/// stop the rest. Two requests a link at most, packed; memory: a pack.
pub fn add(
    namespace: &Namespace,
    peers: Option<&Namespace>,
    links: impl IntoIterator<Item = New>,
    how: How<'_>,
    told: &mut dyn FnMut(Told),
) -> Result<Added, Error> {
    let mut adding = Adding {
        // What is begun of a pack is brought to its end.
        requests: Bulk::open(namespace, How { stop: None, ..how }.options(true))?,
        peer_requests: match peers {
            Some(peers) => Some(Bulk::open(peers, How { stop: None, ..how }.options(false))?),
            None => None,
        },
        questions: Socket::open(namespace)?,
        added: Added::default(),
        told,
    };
    let mut links = links.into_iter();
    let mut first = 0;
    let size = adding.requests.pack();
    loop {
        if how.is_stopped() {
            adding.added.stopped = true;
            break;
        }
        let pack: Vec<New> = links.by_ref().take(size).collect();
        if pack.is_empty() {
            break;
        }
        adding.pack(&pack, first)?;
        first += pack.len();
    }
    Ok(adding.added)
}

struct Adding<'a> {
    requests: Bulk<'a>,
    peer_requests: Option<Bulk<'a>>,
    /// For questions after a lost answer.
    questions: Socket,
    added: Added,
    told: &'a mut dyn FnMut(Told),
}

/// What is known of a link of a pack.
#[derive(Debug, Default, Clone, Copy)]
struct Made {
    index: u32,
    peer: u32,
    failed: bool,
}

/// An address that is to be given: to the link at a place of the pack.
struct Give<'a> {
    place: usize,
    index: u32,
    address: &'a Address,
}

impl Adding<'_> {
    fn pack(&mut self, pack: &[New], first: usize) -> Result<(), Error> {
        let mut made = vec![Made::default(); pack.len()];
        self.make(pack, first, &mut made)?;
        self.peers_up(pack, first, &mut made)?;
        self.addresses(pack, first, &mut made)?;
        for (place, made) in made.iter().enumerate() {
            if made.failed {
                self.added.failed += 1;
            } else {
                self.added.done += 1;
                (self.told)(Told::Done {
                    place: first + place,
                    index: made.index,
                });
            }
        }
        Ok(())
    }

    fn make(&mut self, pack: &[New], first: usize, made: &mut [Made]) -> Result<(), Error> {
        for (new, made) in pack.iter().zip(made.iter_mut()) {
            if let Some((index, peer)) = new.there {
                *made = Made {
                    index,
                    peer,
                    ..Made::default()
                };
            }
        }
        let missing = pack.iter().enumerate();
        let missing = missing.filter(|(_, new)| new.there.is_none());
        let mut todo: Vec<usize> = missing.map(|(place, _)| place).collect();
        for _ in 0..TRIES {
            todo = self.try_to_make(pack, &todo, first, made)?;
            if todo.is_empty() {
                return Ok(());
            }
        }
        for place in todo {
            let lost = lost_answer();
            self.fail(pack, first, place, made, "make it", lost);
        }
        Ok(())
    }

    /// Gives the places of which nothing is known.
    fn try_to_make(
        &mut self,
        pack: &[New],
        todo: &[usize],
        first: usize,
        made: &mut [Made],
    ) -> Result<Vec<usize>, Error> {
        let mut lost = Vec::new();
        let mut refused = Vec::new();
        let requests = todo.iter().filter_map(|place| pack.get(*place)).map(|new| {
            move |sequence, out: &mut Vec<u8>| {
                // What is too long makes no message, and is refused for it.
                let _ = encode::new_link(out, &request(sequence), &sent(&new.link));
            }
        });
        let Self {
            requests: bulk,
            added,
            told,
            ..
        } = self;
        bulk.run(requests, &mut |heard| {
            let place_of = |at: usize| todo.get(at).copied();
            match heard {
                Heard::Echo(at, message) => {
                    let place = place_of(at);
                    let entry =
                        place.and_then(|place| Some((made.get_mut(place)?, pack.get(place)?)));
                    if let Some((entry, new)) = entry {
                        learn(&message, new, entry);
                    }
                }
                Heard::Refused(at, refusal) => refused.extend(place_of(at).map(|at| (at, refusal))),
                Heard::Lost(at) => lost.extend(place_of(at)),
                Heard::Done(_) => {}
                Heard::Sent(sent) => {
                    added.cost.count(&sent);
                    let places = first + sent.places.start..first + sent.places.end;
                    told(Told::Sent(crate::bulk::Sent { places, ..sent }));
                }
            }
        })?;
        for (place, refusal) in refused {
            let peer = pack.get(place).and_then(|new| match &new.link.kind {
                LinkKind::Veth { peer } => Some(&peer.name),
                LinkKind::Other { .. } => None,
            });
            let tried = match peer {
                Some(peer) => format!("make it with its peer {peer}"),
                None => "make it".to_owned(),
            };
            self.fail(pack, first, place, made, &tried, refusal);
        }
        self.ask_for(pack, lost, made)
    }

    /// Looks whether links are there whose answer was lost; gives those
    /// that are not.
    fn ask_for(
        &mut self,
        pack: &[New],
        lost: Vec<usize>,
        made: &mut [Made],
    ) -> Result<Vec<usize>, Error> {
        let mut missing = Vec::new();
        for place in lost {
            let (Some(new), Some(entry)) = (pack.get(place), made.get_mut(place)) else {
                continue;
            };
            match named(&self.questions, &new.link.end.name)? {
                Some(link) if new.link.end.group.is_some_and(|group| group == link.group) => {
                    *entry = Made {
                        index: link.index,
                        peer: link.lower.unwrap_or(0),
                        failed: false,
                    };
                }
                _ => missing.push(place),
            }
        }
        Ok(missing)
    }

    /// Sets up the peers that are to be up.
    fn peers_up(&mut self, pack: &[New], first: usize, made: &mut [Made]) -> Result<(), Error> {
        let places: Vec<usize> = pack
            .iter()
            .zip(made.iter())
            .enumerate()
            .filter(|(_, (new, made))| !made.failed && is_peer_up(&new.link))
            .map(|(place, _)| place)
            .collect();
        let peers: Vec<u32> = places
            .iter()
            .filter_map(|place| made.get(*place).map(|made| made.peer))
            .collect();
        let settings = LinkSettings {
            up: Some(true),
            ..LinkSettings::default()
        };
        let requests = peers.iter().map(|peer| {
            let settings = &settings;
            move |sequence, out: &mut Vec<u8>| {
                let request = Request {
                    flags: 0,
                    ..request(sequence)
                };
                // Numbers always fit.
                let _ = encode::set_link(out, &request, *peer, settings);
            }
        });
        let mut refused = Vec::new();
        let cost = &mut self.added.cost;
        let bulk = self.peer_requests.as_mut().unwrap_or(&mut self.requests);
        bulk.run(requests, &mut |heard| match heard {
            Heard::Refused(at, refusal) => refused.extend(places.get(at).map(|at| (*at, refusal))),
            Heard::Lost(at) => refused.extend(places.get(at).map(|at| (*at, lost_answer()))),
            Heard::Sent(sent) => cost.count(&sent),
            Heard::Done(_) | Heard::Echo(..) => {}
        })?;
        for (place, refusal) in refused {
            self.fail(pack, first, place, made, "set its peer up", refusal);
        }
        Ok(())
    }

    fn addresses(&mut self, pack: &[New], first: usize, made: &mut [Made]) -> Result<(), Error> {
        let mut here = Vec::new();
        let mut there = Vec::new();
        let separate = self.peer_requests.is_some();
        for (place, (new, made)) in pack.iter().zip(made.iter()).enumerate() {
            if made.failed {
                continue;
            }
            here.extend(new.addresses.iter().map(|address| Give {
                place,
                index: made.index,
                address,
            }));
            let of_peer = new.peer_addresses.iter().map(|address| Give {
                place,
                index: made.peer,
                address,
            });
            if separate {
                there.extend(of_peer);
            } else {
                here.extend(of_peer);
            }
        }
        let mut refused = give(&mut self.requests, &here, &mut self.added.cost)?;
        if let Some(bulk) = &mut self.peer_requests {
            refused.extend(give(bulk, &there, &mut self.added.cost)?);
        }
        for (place, address, refusal) in refused {
            let tried = format!("give it {}/{}", address.local, address.prefix_len);
            self.fail(pack, first, place, made, &tried, refusal);
        }
        Ok(())
    }

    fn fail(
        &mut self,
        pack: &[New],
        first: usize,
        place: usize,
        made: &mut [Made],
        tried: &str,
        refusal: Refusal,
    ) {
        if let Some(made) = made.get_mut(place) {
            made.failed = true;
        }
        let name = pack.get(place).map(|new| new.link.end.name.clone());
        (self.told)(Told::Failed(Failure {
            place: first + place,
            name: name.unwrap_or_default(),
            tried: tried.to_owned(),
            refusal,
        }));
    }
}

fn request(sequence: u32) -> Request {
    Request {
        operation: Operation::New,
        flags: flag::CREATE | flag::EXCL | flag::ECHO,
        sequence,
        now_millis: 0,
    }
}

/// A link as it is sent: the kernel sets a veth's peer up before it has its
/// other end, and fails (`ENOTCONN`); so the peer is set up afterwards.
fn sent(link: &NewLink) -> Cow<'_, NewLink> {
    if !is_peer_up(link) {
        return Cow::Borrowed(link);
    }
    let mut link = link.clone();
    if let LinkKind::Veth { peer } = &mut link.kind {
        peer.up = false;
    }
    Cow::Owned(link)
}

fn is_peer_up(link: &NewLink) -> bool {
    matches!(&link.kind, LinkKind::Veth { peer } if peer.up)
}

/// The indexes, from what the kernel made of a request.
fn learn(message: &Message<'_>, new: &New, made: &mut Made) {
    if new.peer_addresses.is_empty() && !is_peer_up(&new.link) {
        made.index = decode::link_index(message.payload).unwrap_or(made.index);
    } else if let Ok(link) = decode::link(message.payload) {
        made.index = link.index;
        made.peer = link.lower.unwrap_or(made.peer);
    }
}

/// Gives addresses. One that is there already is well: it can only have
/// been given by us, to a link that we made.
fn give<'a>(
    bulk: &mut Bulk<'_>,
    gives: &[Give<'a>],
    cost: &mut Cost,
) -> Result<Vec<(usize, &'a Address, Refusal)>, Error> {
    let mut refused = Vec::new();
    let mut todo: Vec<&Give<'a>> = gives.iter().collect();
    for attempt in 1..=TRIES {
        let mut lost = Vec::new();
        let requests = todo.iter().map(|give| {
            let address = Address {
                link: give.index,
                ..give.address.clone()
            };
            move |sequence, out: &mut Vec<u8>| {
                let request = Request {
                    operation: Operation::New,
                    flags: flag::CREATE | flag::REPLACE,
                    sequence,
                    now_millis: 0,
                };
                let _ = encode::address(out, &request, &address);
            }
        });
        bulk.run(requests, &mut |heard| match heard {
            Heard::Refused(at, refusal) => {
                refused.extend(todo.get(at).map(|give| (give.place, give.address, refusal)));
            }
            Heard::Lost(at) if attempt == TRIES => refused.extend(
                todo.get(at)
                    .map(|give| (give.place, give.address, lost_answer())),
            ),
            Heard::Lost(at) => lost.extend(todo.get(at).copied()),
            Heard::Sent(sent) => cost.count(&sent),
            Heard::Done(_) | Heard::Echo(..) => {}
        })?;
        todo = lost;
        if todo.is_empty() {
            break;
        }
    }
    Ok(refused)
}

/// Gives addresses to links that are there; gives the number of those that
/// were refused.
pub(super) fn give_all(
    namespace: &Namespace,
    addresses: &[Address],
    told: &mut dyn FnMut(Told),
) -> Result<usize, Error> {
    if addresses.is_empty() {
        return Ok(0);
    }
    let mut bulk = Bulk::open(namespace, How::default().options(false))?;
    let gives: Vec<Give<'_>> = addresses
        .iter()
        .enumerate()
        .map(|(place, address)| Give {
            place,
            index: address.link,
            address,
        })
        .collect();
    let refused = give(&mut bulk, &gives, &mut Cost::default())?;
    let count = refused.len();
    for (place, address, refusal) in refused {
        told(Told::Failed(Failure {
            place,
            name: format!("index {}", address.link).into(),
            tried: format!("give it {}/{}", address.local, address.prefix_len),
            refusal,
        }));
    }
    Ok(count)
}
