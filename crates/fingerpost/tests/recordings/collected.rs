//! A collector's file, packed as collectors pack it, asked by the program.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use bzip2::Compression;
use bzip2::write::BzEncoder;
use lab::mrt::{Attributes, peer_index, record, rib, update};
use serde_json::Value;

use crate::common::{program, said};

const PEERS: [([u8; 4], u32); 2] = [([192, 0, 2, 1], 3_333), ([192, 0, 2, 2], 1_299)];

/// What the peers say: a prefix, whose path, and the ASes behind the peer's.
const PATHS: [(&str, u16, &[u32]); 5] = [
    ("198.51.0.0/16", 0, &[64_500]),
    ("198.51.0.0/16", 1, &[64_500]),
    ("198.51.100.0/24", 0, &[64_501, 64_502]),
    ("198.51.100.0/24", 1, &[64_502]),
    ("198.51.100.128/25", 0, &[64_503]),
];

fn packed(path: &Path) {
    let peers = PEERS.map(|(address, asn)| (address.into(), asn));
    let mut file = record(1_000_000, 13, 1, &peer_index(&peers));
    for all in PATHS.chunk_by(|a, b| a.0 == b.0) {
        let attributes: Vec<Vec<u8>> = all
            .iter()
            .map(|(_, peer, behind)| {
                let (address, asn) = PEERS[usize::from(*peer)];
                let path = [&[asn][..], behind].concat();
                let attributes = Attributes::default().origin(0).as_path(&[(2, path)]);
                attributes.next_hop(address.into()).0
            })
            .collect();
        let entries: Vec<_> = all
            .iter()
            .zip(&attributes)
            .map(|((_, peer, _), attributes)| (*peer, None, &attributes[..]))
            .collect();
        let (subtype, body) = rib(1, all[0].0.parse().unwrap(), &entries);
        file.extend(record(1_000_000, 13, subtype, &body));
    }
    let mut to = BzEncoder::new(File::create(path).unwrap(), Compression::best());
    to.write_all(&file).unwrap();
    to.finish().unwrap();
}

fn replayed(path: &Path, question: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("replay").arg(path).arg("--").args(question);
    command.output().unwrap()
}

#[test]
fn route_get_answers_from_a_file_by_the_best_paths_and_by_a_peer_s() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rib.bz2");
    packed(&path);
    let get = |to: &str, source: &[&str]| -> Result<Value, String> {
        let question = [&["route", "get", to, "--json"][..], source].concat();
        let output = replayed(&path, &question);
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        Ok(answer[0].clone())
    };
    for (to, source, gateway, matched, path) in [
        // The shorter path is the best.
        ("198.51.100.9", &[][..], "192.0.2.2", None, "[1299,64502]"),
        ("198.51.100.200", &[], "192.0.2.1", None, "[3333,64503]"),
        // Of equal ones the lowest address.
        ("198.51.1.1", &[], "192.0.2.1", None, "[3333,64500]"),
        (
            "198.51.100.9",
            &["--source", "peer-192.0.2.1"],
            "192.0.2.1",
            Some("198.51.100.0/24"),
            "[3333,64501,64502]",
        ),
        (
            "198.51.100.200",
            &["--source", "peer-192.0.2.2"],
            "192.0.2.2",
            Some("198.51.100.0/24"),
            "[1299,64502]",
        ),
    ] {
        let answer = get(to, source).unwrap();
        assert_eq!(answer["gateway"], gateway, "{to}, {source:?}: {answer}");
        assert_eq!(answer["match"].as_str(), matched, "{answer}");
        assert_eq!(answer["as_path"].to_string(), path, "{answer}");
        assert!(answer["dev"].is_null(), "{answer}");
    }
    let nowhere = get("203.0.113.1", &["--source", "peer-192.0.2.1"]).unwrap_err();
    assert!(
        nowhere.contains("peer-192.0.2.1 has no way to 203.0.113.1"),
        "{nowhere}"
    );
    let stranger = get("203.0.113.1", &["--source", "peer-192.0.2.9"]).unwrap_err();
    assert!(
        stranger.contains("there are: kernel, peer-192.0.2.1, peer-192.0.2.2"),
        "{stranger}"
    );
    let text = said(replayed(&path, &["route", "get", "198.51.100.9"]));
    assert_eq!(
        text,
        "198.51.100.9 via 192.0.2.2 as-path 1299 64502 origin igp \n    cache \n"
    );
}

#[test]
fn many_files_are_not_open_at_once() {
    const FILES: u32 = 200;
    let directory = tempfile::tempdir().unwrap();
    let (address, asn) = PEERS[0];
    let attributes = Attributes::default().origin(0).as_path(&[(2, vec![asn])]);
    let attributes = attributes.next_hop(address.into());
    let mut command = Command::new("prlimit");
    command.arg("--nofile=100:100").arg(program()).arg("replay");
    for at in 0..FILES {
        let prefix = format!("10.{at}.0.0/16").parse().unwrap();
        let body = update((address.into(), asn), &[], &attributes, &[prefix]);
        let path = directory.path().join(format!("updates.{at}"));
        std::fs::write(&path, record(1_000 + at, 16, 4, &body)).unwrap();
        command.arg(path);
    }
    command.args(["--", "route", "show", "--count"]);
    assert_eq!(said(command.output().unwrap()).trim(), FILES.to_string());
}
