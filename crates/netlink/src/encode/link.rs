//! [`Link`] and its settings to `struct ifinfomsg` and `IFLA_…`
//! (`linux/rtnetlink.h`, `linux/if_link.h`).

use table::row::link::Parent;
use table::row::link::flag::UP;
use table::{AF_INET6, KindData, Link, LinkLayerAddress, PortData};

use super::Request;
use super::link_parts::{LinkKind, LinkNetns, header, put_kind, put_netns};
use crate::attribute::NESTED;
use crate::build::Build;
use crate::decode::{LINKDOWN_SETTINGS, Operation, V4_FORWARDS, V6_DISABLED, V6_IGNORES};
use crate::kernel::ifla;
use crate::link_data;
use crate::malformed::TooLong;
use crate::message::kind;

pub(super) const KINDS: [u16; 2] = [kind::NEWLINK, kind::DELLINK];

/// Appends a link: to delete it (index and name), or as the kernel would
/// announce it. The latter is for recordings and for what plays the
/// kernel's part; settings of a link are changed by [`set_link`].
pub fn link(out: &mut Vec<u8>, request: &Request, row: &Link) -> Result<(), TooLong> {
    let header = header(row.index, row.hardware, row.flags, 0);
    let mut build = request.start(out, KINDS, &header);
    build.put_text(ifla::IFNAME, &row.name);
    if request.operation == Operation::New {
        put_numbers(&mut build, row);
        put_texts(&mut build, row);
        put_settings(&mut build, row);
        put_info(&mut build, row);
    }
    build.end()
}

fn put_numbers(build: &mut Build<'_>, row: &Link) {
    build.put_u32(ifla::TXQLEN, row.tx_queue_len);
    build.put_u8(ifla::OPERSTATE, row.oper_state);
    build.put_u8(ifla::LINKMODE, row.link_mode);
    build.put_u8(ifla::PROTO_DOWN, row.proto_down.into());
    build.put_u32(ifla::MTU, row.mtu);
    build.put_u32(ifla::MIN_MTU, row.min_mtu);
    build.put_u32(ifla::MAX_MTU, row.max_mtu);
    build.put_u32(ifla::GROUP, row.group);
    build.put_u32(ifla::PROMISCUITY, row.promiscuity);
    build.put_u32(ifla::NUM_TX_QUEUES, row.tx_queues);
    build.put_u32(ifla::NUM_RX_QUEUES, row.rx_queues);
    let limits = row.limits.get();
    let told = [
        (ifla::ALLMULTI, row.allmulti),
        (ifla::GSO_MAX_SIZE, limits.gso_max_size),
        (ifla::GSO_MAX_SEGS, limits.gso_max_segs),
        (ifla::TSO_MAX_SIZE, limits.tso_max_size),
        (ifla::TSO_MAX_SEGS, limits.tso_max_segs),
        (ifla::GRO_MAX_SIZE, limits.gro_max_size),
    ];
    for (kind, number) in told {
        if let Some(number) = number {
            build.put_u32(kind, number);
        }
    }
    if let Some(lower) = row.lower {
        build.put_u32(ifla::LINK, lower);
    }
    if let Some(id) = row.lower_netns_id {
        build.put(ifla::LINK_NETNSID, &id.to_ne_bytes());
    }
    if let Some(master) = row.master {
        build.put_u32(ifla::MASTER, master);
    }
    build.put_lladdr(ifla::ADDRESS, &row.address);
    build.put_lladdr(ifla::BROADCAST, &row.broadcast);
    build.put_lladdr(ifla::PERM_ADDRESS, &row.perm_address);
}

fn put_texts(build: &mut Build<'_>, row: &Link) {
    let parent = |text: fn(&Parent) -> &Option<Box<str>>| {
        let parent = row.parent.as_deref();
        parent.and_then(|parent| text(parent).as_deref())
    };
    let texts = [
        (ifla::QDISC, row.qdisc.as_deref()),
        (ifla::IFALIAS, row.alias.as_deref()),
        (ifla::PARENT_DEV_NAME, parent(|parent| &parent.device)),
        (ifla::PARENT_DEV_BUS_NAME, parent(|parent| &parent.bus)),
    ];
    for (kind, text) in texts {
        if let Some(text) = text {
            build.put_text(kind, text);
        }
    }
    if !row.alt_names.is_empty() {
        let list = build.open(ifla::PROP_LIST | NESTED);
        for name in &row.alt_names {
            build.put_text(ifla::ALT_IFNAME, name);
        }
        build.close(&list);
    }
}

/// `IFLA_AF_SPEC`: of the settings of families, those that the row has.
fn put_settings(build: &mut Build<'_>, row: &Link) {
    let families = build.open(ifla::AF_SPEC | NESTED);
    for (family, conf, at, bit) in LINKDOWN_SETTINGS {
        let ignores = row.ignores_linkdown & bit != 0;
        let is_v6 = family == u16::from(AF_INET6);
        let (other_at, other) = match is_v6 {
            true => (V6_DISABLED, row.v6_disabled),
            false => (V4_FORWARDS, row.forwards_v4),
        };
        let mode = row.addr_gen_mode.filter(|_| is_v6);
        if !ignores && !other && mode.is_none() {
            continue;
        }
        // The kernel does not call these nests, and `ip` knows it.
        let family = build.open(family);
        if ignores || other {
            let mut values = [[0_u8; 4]; V6_IGNORES + 1];
            values[other_at] = u32::from(other).to_ne_bytes();
            values[at] = u32::from(ignores).to_ne_bytes();
            build.put(conf, values[..=at].as_flattened());
        }
        if let Some(mode) = mode {
            build.put_u8(ifla::INET6_ADDR_GEN_MODE, mode);
        }
        build.close(&family);
    }
    build.close(&families);
}

/// `IFLA_LINKINFO`. A VRF's table is part of its `kind_data`.
fn put_info(build: &mut Build<'_>, row: &Link) {
    let info = build.open(ifla::LINKINFO | NESTED);
    if let Some(kind) = &row.kind {
        build.put_text(ifla::INFO_KIND, kind);
    }
    if row.kind_data != KindData::None {
        let data = build.open(ifla::INFO_DATA | NESTED);
        link_data::put_kind(build, &row.kind_data);
        build.close(&data);
    }
    if let Some(kind) = &row.slave_kind {
        build.put_text(ifla::INFO_SLAVE_KIND, kind);
    }
    if row.slave_data != PortData::None {
        let data = build.open(ifla::INFO_SLAVE_DATA | NESTED);
        link_data::put_port(build, &row.slave_data);
        build.close(&data);
    }
    build.close(&info);
}

/// Settings of a link to change; `None` leaves one as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkSettings {
    /// Up or down.
    pub up: Option<bool>,
    /// Other `IFF_…` flags: their values, and which of them to change.
    pub flags: u32,
    /// Which of `flags` to change.
    pub flags_changed: u32,
    /// `IFLA_IFNAME`: a new name.
    pub name: Option<Box<str>>,
    /// `IFLA_MTU`, bytes.
    pub mtu: Option<u32>,
    /// `IFLA_ADDRESS`.
    pub address: Option<LinkLayerAddress>,
    /// `IFLA_BROADCAST`.
    pub broadcast: Option<LinkLayerAddress>,
    /// `IFLA_MASTER`; 0 takes it out of its master.
    pub master: Option<u32>,
    /// `IFLA_GROUP`.
    pub group: Option<u32>,
    /// `IFLA_TXQLEN`, packets.
    pub tx_queue_len: Option<u32>,
    /// `IFLA_IFALIAS`; empty removes it.
    pub alias: Option<Box<str>>,
    /// The namespace that it goes to.
    pub netns: Option<LinkNetns>,
    /// `IFLA_INET6_ADDR_GEN_MODE`.
    pub addr_gen_mode: Option<u8>,
    /// `IFLA_CARRIER`.
    pub carrier: Option<bool>,
    /// `IFLA_LINKINFO`: settings of its kind.
    pub kind: Option<LinkKind>,
    /// `IFLA_PROTO_DOWN`.
    pub proto_down: Option<bool>,
    /// `IFLA_GSO_MAX_SIZE`, bytes.
    pub gso_max_size: Option<u32>,
    /// `IFLA_GSO_MAX_SEGS`.
    pub gso_max_segs: Option<u32>,
    /// `IFLA_GRO_MAX_SIZE`, bytes.
    pub gro_max_size: Option<u32>,
}

/// Appends `RTM_NEWLINK` that changes settings of the link with an index.
/// `request.operation` must be `New`; `CREATE` in its flags makes no sense.
pub fn set_link(
    out: &mut Vec<u8>,
    request: &Request,
    index: u32,
    settings: &LinkSettings,
) -> Result<(), TooLong> {
    let up = match settings.up {
        Some(true) => (UP, UP),
        Some(false) => (0, UP),
        None => (0, 0),
    };
    let flags = settings.flags & settings.flags_changed | up.0;
    let header = header(index, 0, flags, settings.flags_changed | up.1);
    let mut build = request.start(out, KINDS, &header);
    let numbers = [
        (ifla::MTU, settings.mtu),
        (ifla::MASTER, settings.master),
        (ifla::GROUP, settings.group),
        (ifla::TXQLEN, settings.tx_queue_len),
        (ifla::GSO_MAX_SIZE, settings.gso_max_size),
        (ifla::GSO_MAX_SEGS, settings.gso_max_segs),
        (ifla::GRO_MAX_SIZE, settings.gro_max_size),
    ];
    for (kind, number) in numbers {
        if let Some(number) = number {
            build.put_u32(kind, number);
        }
    }
    put_netns(&mut build, settings.netns);
    if let Some(carrier) = settings.carrier {
        build.put_u8(ifla::CARRIER, carrier.into());
    }
    if let Some(kind) = &settings.kind {
        put_kind(&mut build, kind);
    }
    if let Some(proto_down) = settings.proto_down {
        build.put_u8(ifla::PROTO_DOWN, proto_down.into());
    }
    if let Some(mode) = settings.addr_gen_mode {
        let families = build.open(ifla::AF_SPEC | NESTED);
        let family = build.open(AF_INET6.into());
        build.put_u8(ifla::INET6_ADDR_GEN_MODE, mode);
        build.close(&family);
        build.close(&families);
    }
    if let Some(address) = &settings.address {
        build.put_lladdr(ifla::ADDRESS, address);
    }
    if let Some(broadcast) = &settings.broadcast {
        build.put_lladdr(ifla::BROADCAST, broadcast);
    }
    if let Some(name) = &settings.name {
        build.put_text(ifla::IFNAME, name);
    }
    if let Some(alias) = &settings.alias {
        build.put(ifla::IFALIAS, &table::text::octets(alias));
    }
    build.end()
}

/// Appends `RTM_NEWLINKPROP` or `RTM_DELLINKPROP` with alternative names of
/// the link with an index.
pub fn alternative_names(
    out: &mut Vec<u8>,
    request: &Request,
    index: u32,
    names: &[&str],
) -> Result<(), TooLong> {
    let kinds = [kind::NEWLINKPROP, kind::DELLINKPROP];
    let mut build = request.start(out, kinds, &header(index, 0, 0, 0));
    let list = build.open(ifla::PROP_LIST | NESTED);
    for name in names {
        build.put_text(ifla::ALT_IFNAME, name);
    }
    build.close(&list);
    build.end()
}

/// Appends `RTM_DELLINK` of the link with an index.
pub fn delete_link(out: &mut Vec<u8>, request: &Request, index: u32) -> Result<(), TooLong> {
    request.start(out, KINDS, &header(index, 0, 0, 0)).end()
}

/// Appends `RTM_DELLINK` of every link of a group in one request: the
/// kernel waits for its grace periods once, not for each. Group 0 is
/// refused, and so is the whole when one of them cannot be deleted.
pub fn delete_link_group(out: &mut Vec<u8>, request: &Request, group: u32) -> Result<(), TooLong> {
    let mut build = request.start(out, KINDS, &header(0, 0, 0, 0));
    build.put_u32(ifla::GROUP, group);
    build.end()
}
