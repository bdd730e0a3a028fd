//! Walks while routes change, ten thousand a second and more.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lab::situation::routes::{self, Family};

use crate::{INET_ROUTES, World};

const ROUTES: usize = 20_000;
const CHANGES: usize = 2_000;

#[test]
fn every_route_that_stays_is_told_once_and_the_walk_goes_forward() {
    let Some(world) = World::new("churn", &["snmpbulkwalk"]) else {
        return;
    };
    routes::build(&world.netns, Family::V4, ROUTES).unwrap();
    let daemon = world.up("");
    let walk = || world.walk("snmpbulkwalk", &words());
    let before: BTreeSet<String> = walk().into_iter().map(|(name, _)| name).collect();
    assert!(before.len() > ROUTES);
    let stop = AtomicBool::new(false);
    let changed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| change(&world, &stop, &changed));
        for _ in 0..4 {
            let seen = walk();
            let names: Vec<Vec<u32>> = seen.iter().map(|(name, _)| numbers(name)).collect();
            assert!(names.is_sorted_by(|a, b| a < b), "it went backwards");
            let seen: BTreeSet<String> = seen.into_iter().map(|(name, _)| name).collect();
            let missing = before.difference(&seen).next();
            assert_eq!(missing, None, "a route that was there throughout");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(changed.load(Ordering::Relaxed) > 0);
    daemon.end();
}

/// The route's type: one name for each route.
fn words() -> String {
    format!("-v2c -c public -Cr50 127.0.0.1:1161 {INET_ROUTES}.1.8")
}

fn numbers(name: &str) -> Vec<u32> {
    let parts = name.trim_start_matches('.').split('.');
    parts.map(|part| part.parse().unwrap()).collect()
}

/// Adds routes between those that stay and deletes them, again and again.
fn change(world: &World, stop: &AtomicBool, changed: &AtomicU64) {
    let mut batch = String::new();
    for word in ["add", "del"] {
        for number in 0..CHANGES {
            let (high, low) = (number / 200 * 7 % 256, number % 200);
            writeln!(
                batch,
                "route {word} blackhole {}.{high}.{low}.77/32",
                20 + number % 150
            )
            .unwrap();
        }
    }
    while !stop.load(Ordering::Relaxed) {
        let mut process = world
            .netns
            .command("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(batch.as_bytes()).unwrap();
        drop(stdin);
        assert!(process.wait().unwrap().success());
        changed.fetch_add(2 * CHANGES as u64, Ordering::Relaxed);
    }
}
