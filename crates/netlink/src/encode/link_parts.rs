//! What a link that is made or changed is: its kind, and its ends, as
//! `IFLA_…` (`linux/if_link.h`). Called by the messages of links.

use table::row::link::flag::UP;
use table::{KindData, LinkLayerAddress};

use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::{AF_UNSPEC, ifla};
use crate::link_data;

/// The namespace that a link goes to, if one is told.
pub(super) fn put_netns(build: &mut Build<'_>, netns: Option<LinkNetns>) {
    match netns {
        Some(LinkNetns::Fd(fd)) => build.put(ifla::NET_NS_FD, &fd.to_ne_bytes()),
        Some(LinkNetns::Pid(pid)) => build.put_u32(ifla::NET_NS_PID, pid),
        None => {}
    }
}

/// A network namespace, as `RTM_NEWLINK` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkNetns {
    /// `IFLA_NET_NS_FD`: a file descriptor of the process that sends.
    Fd(i32),
    /// `IFLA_NET_NS_PID`: the namespace of a process.
    Pid(u32),
}

/// `struct ifinfomsg`.
pub(super) fn header(index: u32, hardware: u16, flags: u32, change: u32) -> [u8; 16] {
    let [h0, h1] = hardware.to_ne_bytes();
    let [i0, i1, i2, i3] = index.to_ne_bytes();
    let [f0, f1, f2, f3] = flags.to_ne_bytes();
    let [c0, c1, c2, c3] = change.to_ne_bytes();
    [
        AF_UNSPEC, 0, h0, h1, i0, i1, i2, i3, f0, f1, f2, f3, c0, c1, c2, c3,
    ]
}

/// What can be said of either end of a link that is made: of the link
/// itself, and of a `veth`'s peer. What is not said is the kernel's choice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkEnd {
    /// `IFLA_IFNAME`, at most 15 octets; empty: the kernel's choice.
    pub name: Box<str>,
    /// `ifi_index`; 0: the kernel's choice.
    pub index: u32,
    /// Up as soon as it is there.
    pub up: bool,
    /// `IFLA_MTU`, bytes.
    pub mtu: Option<u32>,
    /// `IFLA_ADDRESS`.
    pub address: Option<LinkLayerAddress>,
    /// `IFLA_BROADCAST`.
    pub broadcast: Option<LinkLayerAddress>,
    /// `IFLA_GROUP`.
    pub group: Option<u32>,
    /// `IFLA_TXQLEN`, packets.
    pub tx_queue_len: Option<u32>,
    /// `IFLA_NUM_TX_QUEUES`.
    pub tx_queues: Option<u32>,
    /// `IFLA_NUM_RX_QUEUES`.
    pub rx_queues: Option<u32>,
    /// The namespace it is made in, if not the socket's own.
    pub netns: Option<LinkNetns>,
}

/// `IFLA_LINKINFO`: what a link is, and the settings of that kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkKind {
    /// A pair of links: what is put into one comes out of the other.
    Veth {
        /// The other end (`VETH_INFO_PEER`).
        peer: Box<LinkEnd>,
    },
    /// Any other.
    Other {
        /// `IFLA_INFO_KIND`.
        name: &'static str,
        /// `IFLA_INFO_DATA`: what is not said is the kernel's choice.
        data: KindData,
    },
}

impl LinkKind {
    /// A kind without settings.
    pub fn plain(name: &'static str) -> Self {
        let data = KindData::None;
        Self::Other { name, data }
    }

    /// `IFLA_INFO_KIND`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Veth { .. } => "veth",
            Self::Other { name, .. } => name,
        }
    }
}

/// `struct ifinfomsg`.
pub(super) fn end_header(end: &LinkEnd) -> [u8; 16] {
    let up = if end.up { UP } else { 0 };
    header(end.index, 0, up, up)
}

pub(super) fn put_end(build: &mut Build<'_>, end: &LinkEnd) {
    if !end.name.is_empty() {
        build.put_text(ifla::IFNAME, &end.name);
    }
    let numbers = [
        (ifla::MTU, end.mtu),
        (ifla::GROUP, end.group),
        (ifla::TXQLEN, end.tx_queue_len),
        (ifla::NUM_TX_QUEUES, end.tx_queues),
        (ifla::NUM_RX_QUEUES, end.rx_queues),
    ];
    put_numbers(build, &numbers);
    if let Some(address) = &end.address {
        build.put_lladdr(ifla::ADDRESS, address);
    }
    if let Some(broadcast) = &end.broadcast {
        build.put_lladdr(ifla::BROADCAST, broadcast);
    }
    put_netns(build, end.netns);
}

pub(super) fn put_numbers(build: &mut Build<'_>, numbers: &[(u16, Option<u32>)]) {
    for (kind, number) in numbers {
        if let Some(number) = number {
            build.put_u32(*kind, *number);
        }
    }
}

pub(super) fn put_kind(build: &mut Build<'_>, kind: &LinkKind) {
    let info = build.open(ifla::LINKINFO | NESTED);
    build.put(ifla::INFO_KIND, kind.name().as_bytes());
    match kind {
        LinkKind::Veth { peer } => {
            let data = build.open(ifla::INFO_DATA | NESTED);
            let nest = build.open(ifla::VETH_INFO_PEER | NESTED);
            build.append(&end_header(peer));
            put_end(build, peer);
            build.close(&nest);
            build.close(&data);
        }
        LinkKind::Other { data, .. } if *data == KindData::None => {}
        LinkKind::Other { data, .. } => {
            let nest = build.open(ifla::INFO_DATA | NESTED);
            link_data::put_wanted(build, data);
            build.close(&nest);
        }
    }
    build.close(&info);
}
