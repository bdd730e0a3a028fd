//! The planner: by which access path the rows of a selection are reached.
//! The one place that chooses an index, for whole answers, for walks in
//! pieces, and for what the kernel is asked.
//!
//! An access path may give rows that the filter does not have, never the
//! other way round: whoever follows it filters what comes. So
//! [`Access::All`] is always right, and any other only cheaper.

use ipnet::IpNet;
use table::{BodyKey, LinkLayerAddress};

use crate::question::Object;
use crate::selection::{InTable, Selection};

/// An access path: some rows of one table, in an order of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// All rows, in the order of their keys.
    All,
    /// The row of a number: a link's index, a next hop's id.
    Key(u32),
    /// The rows of a range of numbers, ends included.
    Keys(u32, u32),
    /// The rows on some links, link by link: of each all, or those with an
    /// address inside a prefix.
    ByLink(Vec<u32>, Option<IpNet>),
    /// The rows with an address inside a prefix, by address, then link.
    Inside(IpNet),
    /// The rows with a link-layer address, in the order of their keys.
    ByMac(LinkLayerAddress),
    /// The rules of a family, or those of one priority, as they are tried.
    ByPriority(u8, Option<u32>),
    /// The routes whose body has a key, body by body.
    ByBody(BodyKey),
    /// The routes of exactly a prefix, table by table.
    Exact(InTable, IpNet),
    /// The routes that cover a prefix, the longest first, table by table.
    Covering(InTable, IpNet),
    /// The routes inside a prefix, table by table.
    Within(InTable, IpNet),
    /// The routes from a prefix to another, ends included, by address, then
    /// length, table by table. Both are of one family.
    Between(InTable, IpNet, IpNet),
    /// All routes of a table or of all, of a family or of IPv4, then IPv6.
    ByTable(InTable, Option<u8>),
}

/// The narrowest access path for a selection. O(links that are selected).
pub(crate) fn plan(selection: &Selection) -> Access {
    match selection.object {
        Object::Link => link(selection),
        Object::Addr => address(selection),
        Object::Neigh => neighbour(selection),
        Object::Route => route(selection),
        Object::Nexthop => nexthop(selection),
        Object::Rule => rule(selection),
        Object::Fdb => fdb(selection),
    }
}

/// The links that are selected, if any are left out.
fn links(selection: &Selection) -> Option<Vec<u32>> {
    let one = selection.device.map(|device| vec![device]);
    one.or_else(|| selection.links.clone())
}

fn link(selection: &Selection) -> Access {
    match (selection.device, &selection.links) {
        (Some(device), _) => Access::Key(device),
        (None, Some(some)) => Access::ByLink(some.clone(), None),
        (None, None) => numbers(selection),
    }
}

/// The rows of the numbers that are wanted.
fn numbers(selection: &Selection) -> Access {
    let range = selection.numbers;
    range.map_or(Access::All, |(first, last)| Access::Keys(first, last))
}

fn address(selection: &Selection) -> Access {
    match (selection.inside(), links(selection)) {
        (Some(net), _) => Access::Inside(net),
        (None, Some(links)) => Access::ByLink(links, None),
        (None, None) => Access::All,
    }
}

/// A MAC has few neighbours as a rule; a router that answers for others
/// (proxy ARP) makes it the MAC of very many. So an address goes first.
fn neighbour(selection: &Selection) -> Access {
    let net = selection.inside();
    let one = net.filter(|net| net.prefix_len() == net.max_prefix_len());
    match (one, selection.mac, selection.device, net) {
        (Some(host), ..) => Access::Inside(host),
        (None, Some(mac), ..) => Access::ByMac(mac),
        (None, None, Some(device), _) => Access::ByLink(vec![device], net),
        (None, None, None, Some(net)) => Access::Inside(net),
        (None, None, None, None) => match &selection.links {
            Some(links) => Access::ByLink(links.clone(), None),
            None => Access::All,
        },
    }
}

fn route(selection: &Selection) -> Access {
    let tables = selection.in_table;
    if let Some(net) = selection.exact {
        return Access::Exact(tables, net);
    }
    if let Some(net) = selection.covering {
        return Access::Covering(tables, net);
    }
    if let Some(net) = selection.within.filter(|net| net.prefix_len() > 0) {
        return Access::Within(tables, net);
    }
    let gateway = selection.gateway.map(BodyKey::Gateway);
    let nexthop = selection.id.map(BodyKey::Nexthop);
    let source = selection.source.map(BodyKey::Source);
    let device = selection.device.map(BodyKey::Link);
    if let Some(key) = gateway.or(nexthop).or(source).or(device) {
        return Access::ByBody(key);
    }
    match selection.between {
        Some((first, last)) => Access::Between(tables, first, last),
        None => Access::ByTable(tables, selection.family),
    }
}

fn nexthop(selection: &Selection) -> Access {
    match (selection.id, selection.device) {
        (Some(id), _) => Access::Key(id),
        (None, Some(device)) => Access::ByLink(vec![device], None),
        (None, None) => numbers(selection),
    }
}

fn rule(selection: &Selection) -> Access {
    match selection.family {
        Some(family) => Access::ByPriority(family, selection.priority),
        None => Access::All,
    }
}

fn fdb(selection: &Selection) -> Access {
    match (selection.mac, links(selection)) {
        (Some(mac), _) => Access::ByMac(mac),
        (None, Some(links)) => Access::ByLink(links, None),
        (None, None) => Access::All,
    }
}

/// What the kernel leaves out of a dump by itself, where it can: as much of
/// a selection as its strict checking of dump requests knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFilter {
    /// `AF_INET`, `AF_INET6`; 0: any.
    pub family: u8,
    /// Index of the rows' link.
    pub link: Option<u32>,
    /// Number of the routes' table.
    pub table: Option<u32>,
    /// Protocol of the routes.
    pub protocol: Option<u8>,
    /// Type of the routes.
    pub kind: Option<u8>,
    /// Proxy neighbours instead of the others.
    pub proxy: bool,
}

impl KernelFilter {
    pub(crate) fn of(selection: &Selection) -> Self {
        Self {
            family: selection.family.unwrap_or(0),
            link: selection.device,
            table: match selection.in_table {
                InTable::Any => None,
                InTable::Only(table) => Some(table),
            },
            protocol: selection.protocol,
            kind: selection.kind,
            proxy: selection.proxy,
        }
    }
}

#[cfg(test)]
mod tests;
