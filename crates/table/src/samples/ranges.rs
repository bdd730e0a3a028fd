//! Which links somebody reads, as a few ranges of indexes: what a request
//! noted, and what the source is asked for.

use std::ops::RangeInclusive;

/// More ranges become one.
const MOST: usize = 32;
/// Indexes that lie so near are one range.
const NEAR: u32 = 16;

/// Indexes of links, in ranges; a few too many rather than one too few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkRanges(Vec<RangeInclusive<u32>>);

impl LinkRanges {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &RangeInclusive<u32>> {
        self.0.iter()
    }

    /// The same, and behind each range as many again, `most` at most: for
    /// who walks on.
    #[must_use]
    pub fn with_next(&self, most: u32) -> Self {
        let next = |range: &RangeInclusive<u32>| {
            let len = range.end() - range.start();
            *range.start()..=range.end().saturating_add(len.saturating_add(1).min(most))
        };
        Self(self.0.iter().map(next).collect())
    }

    /// Adds a link. O(1) for one behind the last, as in a walk.
    pub fn add(&mut self, link: u32) {
        self.add_range(&(link..=link));
    }

    /// Adds those of others.
    pub fn add_all(&mut self, others: &Self) {
        others.iter().for_each(|range| self.add_range(range));
    }

    fn add_range(&mut self, range: &RangeInclusive<u32>) {
        let is_near = |other: &&mut RangeInclusive<u32>| {
            *range.start() <= other.end().saturating_add(NEAR)
                && *range.end() >= other.start().saturating_sub(NEAR)
        };
        // A walk is in the last one.
        if let Some(near) = self.0.iter_mut().rev().find(is_near) {
            *near = *near.start().min(range.start())..=*near.end().max(range.end());
        } else if self.0.len() < MOST {
            self.0.push(range.clone());
        } else {
            self.0 = vec![self.span(range)];
        }
    }

    /// One range for all, and this one.
    fn span(&self, range: &RangeInclusive<u32>) -> RangeInclusive<u32> {
        self.0.iter().fold(range.clone(), |all, one| {
            *all.start().min(one.start())..=*all.end().max(one.end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_one_range_and_too_many_are_one() {
        let mut links = LinkRanges::default();
        (1..=50).for_each(|link| links.add(link));
        links.add(1_000);
        links.add(990);
        let all: Vec<_> = links.iter().cloned().collect();
        assert_eq!(all, [1..=50, 990..=1_000]);
        for far in 0..2 * MOST as u32 {
            links.add(10_000 + 100 * far);
        }
        let has = |link: u32| links.iter().any(|range| range.contains(&link));
        assert!(links.0.len() <= MOST);
        for link in [
            1,
            50,
            990,
            1_000,
            10_000,
            10_000 + 100 * (2 * MOST as u32 - 1),
        ] {
            assert!(has(link), "{link}");
        }
    }

    #[test]
    fn the_ends_of_all_numbers_are_links_as_well() {
        let mut links = LinkRanges::default();
        links.add(u32::MAX);
        links.add(0);
        assert_eq!(links.iter().count(), 2);
        links.add_all(&links.clone());
        assert_eq!(links.iter().count(), 2);
        let next = links.with_next(5);
        assert!(next.iter().any(|range| *range == (0..=1)));
    }
}
