//! Case `apply`: veth pairs with an address, a route and a rule each, from a
//! file: made, looked at when nothing changed, and changed in one line.
//! Beside it `link add`, `addr add` and their like by hand, and `ip -batch`;
//! and bridges with an address each beside ifupdown2 and systemd-networkd.
//! Each round in a namespace of its own. nmstate is in no package of
//! Debian 12.

use std::fs;
use std::path::{Path, PathBuf};

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::managers::{Ifupdown2, NETWORKD, UNSHARE, networkd};
use anyhow::{Context, Result};

use super::Setting;
use super::command::{Contender, run};
use crate::host::{self, Needed, say};

/// What is started beside what the tests start.
pub const NEEDED: &[Needed] = &[(NETWORKD, "systemd")];

/// The others have one round from here on, and none beyond: minutes each.
const SLOW_FROM: usize = 1_000;
const TOO_SLOW_FROM: usize = 10_000;
/// systemd-networkd gets no longer than this.
const PATIENCE_SECS: u64 = 600;

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let sizes: &[usize] = match setting.quick {
        true => &[250, 1_000],
        false => &[250, 1_000, 4_000, 10_000],
    };
    let directory = tempfile::tempdir()?;
    for size in sizes {
        say(format_args!("apply: {size} pairs"));
        let files = Files::write(directory.path(), *size)?;
        for round in 0..setting.rounds {
            pairs(setting, *size, &files, samples)?;
            by_hand(setting, *size, &files, samples)?;
            by_batch(*size, &files, samples)?;
            if round == 0 || *size < SLOW_FROM {
                bridges(setting, *size, &files, samples)?;
            }
            if *size < TOO_SLOW_FROM && (round == 0 || *size < SLOW_FROM) {
                by_ifupdown2(*size, &files, samples)?;
                by_networkd(*size, &files, samples)?;
            }
        }
    }
    Ok(())
}

/// The same in each one's own form.
struct Files {
    state: String,
    changed: String,
    routes: String,
    rules: String,
    batch: String,
    bridges: String,
    interfaces: PathBuf,
    /// What ifupdown2 remembers.
    memory: PathBuf,
    /// Those of systemd-networkd.
    networkd: PathBuf,
}

impl Files {
    fn write(directory: &Path, size: usize) -> Result<Self> {
        let numbers = || 1..=size;
        let host = |number: usize| {
            let at = number * 4 + 1;
            format!("10.{}.{}.{}", at >> 16 & 255, at >> 8 & 255, at & 255)
        };
        let gateway = |number: usize| {
            let at = number * 4 + 2;
            format!("10.{}.{}.{}", at >> 16 & 255, at >> 8 & 255, at & 255)
        };
        let net = |number: usize| format!("172.{}.{}.0/24", 16 + number / 256, number % 256);
        let route = |number: usize| {
            format!(
                "route add {} via {} dev testa{number}\n",
                net(number),
                gateway(number)
            )
        };
        let rule = |number: usize| {
            format!(
                "rule add from {} lookup 100 pref {}\n",
                net(number),
                1_000 + number
            )
        };
        let batch: String = numbers()
            .map(|number| {
                format!(
                    "link add testa{number} type veth peer name testb{number}\n\
                     link set testa{number} up\nlink set testb{number} up\n\
                     addr add {}/30 brd + dev testa{number}\n",
                    host(number)
                )
            })
            .collect();
        let routes: String = numbers().map(route).collect();
        let rules: String = numbers().map(rule).collect();
        let of_bridges = |of: &dyn Fn(usize) -> String| numbers().map(of).collect::<String>();
        let interfaces = of_bridges(&|number| {
            format!(
                "auto bra{number}\niface bra{number} inet static\n  address {}/30\n  \
                 bridge-ports none\n\n",
                host(number)
            )
        });
        let state = state(size);
        let put = |name: &str, text: &str| -> Result<String> {
            let path = directory.join(format!("{name}-{size}"));
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            Ok(path.display().to_string())
        };
        let interfaces = put("interfaces", &interfaces)?;
        Ok(Self {
            changed: put("changed", &(state.clone() + CHANGED))?,
            state: put("state", &state)?,
            batch: put("batch", &(batch + &routes + &rules))?,
            routes: put("routes", &routes)?,
            rules: put("rules", &rules)?,
            bridges: put(
                "bridges",
                &format!(
                    "[[link]]\nname = \"bra{{1..{size}}}\"\nkind = \"bridge\"\nup = true\n\
                 addresses = \"10.{{*4/65536}}.{{*4/256%256}}.{{*4%256+1}}/30\"\n"
                ),
            )?,
            interfaces: interfaces.into(),
            memory: directory.join(format!("memory-{size}")),
            networkd: of_networkd(directory, size, &host)?,
        })
    }
}

/// A directory with a bridge's two files for each.
fn of_networkd(directory: &Path, size: usize, host: &dyn Fn(usize) -> String) -> Result<PathBuf> {
    let directory = directory.join(format!("networkd-{size}"));
    fs::create_dir(&directory)?;
    for number in 1..=size {
        let put = |end: &str, text: String| {
            let path = directory.join(format!("bra{number}.{end}"));
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        put(
            "netdev",
            format!("[NetDev]\nName=bra{number}\nKind=bridge\n"),
        )?;
        put(
            "network",
            format!(
                "[Match]\nName=bra{number}\n[Network]\nConfigureWithoutCarrier=yes\n\
                 IPv6AcceptRA=no\nAddress={}/30\n",
                host(number)
            ),
        )?;
    }
    Ok(directory)
}

/// One line of a file that is changed.
const CHANGED: &str = "\n[[link]]\nname = \"testa7\"\nmtu = 1400\n";

fn state(size: usize) -> String {
    format!(
        "[[link]]\nname = \"testa{{1..{size}}}\"\nkind = \"veth\"\npeer = \"testb{{}}\"\nup = true\n\
         addresses = \"10.{{*4/65536}}.{{*4/256%256}}.{{*4%256+1}}/30\"\n\n\
         [[route]]\ndst = \"172.{{1..{size}/256+16}}.{{%256}}.0/24\"\n\
         gateway = \"10.{{*4+2/65536}}.{{*4+2/256%256}}.{{*4+2%256}}\"\ndev = \"testa{{}}\"\n\n\
         [[rule]]\npriority = \"{{1..{size}+1000}}\"\n\
         src = \"172.{{/256+16}}.{{%256}}.0/24\"\ntable = 100\n"
    )
}

fn pairs(setting: &Setting, size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    let of = |what, arguments: &str| {
        Contender::new("fingerpost apply", what, &setting.fingerpost, arguments)
    };
    add(
        &netns,
        "pairs",
        size,
        &of("make", &format!("apply {}", files.state)),
        samples,
    )?;
    add(
        &netns,
        "nothing changed",
        size,
        &of("same", &format!("apply {}", files.state)),
        samples,
    )?;
    add(
        &netns,
        "one line changed",
        size,
        &of("one", &format!("apply {}", files.changed)),
        samples,
    )
}

/// Our own commands, one table after the other.
fn by_hand(setting: &Setting, size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    let links = format!(
        "link add -n {size} --kind veth --name testa{{}} --peer testb{{}} --up \
         --addr 10.{{*4/65536}}.{{*4/256%256}}.{{*4%256+1}}/30"
    );
    let steps = [
        links,
        format!("route add --file {}", files.routes),
        format!("rule add --file {}", files.rules),
    ];
    let (mut wall, mut cpu) = (0.0, 0.0);
    for step in &steps {
        let contender = Contender::new("by hand", "pairs", &setting.fingerpost, step);
        let cost = netns.inside(|| run(&contender))??;
        wall += cost.wall.as_secs_f64() * 1_000.0;
        cpu += cost.cpu_ms;
    }
    samples.add(
        "fingerpost link|route|rule add",
        "pairs",
        size as u64,
        "wall_ms",
        wall,
    );
    samples.add(
        "fingerpost link|route|rule add",
        "pairs",
        size as u64,
        "cpu_ms",
        cpu,
    );
    Ok(())
}

fn by_batch(size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    let contender = Contender::new("ip -batch", "", "ip", &format!("-batch {}", files.batch));
    add(&netns, "pairs", size, &contender, samples)
}

/// Bridges with an address each.
fn bridges(setting: &Setting, size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    let arguments = format!("apply {}", files.bridges);
    let ours = Contender::new("fingerpost apply", "", &setting.fingerpost, &arguments);
    add(&netns, "bridges", size, &ours, samples)?;
    add(&netns, "bridges, nothing changed", size, &ours, samples)
}

fn by_ifupdown2(size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    let packages = host::target()?.join("packages");
    fs::create_dir_all(&packages)?;
    let ifupdown2 = Ifupdown2::fetched(&packages, &files.memory)?;
    for (what, program) in [
        ("bridges", "ifup"),
        ("bridges, nothing changed", "ifreload"),
    ] {
        let mut contender = Contender::new("ifupdown2", what, UNSHARE, "");
        contender.arguments = ifupdown2.arguments(&files.interfaces, program, &["-a"]);
        if let Err(error) = add(&netns, what, size, &contender, samples) {
            // The others still have something to show.
            say(format_args!("left out: {error:#}"));
            return Ok(());
        }
    }
    Ok(())
}

/// Until it says of all links that they are configured; its second start
/// finds them as they are to be.
fn by_networkd(size: usize, files: &Files, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    for what in ["bridges", "bridges, nothing changed"] {
        let mut contender = Contender::new("systemd-networkd", what, UNSHARE, "");
        contender.arguments = networkd(&files.networkd, size, PATIENCE_SECS);
        if let Err(error) = add(&netns, what, size, &contender, samples) {
            say(format_args!("left out: {error:#}"));
            return Ok(());
        }
    }
    Ok(())
}

fn add(
    netns: &Netns,
    what: &str,
    size: usize,
    contender: &Contender,
    samples: &mut Samples,
) -> Result<()> {
    let cost = netns.inside(|| run(contender))??;
    let wall = cost.wall.as_secs_f64() * 1_000.0;
    samples.add(&contender.who, what, size as u64, "wall_ms", wall);
    samples.add(&contender.who, what, size as u64, "cpu_ms", cost.cpu_ms);
    Ok(())
}
