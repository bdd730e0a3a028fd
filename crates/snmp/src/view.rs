//! Views (RFC 3415 §2.4, §5 `vacmViewTreeFamilyTable`): which names an asker
//! sees. Used by the agent while it walks, so that it jumps over what is not
//! to be seen and does not try it row by row.

use std::cmp::Reverse;

use crate::oid::{self, Name, Oid};

/// A family of subtrees: a name in whose places some sub-identifiers may be
/// any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The subtree.
    pub subtree: Oid,
    /// One bit for each sub-identifier, the first is the highest of the
    /// first byte: 0 where it may be any. Ones follow; an empty mask is the
    /// subtree alone.
    pub mask: Vec<u8>,
    /// Whether it belongs to the view or is taken out of it.
    pub included: bool,
}

/// What an asker sees.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The one that decides comes first.
    families: Vec<Pattern>,
}

/// A family, ready to be compared.
#[derive(Clone, Debug)]
struct Pattern {
    /// `None` may be any.
    places: Vec<Option<u32>>,
    subtree: Oid,
    included: bool,
}

impl View {
    /// All there is.
    pub fn all() -> Self {
        Self::new(&[Family {
            subtree: Oid::default(),
            mask: Vec::new(),
            included: true,
        }])
    }

    /// What these families leave: of those that a name is in, the longest
    /// decides, of equally long ones the greatest. Of none: nothing.
    pub fn new(families: &[Family]) -> Self {
        let mut families: Vec<Pattern> = families.iter().map(Pattern::new).collect();
        families.sort_by(|a, b| {
            let key = |pattern: &Pattern| Reverse((pattern.places.len(), pattern.subtree.clone()));
            key(a).cmp(&key(b))
        });
        Self { families }
    }

    /// Whether a name is to be seen. O(families).
    pub fn contains(&self, name: &[u32]) -> bool {
        let decides = self.families.iter().find(|family| family.matches(name));
        decides.is_some_and(|family| family.included)
    }

    /// No name from `name`, which is not to be seen, up to this one is.
    /// `None`: nothing more is. O(families).
    pub fn next(&self, name: &[u32]) -> Option<Name> {
        let decides = self.families.iter().position(|family| family.matches(name));
        // Only what comes before the family that decides is stronger.
        let (stronger, behind) = match decides {
            Some(at) => {
                let excluded = &self.families[at];
                let len = excluded.places.len().min(name.len());
                (&self.families[..at], oid::behind(&name[..len]))
            }
            None => (&self.families[..], None),
        };
        let inside = stronger
            .iter()
            .filter(|family| family.included)
            .filter_map(|family| family.first_from(name));
        inside.chain(behind).min()
    }
}

impl Pattern {
    fn new(family: &Family) -> Self {
        let exact = |at: usize| {
            let byte = family.mask.get(at / 8).copied().unwrap_or(0xff);
            byte & (0x80 >> (at % 8)) != 0
        };
        let places = family.subtree.iter().enumerate();
        Self {
            places: places
                .map(|(at, sub_id)| exact(at).then_some(*sub_id))
                .collect(),
            subtree: family.subtree.clone(),
            included: family.included,
        }
    }

    fn matches(&self, name: &[u32]) -> bool {
        name.len() >= self.places.len()
            && self
                .places
                .iter()
                .zip(name)
                .all(|(place, sub_id)| place.is_none_or(|place| place == *sub_id))
    }

    /// The least name of this family that is not less than `name`.
    fn first_from(&self, name: &[u32]) -> Option<Name> {
        let mut first = Name::new();
        // The last place that can be counted up if a later one is too great.
        let mut open = None;
        for (at, place) in self.places.iter().enumerate() {
            let Some(sub_id) = name.get(at) else {
                return Some(self.least(first));
            };
            match place {
                None => {
                    if *sub_id < u32::MAX {
                        open = Some(at);
                    }
                    first.push(*sub_id);
                }
                Some(place) if place == sub_id => first.push(*sub_id),
                Some(place) if place > sub_id => return Some(self.least(first)),
                Some(_) => {
                    let at = open?;
                    first.truncate(at);
                    first.push(name[at] + 1);
                    return Some(self.least(first));
                }
            }
        }
        // `name` begins as the family does: it is in it.
        first.clear();
        first.extend(name.iter().copied().take(oid::MAX_SUB_IDS));
        Some(first)
    }

    /// The least name of this family that begins with `head`.
    fn least(&self, mut head: Name) -> Name {
        let rest = self.places.get(head.len()..).unwrap_or_default();
        head.extend(rest.iter().map(|place| place.unwrap_or(0)));
        head
    }
}

#[cfg(test)]
mod tests;
