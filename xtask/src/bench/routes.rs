//! Case `routes`: a BGP-like table of up to a million: mirroring it,
//! listing it, and asking the daemon for one prefix of it.

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::routes::{self, Family};
use anyhow::{Context, Result};

use super::Setting;
use super::command::{Contender, Daemon, ask_often, in_turn, output_bytes};
use crate::host::say;

const LIST: &str = "list as text";
const JSON: &str = "list as JSON";

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let mut sizes = vec![1_000, 10_000, 100_000];
    if !setting.quick {
        sizes.push(1_000_000);
    }
    for size in sizes {
        say(format_args!("routes: {size}, synthetic"));
        let netns = Netns::new("bench")?;
        routes::build(&netns, Family::V4, size)?;
        let rows = size as u64;
        let prefixes = routes::prefixes(Family::V4, size)?;
        let prefix = prefixes.last().context("no routes")?;
        let mut all = listings(setting, &netns)?;
        let one = format!("ip route show exact {prefix}");
        all.push(Contender::peer("one prefix", &one));
        if let Some(last) = all.last_mut() {
            last.who = "ip route show exact".into();
        }
        in_turn(setting, &netns, rows, &mut all, samples)?;
        mirror(setting, &netns, rows, samples)?;
        let daemon = Daemon::start(setting, &netns)?;
        if let Some(bytes) = daemon.resident_bytes() {
            let who = "fingerpost (daemon)";
            samples.add(who, "mirror", rows, "resident_bytes", bytes);
        }
        let mut all = [
            Contender::new("fingerpost (daemon)", LIST, &setting.fingerpost, "route -4"),
            Contender::new(
                "fingerpost (daemon)",
                JSON,
                &setting.fingerpost,
                "route -4 --json",
            ),
        ];
        in_turn(setting, &netns, rows, &mut all, samples)?;
        let address = prefix.addr();
        for (what, question) in [
            ("one prefix", format!("route {prefix}")),
            ("longest match", format!("route get {address}")),
        ] {
            ask_often(setting, &netns, &daemon, rows, what, &question, samples)?;
        }
    }
    Ok(())
}

fn listings(setting: &Setting, netns: &Netns) -> Result<Vec<Contender>> {
    let bare = setting.programs.join("bare-dump");
    let us = |what, arguments| Contender::new("fingerpost", what, &setting.fingerpost, arguments);
    let text = us(LIST, "route -4 --direct");
    let bytes = format!("route {}", output_bytes(netns, &text)?);
    Ok(vec![
        text,
        Contender::peer(LIST, "ip route"),
        Contender::new("bare strict dump", LIST, &bare, "route"),
        Contender::new("bare strict dump, and writing", LIST, &bare, &bytes),
        us(JSON, "route -4 --direct --json"),
        Contender::peer(JSON, "ip -j route"),
    ])
}

/// From the start to a complete mirror, beside the bare dumps in turn: of
/// all tables, which is what the mirror has to read, and of the main one
/// alone.
fn mirror(setting: &Setting, netns: &Netns, rows: u64, samples: &mut Samples) -> Result<()> {
    let what = "mirror";
    let program = setting.programs.join("mirror-once");
    let program = program.to_str().context("a path that is not UTF-8")?;
    let bare = setting.programs.join("bare-dump");
    for _ in 0..setting.rounds {
        let once = Setting {
            rounds: 1,
            ..setting.clone()
        };
        let mut floor = [
            Contender::new("bare strict dump of all tables", what, &bare, "route-all"),
            Contender::new("bare strict dump of main", what, &bare, "route"),
        ];
        in_turn(&once, netns, rows, &mut floor, samples)?;
        let line = netns.run(program, &[])?;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        let [ready_ms, routes, bytes, resident] = numbers[..] else {
            anyhow::bail!("mirror-once wrote {line:?}");
        };
        samples.add("fingerpost", what, rows, "wall_ms", ready_ms);
        samples.add("fingerpost", what, rows, "bytes_per_row", bytes / routes);
        samples.add(
            "fingerpost",
            what,
            rows,
            "resident_bytes_per_row",
            resident / routes,
        );
    }
    Ok(())
}
