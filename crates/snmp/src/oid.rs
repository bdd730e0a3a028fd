//! Names of objects: sequences of sub-identifiers, ordered as slices are.
//!
//! Names pass as `&[u32]`; an owned [`Oid`] is for configuration and
//! messages of our own, a [`Name`] for a name that is put together without
//! allocation.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use arrayvec::ArrayVec;

/// Sub-identifiers that a name has at most (RFC 3416 §4.1).
pub const MAX_SUB_IDS: usize = 128;

/// A name in place, for putting together without allocation.
pub type Name = ArrayVec<u32, MAX_SUB_IDS>;

/// An owned name; written `1.3.6.1.2.1`, read with or without a dot ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Box<[u32]>);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidError {
    /// A part between dots is no number below 2^32.
    #[error("`{part}` in `{text}` is not a number from 0 to 4294967295: write a name as 1.3.6.1")]
    Part {
        /// The part.
        part: String,
        /// All of the text.
        text: String,
    },
    /// More than [`MAX_SUB_IDS`] parts.
    #[error("a name of {0} sub-identifiers; 128 are the most")]
    TooLong(usize),
}

impl Oid {
    /// A name of these sub-identifiers. Errors with [`OidError::TooLong`]
    /// beyond [`MAX_SUB_IDS`].
    pub fn new(sub_ids: &[u32]) -> Result<Self, OidError> {
        if sub_ids.len() > MAX_SUB_IDS {
            return Err(OidError::TooLong(sub_ids.len()));
        }
        Ok(Self(sub_ids.into()))
    }
}

impl Deref for Oid {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let digits = text.strip_prefix('.').unwrap_or(text);
        if digits.is_empty() {
            return Ok(Self::default());
        }
        let parts = digits.split('.').map(|part| {
            // A sign would be a number to `parse`, too.
            let number = part.parse().ok().filter(|_| !part.starts_with('+'));
            number.ok_or_else(|| OidError::Part {
                part: part.into(),
                text: text.into(),
            })
        });
        let sub_ids: Vec<u32> = parts.collect::<Result<_, _>>()?;
        Self::new(&sub_ids)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, sub_id) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            write!(out, "{dot}{sub_id}")?;
        }
        Ok(())
    }
}

/// The greatest name below `name`, of all names that may be: a walk from
/// there begins with `name` itself. `None` for the empty name, the first.
pub fn before(name: &[u32]) -> Option<Name> {
    let (last, head) = name.split_last()?;
    let mut below: Name = head.iter().copied().take(MAX_SUB_IDS).collect();
    if let Some(last) = last.checked_sub(1) {
        // All that begins with one less lies between; the longest and
        // greatest of these is next to `name`.
        if below.try_push(last).is_ok() {
            below.extend(std::iter::repeat_n(u32::MAX, below.remaining_capacity()));
        }
    }
    Some(below)
}

/// The first name behind all that begin with `prefix`, `None` if none can
/// be.
pub fn behind(prefix: &[u32]) -> Option<Name> {
    let mut name: Name = prefix.iter().copied().take(MAX_SUB_IDS).collect();
    while let Some(last) = name.pop() {
        if let Some(more) = last.checked_add(1) {
            name.push(more);
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for (text, again) in [
            ("1.3.6.1", "1.3.6.1"),
            (".1.3", "1.3"),
            ("", ""),
            ("0", "0"),
        ] {
            assert_eq!(text.parse::<Oid>().expect(text).to_string(), again);
        }
        for wrong in ["1..3", "1.x", "1.4294967296", "1.-1", "1.+1", "1.3."] {
            assert!(wrong.parse::<Oid>().is_err(), "{wrong}");
        }
        let long = vec!["1"; MAX_SUB_IDS + 1].join(".");
        assert_eq!(long.parse::<Oid>(), Err(OidError::TooLong(129)));
    }

    #[test]
    fn neighbours_of_a_name() {
        let below = before(&[1, 3, 6]).expect("a name below");
        assert_eq!((below.len(), &below[..4]), (128, &[1, 3, 5, u32::MAX][..]));
        assert_eq!(before(&[1, 3, 0]).as_deref(), Some(&[1, 3][..]));
        assert_eq!(before(&[]), None);
        assert_eq!(behind(&[1, 3, 6]).as_deref(), Some(&[1, 3, 7][..]));
        assert_eq!(behind(&[1, u32::MAX]).as_deref(), Some(&[2][..]));
        assert_eq!(behind(&[u32::MAX]), None);
        let longest = [7; MAX_SUB_IDS];
        assert_eq!(before(&longest).map(|name| name[127]), Some(6));
    }
}
