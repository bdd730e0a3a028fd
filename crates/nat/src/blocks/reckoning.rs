//! Deterministic blocks (RFC 7422): which alias ports are a subscriber's,
//! and whose an alias port is, reckoned from the settings alone.
//!
//! Subscribers are counted in the order of the inside ranges, and fill one
//! alias address after the other in the order in which those are named.

use std::net::Ipv4Addr;

use super::layout::Layout;
use super::{Blocks, BlocksError, SubscriberConfig};
use crate::{AddressRange, Config};

/// See the module. For the engine, and for questions without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reckoning {
    layout: Layout,
    /// Of each inside range: its first address, and how many subscribers are
    /// in those before it.
    inside: Vec<(u32, u64)>,
    /// Sorted, to find a range by an address.
    sorted: Vec<(u32, u32, u64)>,
    subscribers: u64,
    bits: u8,
    ratio: u32,
    /// In the order they are named.
    addresses: Vec<Ipv4Addr>,
}

/// The ports that can be reckoned of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reckoned {
    /// The subscriber.
    pub subscriber: AddressRange,
    /// The alias address.
    pub alias: Ipv4Addr,
    /// The ports.
    pub ports: PortSet,
    /// How many ports blocks on top may bring.
    pub dynamic: u32,
    /// Its number among the address's.
    pub(crate) slot: u32,
}

/// Ports of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSet {
    /// In a row: first and last.
    Row(u16, u16),
    /// All over the range, in order.
    Shuffled(Vec<u16>),
}

impl PortSet {
    /// How many there are.
    pub fn count(&self) -> u32 {
        match self {
            Self::Row(first, last) => u32::from(last - first) + 1,
            Self::Shuffled(ports) => ports.len() as u32,
        }
    }
}

impl Reckoning {
    /// By an engine's settings; `None`: they have no deterministic blocks.
    pub fn new(config: &Config) -> Result<Option<Self>, BlocksError> {
        let Some(blocks) = &config.blocks else {
            return Ok(None);
        };
        let Some(deterministic) = &blocks.deterministic else {
            return Ok(None);
        };
        let of = &config.subscribers;
        if of.inside.is_empty() {
            return Err(BlocksError::NoInside);
        }
        let addresses = config.addresses.clone();
        if addresses.is_empty() {
            return Err(BlocksError::NoAddress);
        }
        let (inside, subscribers) = counted(of);
        let least = subscribers.div_ceil(addresses.len() as u64);
        let ratio = match deterministic.ratio {
            0 => u32::try_from(least).unwrap_or(u32::MAX),
            ratio => ratio,
        };
        if u64::from(ratio) < least {
            return Err(BlocksError::Ratio {
                subscribers,
                ratio,
                addresses: addresses.len(),
            });
        }
        let layout = Layout::new(&config.ports, blocks, ratio)?;
        let ends = of.inside.iter().zip(&inside);
        let mut sorted: Vec<(u32, u32, u64)> = ends
            .map(|(range, (first, before))| (*first, range.last.to_bits(), *before))
            .collect();
        sorted.sort_unstable();
        Ok(Some(Self {
            layout,
            inside,
            sorted,
            subscribers,
            bits: of.bits,
            ratio,
            addresses,
        }))
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many subscribers there are.
    pub fn subscribers(&self) -> u64 {
        self.subscribers
    }

    /// How many subscribers an alias address has.
    pub fn ratio(&self) -> u32 {
        self.ratio
    }

    /// A subscriber's number, and its address. O(log ranges).
    pub(crate) fn place(&self, inside: u32) -> Option<(u32, Ipv4Addr)> {
        let after = self.sorted.partition_point(|(first, ..)| *first <= inside);
        let (first, last, before) = *self.sorted.get(after.checked_sub(1)?)?;
        if inside > last {
            return None;
        }
        let steps = u64::from(inside - first) >> (32 - self.bits);
        let number = before + steps;
        let address = self
            .addresses
            .get((number / u64::from(self.ratio)) as usize)?;
        Some(((number % u64::from(self.ratio)) as u32, *address))
    }

    /// What an inside address has. O(log ranges), beside shuffled ports.
    pub fn outside(&self, inside: Ipv4Addr) -> Option<Reckoned> {
        let (slot, alias) = self.place(inside.to_bits())?;
        let ports = match self.layout.row(slot) {
            Some((first, last)) => PortSet::Row(first, last),
            None => {
                let all = 0..self.layout.size(slot);
                let port = |place| self.layout.port(super::layout::At { block: slot, place });
                let mut ports: Vec<u16> = all.map(port).collect();
                ports.sort_unstable();
                PortSet::Shuffled(ports)
            }
        };
        Some(Reckoned {
            subscriber: AddressRange::of_prefix(inside, self.bits),
            alias,
            ports,
            dynamic: 0,
            slot,
        })
    }

    /// [`Reckoning::outside`] with what blocks on top may bring.
    pub fn outside_with(&self, inside: Ipv4Addr, blocks: &Blocks) -> Option<Reckoned> {
        let reckoned = self.outside(inside)?;
        let has = self.layout.blocks() - self.layout.fixed();
        let most = u32::from(blocks.most).min(has);
        Some(Reckoned {
            dynamic: most * u32::from(blocks.size),
            ..reckoned
        })
    }

    /// Whose an alias port (host order) is; `None`: nobody's that could be
    /// reckoned. O(addresses).
    pub fn inside(&self, alias: Ipv4Addr, port: u16) -> Option<AddressRange> {
        let at = self.layout.at(port)?;
        if at.block >= self.layout.fixed() {
            return None;
        }
        let address = self.addresses.iter().position(|known| *known == alias)?;
        let number = address as u64 * u64::from(self.ratio) + u64::from(at.block);
        if number >= self.subscribers {
            return None;
        }
        let after = self.inside.partition_point(|(_, before)| *before <= number);
        let (first, before) = *self.inside.get(after.checked_sub(1)?)?;
        let steps = (number - before) << (32 - self.bits);
        let inside = Ipv4Addr::from_bits(first.wrapping_add(steps as u32));
        Some(AddressRange::of_prefix(inside, self.bits))
    }
}

/// Each range's first address and how many subscribers are before it, and
/// how many there are.
fn counted(of: &SubscriberConfig) -> (Vec<(u32, u64)>, u64) {
    let mut before = 0;
    let mut inside = Vec::new();
    for range in &of.inside {
        inside.push((range.first.to_bits(), before));
        before += range.count() >> (32 - of.bits);
    }
    (inside, before)
}

#[cfg(test)]
mod tests;
