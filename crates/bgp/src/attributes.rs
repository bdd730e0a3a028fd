//! Path attributes as messages and files have them (RFC 4271 §4.3).

use std::borrow::Cow;
use std::net::IpAddr;

use table::PathAttributes;
use table::row::path_attributes::number;

use crate::Bad;
use crate::as_path::{AsSize, check, merge, widen};
use crate::bytes::Bytes;
use crate::nlri::unicast;

/// An attribute's length has two bytes.
const EXTENDED_LENGTH: u8 = 0x10;
/// What an AS number of more than two bytes is written as in two.
const AS_TRANS: [u8; 4] = [0, 0, 0x5b, 0xa0];

/// The attributes of a message, each as it stands there.
#[derive(Debug, Clone, Default)]
pub struct Attributes<'a> {
    all: Vec<(u8, &'a [u8])>,
}

/// What a `MP_REACH_NLRI` says (RFC 4760 §3).
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// Of which family: an AFI and a SAFI.
    pub family: (u16, u8),
    /// The next hop; the global one of two.
    pub next_hop: Option<IpAddr>,
    /// The prefixes.
    pub prefixes: &'a [u8],
}

/// What a `MP_UNREACH_NLRI` says (RFC 4760 §4).
#[derive(Debug, Clone, Copy)]
pub struct Unreach<'a> {
    /// Of which family: an AFI and a SAFI.
    pub family: (u16, u8),
    /// The prefixes.
    pub prefixes: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Reads the attributes of a message.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Bad> {
        let mut bytes = Bytes(bytes);
        let mut all = Vec::with_capacity(8);
        while !bytes.is_empty() {
            let flags = bytes.u8("an attribute")?;
            let number = bytes.u8("an attribute")?;
            let len = match flags & EXTENDED_LENGTH {
                0 => bytes.u8("an attribute")?.into(),
                _ => bytes.u16("an attribute")?.into(),
            };
            all.push((number, bytes.take(len, "an attribute")?));
        }
        Ok(Self { all })
    }

    /// The number of the only attribute, or that there is none; `None`:
    /// there are several.
    pub fn only(&self) -> Option<Option<u8>> {
        match self.all[..] {
            [] => Some(None),
            [(number, _)] => Some(Some(number)),
            _ => None,
        }
    }

    /// The value of an attribute.
    pub fn get(&self, number: u8) -> Option<&'a [u8]> {
        let mut all = self.all.iter();
        all.find_map(|(of, value)| (*of == number).then_some(*value))
    }

    /// `NEXT_HOP`.
    pub fn next_hop(&self) -> Result<Option<IpAddr>, Bad> {
        let value = self.get(number::NEXT_HOP);
        value
            .map(|value| address(value, "the next hop"))
            .transpose()
    }

    /// `MP_REACH_NLRI` of a message.
    pub fn reach(&self) -> Result<Option<Reach<'a>>, Bad> {
        self.get(number::MP_REACH).map(reach).transpose()
    }

    /// `MP_UNREACH_NLRI`.
    pub fn unreach(&self) -> Result<Option<Unreach<'a>>, Bad> {
        let Some(value) = self.get(number::MP_UNREACH) else {
            return Ok(None);
        };
        let mut bytes = Bytes(value);
        let family = (bytes.u16(UNREACH)?, bytes.u8(UNREACH)?);
        Ok(Some(Unreach {
            family,
            prefixes: bytes.0,
        }))
    }

    /// The next hop of an entry of a table, where `MP_REACH_NLRI` is the
    /// next hop alone (RFC 6396 §4.3.4); some write it whole.
    pub fn next_hop_of_entry(&self) -> Result<Option<IpAddr>, Bad> {
        match self.get(number::MP_REACH) {
            None => self.next_hop(),
            // No next hop is 0 long: the first half of a family.
            Some(whole @ [0, ..]) => Ok(reach(whole)?.next_hop),
            Some(value) => {
                let mut bytes = Bytes(value);
                let len = bytes.u8(REACH)?;
                next_hop(bytes.take(len.into(), REACH)?)
            }
        }
    }

    /// What a row keeps of them. `path_id`: of which of several paths.
    pub fn packed(&self, size: AsSize, path_id: Option<u32>) -> Result<PathAttributes, Bad> {
        let path_id = path_id.map(u32::to_be_bytes);
        let path = self.as_path(size)?;
        // A bad one is left out, and the path stays (RFC 7606 §7.7).
        let aggregator = self.aggregator(size).unwrap_or(None);
        self.check()?;
        let path_id = path_id.as_ref().map(|id| (number::PATH_ID, &id[..]));
        let kept = self.all.iter().filter_map(|(of, value)| match *of {
            number::AS_PATH => Some((*of, path.as_deref()?)),
            number::AGGREGATOR => Some((*of, &aggregator.as_ref()?[..])),
            of => is_kept(of).then_some((of, *value)),
        });
        Ok(PathAttributes::pack(path_id.into_iter().chain(kept)))
    }

    /// Whether the AS path, where there is one, can be one of numbers of
    /// this size.
    pub fn has_path_of(&self, size: AsSize) -> bool {
        let path = self.get(number::AS_PATH).unwrap_or_default();
        widen(path, size, &mut Vec::new()).is_ok()
    }

    /// The AS path with numbers of four bytes.
    fn as_path(&self, size: AsSize) -> Result<Option<Cow<'a, [u8]>>, Bad> {
        let Some(path) = self.get(number::AS_PATH) else {
            return Ok(None);
        };
        if size == AsSize::Four {
            check(path, size)?;
            return Ok(Some(path.into()));
        }
        let mut wide = Vec::with_capacity(path.len() * 2);
        widen(path, size, &mut wide)?;
        let new = self.get(number::AS4_PATH);
        let Some(new) = new.filter(|_| !self.is_aggregated_anew()) else {
            return Ok(Some(wide.into()));
        };
        let mut wide_new = Vec::with_capacity(new.len());
        // One that cannot be read is left out (RFC 6793 §6).
        Ok(Some(match widen(new, AsSize::Four, &mut wide_new) {
            Ok(()) => merge(&wide, &wide_new).into(),
            Err(_) => wide.into(),
        }))
    }

    /// Whether a speaker of two bytes has aggregated since: what the other
    /// has said of four is old (RFC 6793 §4.2.3).
    fn is_aggregated_anew(&self) -> bool {
        let by = self.get(number::AGGREGATOR);
        by.is_some_and(|by| !by.starts_with(&AS_TRANS[2..]))
    }

    fn aggregator(&self, size: AsSize) -> Result<Option<[u8; 8]>, Bad> {
        let Some(by) = self.get(number::AGGREGATOR) else {
            return Ok(None);
        };
        let wrong = Bad::Length {
            what: "the aggregator",
            len: by.len(),
        };
        match (size, by) {
            (AsSize::Four, by) => by.try_into().map(Some).map_err(|_| wrong),
            (AsSize::Two, [a, b, address @ ..]) => {
                let address: [u8; 4] = address.try_into().map_err(|_| wrong)?;
                let new = self.get(number::AS4_AGGREGATOR);
                if let Some(new) = new.filter(|_| !self.is_aggregated_anew())
                    && let Ok(new) = new.try_into()
                {
                    return Ok(Some(new));
                }
                let [c, d, e, f] = address;
                Ok(Some([0, 0, *a, *b, c, d, e, f]))
            }
            (AsSize::Two, _) => Err(wrong),
        }
    }

    /// Whether the attributes that rows give values of have the lengths
    /// that they may have.
    fn check(&self) -> Result<(), Bad> {
        for (of, value) in &self.all {
            let (what, fits) = match *of {
                number::ORIGIN => ("the origin", value.len() == 1),
                number::MED => ("the MED", value.len() == 4),
                number::LOCAL_PREF => ("the local preference", value.len() == 4),
                number::ORIGINATOR_ID => ("the originator's id", value.len() == 4),
                number::CLUSTER_LIST => ("the list of clusters", value.len() % 4 == 0),
                number::COMMUNITIES => ("the communities", value.len() % 4 == 0),
                number::EXTENDED_COMMUNITIES => ("the extended communities", value.len() % 8 == 0),
                number::LARGE_COMMUNITIES => ("the large communities", value.len() % 12 == 0),
                _ => continue,
            };
            if !fits {
                let len = value.len();
                return Err(Bad::Length { what, len });
            }
        }
        Ok(())
    }
}

const REACH: &str = "MP_REACH_NLRI";
const UNREACH: &str = "MP_UNREACH_NLRI";

/// Whether a row keeps an attribute as it is. What is not kept is said by
/// the route itself, or put together from several.
fn is_kept(of: u8) -> bool {
    !matches!(
        of,
        number::PATH_ID
            | number::AS_PATH
            | number::NEXT_HOP
            | number::AGGREGATOR
            | number::MP_REACH
            | number::MP_UNREACH
            | number::AS4_PATH
            | number::AS4_AGGREGATOR
    )
}

fn reach(value: &[u8]) -> Result<Reach<'_>, Bad> {
    let mut bytes = Bytes(value);
    let family = (bytes.u16(REACH)?, bytes.u8(REACH)?);
    let len = bytes.u8(REACH)?;
    let hop = bytes.take(len.into(), REACH)?;
    // Reserved.
    bytes.u8(REACH)?;
    // Of other families it may have any form.
    let next_hop = match unicast(family.0, family.1) {
        Some(_) => next_hop(hop)?,
        None => None,
    };
    Ok(Reach {
        family,
        next_hop,
        prefixes: bytes.0,
    })
}

/// A next hop of any family: an address; a global one and a link-local one
/// (RFC 2545 §3); each behind a route distinguisher (RFC 4364 §4.3.2).
fn next_hop(value: &[u8]) -> Result<Option<IpAddr>, Bad> {
    let address_of = |value| address(value, "the next hop").map(Some);
    match value.len() {
        0 => Ok(None),
        4 | 16 => address_of(value),
        32 => address_of(&value[..16]),
        12 | 24 => address_of(&value[8..]),
        48 => address_of(&value[8..24]),
        len => Err(Bad::Length {
            what: "the next hop",
            len,
        }),
    }
}

fn address(value: &[u8], what: &'static str) -> Result<IpAddr, Bad> {
    let len = value.len();
    match len {
        4 | 16 => Bytes(value).address(len == 16, what),
        _ => Err(Bad::Length { what, len }),
    }
}
