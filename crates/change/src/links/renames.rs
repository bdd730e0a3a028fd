//! The order in which links are renamed, so that each name is free by the
//! time that another link takes it. Called by [`super::set`].

use std::collections::HashMap;

use linux::links::Change;

/// Puts changes in an order in which a link that has the name which another
/// is to take is renamed before. Where some take each other's names around a
/// circle there is none: the kernel refuses one of these. `holder` gives the
/// name that a link has now. O(n).
pub fn in_order(changes: Vec<Change>, holder: impl Fn(&Change) -> Box<str>) -> Vec<Change> {
    if changes.iter().all(|change| change.settings.name.is_none()) {
        return changes;
    }
    let held: HashMap<Box<str>, usize> = changes
        .iter()
        .enumerate()
        .filter(|(_, change)| change.settings.name.is_some())
        .map(|(place, change)| (holder(change), place))
        .collect();
    let waits_for = |place: usize| -> Option<usize> {
        let wanted = changes.get(place)?.settings.name.as_ref()?;
        held.get(wanted).copied().filter(|other| *other != place)
    };
    let mut is_placed = vec![false; changes.len()];
    let mut order = Vec::with_capacity(changes.len());
    for first in 0..changes.len() {
        let mut chain = Vec::new();
        let mut next = Some(first);
        while let Some(place) = next
            && let Some(seen) = is_placed.get_mut(place).filter(|seen| !**seen)
        {
            *seen = true;
            chain.push(place);
            next = waits_for(place);
        }
        order.extend(chain.into_iter().rev());
    }
    let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
    let taken = order.into_iter();
    taken
        .filter_map(|place| changes.get_mut(place).and_then(Option::take))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use netlink::encode::LinkSettings;

    use super::*;

    fn renamed(names: &[(&str, &str)]) -> Vec<Change> {
        let change = |(index, (name, new)): (usize, &(&str, &str))| Change {
            index: index as u32,
            name: (*name).into(),
            settings: LinkSettings {
                name: Some((*new).into()),
                ..LinkSettings::default()
            },
        };
        names.iter().enumerate().map(change).collect()
    }

    fn names(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| &*change.name).collect()
    }

    #[test]
    fn a_name_is_given_up_before_another_takes_it() {
        let up = [("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("x", "y")];
        let ordered = in_order(renamed(&up), |change| change.name.clone());
        assert_eq!(names(&ordered), ["s3", "s2", "s1", "x"]);
        // A circle has no order; nothing is lost of it.
        let circle = [("a", "b"), ("b", "a"), ("c", "a")];
        let ordered = in_order(renamed(&circle), |change| change.name.clone());
        assert_eq!(ordered.len(), 3);
    }

    /// Against the names themselves, listed in many orders: none is taken that
    /// somebody has.
    #[test]
    fn no_name_is_taken_twice() {
        const LINKS: usize = 41;
        for (step, by) in (1..LINKS).flat_map(|step| [1, 2, 5].map(|by| (step, by))) {
            let places = (0..LINKS).map(|n| n * step % LINKS);
            let all: Vec<(String, String)> = places
                .map(|n| (format!("s{n}"), format!("s{}", n + by)))
                .collect();
            let pairs: Vec<(&str, &str)> = all.iter().map(|(a, b)| (&**a, &**b)).collect();
            let ordered = in_order(renamed(&pairs), |change| change.name.clone());
            assert_eq!(ordered.len(), LINKS);
            let mut taken: HashSet<String> = all.iter().map(|(name, _)| name.clone()).collect();
            for change in ordered {
                let new = change.settings.name.clone().unwrap();
                assert!(taken.insert(new.to_string()), "{new} is taken");
                taken.remove(&*change.name);
            }
        }
    }
}
