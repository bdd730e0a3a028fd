use proptest::prelude::*;

use super::*;

fn family(subtree: &str, mask: &[u8], included: bool) -> Family {
    Family {
        subtree: subtree.parse().expect(subtree),
        mask: mask.to_vec(),
        included,
    }
}

#[test]
fn the_longest_decides() {
    let view = View::new(&[
        family("1.3", &[], true),
        family("1.3.6", &[], false),
        family("1.3.6.1.2", &[], true),
    ]);
    for (name, seen) in [
        (&[1, 3][..], true),
        (&[1], false),
        (&[1, 3, 6], false),
        (&[1, 3, 6, 1, 2, 9], true),
        (&[1, 3, 7], true),
        (&[2], false),
    ] {
        assert_eq!(view.contains(name), seen, "{name:?}");
    }
    assert_eq!(view.next(&[1, 3, 6]).as_deref(), Some(&[1, 3, 6, 1, 2][..]));
    assert_eq!(view.next(&[1, 3, 6, 1, 3]).as_deref(), Some(&[1, 3, 7][..]));
    assert_eq!(view.next(&[0]).as_deref(), Some(&[1, 3][..]));
    assert_eq!(view.next(&[2]), None);
    assert!(!View::default().contains(&[1]));
    assert_eq!(View::default().next(&[1]), None);
    assert!(View::all().contains(&[]));
}

#[test]
fn a_mask_leaves_one_row_of_a_table() {
    // ifEntry.*.5: all columns of one interface (RFC 3415 §5).
    let view = View::new(&[family("1.3.6.1.2.1.2.2.1.0.5", &[0xff, 0xa0], true)]);
    let column = [1, 3, 6, 1, 2, 1, 2, 2, 1];
    let name = |tail: &[u32]| [&column[..], tail].concat();
    assert!(view.contains(&name(&[7, 5])));
    assert!(!view.contains(&name(&[7, 6])));
    let next = |tail: &[u32]| view.next(&name(tail)).map(|name| name[9..].to_vec());
    assert_eq!(next(&[7, 4, 9]), Some(vec![7, 5]));
    assert_eq!(next(&[7, 6]), Some(vec![8, 5]));
    assert_eq!(next(&[]), Some(vec![0, 5]));
    assert_eq!(next(&[u32::MAX, 6]), None);
}

fn names() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..3u32, 0..5)
}

fn all_names() -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    let mut last = all.clone();
    for _ in 0..5 {
        last = last
            .iter()
            .flat_map(|name| (0..3).map(move |sub_id| [&name[..], &[sub_id]].concat()))
            .collect();
        all.extend(last.iter().cloned());
    }
    all.sort();
    all
}

proptest! {
    /// `next` never jumps over a name that is to be seen, always ahead, and
    /// comes to an end.
    #[test]
    fn jumps_miss_nothing(
        families in prop::collection::vec((names(), any::<u8>(), any::<bool>()), 0..6),
    ) {
        let families: Vec<Family> = families
            .into_iter()
            .map(|(subtree, mask, included)| Family {
                subtree: Oid::new(&subtree).expect("short"),
                mask: vec![mask],
                included,
            })
            .collect();
        let view = View::new(&families);
        let all = all_names();
        for (at, name) in all.iter().enumerate().filter(|(_, name)| !view.contains(name)) {
            let next = view.next(name);
            prop_assert!(next.as_deref().is_none_or(|next| next > &name[..]));
            let first = all[at..].iter().find(|name| view.contains(name));
            if let Some(first) = first {
                prop_assert!(next.is_some_and(|next| next[..] <= first[..]));
            }
        }
    }
}
