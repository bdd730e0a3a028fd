//! All or nothing, and until it is confirmed: whoever is killed, whenever.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Both states. The links' addresses are said, so that they can be compared.
const OLD: &str = r#"
[[link]]
name = "v{1..30}"
kind = "veth"
peer = "w{}"
up = true
address = "02:00:00:00:00:{}"
peer_address = "02:00:00:00:01:{}"
addresses = "10.0.{}.1/24"

[[route]]
dst = "10.9.{1..30}.0/24"
gateway = "10.0.{}.2"
metric = 5

[[rule]]
priority = "{1..30+500}"
src = "10.0.{}.0/24"
table = 100
"#;

const NEW: &str = r#"
[[link]]
name = "v{1..60}"
kind = "veth"
peer = "w{}"
up = true
mtu = 1400
address = "02:00:00:00:00:{}"
peer_address = "02:00:00:00:01:{}"
altnames = "new-{}"
addresses = ["10.0.{}.1/24", "10.1.{}.1/24"]
sysctl.ipv4.rp_filter = 2

[[route]]
dst = "10.9.{1..60}.0/24"
gateway = "10.1.{}.2"
metric = 5

[[rule]]
priority = "{1..60+500}"
src = "10.0.{}.0/24"
table = 101
"#;

/// So many moments; more where the environment says so (`FP_MOMENTS`).
fn moments() -> u32 {
    let said = std::env::var("FP_MOMENTS").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(12)
}

fn state(netns: &Netns) -> String {
    says(netns, &["export"])
}

struct Two {
    netns: Netns,
    files: Files,
    new: PathBuf,
    old_state: String,
    new_state: String,
    /// How long it takes from one to the other.
    took: Duration,
}

fn two(tag: &str) -> Option<Two> {
    let netns = at_rest(tag)?;
    let files = Files::new();
    let old = files.write("old.toml", OLD);
    let new = files.write("new.toml", NEW);
    let reference = at_rest(&format!("{tag}r"))?;
    said(files.apply(&reference, &old, &[]));
    let began = Instant::now();
    said(files.apply(&reference, &new, &["--prune", "--atomic"]));
    let took = began.elapsed();
    said(files.apply(&netns, &old, &[]));
    Some(Two {
        old_state: state(&netns),
        new_state: state(&reference),
        netns,
        files,
        new,
        took,
    })
}

impl Two {
    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.netns.command(program());
        command
            .arg("apply")
            .arg(&self.new)
            .arg("--prune")
            .args(more);
        command
            .arg("--journal")
            .arg(self.files.path().join("journal"));
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        command
    }

    /// Waits until no keeper is at work any more, and gives the state.
    fn settled(&self) -> String {
        wait_until(PATIENCE, "the keeper's end", || {
            let recovered = self
                .netns
                .command(program())
                .args(["apply", "--recover", "--journal"])
                .arg(self.files.path().join("journal"))
                .output()
                .ok()?;
            recovered.status.success().then_some(())
        })
        .unwrap();
        state(&self.netns)
    }

    /// The keepers of its journals.
    fn keepers(&self) -> Vec<Pid> {
        let journal = self.files.path().join("journal").display().to_string();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_keeper = |number: &i32| {
            let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|octet| *octet == 0).collect();
            words.contains(&journal.as_bytes()) && words.contains(&b"--keep".as_slice())
        };
        numbers
            .filter(is_keeper)
            .filter_map(Pid::from_raw)
            .collect()
    }

    fn back(&self) {
        let old = self.files.path().join("old.toml");
        said(self.files.apply(&self.netns, &old, &["--prune"]));
    }
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_state() {
    let Some(two) = two("satom") else { return };
    let mut seen = [0, 0];
    for moment in 0..moments() {
        let mut applier = two.command(&["--atomic"]).spawn().unwrap();
        // Spread over the time that it takes, and a little beyond.
        std::thread::sleep(two.took * (moment + 1) * 5 / (moments() * 4));
        let _ = applier.kill();
        applier.wait().unwrap();
        let now = two.settled();
        let is_old = now == two.old_state;
        assert!(is_old || now == two.new_state, "moment {moment}: {now}");
        seen[usize::from(is_old)] += 1;
        if !is_old {
            return again(&two, moment + 1, seen);
        }
    }
    assert!(seen[1] > 0);
}

/// It was done before the kill came: from the old state on.
fn again(two: &Two, from: u32, mut seen: [u32; 2]) {
    for moment in from..moments() {
        back_to_old(two);
        let mut applier = two.command(&["--atomic"]).spawn().unwrap();
        std::thread::sleep(two.took * (moment * 7 % moments()) / moments());
        let _ = applier.kill();
        applier.wait().unwrap();
        let now = two.settled();
        let is_old = now == two.old_state;
        assert!(is_old || now == two.new_state, "moment {moment}: {now}");
        seen[usize::from(is_old)] += 1;
    }
    assert!(seen[0] > 0, "{seen:?}");
}

/// The old state once more, made anew.
fn back_to_old(two: &Two) {
    let none = two.files.write("none.toml", "");
    said(two.files.apply(&two.netns, &none, &["--prune"]));
    two.back();
    assert_eq!(state(&two.netns), two.old_state);
}

#[test]
fn what_is_not_confirmed_is_taken_back() {
    let Some(two) = two("sconf") else { return };
    // Nobody says anything.
    let applied = two
        .files
        .apply(&two.netns, &two.new, &["--prune", "--confirm", "8s"]);
    said(applied);
    assert_eq!(state(&two.netns), two.new_state);
    // Another is refused meanwhile.
    let other = two.files.apply(&two.netns, &two.new, &[]);
    let why = String::from_utf8(other.stderr).unwrap();
    assert!(
        !other.status.success() && why.contains("--confirmed"),
        "{why}"
    );
    assert_eq!(two.settled(), two.old_state);

    // It is confirmed: it stays.
    said(
        two.files
            .apply(&two.netns, &two.new, &["--prune", "--confirm", "60s"]),
    );
    let mut confirm = two.netns.command(program());
    confirm.args(["apply", "--confirmed", "--journal"]);
    confirm.arg(two.files.path().join("journal"));
    said(confirm.output().unwrap());
    assert_eq!(two.settled(), two.new_state);
    // A second time there is nothing to confirm.
    let mut confirm = two.netns.command(program());
    confirm.args(["apply", "--confirmed", "--journal"]);
    confirm.arg(two.files.path().join("journal"));
    assert!(!confirm.output().unwrap().status.success());
}

/// Kills an applier, and who else is told, at each of some moments; each
/// time it is as it was, or, where that may be, as it was to become.
fn killed(two: &Two, more: &[&str], how: &dyn Fn(&std::process::Child), may_be_new: bool) {
    for moment in 0..moments() {
        let mut command = two.command(more);
        command.process_group(0);
        let mut applier = command.spawn().unwrap();
        // Spread over the time that it takes, and a little beyond; in no
        // order, so that a trend of the machine's does not matter.
        let part = moment * 37 % moments();
        std::thread::sleep(two.took * part * 5 / (moments() * 4));
        how(&applier);
        applier.wait().unwrap();
        let now = two.settled();
        if now != two.old_state {
            assert!(
                may_be_new && now == two.new_state,
                "{more:?}, moment {part} of {}: {now}",
                moments()
            );
            back_to_old(two);
        }
    }
}

/// SIGKILL to the applier's process group.
fn group(applier: &std::process::Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(applier), signal);
}

#[test]
fn what_waits_to_be_confirmed_is_taken_back_whenever_its_session_dies() {
    let Some(two) = two("ssess") else { return };
    let how = |applier: &std::process::Child| {
        group(applier, Signal::HUP);
        group(applier, Signal::KILL);
    };
    killed(&two, &["--confirm", "300ms"], &how, false);
}

#[test]
fn a_kill_of_the_keeper_too_is_mended_by_the_next_apply() {
    let Some(two) = two("sboth") else { return };
    let how = |applier: &std::process::Child| {
        // The keeper first: the applier would go on without it.
        for keeper in two.keepers() {
            let _ = kill_process(keeper, Signal::KILL);
        }
        group(applier, Signal::KILL);
        for keeper in two.keepers() {
            let _ = kill_process(keeper, Signal::KILL);
        }
    };
    killed(&two, &["--confirm", "60s"], &how, false);
    killed(&two, &["--atomic"], &how, true);
}

#[test]
fn one_failure_takes_all_back() {
    let Some(two) = two("sfail") else { return };
    let bad = format!("{NEW}\n[[route]]\ndst = \"10.77.0.0/16\"\ngateway = \"203.0.113.9\"\n");
    let bad = two.files.write("bad.toml", &bad);
    let output = two.files.apply(&two.netns, &bad, &["--atomic"]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(
        why.contains("bad.toml:") && why.contains("10.77.0.0/16"),
        "{why}"
    );
    assert_eq!(two.settled(), two.old_state);
}

#[test]
fn a_link_that_goes_down_again_has_its_addresses_as_before() {
    let Some(netns) = at_rest("sdown") else {
        return;
    };
    let files = Files::new();
    netns
        .ip_batch(
            "link add d0 type bridge\naddr add 10.0.0.1/24 dev d0\n\
             addr add 2001:db8::1/64 dev d0\n",
        )
        .unwrap();
    let before = state(&netns);
    assert!(before.contains("2001:db8::1/64"), "{before}");
    let bad = files.write(
        "bad.toml",
        "[[link]]\nname = \"d0\"\nup = true\nmtu = 1400\n\
         [[route]]\ndst = \"10.77.0.0/16\"\ngateway = \"203.0.113.9\"\n",
    );
    let output = files.apply(&netns, &bad, &["--atomic"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(state(&netns), before);
}
