//! Tunnels and metrics as the kernel has them, byte by byte, and such as it
//! never has.
#![allow(clippy::expect_used, reason = "a test fails by it")]

use fingerpost_netlink::decode::{Operation, route};
use fingerpost_netlink::encode::{self, Request};
use table::row::encap::{Ila, Ioam6, IoamTrace, IpTunnel, Mpls, TunnelOption, kind};
use table::row::segments::{Rpl, Seg6, SegmentHeader};
use table::{Encap, Metric, Route, Tunnel};

const RTA_METRICS: u16 = 8;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
/// Bytes of `struct nlmsghdr`.
const MESSAGE_HEADER: usize = 16;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The payload of a message about a default route.
fn payload(attributes: &[u8]) -> Vec<u8> {
    let header = [2u8, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    [&header[..], attributes].concat()
}

fn of_encap(number: u16, inside: &[u8]) -> Route {
    let encap = attribute(RTA_ENCAP, inside);
    let number = attribute(RTA_ENCAP_TYPE, &number.to_ne_bytes());
    route(&payload(&[encap, number].concat()), 0).expect("a sound route")
}

fn encap(row: &Route) -> &Encap {
    let hop = row.body.next_hops.as_slice().first();
    hop.and_then(|hop| hop.encap.as_deref()).expect("a tunnel")
}

/// The tunnel of these bytes, which are the same when written again.
fn tunnel(number: u16, inside: &[u8]) -> Tunnel {
    let row = of_encap(number, inside);
    assert_eq!(written(&row), row);
    let bytes = attributes_of(&row);
    let found = bytes.windows(inside.len()).any(|window| window == inside);
    assert!(found, "{inside:02x?} in {bytes:02x?}");
    assert_eq!(encap(&row).kind(), number);
    assert!(encap(&row).rest.is_empty());
    encap(&row).tunnel.clone()
}

fn attributes_of(row: &Route) -> Vec<u8> {
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 1,
        now_millis: 0,
    };
    let mut bytes = Vec::new();
    encode::route(&mut bytes, &request, row).expect("a row that fits");
    bytes
}

fn written(row: &Route) -> Route {
    route(&attributes_of(row)[MESSAGE_HEADER..], 0).expect("what was written")
}

#[test]
fn labels_are_numbers() {
    // 100 and 200, bottom of the stack at the last.
    let labels = attribute(1, &[0, 6, 0x40, 0, 0, 0xc, 0x81, 0]);
    let inside = [labels, attribute(2, &[9])].concat();
    let expected = Mpls {
        labels: [100, 200].into(),
        ttl: Some(9),
    };
    assert_eq!(tunnel(kind::MPLS, &inside), Tunnel::Mpls(expected));
}

#[test]
fn options_of_tunnels_are_typed() {
    const NESTED: u16 = 1 << 15;
    let geneve = [
        attribute(1, &[1, 2]),
        attribute(2, &[3]),
        attribute(3, &[4, 5, 6, 7]),
    ];
    let erspan = [attribute(1, &[1]), attribute(2, &[0, 0, 0, 8])];
    let options = [
        attribute(1 | NESTED, &geneve.concat()),
        attribute(2 | NESTED, &attribute(1, &77u32.to_ne_bytes())),
        attribute(3 | NESTED, &erspan.concat()),
    ];
    let id = attribute(1, &5u64.to_be_bytes());
    let inside = [id, attribute(8 | NESTED, &options.concat())].concat();
    let expected = IpTunnel {
        id: Some(5),
        options: [
            TunnelOption::Geneve {
                class: 0x0102,
                kind: 3,
                data: [4, 5, 6, 7].into(),
            },
            TunnelOption::Vxlan { group_policy: 77 },
            TunnelOption::Erspan {
                version: 1,
                index: Some(8),
                direction: None,
                hardware_id: None,
            },
        ]
        .into(),
        ..IpTunnel::default()
    };
    assert_eq!(tunnel(kind::IP, &inside), Tunnel::Ip(expected));
}

#[test]
fn segments_are_in_the_order_of_travel() {
    let (first, last) = ([1u8; 16], [2u8; 16]);
    let mut inside = 1u32.to_ne_bytes().to_vec();
    inside.extend([0, 4, 4, 1, 1, 0, 0, 7]);
    inside.extend([last, first].concat());
    let expected = Seg6 {
        mode: 1,
        header: SegmentHeader {
            left: 1,
            tag: 7,
            segments: [first.into(), last.into()].into(),
            ..SegmentHeader::default()
        },
    };
    let inside = attribute(1, &inside);
    assert_eq!(tunnel(kind::SEG6, &inside), Tunnel::Seg6(expected));
}

#[test]
fn what_few_kernels_have_is_read_as_well() {
    let locator = attribute(1, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 1]);
    let expected = Ila {
        locator: Some(0x2001_0db8_0000_0001),
        hook_kind: Some(1),
        ..Ila::default()
    };
    let inside = [locator, attribute(9, &[1])].concat();
    assert_eq!(tunnel(kind::ILA, &inside), Tunnel::Ila(expected));

    let mut source_route = vec![0, 2, 3, 1, 0, 0, 0, 0];
    source_route.extend([3; 16]);
    let expected = Rpl {
        next_header: 0,
        left: 1,
        segments: [[3; 16].into()].into(),
    };
    let inside = attribute(1, &source_route);
    assert_eq!(tunnel(kind::RPL, &inside), Tunnel::Rpl(expected));

    // A node writes two words, one is left, and one had no room.
    let trace = attribute(3, &[0, 1, 2 << 3 | 4, 1, 0xc0, 0, 0, 0]);
    let inside = [attribute(1, &[1]), trace].concat();
    let expected = Ioam6 {
        mode: Some(1),
        destination: None,
        trace: IoamTrace {
            namespace: 1,
            node_words: 2,
            overflow: true,
            words_left: 1,
            kind: 0xc0_0000,
        },
        packets: None,
        of_packets: None,
    };
    assert_eq!(tunnel(kind::IOAM6, &inside), Tunnel::Ioam6(expected));
}

#[test]
fn what_no_field_can_hold_is_kept_as_it_came() {
    // A TTL of two bytes; a label with a class; a header of another type;
    // an address of IPv6; a nest that claims too much.
    let header = [
        [1, 0, 0, 0],
        [0, 2, 5, 0],
        [0; 4],
        [0; 4],
        [0; 4],
        [0; 4],
        [0; 4],
    ];
    let whole = [
        (kind::MPLS, attribute(2, &[1, 2])),
        (kind::MPLS, attribute(1, &[0, 6, 0x43, 0])),
        (kind::SEG6, attribute(1, &header.concat())),
        (kind::IP, attribute(2, &[1; 16])),
        (kind::IP6, attribute(8, &[9, 0, 1, 0])),
        (kind::BPF, attribute(1, &attribute(9, &[]))),
        (kind::RPL, attribute(1, &[0, 0, 3, 0, 0x11, 0, 0, 0])),
        (kind::IOAM6, attribute(1, &[1])),
        (99, attribute(1, &[1])),
    ];
    for (number, inside) in whole {
        let row = of_encap(number, &inside);
        assert_eq!(encap(&row).rest.bytes(), inside, "{:?}", encap(&row));
        assert_eq!(encap(&row).kind(), number);
        assert_eq!(written(&row), row);
    }
    let too_much = attribute(RTA_ENCAP, &[9, 0, 1, 0]);
    let number = attribute(RTA_ENCAP_TYPE, &1u16.to_ne_bytes());
    assert!(route(&payload(&[too_much, number].concat()), 0).is_err());
}

#[test]
fn metrics_have_names() {
    let number = |kind: u16, value: u32| attribute(kind, &value.to_ne_bytes());
    let odd = [attribute(3, &[1, 2]), attribute(16, &[b'x', 0, b'y'])].concat();
    let known = [
        number(1, 1 << 2 | 1 << 16),
        number(2, 1400),
        number(17, 1),
        attribute(16, b"reno\0"),
    ];
    let inside = [known.concat(), odd.clone()].concat();
    let row = route(&payload(&attribute(RTA_METRICS, &inside)), 0).expect("a sound route");
    let metrics = row.body.metrics.as_deref().expect("metrics");
    assert_eq!(metrics.get(Metric::Mtu), Some(1400));
    assert_eq!(metrics.get(Metric::Window), None);
    assert_eq!(metrics.get(Metric::FastOpenNoCookie), Some(1));
    assert_eq!(metrics.congestion.as_deref(), Some("reno"));
    assert!(metrics.is_locked(2) && metrics.is_locked(16) && !metrics.is_locked(3));
    assert_eq!(metrics.rest.bytes(), odd);
    assert_eq!(written(&row), row);
    let none = route(&payload(&attribute(RTA_METRICS, &[])), 0).expect("a sound route");
    assert_eq!(none.body.metrics, None);
}
