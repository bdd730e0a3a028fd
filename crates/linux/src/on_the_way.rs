//! What the kernel does to packets on their way beside routing them, asked
//! when somebody wants to know; and that something of it has changed. For
//! whoever forwards beside the kernel (`router`). Some 50 µs a question.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use netlink::Malformed;
use netlink::decode::{self, Decoded, Item, Operation};
use netlink::generic::{family_id, get_family, group_id};
use netlink::message::{Message, kind, messages};
use netlink::on_the_way::{
    BaseChain, NETDEV, NETDEV_GROUP, Qdisc, XdpFeatures, base_chain, dump_chains, dump_policies,
    dump_qdiscs, get_device, policy, qdisc, xdp_features,
};
use netlink::request::Dump;
use rustix::io::Errno;
use table::{Link, Metric, Neighbour, Rule};

use crate::dump::{SEQUENCE, ask, dump};
use crate::error::{Error, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// `RTNLGRP_…`: links, qdiscs and filters, IPv6 settings of links, rules and
/// `netconf` of both families.
const GROUPS: [u32; 7] = [1, 4, 12, 8, 19, 24, 25];
/// `NFNLGRP_NFTABLES`, `XFRMNLGRP_POLICY`.
const NFTABLES_GROUP: u32 = 7;
/// `RTNLGRP_IPV4_ROUTE`, `RTNLGRP_IPV6_ROUTE`, and bytes of announcements of routes that may wait.
const ROUTE_GROUPS: [u32; 2] = [7, 11];
const ROUTE_EVENTS: usize = 8 << 20;
const POLICY_GROUP: u32 = 4;

/// The base chains of nftables, iptables-nft's among them; none on a kernel
/// without nftables.
pub fn base_chains(namespace: &Namespace) -> Result<Vec<BaseChain>, Error> {
    let socket = match Socket::open_netfilter(namespace) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut request = Vec::new();
    dump_chains(SEQUENCE, &mut request);
    listed(&socket, &request, base_chain)
}

/// The address families (`AF_…`) of the IPsec policies that packets meet on
/// their way; none on a kernel without IPsec.
pub fn policies(namespace: &Namespace) -> Result<Vec<u16>, Error> {
    let socket = match Socket::open_xfrm(namespace) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut request = Vec::new();
    dump_policies(SEQUENCE, &mut request);
    listed(&socket, &request, policy)
}

/// The outermost queueing disciplines of all links, and where filters are.
pub fn qdiscs(namespace: &Namespace) -> Result<Vec<Qdisc>, Error> {
    let socket = Socket::open(namespace)?;
    let mut request = Vec::new();
    dump_qdiscs(SEQUENCE, &mut request);
    listed(&socket, &request, qdisc)
}

/// All links.
pub fn links(namespace: &Namespace) -> Result<Vec<Link>, Error> {
    let request = Dump::Links { counters: false };
    rows(namespace, &request, |item| match item {
        Item::Link(link) => Some(link),
        _ => None,
    })
}

/// The rules of both families.
pub fn rules(namespace: &Namespace) -> Result<Vec<Rule>, Error> {
    rows(namespace, &Dump::Rules { family: 0 }, |item| match item {
        Item::Rule(rule) => Some(rule),
        _ => None,
    })
}

/// The neighbours on a link.
pub fn neighbours(namespace: &Namespace, link: u32) -> Result<Vec<Neighbour>, Error> {
    let request = Dump::Neighbours {
        family: 0,
        link: Some(link),
        master: None,
        proxy: false,
    };
    rows(namespace, &request, |item| match item {
        Item::Neighbour(neighbour) => Some(neighbour),
        _ => None,
    })
}

/// What links can do at XDP, in the order of their numbers here; `None` on a
/// kernel that does not tell (before Linux 6.3), or of a link that is gone.
pub fn xdp_features_of(
    namespace: &Namespace,
    links: &[u32],
) -> Result<Vec<Option<XdpFeatures>>, Error> {
    let socket = Socket::open_generic(namespace)?;
    let Some((family, _)) = netdev(&socket)? else {
        return Ok(vec![None; links.len()]);
    };
    let mut features = Vec::with_capacity(links.len());
    for link in links {
        let mut request = Vec::new();
        get_device(family, *link, SEQUENCE, &mut request);
        features.push(answer(&socket, &request, xdp_features)?);
    }
    Ok(features)
}

/// Becomes readable when something of all this has changed, as far as the
/// kernel tells: not programs at tc that have no qdisc, not iptables' own
/// tables, not all settings.
#[derive(Debug)]
pub struct Announcements {
    sockets: Vec<Socket>,
}

impl Announcements {
    /// Listens in a namespace. What a kernel does not have it does not
    /// announce.
    pub fn open(namespace: &Namespace) -> Result<Self, Error> {
        let routes = Socket::open(namespace)?;
        routes.join(&GROUPS)?;
        let mut sockets = vec![routes];
        if let Ok(netfilter) = Socket::open_netfilter(namespace)
            && netfilter.join(&[NFTABLES_GROUP]).is_ok()
        {
            sockets.push(netfilter);
        }
        if let Ok(xfrm) = Socket::open_xfrm(namespace)
            && xfrm.join(&[POLICY_GROUP]).is_ok()
        {
            sockets.push(xfrm);
        }
        let generic = Socket::open_generic(namespace)?;
        if let Some((_, Some(group))) = netdev(&generic)? {
            generic.join(&[group])?;
            sockets.push(generic);
        }
        Ok(Self { sockets })
    }

    /// What to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Takes what has come, of each socket so many datagrams at most: whether
    /// there was anything.
    pub fn take(&self) -> Result<bool, Error> {
        const MOST: usize = 256;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let mut has_any = false;
        for socket in &self.sockets {
            for _ in 0..MOST {
                match socket.try_receive(&mut buffer)? {
                    Received::Nothing => break,
                    Received::Bytes(_) | Received::Overrun => has_any = true,
                }
            }
        }
        Ok(has_any)
    }
}

/// The least MTU that a route sets, without locking it: kept as routes
/// come, looked for anew when such a one goes.
#[derive(Debug)]
pub struct RouteMtus {
    namespace: Namespace,
    events: Socket,
    least: [Option<u32>; 2],
    /// One that may have been the least is gone, or events were lost.
    is_doubtful: bool,
}

impl RouteMtus {
    /// Reads all routes once, and listens.
    pub fn open(namespace: &Namespace) -> Result<Self, Error> {
        let events = Socket::open(namespace)?;
        // Where it is not granted events are lost sooner, which is noticed.
        let _ = events.set_receive_buffer(ROUTE_EVENTS);
        events.join(&ROUTE_GROUPS)?;
        let mut mtus = Self {
            namespace: namespace.clone(),
            events,
            least: [None; 2],
            is_doubtful: true,
        };
        mtus.settle()?;
        Ok(mtus)
    }

    /// What to wait for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Bytes of the least of them, of IPv4 and of IPv6; `None`: no route sets
    /// one.
    pub fn least(&self) -> [Option<u32>; 2] {
        self.least
    }

    /// Takes what has come, so many datagrams at most: whether the least has
    /// become less.
    pub fn take(&mut self) -> Result<bool, Error> {
        const MOST: usize = 256;
        let before = self.least;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for _ in 0..MOST {
            match self.events.try_receive(&mut buffer)? {
                Received::Nothing => break,
                Received::Overrun => self.is_doubtful = true,
                Received::Bytes(len) => {
                    for message in messages(&buffer[..len]) {
                        self.hear(&message?)?;
                    }
                }
            }
        }
        Ok(self.least != before)
    }

    fn hear(&mut self, message: &Message<'_>) -> Result<(), Error> {
        let Decoded::Announcement(announced) = decode::decode(message, 0)? else {
            return Ok(());
        };
        let Some((family, mtu)) = unlocked_mtu(&announced.item) else {
            return Ok(());
        };
        match announced.operation {
            Operation::New => lower(&mut self.least, family, mtu),
            Operation::Delete => self.is_doubtful = true,
        }
        Ok(())
    }

    /// Reads all routes anew where the least is in doubt. A million routes
    /// take about a second.
    pub fn settle(&mut self) -> Result<(), Error> {
        if !self.is_doubtful {
            return Ok(());
        }
        let request = Dump::Routes {
            family: 0,
            table: None,
            link: None,
            protocol: None,
            kind: None,
        };
        let found = rows(&self.namespace, &request, |item| unlocked_mtu(&item))?;
        self.least = [None; 2];
        for (family, mtu) in found {
            lower(&mut self.least, family, mtu);
        }
        self.is_doubtful = false;
        Ok(())
    }
}

/// Takes an MTU of a family in.
fn lower(least: &mut [Option<u32>; 2], family: usize, mtu: u32) {
    if let Some(least) = least.get_mut(family) {
        *least = Some(least.map_or(mtu, |least| least.min(mtu)));
    }
}

/// The MTU that a route sets without locking it, and its family's place:
/// IPv4's first.
fn unlocked_mtu(item: &Item) -> Option<(usize, u32)> {
    let Item::Route(route) = item else {
        return None;
    };
    let metrics = route.body.metrics.as_deref()?;
    let is_locked = metrics.locked & 1 << Metric::Mtu.number() != 0;
    let mtu = metrics.get(Metric::Mtu).filter(|mtu| *mtu != 0)?;
    let family = usize::from(route.prefix.addr().is_ipv6());
    (!is_locked).then_some((family, mtu))
}

/// The number of the family of devices, and that of its group.
fn netdev(socket: &Socket) -> Result<Option<(u16, Option<u32>)>, Error> {
    let mut request = Vec::new();
    if get_family(NETDEV, SEQUENCE, &mut request).is_err() {
        return Ok(None);
    }
    answer(socket, &request, |payload| {
        Ok((family_id(payload)?, group_id(payload, NETDEV_GROUP)?))
    })
}

/// The answer of one message; `None` where the kernel has nothing of that.
fn answer<T>(
    socket: &Socket,
    request: &[u8],
    read: impl Fn(&[u8]) -> Result<T, Malformed>,
) -> Result<Option<T>, Error> {
    socket.send(request)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "a question")? else {
        return Ok(None);
    };
    match messages(&buffer[..len]).next().transpose()? {
        Some(message) if message.kind == kind::ERROR => {
            refusal(&message)?;
            Ok(None)
        }
        Some(message) => Ok(Some(read(message.payload)?)),
        None => Ok(None),
    }
}

/// What is wanted of a list.
fn listed<T>(
    socket: &Socket,
    request: &[u8],
    read: impl Fn(&[u8]) -> Result<Option<T>, Malformed>,
) -> Result<Vec<T>, Error> {
    let (mut found, mut failed) = (Vec::new(), None);
    let asked = ask(socket, request, &mut |message: &Message<'_>| {
        match read(message.payload) {
            Ok(one) => found.extend(one),
            Err(error) => failed = Some(error),
        }
        ControlFlow::Continue(())
    });
    match asked {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        asked => asked?,
    };
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(found),
    }
}

/// Rows of a table.
fn rows<T>(
    namespace: &Namespace,
    request: &Dump,
    wanted: impl Fn(Item) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let (mut found, mut failed) = (Vec::new(), None);
    dump(namespace, request, &mut |message| {
        match decode::decode(message, 0) {
            Ok(Decoded::Announcement(announced)) => found.extend(wanted(announced.item)),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
        ControlFlow::Continue(())
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(found),
    }
}

/// Whether the kernel was built without it.
fn is_absent(error: &Error) -> bool {
    let (Error::System { source, .. } | Error::Refused { source, .. }) = error else {
        return false;
    };
    let absent = [Errno::PROTONOSUPPORT, Errno::OPNOTSUPP, Errno::INVAL];
    absent
        .iter()
        .any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
}
