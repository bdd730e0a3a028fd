//! The lists against what reads the keys.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::config::{BadConfig, Config, parse};

fn parsed(text: &str) -> Result<Config, BadConfig> {
    parse(Path::new("f.toml"), text)
}

/// The head of a section in a file, and the keys that it cannot be without.
fn begun(section: &Section) -> String {
    let mut text = String::new();
    if section.head.starts_with("[feed.NAME.") {
        text += "[feed.frr]\nlisten = \"127.0.0.1:1\"\n";
    }
    text += &section.head.replace("NAME", "frr");
    text.push('\n');
    for setting in section.settings {
        if setting.without == Without::Nothing {
            text += &line(setting, setting.example);
        }
    }
    text
}

fn line(setting: &Setting, value: &str) -> String {
    format!("{} = {value}\n", setting.key.replace("NAME", "routes"))
}

/// What is taken in a section, as its refusal of another key says.
fn taken_in(section: &Section) -> BTreeSet<String> {
    let text = begun(section) + "no_such_key = 1\n";
    let refusal = parsed(&text).unwrap_err().to_string();
    let (_, known) = refusal.split_once("expected").unwrap_or_default();
    let known = known.split('`').skip(1).step_by(2).map(str::to_owned);
    known.collect()
}

#[test]
fn every_key_is_listed_and_every_listed_key_is_taken() {
    let all = sections();
    // Keys that are sections are listed as such.
    let is_section = |of: &Section, key: &str| {
        let inner = |one: &Section| one.head.trim_matches(['[', ']']).to_owned();
        let whole = match inner(of) {
            outer if outer.is_empty() => key.to_owned(),
            outer => format!("{outer}.{key}"),
        };
        let mut heads = all.iter().map(inner);
        heads.any(|head| head == whole || head == format!("{whole}.NAME"))
    };
    for section in all.iter().filter(|one| one.head != "[snmp.view]") {
        let listed = section.settings.iter().map(|one| one.key.to_owned());
        let listed: BTreeSet<String> = listed.collect();
        let taken = taken_in(section).into_iter();
        let taken: BTreeSet<String> = taken.filter(|key| !is_section(section, key)).collect();
        assert_eq!(listed, taken, "{}", section.head);
        assert!(!listed.is_empty(), "{}", section.head);
    }
}

#[test]
fn every_default_is_the_default() {
    for section in sections() {
        let without = parsed(&begun(&section)).unwrap();
        for setting in section.settings {
            if let Without::Value(value) = setting.without {
                let with = parsed(&(begun(&section) + &line(setting, value))).unwrap();
                assert_eq!(with, without, "{} {}", section.head, setting.key);
            }
        }
    }
    let limits = LIMITS.iter().map(|one| line(one, one.example));
    let said = parsed(&format!("[limits]\n{}", limits.collect::<String>())).unwrap();
    assert_eq!(said.limits.limits(), table::Limits::default());
    let usual = ::feed::bmp::StationLimits::default();
    let words = |key: &str| {
        let all = feed::SECTIONS[0].settings.iter();
        all.clone().find(|one| one.key == key).unwrap().without
    };
    assert_eq!((usual.routers, usual.tables), (64, 256));
    assert_eq!(words("routers"), Without::Words("64"));
    assert_eq!(words("tables"), Without::Words("256"));
}

#[test]
fn every_example_is_taken_and_all_of_them_together() {
    let mut text = String::new();
    for section in sections() {
        let head = section.head.replace("NAME", "frr");
        text += &format!("{head}\n");
        for setting in section.settings {
            text += &line(setting, setting.example);
        }
    }
    let config = parsed(&text).unwrap();
    assert_eq!(config.feed["frr"].limits.limits(), table::Limits::default());
    assert_eq!(config.snmp.communities[0].name, "noc");
    assert_eq!(config.http.hosts, ["router.example.net"]);
}

#[test]
fn the_packaged_file_is_the_example_and_changes_nothing() {
    let packaged = include_str!("../../../../../packaging/fingerpost.toml");
    assert_eq!(
        packaged,
        example(),
        "fingerpost check --example > packaging/fingerpost.toml"
    );
    assert_eq!(parsed(packaged).unwrap(), Config::default());
    assert!(packaged.lines().all(|line| line.chars().count() <= 110));
}

#[test]
fn what_is_said_in_the_example_is_taken_when_it_is_uncommented() {
    let is_said = |line: &&str| {
        let rest = line.trim_start_matches(['#', ' ']);
        line.starts_with('[')
            || rest.starts_with('[') && rest.ends_with(']')
            || rest
                .split_once(" = ")
                .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let text = example();
    let said: Vec<&str> = text
        .lines()
        .filter(is_said)
        .map(|line| line.trim_start_matches(['#', ' ']))
        .collect();
    // The example of a feed is FRR's: what is for BMP alone is refused.
    let said: Vec<&str> = said
        .into_iter()
        .filter(|line| !line.starts_with("routers") && !line.starts_with("tables"))
        .collect();
    parsed(&said.join("\n")).unwrap();
    let every = sections()
        .iter()
        .map(|one| one.settings.len())
        .sum::<usize>();
    assert!(said.len() > every, "{} of {every}", said.len());
}
