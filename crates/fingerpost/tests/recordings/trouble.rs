//! What goes wrong: full disks, files cut off, files damaged, files that
//! are none.

use std::fs;
use std::path::Path;

use flate2::read::GzDecoder;
use lab::wait_until;
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, furnished, program, says};
use crate::live::kept_at;
use crate::replay;

/// A kept recording, unpacked.
fn recording() -> Vec<u8> {
    let packed = fs::File::open(kept_at().join("churn.rec.gz")).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(packed), &mut bytes).unwrap();
    bytes
}

/// What a replay of some bytes answers and complains of.
fn told(bytes: &[u8]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, bytes).unwrap();
    let output = replay(&[&file], &[], &["link"]);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn what_came_before_a_cut_or_a_damage_is_answered_from() {
    let whole = recording();
    let (code, _, complaint) = told(&whole);
    assert_eq!(code, Some(0), "{complaint}");
    let (code, answer, complaint) = told(&whole[..whole.len() - 5]);
    assert_eq!(code, Some(1));
    assert!(answer.contains("br0"), "{answer}");
    assert!(
        complaint.contains("ends in the middle of record"),
        "{complaint}"
    );
    let mut damaged = whole.clone();
    let at = whole.len() / 2;
    damaged[at] ^= 0x40;
    let (code, answer, complaint) = told(&damaged);
    assert_eq!(code, Some(1));
    assert!(answer.contains("br0"), "{answer}");
    assert!(complaint.contains("is damaged"), "{complaint}");
    assert!(complaint.contains("at byte"), "{complaint}");
    let (code, answer, complaint) = told(b"some text\n");
    assert_eq!((code, answer.as_str()), (Some(1), ""));
    assert!(complaint.contains("no recording"), "{complaint}");
}

#[test]
fn tables_that_miss_rows_end_an_answer_with_three() {
    let directory = tempfile::tempdir().unwrap();
    let (file, config) = (directory.path().join("file"), directory.path().join("toml"));
    fs::write(&file, recording()).unwrap();
    let config_path = config.to_str().unwrap().to_owned();
    let mut asked = Vec::new();
    for limit in [1, 1_000_000] {
        fs::write(&config, format!("[limits]\nroutes = {limit}\n")).unwrap();
        for question in [&["route", "--count"][..], &["status"]] {
            let output = replay(&[&file], &["--config", &config_path], question);
            asked.push((output.status.code(), output.stderr));
        }
    }
    let codes: Vec<_> = asked.iter().map(|(code, _)| code.unwrap()).collect();
    assert_eq!(codes, [3, 0, 0, 0], "a status says it itself");
    let said = String::from_utf8_lossy(&asked[0].1).into_owned();
    assert!(said.contains("routes miss rows"), "{said}");
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_daemon() {
    let Some(netns) = furnished("rec-full") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let mut command = netns.command("unshare");
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs {place} && exec \"$0\" up --record {place}/recording"
    );
    command.args(["--mount", "sh", "-c", &script, program()]);
    let daemon = Daemon::spawn(command);
    let status =
        || -> Value { serde_json::from_str(&says(&netns, &["status", "--json"])).unwrap() };
    let mut round = 0;
    let stopped = wait_until(PATIENCE, "the recording to stop", || {
        round = (round + 1) % 256;
        let changed = (0..=255).map(|number| {
            format!("neigh replace 10.9.1.{number} lladdr 02:00:00:00:00:{round:02x} dev br0 nud permanent\n")
        });
        netns.ip_batch(&changed.collect::<String>()).unwrap();
        let status = status();
        status["recording"]["stopped"].as_str().map(str::to_owned)
    });
    let why = stopped.unwrap();
    assert!(why.contains("No space left"), "{why}");
    daemon.logs("the recording stops, the daemon goes on");
    netns
        .ip(&[
            "neigh",
            "replace",
            "10.9.2.1",
            "lladdr",
            "02:00:00:00:00:01",
            "dev",
            "br0",
            "nud",
            "permanent",
        ])
        .unwrap();
    wait_until(PATIENCE, "the daemon to go on", || {
        says(&netns, &["neigh"]).contains("10.9.2.1").then_some(())
    })
    .unwrap();
    assert!(says(&netns, &["status"]).contains("WARNING: the recording stopped"));
    assert!(status()["recording"]["lost"].as_u64().unwrap() > 0);
    daemon.end();
}

#[test]
fn a_place_that_cannot_be_written_is_said_at_once() {
    let Some(netns) = furnished("rec-nowhere") else {
        return;
    };
    let nowhere = Path::new("/proc/no/such/place");
    let output = crate::fingerpost(&netns, &["up", "--record", nowhere.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("cannot record"), "{complaint}");
}

#[test]
fn a_command_line_that_makes_no_sense_ends_with_two() {
    let file = kept_at().join("churn.rec.gz");
    for question in [
        &["up"][..],
        &["link", "--all-netns"],
        &["arp", "-an"],
        &["neigh", "add", "10.0.0.1"],
    ] {
        let output = replay(&[&file], &[], question);
        assert_eq!(output.status.code(), Some(2), "{question:?}");
    }
    let output = replay(&[&file], &["--until", "soon"], &["link"]);
    assert_eq!(output.status.code(), Some(2));
}
