//! Messages about links of every kind, with settings that are drawn at
//! random from what the kernel could say: for comparisons of what `ip` makes
//! of the same bytes.

use lab::Random;
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use table::row::link::Parent;
use table::row::link::limits::{KeptLimits, Limits};
use table::{KindData, Link, LinkLayerAddress, PortData, RawAttributes};

/// What an attribute may hold.
#[derive(Clone, Copy)]
pub enum Holds {
    /// Up to a number.
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    /// One of some.
    One8(&'static [u8]),
    One32(&'static [u32]),
    Be16,
    Be32(u32),
    V4,
    V6,
    Octets(usize),
    Flag,
    /// Two ports, the lower first.
    Ports,
    /// Bits, and which of them are meant.
    Bits(u32),
    /// Pairs of numbers, each attribute 1 of a nest.
    Pairs,
    /// Addresses, numbered from 0.
    Each4,
    Each6,
    /// MAC addresses, each attribute 4 of a nest.
    Macs,
    /// Attributes inside.
    Nest(&'static [(u16, Holds)]),
    /// Always the same.
    Is(&'static [u8]),
    /// All of these or none: `ip` does not look whether all are there. The
    /// number beside it means nothing.
    Together(Attributes),
    /// A link: the loopback, none, or one that is not there.
    Link,
}
use Holds::*;

type Attributes = &'static [(u16, Holds)];

/// Kinds, and the attributes of `IFLA_INFO_DATA` that are drawn.
pub const KINDS: &[(&str, Attributes)] = &[
    ("bond", BOND),
    ("bridge", BRIDGE),
    ("erspan", GRE),
    ("geneve", GENEVE),
    ("gre", GRE),
    ("gretap", GRE),
    ("hsr", HSR),
    ("ip6erspan", IP6GRE),
    ("ip6gre", IP6GRE),
    ("ip6gretap", IP6GRE),
    ("ip6tnl", IP6TNL),
    ("ipip", IPTUN),
    ("ipvlan", IPVLAN),
    ("ipvtap", IPVLAN),
    ("macvlan", MACVLAN),
    ("macvtap", MACVLAN),
    ("sit", SIT),
    ("tun", TUN),
    ("vlan", VLAN),
    ("vrf", VRF),
    ("vti", VTI),
    ("vti6", VTI6),
    ("vxlan", VXLAN),
    ("xfrm", &[(1, Link), (2, U32(u32::MAX)), (3, Flag)]),
    ("dummy", &[]),
    ("ifb", &[]),
    ("nlmon", &[]),
    ("team", &[(1, U32(9))]),
    ("veth", &[]),
    ("wireguard", &[]),
];

/// Kinds of masters, and the attributes of `IFLA_INFO_SLAVE_DATA`.
pub const PORTS: &[(&str, Attributes)] = &[
    ("bond", BOND_PORT),
    ("bridge", BRIDGE_PORT),
    ("vrf", VRF),
    ("team", &[]),
];

const MS: Holds = U32(100_000);
const BOND: Attributes = &[
    (1, U8(6)),
    (2, Link),
    (3, MS),
    (4, MS),
    (5, MS),
    (6, U8(1)),
    (7, MS),
    (8, Each4),
    (9, U32(6)),
    (10, U32(1)),
    (11, Link),
    (12, U8(2)),
    (13, U8(2)),
    (14, U8(5)),
    (15, U32(255)),
    (16, U8(255)),
    (17, U8(1)),
    (18, MS),
    (19, MS),
    (20, U32(65_535)),
    (21, U8(1)),
    (22, U8(2)),
    (
        23,
        Nest(&[
            (1, U16(u16::MAX)),
            (2, U16(9)),
            (3, U16(99)),
            (4, U16(99)),
            (5, Octets(6)),
        ]),
    ),
    (24, U16(u16::MAX)),
    (25, U16(1023)),
    (26, Octets(6)),
    (27, U8(1)),
    (28, MS),
    (29, U8(1)),
    (30, U8(255)),
    (31, Each6),
];
const BOND_PORT: Attributes = &[
    (1, U8(2)),
    (2, U8(4)),
    (3, U32(99_999)),
    (4, Octets(6)),
    (5, U16(u16::MAX)),
    (6, U16(u16::MAX)),
    (7, U8(255)),
    (8, U16(255)),
    (9, U32(9)),
];
const ROOT: &[u8] = &[0x80, 1, 2, 0, 0, 0, 0x1f, 9];
const BRIDGE: Attributes = &[
    (1, MS),
    (2, MS),
    (3, MS),
    (4, MS),
    (5, U32(2)),
    (6, U16(u16::MAX)),
    (7, U8(1)),
    (8, One8(&[0x81, 0x88])),
    (9, U16(u16::MAX)),
    // `ip` 6.1 shows the bridge's own identifier as the root's.
    (10, Together(&[(10, Is(ROOT)), (11, Is(ROOT))])),
    (12, U16(1023)),
    (13, U32(u32::MAX)),
    (14, U8(1)),
    (15, U8(1)),
    (20, Octets(6)),
    (22, U8(2)),
    (23, U8(1)),
    (24, U8(1)),
    (25, U8(1)),
    (26, U32(16)),
    (27, U32(u32::MAX)),
    (28, U32(99)),
    (29, U32(99)),
    (30, U64(u64::MAX)),
    (31, U64(u64::MAX)),
    (32, U64(99_999)),
    (33, U64(99_999)),
    (34, U64(99_999)),
    (35, U64(99_999)),
    (36, U8(1)),
    (37, U8(1)),
    (38, U8(1)),
    (39, U16(4095)),
    (41, U8(1)),
    (42, U8(1)),
    (43, U8(3)),
    (44, U8(2)),
    (45, U8(1)),
    (46, Bits(3)),
];
const BRIDGE_PORT: Attributes = &[
    (1, U8(6)),
    (2, U16(63)),
    (3, U32(65_535)),
    (4, U8(1)),
    (5, U8(1)),
    (6, U8(1)),
    (7, U8(1)),
    (8, U8(1)),
    (9, U8(1)),
    (10, U8(1)),
    (11, U8(1)),
    (12, U8(1)),
    (13, Octets(8)),
    (14, Octets(8)),
    (15, U16(u16::MAX)),
    (16, U16(u16::MAX)),
    (17, U16(u16::MAX)),
    (18, U16(u16::MAX)),
    (19, U8(1)),
    (20, U8(1)),
    (25, U8(3)),
    (27, U8(1)),
    (28, U8(1)),
    (29, U8(1)),
    (30, U8(1)),
    (31, U16(u16::MAX)),
    (32, U8(1)),
    (33, U8(1)),
    (34, Link),
    (35, U8(1)),
    (36, U8(1)),
    (37, U32(512)),
    (39, U8(1)),
    (40, U8(1)),
    (42, U32(9)),
    (43, U8(1)),
    (44, U32(9)),
];
const GENEVE: Attributes = &[
    (1, U32(0xff_ffff)),
    (2, V4),
    (3, U8(255)),
    (4, U8(255)),
    (5, Be16),
    (6, Flag),
    (7, V6),
    (8, U8(1)),
    (9, U8(1)),
    (10, U8(1)),
    (11, Be32(0xf_ffff)),
    (12, U8(1)),
    (13, U8(2)),
    (14, Flag),
    (15, Ports),
];
const GRE: Attributes = &[
    (1, Link),
    (2, GRE_BITS),
    (3, GRE_BITS),
    (4, Be32(u32::MAX)),
    (5, Be32(u32::MAX)),
    (6, V4),
    (7, V4),
    (8, U8(255)),
    (9, U8(255)),
    (10, U8(1)),
    (14, Together(GRE_ENCAP)),
    (18, Flag),
    (19, U8(1)),
    (20, U32(u32::MAX)),
    (21, U32(0xf_ffff)),
    (22, U8(2)),
    (23, U8(1)),
    (24, U16(63)),
];
/// Flags of the header, in network byte order: checksum, key, sequence.
const GRE_BITS: Holds = One8(&[0x80, 0x20, 0x10, 0xb0, 0x00]);
const IP6GRE: Attributes = &[
    (1, Link),
    (2, GRE_BITS),
    (3, GRE_BITS),
    (4, Be32(u32::MAX)),
    (5, Be32(u32::MAX)),
    (6, V6),
    (7, V6),
    (8, U8(255)),
    (11, U8(255)),
    (12, Be32(0xfff_ffff)),
    (13, U32(0x7f)),
    (14, Together(GRE_ENCAP)),
    (18, Flag),
    (20, U32(u32::MAX)),
    (21, U32(0xf_ffff)),
    (22, U8(2)),
    (23, U8(1)),
    (24, U16(63)),
];
const GRE_ENCAP: Attributes = &[(14, U16(2)), (15, U16(7)), (16, Be16), (17, Be16)];
const IPTUN_ENCAP: Attributes = &[(15, U16(2)), (16, U16(7)), (17, Be16), (18, Be16)];
const HSR: Attributes = &[
    (1, Link),
    (2, Link),
    (3, U8(255)),
    (4, Octets(6)),
    (5, U16(u16::MAX)),
    (6, U8(1)),
    (7, U8(1)),
];
const IP6TNL: Attributes = &[
    (1, Link),
    (2, V6),
    (3, V6),
    (4, U8(255)),
    (6, U8(255)),
    (7, Be32(0xfff_ffff)),
    (8, U32(0x7f)),
    (9, One8(&[4, 41, 0])),
    (15, Together(IPTUN_ENCAP)),
    (19, Flag),
    (20, U32(u32::MAX)),
];
const IPTUN: Attributes = &[
    (1, Link),
    (2, V4),
    (3, V4),
    (4, U8(255)),
    (5, U8(255)),
    (9, One8(&[4, 41, 137, 0])),
    (10, U8(1)),
    (15, Together(IPTUN_ENCAP)),
    (19, Flag),
    (20, U32(u32::MAX)),
];
const SIT: Attributes = &[
    (1, Link),
    (2, V4),
    (3, V4),
    (4, U8(255)),
    (5, U8(255)),
    (8, U16(1)),
    (9, One8(&[4, 41, 137, 0])),
    (10, U8(1)),
    (
        11,
        Together(&[(11, V6), (12, V4), (13, U16(64)), (14, U16(32))]),
    ),
    (15, Together(IPTUN_ENCAP)),
    (20, U32(u32::MAX)),
];
const IPVLAN: Attributes = &[(1, U16(2)), (2, U16(2))];
const MACVLAN: Attributes = &[
    (1, One32(&[1, 2, 4, 8, 16])),
    (2, U16(3)),
    (5, Macs),
    (6, U32(3)),
    (7, U32(9999)),
    (8, U32(9999)),
    (9, U32(9)),
];
const TUN: Attributes = &[
    (3, U8(3)),
    (4, U8(1)),
    (5, U8(1)),
    (6, U8(1)),
    (7, U8(1)),
    (8, U32(255)),
    (9, U32(255)),
];
const VLAN: Attributes = &[
    (1, U16(4095)),
    (2, Bits(0x1f)),
    (3, Pairs),
    (4, Pairs),
    (5, One8(&[0x81, 0x88])),
];
const VRF: Attributes = &[(1, U32(u32::MAX))];
const VTI: Attributes = &[
    (1, Link),
    (2, Be32(u32::MAX)),
    (3, Be32(u32::MAX)),
    (4, V4),
    (5, V4),
    (6, U32(u32::MAX)),
];
const VTI6: Attributes = &[
    (1, Link),
    (2, Be32(u32::MAX)),
    (3, Be32(u32::MAX)),
    (4, V6),
    (5, V6),
    (6, U32(u32::MAX)),
];
const VXLAN: Attributes = &[
    (1, U32(0xff_ffff)),
    (2, V4),
    (3, Link),
    (4, V4),
    (5, U8(255)),
    (6, U8(255)),
    (7, U8(1)),
    (8, U32(9999)),
    (9, U32(9999)),
    (10, Ports),
    (11, U8(1)),
    (12, U8(1)),
    (13, U8(1)),
    (14, U8(1)),
    (15, Be16),
    (16, V6),
    (17, V6),
    (18, U8(1)),
    (19, U8(1)),
    (20, U8(1)),
    (21, U8(1)),
    (22, U8(1)),
    (23, Flag),
    (24, Flag),
    (25, U8(1)),
    (26, Be32(0xf_ffff)),
    (27, Flag),
    (28, U8(1)),
    (29, U8(2)),
    (30, U8(1)),
    (31, U8(1)),
    (33, Octets(8)),
];

fn attribute(out: &mut Vec<u8>, number: u16, value: &[u8]) {
    out.extend((value.len() as u16 + 4).to_ne_bytes());
    out.extend(number.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Often one of the ends, which is where things are wrong.
fn up_to(random: &mut Random, most: u64) -> u64 {
    match random.below(4) {
        0 => 0,
        1 => most,
        2 => most.min(1),
        _ => random.number() % most.saturating_add(1).max(1),
    }
}

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

fn v4(random: &mut Random) -> [u8; 4] {
    one(
        random,
        &[[0; 4], [192, 0, 2, 1], [239, 1, 2, 3], [10, 255, 0, 9]],
    )
}

fn v6(random: &mut Random) -> [u8; 16] {
    let text = one(random, &["::", "2001:db8::1", "ff02::9", "::ffff:1.2.3.4"]);
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

fn octets(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| up_to(random, 255) as u8).collect()
}

fn nest(count: usize, mut item: impl FnMut(u16) -> (u16, Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    for place in 0..count {
        let (number, value) = item(place as u16);
        attribute(&mut out, number, &value);
    }
    out
}

fn value(random: &mut Random, holds: Holds) -> Vec<u8> {
    let some = 1 + random.below(3);
    match holds {
        U8(most) => vec![up_to(random, most.into()) as u8],
        U16(most) => (up_to(random, most.into()) as u16).to_ne_bytes().into(),
        U32(most) => (up_to(random, most.into()) as u32).to_ne_bytes().into(),
        U64(most) => up_to(random, most).to_ne_bytes().into(),
        One8(of) => match one(random, of) {
            0x81 => vec![0x81, 0],
            0x88 => vec![0x88, 0xa8],
            high @ (0x80 | 0x20 | 0x10 | 0xb0 | 0) if of.len() == 5 => vec![high, 0],
            other => vec![other],
        },
        One32(of) => one(random, of).to_ne_bytes().into(),
        Be16 => (up_to(random, u16::MAX.into()) as u16).to_be_bytes().into(),
        Be32(most) => (up_to(random, most.into()) as u32).to_be_bytes().into(),
        V4 => v4(random).into(),
        V6 => v6(random).into(),
        Octets(count) => octets(random, count),
        Flag => Vec::new(),
        Ports => {
            let low = up_to(random, 60_000) as u16;
            [low.to_be_bytes(), (low + 99).to_be_bytes()].concat()
        }
        Bits(most) => {
            let on = up_to(random, most.into()) as u32;
            [on.to_ne_bytes(), u32::MAX.to_ne_bytes()].concat()
        }
        Pairs => nest(some, |at| {
            let to = up_to(random, 7) as u32;
            (1, [u32::from(at).to_ne_bytes(), to.to_ne_bytes()].concat())
        }),
        Each4 => nest(some, |at| (at, v4(random).into())),
        Each6 => nest(some, |at| (at, v6(random).into())),
        Macs => nest(some, |_| (4, octets(random, 6))),
        Nest(inside) => attributes(random, inside, 0),
        Is(bytes) => bytes.into(),
        Together(_) => Vec::new(),
        Link => one(random, &[0_u32, 1, 77_777]).to_ne_bytes().into(),
    }
}

/// Attributes, of which `left_out` in ten are missing.
fn attributes(random: &mut Random, of: Attributes, left_out: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, holds) in of {
        if random.below(10) >= left_out {
            if let Together(all) = holds {
                out.extend(attributes(random, all, 0));
            } else {
                let value = value(random, *holds);
                attribute(&mut out, *number, &value);
            }
        }
    }
    out
}

/// A link, with what `-d` shows of any link in turn.
fn link(nth: u32, name: &str) -> Link {
    let some = |every: u32| (!nth.is_multiple_of(every)).then_some(nth * 999);
    Link {
        index: 1000 + nth,
        allmulti: some(3),
        addr_gen_mode: (nth % 6 != 5).then_some((nth % 6) as u8),
        limits: KeptLimits::new(Limits {
            gso_max_size: some(2),
            gso_max_segs: some(3),
            tso_max_size: some(4),
            tso_max_segs: some(5),
            gro_max_size: some(6),
        }),
        parent: some(4).map(|_| {
            Box::new(Parent {
                device: Some("0000:00:05.0".into()),
                bus: (!nth.is_multiple_of(3)).then(|| "pci".into()),
            })
        }),
        name: name.into(),
        hardware: 1,
        flags: 0x1002,
        mtu: 1500,
        qdisc: Some("noop".into()),
        oper_state: 2,
        address: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
        tx_queues: 1,
        rx_queues: 1,
        ..Link::default()
    }
}

/// Messages of `each` links of every kind and port, by the kind.
pub fn listings(seed: u64, each: usize) -> Vec<(String, Vec<u8>)> {
    let mut random = Random::new(seed);
    let mut drawn = |of, nth: usize| {
        let bytes = attributes(&mut random, of, nth % 4 * 2);
        (!bytes.is_empty()).then(|| Box::new(RawAttributes::new(&bytes)))
    };
    let mut listings = Vec::new();
    for (kind, of) in KINDS {
        let mut out = Vec::new();
        for nth in 0..each {
            let mut row = link(nth as u32, &format!("k{nth}"));
            row.kind = Some((*kind).into());
            row.kind_data = drawn(of, nth).map_or(KindData::None, KindData::Unknown);
            write(&mut out, &row);
        }
        listings.push(((*kind).to_owned(), out));
    }
    for (master, of) in PORTS {
        let mut out = Vec::new();
        for nth in 0..each {
            let mut row = link(nth as u32, &format!("p{nth}"));
            row.kind = Some("veth".into());
            row.slave_kind = Some((*master).into());
            row.slave_data = drawn(of, nth).map_or(PortData::None, PortData::Unknown);
            write(&mut out, &row);
        }
        listings.push((format!("{master}_slave"), out));
    }
    listings
}

fn write(out: &mut Vec<u8>, row: &Link) {
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 0,
        now_millis: 0,
    };
    encode::link(out, &request, row).unwrap();
}

/// Messages about addresses of a link, with all that the kernel could say of
/// them.
pub fn addresses(seed: u64, count: usize, link: u32) -> Vec<u8> {
    let mut random = Random::new(seed);
    let messages = (0..count).map(|_| address(&mut random, link));
    messages.collect::<Vec<_>>().concat()
}

/// Bits of `ifa_flags` that have a name, and two that have none.
const ADDRESS_FLAGS: u64 = 0x1fff | 1 << 31;
/// Universe, site, link, host, nowhere, and ones without a name.
const SCOPES: [u8; 8] = [0, 0, 200, 253, 254, 255, 1, 77];
const FOR_EVER: u32 = u32::MAX;

fn address(random: &mut Random, link: u32) -> Vec<u8> {
    let is_v4 = random.below(2) == 0;
    let (family, bits) = if is_v4 { (2, 32) } else { (10, 128) };
    let mut ip = || match is_v4 {
        true => v4(random).to_vec(),
        false => v6(random).to_vec(),
    };
    let (local, peer, broadcast, anycast) = (ip(), ip(), ip(), ip());
    // One bit most often: many beside each other hide which is wrong.
    let flags = match random.below(3) {
        0 => (random.number() & ADDRESS_FLAGS) as u32,
        1 => 1 << 7,
        _ => 1 << random.below(13),
    };
    let mut out = vec![family, up_to(random, bits) as u8, flags as u8];
    out.push(one(random, &SCOPES));
    out.extend(link.to_ne_bytes());
    let has = |random: &mut Random| random.below(3) == 0;
    if has(random) {
        attribute(&mut out, 1, &peer);
    } else {
        attribute(&mut out, 1, &local);
    }
    attribute(&mut out, 2, &local);
    if is_v4 && has(random) {
        attribute(
            &mut out,
            3,
            one(random, &[&b"lo\0"[..], b"lo:a name\0", b"lo:\"\0"]),
        );
    }
    for (number, value) in [(4, &broadcast), (5, &anycast)] {
        if has(random) {
            attribute(&mut out, number, value);
        }
    }
    let mut cache = Vec::new();
    for _ in 0..4 {
        let seconds = one(random, &[FOR_EVER, FOR_EVER, 0, 1, 86_400, i32::MAX as u32]);
        cache.extend(seconds.to_ne_bytes());
    }
    attribute(&mut out, 6, &cache);
    attribute(&mut out, 8, &flags.to_ne_bytes());
    if has(random) {
        // The kernel tells a metric where there is one, so never 0.
        let metric = up_to(random, u32::MAX.into()) as u32;
        attribute(&mut out, 9, &metric.max(1).to_ne_bytes());
    }
    if has(random) {
        attribute(&mut out, 11, &[up_to(random, 255) as u8]);
    }
    message(20, &out)
}

/// A message with its header.
fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((payload.len() as u32 + 16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend([0; 10]);
    out.extend(payload);
    out
}
