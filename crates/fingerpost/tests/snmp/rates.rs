//! A manager's polls beside the kernel's own counters, in short; in full
//! `cargo xtask rates`.

use std::time::Duration;

use lab::rates::{Rates, faketime};

use crate::World;
use crate::common::program;

#[test]
fn what_a_manager_polls_is_what_the_kernel_counted_since() {
    let programs = ["snmpget", "snmpbulkwalk", "ip"];
    let (Some(_), Some(library)) = (World::new("polled", &programs), faketime()) else {
        return lab::skip::skip("faketime or what asks is not there");
    };
    let found = Rates {
        program: program().into(),
        links: 30,
        every: Duration::from_millis(1_500),
        polls: 5,
        faketime: Some(library),
        disturbing_links: 200,
    }
    .run()
    .unwrap();
    // How large rates are depends on how busy this machine is.
    assert!(found.is_true() && found.rates >= 4 * 10, "{found:?}");
    assert!(found.oldest_millis <= 1_000, "{found:?}");
}
