//! `IFLA_VXLAN_…`.

use table::row::link::vxlan::Vxlan;

use super::form::{Form, Present};
use super::{Data, attributes};
use crate::build::Build;

attributes!(Vxlan {
    1 id: Own,
    2 group: V4,
    3 link: Own,
    4 local: V4,
    5 ttl: Own,
    6 tos: Own,
    7 learning: Own,
    8 ageing: Own,
    9 limit: Own,
    10 port_range: Net,
    11 proxy: Own,
    12 rsc: Own,
    13 l2miss: Own,
    14 l3miss: Own,
    15 port: Net,
    16 group: V6,
    17 local: V6,
    18 udp_csum: Own,
    19 udp_zero_csum6_tx: Own,
    20 udp_zero_csum6_rx: Own,
    21 remcsum_tx: Own,
    22 remcsum_rx: Own,
    23 gbp: Present,
    24 remcsum_nopartial: Present,
    25 collect_metadata: Own,
    26 label: Net,
    27 gpe: Present,
    28 ttl_inherit: Own,
    29 df: Own,
    30 vnifilter: Own,
    31 localbypass: Own,
    32 label_policy: Own,
    33 reserved_bits: Own,
});

/// `IFLA_VXLAN_TTL_INHERIT`: told as a number, taken as a flag.
const TTL_INHERIT: u16 = 28;

/// Appends the attributes of a VXLAN to be made.
pub(super) fn put_wanted(build: &mut Build<'_>, data: &Vxlan) {
    let inherits = data.ttl_inherit.is_some_and(|told| told != 0);
    let mut data = data.clone();
    data.ttl_inherit = None;
    data.write(build);
    Present::write(&inherits, TTL_INHERIT, build);
}
