//! Every attack that we know of, all at once, in short: others are
//! answered, nothing is lost, and memory stays within its bound. How long
//! answers take is measured by `cargo xtask siege`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::time::Duration;

use lab::siege::{self, Bounds, Force, Siege};
use lab::skip;

/// However slow the machine is.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn all_attacks_at_once_leave_the_others_their_answers() {
    if skip::unless(siege::may_become_others()).is_none() {
        return;
    }
    let program = lab::program::under_test(env!("CARGO_BIN_EXE_fingerpost"));
    let figures = Siege {
        program: program.into(),
        routes: 20_000,
        lasts: Duration::from_secs(5),
        memory: 256 << 20,
        kept: 16 << 20,
        only: Vec::new(),
        force: Force {
            burst: 600,
            slow: 600,
            quiet: 24,
            connects: 500,
            snmp: 1_000,
            forged: 1_000,
            changes: 1_000,
        },
        bounds: Bounds {
            status: LONG,
            health: LONG,
            snmp: LONG,
            end: LONG,
            back: LONG,
            ready: LONG,
            // Many are, and some are late: a machine with other work.
            unanswered: 500,
        },
        kills: 3,
        seed: 1,
    }
    .run()
    .unwrap();
    let broken = figures.iter().any(|figure| !figure.holds);
    assert!(!broken, "\n{}", siege::table(&figures));
}
