//! What NTP does to the time of day is no restart of the agent, and changes
//! no rate: a daemon that is told another time of day by libfaketime.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lab::skip;

use crate::World;
use crate::common::Daemon;

const SYS_UP_TIME: &str = ".1.3.6.1.2.1.1.3.0";
const ENGINE_TIME: &str = ".1.3.6.1.6.3.10.2.1.3.0";

/// The library, wherever Debian's architecture has it.
fn faketime() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut found = places.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    let found = found.find(|path| path.is_file());
    if found.is_none() {
        skip::skip("faketime is not installed");
    }
    found
}

/// Hundredths of a second.
fn ticks(world: &World, name: &str) -> u64 {
    let got = world.walk(
        "snmpget",
        &format!("-v2c -c public -t 10 -Ot 127.0.0.1:1161 {name}"),
    );
    let number = got[0].1.rsplit(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{got:?}"))
}

/// Sets the time of day that the daemon is told, to so many seconds beside
/// the true one.
fn step(file: &Path, seconds: i64) {
    let new = file.with_extension("new");
    fs::write(&new, format!("{seconds:+}\n")).unwrap();
    fs::rename(&new, file).unwrap();
}

#[test]
fn a_step_of_the_time_of_day_is_no_restart_and_changes_no_rate() {
    let Some(library) = faketime() else { return };
    let Some(world) = World::new("clock", &["snmpget", "ip"]) else {
        return;
    };
    let file = world.path("time");
    step(&file, 0);
    let config = world.write("fingerpost.toml", "[snmp]\nlisten = ['127.0.0.1:1161']\n");
    let mut command = world.fingerpost(&["up", "--config", &config]);
    command
        .env("LD_PRELOAD", &library)
        .env("FAKETIME_TIMESTAMP_FILE", &file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let daemon = Daemon::spawn(command);
    world
        .netns
        .ip_batch("link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n")
        .unwrap();
    let index = world.netns.ip(&["-o", "link", "show", "e0"]).unwrap();
    let index = index.split(':').next().unwrap().trim().to_owned();
    let last_change = format!(".1.3.6.1.2.1.2.2.1.9.{index}");
    let mut before = ticks(&world, SYS_UP_TIME);
    let changed = lab::wait_until(crate::common::PATIENCE, "the link's change", || {
        Some(ticks(&world, &last_change)).filter(|&ticks| ticks > 0)
    })
    .unwrap();
    let begun = Instant::now();
    for seconds in [3_600, 0, -3_600, 0] {
        step(&file, seconds);
        told(&world, seconds);
        let now = ticks(&world, SYS_UP_TIME);
        let most = begun.elapsed().as_millis() as u64 / 10 + changed + 60 * 100;
        assert!(
            now >= before && now <= most,
            "{before}, then {now}, {most} at most"
        );
        let engine = ticks(&world, ENGINE_TIME) * 100;
        assert!(engine.abs_diff(now) < 60 * 100, "{engine} and {now}");
        assert_eq!(ticks(&world, &last_change), changed);
        before = now;
    }
    daemon.end();
}

/// Waits until the daemon was told the new time: its samples have it.
/// Without that the test would show nothing.
fn told(world: &World, seconds: i64) {
    lab::wait_until(
        crate::common::PATIENCE,
        "the daemon's other time of day",
        || {
            // Has counters sampled, if those that are there are old.
            ticks(world, ".1.3.6.1.2.1.2.2.1.10.1");
            let status = world.fingerpost(&["--json", "status"]).output().unwrap();
            let status: serde_json::Value = serde_json::from_slice(&status.stdout).ok()?;
            let status = status.get(0).unwrap_or(&status);
            let at = status["mirror"]["counters_at_millis"].as_i64()?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let beside = at / 1_000 - now.as_secs() as i64;
            (beside.abs_diff(seconds) < 300).then_some(())
        },
    )
    .unwrap();
}
