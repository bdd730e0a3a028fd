//! `IFLA_IPTUN_…`. Of `IFLA_IPTUN_FLAGS` the size tells whose they are.

use table::row::link::ip_tunnel::IpTunnel;

use super::attributes;

attributes!(IpTunnel {
    1 link: Own,
    2 local: Own,
    3 remote: Own,
    4 ttl: Own,
    5 tos: Own,
    6 encap_limit: Own,
    7 flowinfo: Net,
    8 sit_flags: Own,
    8 flags: Own,
    9 proto: Own,
    10 pmtudisc: Own,
    11 six_rd_prefix: Own,
    12 six_rd_relay_prefix: Own,
    13 six_rd_prefixlen: Own,
    14 six_rd_relay_prefixlen: Own,
    15 encap.kind: Own,
    16 encap.flags: Own,
    17 encap.sport: Net,
    18 encap.dport: Net,
    19 collect_metadata: Present,
    20 fwmark: Own,
});
