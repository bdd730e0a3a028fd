//! The way to the kernel for changes in another tool's words: one request
//! after the other, each known to be done or refused before the next.

use std::net::Ipv4Addr;

use anyhow::Result;
use change::rows::{Asked, message};
use linux::error::Refusal;
use linux::mirror::now_millis;
use linux::step::Step;
use linux::{Namespace, once};
use netlink::TooLong;
use netlink::decode::{self, Item, Operation};
use netlink::encode::{self, LinkSettings, Request};
use netlink::request::{Dump, RouteQuery};
use table::row::route::kind;
use table::{AF_INET, Address, Link, Route};
use words::Verb;

use super::failed::reason;

/// A namespace's kernel, with the rights of whoever runs the command.
pub struct Kernel<'a> {
    namespace: &'a Namespace,
    step: Step,
}

/// Whether the kernel did it, or its words for why not.
pub type Answered = std::result::Result<(), String>;

impl<'a> Kernel<'a> {
    /// Opens the way.
    pub fn open(namespace: &'a Namespace) -> Result<Self> {
        let step = Step::open(namespace)?;
        Ok(Self { namespace, step })
    }

    /// A link by its name or alternative name; one request.
    pub fn link(&self, name: &str) -> Result<Option<Link>> {
        Ok(once::link_named(name, self.namespace)?)
    }

    /// The table that packets leaving by a link are looked up in: its VRF's.
    pub fn table_of(&self, link: &Link) -> Result<Option<u32>> {
        if link.vrf_table.is_some() {
            return Ok(link.vrf_table);
        }
        let Some(master) = link.master else {
            return Ok(None);
        };
        let master = once::link(master, self.namespace)?;
        Ok(master.and_then(|master| master.vrf_table))
    }

    /// Whether an address is one of another host: none of our own, of
    /// broadcast or multicast. The kernel's to refuse where no route says so.
    pub fn is_other_host(&self, address: Ipv4Addr) -> bool {
        let found = once::route(address.into(), &RouteQuery::default(), self.namespace);
        !address.is_multicast() && found.is_ok_and(|route| route.body.kind == kind::UNICAST)
    }

    /// The IPv4 addresses of a link, in the kernel's order.
    pub fn addresses(&self, link: &Link) -> Result<Vec<Address>> {
        self.addresses_of(link, AF_INET)
    }

    /// The addresses of a link, of a family.
    pub fn addresses_of(&self, link: &Link, family: u8) -> Result<Vec<Address>> {
        let request = Dump::Addresses {
            family,
            link: Some(link.index),
        };
        let mut addresses = Vec::new();
        once::rows(self.namespace, &request, &mut |message| -> Result<()> {
            addresses.push(decode::address(message.payload, now_millis())?);
            Ok(())
        })?;
        // A kernel that does not know the filter lists those of all links.
        addresses.retain(|address| address.link == link.index);
        Ok(addresses)
    }

    /// Makes or deletes a route. One that is made stands before others of
    /// its prefix and metric.
    pub fn route(&mut self, operation: Operation, route: Route) -> Result<Answered> {
        let verb = match operation {
            Operation::New => Verb::Prepend,
            Operation::Delete => Verb::Delete,
        };
        let asked = Asked {
            verb,
            item: Item::Route(route),
            is_placed: true,
        };
        self.change(&asked)
    }

    /// Makes an address that is not there, or deletes one.
    pub fn address(&mut self, operation: Operation, address: Address) -> Result<Answered> {
        let verb = match operation {
            Operation::New => Verb::Add,
            Operation::Delete => Verb::Delete,
        };
        let asked = Asked {
            verb,
            item: Item::Address(address),
            is_placed: true,
        };
        self.change(&asked)
    }

    /// Changes settings of a link.
    pub fn set(&mut self, link: u32, settings: &LinkSettings) -> Result<Answered> {
        let mut too_long = None;
        let answered = self.step.acknowledged(|sequence, out| {
            let request = Request::plain(Operation::New, sequence);
            too_long = encode::set_link(out, &request, link, settings).err();
        });
        told(too_long, answered)
    }

    /// Deletes a link.
    pub fn delete_link(&mut self, link: u32) -> Result<Answered> {
        let mut too_long = None;
        let answered = self.step.acknowledged(|sequence, out| {
            let request = Request::plain(Operation::Delete, sequence);
            too_long = encode::delete_link(out, &request, link).err();
        });
        told(too_long, answered)
    }

    fn change(&mut self, asked: &Asked) -> Result<Answered> {
        let now = now_millis();
        let mut too_long = None;
        let answered = self.step.acknowledged(|sequence, out| {
            too_long = message(asked, sequence, now, out).err();
        });
        told(too_long, answered)
    }
}

fn told(
    too_long: Option<TooLong>,
    answered: Result<Result<(), Refusal>, linux::Error>,
) -> Result<Answered> {
    if let Some(error) = too_long {
        return Ok(Err(error.to_string()));
    }
    Ok(answered?.map_err(|refusal| reason(&refusal.source)))
}
