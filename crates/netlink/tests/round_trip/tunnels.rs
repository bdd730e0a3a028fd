//! Tunnels and metrics of any content that a kernel could tell.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use table::row::encap::{
    Bpf, BpfProgram, Ila, Ioam6, IoamTrace, IpTunnel, Mpls, TunnelOption, Xfrm,
};
use table::row::segments::{Flavors, Rpl, Seg6, Seg6Local, SegmentHeader, SegmentHmac};
use table::{Encap, Metric, RouteMetrics, Tunnel};

use super::{raw, text};

/// A number that no attribute of a tunnel or metric has.
const NOBODYS: u16 = 60;

pub fn encap() -> impl Strategy<Value = Option<Box<Encap>>> {
    let tunnel = prop_oneof![
        mpls().prop_map(Tunnel::Mpls),
        ip(any::<u32>().prop_map(Ipv4Addr::from)).prop_map(Tunnel::Ip),
        ila().prop_map(Tunnel::Ila),
        ip(v6()).prop_map(Tunnel::Ip6),
        seg6().prop_map(Tunnel::Seg6),
        bpf().prop_map(Tunnel::Bpf),
        seg6_local().prop_map(Tunnel::Seg6Local),
        rpl().prop_map(Tunnel::Rpl),
        ioam6().prop_map(Tunnel::Ioam6),
        (of(any::<u32>()), of(any::<u32>()))
            .prop_map(|(interface_id, link)| Tunnel::Xfrm(Xfrm { interface_id, link })),
        (11u16..).prop_map(Tunnel::Unknown),
    ];
    of((tunnel, raw(NOBODYS)).prop_map(|(tunnel, rest)| Box::new(Encap { tunnel, rest })))
}

pub fn metrics() -> impl Strategy<Value = Option<Box<RouteMetrics>>> {
    let numbers = vec(of(any::<u32>()), Metric::ALL.len());
    (numbers, any::<u32>(), of(text()), raw(NOBODYS)).prop_map(
        |(numbers, locked, congestion, rest)| {
            let mut row = RouteMetrics::default();
            row.locked = locked;
            row.congestion = congestion;
            row.rest = rest;
            for (metric, number) in Metric::ALL.into_iter().zip(numbers) {
                if let Some(number) = number {
                    row.set(metric, number);
                }
            }
            row.into_row()
        },
    )
}

fn v6() -> impl Strategy<Value = Ipv6Addr> + Clone {
    any::<u128>().prop_map(Ipv6Addr::from)
}

fn mpls() -> impl Strategy<Value = Mpls> {
    (vec(0u32..1 << 20, 0..5), of(any::<u8>())).prop_map(|(labels, ttl)| Mpls {
        labels: labels.into(),
        ttl,
    })
}

fn ip<A: Clone + std::fmt::Debug>(
    address: impl Strategy<Value = A> + Clone,
) -> impl Strategy<Value = IpTunnel<A>> {
    let addresses = (of(address.clone()), of(address));
    let numbers = (
        of(any::<u64>()),
        of(any::<u8>()),
        of(any::<u8>()),
        of(any::<u16>()),
    );
    (addresses, numbers, vec(option(), 0..4)).prop_map(|(addresses, numbers, options)| IpTunnel {
        id: numbers.0,
        destination: addresses.0,
        source: addresses.1,
        ttl: numbers.1,
        tos: numbers.2,
        flags: numbers.3,
        options: options.into(),
    })
}

fn option() -> impl Strategy<Value = TunnelOption> {
    let geneve = (any::<u16>(), any::<u8>(), vec(any::<u8>(), 0..9));
    let erspan = (
        any::<u8>(),
        of(any::<u32>()),
        of(any::<u8>()),
        of(any::<u8>()),
    );
    prop_oneof![
        geneve.prop_map(|(class, kind, data)| TunnelOption::Geneve {
            class,
            kind,
            data: data.into(),
        }),
        any::<u32>().prop_map(|group_policy| TunnelOption::Vxlan { group_policy }),
        erspan.prop_map(
            |(version, index, direction, hardware_id)| TunnelOption::Erspan {
                version,
                index,
                direction,
                hardware_id,
            }
        ),
    ]
}

fn ila() -> impl Strategy<Value = Ila> {
    let byte = || of(any::<u8>());
    (of(any::<u64>()), byte(), byte(), byte()).prop_map(
        |(locator, checksum_mode, identifier_kind, hook_kind)| Ila {
            locator,
            checksum_mode,
            identifier_kind,
            hook_kind,
        },
    )
}

fn program() -> impl Strategy<Value = Option<BpfProgram>> {
    of((of(any::<u32>()), of(text())).prop_map(|(number, name)| BpfProgram { number, name }))
}

fn bpf() -> impl Strategy<Value = Bpf> {
    (program(), program(), program(), of(any::<u32>())).prop_map(
        |(input, output, transmit, transmit_headroom)| Bpf {
            input,
            output,
            transmit,
            transmit_headroom,
        },
    )
}

fn header() -> impl Strategy<Value = SegmentHeader> {
    let hmac = (any::<u32>(), any::<[u8; 32]>())
        .prop_map(|(key_id, digest)| SegmentHmac { key_id, digest });
    let numbers = any::<(u8, u8, u8, u16)>();
    (numbers, vec(v6(), 1..6), of(hmac)).prop_map(|(numbers, segments, hmac)| SegmentHeader {
        next_header: numbers.0,
        left: numbers.1,
        flags: numbers.2,
        tag: numbers.3,
        segments: segments.into(),
        hmac,
    })
}

fn seg6() -> impl Strategy<Value = Seg6> {
    (any::<u32>(), header()).prop_map(|(mode, header)| Seg6 { mode, header })
}

fn seg6_local() -> impl Strategy<Value = Seg6Local> {
    let number = || of(any::<u32>());
    let numbers = (number(), number(), number(), number(), number());
    let gateways = (of(any::<u32>().prop_map(Ipv4Addr::from)), of(v6()));
    let flavors = (number(), of(any::<u8>()), of(any::<u8>())).prop_map(
        |(operations, block_bits, function_bits)| Flavors {
            operations,
            block_bits,
            function_bits,
        },
    );
    let rare = (of(header()), program(), of(flavors), any::<bool>());
    (numbers, gateways, rare).prop_map(|(numbers, gateways, rare)| Seg6Local {
        action: numbers.0,
        header: rare.0,
        table: numbers.1,
        vrf_table: numbers.2,
        gateway4: gateways.0,
        gateway6: gateways.1,
        input_link: numbers.3,
        output_link: numbers.4,
        program: rare.1,
        flavors: rare.2,
        counts: rare.3,
    })
}

fn rpl() -> impl Strategy<Value = Rpl> {
    (any::<u8>(), any::<u8>(), vec(v6(), 0..6)).prop_map(|(next_header, left, segments)| Rpl {
        next_header,
        left,
        segments: segments.into(),
    })
}

fn ioam6() -> impl Strategy<Value = Ioam6> {
    let trace = (
        any::<u16>(),
        0u8..32,
        any::<bool>(),
        0u8..128,
        0u32..1 << 24,
    )
        .prop_map(
            |(namespace, node_words, overflow, words_left, kind)| IoamTrace {
                namespace,
                node_words,
                overflow,
                words_left,
                kind,
            },
        );
    let numbers = (of(any::<u8>()), of(any::<u32>()), of(any::<u32>()));
    (numbers, of(v6()), trace).prop_map(|(numbers, destination, trace)| Ioam6 {
        mode: numbers.0,
        destination,
        trace,
        packets: numbers.1,
        of_packets: numbers.2,
    })
}
