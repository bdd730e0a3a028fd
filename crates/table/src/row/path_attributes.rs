//! What BGP says of a path (RFC 4271 §5): the AS path, communities, and
//! what the choice between paths goes by.
//!
//! A million paths of a feed share some 150,000 sets of these, and a set is
//! one run of bytes, for a struct with a list for each would cost several
//! allocations. Who reads it asks for values: each attribute's own format
//! stays in this file.

use std::fmt;
use std::net::Ipv4Addr;

/// A set of path attributes. An empty one costs no allocation.
///
/// Attributes in ascending order of their numbers: the number, the length
/// (a byte; or 255 and two bytes), the value. Values are as their RFC has
/// them, but that AS numbers are of four bytes everywhere (RFC 6793). Next
/// hops and prefixes are no part of it: a route has them.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PathAttributes(Option<Box<[u8]>>);

/// Numbers of attributes (IANA, "BGP Path Attributes").
#[allow(missing_docs, reason = "the registry's own names and meanings")]
pub mod number {
    /// Reserved by the registry; here the path identifier (RFC 7911), which
    /// tells several paths of a peer to a prefix apart.
    pub const PATH_ID: u8 = 0;
    pub const ORIGIN: u8 = 1;
    pub const AS_PATH: u8 = 2;
    pub const NEXT_HOP: u8 = 3;
    pub const MED: u8 = 4;
    pub const LOCAL_PREF: u8 = 5;
    pub const ATOMIC_AGGREGATE: u8 = 6;
    pub const AGGREGATOR: u8 = 7;
    pub const COMMUNITIES: u8 = 8;
    pub const ORIGINATOR_ID: u8 = 9;
    pub const CLUSTER_LIST: u8 = 10;
    pub const MP_REACH: u8 = 14;
    pub const MP_UNREACH: u8 = 15;
    pub const EXTENDED_COMMUNITIES: u8 = 16;
    pub const AS4_PATH: u8 = 17;
    pub const AS4_AGGREGATOR: u8 = 18;
    pub const LARGE_COMMUNITIES: u8 = 32;
}

/// Kinds of segments of an AS path (RFC 4271 §4.3, RFC 5065 §3).
#[allow(missing_docs, reason = "the RFCs' own names and meanings")]
pub mod segment {
    pub const SET: u8 = 1;
    pub const SEQUENCE: u8 = 2;
    pub const CONFED_SEQUENCE: u8 = 3;
    pub const CONFED_SET: u8 = 4;
}

/// From this length on, the length has two bytes more.
const LONG: usize = 255;

impl PathAttributes {
    /// Octets that it takes beside itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |packed| packed.len())
    }

    /// Packs attributes: numbers and values. Of one that comes twice the
    /// first counts (RFC 7606 §3); a value of more than 65,535 bytes, which
    /// no message has room for, is left out. One allocation where they come
    /// in the order of their numbers, as most write them.
    pub fn pack<'a>(attributes: impl IntoIterator<Item = (u8, &'a [u8]), IntoIter: Clone>) -> Self {
        let fits = |(_, value): &(u8, &[u8])| u16::try_from(value.len()).is_ok();
        let all = attributes.into_iter().filter(fits);
        if all
            .clone()
            .is_sorted_by(|(before, _), (next, _)| before < next)
        {
            return Self::pack_sorted(all);
        }
        let mut sorted: Vec<(u8, &[u8])> = all.collect();
        sorted.sort_by_key(|(number, _)| *number);
        sorted.dedup_by_key(|(number, _)| *number);
        Self::pack_sorted(sorted.into_iter())
    }

    /// The same of those that are in order, each once and not too long.
    fn pack_sorted<'a>(all: impl Iterator<Item = (u8, &'a [u8])> + Clone) -> Self {
        let head = |value: &[u8]| if value.len() < LONG { 2 } else { 4 };
        let len = all.clone().map(|(_, value)| head(value) + value.len());
        // Just so much, so that nothing is moved in the end.
        let mut packed = Vec::with_capacity(len.sum());
        for (number, value) in all {
            packed.push(number);
            match u8::try_from(value.len()) {
                Ok(short) if usize::from(short) < LONG => packed.push(short),
                _ => {
                    packed.push(u8::MAX);
                    packed.extend_from_slice(&(value.len() as u16).to_be_bytes());
                }
            }
            packed.extend_from_slice(value);
        }
        Self((!packed.is_empty()).then(|| packed.into()))
    }

    /// Whether nothing is said.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many bytes it takes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.as_deref().map_or(0, <[u8]>::len)
    }

    /// All attributes by their numbers, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = self.0.as_deref().unwrap_or_default();
        std::iter::from_fn(move || {
            let (number, value, behind) = first(rest)?;
            rest = behind;
            Some((number, value))
        })
    }

    /// The value of an attribute.
    pub fn get(&self, number: u8) -> Option<&[u8]> {
        self.iter()
            .take_while(|(at, _)| *at <= number)
            .find_map(|(at, value)| (at == number).then_some(value))
    }

    /// The path identifier, where a peer tells several paths to a prefix.
    pub fn path_id(&self) -> Option<u32> {
        self.word(number::PATH_ID)
    }

    /// `ORIGIN`: 0 igp, 1 egp, 2 incomplete.
    pub fn origin(&self) -> Option<u8> {
        self.get(number::ORIGIN)?.first().copied()
    }

    /// `AS_PATH`; `None`: the attribute is not there.
    pub fn as_path(&self) -> Option<AsPath<'_>> {
        self.get(number::AS_PATH).map(AsPath)
    }

    /// `MULTI_EXIT_DISC`.
    pub fn med(&self) -> Option<u32> {
        self.word(number::MED)
    }

    /// `LOCAL_PREF`.
    pub fn local_pref(&self) -> Option<u32> {
        self.word(number::LOCAL_PREF)
    }

    /// `ORIGINATOR_ID` (RFC 4456).
    pub fn originator_id(&self) -> Option<Ipv4Addr> {
        self.word(number::ORIGINATOR_ID).map(Ipv4Addr::from)
    }

    /// `COMMUNITIES` (RFC 1997): two halves of 16 bits each.
    pub fn communities(&self) -> impl Iterator<Item = (u16, u16)> {
        let all = self.get(number::COMMUNITIES).unwrap_or_default();
        let (all, _) = all.as_chunks::<4>();
        all.iter()
            .map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
    }

    /// `EXTENDED_COMMUNITIES` (RFC 4360), eight bytes each.
    pub fn extended_communities(&self) -> impl Iterator<Item = [u8; 8]> {
        let all = self.get(number::EXTENDED_COMMUNITIES).unwrap_or_default();
        all.as_chunks::<8>().0.iter().copied()
    }

    /// `LARGE_COMMUNITY` (RFC 8092): three numbers each.
    pub fn large_communities(&self) -> impl Iterator<Item = [u32; 3]> {
        let all = self.get(number::LARGE_COMMUNITIES).unwrap_or_default();
        let (all, _) = all.as_chunks::<12>();
        all.iter().map(|one| {
            let (words, _) = one.as_chunks::<4>();
            let word = |at: usize| words.get(at).map_or(0, |word| u32::from_be_bytes(*word));
            [word(0), word(1), word(2)]
        })
    }

    fn word(&self, number: u8) -> Option<u32> {
        let value = self.get(number)?.try_into().ok()?;
        Some(u32::from_be_bytes(value))
    }
}

impl fmt::Debug for PathAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The first attribute of a run, and what is behind it.
#[inline]
fn first(rest: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (number, rest) = rest.split_first()?;
    let (short, rest) = rest.split_first()?;
    let (len, rest) = match usize::from(*short) {
        LONG => {
            let (len, rest) = rest.split_first_chunk()?;
            (u16::from_be_bytes(*len).into(), rest)
        }
        len => (len, rest),
    };
    let (value, rest) = rest.split_at_checked(len)?;
    Some((*number, value, rest))
}

/// An AS path: segments, from the neighbour to the origin.
#[derive(Debug, Clone, Copy)]
pub struct AsPath<'a>(&'a [u8]);

/// A segment of an AS path.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// [`segment`].
    pub kind: u8,
    numbers: &'a [[u8; 4]],
}

impl<'a> AsPath<'a> {
    /// A path of AS numbers of four bytes, as an `AS_PATH` has it. What
    /// behind its segments is none is not seen.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The segments.
    pub fn segments(self) -> impl Iterator<Item = Segment<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let ([kind, count], behind) = rest.split_first_chunk()?;
            let (numbers, behind) = behind.split_at_checked(usize::from(*count) * 4)?;
            rest = behind;
            Some(Segment {
                kind: *kind,
                numbers: numbers.as_chunks().0,
            })
        })
    }

    /// How long it counts when paths are compared: a set as one, what is
    /// within a confederation not (RFC 4271 §9.1.2.2, RFC 5065 §5.3).
    pub fn hops(self) -> usize {
        let hops = self.segments().map(|segment| match segment.kind {
            segment::SEQUENCE => segment.numbers.len(),
            segment::SET => 1,
            _ => 0,
        });
        hops.sum()
    }

    /// The AS that it begins with, unless that is one of a set: the
    /// neighbour.
    pub fn neighbour(self) -> Option<u32> {
        let mut outside = self.segments().filter(|segment| segment.is_outside());
        let first = outside.next()?;
        let is_sequence = first.kind == segment::SEQUENCE;
        first.numbers().next().filter(|_| is_sequence)
    }

    /// The segment of the AS that the prefix comes from: the last one, of
    /// one number, or of a set of which one was it.
    pub fn origins(self) -> impl Iterator<Item = u32> {
        let last = self.segments().filter(|one| !one.numbers.is_empty()).last();
        let skip = last.map_or(0, |one| match one.kind {
            segment::SEQUENCE | segment::CONFED_SEQUENCE => one.numbers.len() - 1,
            _ => 0,
        });
        last.into_iter().flat_map(|one| one.numbers()).skip(skip)
    }

    /// The AS that the prefix comes from; `None` where the path ends in a
    /// set (RFC 6811 §2) or is empty.
    pub fn origin(self) -> Option<u32> {
        let last = self.segments().filter(|one| !one.numbers.is_empty()).last();
        let is_sequence = last.is_some_and(|one| !one.is_set());
        self.origins().next().filter(|_| is_sequence)
    }
}

impl<'a> Segment<'a> {
    /// Its AS numbers.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        self.numbers
            .iter()
            .map(|number| u32::from_be_bytes(*number))
    }

    /// Whether its order means nothing.
    pub fn is_set(self) -> bool {
        matches!(self.kind, segment::SET | segment::CONFED_SET)
    }

    fn is_outside(self) -> bool {
        matches!(self.kind, segment::SET | segment::SEQUENCE) && !self.numbers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_read() {
        let long = vec![7; 300];
        let edge = vec![9; 255];
        let packed = PathAttributes::pack([
            (number::COMMUNITIES, &[0, 1, 0, 2, 255, 255, 0, 3, 9][..]),
            (number::ORIGIN, &[2]),
            (200, &long),
            (201, &edge),
            (number::ORIGIN, &[1]),
            (number::MED, &[0, 0, 1, 0]),
            (
                number::LARGE_COMMUNITIES,
                &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
            ),
        ]);
        let numbers: Vec<u8> = packed.iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 4, 8, 32, 200, 201]);
        assert_eq!(packed.get(200), Some(&long[..]));
        assert_eq!(packed.get(201), Some(&edge[..]));
        assert_eq!((packed.origin(), packed.med()), (Some(2), Some(256)));
        assert_eq!((packed.local_pref(), packed.path_id()), (None, None));
        assert!(packed.communities().eq([(1, 2), (65_535, 3)]));
        assert!(packed.large_communities().eq([[1, 2, 3]]));
        assert_eq!(packed.extended_communities().count(), 0);
        assert!(PathAttributes::pack([]).is_empty());
        let too_long = vec![0; 70_000];
        assert!(PathAttributes::pack([(1, &too_long[..])]).is_empty());
    }

    #[test]
    fn a_path_counts_as_the_rfcs_say() {
        let bytes = [
            &[3, 1, 0, 0, 0, 9][..],
            &[2, 2, 0, 0, 0, 1, 0, 0, 0, 2],
            &[1, 2, 0, 0, 0, 3, 0, 1, 0, 0],
        ]
        .concat();
        let path = AsPath::new(&bytes);
        assert_eq!(path.hops(), 3);
        assert_eq!((path.neighbour(), path.origin()), (Some(1), None));
        assert!(path.origins().eq([3, 65_536]));
        let path = AsPath::new(&bytes[..16]);
        assert_eq!((path.hops(), path.origin()), (2, Some(2)));
        assert!(path.origins().eq([2]));
        let empty = AsPath::new(&[]);
        assert_eq!((empty.hops(), empty.origin()), (0, None));
        assert_eq!(empty.neighbour(), None);
        // What is cut off is not seen.
        assert_eq!(AsPath::new(&bytes[..15]).segments().count(), 1);
    }
}
