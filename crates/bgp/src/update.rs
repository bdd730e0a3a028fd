//! `UPDATE`: what a message says of routes (RFC 4271 §4.3).

use std::net::IpAddr;

use table::row::path_attributes::number;

use crate::Bad;
use crate::as_path::AsSize;
use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::message::{Message, kind};
use crate::nlri::{Prefixes, unicast};

/// How a session writes what it says.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// Bytes of an AS number.
    pub as_size: AsSize,
    /// Whether prefixes have path identifiers (RFC 7911): of IPv4, of IPv6.
    pub has_path_ids: [bool; 2],
}

/// What an `UPDATE` says of IPv4 and IPv6 unicast.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// Prefixes that are no longer there.
    pub withdrawn: [Prefixes<'a>; 2],
    /// Prefixes that are, and over which next hop.
    pub announced: [(Prefixes<'a>, Option<IpAddr>); 2],
    /// How.
    pub attributes: Attributes<'a>,
}

impl<'a> Update<'a> {
    /// Reads a message with its header; `None`: it is no `UPDATE`.
    pub fn of_message(message: &'a [u8], session: Session) -> Result<Option<Self>, Bad> {
        let mut bytes = Bytes(message);
        let message = Message::take(&mut bytes)?;
        if !bytes.is_empty() {
            return Err(Bad::Long("a message"));
        }
        match message.kind {
            kind::UPDATE => Self::read(message.body, session).map(Some),
            kind::OPEN | kind::NOTIFICATION..=kind::ROUTE_REFRESH => Ok(None),
            kind => Err(Bad::Value {
                what: "the type of a message",
                value: kind.into(),
            }),
        }
    }

    /// Reads an `UPDATE` without its header.
    pub fn read(body: &'a [u8], session: Session) -> Result<Self, Bad> {
        let mut bytes = Bytes(body);
        let len = bytes.u16("the withdrawn prefixes")?;
        let withdrawn = bytes.take(len.into(), "the withdrawn prefixes")?;
        let len = bytes.u16("the attributes")?;
        let attributes = Attributes::read(bytes.take(len.into(), "the attributes")?)?;
        let of = |prefixes, is_v6| {
            let has_path_ids = session.has_path_ids[usize::from(is_v6)];
            Prefixes::new(prefixes, is_v6, has_path_ids)
        };
        let mut update = Self {
            withdrawn: [of(withdrawn, false), Prefixes::none()],
            announced: [
                (of(bytes.0, false), attributes.next_hop()?),
                (Prefixes::none(), None),
            ],
            attributes,
        };
        if let Some(unreach) = update.attributes.unreach()?
            && let Some(is_v6) = unicast(unreach.family.0, unreach.family.1)
        {
            update.withdrawn[1] = of(unreach.prefixes, is_v6);
        }
        if let Some(reach) = update.attributes.reach()?
            && let Some(is_v6) = unicast(reach.family.0, reach.family.1)
        {
            update.announced[1] = (of(reach.prefixes, is_v6), reach.next_hop);
        }
        Ok(update)
    }

    /// Whether it says anything of paths.
    pub fn says_paths(&self) -> bool {
        let announced = self.announced.iter().map(|(prefixes, _)| prefixes);
        let mut all = announced.chain(&self.withdrawn);
        all.any(|prefixes| !prefixes.is_empty())
    }

    /// Whether all its prefixes can be read. O(prefixes).
    pub fn is_readable(&self) -> bool {
        let announced = self.announced.iter().map(|(prefixes, _)| *prefixes);
        let mut all = announced.chain(self.withdrawn).flatten();
        all.all(|prefix| prefix.is_ok())
    }

    /// Whether it says nothing but that all of a family was told
    /// (End-of-RIB, RFC 4724 §2): whether that is IPv6.
    pub fn end_of_rib(&self) -> Option<bool> {
        if self.says_paths() {
            return None;
        }
        match self.attributes.only()? {
            None => Some(false),
            Some(number::MP_UNREACH) => {
                let (afi, safi) = self.attributes.unreach().ok()??.family;
                unicast(afi, safi)
            }
            Some(_) => None,
        }
    }
}
