//! Case `links`: interfaces by the thousand made and deleted, each round in
//! a namespace of its own, beside scripts of `ip`, `ip -batch`, pyroute2
//! and a bare netlink program; then a million routes from a file.

use std::fs;
use std::path::{Path, PathBuf};

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::routes::{self, Family};
use anyhow::{Context, Result};

use super::Setting;
use super::command::{Contender, Cost, run};
use crate::host::{Needed, say};

/// What is started beside what the tests start.
pub const NEEDED: &[Needed] = &[(
    "/usr/share/doc/python3-pyroute2/copyright",
    "python3-pyroute2",
)];

/// The group that peers which can do so delete by.
const GROUP: u32 = 77_777;
/// From this many links on, the slow have one round.
const SLOW_FROM: usize = 1_000;
/// Above this, deleting one by one takes minutes: 17 ms each.
const MOST_ONE_BY_ONE: usize = 1_000;

/// How the links of a kind are made and deleted by one who does both.
struct Maker {
    who: &'static str,
    /// Starts a process, or waits for grace periods, for each link.
    is_slow: bool,
    create: Option<Contender>,
    delete: Option<Contender>,
}

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let mut sizes = vec![100, 1_000];
    if !setting.quick {
        sizes.extend([5_000, 10_000]);
    }
    for kind in ["veth", "macvlan", "vxlan"] {
        for &size in &sizes {
            // Siblings on one parent: the kernel's own growth shows by then.
            if kind == "veth" || size <= 5_000 {
                links(setting, kind, size, samples)?;
            }
        }
    }
    links(setting, "bridge", 100, samples)?;
    routes_from_file(setting, samples)
}

/// Creates and deletes by each in turn.
fn links(setting: &Setting, kind: &str, size: usize, samples: &mut Samples) -> Result<()> {
    say(format_args!("links: {size} of kind {kind}"));
    let directory = scratch()?;
    for round in 0..setting.rounds {
        for maker in makers(setting, kind, size, &directory)? {
            if round > 0 && maker.is_slow && size >= SLOW_FROM {
                continue;
            }
            let netns = Netns::new("bench")?;
            prepare(&netns, kind)?;
            let rows = size as u64;
            let what = format!("create {kind}");
            match maker.create {
                Some(contender) => add(&netns, maker.who, &what, rows, &contender, samples)?,
                None => run_inside(
                    &netns,
                    &bare(setting, &format!("create {kind} 1 {size} {GROUP}")),
                )
                .map(drop)?,
            }
            let what = format!("delete {kind}");
            if let Some(contender) = maker.delete {
                add(&netns, maker.who, &what, rows, &contender, samples)?;
                let left = netns.ip(&["-o", "link"])?.matches("testa").count();
                anyhow::ensure!(left == 0, "{} left {left} of {size} links", maker.who);
            }
            clear(setting, &netns)?;
        }
        half(setting, kind, size, samples)?;
    }
    fs::remove_dir_all(&directory).context("removing the bench's files")
}

/// Half of the links that are there.
fn half(setting: &Setting, kind: &str, size: usize, samples: &mut Samples) -> Result<()> {
    let what = format!("delete half of {kind}");
    let half = size / 2;
    let ours = Contender::new(
        "fingerpost",
        &what,
        &setting.fingerpost,
        &format!("link delete testa{{}} -n {half} --cascade"),
    );
    let floor = bare(setting, &format!("delete {GROUP}"));
    for (who, contender) in [("fingerpost", ours), ("bare group", floor)] {
        let netns = Netns::new("bench")?;
        prepare(&netns, kind)?;
        let first = format!("create {kind} 1 {half} {GROUP}");
        run_inside(&netns, &bare(setting, &first)).map(drop)?;
        let rest = format!("create {kind} {} {size} {}", half + 1, GROUP + 1);
        run_inside(&netns, &bare(setting, &rest)).map(drop)?;
        add(&netns, who, &what, half as u64, &contender, samples)?;
        let left = netns.ip(&["-o", "link"])?.matches("testa").count();
        anyhow::ensure!(left >= size - half, "{who} left {left} of {size} links");
        clear(setting, &netns)?;
    }
    Ok(())
}

/// Deletes what a turn left: a namespace that goes with thousands of links
/// keeps the kernel at work during the next one's turn.
fn clear(setting: &Setting, netns: &Netns) -> Result<()> {
    let links = netns.ip(&["-o", "link"])?;
    let left: String = links
        .lines()
        .filter_map(|line| line.split(": ").nth(1)?.split('@').next())
        .filter(|name| name.starts_with("testa"))
        .map(|name| format!("link set {name} group {GROUP}\n"))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    netns.ip_batch(&left)?;
    run_inside(netns, &bare(setting, &format!("delete {GROUP}"))).map(drop)
}

/// A parent for those that need one.
fn prepare(netns: &Netns, kind: &str) -> Result<()> {
    if kind == "macvlan" {
        netns.ip_batch(
            "link add parent index 1000 type veth peer name parent-peer\nlink set parent up\n",
        )?;
    }
    Ok(())
}

fn makers(setting: &Setting, kind: &str, size: usize, directory: &Path) -> Result<Vec<Maker>> {
    let contender = |program: &Path, arguments: &str| Contender::new("", "", program, arguments);
    let sh = |file: PathBuf| contender(Path::new("sh"), &file.display().to_string());
    let batch = |file: PathBuf| contender(Path::new("ip"), &format!("-batch {}", file.display()));
    let ours = |file: &Path| {
        let words = format!("ip -batch {}", file.display());
        contender(&setting.fingerpost, &words)
    };
    let lines =
        |line: &dyn Fn(usize) -> String| (1..=size).map(|k| line(k) + "\n").collect::<String>();
    let write = |name: &str, text: String| -> Result<PathBuf> {
        let file = directory.join(format!("{name}-{kind}-{size}"));
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    };
    let options = options(kind);
    let own = format!("link add -n {size} --kind {kind} {options}");
    let created = write("create", lines(&|k| format!("link add {}", words(kind, k))))?;
    let deleted = write("delete", lines(&|k| format!("link del testa{k}")))?;
    let looped = write(
        "loop",
        lines(&|k| format!("ip link add {}", words(kind, k))),
    )?;
    let mut makers = vec![
        Maker {
            who: "fingerpost",
            is_slow: false,
            create: Some(contender(&setting.fingerpost, &own)),
            delete: Some(contender(
                &setting.fingerpost,
                &format!("link delete testa{{}} -n {size} --cascade"),
            )),
        },
        Maker {
            who: "bare netlink",
            is_slow: false,
            create: Some(bare(setting, &format!("create {kind} 1 {size} {GROUP}"))),
            delete: Some(bare(setting, &format!("delete {GROUP}"))),
        },
        Maker {
            who: "fingerpost ip -batch",
            is_slow: false,
            create: Some(ours(&created)),
            delete: Some(ours(&deleted)),
        },
        Maker {
            who: "ip -batch",
            is_slow: true,
            create: Some(batch(created)),
            delete: (size <= MOST_ONE_BY_ONE).then(|| batch(deleted)),
        },
        Maker {
            who: "shell loop of ip",
            is_slow: true,
            create: Some(sh(looped)),
            delete: None,
        },
        Maker {
            who: "ip link delete group",
            is_slow: false,
            create: None,
            delete: Some(contender(
                Path::new("ip"),
                &format!("link delete group {GROUP}"),
            )),
        },
    ];
    if kind == "veth" {
        let script = write("pyroute2", pyroute2(size))?;
        makers.push(Maker {
            who: "pyroute2",
            is_slow: true,
            create: Some(contender(
                Path::new("/usr/bin/python3"),
                &script.display().to_string(),
            )),
            delete: None,
        });
    }
    Ok(makers)
}

/// What our own command is told beside number and kind.
fn options(kind: &str) -> &'static str {
    match kind {
        "veth" => "--name testa{} --peer testb{}",
        "macvlan" => "--name testa{} --link parent mode bridge",
        "vxlan" => "--name testa{} id {} dstport 4789",
        _ => "--name testa{}",
    }
}

/// `ip`'s words for one of them.
fn words(kind: &str, k: usize) -> String {
    match kind {
        "veth" => format!("testa{k} type veth peer name testb{k}"),
        "macvlan" => format!("testa{k} link parent type macvlan mode bridge"),
        "vxlan" => format!("testa{k} type vxlan id {k} dstport 4789"),
        _ => format!("testa{k} type {kind}"),
    }
}

fn pyroute2(size: usize) -> String {
    format!(
        "from pyroute2 import IPRoute\n\
         with IPRoute() as ip:\n    \
         for k in range(1, {size} + 1):\n        \
         ip.link('add', ifname='testa%d' % k, kind='veth', peer='testb%d' % k)\n"
    )
}

fn bare(setting: &Setting, arguments: &str) -> Contender {
    Contender::new(
        "bare netlink",
        "",
        setting.programs.join("bare-links"),
        arguments,
    )
}

/// A million routes added from a file and withdrawn again.
fn routes_from_file(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let mut sizes = vec![10_000, 100_000];
    if !setting.quick {
        sizes.push(1_000_000);
    }
    let directory = scratch()?;
    for size in sizes {
        say(format_args!("links: {size} routes from a file"));
        let prefixes = routes::prefixes(Family::V4, size)?;
        let text: String = prefixes
            .iter()
            .map(|prefix| format!("{prefix} via 192.0.2.1 dev em1\n"))
            .collect();
        let ours = directory.join("routes");
        fs::write(&ours, &text)?;
        let [adds, deletes] = ["add", "del"].map(|verb| {
            let lines: String = text
                .lines()
                .map(|line| format!("route {verb} {line}\n"))
                .collect();
            (directory.join(verb), lines)
        });
        fs::write(&adds.0, adds.1)?;
        fs::write(&deletes.0, deletes.1)?;
        let contender =
            |program: &Path, arguments: String| Contender::new("", "", program, &arguments);
        let all = [
            (
                "fingerpost",
                [
                    contender(
                        &setting.fingerpost,
                        format!("route add --file {}", ours.display()),
                    ),
                    contender(
                        &setting.fingerpost,
                        format!("route delete --file {}", ours.display()),
                    ),
                ],
            ),
            (
                "bare netlink",
                [
                    contender(
                        &setting.programs.join("bare-routes"),
                        format!("add {} em1 192.0.2.1", ours.display()),
                    ),
                    contender(
                        &setting.programs.join("bare-routes"),
                        format!("delete {} em1 192.0.2.1", ours.display()),
                    ),
                ],
            ),
            (
                "ip -batch",
                [
                    contender(Path::new("ip"), format!("-batch {}", adds.0.display())),
                    contender(Path::new("ip"), format!("-batch {}", deletes.0.display())),
                ],
            ),
        ];
        for round in 0..setting.rounds {
            for (who, [create, delete]) in &all {
                if round > 0 && *who == "ip -batch" {
                    continue;
                }
                let netns = Netns::new("bench")?;
                netns.ip_batch(
                    "link add em1 type veth peer name em2\nlink set em1 up\nlink set em2 up\n\
                     addr add 192.0.2.2/24 dev em1\n",
                )?;
                add(
                    &netns,
                    who,
                    "add routes from a file",
                    size as u64,
                    create,
                    samples,
                )?;
                add(
                    &netns,
                    who,
                    "withdraw routes from a file",
                    size as u64,
                    delete,
                    samples,
                )?;
            }
        }
    }
    fs::remove_dir_all(&directory).context("removing the bench's files")
}

/// Measures one run inside.
fn add(
    netns: &Netns,
    who: &str,
    what: &str,
    rows: u64,
    contender: &Contender,
    samples: &mut Samples,
) -> Result<()> {
    let cost = run_inside(netns, contender)?;
    let wall_ms = cost.wall.as_secs_f64() * 1_000.0;
    samples.add(who, what, rows, "wall_ms", wall_ms);
    samples.add(who, what, rows, "ms_per_link", wall_ms / rows as f64);
    samples.add(who, what, rows, "cpu_ms", cost.cpu_ms);
    Ok(())
}

fn run_inside(netns: &Netns, contender: &Contender) -> Result<Cost> {
    netns.inside(|| run(contender))?
}

fn scratch() -> Result<PathBuf> {
    let directory = std::env::temp_dir().join(format!("fingerpost-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    Ok(directory)
}
