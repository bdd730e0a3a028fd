//! Settings of links' kinds: what is read is written as it was, whatever it
//! was, in any order; and links of the real kernel are written as they came.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by it, and says what it left out"
)]

mod support;

use std::collections::BTreeSet;

use fingerpost_netlink::attribute::attributes;
use fingerpost_netlink::decode::{Decoded, Item, Operation, decode};
use fingerpost_netlink::encode::{self, LinkKind, NewLink, Request};
use fingerpost_netlink::message::messages;
use fingerpost_netlink::request::Dump;
use lab::{Netns, skip};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use support::Kernel;
use table::row::link::Parent;
use table::row::link::limits::{KeptLimits, Limits};
use table::{KindData, Link, PortData, RawAttributes};

const KINDS: &[&str] = &[
    "bond", "bridge", "geneve", "gre", "ip6gre", "hsr", "ipip", "sit", "ip6tnl", "ipvlan",
    "macvlan", "tun", "vlan", "vrf", "vti", "vti6", "vxlan", "xfrm", "team", "",
];
const MASTERS: &[&str] = &["bond", "bridge", "vrf", "team"];

/// What moves without an announcement, and is no part of a row.
const UNSTEADY: &[u16] = &[16, 17, 18, 19, 40, 47, 48];
const UNSTEADY_OF_PORT: &[u16] = &[21, 22, 23, 26, 38, 41];

const LINKINFO: u16 = 18;
const INFO_DATA: u16 = 2;
const INFO_SLAVE_DATA: u16 = 5;

fn request() -> Request {
    Request {
        operation: Operation::New,
        flags: 0,
        sequence: 1,
        now_millis: 0,
    }
}

fn written(row: &Link) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::link(&mut bytes, &request(), row).expect("a row that fits");
    bytes
}

fn read(bytes: &[u8]) -> Option<Link> {
    let message = messages(bytes).next().expect("one").expect("sound");
    match decode(&message, 0).ok()? {
        Decoded::Announcement(announcement) => match announcement.item {
            Item::Link(link) => Some(link),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// `IFLA_INFO_DATA` or `IFLA_INFO_SLAVE_DATA` of a message, its attributes
/// in the order of their numbers.
fn data(bytes: &[u8], which: u16) -> Vec<(u16, Vec<u8>)> {
    let message = messages(bytes).next().expect("one").expect("sound");
    let find = |bytes: &[u8], kind: u16| {
        let found = fingerpost_netlink::attribute::value(bytes, kind);
        found.unwrap_or_default().to_vec()
    };
    let info = find(&message.payload[16..], LINKINFO);
    let mut all: Vec<(u16, Vec<u8>)> = attributes(&find(&info, which))
        .map(|attribute| {
            let (number, value) = attribute.expect("sound");
            (number, value.to_vec())
        })
        .collect();
    all.sort();
    all
}

fn attribute(number: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Attributes of any number, often of the size that one of a kind has.
fn any_attributes() -> impl Strategy<Value = Vec<u8>> {
    let size = select(vec![0_usize, 1, 2, 3, 4, 4, 6, 8, 16, 17]);
    let value = prop_oneof![
        4 => size.prop_flat_map(|size| vec(any::<u8>(), size)),
        1 => (0u16..6, vec(any::<u8>(), 8)).prop_map(|(number, value)| attribute(number, &value)),
        1 => vec(any::<u8>(), 6).prop_map(|value| attribute(4, &value)),
        1 => vec(any::<u8>(), 4).prop_map(|value| attribute(0, &value)),
    ];
    vec((0u16..52, value), 0..40).prop_map(|all| {
        all.iter()
            .flat_map(|(number, value)| attribute(*number, value))
            .collect()
    })
}

fn row(kind: &str, master: &str, bytes: &[u8], of_port: &[u8]) -> Link {
    let raw = |bytes: &[u8]| Box::new(RawAttributes::new(bytes));
    let mut row = Link {
        index: 7,
        name: "a".into(),
        kind: Some(kind.into()),
        slave_kind: Some(master.into()),
        ..Link::default()
    };
    if !bytes.is_empty() {
        row.kind_data = KindData::Unknown(raw(bytes));
    }
    if !of_port.is_empty() {
        row.slave_data = PortData::Unknown(raw(of_port));
    }
    row
}

/// Without those of some numbers.
fn without(mut all: Vec<(u16, Vec<u8>)>, numbers: &[u16]) -> Vec<(u16, Vec<u8>)> {
    all.retain(|(number, _)| !numbers.contains(number));
    all
}

proptest! {
    #[test]
    fn what_is_read_is_written_again(
        kind in select(KINDS),
        master in select(MASTERS),
        bytes in any_attributes(),
        of_port in any_attributes(),
    ) {
        let told = written(&row(kind, master, &bytes, &of_port));
        let typed = read(&told).expect("attributes that are sound");
        let again = written(&typed);
        prop_assert_eq!(read(&again), Some(typed));
        let unsteady = if kind == "bridge" { UNSTEADY } else { &[] };
        prop_assert_eq!(
            without(data(&told, INFO_DATA), unsteady),
            data(&again, INFO_DATA)
        );
        let unsteady = if master == "bridge" { UNSTEADY_OF_PORT } else { &[] };
        prop_assert_eq!(
            without(data(&told, INFO_SLAVE_DATA), unsteady),
            data(&again, INFO_SLAVE_DATA)
        );
    }

    #[test]
    fn bytes_that_are_no_attributes_are_refused_or_read(
        kind in select(KINDS),
        bytes in vec(any::<u8>(), 0..80),
    ) {
        let told = written(&row(kind, "bridge", &bytes, &bytes));
        if let Some(typed) = read(&told) {
            prop_assert_eq!(read(&written(&typed)), Some(typed));
        }
    }
}

#[test]
fn what_any_link_has_is_written_as_it_was_read() {
    for nth in 0..64_u32 {
        let some = |bit: u32| (nth & bit != 0).then_some(nth + 7);
        let mut row = row("", "", &[], &[]);
        row.allmulti = some(1);
        row.addr_gen_mode = some(2).map(|mode| mode as u8);
        row.ignores_linkdown = (nth >> 2 & 3) as u8;
        row.v6_disabled = nth >> 4 & 1 == 1;
        row.forwards_v4 = nth >> 5 & 1 == 1;
        row.limits = KeptLimits::new(Limits {
            gso_max_size: some(4),
            gso_max_segs: some(8),
            tso_max_size: some(16),
            tso_max_segs: some(32),
            gro_max_size: some(4),
        });
        row.parent = some(16).map(|_| {
            Box::new(Parent {
                device: some(8).map(|nth| format!("d{nth}").into()),
                bus: Some("pci".into()),
            })
        });
        assert_eq!(read(&written(&row)), Some(row));
    }
}

#[test]
fn a_value_of_a_wrong_size_is_kept_as_it_is() {
    let bytes = [attribute(1, &[5]), attribute(5, &[0x81, 0])].concat();
    let told = written(&row("vlan", "", &bytes, &[]));
    let KindData::Vlan(vlan) = read(&told).expect("a link").kind_data else {
        panic!("not a VLAN");
    };
    assert_eq!((vlan.id, vlan.protocol), (None, Some(0x8100)));
    assert_eq!(vlan.rest.bytes(), attribute(1, &[5]));
}

const LINKS: &str = "
link add v0 type veth peer name v1
link add br0 type bridge forward_delay 300 mcast_querier 1 group_fwd_mask 8
link set v0 master br0
link add vx0 type vxlan id 5 group 239.1.1.1 dev v1 ttl inherit tos inherit srcport 9 99 dstport 4789
link add vx1 type vxlan id 6 remote 2001:db8::1 local 2001:db8::2 df set gbp nolearning
link add vx2 type vxlan external dstport 4790
link add link v1 name mv0 type macvlan mode source macaddr add 02:00:00:00:00:09
link add link v1 name mv1 type macvtap mode bridge
tuntap add t0 mode tap multi_queue
";
/// Kinds that a kernel may lack.
const RARE_LINKS: &[&str] = &[
    "link add bo0 type bond mode 802.3ad",
    "link add ge0 type geneve id 5 remote 192.0.2.9 ttl 9",
    "link add gr0 type gre local 192.0.2.1 remote 192.0.2.2 ttl 64 key 5 seq",
    "link add gr6 type ip6gre local 2001:db8::1 remote 2001:db8::2",
    "link add link v1 name iv0 type ipvlan mode l3",
    "link add link v1 name vl0 type vlan id 5 egress-qos-map 1:2 3:4 ingress-qos-map 5:6",
    "link add si0 type sit local 192.0.2.1 remote 192.0.2.2",
    "link add ti0 type ip6tnl local 2001:db8::1 remote 2001:db8::2",
    "link add vr0 type vrf table 10",
    "link add vt0 type vti local 192.0.2.1 remote 192.0.2.2 key 5",
];

#[test]
fn links_of_the_kernel_are_written_as_they_came() {
    let Some(netns) = skip::unless(Netns::new("linkdata")) else {
        return;
    };
    netns.ip_batch(LINKS).expect("links");
    for line in RARE_LINKS {
        if netns.ip(&line.split(' ').collect::<Vec<_>>()).is_err() {
            println!("skipped: this kernel does not do `{line}`");
        }
    }
    let checked = netns.inside(|| {
        let mut kernel = Kernel::open();
        let dump = Dump::Links { counters: false };
        let mut kinds = BTreeSet::new();
        for datagram in kernel.dump(dump).expect("a dump") {
            for message in messages(&datagram).flatten() {
                let Ok(Decoded::Announcement(_)) = decode(&message, 0) else {
                    continue;
                };
                // A message alone: its header, and its payload behind it.
                let mut told = vec![0; 16];
                told[..4].copy_from_slice(&(16 + message.payload.len() as u32).to_ne_bytes());
                told[4..6].copy_from_slice(&message.kind.to_ne_bytes());
                told.extend(message.payload);
                kinds.insert(written_as_it_came(&told));
            }
        }
        kinds
    });
    let checked = checked.expect("work inside the namespace");
    for kind in ["bridge", "macvlan", "macvtap", "tun", "vxlan"] {
        assert!(checked.contains(kind), "{kind}: {checked:?}");
    }
}

/// The kind of a link whose settings are equal when written again.
fn written_as_it_came(told: &[u8]) -> String {
    let typed = read(told).expect("a link");
    let kind = typed.kind.as_deref().unwrap_or_default().to_owned();
    let again = written(&typed);
    let unsteady = if kind == "bridge" { UNSTEADY } else { &[] };
    let of_kind = without(data(told, INFO_DATA), unsteady);
    assert_eq!(of_kind, data(&again, INFO_DATA), "{kind}");
    let of_port = without(data(told, INFO_SLAVE_DATA), UNSTEADY_OF_PORT);
    assert_eq!(of_port, data(&again, INFO_SLAVE_DATA), "{kind}");
    assert_eq!(read(&again).map(|row| row.kind_data), Some(typed.kind_data));
    kind
}

#[test]
fn what_vxlan_tells_as_a_number_is_asked_for_by_a_flag() {
    let told = [attribute(1, &5_u32.to_ne_bytes()), attribute(28, &[1])].concat();
    let vxlan = read(&written(&row("vxlan", "", &told, &[]))).expect("a link");
    let new = NewLink {
        end: Default::default(),
        master: None,
        lower: None,
        alias: None,
        kind: LinkKind::Other {
            name: "vxlan",
            data: vxlan.kind_data,
        },
    };
    let mut bytes = Vec::new();
    encode::new_link(&mut bytes, &request(), &new).expect("a link that fits");
    let wanted = data(&bytes, INFO_DATA);
    assert_eq!(wanted, [(1, 5_u32.to_ne_bytes().to_vec()), (28, vec![])]);
}
