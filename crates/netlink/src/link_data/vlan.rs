//! `IFLA_VLAN_…`.

use table::row::link::vlan::Vlan;

use super::attributes;

attributes!(Vlan {
    1 id: Own,
    2 flags: Own,
    3 egress_qos: QosMap,
    4 ingress_qos: QosMap,
    5 protocol: Net,
});
