//! A daemon keeps a history while its namespace changes; `--at` later tells
//! the tables that the kernel had, and says what it does not know.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lab::{Netns, Random, wait_until};
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, fingerpost, furnished, program, said, says};
use crate::live::{change, changes, settled, status};
use crate::{LISTINGS, Tables, assert_same, question, rows};

/// A directory with a configuration, and where the history is kept.
struct Kept {
    directory: tempfile::TempDir,
}

impl Kept {
    fn new(more: &str) -> Self {
        let kept = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let history = kept.history();
        let text = format!("[history]\ndirectory = \"{}\"\n{more}", history.display());
        fs::write(kept.config(), text).unwrap();
        kept
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    fn history(&self) -> PathBuf {
        self.directory.path().join("history")
    }

    fn up(&self, netns: &Netns) -> Daemon {
        Daemon::up(netns, &["--config", self.config().to_str().unwrap()])
    }

    fn segments(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.history()).unwrap().flatten();
        let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
        found.retain(|path| path.to_str().unwrap().contains(".fprec"));
        found.sort();
        found
    }
}

fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros() as u64
}

fn at(micros: u64) -> String {
    format!("@{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Asks about a time.
fn asks(netns: &Netns, history: &Path, micros: u64, question: &[&str]) -> Output {
    let at = at(micros);
    let history = history.to_str().unwrap();
    let when = ["--at", &at, "--history", history];
    fingerpost(netns, &[question, &when].concat())
}

/// The tables at a time.
fn tables(netns: &Netns, history: &Path, micros: u64) -> Tables {
    let listed = LISTINGS.map(|(listing, _)| {
        let text = said(asks(netns, history, micros, &question(listing)));
        (listing.to_owned(), rows(&text))
    });
    listed.into()
}

/// It says that it does not know, and nothing else; gives its words.
fn is_unknown(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    assert!(output.stdout.is_empty(), "{complaint}");
    assert!(complaint.contains("does not know"), "{complaint}");
    complaint
}

/// A moment, and what the kernel said then.
struct Moment {
    micros: u64,
    tables: Tables,
    /// Where packets went, and which way.
    ways: Vec<(String, Option<Value>)>,
}

/// Which way the kernel sends a packet, as far as both tell it.
fn way(json: &str) -> Option<Value> {
    let told: Value = serde_json::from_str(json).ok()?;
    let told = told.get(0)?;
    let names = ["type", "dst", "gateway", "dev", "prefsrc", "table"];
    let some = names.map(|name| (name.to_owned(), told.get(name).cloned().unwrap_or_default()));
    Some(Value::Object(some.into_iter().collect()))
}

fn moment(netns: &Netns, random: &mut Random) -> Moment {
    let tables = settled(netns);
    let ways = (0..4).map(|_| {
        let (net, number) = (random.below(3), random.below(40));
        let to = match net {
            0 => format!("172.16.{number}.1"),
            1 => format!("172.17.{number}.9"),
            // Which of several ways a packet takes (10.2.0.0/16 has two) the
            // kernel alone knows.
            _ => format!("10.{}.{number}.3", 3 + random.below(7)),
        };
        let told = netns.run("ip", &["-j", "route", "get", &to]).ok();
        (to, told.and_then(|told| way(&told)))
    });
    Moment {
        ways: ways.collect(),
        micros: now_micros(),
        tables,
    }
}

fn assert_told(netns: &Netns, history: &Path, moment: &Moment) {
    assert_same(&tables(netns, history, moment.micros), &moment.tables);
    for (to, expected) in &moment.ways {
        let output = asks(
            netns,
            history,
            moment.micros,
            &["route", "get", to, "--json"],
        );
        let found = way(&String::from_utf8_lossy(&output.stdout));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(found, *expected, "{to}: {complaint}");
    }
}

#[test]
fn the_tables_of_any_moment_are_told_later() {
    let Some(netns) = furnished("past-churn") else {
        return;
    };
    let kept = Kept::new("limit_bytes = 4194304\ncounters_secs = 1\n");
    let before_all = now_micros();
    let up = kept.up(&netns);
    let mut random = Random::new(23);
    let mut moments = Vec::new();
    for _ in 0..6 {
        for _ in 0..6 {
            change(&netns, &changes(&mut random, 60));
        }
        moments.push(moment(&netns, &mut random));
    }
    for moment in &moments {
        assert_told(&netns, &kept.history(), moment);
    }
    let history = &status(&netns)["history"];
    assert_eq!(history["stopped"], Value::Null, "{history}");
    assert_eq!((&history["lost"], &history["gaps"]), (&0.into(), &0.into()));
    up.end();
    // Which of several ways a packet takes the kernel alone knows.
    let several = ["route", "get", "10.2.0.3"];
    let several = asks(&netns, &kept.history(), moments[2].micros, &several);
    let complaint = String::from_utf8_lossy(&several.stderr);
    assert_eq!(several.status.code(), Some(3), "{complaint}");
    assert!(complaint.contains("several ways"), "{complaint}");
    // Nobody has to run to tell it.
    assert_told(&netns, &kept.history(), &moments[2]);
    let ended = now_micros();
    thread::sleep(Duration::from_millis(20));
    change(&netns, "link add gap type bridge\n");
    let up = kept.up(&netns);
    let again = moment(&netns, &mut random);
    assert_told(&netns, &kept.history(), &again);
    assert_told(&netns, &kept.history(), &moments[5]);
    let in_gap = is_unknown(&asks(&netns, &kept.history(), ended, &["link", "--json"]));
    assert!(in_gap.contains("nothing was kept from"), "{in_gap}");
    let before = asks(&netns, &kept.history(), before_all, &["route"]);
    let before = is_unknown(&before);
    assert!(before.contains("begins at"), "{before}");
    up.end();
}

#[test]
fn an_answer_says_its_time_and_counters_are_of_then() {
    let Some(netns) = furnished("past-count") else {
        return;
    };
    let kept = Kept::new("counters_secs = 1\n");
    let up = kept.up(&netns);
    let sent = |moment: Option<u64>| {
        let wanted = ["link", "--json", "-s", "--dev", "lo"];
        let output = match moment {
            Some(micros) => asks(&netns, &kept.history(), micros, &wanted),
            None => fingerpost(&netns, &wanted),
        };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let told: Value = serde_json::from_str(&said(output)).unwrap();
        let packets = told[0]["stats64"]["tx"]["packets"].as_u64();
        (packets.unwrap(), complaint)
    };
    // What is counted is kept within a second, and told by its time.
    let wait = Duration::from_millis(2_500);
    thread::sleep(wait);
    let (before, first) = (sent(None).0, now_micros());
    netns
        .run("ping", &["-c", "3", "-i", "0.01", "127.0.0.1"])
        .unwrap();
    thread::sleep(wait);
    let (after, second) = (sent(None).0, now_micros());
    assert!(after >= before + 6, "{before} {after}");
    let (then, words) = sent(Some(first));
    assert_eq!(then, before, "{words}");
    assert!(
        words.contains("as of 20") && words.contains("; counters as of 20"),
        "{words}"
    );
    assert_eq!(sent(Some(second)).0, after);
    up.end();
}

/// What happened to routes of 10.77.0.0/16 and its like, as SQL tells it at a
/// time; and what is said beside it.
fn events(netns: &Netns, kept: &Kept, micros: u64, when: &str) -> (Vec<String>, String) {
    let statement = format!(
        "select event, change ->> 'dst', change ->> 'dev' from events where object = 'route' and \
         change ->> 'dst' like '10.77.%' {when} order by time_millis, event"
    );
    let output = asks(
        netns,
        &kept.history(),
        micros,
        &["sql", &statement, "--csv"],
    );
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().skip(1).map(str::to_owned).collect();
    (rows, complaint)
}

#[test]
fn events_of_sql_reach_back_into_the_history() {
    let Some(netns) = furnished("past-events") else {
        return;
    };
    // Segments of some seconds at most, so that there are several.
    let kept = Kept::new("");
    let up = kept.up(&netns);
    settled(&netns);
    let begun = now_micros();
    let happens = |batch: &str| {
        change(&netns, batch);
        settled(&netns);
        let at = now_micros();
        thread::sleep(Duration::from_millis(20));
        at
    };
    let added = happens("route add 10.77.1.0/24 dev br0\nroute add 10.77.2.0/24 dev br0\n");
    let deleted = happens("route del 10.77.1.0/24\n");
    up.end();
    // Nobody hears of this one.
    change(&netns, "route add 10.77.3.0/24 dev br0\n");
    let up = kept.up(&netns);
    settled(&netns);
    let again = happens("route del 10.77.2.0/24\n");
    let (rows, complaint) = events(&netns, &kept, again, "");
    let all = [
        "added,10.77.1.0/24,br0",
        "added,10.77.2.0/24,br0",
        "deleted,10.77.1.0/24,br0",
        "added,10.77.3.0/24,br0",
        "deleted,10.77.2.0/24,br0",
    ];
    assert_eq!(rows, all, "{complaint}");
    assert!(complaint.contains("once nothing was kept"), "{complaint}");
    // Between two times, of the first run alone.
    let when = |from: u64, until: u64| {
        format!(
            "and time_millis between {} and {}",
            from / 1_000,
            until / 1_000
        )
    };
    let (rows, complaint) = events(&netns, &kept, again, &when(added, deleted));
    assert_eq!(rows, all[2..3], "{complaint}");
    assert!(!complaint.contains("may lack"), "{complaint}");
    let (rows, _) = events(&netns, &kept, added, "");
    assert_eq!(rows, all[..2], "up to the time that is asked about");
    let (rows, complaint) = events(&netns, &kept, again, &when(1_000_000, added));
    assert_eq!(rows, all[..2]);
    assert!(complaint.contains("it begins at"), "{complaint}");
    // The bounds are handed on: what lies outside is not looked at.
    let bounded = format!(
        "select * from events where time_millis <= {}",
        begun / 1_000
    );
    let sql = ["sql", &*bounded, "--explain", "--ndjson"];
    let explained = said(asks(&netns, &kept.history(), again, &sql));
    assert!(explained.contains("time_millis <= ?"), "{explained}");
    assert!(explained.contains("the history"), "{explained}");
    let first: Value = serde_json::from_str(explained.lines().next().unwrap()).unwrap();
    assert_eq!(first["rows_visited"], 0, "{explained}");
    // Tables beside them are those of that time.
    let beside = "select count(*) from routes where prefix = '10.77.2.0/24'";
    let count = |micros| {
        said(asks(
            &netns,
            &kept.history(),
            micros,
            &["sql", beside, "--csv"],
        ))
    };
    assert_eq!(count(deleted).lines().nth(1), Some("1"));
    assert_eq!(count(again).lines().nth(1), Some("0"));
    let nat = ["sql", "select * from nat_flows"];
    let nat = asks(&netns, &kept.history(), again, &nat);
    let complaint = String::from_utf8_lossy(&nat.stderr);
    assert!(complaint.contains("no part of a recording"), "{complaint}");
    up.end();
}

#[test]
fn what_was_written_before_a_kill_counts_and_a_torn_tail_is_told() {
    let Some(netns) = furnished("past-kill") else {
        return;
    };
    let kept = Kept::new("");
    let up = kept.up(&netns);
    let mut random = Random::new(5);
    change(&netns, &changes(&mut random, 60));
    let first = moment(&netns, &mut random);
    // Until a record says that nothing was missing then.
    thread::sleep(Duration::from_millis(1_500));
    change(&netns, &changes(&mut random, 60));
    up.process.signal(rustix::process::Signal::KILL).unwrap();
    drop(up);
    assert_told(&netns, &kept.history(), &first);
    thread::sleep(Duration::from_millis(100));
    let after = now_micros();
    is_unknown(&asks(&netns, &kept.history(), after, &["link"]));
    let last = kept.segments().pop().unwrap();
    let mut torn = OpenOptions::new().append(true).open(&last).unwrap();
    torn.write_all(&[9, 0, 0, 0, 6, 0, 0, 0, 1]).unwrap();
    drop(torn);
    let told = is_unknown(&asks(&netns, &kept.history(), after, &["link"]));
    assert!(told.contains("cut off"), "{told}");
    assert_told(&netns, &kept.history(), &first);
    // The next start goes on beside it, and packs it as it is.
    let up = kept.up(&netns);
    wait_until(PATIENCE, "the segment to be packed", || {
        (!last.exists()).then_some(())
    })
    .unwrap();
    assert_told(&netns, &kept.history(), &first);
    let told = is_unknown(&asks(&netns, &kept.history(), after, &["link"]));
    assert!(told.contains("cut off"), "{told}");
    up.end();
}

#[test]
fn the_oldest_goes_at_the_bound_and_what_is_left_is_told() {
    let Some(netns) = furnished("past-bound") else {
        return;
    };
    let kept = Kept::new("limit_bytes = 4194304\n");
    let up = kept.up(&netns);
    let mut random = Random::new(2);
    let first = moment(&netns, &mut random);
    // What cannot be packed: the bound counts what is on the disk.
    let mut history = Value::Null;
    wait_until(5 * PATIENCE, "a segment to be removed", || {
        let many = (0..500).map(|_| {
            let alias: String = (0..240)
                .map(|_| char::from(b'!' + 1 + random.below(90) as u8))
                .map(|c| {
                    if matches!(c, '\'' | '"' | '\\' | '#') {
                        'x'
                    } else {
                        c
                    }
                })
                .collect();
            format!("link set br0 alias a{alias}\n")
        });
        netns.ip_batch(&many.collect::<String>()).unwrap();
        history = status(&netns)["history"].clone();
        let bytes = history["stored_bytes"].as_u64().unwrap();
        assert!(bytes <= 4_194_304, "{history}");
        (history["removed"].as_u64() >= Some(1)).then_some(())
    })
    .unwrap();
    assert_eq!(history["stopped"], Value::Null, "{history}");
    let told = is_unknown(&asks(&netns, &kept.history(), first.micros, &["link"]));
    assert!(told.contains("begins at"), "{told}");
    let last = moment(&netns, &mut random);
    assert_told(&netns, &kept.history(), &last);
    up.end();
    let bytes: u64 = kept
        .segments()
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(bytes <= 4_194_304, "{bytes}");
}

#[test]
fn a_full_disk_leaves_a_gap_that_is_told_and_ends_when_there_is_space() {
    let Some(netns) = furnished("past-full") else {
        return;
    };
    let kept = Kept::new("");
    let place = kept.directory.path().join("disk");
    fs::create_dir(&place).unwrap();
    let text = format!("[history]\ndirectory = \"{}/history\"\n", place.display());
    fs::write(kept.config(), text).unwrap();
    let mut command = netns.command("unshare");
    let script = format!(
        "mount -t tmpfs -o size=4m tmpfs {place} && exec \"$0\" up --config {config}",
        place = place.display(),
        config = kept.config().display()
    );
    command.args(["--mount", "sh", "-c", &script, program()]);
    let up = Daemon::spawn(command);
    let pid = up.process.id();
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", place.display()));
    let history = inside.join("history");
    let mut random = Random::new(3);
    let before = moment(&netns, &mut random);
    thread::sleep(Duration::from_millis(1_500));
    let filler = inside.join("filler");
    let mut full = fs::File::create(&filler).unwrap();
    while full.write_all(&[0; 4_096]).is_ok() {}
    let mut number = 0;
    let stopped = wait_until(PATIENCE, "the history to stand still", || {
        number = (number + 1) % 250;
        change(
            &netns,
            &format!("addr replace 10.9.3.{number}/32 dev br0\n"),
        );
        status(&netns)["history"]["stopped"]
            .as_str()
            .map(str::to_owned)
    });
    let why = stopped.unwrap();
    assert!(
        why.contains("o space left") || why.contains("storage"),
        "{why}"
    );
    up.logs("the history has a gap from here on, the daemon goes on");
    let shown = says(&netns, &["status"]);
    assert!(
        shown.contains("WARNING: the history has a gap now"),
        "{shown}"
    );
    // Live answers go on.
    settled(&netns);
    let in_gap = now_micros();
    assert_told(&netns, &history, &before);
    drop(full);
    fs::remove_file(&filler).unwrap();
    wait_until(PATIENCE, "the history to go on", || {
        status(&netns)["history"]["stopped"].is_null().then_some(())
    })
    .unwrap();
    change(&netns, &changes(&mut random, 60));
    let after = moment(&netns, &mut random);
    let told = status(&netns)["history"].clone();
    assert!(told["gaps"].as_u64() >= Some(1), "{told}");
    wait_until(PATIENCE, "the listing behind the gap", || {
        let output = asks(&netns, &history, now_micros(), &["link"]);
        output.status.success().then_some(())
    })
    .unwrap();
    let later = moment(&netns, &mut random);
    assert_told(&netns, &history, &later);
    assert_told(&netns, &history, &before);
    is_unknown(&asks(&netns, &history, in_gap, &["link"]));
    drop(after);
    up.end();
}

#[test]
fn words_that_make_no_sense_are_refused_and_others_may_not_read() {
    let Some(netns) = furnished("past-words") else {
        return;
    };
    let kept = Kept::new("");
    let history = kept.history();
    let history = history.to_str().unwrap();
    for (words, says) in [
        (&["link", "--at", "soon"][..], "is no time"),
        (&["link", "--at", "@99999999999"], "is still to come"),
        (&["link", "--at", "-1m", "--watch"], "--watch"),
        (&["link", "--at", "-1m", "--direct"], "--direct"),
        (&["link", "--at", "-1m", "--all-netns"], "--all-netns"),
        (&["link", "--history", history], "--at"),
        (&["status", "--at", "-1m"], "--at"),
    ] {
        let output = fingerpost(&netns, words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {complaint}");
        assert!(complaint.contains(says), "{words:?}: {complaint}");
    }
    let none = fingerpost(&netns, &["link", "--at", "-1m", "--history", history]);
    let complaint = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("[history]"), "{complaint}");
    let up = kept.up(&netns);
    use std::os::unix::fs::PermissionsExt;
    for path in kept.segments() {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mode = fs::metadata(kept.history()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // Another daemon does not write there, and says why.
    let other = Netns::new("past-other").unwrap();
    let config = kept.config();
    let refused = fingerpost(&other, &["up", "--config", config.to_str().unwrap()]);
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(
        complaint.contains("another daemon keeps its history there"),
        "{complaint}"
    );
    // A namespace that it does not have is named, with those that it has.
    let unknown = asks(&other, &kept.history(), now_micros(), &["link"]);
    let complaint = String::from_utf8_lossy(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(3), "{complaint}");
    assert!(complaint.contains("it has: own"), "{complaint}");
    let own = asks(
        &other,
        &kept.history(),
        now_micros(),
        &["link", "-n", "own"],
    );
    assert!(said(own).contains("br0"));
    up.end();
}
