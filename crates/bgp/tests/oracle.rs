//! Rows as `bgpkit-parser` tells them: of what collectors have written, of
//! what `gobgpd` and BIRD have written, and of dumps that were drawn.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::path::Path;

use fingerpost_bgp::Bad;
use lab::Random;
use support::{assert_same, assert_same_without_ids, files, ours, theirs, unpacked};

/// Every file in `tests/files`: how many paths, of how many peers, it has.
#[test]
fn every_path_of_real_files_is_what_another_reader_tells() {
    let mut read = 0;
    for path in files() {
        let bytes = unpacked(&path);
        let (rib, bad) = ours(&[&bytes]);
        // GoBGP gives the routes that it was told by hand a peer that its
        // table of peers does not have.
        let is_gobgp_table = path.ends_with("gobgp-3.10-table.gz");
        assert_eq!(
            bad,
            is_gobgp_table.then_some(Bad::NoPeer(2)),
            "{}",
            path.display()
        );
        assert_same(&rib, &theirs(&[&bytes]), &path.display().to_string());
        assert!(!rib.rows().is_empty());
        read += rib.rows().len();
    }
    assert!(read > 10_000, "{read} paths");
}

/// The whole files that those in `tests/files` begin like, where they are.
#[test]
#[ignore = "wants files too large to be kept: FINGERPOST_MRT_FILES=DIRECTORY cargo test -p fingerpost-bgp --test oracle -- --ignored"]
fn every_path_of_whole_files_is_what_another_reader_tells() {
    let directory = std::env::var_os("FINGERPOST_MRT_FILES").unwrap();
    let mut read = 0;
    for entry in std::fs::read_dir(Path::new(&directory)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|of| of == "gz" || of == "mrt") {
            let bytes = unpacked(&path);
            let (rib, bad) = ours(&[&bytes]);
            assert_eq!(bad, None, "{}", path.display());
            assert_same(&rib, &theirs(&[&bytes]), &path.display().to_string());
            read += rib.rows().len();
        }
    }
    assert!(read > 0);
}

/// Dumps and messages that were drawn: both families, path identifiers,
/// sets, confederations, empty paths, attributes of every kind.
#[test]
fn every_path_of_a_drawn_dump_is_what_another_reader_tells() {
    let (mut with_ids, mut read) = (0, 0);
    for seed in 0..rounds() {
        let (drawn, has_ids) = support::drawn::file(&mut Random::new(seed));
        let (rib, bad) = ours(&[&drawn]);
        assert_eq!(bad, None, "seed {seed}");
        let of = format!("seed {seed}");
        if has_ids {
            assert_same_without_ids(&rib, &drawn, &of);
            with_ids += 1;
        } else {
            assert_same(&rib, &theirs(&[&drawn]), &of);
        }
        read += rib.rows().len();
    }
    assert!(with_ids > rounds() / 8, "{with_ids}");
    assert!(read as u64 > rounds() * 10, "{read}");
}

fn rounds() -> u64 {
    let rounds = std::env::var("FINGERPOST_MRT_ROUNDS").ok();
    rounds.map_or(200, |rounds| rounds.parse().unwrap())
}
