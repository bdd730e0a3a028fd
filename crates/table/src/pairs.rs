//! Two ordered lists side by side: what every comparison of rows wanted
//! with rows that are there begins with. Pure.

use std::cmp::Ordering;

/// What two lists hold under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair<A, B = A> {
    /// Something of each.
    Both(A, B),
    /// Only something of the first.
    First(A),
    /// Only something of the second.
    Second(B),
}

/// Walks two lists, each in the order that `order` compares them by and
/// without two of one key. (Rows of which several have one key come as
/// runs.) O(rows), holds nothing.
pub fn pairs<A, B>(
    first: impl IntoIterator<Item = A>,
    second: impl IntoIterator<Item = B>,
    order: impl Fn(&A, &B) -> Ordering,
) -> impl Iterator<Item = Pair<A, B>> {
    let mut first = first.into_iter().peekable();
    let mut second = second.into_iter().peekable();
    std::iter::from_fn(move || {
        let order = match (first.peek(), second.peek()) {
            (Some(a), Some(b)) => order(a, b),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => first.next().map(Pair::First),
            Ordering::Greater => second.next().map(Pair::Second),
            Ordering::Equal => Some(Pair::Both(first.next()?, second.next()?)),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = BTreeMap<u8, u8>> {
        proptest::collection::btree_map(0..40u8, 0..3u8, 0..30)
    }

    proptest! {
        /// Against plain maps: what the pairs say makes one of the other.
        #[test]
        fn pairs_are_the_difference_of_two_maps(before: BTreeMap<u8, u8>, (a, b) in (rows(), rows())) {
            for (first, second) in [(&a, &b), (&before, &a), (&a, &a)] {
                let mut now = first.clone();
                let mut last = None;
                for pair in pairs(first, second, |a, b| a.0.cmp(b.0)) {
                    let key = match pair {
                        Pair::Both((a, had), (b, has)) => {
                            prop_assert_eq!((a, Some(had), Some(has)), (b, first.get(a), second.get(a)));
                            now.insert(*a, *has);
                            a
                        }
                        Pair::First((key, _)) => {
                            prop_assert!(!second.contains_key(key));
                            now.remove(key);
                            key
                        }
                        Pair::Second((key, has)) => {
                            prop_assert!(!first.contains_key(key));
                            now.insert(*key, *has);
                            key
                        }
                    };
                    prop_assert!(last < Some(*key), "each key once, in order");
                    last = Some(*key);
                }
                prop_assert_eq!(&now, second);
            }
        }
    }
}
