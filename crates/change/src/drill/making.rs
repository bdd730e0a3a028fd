//! Links in a namespace that is ours to measure in: made packed or one by
//! one, and deleted by the groups they were made in. Called by `ifaceseq`
//! and the failover drill; links that shall stay are made by `link add`.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linux::Namespace;
use linux::bulk::{Bulk, Heard, Options, PACK_REQUESTS};
use linux::error::Refusal;
use linux::links::{Listing, advice, random_group};
use netlink::TooLong;
use netlink::decode::Operation;
use netlink::encode::{self, LinkEnd, LinkKind, NewLink, Request};
use netlink::message::flag;
use privileges::CapabilitySet;
use table::Link;

use super::pass::{Each, Pass};

/// What a VLAN and its like stand on: `parent0`, `parent1`…
const PARENT: &str = "parent";
/// VLANs on a parent (IEEE 802.1Q: 1 to 4,094).
const VLANS: u32 = 4_094;
/// The parents' group, counted from the first of the links'.
const PARENTS: u32 = 3;
/// Links whose cost is told by itself at either end of a run.
pub const END: u32 = 100;

/// A fresh namespace, or what to do instead.
pub fn fresh() -> Result<Namespace> {
    Namespace::fresh()
        .context("no namespace to measure in; run it as root, or `unshare -rn fingerpost …`")
}

/// Keeps what it takes to make links and namespaces, and to write a picture
/// where the user may; for whoever measures, which can take minutes.
pub fn give_up_the_rest() -> Result<()> {
    let links = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
    privileges::give_up_but(links | CapabilitySet::DAC_OVERRIDE)
        .context("cannot give up privileges")
}

/// How links are made: numbers from 1, `testaK` (a veth's peer `testbK`).
pub struct Making<'a> {
    namespace: &'a Namespace,
    kind: &'a str,
    count: u32,
    /// Indexes of the links' parents, for kinds that need one.
    parents: Vec<u32>,
    /// The first of three groups that nobody else uses: the links of
    /// either end, and those between, so that each can be deleted alone.
    group: u32,
}

impl<'a> Making<'a> {
    /// Gets ready: makes the parents that the kind needs.
    pub fn prepare(namespace: &'a Namespace, kind: &'a str, count: u32) -> Result<Self> {
        let mut making = Self {
            namespace,
            kind,
            count,
            parents: Vec::new(),
            group: random_group(),
        };
        making.link(1)?;
        let parents = match kind {
            "vlan" => count.div_ceil(VLANS),
            "macvlan" | "macvtap" | "ipvlan" => 1,
            _ => 0,
        };
        if parents > 0 {
            making.parents = make_parents(namespace, parents, making.group + PARENTS)?;
        }
        Ok(making)
    }

    /// Creates all, packed or one by one.
    pub fn create(&self, one_by_one: bool) -> Result<Pass> {
        self.try_create(one_by_one).map_err(|error| {
            let refused = error.downcast_ref::<Refused>();
            match refused.and_then(|refused| advice(self.kind, &refused.refusal)) {
                Some(advice) => error.context(advice),
                None => error,
            }
        })
    }

    fn try_create(&self, one_by_one: bool) -> Result<Pass> {
        let links: Vec<NewLink> = (1..=self.count)
            .map(|number| self.link(number))
            .collect::<Result<_>>()?;
        let way = if one_by_one {
            "a request at a time".to_owned()
        } else {
            format!("{PACK_REQUESTS} requests a send")
        };
        let mut timed = Timed::new(self, one_by_one)?;
        for part in self.parts() {
            let encoders = links[part].iter().map(|link| {
                move |sequence, out: &mut Vec<u8>| {
                    encode::new_link(out, &request(Operation::New, sequence), link)
                }
            });
            timed.run("create links", encoders)?;
        }
        Ok(timed.pass(way))
    }

    /// Deletes all, group by group, or by name one by one.
    pub fn delete(&self, one_by_one: bool) -> Result<Pass> {
        let mut timed = Timed::new(self, one_by_one)?;
        let parts = self.parts();
        let way = match (one_by_one, parts.len()) {
            (true, _) => "a request at a time".to_owned(),
            (false, 1) => "one request for the group".to_owned(),
            (false, groups) => format!("{groups} requests, one for each of {groups} groups"),
        };
        for (group, part) in (self.group..).zip(parts) {
            if one_by_one {
                let encoders = part.map(|at| {
                    move |sequence, out: &mut Vec<u8>| {
                        let row = Link {
                            name: name('a', at as u32 + 1),
                            ..Link::default()
                        };
                        encode::link(out, &request(Operation::Delete, sequence), &row)
                    }
                });
                timed.run("delete links", encoders)?;
            } else {
                let encoder = move |sequence, out: &mut Vec<u8>| {
                    encode::delete_link_group(out, &request(Operation::Delete, sequence), group)
                };
                timed.run("delete a group of links", [encoder])?;
            }
        }
        Ok(timed.pass(way))
    }

    /// Deletes the parents.
    pub fn clear(&self) -> Result<()> {
        if self.parents.is_empty() {
            return Ok(());
        }
        let group = self.group + PARENTS;
        let encoder = move |sequence, out: &mut Vec<u8>| {
            encode::delete_link_group(out, &request(Operation::Delete, sequence), group)
        };
        all_taken(self.namespace, "delete the parents", [encoder])
    }

    /// The first hundred, those between, and the last hundred; all
    /// together if they are few. Places from 0.
    fn parts(&self) -> Vec<Range<usize>> {
        let (count, end) = (self.count as usize, END as usize);
        if count > 2 * end {
            vec![0..end, end..count - end, count - end..count]
        } else {
            std::iter::once(0..count).collect()
        }
    }

    /// The indexes of all, and of a veth's peers.
    pub fn indexes(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        let links = Listing::read(self.namespace)?;
        let of = |letter| {
            indexes(
                &links,
                (1..=self.count).map(move |number| name(letter, number).into()),
            )
        };
        let peers = if self.kind == "veth" {
            of('b')?
        } else {
            Vec::new()
        };
        Ok((of('a')?, peers))
    }

    fn link(&self, number: u32) -> Result<NewLink> {
        let place = number as usize - 1;
        let part = self.parts().iter().position(|part| part.contains(&place));
        let group = self.group + part.unwrap_or_default() as u32;
        let end = |letter| LinkEnd {
            name: name(letter, number),
            group: Some(group),
            ..LinkEnd::default()
        };
        let (kind, lower) = if self.kind == "veth" {
            let peer = Box::new(end('b'));
            (LinkKind::Veth { peer }, None)
        } else {
            let words = self.words(number);
            let words: Vec<&str> = words.split_whitespace().collect();
            let kind = encode::kind_of_words(self.kind, &words, &mut |_| None)?;
            let parent = (number - 1) / VLANS;
            let lower = self.parents.get(parent as usize).or(self.parents.first());
            (kind, lower.copied())
        };
        Ok(NewLink {
            end: end('a'),
            master: None,
            lower,
            alias: None,
            kind,
        })
    }

    /// The options that tell links of a kind apart, where they must be.
    fn words(&self, number: u32) -> String {
        match self.kind {
            "vlan" => format!("id {}", (number - 1) % VLANS + 1),
            "vxlan" => format!("id {number} dstport 4789"),
            "geneve" => format!("id {number} remote 192.0.2.1"),
            "vrf" => format!("table {}", 1_000 + number),
            "macvlan" | "macvtap" => "mode bridge".into(),
            _ => String::new(),
        }
    }
}

/// To make a link that is not there, or to delete one.
fn request(operation: Operation, sequence: u32) -> Request {
    let flags = match operation {
        Operation::New => flag::CREATE | flag::EXCL,
        Operation::Delete => 0,
    };
    Request {
        operation,
        flags,
        sequence,
        now_millis: 0,
    }
}

/// Makes the parents and gives their indexes. The first end is up, but has
/// no carrier: a peer that is to come up in the request that makes it is
/// refused, since its own peer is not there yet.
fn make_parents(namespace: &Namespace, count: u32, group: u32) -> Result<Vec<u32>> {
    let end = |name: String, up| LinkEnd {
        name: name.into(),
        up,
        group: Some(group),
        ..LinkEnd::default()
    };
    let encoders = (0..count).map(|number| {
        let peer = Box::new(end(format!("{PARENT}-peer{number}"), false));
        let link = NewLink {
            end: end(format!("{PARENT}{number}"), true),
            master: None,
            lower: None,
            alias: None,
            kind: LinkKind::Veth { peer },
        };
        move |sequence, out: &mut Vec<u8>| {
            encode::new_link(out, &request(Operation::New, sequence), &link)
        }
    });
    all_taken(namespace, "create the parents", encoders)?;
    indexes(
        &Listing::read(namespace)?,
        (0..count).map(|number| format!("{PARENT}{number}")),
    )
}

/// The indexes of links by name, all of which must be there.
fn indexes(links: &Listing, names: impl Iterator<Item = String>) -> Result<Vec<u32>> {
    let known: HashMap<&str, u32> = links.iter().map(|link| (&*link.name, link.index)).collect();
    names
        .map(|name| {
            let index = known.get(name.as_str()).copied();
            index.with_context(|| format!("{name} has gone meanwhile"))
        })
        .collect()
}

/// `testa7`; a veth's other end is `testb7`.
fn name(letter: char, number: u32) -> Box<str> {
    format!("test{letter}{number}").into()
}

/// Requests of one pass on one connection, and what they took.
struct Timed<'a> {
    bulk: Bulk<'a>,
    parts: Vec<Duration>,
    waiting: Duration,
    each: Option<Vec<Duration>>,
}

impl Timed<'_> {
    fn new(making: &Making<'_>, one_by_one: bool) -> Result<Self> {
        let options = Options {
            pack: if one_by_one { 1 } else { PACK_REQUESTS },
            ..Options::default()
        };
        Ok(Self {
            bulk: Bulk::open(making.namespace, options)?,
            parts: Vec::new(),
            waiting: Duration::ZERO,
            each: one_by_one.then(Vec::new),
        })
    }

    /// Sends a part; the first refusal ends it.
    fn run<E>(&mut self, what: &str, encoders: impl IntoIterator<Item = E>) -> Result<()>
    where
        E: FnOnce(u32, &mut Vec<u8>) -> Result<(), TooLong>,
    {
        let (mut took, mut waiting) = (Duration::ZERO, Duration::ZERO);
        let each = &mut self.each;
        run(&mut self.bulk, what, encoders, &mut |sent| {
            took += sent.took;
            waiting += sent.waited;
            if let Some(each) = each {
                each.push(sent.took);
            }
        })?;
        self.parts.push(took);
        self.waiting += waiting;
        Ok(())
    }

    fn pass(self, way: String) -> Pass {
        let ends = match *self.parts.as_slice() {
            [first, _, last] => Some([first, last]),
            _ => None,
        };
        Pass {
            wall: self.parts.iter().sum(),
            waiting: self.waiting,
            ends,
            each: self.each.and_then(Each::of),
            way,
        }
    }
}

/// What the kernel refused first.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refused to {what}, first number {number}: {refusal}")]
struct Refused {
    what: String,
    number: usize,
    refusal: Refusal,
}

/// Has the kernel take all changes, or says which it did not take first.
pub fn all_taken<E>(
    namespace: &Namespace,
    what: &str,
    encoders: impl IntoIterator<Item = E>,
) -> Result<()>
where
    E: FnOnce(u32, &mut Vec<u8>) -> Result<(), TooLong>,
{
    let mut bulk = Bulk::open(namespace, Options::default())?;
    run(&mut bulk, what, encoders, &mut |_| {})
}

fn run<E>(
    bulk: &mut Bulk<'_>,
    what: &str,
    encoders: impl IntoIterator<Item = E>,
    sent: &mut dyn FnMut(linux::bulk::Sent),
) -> Result<()>
where
    E: FnOnce(u32, &mut Vec<u8>) -> Result<(), TooLong>,
{
    let too_long = Cell::new(None);
    let too_long = &too_long;
    let changes = encoders.into_iter().map(|encode| {
        move |sequence, out: &mut Vec<u8>| {
            too_long.set(encode(sequence, out).err().or(too_long.take()));
        }
    });
    let mut first: Option<(usize, Option<Refusal>)> = None;
    bulk.run(changes, &mut |heard| match heard {
        Heard::Refused(place, refusal) if first.is_none() => first = Some((place, Some(refusal))),
        Heard::Lost(place) if first.is_none() => first = Some((place, None)),
        Heard::Sent(pack) => sent(pack),
        _ => {}
    })?;
    if let Some(error) = too_long.take() {
        bail!("{what}: {error}");
    }
    match first {
        None => Ok(()),
        Some((place, Some(refusal))) => Err(Refused {
            what: what.to_owned(),
            number: place + 1,
            refusal,
        }
        .into()),
        Some((place, None)) => {
            bail!(
                "{what}: the kernel's answer to number {} was lost",
                place + 1
            )
        }
    }
}
