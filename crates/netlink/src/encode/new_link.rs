//! A link that does not exist yet to `RTM_NEWLINK` (`linux/if_link.h`).
//!
//! [`new_link`] is for who makes links; [`kind_of_words`] for command lines
//! and files, where a kind and its options come in `ip`'s own words.

mod kinds;
mod words;

use table::row::link::flag::UP;
use table::{KindData, LinkLayerAddress};

use super::Request;
use super::link::{KINDS, LinkNetns, header, put_netns};
use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::ifla;
use crate::link_data;
use crate::malformed::TooLong;

pub use kinds::KINDS as LINK_KINDS;
pub use words::{KindError, kind_of_words};

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

/// A link to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// What it shares with a `veth`'s peer.
    pub end: LinkEnd,
    /// `IFLA_MASTER`: index of the bridge, bond or VRF it becomes a member
    /// of.
    pub master: Option<u32>,
    /// `IFLA_LINK`: index of the link below; of a VLAN or macvlan the
    /// parent.
    pub lower: Option<u32>,
    /// `IFLA_IFALIAS`.
    pub alias: Option<Box<str>>,
    /// What it is.
    pub kind: LinkKind,
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

/// Appends `RTM_NEWLINK` that makes a link. `request` wants `New` and the
/// flags `CREATE | EXCL`. O(bytes), no allocation but the buffer's.
pub fn new_link(out: &mut Vec<u8>, request: &Request, link: &NewLink) -> Result<(), TooLong> {
    let mut build = request.start(out, KINDS, &end_header(&link.end));
    put_end(&mut build, &link.end);
    let numbers = [(ifla::LINK, link.lower), (ifla::MASTER, link.master)];
    put_numbers(&mut build, &numbers);
    if let Some(alias) = &link.alias {
        build.put(ifla::IFALIAS, &table::text::octets(alias));
    }
    put_kind(&mut build, &link.kind);
    build.end()
}

/// `struct ifinfomsg`.
fn end_header(end: &LinkEnd) -> [u8; 16] {
    let up = if end.up { UP } else { 0 };
    header(end.index, 0, up, up)
}

fn put_end(build: &mut Build<'_>, end: &LinkEnd) {
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

fn put_numbers(build: &mut Build<'_>, numbers: &[(u16, Option<u32>)]) {
    for (kind, number) in numbers {
        if let Some(number) = number {
            build.put_u32(*kind, *number);
        }
    }
}

fn put_kind(build: &mut Build<'_>, kind: &LinkKind) {
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
