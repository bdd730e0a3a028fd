//! `IFLA_GENEVE_…`.

use table::row::link::geneve::Geneve;

use super::attributes;

attributes!(Geneve {
    1 id: Own,
    2 remote: V4,
    3 ttl: Own,
    4 tos: Own,
    5 port: Net,
    6 collect_metadata: Present,
    7 remote: V6,
    8 udp_csum: Own,
    9 udp_zero_csum6_tx: Own,
    10 udp_zero_csum6_rx: Own,
    11 label: Net,
    12 ttl_inherit: Own,
    13 df: Own,
    14 inner_proto_inherit: Present,
    15 port_range: Net,
});
