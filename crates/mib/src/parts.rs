//! All objects by name: which part of the tree a name belongs to, and the
//! parts in order.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use snmp::mib::WalkSink;
use snmp::oid::Name;
use snmp::{Mib, Value};
use table::Sampled;

use crate::columns::{self, GetSink, Rows};
use crate::objects::Objects;
use crate::{
    bridge, entity, ethernet, framework, host, index, interfaces, ip, own, routes, system,
    transport, ucd,
};

/// A part of the tree.
struct Part {
    /// All its names begin with this.
    root: &'static [u32],
    kind: Kind,
    needed: Needed,
}

/// Gives the value of one scalar of a group.
type ScalarOf = for<'a> fn(&Objects<'a>, u32) -> Option<Value<'a>>;

enum Kind {
    /// Scalars: their sub-identifiers below the root, ascending.
    Group(&'static [u32], ScalarOf),
    Table(Table),
}

struct Table {
    walk: fn(&Objects<'_>, &[u32], &mut WalkSink<'_>) -> ControlFlow<()>,
    get: fn(&Objects<'_>, &[u32], &mut GetSink<'_>),
}

/// What has to be sampled for an answer to be fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needed(u16);

impl Needed {
    const NOTHING: Self = Self(0);

    const fn of(what: &[Sampled]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < what.len() {
            bits |= 1 << what[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// Whether it is nothing.
    pub fn is_empty(self) -> bool {
        self == Self::NOTHING
    }

    /// What it is.
    pub fn iter(self) -> impl Iterator<Item = Sampled> {
        let all = Sampled::ALL.into_iter();
        all.filter(move |what| self.0 & (1 << *what as u16) != 0)
    }

    /// This and another.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn is_part_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

const NOTHING: Needed = Needed::NOTHING;
const LINKS: Needed = Needed::of(&[Sampled::Links]);
const COUNTERS: Needed = Needed::of(&[Sampled::Counters]);
const NEIGHBOURS: Needed = Needed::of(&[Sampled::Neighbours]);
const SOCKETS: Needed = Needed::of(&[Sampled::Sockets]);
const MACHINE: Needed = Needed::of(&[Sampled::Machine]);
const DEVICES: Needed = Needed::of(&[Sampled::Machine, Sampled::Counters]);
const IP_INTERFACES: Needed = Needed::of(&[Sampled::IpInterfaces]);
const BRIDGE_VLANS: Needed = Needed::of(&[Sampled::BridgeVlans]);

const fn group(root: &'static [u32], subs: &'static [u32], of: ScalarOf, needed: Needed) -> Part {
    Part {
        root,
        kind: Kind::Group(subs, of),
        needed,
    }
}

const fn table<R: Rows>(needed: Needed) -> Part {
    Part {
        root: R::ENTRY,
        kind: Kind::Table(Table {
            walk: columns::walk::<R>,
            get: columns::get::<R>,
        }),
        needed,
    }
}

const SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 1];
const INTERFACES: &[u32] = &[1, 3, 6, 1, 2, 1, 2];
const IP: &[u32] = &[1, 3, 6, 1, 2, 1, 4];
const IP_FORWARD: &[u32] = &[1, 3, 6, 1, 2, 1, 4, 24];
const IP_TRAFFIC: &[u32] = &[1, 3, 6, 1, 2, 1, 4, 31];
const ICMP: &[u32] = &[1, 3, 6, 1, 2, 1, 5];
const TCP: &[u32] = &[1, 3, 6, 1, 2, 1, 6];
const UDP: &[u32] = &[1, 3, 6, 1, 2, 1, 7];
const SNMP: &[u32] = &[1, 3, 6, 1, 2, 1, 11];
const BRIDGE_BASE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 1];
const SPANNING_TREE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 2];
const BRIDGE_FORWARDING: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 4];
const VLAN_BASE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1];
const VLANS: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4];
const HOST_SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 1];
const HOST_STORAGE: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2];
const ENTITY_GENERAL: &[u32] = &[1, 3, 6, 1, 2, 1, 47, 1, 4];
const UCD_MEMORY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 4];
const UCD_SYSTEM_STATS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 11];
const SNMP_SET: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 6];
const SNMP_ENGINE: &[u32] = &[1, 3, 6, 1, 6, 3, 10, 2, 1];
const SNMP_MPD_STATS: &[u32] = &[1, 3, 6, 1, 6, 3, 11, 2, 1];
const SNMP_TARGET_OBJECTS: &[u32] = &[1, 3, 6, 1, 6, 3, 12, 1];
const USM_STATS: &[u32] = &[1, 3, 6, 1, 6, 3, 15, 1, 1];
const IF_MIB_OBJECTS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1];

/// Scalars of the ip group before its tables.
const IP_SCALARS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
];

/// Scalars of the snmp group: 7 and 23 were never given.
const SNMP_SCALARS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28,
    29, 30, 31, 32,
];

/// Scalars of the icmp group.
const ICMP_SCALARS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
];
/// Scalars of the tcp group.
const TCP_SCALARS: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18];
/// Scalars of dot1dStp that the kernel tells.
const SPANNING_TREE_SCALARS: &[u32] = &[1, 2, 5, 6, 7, 8, 9, 11, 12, 13, 14];
/// Scalars of UCD-SNMP-MIB's memory and systemStats.
const UCD_MEMORY_SCALARS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 11, 13, 14, 15, 18, 19, 20, 21, 22, 24, 25, 26, 27,
];
const UCD_SYSTEM_SCALARS: &[u32] = &[
    1, 2, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67,
];

/// All parts, in the order of their names. Parts do not interleave.
static PARTS: &[Part] = &[
    group(SYSTEM, &[1, 2, 3, 4, 5, 6, 7, 8], system::group, NOTHING),
    table::<system::ModuleTable>(NOTHING),
    group(INTERFACES, &[1], interfaces::number, NOTHING),
    table::<interfaces::IfTable>(COUNTERS),
    group(IP, IP_SCALARS, ip::group, LINKS),
    table::<ip::AddrTable>(NOTHING),
    table::<routes::RouteTable>(NOTHING),
    table::<ip::MediaTable>(NOTHING),
    group(IP, &[23], routes::discards, NOTHING),
    group(IP_FORWARD, &[3], routes::numbers, NOTHING),
    table::<routes::CidrTable>(NOTHING),
    group(IP_FORWARD, &[6], routes::numbers, NOTHING),
    table::<routes::InetTable>(NOTHING),
    group(IP_FORWARD, &[8], routes::discards, NOTHING),
    group(IP, &[25, 26], ip::group, LINKS),
    group(IP, &[27], ip::scalars, NOTHING),
    table::<ip::V4Table>(IP_INTERFACES),
    group(IP, &[29], ip::scalars, NOTHING),
    table::<ip::V6Table>(IP_INTERFACES),
    table::<ip::SystemStatsTable>(LINKS),
    group(IP_TRAFFIC, &[2], ip::last_change, NOTHING),
    table::<ip::IfStatsTable>(LINKS),
    table::<ip::PrefixTable>(NOTHING),
    group(IP, &[33], ip::scalars, NOTHING),
    table::<ip::AddressTable>(NOTHING),
    table::<ip::PhysicalTable>(NEIGHBOURS),
    table::<ip::ZoneTable>(IP_INTERFACES),
    table::<ip::RouterTable>(NOTHING),
    group(ICMP, ICMP_SCALARS, ip::icmp_scalars, LINKS),
    table::<ip::StatsTable>(LINKS),
    table::<ip::MessageTable>(LINKS),
    group(TCP, TCP_SCALARS, transport::tcp_scalars, LINKS),
    table::<transport::ConnectionTable>(SOCKETS),
    table::<transport::ListenerTable>(SOCKETS),
    group(UDP, &[1, 2, 3, 4], transport::udp_scalars, LINKS),
    table::<transport::EndpointTable>(SOCKETS),
    group(UDP, &[8, 9], transport::udp_scalars, LINKS),
    table::<ethernet::EthernetTable>(COUNTERS),
    group(SNMP, SNMP_SCALARS, framework::snmp_group, NOTHING),
    group(BRIDGE_BASE, &[1, 2, 3], bridge::base, NOTHING),
    table::<bridge::PortTable>(NOTHING),
    group(
        SPANNING_TREE,
        SPANNING_TREE_SCALARS,
        bridge::spanning_tree,
        NOTHING,
    ),
    table::<bridge::StpPortTable>(NOTHING),
    group(BRIDGE_FORWARDING, &[2], bridge::forwarding, NOTHING),
    table::<bridge::ForwardingTable>(NOTHING),
    table::<bridge::PortCounterTable>(COUNTERS),
    group(VLAN_BASE, &[1, 2, 3, 4, 5], bridge::vlan_base, BRIDGE_VLANS),
    table::<bridge::VlanForwardingTable>(NOTHING),
    group(VLANS, &[1], bridge::vlan_deletions, NOTHING),
    table::<bridge::CurrentVlanTable>(BRIDGE_VLANS),
    table::<bridge::StaticVlanTable>(BRIDGE_VLANS),
    table::<bridge::PortVlanTable>(BRIDGE_VLANS),
    group(HOST_SYSTEM, &[1, 2, 4, 6, 7], host::system, MACHINE),
    group(HOST_STORAGE, &[2], host::memory_size, MACHINE),
    table::<host::StorageTable>(MACHINE),
    table::<host::DeviceTable>(DEVICES),
    table::<host::ProcessorTable>(MACHINE),
    table::<host::NetworkTable>(NOTHING),
    table::<interfaces::IfXTable>(COUNTERS),
    table::<interfaces::StackTable>(NOTHING),
    table::<interfaces::ReceiveTable>(NOTHING),
    group(IF_MIB_OBJECTS, &[5, 6], interfaces::last_changes, NOTHING),
    table::<entity::PhysicalEntityTable>(MACHINE),
    group(ENTITY_GENERAL, &[1], entity::last_change, MACHINE),
    group(UCD_MEMORY, UCD_MEMORY_SCALARS, ucd::memory, MACHINE),
    table::<ucd::LoadTable>(MACHINE),
    group(
        UCD_SYSTEM_STATS,
        UCD_SYSTEM_SCALARS,
        ucd::system_stats,
        MACHINE,
    ),
    group(own::SOURCE, own::SOURCE_SCALARS, own::source, NOTHING),
    table::<own::TableTable>(NOTHING),
    table::<own::FeederTable>(NOTHING),
    table::<own::LinkTable>(NOTHING),
    group(SNMP_SET, &[1], framework::set_serial, NOTHING),
    group(SNMP_ENGINE, &[1, 2, 3, 4], framework::engine_group, NOTHING),
    group(SNMP_MPD_STATS, &[1, 2, 3], framework::mpd_group, NOTHING),
    group(
        SNMP_TARGET_OBJECTS,
        &[4, 5],
        framework::contexts_group,
        NOTHING,
    ),
    group(
        USM_STATS,
        &[1, 2, 3, 4, 5, 6],
        framework::usm_group,
        NOTHING,
    ),
];

impl Part {
    /// Whether all its names are at or before a name. All names of a group
    /// end in `.0`. Every request asks five or six parts: one comparison
    /// each.
    fn is_behind(&self, name: &[u32]) -> bool {
        let common = self.root.len().min(name.len());
        match (self.root[..common].cmp(&name[..common]), &self.kind) {
            (Ordering::Equal, Kind::Table(_)) => false,
            (Ordering::Equal, Kind::Group(subs, _)) => {
                let rest = name.get(self.root.len()..);
                rest.zip(subs.last())
                    .is_some_and(|(rest, &last)| rest >= [last, 0].as_slice())
            }
            (order, _) => order.is_lt(),
        }
    }

    /// Whether a name is of one of its object types.
    fn has(&self, name: &[u32]) -> bool {
        let Some(rest) = name.strip_prefix(self.root) else {
            return false;
        };
        match &self.kind {
            Kind::Table(_) => true,
            Kind::Group(subs, _) => rest.first().is_some_and(|sub| subs.contains(sub)),
        }
    }

    /// A name before all of its own, and behind those of the parts before.
    fn before(&self) -> Name {
        let mut name: Name = self.root.iter().copied().collect();
        if let Kind::Group([first, ..], _) = self.kind {
            index::put(&mut name, *first);
        }
        name
    }

    fn walk(
        &self,
        objects: &Objects<'_>,
        after: &[u32],
        sink: &mut WalkSink<'_>,
    ) -> ControlFlow<()> {
        let (subs, of) = match &self.kind {
            Kind::Table(table) => return (table.walk)(objects, after, sink),
            Kind::Group(subs, of) => (subs, of),
        };
        let mut name: Name = self.root.iter().copied().collect();
        for &sub in *subs {
            name.truncate(self.root.len());
            index::put(&mut name, sub);
            index::put(&mut name, 0);
            if *name <= *after {
                continue;
            }
            if let Some(value) = of(objects, sub) {
                sink(&name, value)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The value of `name`, if the part has its object type.
    fn get(&self, objects: &Objects<'_>, name: &[u32], sink: &mut GetSink<'_>) -> bool {
        let Some(rest) = name.strip_prefix(self.root) else {
            return false;
        };
        let (subs, of) = match &self.kind {
            Kind::Table(table) => {
                (table.get)(objects, rest, sink);
                return true;
            }
            Kind::Group(subs, of) => (subs, of),
        };
        let Some((sub, instance)) = rest.split_first().filter(|(sub, _)| subs.contains(sub)) else {
            return false;
        };
        let value = if instance == [0] {
            of(objects, *sub)
        } else {
            None
        };
        sink(value.unwrap_or(Value::NoSuchInstance));
        true
    }
}

/// All objects behind `after`.
pub(crate) fn walk(
    objects: &Objects<'_>,
    after: &[u32],
    sink: &mut WalkSink<'_>,
) -> ControlFlow<()> {
    let first = PARTS.partition_point(|part| part.is_behind(after));
    for part in PARTS.get(first..).unwrap_or_default() {
        part.walk(objects, after, sink)?;
    }
    ControlFlow::Continue(())
}

/// The value of one name, an exception included.
pub(crate) fn get(objects: &Objects<'_>, name: &[u32], sink: &mut GetSink<'_>) {
    // The part that has the name is the first that is not before it; an
    // object is not before its own name, though a group's last may be at it.
    let first = PARTS.partition_point(|part| part.is_behind(name));
    let at_or_before = first.saturating_sub(1);
    let near = PARTS
        .get(at_or_before..=first)
        .or(PARTS.get(at_or_before..));
    for part in near.unwrap_or_default() {
        if part.get(objects, name, sink) {
            return;
        }
    }
    sink(Value::NoSuchObject);
}

/// What should be sampled before `name`, or what follows it, is answered
/// for. O(log parts).
pub fn sampled(name: &[u32]) -> Needed {
    let first = PARTS.partition_point(|part| part.is_behind(name));
    let needed = |part: Option<&Part>| part.map_or(NOTHING, |part| part.needed);
    // A group is behind the name of its last object, which it has.
    let before = first.checked_sub(1).and_then(|before| PARTS.get(before));
    let before = before.filter(|part| part.has(name));
    needed(PARTS.get(first)).with(needed(before))
}

impl Objects<'_> {
    /// All objects behind `after` for which what is needed for `after`
    /// ([`sampled`]) is enough: a part of another kind is not told from a
    /// sample that is old, or not there. `None`: it went to its end, or to
    /// where the sink broke; else it goes on behind this name, with what is
    /// needed there.
    pub fn walk_sampled(&self, after: &[u32], sink: &mut WalkSink<'_>) -> Option<Name> {
        let known = sampled(after);
        let first = PARTS.partition_point(|part| part.is_behind(after));
        for part in PARTS.get(first..).unwrap_or_default() {
            if !part.needed.is_part_of(known) {
                return Some(part.before());
            }
            if part.walk(self, after, sink).is_break() {
                return None;
            }
        }
        None
    }
}

/// A name behind all objects of the column of a table that a name is of;
/// `None`: it is of no table. O(log parts).
pub fn column_end(name: &[u32]) -> Option<Name> {
    let first = PARTS.partition_point(|part| part.is_behind(name));
    let part = PARTS.get(first)?;
    let column = name.strip_prefix(part.root)?.first()?;
    if matches!(part.kind, Kind::Group(..)) {
        return None;
    }
    let mut end: Name = part.root.iter().copied().collect();
    index::put(&mut end, *column);
    while end.len() < end.capacity() {
        index::put(&mut end, u32::MAX);
    }
    Some(end)
}

impl Mib for Objects<'_> {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (at, name) in names.iter().enumerate() {
            get(self, name, &mut |value| sink(at, value));
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        // How it ended is the sink's own affair.
        let _ = walk(self, after, sink);
    }

    fn column_end(&self, name: &[u32]) -> Option<Name> {
        column_end(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last name that a part may have.
    fn ends(part: &Part) -> (Vec<u32>, Vec<u32>) {
        let of = |subs: &[u32]| [part.root, subs].concat();
        match part.kind {
            Kind::Table(_) => (of(&[]), of(&[u32::MAX])),
            Kind::Group(subs, _) => (of(&[subs[0]]), of(&[subs[subs.len() - 1], 0])),
        }
    }

    #[test]
    fn parts_ascend_and_do_not_interleave() {
        for pair in PARTS.windows(2) {
            let ((_, last), (first, _)) = (ends(&pair[0]), ends(&pair[1]));
            assert!(last < first, "{last:?} {first:?}");
        }
        for part in PARTS {
            if let Kind::Group(subs, _) = part.kind {
                assert!(subs.is_sorted());
            }
        }
    }

    /// Every name at, before and behind the ends of each part, asked of all.
    #[test]
    fn a_part_is_behind_a_name_when_its_last_name_is() {
        let mut names = vec![vec![]];
        for part in PARTS {
            let (first, last) = ends(part);
            for end in [&first, &last, &part.root.to_vec()] {
                let before = end.split_last().map_or(&[][..], |(_, before)| before);
                let sub = *end.last().unwrap();
                names.extend([before.to_vec(), end.clone(), [end, &[0][..]].concat()]);
                for beside in [sub.saturating_sub(1), sub.saturating_add(1)] {
                    names.push([before, &[beside]].concat());
                }
            }
        }
        for (part, name) in PARTS
            .iter()
            .flat_map(|part| names.iter().map(move |name| (part, name)))
        {
            let (_, last) = ends(part);
            let behind = match part.kind {
                Kind::Table(_) => part.root < name.as_slice() && !name.starts_with(part.root),
                Kind::Group(..) => last <= *name,
            };
            assert_eq!(part.is_behind(name), behind, "{:?} {name:?}", part.root);
        }
    }

    #[test]
    fn what_is_sampled_depends_on_the_name() {
        let of = |name: &[u32]| sampled(name).iter().collect::<Vec<_>>();
        let octets = of(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 3]);
        assert_eq!(octets, [Sampled::Counters]);
        let errors = of(&[1, 3, 6, 1, 2, 1, 10, 7, 2, 1, 3, 3]);
        assert_eq!(errors, [Sampled::Counters]);
        let ages = of(&[1, 3, 6, 1, 2, 1, 4, 35, 1, 5]);
        assert_eq!(ages, [Sampled::Neighbours]);
        assert_eq!(
            of(&[1, 3, 6, 1, 2, 1, 6, 18, 0]),
            [Sampled::Links, Sampled::Sockets]
        );
        assert_eq!(of(&[1, 3, 6, 1, 2, 1, 6, 19, 1, 7, 1]), [Sampled::Sockets]);
        assert_eq!(sampled(&[1, 3, 6, 1, 2, 1, 4, 24, 7, 1, 7, 1]), NOTHING);
        assert_eq!(sampled(&[2]), NOTHING);
    }

    /// Where a walk was broken off it goes on with the part that it was
    /// broken off before.
    #[test]
    fn a_part_begins_behind_the_one_before_it() {
        for (at, part) in PARTS.iter().enumerate() {
            let before = part.before();
            let first = PARTS.partition_point(|part| part.is_behind(&before));
            assert_eq!(first, at, "{:?}", part.root);
            assert!(part.needed.is_part_of(sampled(&before)));
        }
    }
}
