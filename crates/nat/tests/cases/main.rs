//! What libalias's own test groups check, over this crate's interface: its
//! eighteen cases and the four of endpoint-independent UDP. `libalias` does
//! the same through C.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by it, in its helpers as well"
)]

mod endpoint;
mod hairpin;
mod incoming;
mod open;
mod outgoing;
mod special;
mod trial;
mod updates;
mod voice;

use lab::Random;
use trial::{MASQ, Trial};

#[test]
fn one_instance_is_itself_and_none_is_nothing() {
    let mut trial = Trial::new();
    trial.nat.set_addresses(&[MASQ]).unwrap();
    for _ in 0..29 {
        trial.nat.set_addresses(&[MASQ]).unwrap();
    }
    assert_eq!(trial.nat.config().addresses, [MASQ]);
    assert_eq!(trial.nat.statistics().flows, 0);
}

#[test]
fn three_hundred_instances_end_in_any_order() {
    let mut random = Random::new(300);
    let mut all: Vec<Trial> = (0..300).map(|_| Trial::new()).collect();
    for trial in &mut all {
        trial.out(trial::PRIVATE, (trial::EXT, 80), MASQ);
    }
    random.shuffle(&mut all);
    while let Some(mut trial) = all.pop() {
        trial.out(trial::CARRIER, (trial::EXT, 81), MASQ);
    }
}
