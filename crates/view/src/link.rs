//! Links as `ip link` shows them, and as the head of what `ip addr` shows.

use std::borrow::Cow;
use std::net::IpAddr;

use table::row::link::{flag, hardware};
use table::{Link, LinkLayerAddress};

use crate::brief;
use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::push_u64;
use crate::link_counters::{counter_fields, counter_text};
use crate::link_kind;
use crate::printer::Show;
use words::Name;

/// The columns of a link. Those of a kind's own data are in
/// `link_kind::COLUMNS`.
pub(crate) const COLUMNS: &[Column] = &[
    Column::number("ifindex"),
    Column::any("link"),
    Column::number("link_index"),
    Column::text("ifname"),
    Column::list("flags"),
    Column::number("mtu"),
    Column::text("qdisc"),
    Column::text("master"),
    Column::text("operstate"),
    Column::text("linkmode"),
    Column::any("group"),
    Column::number("txqlen"),
    Column::text("link_type"),
    Column::lladdr("address"),
    Column::any("link_pointtopoint"),
    Column::any("broadcast"),
    Column::any("permaddr"),
    Column::number("link_netnsid"),
    Column::any("proto_down").rare(),
    Column::number("promiscuity"),
    Column::number("allmulti").rare(),
    Column::number("min_mtu"),
    Column::number("max_mtu"),
    Column::text("linkinfo.info_kind"),
    Column::text("linkinfo.info_slave_kind"),
    Column::text("inet6_addr_gen_mode").rare(),
    Column::number("num_tx_queues"),
    Column::number("num_rx_queues"),
    Column::number("gso_max_size").rare(),
    Column::number("gso_max_segs").rare(),
    Column::number("tso_max_size").rare(),
    Column::number("tso_max_segs").rare(),
    Column::number("gro_max_size").rare(),
    Column::text("parentbus"),
    Column::text("parentdev"),
    Column::text("ifalias"),
    Column::number("stats64.rx.bytes").sampled(),
    Column::number("stats64.rx.packets").sampled(),
    Column::number("stats64.rx.errors").sampled(),
    Column::number("stats64.rx.dropped").sampled(),
    Column::number("stats64.rx.over_errors").sampled(),
    Column::number("stats64.rx.multicast").sampled(),
    Column::number("stats64.tx.bytes").sampled(),
    Column::number("stats64.tx.packets").sampled(),
    Column::number("stats64.tx.errors").sampled(),
    Column::number("stats64.tx.dropped").sampled(),
    Column::number("stats64.tx.carrier_errors").sampled(),
    Column::number("stats64.tx.collisions").sampled(),
    Column::list("altnames"),
];

const FLAGS: [(u32, &str); 18] = [
    (flag::LOOPBACK, "LOOPBACK"),
    (flag::BROADCAST, "BROADCAST"),
    (flag::POINTOPOINT, "POINTOPOINT"),
    (flag::MULTICAST, "MULTICAST"),
    (flag::NOARP, "NOARP"),
    (flag::ALLMULTI, "ALLMULTI"),
    (flag::PROMISC, "PROMISC"),
    (flag::MASTER, "MASTER"),
    (flag::SLAVE, "SLAVE"),
    (flag::DEBUG, "DEBUG"),
    (flag::DYNAMIC, "DYNAMIC"),
    (flag::AUTOMEDIA, "AUTOMEDIA"),
    (flag::PORTSEL, "PORTSEL"),
    (flag::NOTRAILERS, "NOTRAILERS"),
    (flag::UP, "UP"),
    (flag::LOWER_UP, "LOWER_UP"),
    (flag::DORMANT, "DORMANT"),
    (flag::ECHO, "ECHO"),
];

/// Operational states by number.
pub(crate) const OPER_STATES: [&str; 7] = [
    "UNKNOWN",
    "NOTPRESENT",
    "DOWN",
    "LOWERLAYERDOWN",
    "TESTING",
    "DORMANT",
    "UP",
];

/// `ARPHRD_…` by name, those that Linux still makes.
fn hardware_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0 => "netrom",
        1 => "ether",
        24 => "ieee1394",
        hardware::INFINIBAND => "infiniband",
        256 => "slip",
        257 => "cslip",
        280 => "can",
        512 => "ppp",
        513 => "hdlc",
        519 => "rawip",
        hardware::TUNNEL => "ipip",
        hardware::TUNNEL6 => "tunnel6",
        772 => "loopback",
        hardware::SIT => "sit",
        777 => "ipddp",
        hardware::IPGRE => "gre",
        779 => "pimreg",
        801 => "ieee802.11",
        802 => "ieee802.11/prism",
        803 => "ieee802.11/radiotap",
        804 => "ieee802.15.4",
        805 => "ieee802.15.4/monitor",
        820 => "phonet",
        821 => "phonet_pipe",
        822 => "caif",
        hardware::IP6GRE => "gre6",
        824 => "netlink",
        825 => "6lowpan",
        826 => "vsockmon",
        hardware::NONE => "none",
        hardware::VOID => "void",
        _ => return None,
    })
}

/// A link-layer address: an IP address on a tunnel, else octets.
pub(crate) fn lladdr_value(hardware: u16, address: &LinkLayerAddress) -> Value<'_> {
    let octets = address.octets();
    match hardware {
        hardware::TUNNEL | hardware::SIT | hardware::IPGRE => {
            <[u8; 4]>::try_from(octets).map(IpAddr::from).ok()
        }
        hardware::TUNNEL6 | hardware::IP6GRE => <[u8; 16]>::try_from(octets).map(IpAddr::from).ok(),
        _ => None,
    }
    .map_or(Value::LinkLayer(address), Value::Address)
}

/// Calls for each of the flags that `ip` shows, in its order.
fn each_flag(link: &Link, view: &View<'_>, mut each: impl FnMut(Value<'_>)) {
    if link.flags & flag::UP != 0 && link.flags & flag::RUNNING == 0 {
        each(Value::Text("NO-CARRIER"));
    }
    let mut rest = link.flags & !flag::RUNNING;
    for (bit, name) in FLAGS {
        if rest & bit != 0 {
            each(Value::Text(name));
            rest &= !bit;
        }
    }
    if rest != 0 {
        each(Value::Hex(rest.into()));
    }
    let lower = link.lower.filter(|_| link.lower_netns_id.is_none());
    let lower_is_up = lower
        .and_then(|lower| view.links.get(lower))
        .map(|l| l.is_up());
    if lower_is_up == Some(false) {
        each(Value::Text("M-DOWN"));
    }
}

fn perm_address(link: &Link) -> Option<&LinkLayerAddress> {
    (!link.perm_address.is_none() && link.perm_address != link.address)
        .then_some(&link.perm_address)
}

pub(crate) fn oper_state(link: &Link) -> Value<'static> {
    OPER_STATES
        .get(usize::from(link.oper_state))
        .map_or(Value::Hex(link.oper_state.into()), |name| Value::Text(name))
}

/// For whom the head of a link is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadOf {
    /// `ip link`.
    Link,
    /// `ip addr`.
    Addresses,
    /// `ip -6 addr`: the kernel tells IPv6's view of a link, without queue
    /// discipline, master, group and alternative names.
    Ipv6Addresses,
    /// `ip monitor`.
    Monitor,
    /// The same, of what a bridge tells of its port: it does not tell the
    /// link's group and details.
    MonitorPort,
}

impl HeadOf {
    /// Whether the message has the link's group.
    fn has_group(self) -> bool {
        !matches!(self, Self::Ipv6Addresses | Self::MonitorPort)
    }

    /// Whether the length of its queue is shown.
    fn has_queue(self) -> bool {
        !matches!(self, Self::Monitor | Self::MonitorPort)
    }
}

/// The part of a link that `ip addr` shows as well.
pub(crate) fn head_fields(link: &Link, of: HeadOf, view: &View<'_>, visit: &mut impl Visit) {
    visit.value("ifindex", Value::Number(link.index.into()));
    below_fields(link, view, visit);
    visit.value("ifname", Value::Text(&link.name));
    flag_fields(link, view, visit);
    visit.value("mtu", Value::Number(link.mtu.into()));
    let whole = of != HeadOf::Ipv6Addresses;
    if let Some(qdisc) = link.qdisc.as_ref().filter(|_| whole) {
        visit.value("qdisc", Value::Text(qdisc));
    }
    if let Some(master) = link.master.filter(|_| whole) {
        visit.value("master", Value::Name(view.device(master)));
    }
    visit.value("operstate", oper_state(link));
    if of == HeadOf::Link {
        visit.value("linkmode", link_mode(link));
    }
    if of.has_group() {
        visit.value("group", Value::Name(view.names.group(link.group)));
    }
    if link.tx_queue_len != 0 {
        visit.value(
            "txqlen",
            Value::Signed(link.tx_queue_len.cast_signed().into()),
        );
    }
}

/// The link below.
pub(crate) fn below_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    match (link.lower, link.lower_netns_id) {
        (None, _) => {}
        (Some(0), _) => visit.value("link", Value::Present),
        (Some(lower), Some(_)) => visit.value("link_index", Value::Number(lower.into())),
        (Some(lower), None) => visit.value("link", Value::Name(view.device(lower))),
    }
}

/// The flags.
pub(crate) fn flag_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    visit.list("flags");
    each_flag(link, view, |name| visit.item(name));
    visit.end_list();
}

fn link_mode(link: &Link) -> Value<'static> {
    match link.link_mode {
        0 => Value::Text("DEFAULT"),
        1 => Value::Text("DORMANT"),
        2 => Value::Text("TESTING"),
        other => Value::Hex(other.into()),
    }
}

/// Type and addresses of the link layer.
pub(crate) fn layer_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    match link_type(link, view) {
        Value::Number(number) => {
            visit.value("link_type", Value::Text(&format!("[{number}]")));
        }
        name => visit.value("link_type", name),
    }
    if !link.address.is_none() {
        visit.value("address", lladdr_value(link.hardware, &link.address));
    }
    if !link.broadcast.is_none() {
        if link.flags & flag::POINTOPOINT != 0 {
            visit.value("link_pointtopoint", Value::True);
        }
        visit.value("broadcast", lladdr_value(link.hardware, &link.broadcast));
    }
    if let Some(address) = perm_address(link) {
        visit.value("permaddr", lladdr_value(link.hardware, address));
    }
    if let Some(id) = link.lower_netns_id {
        visit.value("link_netnsid", Value::Signed(id.into()));
    }
    if link.proto_down {
        visit.value("proto_down", Value::True);
    }
}

fn link_type(link: &Link, view: &View<'_>) -> Value<'static> {
    let name = hardware_name(link.hardware).filter(|_| !view.numeric);
    name.map_or(Value::Number(link.hardware.into()), Value::Text)
}

/// How IPv6 makes addresses of its own: `ip link` alone tells it.
fn gen_mode_of(link: &Link, of: HeadOf) -> Option<u8> {
    link.addr_gen_mode.filter(|_| of == HeadOf::Link)
}

/// What `ip -d` adds, as far as rows have it.
pub(crate) fn detail_fields(link: &Link, of: HeadOf, view: &View<'_>, visit: &mut impl Visit) {
    visit.value("promiscuity", Value::Number(link.promiscuity.into()));
    if let Some(allmulti) = link.allmulti {
        visit.value("allmulti", Value::Number(allmulti.into()));
    }
    visit.value("min_mtu", Value::Number(link.min_mtu.into()));
    visit.value("max_mtu", Value::Number(link.max_mtu.into()));
    if link.kind.is_some() || link.slave_kind.is_some() {
        visit.object("linkinfo");
        if let Some(kind) = &link.kind {
            visit.value("info_kind", Value::Text(kind));
            link_kind::fields(link, view, visit);
        }
        if let Some(kind) = &link.slave_kind {
            visit.value("info_slave_kind", Value::Text(kind));
            link_kind::port_fields(link, view, visit);
        }
        visit.end_object();
    }
    if let Some(mode) = gen_mode_of(link, of) {
        visit.value("inet6_addr_gen_mode", Value::Text(&gen_mode(mode)));
    }
    visit.value("num_tx_queues", Value::Number(link.tx_queues.into()));
    // A kernel that does not steer packets (`CONFIG_RPS`) says nothing of them.
    if link.rx_queues > 0 {
        visit.value("num_rx_queues", Value::Number(link.rx_queues.into()));
    }
    each_limit(link, |key, limit| visit.value(key, limit));
    each_parent(link, |key, name| visit.value(key, name));
}

/// `IN6_ADDR_GEN_MODE_…`, `linux/if_link.h`.
fn gen_mode(mode: u8) -> Cow<'static, str> {
    match mode {
        0 => "eui64".into(),
        1 => "none".into(),
        2 => "stable_secret".into(),
        3 => "random".into(),
        other => format!("{other:#04x}").into(),
    }
}

/// Calls for each of a link's limits that the kernel told.
fn each_limit(link: &Link, mut each: impl FnMut(&'static str, Value<'static>)) {
    let limits = link.limits.get();
    let told = [
        ("gso_max_size", limits.gso_max_size),
        ("gso_max_segs", limits.gso_max_segs),
        ("tso_max_size", limits.tso_max_size),
        ("tso_max_segs", limits.tso_max_segs),
        ("gro_max_size", limits.gro_max_size),
    ];
    for (key, limit) in told {
        if let Some(limit) = limit {
            each(key, Value::Number(limit.into()));
        }
    }
}

fn each_parent(link: &Link, mut each: impl FnMut(&'static str, Value<'_>)) {
    let Some(parent) = &link.parent else {
        return;
    };
    for (key, name) in [("parentbus", &parent.bus), ("parentdev", &parent.device)] {
        if let Some(name) = name {
            each(key, Value::Text(name));
        }
    }
}

pub(crate) fn alt_name_fields(link: &Link, visit: &mut impl Visit) {
    if !link.alt_names.is_empty() {
        visit.list("altnames");
        for name in &link.alt_names {
            visit.item(Value::Text(name));
        }
        visit.end_list();
    }
}

/// A link as an event tells it, with what the kernel says happened.
pub(crate) fn monitor_text(
    link: &Link,
    of: HeadOf,
    happened: Option<&str>,
    view: &View<'_>,
    out: &mut Vec<u8>,
) {
    head_text(link, of, view, out);
    if let Some(happened) = happened {
        pair(out, "event ", Value::Text(happened));
    }
    layer_text(link, view, out);
    if view.details && of == HeadOf::Monitor {
        detail_text(link, of, view, out);
    }
    if let Some(alias) = link.alias.as_ref().filter(|_| view.details) {
        line(view, out, b"    alias ");
        out.extend_from_slice(alias.as_bytes());
    }
    alt_name_text(link, view, out);
    out.push(b'\n');
}

impl Show for Link {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        if view.brief {
            return brief::link_fields(self, view, visit);
        }
        head_fields(self, HeadOf::Link, view, visit);
        layer_fields(self, view, visit);
        if view.details {
            detail_fields(self, HeadOf::Link, view, visit);
        }
        if let Some(alias) = &self.alias {
            visit.value("ifalias", Value::Text(alias));
        }
        counter_fields(self, view, visit);
        alt_name_fields(self, visit);
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        if view.brief {
            return brief::link(self, view, out);
        }
        head_text(self, HeadOf::Link, view, out);
        layer_text(self, view, out);
        if view.details {
            detail_text(self, HeadOf::Link, view, out);
        }
        if let Some(alias) = &self.alias {
            line(view, out, b"    alias ");
            out.extend_from_slice(alias.as_bytes());
        }
        counter_text(self, view, out);
        alt_name_text(self, view, out);
        out.push(b'\n');
    }
}

/// Starts a line of a row.
pub(crate) fn line(view: &View<'_>, out: &mut Vec<u8>, start: &[u8]) {
    out.push(view.line_break());
    out.extend_from_slice(start);
}

fn pair(out: &mut Vec<u8>, key: &str, value: Value<'_>) {
    out.extend_from_slice(key.as_bytes());
    push_plain(out, value);
    out.push(b' ');
}

/// The first line, without its end.
pub(crate) fn head_text(link: &Link, of: HeadOf, view: &View<'_>, out: &mut Vec<u8>) {
    push_u64(out, link.index.into());
    out.extend_from_slice(b": ");
    coloured(view, Colour::Link, out, |out| {
        name_text(link, view, out);
        out.extend_from_slice(b": ");
    });
    out.push(b'<');
    push_flags(link, view, out);
    out.extend_from_slice(b"> ");
    rest_of_head(link, of, view, out);
}

/// The name, with that of the link below.
pub(crate) fn name_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(link.name.as_bytes());
    match (link.lower, link.lower_netns_id) {
        (None, _) => {}
        (Some(0), _) => out.extend_from_slice(b"@NONE"),
        (Some(lower), netns) => {
            out.push(b'@');
            let name = match netns {
                Some(_) => Name::Link(lower),
                None => view.device(lower),
            };
            push_name(out, name);
        }
    }
}

/// The flags, with commas between.
pub(crate) fn push_flags(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    let mut first = true;
    each_flag(link, view, |name| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        match name {
            Value::Hex(rest) => crate::format::push_hex(out, rest),
            name => push_plain(out, name),
        }
    });
}

fn rest_of_head(link: &Link, of: HeadOf, view: &View<'_>, out: &mut Vec<u8>) {
    pair(out, "mtu ", Value::Number(link.mtu.into()));
    let whole = of != HeadOf::Ipv6Addresses;
    if let Some(qdisc) = link.qdisc.as_ref().filter(|_| whole) {
        pair(out, "qdisc ", Value::Text(qdisc));
    }
    if let Some(master) = link.master.filter(|_| whole) {
        pair(out, "master ", Value::Name(view.device(master)));
    }
    out.extend_from_slice(b"state ");
    coloured(view, state_colour(link), out, |out| {
        pair(out, "", oper_state(link));
    });
    if of == HeadOf::Link {
        pair(out, "mode ", link_mode(link));
    }
    if of.has_group() {
        pair(out, "group ", Value::Name(view.names.group(link.group)));
    }
    if link.tx_queue_len != 0 && of.has_queue() {
        out.extend_from_slice(b"qlen ");
        push_plain(out, Value::Signed(link.tx_queue_len.cast_signed().into()));
    }
}

/// The colour of the operational state, if it has one.
pub(crate) fn state_colour(link: &Link) -> Option<Colour> {
    match link.oper_state {
        2 => Some(Colour::Down),
        6 => Some(Colour::Up),
        _ => None,
    }
}

/// The operational state.
pub(crate) fn push_oper_state(link: &Link, out: &mut Vec<u8>) {
    push_plain(out, oper_state(link));
}

/// The link-layer address.
pub(crate) fn push_lladdr_of(link: &Link, out: &mut Vec<u8>) {
    push_plain(out, lladdr_value(link.hardware, &link.address));
}

/// The line of the link layer.
pub(crate) fn layer_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    line(view, out, b"    link/");
    match link_type(link, view) {
        Value::Number(number) => {
            out.push(b'[');
            push_u64(out, number);
            out.push(b']');
        }
        name => push_plain(out, name),
    }
    out.push(b' ');
    let put = |address: &LinkLayerAddress, out: &mut Vec<u8>| {
        coloured(view, Colour::LinkLayer, out, |out| {
            push_plain(out, lladdr_value(link.hardware, address));
        });
    };
    if !link.address.is_none() {
        put(&link.address, out);
    }
    if !link.broadcast.is_none() {
        let peer = link.flags & flag::POINTOPOINT != 0;
        out.extend_from_slice(if peer { b" peer " } else { b" brd " });
        put(&link.broadcast, out);
    }
    if let Some(address) = perm_address(link) {
        out.extend_from_slice(b" permaddr ");
        put(address, out);
    }
    match link.lower_netns_id {
        None => {}
        Some(id @ 0..) => {
            out.extend_from_slice(b" link-netnsid ");
            push_u64(out, id.unsigned_abs().into());
        }
        Some(_) => out.extend_from_slice(b" link-netnsid unknown"),
    }
    if link.proto_down {
        out.extend_from_slice(b" protodown on ");
    }
}

pub(crate) fn detail_text(link: &Link, of: HeadOf, view: &View<'_>, out: &mut Vec<u8>) {
    out.push(b' ');
    pair(out, "promiscuity ", Value::Number(link.promiscuity.into()));
    if let Some(allmulti) = link.allmulti {
        pair(out, " allmulti ", Value::Number(allmulti.into()));
    }
    pair(out, "minmtu ", Value::Number(link.min_mtu.into()));
    pair(out, "maxmtu ", Value::Number(link.max_mtu.into()));
    if let Some(kind) = &link.kind {
        line(view, out, b"    ");
        pair(out, "", Value::Text(kind));
        link_kind::text(link, view, out);
    }
    if let Some(kind) = &link.slave_kind {
        line(view, out, b"    ");
        pair(out, kind, Value::Text("_slave"));
        link_kind::port_text(link, view, out);
    }
    if let Some(mode) = gen_mode_of(link, of) {
        pair(out, "addrgenmode ", Value::Text(&gen_mode(mode)));
    }
    pair(out, "numtxqueues ", Value::Number(link.tx_queues.into()));
    if link.rx_queues > 0 {
        pair(out, "numrxqueues ", Value::Number(link.rx_queues.into()));
    }
    let mut named = |key: &str, value: Value<'_>| {
        out.extend_from_slice(key.as_bytes());
        pair(out, " ", value);
    };
    each_limit(link, &mut named);
    each_parent(link, &mut named);
}

pub(crate) fn alt_name_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    for name in &link.alt_names {
        line(view, out, b"    altname ");
        out.extend_from_slice(name.as_bytes());
    }
}
