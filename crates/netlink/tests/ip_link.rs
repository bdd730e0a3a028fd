//! New links, message by message against what `ip` sends for the same
//! words. `ip` runs under `strace`, which shows the bytes: it sends them
//! for kinds that this kernel lacks, too.
//!
//! What may differ, and why: the order of attributes and the NUL at the end
//! of a text mean nothing to the kernel; a file descriptor is each
//! process's own; and [`SPARED`] are defaults that `ip` spells out.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]

use std::collections::BTreeMap;
use std::fs;

use fingerpost_netlink::attribute::attributes;
use fingerpost_netlink::decode::Operation;
use fingerpost_netlink::encode::{
    LinkEnd, LinkKind, LinkNetns, NewLink, Request, kind_of_words, new_link,
};
use fingerpost_netlink::message::{flag, kind, messages};
use lab::Netns;
use table::LinkLayerAddress;

/// Index of `em1`, the first link of the test's namespace.
const EM1: u32 = 71;
const IFNAME: u16 = 3;
const IFALIAS: u16 = 20;
const LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const NET_NS_FD: u16 = 28;

/// Attributes of a kind's data.
type Spared = &'static [(u16, &'static [u8])];

/// Of a kind's data: what the kernel does without the attribute is what
/// `ip` asks for by it.
const SPARED: &[(&str, Spared)] = &[
    ("gre", GRE),
    ("gretap", GRE),
    ("ip6gre", GRE),
    ("ip6gretap", GRE),
    // The identifier of one that has none, label, TTL, TOS.
    (
        "geneve",
        &[
            (1, &[0; 4]),
            (11, &[0; 4]),
            (3, &[0]),
            (4, &[0]),
            (13, &[0]),
        ],
    ),
    // Bridge mode.
    ("ipvlan", &[(2, &[0; 2])]),
    ("ipvtap", &[(2, &[0; 2])]),
    // Learning is the kernel's default as well.
    ("vxlan", &[(7, &[1])]),
];

const GRE: Spared = &[
    // Flags and keys.
    (2, &[0; 2]),
    (3, &[0; 2]),
    (4, &[0; 4]),
    (5, &[0; 4]),
    // TTL, TOS, flow label, flags, mark.
    (8, &[0]),
    (9, &[0]),
    (12, &[0; 4]),
    (13, &[0; 4]),
    (20, &[0; 4]),
    // No encapsulation: its kind, flags (a checksum that nobody makes) and
    // ports.
    (14, &[0; 2]),
    (15, &[0; 2]),
    (15, &[2, 0]),
    (16, &[0; 2]),
    (17, &[0; 2]),
    // ERSPAN's version; GRE has none.
    (22, &[1]),
];

/// Kinds and options, in the words that both understand. The link above
/// `em1` where there is a `link`.
const KINDS: &[(&str, &[&str])] = &[
    (
        "vlan",
        &[
            "id 5",
            "protocol 802.1Q id 4094",
            "protocol 802.1ad id 6 reorder_hdr off gvrp on mvrp on loose_binding on bridge_binding on",
            "id 7 egress-qos-map 1:2 3:4 ingress-qos-map 5:6",
        ],
    ),
    (
        "macvlan",
        &[
            "mode bridge",
            "mode private bcqueuelen 3000",
            "mode vepa",
            "mode passthru nopromisc",
        ],
    ),
    ("macvtap", &["mode bridge", "mode passthru", "mode source"]),
    (
        "ipvlan",
        &[
            "",
            "mode l2",
            "mode l3 private",
            "mode l3s vepa",
            "mode l2 bridge",
        ],
    ),
    ("ipvtap", &["mode l3s vepa"]),
    ("dummy", &[""]),
    ("ifb", &[""]),
    ("wireguard", &[""]),
    ("vrf", &["table 10", "table 100000"]),
    (
        "bridge",
        &[
            "",
            "vlan_filtering 1 stp_state 1 forward_delay 200 hello_time 100 max_age 600 \
             ageing_time 3000 priority 100 vlan_default_pvid 0 group_fwd_mask 8 \
             vlan_protocol 802.1ad vlan_stats_enabled 1 vlan_stats_per_port 1",
            "mcast_snooping 0 mcast_router 2 mcast_query_use_ifaddr 1 mcast_querier 1 \
             mcast_hash_max 512 mcast_igmp_version 3 mcast_mld_version 2 mcast_stats_enabled 1",
            "nf_call_iptables 1 nf_call_ip6tables 1 nf_call_arptables 1",
            "no_linklocal_learn 1",
            "mcast_vlan_snooping 1",
        ],
    ),
    (
        "vxlan",
        &[
            "id 42 dev em1 local 192.0.2.1 group 239.1.1.1 dstport 4789 nolearning ttl 10",
            "id 43 remote 2001:db8::2 local 2001:db8::1 dstport 4790 learning tos 4 udpcsum \
             udp6zerocsumtx udp6zerocsumrx noproxy rsc l2miss l3miss srcport 1000 2000 \
             ageing 100 maxaddress 50 gbp df set flowlabel 0x1234",
            "external dstport 4789 gpe vnifilter",
            "id 5 dstport 4789 ttl inherit tos inherit df inherit norsc nol2miss nol3miss proxy",
            "id 6 dstport 4791 ttl auto noudpcsum noudp6zerocsumtx noudp6zerocsumrx df unset",
        ],
    ),
    (
        "geneve",
        &[
            "id 5 remote 192.0.2.9 ttl 3 tos 4 dstport 7000 udpcsum df unset",
            "id 6 remote 2001:db8::9 noudp6zerocsumtx udp6zerocsumrx flowlabel 9 ttl inherit \
             innerprotoinherit",
            "external",
        ],
    ),
    (
        "gre",
        &[
            "remote 192.0.2.2 local 192.0.2.1 ttl 64 key 5 dev em1 csum seq",
            "remote 192.0.2.2 tos inherit fwmark 5",
        ],
    ),
    (
        "gretap",
        &[
            "remote 192.0.2.2 local 192.0.2.1 ikey 1 okey 1.2.3.4 nopmtudisc tos 8 ignore-df \
             icsum oseq",
            "external",
        ],
    ),
    (
        "ip6gre",
        &[
            "remote 2001:db8::2 local 2001:db8::1 hoplimit 5 encaplimit 3 tclass 4 \
             flowlabel 0x12345 dev em1",
            "remote 2001:db8::2",
        ],
    ),
    (
        "ip6gretap",
        &[
            "remote 2001:db8::2 local 2001:db8::1 encaplimit none tclass inherit \
             flowlabel inherit key 7 fwmark 8",
        ],
    ),
    (
        "bond",
        &[
            "",
            "mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4 updelay 200 \
             downdelay 300 ad_select bandwidth min_links 2",
            "mode active-backup primary em1 arp_interval 100 \
             arp_ip_target 192.0.2.1,192.0.2.2 arp_validate all fail_over_mac active \
             num_grat_arp 3 resend_igmp 2 all_slaves_active 1 lp_interval 5 \
             packets_per_slave 3 primary_reselect better use_carrier 0 arp_all_targets any \
             tlb_dynamic_lb 0 peer_notify_delay 100",
            "mode balance-xor xmit_hash_policy vlan+srcmac active_slave em1",
        ],
    ),
];

struct Case {
    ip: String,
    ours: NewLink,
}

fn end(name: &str) -> LinkEnd {
    LinkEnd {
        name: name.into(),
        ..LinkEnd::default()
    }
}

fn by_words() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, options) in KINDS {
        for options in *options {
            let name = format!("x{}", cases.len());
            let above = matches!(*kind, "vlan" | "macvlan" | "macvtap" | "ipvlan" | "ipvtap");
            let link = if above { "link em1" } else { "" };
            let words: Vec<&str> = options.split_whitespace().collect();
            let ours = kind_of_words(kind, &words, &mut |name| (name == "em1").then_some(EM1));
            cases.push(Case {
                ip: format!("link add {link} name {name} type {kind} {options}"),
                ours: NewLink {
                    end: end(&name),
                    master: None,
                    lower: above.then_some(EM1),
                    alias: None,
                    kind: ours.unwrap_or_else(|error| panic!("{kind} {options}: {error}")),
                },
            });
        }
    }
    cases
}

/// What any link may have, and the two ends of a pair.
fn by_hand(netns: &str) -> Vec<Case> {
    let all = |name: &str, octet| LinkEnd {
        name: name.into(),
        index: 0,
        up: true,
        mtu: Some(1400),
        address: LinkLayerAddress::new(&[2, 0, 0, 0, 0, octet]),
        broadcast: LinkLayerAddress::new(&[0xff; 6]),
        group: Some(7),
        tx_queue_len: Some(500),
        tx_queues: Some(2),
        rx_queues: Some(3),
        netns: None,
    };
    let words = |octet| {
        format!(
            "mtu 1400 address 02:00:00:00:00:0{octet} broadcast ff:ff:ff:ff:ff:ff \
             txqueuelen 500 numtxqueues 2 numrxqueues 3 group 7 up"
        )
    };
    let veth = |peer| LinkKind::Veth {
        peer: Box::new(peer),
    };
    let plain = |end, kind| NewLink {
        end,
        master: None,
        lower: None,
        alias: None,
        kind,
    };
    let dummy = || kind_of_words("dummy", &[], &mut |_| None).expect("dummy");
    let numbered = |name, index| LinkEnd { index, ..end(name) };
    let placed = |name, netns| LinkEnd {
        netns: Some(netns),
        ..end(name)
    };
    vec![
        Case {
            ip: "link add v0 type veth peer name v1".into(),
            ours: plain(end("v0"), veth(end("v1"))),
        },
        Case {
            ip: format!(
                "link add v2 {} type veth peer name v3 {}",
                words(1),
                words(2)
            ),
            ours: plain(all("v2", 1), veth(all("v3", 2))),
        },
        Case {
            ip: "link add v4 index 2001 type veth peer name v5 index 2002".into(),
            ours: plain(numbered("v4", 2001), veth(numbered("v5", 2002))),
        },
        Case {
            ip: format!("link add v6 type veth peer name v7 netns {netns}"),
            ours: plain(end("v6"), veth(placed("v7", LinkNetns::Fd(0)))),
        },
        Case {
            ip: "link add v8 netns 1 type dummy".into(),
            ours: plain(placed("v8", LinkNetns::Pid(1)), dummy()),
        },
        Case {
            ip: "link add v9 alias hello master em1 type dummy".into(),
            ours: NewLink {
                master: Some(EM1),
                alias: Some("hello".into()),
                ..plain(end("v9"), dummy())
            },
        },
    ]
}

/// A message as a tree of attributes, its header under number 0. Texts and
/// descriptors as the module's head says.
type Tree = BTreeMap<Vec<u16>, Vec<u8>>;

fn tree(payload: &[u8]) -> Tree {
    let mut tree = Tree::new();
    tree.insert(vec![0], payload[..16].to_vec());
    grow(&mut tree, &[], &payload[16..]);
    tree
}

fn grow(tree: &mut Tree, path: &[u16], bytes: &[u8]) {
    for attribute in attributes(bytes) {
        let (number, value) = attribute.expect("a sound attribute");
        let path: Vec<u16> = path.iter().copied().chain([number]).collect();
        let is_peer = path == [LINKINFO, INFO_DATA, 1] && value.len() > 16;
        match path.as_slice() {
            [LINKINFO] | [LINKINFO, INFO_DATA] => grow(tree, &path, value),
            // VETH_INFO_PEER; nothing else under this number is so long but
            // an address of IPv6, which has 16.
            _ if is_peer => {
                tree.insert([&path[..], &[0]].concat(), value[..16].to_vec());
                grow(tree, &path, &value[16..]);
            }
            [.., NET_NS_FD] => {
                tree.insert(path, Vec::new());
            }
            [IFNAME | IFALIAS] | [LINKINFO, INFO_KIND] | [LINKINFO, INFO_DATA, 1, IFNAME] => {
                let text = value.strip_suffix(&[0]).unwrap_or(value);
                tree.insert(path, text.to_vec());
            }
            _ => {
                tree.insert(path, value.to_vec());
            }
        }
    }
}

/// What `ip` says and the kernel would do anyway.
fn spare(theirs: &mut Tree, ours: &Tree) {
    let kind = theirs.get(&vec![LINKINFO, INFO_KIND]).cloned();
    let kind = String::from_utf8(kind.unwrap_or_default()).expect("a kind's name");
    let spared = SPARED.iter().filter(|(of, _)| *of == kind);
    for (number, value) in spared.flat_map(|(_, spared)| *spared) {
        let path = vec![LINKINFO, INFO_DATA, *number];
        if !ours.contains_key(&path) && theirs.get(&path).is_some_and(|theirs| theirs == value) {
            theirs.remove(&path);
        }
    }
}

/// Payloads of the `RTM_NEWLINK`s that make something, as strace shows
/// them: ` | 00010  00 01 …  text |`.
fn sent(trace: &str) -> Vec<Vec<u8>> {
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for line in trace.lines() {
        if line.contains(" sendmsg(") {
            sent.push(Vec::new());
        }
        let Some((_, dump)) = line.split_once(" | ") else {
            continue;
        };
        let octets = dump.get(7..56).unwrap_or_default().split_whitespace();
        if let Some(message) = sent.last_mut() {
            message.extend(octets.map(|octet| u8::from_str_radix(octet, 16).expect("an octet")));
        }
    }
    let mut payloads = Vec::new();
    for bytes in &sent {
        for message in messages(bytes) {
            let message = message.expect("a sound message");
            if message.kind == kind::NEWLINK && message.flags & flag::CREATE != 0 {
                payloads.push(message.payload.to_vec());
            }
        }
    }
    payloads
}

fn trace(netns: &Netns, cases: &[Case]) -> String {
    let directory = std::env::temp_dir();
    let file = |what: &str| {
        let path = directory.join(format!("{}-{what}", netns.name()));
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let (batch, written) = (file("batch"), file("trace"));
    let lines: Vec<&str> = cases.iter().map(|case| case.ip.as_str()).collect();
    fs::write(&batch, lines.join("\n") + "\n").expect("a file");
    // Kinds that this kernel lacks are refused: ip goes on and fails in the
    // end, which is all right.
    let strace = [
        "-o",
        &written,
        "-f",
        "-e",
        "trace=sendmsg",
        "-e",
        "write=all",
    ];
    let status = netns
        .command("strace")
        .args(strace)
        .args(["ip", "-force", "-batch", &batch])
        .stderr(std::process::Stdio::null())
        .status();
    status.expect("strace");
    let text = fs::read_to_string(&written).expect("the trace");
    let _ = fs::remove_file(&batch);
    let _ = fs::remove_file(&written);
    text
}

#[test]
fn every_kind_is_asked_for_as_ip_asks() {
    let netns = Netns::new("iplink").expect("a namespace");
    netns
        .ip(&[
            "link", "add", "em1", "index", "71", "type", "veth", "peer", "name", "em2",
        ])
        .expect("em1");
    let mut cases = by_words();
    cases.extend(by_hand(netns.name()));
    let theirs = sent(&trace(&netns, &cases));
    assert_eq!(theirs.len(), cases.len(), "ip understood every line");
    let mut failures = Vec::new();
    for (case, theirs) in cases.iter().zip(&theirs) {
        let mut bytes = Vec::new();
        let request = Request {
            operation: Operation::New,
            flags: flag::CREATE | flag::EXCL,
            sequence: 1,
            now_millis: 0,
        };
        new_link(&mut bytes, &request, &case.ours).expect("a short message");
        let ours = messages(&bytes).next().expect("one").expect("sound");
        assert_eq!(ours.kind, kind::NEWLINK);
        let ours = tree(ours.payload);
        let mut theirs = tree(theirs);
        spare(&mut theirs, &ours);
        if ours != theirs {
            failures.push(format!("{}:\n{ours:02x?}\nip: {theirs:02x?}", case.ip));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn words_that_make_no_sense_are_named_with_what_would() {
    for (kind, words, says) in [
        (
            "fish",
            "",
            "`fish` is no kind of link that can be made; there are veth, vlan,",
        ),
        (
            "vlan",
            "id 70000",
            "vlan: id `70000`: a number up to 65535 is expected",
        ),
        (
            "vlan",
            "id",
            "vlan: a number up to 65535 is missing after `id`",
        ),
        (
            "vlan",
            "colour red",
            "vlan has no option `colour`; it has protocol, id,",
        ),
        (
            "vlan",
            "egress-qos-map 1:x",
            "FROM:TO, two numbers is expected",
        ),
        (
            "macvlan",
            "mode fish",
            "private, vepa, bridge, passthru, source or a number",
        ),
        (
            "vxlan",
            "id 5 dev fish",
            "dev `fish`: a link that exists is expected",
        ),
        (
            "vxlan",
            "learning=yes",
            "learning `yes`: nothing is expected",
        ),
        ("gre", "local 2001:db8::1", "an IPv4 address is expected"),
        (
            "ip6gre",
            "flowlabel 0x100000",
            "a number up to 0xfffff or inherit is expected",
        ),
        (
            "bond",
            "arp_ip_target 1.2.3.4,x",
            "IPv4 addresses with commas is expected",
        ),
        ("veth", "fish", "veth has no option `fish`"),
        ("dummy", "id 5", "dummy has no option `id`"),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let error = kind_of_words(kind, &words, &mut |_| None).expect_err(kind);
        assert!(
            error.to_string().contains(says),
            "{kind} {words:?}: {error}"
        );
    }
    let many = ["gvrp=on"; 600];
    assert!(kind_of_words("vlan", &many, &mut |_| None).is_err());
    assert_eq!(
        kind_of_words("vlan", &["id=5", "protocol=802.1ad"], &mut |_| None),
        kind_of_words("vlan", &["id", "5", "protocol", "802.1ad"], &mut |_| None),
    );
}
