//! `IFLA_GRE_…`.

use table::row::link::gre::Gre;

use super::attributes;

attributes!(Gre {
    1 link: Own,
    2 iflags: Net,
    3 oflags: Net,
    4 ikey: Net,
    5 okey: Net,
    6 local: Own,
    7 remote: Own,
    8 ttl: Own,
    9 tos: Own,
    10 pmtudisc: Own,
    11 encap_limit: Own,
    12 flowinfo: Net,
    13 flags: Own,
    14 encap.kind: Own,
    15 encap.flags: Own,
    16 encap.sport: Net,
    17 encap.dport: Net,
    18 collect_metadata: Present,
    19 ignore_df: Own,
    20 fwmark: Own,
    21 erspan_index: Own,
    22 erspan_ver: Own,
    23 erspan_dir: Own,
    24 erspan_hwid: Own,
});
