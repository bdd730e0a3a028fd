//! Addresses of a link and its aliases, as `net/ipv4/devinet.c` has them:
//! one that changes goes, and comes again at the end of its list.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use ipnet::{IpNet, Ipv6Net};
use netlink::decode::Operation;
use table::row::link::flag;
use table::row::route::scope;
use table::{AF_INET, AF_INET6, Address, Link};

use super::super::step::{Changes, Flag, Put, Step};
use super::{Done, INVALID, NO_ALIAS, NO_DEVICE, Work, failed, labelled};
use crate::foreign::failed::Failed;
use crate::foreign::inet::prefix_len;

/// Aliases that a link can have by number.
const ALIASES: usize = 256;
/// The longest name of a link, and of an alias (`IFNAMSIZ` less its NUL).
const MAX_NAME: usize = 15;

impl Work<'_> {
    /// What is not built, and shows with the links of this moment only.
    pub(super) fn refused(&self, changes: &Changes) -> Result<Option<Failed>> {
        let asked = |step: &&Step| matches!(step, Step::Alias(..));
        let Some(Step::Alias(operation, address)) = changes.steps.iter().find(asked) else {
            return Ok(None);
        };
        let Some(link) = self.link()? else {
            return Ok(None);
        };
        let refused = |why| Failed::not_built("ifconfig", &address.to_string(), why);
        if self.is_alias() {
            return Ok(Some(refused("an alias has no aliases; name the link")));
        }
        let addresses = self.kernel.addresses(&link)?;
        Ok(match operation {
            Operation::New if labelled(&addresses, &self.name).is_none() => {
                let why = "an alias has the netmask of the link's own address, and there is none";
                Some(refused(why))
            }
            // Net-tools adds it then.
            Operation::Delete if self.alias_of(&addresses, *address).is_none() => {
                Some(refused("no alias of this link has the address"))
            }
            _ => None,
        })
    }

    fn alias_of<'a>(&self, addresses: &'a [Address], address: Ipv4Addr) -> Option<&'a Address> {
        let begin = format!("{}:", self.name);
        let mut found = addresses.iter().filter(|row| {
            let label = row.label.as_deref().unwrap_or_default();
            label.starts_with(&begin) && row.peer.unwrap_or(row.local) == IpAddr::V4(address)
        });
        found.next()
    }

    /// `SIOCSIFADDR`, and the link comes up.
    pub(super) fn own_address(&mut self, address: Ipv4Addr) -> Done {
        if let Err((status, why)) = self.set_address(address)? {
            // Both are told.
            let up = self.up()?;
            return Ok(match up {
                Ok(()) => Err((status, why)),
                Err((other, further)) => Err((status | other, format!("{why}\n{further}"))),
            });
        }
        // An alias without an address is none.
        if self.is_alias() && address.is_unspecified() {
            return Ok(Ok(()));
        }
        self.up()
    }

    fn up(&mut self) -> Done {
        if self.is_alias() && self.name.ends_with('-') {
            return Ok(Ok(()));
        }
        self.flag(Flag {
            bits: flag::UP,
            on: true,
            still: None,
        })
    }

    fn set_address(&mut self, address: Ipv4Addr) -> Done {
        const CALL: &str = "SIOCSIFADDR";
        let Some(link) = self.link()? else {
            return Ok(failed(CALL, NO_DEVICE));
        };
        let Some(class) = class_of(address) else {
            return Ok(failed(CALL, INVALID));
        };
        let addresses = self.kernel.addresses(&link)?;
        if let Some(own) = labelled(&addresses, &self.name) {
            if own.local == IpAddr::V4(address) {
                return Ok(Ok(()));
            }
            if let Err(why) = self.kernel.address(Operation::Delete, own.clone())? {
                return Ok(failed(CALL, &why));
            }
        }
        if address.is_unspecified() {
            return Ok(Ok(()));
        }
        let len = match link.flags & flag::POINTOPOINT != 0 {
            true => 32,
            false => class,
        };
        let mut row = Address::new(link.index, address.into(), len);
        // By an alternative name it is the link's own all the same.
        row.label = Some(match self.is_alias() {
            true => self.name.as_str().into(),
            false => link.name.clone(),
        });
        if link.flags & flag::POINTOPOINT == 0 {
            row.broadcast = broadcast_of(&link, address, len).map(IpAddr::V4);
        }
        if address.is_loopback() {
            row.scope = scope::HOST;
        }
        let answered = self.kernel.address(Operation::New, row)?;
        Ok(answered.or_else(|why| failed(CALL, &why)))
    }

    pub(super) fn netmask(&mut self, mask: Ipv4Addr) -> Done {
        self.changed("SIOCSIFNETMASK", |link, row| {
            let (IpAddr::V4(local), Some(len)) = (row.local, prefix_len(mask)) else {
                return Err(INVALID);
            };
            if row.prefix_len == len {
                return Ok(false);
            }
            // A broadcast address of its own choice stays.
            let all_ones = local | !mask_of(row.prefix_len);
            let is_usual = row.broadcast == Some(all_ones.into());
            row.prefix_len = len;
            if is_usual && let Some(address) = broadcast_of(link, local, len) {
                row.broadcast = Some(address.into());
            }
            Ok(true)
        })
    }

    pub(super) fn broadcast(&mut self, address: Ipv4Addr) -> Done {
        self.changed("SIOCSIFBRDADDR", |_, row| {
            let address = Some(address).filter(|address| !address.is_unspecified());
            let address = address.map(IpAddr::V4);
            let differs = row.broadcast != address;
            row.broadcast = address;
            Ok(differs)
        })
    }

    pub(super) fn destination(&mut self, address: Ipv4Addr) -> Done {
        self.changed("SIOCSIFDSTADDR", |_, row| {
            if class_of(address).is_none() {
                return Err(INVALID);
            }
            let address = IpAddr::V4(address);
            if row.peer.unwrap_or(row.local) == address {
                return Ok(false);
            }
            row.peer = Some(address).filter(|address| *address != row.local);
            Ok(true)
        })
    }

    /// Changes the address: the old one goes, the new one comes.
    fn changed(
        &mut self,
        call: &str,
        change: impl FnOnce(&Link, &mut Address) -> Result<bool, &'static str>,
    ) -> Done {
        let Some(link) = self.link()? else {
            return Ok(failed(call, NO_DEVICE));
        };
        let addresses = self.kernel.addresses(&link)?;
        let Some(old) = labelled(&addresses, &self.name) else {
            return Ok(failed(call, NO_ALIAS));
        };
        let mut new = old.clone();
        match change(&link, &mut new) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(())),
            Err(why) => return Ok(failed(call, why)),
        }
        if let Err(why) = self.kernel.address(Operation::Delete, old.clone())? {
            return Ok(failed(call, &why));
        }
        let answered = self.kernel.address(Operation::New, new)?;
        Ok(answered.or_else(|why| failed(call, &why)))
    }

    pub(super) fn inet6(&mut self, operation: Operation, prefix: Ipv6Net) -> Done {
        let Some(link) = self.link()? else {
            return Ok(failed("SIOGIFINDEX", NO_DEVICE));
        };
        let call = match operation {
            Operation::New => "SIOCSIFADDR",
            Operation::Delete => "SIOCDIFADDR",
        };
        let row = Address::new(link.index, prefix.addr().into(), prefix.prefix_len());
        let answered = self.kernel.address(operation, row)?;
        Ok(answered.or_else(|why| failed(call, &why)))
    }

    pub(super) fn add_alias(&mut self, address: Ipv4Addr) -> Done {
        let Some(link) = self.link()? else {
            let why = format!("Interface {} not initialized", self.name);
            return Ok(Err((super::FAILED, why)));
        };
        let addresses = self.kernel.addresses(&link)?;
        let own = labelled(&addresses, &self.name).cloned();
        let Some(own) = own.filter(|_| self.alias_of(&addresses, address).is_none()) else {
            return Ok(Ok(()));
        };
        let Some(number) = self.free(&addresses) else {
            let why = format!("{} has {ALIASES} aliases already", self.name);
            return Ok(Err((super::FAILED, why)));
        };
        let mut label = format!("{}:{number}", self.name);
        label.truncate(MAX_NAME);
        let link_name = std::mem::replace(&mut self.name, label);
        let done = self.alias_like(&own, address);
        self.name = link_name;
        done
    }

    /// Makes the alias with the netmask and broadcast address of another.
    fn alias_like(&mut self, own: &Address, address: Ipv4Addr) -> Done {
        let broadcast = match own.broadcast {
            Some(IpAddr::V4(address)) => address,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        for step in [
            self.set_address(address)?,
            self.netmask(mask_of(own.prefix_len))?,
            self.broadcast(broadcast)?,
        ] {
            if step.is_err() {
                return Ok(step);
            }
        }
        Ok(Ok(()))
    }

    /// The first number that no alias has.
    fn free(&self, addresses: &[Address]) -> Option<usize> {
        let begin = format!("{}:", self.name);
        let mut taken = [false; ALIASES];
        for address in addresses {
            let label = address.label.as_deref().unwrap_or_default();
            let number = label.strip_prefix(&begin).map(|rest| {
                let number = crate::foreign::inet::leading_number(rest);
                usize::try_from(number).unwrap_or(0)
            });
            if let Some(taken) = number.and_then(|number| taken.get_mut(number)) {
                *taken = true;
            }
        }
        taken.iter().position(|taken| !taken)
    }

    pub(super) fn delete_alias(&mut self, address: Ipv4Addr) -> Done {
        let Some(link) = self.link()? else {
            let why = format!("Interface {} not initialized", self.name);
            return Ok(Err((super::FAILED, why)));
        };
        let addresses = self.kernel.addresses(&link)?;
        let Some(alias) = self.alias_of(&addresses, address) else {
            return Ok(failed("SIOCSIFFLAGS", NO_ALIAS));
        };
        let answered = self.kernel.address(Operation::Delete, alias.clone())?;
        Ok(answered.or_else(|why| failed("SIOCSIFFLAGS", &why)))
    }

    /// BSD's `inet` and `inet6`.
    pub(super) fn put(&mut self, put: &Put) -> Done {
        const CALL: &str = "SIOCAIFADDR";
        let Some(link) = self.link()? else {
            return Ok(failed(CALL, NO_DEVICE));
        };
        let mut row = Address::new(link.index, put.address.addr(), put.address.prefix_len());
        row.peer = put.destination;
        if let IpNet::V4(net) = put.address {
            let usual = broadcast_of(&link, net.addr(), net.prefix_len());
            row.broadcast = put.broadcast.or(usual).map(IpAddr::V4);
            row.label = Some(link.name.clone());
            if net.addr().is_loopback() {
                row.scope = scope::HOST;
            }
            if !put.alias {
                return self.put_first(&link, row);
            }
        }
        if let Err(why) = self.kernel.address(Operation::New, row)? {
            return Ok(failed(CALL, &why));
        }
        self.up()
    }

    /// Puts an address in the place of the link's first. What would change
    /// nothing is not done: the routes by the address would go with it.
    fn put_first(&mut self, link: &Link, row: Address) -> Done {
        let addresses = self.kernel.addresses(link)?;
        let Some(first) = addresses.first() else {
            let answered = self.kernel.address(Operation::New, row)?;
            return match answered {
                Ok(()) => self.up(),
                Err(why) => Ok(failed("SIOCAIFADDR", &why)),
            };
        };
        let has_all = |address: &Address| {
            let [one, other] = [address, &row].map(|address| {
                let peer = address.peer.unwrap_or(address.local);
                (address.local, address.prefix_len, peer, address.broadcast)
            });
            one == other
        };
        if has_all(first) {
            return self.up();
        }
        let is_it =
            |other: &Address| (other.local, other.prefix_len) == (row.local, row.prefix_len);
        if addresses.iter().skip(1).any(is_it) {
            return Ok(failed(
                "SIOCAIFADDR",
                "it is another address of the link already",
            ));
        }
        if let Err(why) = self.kernel.address(Operation::Delete, first.clone())? {
            return Ok(failed("SIOCDIFADDR", &why));
        }
        if let Err(why) = self.kernel.address(Operation::New, row.clone())? {
            let back = self.kernel.address(Operation::New, first.clone())?;
            let why = match back {
                Ok(()) => why,
                Err(again) => format!("{why}; {} did not come back: {again}", first.local),
            };
            return Ok(failed("SIOCAIFADDR", &why));
        }
        self.up()
    }

    /// BSD's `-alias`: of several with one address, that of the length said.
    pub(super) fn remove(&mut self, address: IpAddr, len: Option<u8>) -> Done {
        const CALL: &str = "SIOCDIFADDR";
        let Some(link) = self.link()? else {
            return Ok(failed(CALL, NO_DEVICE));
        };
        let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
        let addresses = self.kernel.addresses_of(&link, family)?;
        let Some(row) = addresses
            .iter()
            .find(|row| row.local == address && len.is_none_or(|len| row.prefix_len == len))
        else {
            return Ok(failed(CALL, NO_ALIAS));
        };
        let answered = self.kernel.address(Operation::Delete, row.clone())?;
        Ok(answered.or_else(|why| failed(CALL, &why)))
    }
}

/// The netmask's length of an address' class; `None`: it is of none that a
/// host may have.
fn class_of(address: Ipv4Addr) -> Option<u8> {
    match address.octets()[0] {
        _ if address.is_broadcast() => Some(0),
        0 => Some(0),
        1..128 => Some(8),
        128..192 => Some(16),
        192..224 => Some(24),
        224..240 => None,
        _ => Some(32),
    }
}

fn mask_of(len: u8) -> Ipv4Addr {
    let bits = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
    bits.into()
}

/// The broadcast address that the kernel gives, where the link has any.
fn broadcast_of(link: &Link, address: Ipv4Addr, len: u8) -> Option<Ipv4Addr> {
    let has = link.flags & flag::BROADCAST != 0 && len < 31;
    has.then(|| address | !mask_of(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_masks_and_broadcast_addresses() {
        for (address, class) in [
            ("0.0.0.0", Some(0)),
            ("10.0.0.1", Some(8)),
            ("127.0.0.1", Some(8)),
            ("172.16.0.1", Some(16)),
            ("192.0.2.1", Some(24)),
            ("224.0.0.1", None),
            ("240.0.0.1", Some(32)),
            ("255.255.255.255", Some(0)),
        ] {
            assert_eq!(class_of(address.parse().unwrap()), class, "{address}");
        }
        assert_eq!(mask_of(0), Ipv4Addr::UNSPECIFIED);
        assert_eq!(mask_of(30), Ipv4Addr::new(255, 255, 255, 252));
        assert_eq!(mask_of(32), Ipv4Addr::BROADCAST);
    }
}
