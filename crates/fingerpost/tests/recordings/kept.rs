//! Recordings of before, kept: each replay still gives the tables that the
//! kernel had. Needs no rights and no namespace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;

use crate::live::kept_at;
use crate::{Tables, assert_same, replayed};

fn kept(name: &str) -> (PathBuf, Tables) {
    let path = |end: &str| kept_at().join(format!("{name}.{end}.gz"));
    let mut text = String::new();
    let mut packed = GzDecoder::new(File::open(path("json")).unwrap());
    packed.read_to_string(&mut text).unwrap();
    (path("rec"), serde_json::from_str(&text).unwrap())
}

#[test]
fn churn() {
    let (file, expected) = kept("churn");
    assert_same(&replayed(&[&file], &[]), &expected);
}

#[test]
fn overrun() {
    let (file, expected) = kept("overrun");
    assert_same(&replayed(&[&file], &[]), &expected);
}

#[test]
fn deleted() {
    let (file, all) = kept("deleted");
    for whose in ["guest", "host"] {
        let name = all[&format!("name {whose}")][0].as_str().unwrap();
        assert_same(&replayed(&[&file], &["-n", name]), &of(&all, whose));
    }
}

fn of(all: &Tables, whose: &str) -> Tables {
    let mut found = BTreeMap::new();
    for (listing, rows) in all {
        if let Some(listing) = listing.strip_prefix(whose) {
            found.insert(listing.trim_start().to_owned(), rows.clone());
        }
    }
    found
}

#[test]
fn they_stay_small() {
    let files = std::fs::read_dir(kept_at()).unwrap();
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 200 << 10, "{bytes} bytes of kept recordings");
}
