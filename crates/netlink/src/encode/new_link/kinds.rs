//! The kinds of links that Fingerpost makes and the options of each, under
//! `ip`'s names (`linux/if_link.h`, `linux/if_tunnel.h`). A new option is a
//! line here.

/// A kind that can be made.
#[derive(Debug)]
pub struct Kind {
    /// `IFLA_INFO_KIND`.
    pub name: &'static str,
    /// The kernel's module (`modprobe`), where it is not built in.
    pub module: &'static str,
    /// What can be said of it.
    pub(super) options: &'static [Setting],
    /// What is sent unless something else is said: `ip`'s choice where the
    /// kernel's is another.
    pub(super) defaults: &'static [(u16, &'static [u8])],
}

impl Kind {
    const fn plain(name: &'static str) -> Self {
        Self::with(name, name, &[])
    }

    const fn with(name: &'static str, module: &'static str, options: &'static [Setting]) -> Self {
        Self {
            name,
            module,
            options,
            defaults: &[],
        }
    }

    /// The words of its options, in `ip`'s order.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().map(|setting| setting.word)
    }
}

/// An option: its word, the attribute it becomes, and how.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) word: &'static str,
    pub(super) number: u16,
    pub(super) form: Form,
}

/// How a number is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    U8,
    U16,
    U32,
    /// In network byte order.
    Be16,
    Be32,
}

type Names = &'static [(&'static str, u32)];

/// What follows an option's word, and what becomes of it.
#[derive(Debug)]
pub(super) enum Form {
    /// One of some names, or a number.
    Named(Names, Number),
    /// Nothing: the word alone is this value.
    Alone(&'static [u8]),
    Address4,
    Address6,
    /// An IPv4 address, or an IPv6 one with an attribute of its own.
    Address(u16),
    /// The name of a link.
    Link,
    /// Two numbers in network byte order.
    Range,
    /// A number, `auto` (0), or `inherit`: this other attribute.
    Ttl(u16, &'static [u8]),
    /// `on` or `off`: a bit of a value and of its mask.
    Bit(u32),
    /// `FROM:TO` several times.
    QosMap,
    /// IPv4 addresses with commas.
    Addresses4,
    /// Takes its ends from metadata; learns nothing, unless told to.
    ExternalVxlan,
    /// A GRE device that takes its ends from metadata.
    ExternalGre,
    /// A key, of the packets that come (0), go (1), or both.
    GreKey(&'static [usize]),
    /// A bit of the GRE header, likewise.
    GreBit(u16, &'static [usize]),
    /// Part of `IFLA_GRE_FLOWINFO`: shift, largest value, and the flag that
    /// stands for `inherit`.
    FlowInfo(u32, u32, u32),
    /// A number, or `none`.
    EncapLimit,
}

const fn row(word: &'static str, number: u16, form: Form) -> Setting {
    Setting { word, number, form }
}

const U8: Form = Form::Named(&[], Number::U8);
const U16: Form = Form::Named(&[], Number::U16);
const U32: Form = Form::Named(&[], Number::U32);
const BE16: Form = Form::Named(&[], Number::Be16);
const BE32: Form = Form::Named(&[], Number::Be32);
const TOS: Form = Form::Named(&[("inherit", 1)], Number::U8);
const VLAN_PROTOCOL: Form = Form::Named(
    &[("802.1Q", 0x8100), ("802.1q", 0x8100), ("802.1ad", 0x88a8)],
    Number::Be16,
);
const TABLE: Form = Form::Named(
    &[("default", 253), ("main", 254), ("local", 255)],
    Number::U32,
);
const DF: Form = Form::Named(&[("unset", 0), ("set", 1), ("inherit", 2)], Number::U8);
const YES: Form = Form::Alone(&[1]);
const NO: Form = Form::Alone(&[0]);
const PRESENT: Form = Form::Alone(&[]);

const IN: usize = 0;
const OUT: usize = 1;

const VLAN: &[Setting] = &[
    row("protocol", 5, VLAN_PROTOCOL),
    row("id", 1, U16),
    row("reorder_hdr", 2, Form::Bit(1)),
    row("gvrp", 2, Form::Bit(2)),
    row("loose_binding", 2, Form::Bit(4)),
    row("mvrp", 2, Form::Bit(8)),
    row("bridge_binding", 2, Form::Bit(0x10)),
    row("egress-qos-map", 3, Form::QosMap),
    row("ingress-qos-map", 4, Form::QosMap),
];

const MACVLAN: &[Setting] = &[
    row(
        "mode",
        1,
        Form::Named(
            &[
                ("private", 1),
                ("vepa", 2),
                ("bridge", 4),
                ("passthru", 8),
                ("source", 16),
            ],
            Number::U32,
        ),
    ),
    row("nopromisc", 2, Form::Alone(&1u16.to_ne_bytes())),
    row("bcqueuelen", 7, U32),
];

const IPVLAN: &[Setting] = &[
    row(
        "mode",
        1,
        Form::Named(&[("l2", 0), ("l3", 1), ("l3s", 2)], Number::U16),
    ),
    row("bridge", 2, Form::Alone(&0u16.to_ne_bytes())),
    row("private", 2, Form::Alone(&1u16.to_ne_bytes())),
    row("vepa", 2, Form::Alone(&2u16.to_ne_bytes())),
];

const BRIDGE: &[Setting] = &[
    row("forward_delay", 1, U32),
    row("hello_time", 2, U32),
    row("max_age", 3, U32),
    row("ageing_time", 4, U32),
    row("stp_state", 5, U32),
    row("priority", 6, U16),
    row("vlan_filtering", 7, U8),
    row("vlan_protocol", 8, VLAN_PROTOCOL),
    row("group_fwd_mask", 9, U16),
    row("mcast_router", 22, U8),
    row("mcast_snooping", 23, U8),
    row("mcast_query_use_ifaddr", 24, U8),
    row("mcast_querier", 25, U8),
    row("mcast_hash_max", 27, U32),
    row("mcast_igmp_version", 43, U8),
    row("mcast_mld_version", 44, U8),
    row("mcast_stats_enabled", 42, U8),
    row("nf_call_iptables", 36, U8),
    row("nf_call_ip6tables", 37, U8),
    row("nf_call_arptables", 38, U8),
    row("vlan_default_pvid", 39, U16),
    row("vlan_stats_enabled", 41, U8),
    row("vlan_stats_per_port", 45, U8),
    row("no_linklocal_learn", 46, Form::Bit(1)),
    row("mcast_vlan_snooping", 46, Form::Bit(2)),
];

const VXLAN: &[Setting] = &[
    row("id", 1, U32),
    row("vni", 1, U32),
    row("group", 2, Form::Address(16)),
    row("remote", 2, Form::Address(16)),
    row("local", 4, Form::Address(17)),
    row("dev", 3, Form::Link),
    row("ttl", 5, Form::Ttl(28, &[])),
    row("tos", 6, TOS),
    row("df", 29, DF),
    row("flowlabel", 26, BE32),
    row("dstport", 15, BE16),
    row("srcport", 10, Form::Range),
    row("learning", 7, YES),
    row("nolearning", 7, NO),
    row("proxy", 11, YES),
    row("noproxy", 11, NO),
    row("rsc", 12, YES),
    row("norsc", 12, NO),
    row("l2miss", 13, YES),
    row("nol2miss", 13, NO),
    row("l3miss", 14, YES),
    row("nol3miss", 14, NO),
    row("ageing", 8, U32),
    row("maxaddress", 9, U32),
    row("udpcsum", 18, YES),
    row("noudpcsum", 18, NO),
    row("udp6zerocsumtx", 19, YES),
    row("noudp6zerocsumtx", 19, NO),
    row("udp6zerocsumrx", 20, YES),
    row("noudp6zerocsumrx", 20, NO),
    row("external", 25, Form::ExternalVxlan),
    row("gbp", 23, PRESENT),
    row("gpe", 27, PRESENT),
    row("vnifilter", 30, YES),
];

const GENEVE: &[Setting] = &[
    row("id", 1, U32),
    row("vni", 1, U32),
    row("remote", 2, Form::Address(7)),
    row("ttl", 3, Form::Ttl(12, &[1])),
    row("tos", 4, TOS),
    row("df", 13, DF),
    row("flowlabel", 11, BE32),
    row("dstport", 5, BE16),
    row("external", 6, PRESENT),
    row("udpcsum", 8, YES),
    row("noudpcsum", 8, NO),
    row("udp6zerocsumtx", 9, YES),
    row("noudp6zerocsumtx", 9, NO),
    row("udp6zerocsumrx", 10, YES),
    row("noudp6zerocsumrx", 10, NO),
    row("innerprotoinherit", 14, PRESENT),
];

/// What GRE over IPv4 and over IPv6 have alike.
macro_rules! gre {
    ($($row:expr),* $(,)?) => {
        &[
            row("key", 0, Form::GreKey(&[IN, OUT])),
            row("ikey", 0, Form::GreKey(&[IN])),
            row("okey", 0, Form::GreKey(&[OUT])),
            row("csum", 0, Form::GreBit(0x8000, &[IN, OUT])),
            row("icsum", 0, Form::GreBit(0x8000, &[IN])),
            row("ocsum", 0, Form::GreBit(0x8000, &[OUT])),
            row("seq", 0, Form::GreBit(0x1000, &[IN, OUT])),
            row("iseq", 0, Form::GreBit(0x1000, &[IN])),
            row("oseq", 0, Form::GreBit(0x1000, &[OUT])),
            row("dev", 1, Form::Link),
            row("external", 18, Form::ExternalGre),
            row("fwmark", 20, U32),
            $($row,)*
        ]
    };
}

const TTL4: Form = Form::Named(&[("inherit", 0)], Number::U8);

const GRE: &[Setting] = gre![
    row("local", 6, Form::Address4),
    row("remote", 7, Form::Address4),
    row("ttl", 8, TTL4),
    row("tos", 9, TOS),
    row("pmtudisc", 10, YES),
    row("nopmtudisc", 10, NO),
    row("ignore-df", 19, YES),
    row("noignore-df", 19, NO),
];

const IP6GRE: &[Setting] = gre![
    row("local", 6, Form::Address6),
    row("remote", 7, Form::Address6),
    row("hoplimit", 8, TTL4),
    row("ttl", 8, TTL4),
    row("encaplimit", 11, Form::EncapLimit),
    row("tclass", 12, Form::FlowInfo(20, 0xff, 2)),
    row("flowlabel", 12, Form::FlowInfo(0, 0xf_ffff, 4)),
];

/// `IFLA_GRE_PMTUDISC`.
const GRE_DEFAULTS: &[(u16, &[u8])] = &[(10, &[1])];
/// `IFLA_GRE_TTL` and `IFLA_GRE_ENCAP_LIMIT`: without them the kernel makes
/// a tunnel whose packets live for no hop at all.
const IP6GRE_DEFAULTS: &[(u16, &[u8])] = &[(8, &[64]), (11, &[4])];

const BOND: &[Setting] = &[
    row(
        "mode",
        1,
        Form::Named(
            &[
                ("balance-rr", 0),
                ("active-backup", 1),
                ("balance-xor", 2),
                ("broadcast", 3),
                ("802.3ad", 4),
                ("balance-tlb", 5),
                ("balance-alb", 6),
            ],
            Number::U8,
        ),
    ),
    row("active_slave", 2, Form::Link),
    row("miimon", 3, U32),
    row("updelay", 4, U32),
    row("downdelay", 5, U32),
    row("peer_notify_delay", 28, U32),
    row("use_carrier", 6, U8),
    row("arp_interval", 7, U32),
    row("arp_ip_target", 8, Form::Addresses4),
    row(
        "arp_validate",
        9,
        Form::Named(
            &[
                ("none", 0),
                ("active", 1),
                ("backup", 2),
                ("all", 3),
                ("filter", 4),
                ("filter_active", 5),
                ("filter_backup", 6),
            ],
            Number::U32,
        ),
    ),
    row(
        "arp_all_targets",
        10,
        Form::Named(&[("any", 0), ("all", 1)], Number::U32),
    ),
    row("primary", 11, Form::Link),
    row(
        "primary_reselect",
        12,
        Form::Named(&[("always", 0), ("better", 1), ("failure", 2)], Number::U8),
    ),
    row(
        "fail_over_mac",
        13,
        Form::Named(&[("none", 0), ("active", 1), ("follow", 2)], Number::U8),
    ),
    row(
        "xmit_hash_policy",
        14,
        Form::Named(
            &[
                ("layer2", 0),
                ("layer3+4", 1),
                ("layer2+3", 2),
                ("encap2+3", 3),
                ("encap3+4", 4),
                ("vlan+srcmac", 5),
            ],
            Number::U8,
        ),
    ),
    row("resend_igmp", 15, U32),
    row("num_grat_arp", 16, U8),
    row("num_unsol_na", 16, U8),
    row("all_slaves_active", 17, U8),
    row("min_links", 18, U32),
    row("lp_interval", 19, U32),
    row("packets_per_slave", 20, U32),
    row(
        "lacp_rate",
        21,
        Form::Named(&[("slow", 0), ("fast", 1)], Number::U8),
    ),
    row(
        "ad_select",
        22,
        Form::Named(&[("stable", 0), ("bandwidth", 1), ("count", 2)], Number::U8),
    ),
    row("tlb_dynamic_lb", 27, U8),
];

/// Every kind that can be made by `RTM_NEWLINK`. (`tun` and `tap` are made
/// by their device file.)
pub const KINDS: &[Kind] = &[
    Kind::plain("veth"),
    Kind::with("vlan", "8021q", VLAN),
    Kind::with("macvlan", "macvlan", MACVLAN),
    Kind::with("macvtap", "macvtap", MACVLAN),
    Kind::with("ipvlan", "ipvlan", IPVLAN),
    Kind::with("ipvtap", "ipvtap", IPVLAN),
    Kind::with("bridge", "bridge", BRIDGE),
    Kind::with("vxlan", "vxlan", VXLAN),
    Kind::plain("dummy"),
    Kind::plain("ifb"),
    Kind::with("vrf", "vrf", &[row("table", 1, TABLE)]),
    Kind::with("geneve", "geneve", GENEVE),
    Kind::with("bond", "bonding", BOND),
    Kind::plain("wireguard"),
    Kind {
        defaults: GRE_DEFAULTS,
        ..Kind::with("gre", "ip_gre", GRE)
    },
    Kind {
        defaults: GRE_DEFAULTS,
        ..Kind::with("gretap", "ip_gre", GRE)
    },
    Kind {
        defaults: IP6GRE_DEFAULTS,
        ..Kind::with("ip6gre", "ip6_gre", IP6GRE)
    },
    Kind {
        defaults: IP6GRE_DEFAULTS,
        ..Kind::with("ip6gretap", "ip6_gre", IP6GRE)
    },
];
