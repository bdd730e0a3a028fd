//! What ifconfig(8) changes, a step at a time. Words are read whole into
//! steps ([`super::net_tools`], [`super::bsd`]) before the first is done
//! ([`super::apply`]).

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv6Net};
use netlink::decode::Operation;
use table::LinkLayerAddress;

/// A change of a link, or of an alias of it (`eth0:1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The link's or alias' name.
    pub name: String,
    /// In this order.
    pub steps: Vec<Step>,
    /// Nothing is done behind one that failed.
    pub stops: bool,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A flag of the link.
    Flag(Flag),
    /// Bytes of the longest packet.
    Mtu(u32),
    /// Packets of the queue; negative is refused, as by the kernel.
    Queue(i32),
    /// A new name.
    Name(String),
    /// The alias of links that SNMP and `ip` show; empty: none.
    Description(String),
    /// The address of its hardware.
    Hardware(LinkLayerAddress),
    /// The address in the place of the one that it has, with the netmask of
    /// its class; the unspecified one: none.
    Address(Ipv4Addr),
    /// The netmask of the address.
    Netmask(Ipv4Addr),
    /// The broadcast address.
    Broadcast(Ipv4Addr),
    /// The other end.
    Destination(Ipv4Addr),
    /// An address of IPv6.
    Inet6(Operation, Ipv6Net),
    /// A further address, under the first alias that is free; or an alias
    /// away, by its address.
    Alias(Operation, Ipv4Addr),
    /// An address with all that belongs to it.
    Put(Put),
    /// An address away.
    Remove(std::net::IpAddr, Option<u8>),
    /// The link away.
    Destroy,
}

/// A flag that is switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Its bits.
    pub bits: u32,
    /// On, or off.
    pub on: bool,
    /// What it is called where it stays on.
    pub still: Option<&'static str>,
}

/// An address of BSD's `inet` and `inet6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// With its prefix.
    pub address: IpNet,
    /// Of broadcast; `None`: that of the prefix.
    pub broadcast: Option<Ipv4Addr>,
    /// The other end.
    pub destination: Option<std::net::IpAddr>,
    /// Beside those that are there; else in the place of the first.
    pub alias: bool,
}
