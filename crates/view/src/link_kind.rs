//! What `ip -d link` tells of a link's own kind: the settings by which
//! people tell links apart, out of `IFLA_INFO_DATA`.

use netlink::attribute::{self, address};
use table::RawAttributes;

use crate::attributes::{network_number, number};
use crate::context::View;
use crate::fields::{Value, Visit, push_plain};

/// The columns of [`fields`].
pub(crate) const COLUMNS: &[&str] = &[
    "linkinfo.info_data.protocol",
    "linkinfo.info_data.id",
    "linkinfo.info_data.mode",
    "linkinfo.info_data.table",
    "linkinfo.info_data.remote",
    "linkinfo.info_data.local",
    "linkinfo.info_data.link",
    "linkinfo.info_data.port",
    "linkinfo.info_data.forward_delay",
    "linkinfo.info_data.hello_time",
    "linkinfo.info_data.max_age",
    "linkinfo.info_data.ageing_time",
    "linkinfo.info_data.stp_state",
    "linkinfo.info_data.priority",
    "linkinfo.info_data.vlan_filtering",
];

/// How the payload of an attribute is read.
#[derive(Clone, Copy)]
enum Reading {
    Number,
    NetworkNumber,
    Address,
    /// Index of a link.
    Link,
    /// A number that stands for a word.
    Word(&'static [(u64, &'static str)]),
}

/// One setting: attribute, key in JSON, label in text.
type Setting = (u16, &'static str, &'static str, Reading);

const VLAN_PROTOCOLS: &[(u64, &str)] = &[(0x8100, "802.1Q"), (0x88a8, "802.1ad")];
const MACVLAN_MODES: &[(u64, &str)] = &[
    (1, "private"),
    (2, "vepa"),
    (4, "bridge"),
    (8, "passthru"),
    (16, "source"),
];
const IPVLAN_MODES: &[(u64, &str)] = &[(0, "l2"), (1, "l3"), (2, "l3s")];
const BOND_MODES: &[(u64, &str)] = &[
    (0, "balance-rr"),
    (1, "active-backup"),
    (2, "balance-xor"),
    (3, "broadcast"),
    (4, "802.3ad"),
    (5, "balance-tlb"),
    (6, "balance-alb"),
];

/// `IFLA_VLAN_…`, `IFLA_MACVLAN_…`, `IFLA_VXLAN_…`, … of `linux/if_link.h`,
/// in the order in which `ip` shows them.
fn settings(kind: &str) -> &'static [Setting] {
    use Reading::{Address, Link, NetworkNumber, Number, Word};
    match kind {
        "vlan" => &[
            (5, "protocol", "protocol ", Word(VLAN_PROTOCOLS)),
            (1, "id", "id ", Number),
        ],
        "macvlan" | "macvtap" => &[(1, "mode", "mode ", Word(MACVLAN_MODES))],
        "ipvlan" | "ipvtap" => &[(1, "mode", "mode ", Word(IPVLAN_MODES))],
        "bond" => &[(1, "mode", "mode ", Word(BOND_MODES))],
        "vrf" => &[(1, "table", "table ", Number)],
        "vxlan" => &[
            (1, "id", "id ", Number),
            (2, "remote", "remote ", Address),
            (16, "remote", "remote ", Address),
            (4, "local", "local ", Address),
            (17, "local", "local ", Address),
            (3, "link", "dev ", Link),
            (15, "port", "dstport ", NetworkNumber),
        ],
        "bridge" => &[
            (1, "forward_delay", "forward_delay ", Number),
            (2, "hello_time", "hello_time ", Number),
            (3, "max_age", "max_age ", Number),
            (4, "ageing_time", "ageing_time ", Number),
            (5, "stp_state", "stp_state ", Number),
            (6, "priority", "priority ", Number),
            (7, "vlan_filtering", "vlan_filtering ", Number),
        ],
        _ => &[],
    }
}

fn read<'a>(reading: Reading, payload: &[u8], view: &View<'a>) -> Option<Value<'a>> {
    Some(match reading {
        Reading::Number => Value::Number(number(payload)?),
        Reading::NetworkNumber => Value::Number(network_number(payload)?),
        Reading::Address => Value::Address(address(payload).filter(|a| !a.is_unspecified())?),
        Reading::Link => Value::Name(view.device(u32::try_from(number(payload)?).ok()?)),
        Reading::Word(words) => {
            // VLAN protocols come in network byte order.
            let code = if words == VLAN_PROTOCOLS {
                network_number(payload)?
            } else {
                number(payload)?
            };
            words
                .iter()
                .find(|(of, _)| *of == code)
                .map_or(Value::Hex(code), |(_, word)| Value::Text(word))
        }
    })
}

fn each<'a>(
    kind: &str,
    data: &RawAttributes,
    view: &View<'a>,
    mut each: impl FnMut(&'static Setting, Value<'a>),
) {
    for setting in settings(kind) {
        let payload = attribute::value(data.bytes(), setting.0);
        if let Some(value) = payload.and_then(|payload| read(setting.3, payload, view)) {
            each(setting, value);
        }
    }
}

/// The settings of a kind as `info_data`.
pub(crate) fn fields(kind: &str, data: &RawAttributes, view: &View<'_>, visit: &mut impl Visit) {
    if data.is_empty() || settings(kind).is_empty() {
        return;
    }
    visit.object("info_data");
    each(kind, data, view, |setting, value| {
        visit.value(setting.1, value);
    });
    visit.end_object();
}

/// The settings of a kind, each with a space behind it.
pub(crate) fn text(kind: &str, data: &RawAttributes, view: &View<'_>, out: &mut Vec<u8>) {
    each(kind, data, view, |setting, value| {
        out.extend_from_slice(setting.2.as_bytes());
        push_plain(out, value);
        out.push(b' ');
    });
}
