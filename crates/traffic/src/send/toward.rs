//! Where a frame goes: the kernel's route and neighbour for an address,
//! asked for once before sending. For the ways that build frames here.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::mirror::now_millis;
use linux::socket::Socket;
use linux::{Namespace, once};
use netlink::decode::{self, Operation};
use netlink::encode::{self, Request};
use netlink::message::flag as message_flag;
use netlink::request::{Dump, RouteQuery};
use table::row::neighbour::{flag, state};
use table::row::route::kind;
use table::{AF_INET, AF_INET6, Link as LinkRow, LinkLayerAddress, Neighbour};

use super::frame::Link;
use super::plan::Plan;

/// How long a next hop may take to say its link-layer address.
const RESOLVING_PATIENCE: Duration = Duration::from_secs(3);
/// How long one may take that the kernel is asking when all is sent.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks at the neighbour table meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`.
pub const ETHERNET: u16 = 1;
/// See `ETHERNET`.
pub const LOOPBACK: u16 = 772;

/// The way to an address.
#[derive(Debug, Clone)]
pub struct Toward {
    /// The interface that frames leave by.
    pub interface: String,
    /// Its MTU.
    pub mtu: usize,
    /// The link-layer addresses of frames; `None` on a link without.
    pub link: Option<Link>,
    /// The address that they come from.
    pub source: IpAddr,
}

/// Asks the kernel for the way to the plan's first destination.
pub fn resolve(plan: &Plan) -> Result<Toward> {
    let namespace = Namespace::current()?;
    let to = plan.flows.to().ip();
    let links = once::links(&namespace)?;
    let asked = match &plan.interface {
        Some(name) => {
            let link = links.by_name(name);
            Some(
                link.with_context(|| format!("there is no interface {name}"))?
                    .index,
            )
        }
        None => None,
    };
    let query = RouteQuery {
        output: asked,
        ..RouteQuery::default()
    };
    let route = once::route(to, &query, &namespace).with_context(|| format!("no route to {to}"))?;
    let hop = route.body.next_hops.as_slice().first();
    let hop = hop.with_context(|| format!("the route to {to} has no next hop"))?;
    let link = links.iter().find(|link| link.index == hop.link);
    let link = link.with_context(|| format!("the interface towards {to} is gone"))?;
    let source = match plan.flows.source().ip() {
        ip if !ip.is_unspecified() => ip,
        _ => own_address(plan.flows.to(), route.body.preferred_source)?,
    };
    if !matches!(link.hardware, ETHERNET | LOOPBACK) {
        return Ok(Toward {
            interface: link.name.to_string(),
            mtu: link.mtu as usize,
            link: None,
            source,
        });
    }
    let own = octets(&link.address).unwrap_or_default();
    let destination = match (plan.next_hop, route.body.kind) {
        (Some(given), _) => given,
        (None, kind::BROADCAST) => [0xff; 6],
        (None, kind::MULTICAST) => group(to),
        (None, _) if to.is_multicast() => group(to),
        (None, _) if link.hardware == LOOPBACK => [0; 6],
        (None, _) => neighbour(&namespace, link, hop.gateway.unwrap_or(to))?,
    };
    Ok(Toward {
        interface: link.name.to_string(),
        mtu: link.mtu as usize,
        link: Some(Link {
            source: own,
            destination,
        }),
        source,
    })
}

/// Why packets to the plan's first destination may wait for nothing: its
/// next hop does not answer. One that was asked a moment ago has a second to
/// do so. For a report; what cannot be asked is not said, nor anything of a
/// next hop whose address was given.
pub fn silent(plan: &Plan) -> Option<String> {
    if plan.next_hop.is_some() {
        return None;
    }
    let namespace = Namespace::current().ok()?;
    let to = plan.flows.to().ip();
    let route = once::route(to, &RouteQuery::default(), &namespace).ok()?;
    let hop = route.body.next_hops.as_slice().first()?;
    let address = hop.gateway.unwrap_or(to);
    let deadline = Instant::now() + ANSWER_PATIENCE;
    loop {
        let found = row(&namespace, hop.link, address).ok()??.state;
        let is_asked = found & state::INCOMPLETE != 0;
        if found & state::FAILED != 0 || (is_asked && Instant::now() >= deadline) {
            return Some(format!(
                "the next hop {address} does not say its link-layer address: what was sent is lost (ip neigh show {address})"
            ));
        }
        if !is_asked {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The address that the kernel would send from. Connecting a UDP socket
/// sends nothing.
fn own_address(to: SocketAddr, preferred: Option<IpAddr>) -> Result<IpAddr> {
    if let Some(preferred) = preferred {
        return Ok(preferred);
    }
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => ([0_u8; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u8; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any).context("opening a UDP socket")?;
    let connected = socket.connect(to).and_then(|()| socket.local_addr());
    let local = connected.with_context(|| format!("finding an own address towards {to}"))?;
    Ok(local.ip())
}

/// The link-layer address of a next hop: from the kernel's table, asked of
/// the next hop by the kernel where it is not there.
fn neighbour(namespace: &Namespace, link: &LinkRow, address: IpAddr) -> Result<[u8; 6]> {
    let deadline = Instant::now() + RESOLVING_PATIENCE;
    let mut asked = false;
    loop {
        if let Some(found) = row(namespace, link.index, address)?.and_then(|row| usable(&row)) {
            return Ok(found);
        }
        if !asked {
            ask(namespace, link.index, address)?;
            asked = true;
        }
        if Instant::now() >= deadline {
            bail!(
                "{address} on {} does not say its link-layer address: give it with --next-hop MAC",
                link.name
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What the kernel knows of a neighbour.
fn row(namespace: &Namespace, link: u32, address: IpAddr) -> Result<Option<Neighbour>> {
    let family = match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    };
    let request = Dump::Neighbours {
        family,
        link: Some(link),
        master: None,
        proxy: false,
    };
    let mut found = None;
    once::rows(namespace, &request, &mut |message| -> Result<()> {
        let row = decode::neighbour(message.payload)?;
        if row.address == address && row.link == link {
            found = Some(row);
        }
        Ok(())
    })?;
    Ok(found)
}

fn usable(row: &Neighbour) -> Option<[u8; 6]> {
    let is_usable = row.state & !(state::INCOMPLETE | state::FAILED) != 0;
    octets(&row.lladdr).filter(|_| is_usable)
}

/// Lets the kernel resolve it (`NTF_USE`), as for a packet of its own.
fn ask(namespace: &Namespace, link: u32, address: IpAddr) -> Result<()> {
    let row = Neighbour {
        link,
        address,
        proxy: false,
        lladdr: LinkLayerAddress::NONE,
        state: state::NONE,
        flags: flag::USE,
        protocol: 0,
        kind: 0,
    };
    let request = Request {
        operation: Operation::New,
        flags: message_flag::CREATE,
        sequence: 1,
        now_millis: now_millis(),
    };
    let mut bytes = Vec::new();
    encode::neighbour(&mut bytes, &request, &row)?;
    // Without the right to ask, an entry may come by other traffic.
    Ok(Socket::open(namespace)?.send(&bytes)?)
}

fn octets(address: &LinkLayerAddress) -> Option<[u8; 6]> {
    address.octets().try_into().ok()
}

/// The group address of a multicast address (RFC 1112 §6.4, RFC 2464 §7).
fn group(address: IpAddr) -> [u8; 6] {
    match address {
        IpAddr::V4(v4) => {
            let [_, b, c, d] = v4.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}
