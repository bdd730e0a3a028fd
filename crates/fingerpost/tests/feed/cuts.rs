//! Connections that are cut at random moments, zebra killed and started
//! anew: what zebra has does not go from the feed, and what it lost does
//! not stay.
//!
//! `FINGERPOST_FEED_CUTS` sets how many cuts, `FINGERPOST_FEED_SEED` which.

use std::collections::BTreeSet;
use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::{Netns, Random, wait_until};

use crate::common::PATIENCE;
use crate::frr::{Configuration, Frr};
use crate::{FPM, fed, ours, status, wired};

/// Routes that are there all the time.
const STEADY: u32 = 400;
/// A feed is behind zebra by what lies between two questions.
const BEHIND: Duration = Duration::from_secs(10);

fn number(variable: &str, usual: u64) -> u64 {
    let set = env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn steady(number: u32) -> String {
    format!(
        "ip route 20.{}.{}.0/24 10.1.0.{}",
        number >> 8,
        number & 255,
        2 + number % 9
    )
}

/// Compares as time goes on: nothing that zebra has all the time is missing.
fn watch(netns: &Netns, frr: &Frr<'_>, until: Instant) {
    let mut missed: Option<(Instant, BTreeSet<String>)> = None;
    while Instant::now() < until {
        let before = frr.routes().unwrap_or_default();
        let ours: BTreeSet<String> = ours(netns).into_iter().collect();
        let after: BTreeSet<String> = frr.routes().unwrap_or_default().into_iter().collect();
        let lasting = before.into_iter().filter(|row| after.contains(row));
        let missing: BTreeSet<String> = lasting.filter(|row| !ours.contains(row)).collect();
        missed = match missed {
            _ if missing.is_empty() => None,
            None => Some((Instant::now(), missing)),
            Some((since, old)) => {
                let still: BTreeSet<String> = old.intersection(&missing).cloned().collect();
                let too_long = since.elapsed() > BEHIND && !still.is_empty();
                assert!(
                    !too_long,
                    "missing since {since:?}: {still:?}\n{}",
                    status(netns)
                );
                match still.is_empty() {
                    true => Some((Instant::now(), missing)),
                    false => Some((since, still)),
                }
            }
        };
        sleep(Duration::from_millis(200));
    }
}

#[test]
fn nothing_valid_goes_and_nothing_gone_stays() {
    let Some(netns) = wired("feed-cuts") else {
        return;
    };
    let seed = number("FINGERPOST_FEED_SEED", 1);
    let mut random = Random::new(seed);
    let _daemon = fed(&netns);
    let routes: Vec<String> = (0..STEADY).map(steady).collect();
    let mut frr = Frr::start(
        &netns,
        Configuration {
            zebra: FPM,
            staticd: &(routes.join("\n") + "\n"),
            bgpd: None,
        },
    );
    let all = || (ours(&netns).len() == STEADY as usize).then_some(());
    wait_until(PATIENCE, "all routes", all).unwrap();
    for cut in 0..number("FINGERPOST_FEED_CUTS", 3) {
        let wait = Duration::from_millis(random.below(1_500) as u64);
        sleep(wait);
        let passing = format!("30.0.{}.0/24", cut % 200);
        frr.vtysh(&["conf t", &format!("ip route {passing} 10.1.0.2")]);
        match random.below(3) {
            // zebra closes the connection, and opens another.
            0 | 1 => {
                drop(frr.vtysh(&["clear fpm counters", "conf t", "no fpm address", FPM.trim()]))
            }
            _ => {
                frr.kill_zebra();
                frr.start_zebra();
            }
        }
        // What goes while nobody listens.
        frr.vtysh(&["conf t", &format!("no ip route {passing} 10.1.0.2")]);
        let back = || (status(&netns)["phase"] != "loading").then_some(());
        wait_until(PATIENCE, "a feed", back).unwrap();
        watch(&netns, &frr, Instant::now() + Duration::from_secs(6));
    }
    let mut seen = (None, Vec::new());
    let same = || {
        seen = (frr.routes(), ours(&netns));
        (seen.0.as_ref() == Some(&seen.1)).then_some(())
    };
    let waited = wait_until(PATIENCE, "equal routes", same);
    assert!(waited.is_ok(), "seed {seed}: {seen:?}\n{}", status(&netns));
    assert_eq!(seen.1.len(), STEADY as usize, "seed {seed}");
}
