//! Three routers in a row with FRR, forwarding at XDP on all their ports. The
//! long form is `cargo xtask lab router`.

use std::path::Path;
use std::time::Duration;

use lab::routers::Routers;
use lab::skip;

use crate::common::program;
use crate::place::bpf;

/// How long routing has to stand under load here.
const UNDER_LOAD: Duration = Duration::from_secs(8);

#[test]
fn three_routers_with_frr_are_three_routers() {
    let Some(()) = skip::unless(bpf()) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let built = Routers::build("xrow", Path::new(program()), directory.path());
    let routers = built.unwrap();
    routers.takes_long_packets().unwrap();
    routers.shows_each_hop().unwrap();
    routers.is_logged_in_to().unwrap();
    assert_eq!(routers.uses_what_is_learnt(2).unwrap().len(), 2);
    let stood = routers.stand_under_load(UNDER_LOAD).unwrap();
    assert!(stood.looks >= 1, "{stood:?}");
    // Lost is what a busy machine has no room for.
    let [sent, answered] = stood.pings;
    assert!(answered * 10 >= sent * 9, "{stood:?}");
    assert!(stood.forwarded >= answered, "{stood:?}");
    routers.finds_the_way_s_mtu().unwrap();
}
