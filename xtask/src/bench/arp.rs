//! Case `arp`: listing neighbours, at 1,000 to 100,000 of them.

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::neighbours;
use anyhow::Result;

use super::Setting;
use super::busy::Busy;
use super::command::{Contender, Daemon, ask_often, in_turn, output_bytes, system_calls};
use crate::host::say;

const ARP: &str = "list as arp";
const TEXT: &str = "list as text";
const JSON: &str = "list as JSON";

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let mut sizes = vec![1_000, 10_000];
    if !setting.quick {
        sizes.push(100_000);
    }
    let largest = sizes.last().copied();
    for size in sizes {
        say(format_args!("arp: {size} neighbours"));
        let netns = Netns::new("bench")?;
        neighbours::build(&netns, size)?;
        let rows = size as u64;
        let mut all = direct(setting, &netns)?;
        in_turn(setting, &netns, rows, &mut all, samples)?;
        for contender in all.iter().filter(|one| one.what == TEXT) {
            let calls = system_calls(&netns, contender)?;
            samples.add(&contender.who, TEXT, rows, "system_calls", calls);
        }
        let daemon = Daemon::start(setting, &netns)?;
        let mut all = from_daemon(setting);
        in_turn(setting, &netns, rows, &mut all, samples)?;
        for (what, question) in [
            ("one MAC", "neigh --mac 02:00:00:00:00:07"),
            ("one address", "neigh --to 10.64.0.7"),
        ] {
            ask_often(setting, &netns, &daemon, rows, what, question, samples)?;
        }
        drop(daemon);
        if Some(size) == largest {
            busy(setting, &netns, rows, samples)?;
        }
    }
    Ok(())
}

/// Everybody asks the kernel.
fn direct(setting: &Setting, netns: &Netns) -> Result<Vec<Contender>> {
    let bare = setting.programs.join("bare-dump");
    let us = |what, arguments| Contender::new("fingerpost", what, &setting.fingerpost, arguments);
    let text = us(TEXT, "neigh --direct");
    let json = us(JSON, "neigh --direct --json");
    let text_bytes = format!("neigh {}", output_bytes(netns, &text)?);
    let json_bytes = format!("neigh {}", output_bytes(netns, &json)?);
    let written = "bare dump, and writing";
    Ok(vec![
        us(ARP, "arp -an"),
        Contender::peer(ARP, "arp -an"),
        Contender::peer(ARP, "arp -n"),
        Contender::peer(ARP, "cat /proc/net/arp"),
        text,
        Contender::peer(TEXT, "ip neigh"),
        Contender::new("bare dump", TEXT, &bare, "neigh"),
        Contender::new(written, TEXT, &bare, &text_bytes),
        json,
        Contender::peer(JSON, "ip -j neigh"),
        Contender::new(written, JSON, &bare, &json_bytes),
    ])
}

/// Our own, where a daemon runs.
fn from_daemon(setting: &Setting) -> Vec<Contender> {
    let ask = |what, arguments| {
        Contender::new("fingerpost (daemon)", what, &setting.fingerpost, arguments)
    };
    vec![
        ask(ARP, "arp -an"),
        ask(TEXT, "neigh"),
        ask(JSON, "neigh --json"),
    ]
}

/// The same with all cores at work, as in the report.
fn busy(setting: &Setting, netns: &Netns, rows: u64, samples: &mut Samples) -> Result<()> {
    say("arp: with all cores busy");
    let mut all = direct(setting, netns)?;
    for contender in &mut all {
        contender.what.push_str(", all cores busy");
    }
    let _busy = Busy::start();
    in_turn(setting, netns, rows, &mut all, samples)
}
