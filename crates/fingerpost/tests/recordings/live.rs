//! A daemon records while its namespace changes; a replay of the file has
//! the tables that the kernel had.
//!
//! With `FINGERPOST_KEEP_RECORDINGS` in the environment what these tests
//! record is kept for `kept`: `NAME.rec.gz` and the kernel's own tables.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use lab::{Netns, Random, wait_until};
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, fingerpost, furnished, said, says};
use crate::{Tables, assert_same, daemon, kernel, question, replay, replayed, rows};

const KEEP: &str = "FINGERPOST_KEEP_RECORDINGS";

/// Where recordings are kept.
pub fn kept_at() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/kept")
}

/// Keeps a recording and what it must give, if so wanted.
fn keep(name: &str, recording: &Path, expected: &Tables) {
    if std::env::var_os(KEEP).is_none() {
        return;
    }
    let at = kept_at();
    fs::create_dir_all(&at).unwrap();
    let file = File::create(at.join(format!("{name}.rec.gz"))).unwrap();
    let mut packed = GzEncoder::new(file, Compression::best());
    packed.write_all(&fs::read(recording).unwrap()).unwrap();
    packed.finish().unwrap();
    let file = File::create(at.join(format!("{name}.json.gz"))).unwrap();
    let mut packed = GzEncoder::new(file, Compression::best());
    packed
        .write_all(serde_json::to_string_pretty(expected).unwrap().as_bytes())
        .unwrap();
    packed.finish().unwrap();
}

/// The kernel's tables, once the daemon has the same.
pub fn settled(netns: &Netns) -> Tables {
    let mut last = None;
    let settled = wait_until(PATIENCE, "the daemon to have what the kernel has", || {
        let before = kernel(netns);
        let said = daemon(netns);
        let same = said == before && kernel(netns) == before;
        last = Some((said, before.clone()));
        same.then_some(before)
    });
    if settled.is_err() {
        let (said, expected) = last.take().unwrap();
        assert_same(&said, &expected);
    }
    settled.unwrap()
}

pub fn status(netns: &Netns) -> Value {
    serde_json::from_str(&says(netns, &["status", "--json"])).unwrap()
}

/// Random changes of everything, a batch of ip's lines. Those that make no
/// sense are refused by the kernel, and change nothing.
pub fn changes(random: &mut Random, lines: usize) -> String {
    let mut batch = String::new();
    for _ in 0..lines {
        let link = random.below(6);
        let number = random.below(40);
        let line = match random.below(20) {
            0 => format!("link add w{link} type veth peer name x{link}"),
            1 => format!("link del w{link}"),
            2 => format!("link set w{link} up"),
            3 => format!("link set x{link} up"),
            4 => format!("link set w{link} down"),
            5 => format!("link set w{link} master br0"),
            6 => format!("link set w{link} nomaster"),
            7 | 8 => format!("addr replace 10.{link}.{number}.1/24 dev w{link}"),
            9 => format!("addr del 10.{link}.{number}.1/24 dev w{link}"),
            10 | 11 => format!(
                "neigh replace 10.{link}.{number}.7 lladdr 02:00:00:00:{link:02x}:{number:02x} dev w{link} nud permanent"
            ),
            12 => format!("neigh del 10.{link}.{number}.7 dev w{link}"),
            13 | 14 => format!("route replace 172.16.{number}.0/24 dev w{link} metric {link}"),
            15 => format!("route append 172.17.{number}.0/24 dev w{link} metric 5"),
            16 => format!("route del 172.16.{number}.0/24 metric {link}"),
            17 => format!("nexthop replace id {} dev w{link}", 100 + number),
            18 => format!("route replace 172.18.{number}.0/24 nhid {}", 100 + number),
            _ => format!("nexthop del id {}", 100 + number),
        };
        batch += &line;
        batch += "\n";
    }
    batch
}

/// Feeds `ip -batch`, which goes on after what is refused.
pub fn change(netns: &Netns, batch: &str) {
    let mut command = netns.command("ip");
    command.args(["-force", "-batch", "-"]);
    let mut process = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(batch.as_bytes()).unwrap();
    drop(stdin);
    process.wait().unwrap();
}

#[test]
fn a_replay_has_the_tables_of_the_kernel() {
    let Some(netns) = furnished("rec-churn") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("churn");
    let up = Daemon::up(&netns, &["--record", file.to_str().unwrap()]);
    let mut random = Random::new(7);
    for _ in 0..10 {
        change(&netns, &changes(&mut random, 60));
    }
    let expected = settled(&netns);
    let recording = &status(&netns)["recording"];
    assert_eq!(recording["stopped"], Value::Null);
    assert_eq!(recording["lost"], 0);
    assert!(recording["records"].as_u64().unwrap() > 100, "{recording}");
    up.end();
    assert_same(&replayed(&[&file], &[]), &expected);
    keep("churn", &file, &expected);
}

#[test]
fn a_replay_follows_a_resync_after_lost_events() {
    let Some(netns) = furnished("rec-lossy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("overrun");
    let config = directory.path().join("config.toml");
    fs::write(&config, "[mirror]\nreceive_buffer_bytes = 4096\n").unwrap();
    let up = Daemon::up(
        &netns,
        &[
            "--config",
            config.to_str().unwrap(),
            "--record",
            file.to_str().unwrap(),
        ],
    );
    let deadline = Instant::now() + PATIENCE;
    let overruns = || status(&netns)["mirror"]["overruns"].as_u64().unwrap();
    // One request, many events: taking a link down takes its routes along.
    while overruns() == 0 {
        assert!(Instant::now() < deadline, "no event was lost");
        let mut batch = String::from("link add l0 type veth peer name l1\nlink set l0 up\n");
        for number in 0..200 {
            batch += &format!("addr add 10.77.{number}.1/24 dev l0\n");
        }
        batch += "link del l0\nlink add l0 type veth peer name l1\nlink set l0 up\n";
        change(&netns, &batch);
    }
    let expected = settled(&netns);
    up.end();
    assert_same(&replayed(&[&file], &[]), &expected);
    let text = said(replay(&[&file], &[], &["status", "--json"]));
    let told: Value = serde_json::from_str(&text).unwrap();
    assert!(told["mirror"]["overruns"].as_u64().unwrap() > 0, "{told}");
    assert!(told["mirror"]["resyncs"].as_u64().unwrap() > 0, "{told}");
    keep("overrun", &file, &expected);
}

#[test]
fn a_deleted_namespace_stays_in_its_recording() {
    let Some(host) = furnished("rec-host") else {
        return;
    };
    let Some(guest) = furnished("rec-guest") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("deleted");
    let arguments = ["--netns", guest.name(), "--netns", host.name()];
    let mut command = host.command(crate::program());
    command.arg("up").args(arguments).arg("--record").arg(&file);
    let up = Daemon::spawn(command);
    change(&guest, "addr add 10.55.0.1/24 dev br0\n");
    let (of_guest, name) = (settled(&guest), guest.name().to_owned());
    drop(guest);
    up.logs(&format!("namespace {name} was deleted"));
    change(&host, "addr add 10.66.0.1/24 dev br0\n");
    let of_host = settled(&host);
    up.end();
    assert_same(&replayed(&[&file], &["-n", &name]), &of_guest);
    assert_same(&replayed(&[&file], &["-n", host.name()]), &of_host);
    let text = said(replay(&[&file], &["-n", &name], &["status"]));
    assert!(text.contains("its namespace is gone"), "{text}");
    let asked = replay(&[&file], &[], &["link"]);
    let complaint = String::from_utf8_lossy(&asked.stderr);
    assert!(complaint.contains(&name), "{complaint}");
    // The kept one is asked for by its place: the names are another run's.
    let expected = of_guest
        .into_iter()
        .map(|(listing, rows)| (format!("guest {listing}"), rows));
    let all = expected.chain(
        of_host
            .into_iter()
            .map(|(listing, rows)| (format!("host {listing}"), rows)),
    );
    let names = [("guest", name.as_str()), ("host", host.name())];
    let names = names.map(|(whose, name)| (format!("name {whose}"), vec![Value::from(name)]));
    keep("deleted", &file, &all.chain(names).collect());
}

#[test]
fn parts_are_replayed_together_and_the_newest_alone() {
    let Some(netns) = furnished("rec-parts") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parts");
    let arguments = ["--record", file.to_str().unwrap(), "--record-limit", "1M"];
    let up = Daemon::up(&netns, &arguments);
    let deadline = Instant::now() + PATIENCE;
    let part = || status(&netns)["recording"]["part"].as_u64().unwrap();
    let mut round = 0;
    while part() < 2 {
        assert!(Instant::now() < deadline, "no part follows: {}", up.log());
        round += 1;
        let mut batch = String::new();
        for number in 0..500 {
            let octets = (round + number) % 250;
            batch += &format!(
                "neigh replace 10.9.0.{octets} lladdr 02:00:00:00:{:02x}:{octets:02x} dev br0 nud permanent\n",
                round % 256
            );
        }
        change(&netns, &batch);
    }
    let expected = settled(&netns);
    // The newest part is of use alone once the tables were listed in it.
    wait_until(PATIENCE, "a listing in the newest part", || {
        is_replayed(&file, &expected).then_some(())
    })
    .unwrap();
    assert_eq!(status(&netns)["recording"]["stopped"], Value::Null);
    up.end();
    let older = directory.path().join("parts.1");
    let both = fs::metadata(&file).unwrap().len() + fs::metadata(&older).unwrap().len();
    assert!(both <= 1 << 20, "{both}");
    assert_same(&replayed(&[&file], &[]), &expected);
    assert_same(&replayed(&[&file, &older], &[]), &expected);
}

#[test]
fn a_replay_counts_lifetimes_from_its_own_time() {
    let Some(netns) = furnished("rec-age") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("age");
    let up = Daemon::up(&netns, &["--record", file.to_str().unwrap()]);
    change(
        &netns,
        "addr add 10.44.0.1/24 dev br0 valid_lft 1000 preferred_lft 900\n",
    );
    let of_address = |json: &str| -> Option<u64> {
        let rows: Vec<Value> = serde_json::from_str(json).unwrap();
        let all = rows
            .iter()
            .flat_map(|row| row["addr_info"].as_array().unwrap());
        let mut found = all.filter(|info| info["local"] == "10.44.0.1");
        found.next()?["valid_life_time"].as_u64()
    };
    let question = ["addr", "--json"];
    wait_until(PATIENCE, "the address", || {
        of_address(&says(&netns, &question))
    })
    .unwrap();
    let now = || linux_now() as f64 / 1e6;
    // Later than the change, so that the time is nobody's record.
    let aged = wait_until(PATIENCE, "seconds to pass", || {
        let said = of_address(&says(&netns, &question))?;
        (said < 998).then(|| (now(), said))
    });
    let (before, said_live) = aged.unwrap();
    change(&netns, "link set veth1 down\n");
    wait_until(PATIENCE, "the last event", || {
        says(&netns, &["link", "veth1"])
            .contains("DOWN")
            .then_some(())
    })
    .unwrap();
    up.end();
    let until = format!("@{before:.6}");
    let then = said(replay(&[&file], &["--until", &until], &question));
    let said_then = of_address(&then).unwrap();
    assert!(
        said_live.abs_diff(said_then) <= 2,
        "{said_live} live, {said_then} replayed"
    );
}

/// Whether a recording, to which more is being written, gives these tables.
fn is_replayed(file: &Path, expected: &Tables) -> bool {
    expected.iter().all(|(listing, expected)| {
        let output = replay(&[file], &[], &question(listing));
        output.status.success() && rows(&String::from_utf8_lossy(&output.stdout)) == *expected
    })
}

fn linux_now() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_micros() as u64
}

#[test]
fn a_replay_answers_at_a_socket_also_in_real_time() {
    let Some(netns) = furnished("rec-serve") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("serve");
    let up = Daemon::up(&netns, &["--record", file.to_str().unwrap()]);
    std::thread::sleep(Duration::from_millis(1_500));
    change(&netns, "addr add 10.33.0.1/24 dev br0\n");
    let live = wait_until(PATIENCE, "the address", || {
        let said = says(&netns, &["addr", "--json"]);
        said.contains("10.33.0.1").then_some(said)
    });
    let live = live.unwrap();
    up.end();
    let socket = directory.path().join("socket");
    for real_time in [false, true] {
        let mut command = std::process::Command::new(crate::program());
        command
            .arg("replay")
            .arg(&file)
            .arg("--socket")
            .arg(&socket);
        if real_time {
            command.arg("--real-time");
        }
        let serving = Daemon::spawn(command);
        let asked = ["addr", "--json", "--socket", socket.to_str().unwrap()];
        wait_until(PATIENCE, "the replayed address", || {
            // Status 3: it is still loading, and says so.
            let answered = fingerpost(&netns, &asked);
            let is_whole = answered.status.code() != Some(3);
            (is_whole && crate::rows(&said(answered)) == crate::rows(&live)).then_some(())
        })
        .unwrap();
        serving.end();
        assert!(!socket.exists());
    }
}
