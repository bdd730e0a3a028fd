//! IEEE 802.1Q.

use table::row::link::vlan::Vlan;

use super::put::Put;
use crate::fields::{Value, Visit};

/// `VLAN_FLAG_…`, `linux/if_vlan.h`.
const FLAGS: [(u32, &str); 5] = [
    (0x1, "REORDER_HDR"),
    (0x2, "GVRP"),
    (0x8, "MVRP"),
    (0x4, "LOOSE_BINDING"),
    (0x10, "BRIDGE_BINDING"),
];

pub(super) fn show<V: Visit>(vlan: &Vlan, put: &mut Put<'_, '_, V>) {
    let Some(id) = vlan.id else {
        return;
    };
    match vlan.protocol {
        None => put.value("protocol", "protocol", Value::Text("802.1q")),
        known => protocol(put, "protocol", known),
    }
    put.number("id", "id", Some(id));
    if let Some((flags, _)) = vlan.flags {
        let named = FLAGS.into_iter().filter(|(bit, _)| flags & bit != 0);
        let other = FLAGS.into_iter().fold(flags, |rest, (bit, _)| rest & !bit);
        let names = named.map(|(_, name)| Value::Text(name));
        let other = (other != 0).then_some(Value::Hex(other.into()));
        put.flags("flags", names.chain(other));
    }
    for (key, word, pairs) in [
        ("ingress_qos", "ingress-qos-map", &vlan.ingress_qos),
        ("egress_qos", "egress-qos-map", &vlan.egress_qos),
    ] {
        if !pairs.is_empty() {
            put.line("      ");
            put.say(word, Value::Text("{"));
            put.pairs(key, pairs);
            put.say_word("}");
        }
    }
}

/// The Ethernet protocol of a tag.
pub(super) fn protocol<V: Visit>(
    put: &mut Put<'_, '_, V>,
    key: &'static str,
    protocol: Option<u16>,
) {
    match protocol {
        Some(0x8100) => put.value(key, key, Value::Text("802.1Q")),
        Some(0x88a8) => put.value(key, key, Value::Text("802.1ad")),
        Some(other) => put.value(key, key, Value::Text(&format!("[{other}]"))),
        None => {}
    }
}
