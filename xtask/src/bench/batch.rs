//! Case `batch`: files of `ip -batch`, by iproute2 and by our program under
//! its name: 100,000 lines of routes and of neighbours, made and deleted.
//! Links are in the case `links`.

use std::fs;
use std::path::Path;

use ::lab::Netns;
use ::lab::bench::Samples;
use anyhow::{Context, Result};

use super::Setting;
use super::command::{Contender, in_turn};
use crate::host::say;

/// A link with an address for gateways.
const SITUATION: &str = "\
    link add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up\n\
    addr add 192.0.2.1/24 dev v0\n";

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let sizes: &[usize] = match setting.quick {
        true => &[1_000, 10_000],
        false => &[1_000, 10_000, 100_000],
    };
    let directory = tempfile::tempdir()?;
    for size in sizes {
        say(format_args!("batch: {size} lines"));
        let netns = Netns::new("bench")?;
        netns.ip_batch(SITUATION)?;
        let mut all = contenders(setting, *size, directory.path())?;
        in_turn(setting, &netns, *size as u64, &mut all, samples)?;
    }
    Ok(())
}

/// Each makes all and deletes all, so that the next begins alike.
fn contenders(setting: &Setting, size: usize, directory: &Path) -> Result<Vec<Contender>> {
    let mut all = Vec::new();
    for (what, line) in [
        ("add routes", route_added as fn(usize) -> String),
        ("replace routes", route_replaced),
        ("delete routes", route_deleted),
        ("add neighbours", neighbour_added),
        ("delete neighbours", neighbour_deleted),
    ] {
        let text: String = (0..size).map(|number| line(number) + "\n").collect();
        let file = directory.join(format!("{}-{size}", what.replace(' ', "-")));
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        all.push((what, file.display().to_string()));
    }
    let by = |who: &'static str, program: &Path, words: &str| {
        let lines = all.iter().map(|(what, file)| {
            Contender::new(who, what, program, &format!("{words}-batch {file}"))
        });
        lines.collect::<Vec<_>>()
    };
    let mut contenders = by("ip -batch", Path::new("ip"), "");
    contenders.extend(by("fingerpost ip -batch", &setting.fingerpost, "ip "));
    Ok(contenders)
}

fn host(number: usize) -> String {
    let octet = |shift: usize| number >> shift & 255;
    format!("10.{}.{}.{}", octet(16), octet(8), octet(0))
}

fn route_added(number: usize) -> String {
    format!("route add {}/32 via 192.0.2.9 dev v0", host(number))
}

fn route_replaced(number: usize) -> String {
    format!("route replace {}/32 via 192.0.2.8 dev v0", host(number))
}

fn route_deleted(number: usize) -> String {
    format!("route del {}/32", host(number))
}

fn neighbour_added(number: usize) -> String {
    let host = host(number);
    format!("neigh add {host} lladdr 02:00:00:00:00:05 nud permanent dev v0")
}

fn neighbour_deleted(number: usize) -> String {
    format!("neigh del {} dev v0", host(number))
}
