//! Changes that are made to a router and to its twin.

/// Changes that are made to both: the first takes effect by itself, the
/// second undoes it.
pub const CHANGES: [[&str; 2]; 19] = [
    [
        "ip route del 10.20.0.0/16",
        "ip route add 10.20.0.0/16 via 10.2.0.2",
    ],
    [
        "ip route replace 10.20.2.0/24 via 10.3.0.2",
        "ip route del 10.20.2.0/24",
    ],
    [
        "ip route replace blackhole 10.20.1.0/24",
        "ip route del 10.20.1.0/24",
    ],
    [
        "ip route replace 10.21.0.0/16 via 10.2.0.2 mtu 700",
        "ip route replace 10.21.0.0/16 via 10.2.0.2 mtu 600",
    ],
    ["ip route add default via 10.2.0.2", "ip route del default"],
    [
        "ip -6 route del 2001:db8:20::/48",
        "ip -6 route add 2001:db8:20::/48 via 2001:db8:2::2",
    ],
    [
        "ip -6 route replace unreachable 2001:db8:20::9",
        "ip -6 route del unreachable 2001:db8:20::9",
    ],
    [
        "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:02:77 dev wan nud permanent",
        "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:02:02 dev wan nud permanent",
    ],
    [
        "ip neigh replace 2001:db8:2::2 lladdr 02:00:00:00:02:78 dev wan nud permanent",
        "ip neigh replace 2001:db8:2::2 lladdr 02:00:00:00:02:02 dev wan nud permanent",
    ],
    [
        "ip addr add 10.20.1.1/32 dev lo",
        "ip addr del 10.20.1.1/32 dev lo",
    ],
    [
        "ip addr add 2001:db8:20::1/128 dev lo nodad",
        "ip addr del 2001:db8:20::1/128 dev lo",
    ],
    [
        "ip rule add to 10.20.2.0/24 lookup 100",
        "ip rule del to 10.20.2.0/24 lookup 100",
    ],
    [
        "ip rule add dsfield 0x10 lookup 100",
        "ip rule del dsfield 0x10 lookup 100",
    ],
    [
        "ip rule add iif lan ipproto udp dport 5000 prohibit",
        "ip rule del iif lan ipproto udp dport 5000 prohibit",
    ],
    ["ip link set wan mtu 1300", "ip link set wan mtu 1500"],
    ["ip link set wan mtu 1400", "ip link set wan mtu 1500"],
    [
        "sysctl -qw net.ipv4.conf.lan.forwarding=0",
        "sysctl -qw net.ipv4.conf.lan.forwarding=1",
    ],
    [
        "sysctl -qw net.ipv4.conf.wan.route_localnet=1",
        "sysctl -qw net.ipv4.conf.wan.route_localnet=0",
    ],
    [
        "ip link add mv0 address 02:00:00:00:02:09 link lan type macvlan mode bridge; ip addr add 10.44.0.1/24 dev mv0; ip link set mv0 up; ip neigh replace 10.44.0.2 lladdr 02:00:00:00:02:01 dev mv0 nud permanent",
        "ip link del mv0",
    ],
];

/// Changes that this process has to see first.
pub const WATCHED: [[&str; 2]; 10] = [
    [
        "sysctl -qw net.ipv4.conf.lan.rp_filter=0",
        "sysctl -qw net.ipv4.conf.lan.rp_filter=1",
    ],
    [
        "sysctl -qw net.ipv6.conf.all.forwarding=0",
        "sysctl -qw net.ipv6.conf.all.forwarding=1",
    ],
    [
        "sysctl -qw net.ipv6.conf.lan.disable_ipv6=1",
        "sysctl -qw net.ipv6.conf.lan.disable_ipv6=0; ip -6 addr replace 2001:db8:1::1/64 dev lan nodad; ip -6 neigh replace 2001:db8:1::2 lladdr 02:00:00:00:02:01 dev lan nud permanent",
    ],
    [
        "nft 'add table ip t; add chain ip t f { type filter hook forward priority 0; }; add rule ip t f ip ttl 64 drop'",
        "nft delete table ip t",
    ],
    [
        "ip link add mp0 link lan type macvlan mode passthru; ip link set mp0 up",
        "ip link del mp0",
    ],
    [
        "ip link add ms0 link lan type macvlan mode source; ip link set ms0 type macvlan macaddr add 02:00:00:00:02:01; ip link set ms0 up",
        "ip link del ms0",
    ],
    [
        "tc qdisc replace dev wan root tbf rate 1gbit burst 1m latency 50ms",
        "tc qdisc del dev wan root",
    ],
    ["tc qdisc add dev lan clsact", "tc qdisc del dev lan clsact"],
    [
        "ethtool -K lan gro off; ethtool -K wan tx off",
        "ethtool -K lan gro on; ethtool -K wan tx on",
    ],
    [
        "ip rule add fwmark 7 lookup 100",
        "ip rule del fwmark 7 lookup 100",
    ],
];

/// Those that want a kind of link that not every kernel has: its name.
pub const OF_KINDS: [(&str, [&str; 2]); 1] = [(
    "vlan",
    [
        "ip link add v2 link wan type vlan id 2; ip addr add 10.45.0.1/24 dev v2; ip link set v2 up; ip neigh replace 10.45.0.2 lladdr 02:00:00:00:02:02 dev v2 nud permanent",
        "ip link del v2",
    ],
)];
