//! Case `agentx`: the BGP paths of a real bgpd (FRR), which is a subagent of
//! Fingerpost and then of net-snmp's snmpd, walked by net-snmp's client. What
//! the master takes and what bgpd takes are told apart.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ::lab::bench::Samples;
use ::lab::frr::{Frr, has_snmp};
use ::lab::speaker::{Speaker, prefix};
use ::lab::{Child, Netns, wait_until};
use anyhow::{Context, Result, ensure};

use super::Setting;
use super::command::{Daemon, cpu_ms_of};
use crate::host::say;

/// bgp4PathAttrPeer: one row for each path.
const COLUMN: &str = ".1.3.6.1.2.1.15.6.1.1";
const PATHS: u32 = 100_000;
/// Rows of a request.
const REPETITIONS: [u32; 4] = [10, 50, 200, 1_000];
const PATIENCE: Duration = Duration::from_secs(120);
const BGPD: &str = "agentx\nrouter bgp 65001\n bgp router-id 10.1.0.1\n \
    no bgp ebgp-requires-policy\n neighbor 10.1.0.2 remote-as 65002\n \
    neighbor 10.1.0.2 passive\n";

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    ensure!(has_snmp(), "frr-snmp is not installed");
    let paths = if setting.quick { PATHS / 10 } else { PATHS };
    for who in ["fingerpost", "snmpd"] {
        say(format_args!("agentx: {paths} paths through {who}"));
        let directory = std::env::temp_dir().join(format!("fingerpost-agentx-{who}"));
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        let measured = through(who, setting, paths, &directory, samples);
        fs::remove_dir_all(&directory)?;
        measured?;
    }
    Ok(())
}

/// Whoever is the master.
enum Master {
    Ours(Daemon),
    Snmpd(Child),
}

impl Master {
    fn cpu_ms(&self) -> f64 {
        match self {
            Self::Ours(daemon) => daemon.cpu_ms(),
            Self::Snmpd(child) => cpu_ms_of(child.id()),
        }
    }
}

fn through(
    who: &str,
    setting: &Setting,
    paths: u32,
    directory: &Path,
    samples: &mut Samples,
) -> Result<()> {
    let (netns, peer) = peered()?;
    let agentx = directory.join("agentx");
    let master = match who {
        "snmpd" => Master::Snmpd(snmpd(&netns, directory, &agentx)?),
        _ => Master::Ours(ours(setting, &netns, directory, &agentx)?),
    };
    let frr = Frr {
        netns: &netns,
        directory,
        agentx: &agentx,
    };
    let _zebra = frr.start("zebra", "")?;
    let socket = frr.zebra_socket();
    wait_until(PATIENCE, "zebra", || socket.exists().then_some(()))?;
    let bgpd = frr.start("bgpd", BGPD)?;
    let _speaker = speaker(&peer, paths)?;
    has_all(&netns, paths)?;
    for repetitions in REPETITIONS {
        let what = format!("-Cr{repetitions}");
        for _ in 0..setting.rounds {
            let (ours, theirs) = (master.cpu_ms(), cpu_ms_of(bgpd.id()));
            let start = Instant::now();
            let words = format!("-v2c -c public -t 20 -On -Cr{repetitions} 127.0.0.1:1161");
            let words = words.split(' ').chain([COLUMN]);
            let text = netns.run("snmpbulkwalk", &words.collect::<Vec<_>>())?;
            let wall_ms = start.elapsed().as_secs_f64() * 1_000.0;
            let rows = text.lines().count();
            ensure!(rows == paths as usize, "{rows} rows of {paths}");
            let size = u64::from(paths);
            let theirs = cpu_ms_of(bgpd.id()) - theirs;
            samples.add(who, &what, size, "wall_ms", wall_ms);
            samples.add(who, &what, size, "master_cpu_ms", master.cpu_ms() - ours);
            samples.add(who, &what, size, "bgpd_cpu_ms", theirs);
        }
    }
    Ok(())
}

/// The namespace of bgpd, and that of its peer.
fn peered() -> Result<(Netns, Netns)> {
    let (netns, peer) = (Netns::new("bench")?, Netns::new("benchp")?);
    netns.ip_batch(
        "link set lo up\nlink add v0 type veth peer name w0\naddr add 10.1.0.1/24 dev v0\n\
         link set v0 up\n",
    )?;
    netns.ip(&["link", "set", "w0", "netns", peer.name()])?;
    peer.ip_batch("addr add 10.1.0.2/24 dev w0\nlink set w0 up\n")?;
    Ok((netns, peer))
}

fn ours(setting: &Setting, netns: &Netns, directory: &Path, agentx: &Path) -> Result<Daemon> {
    let config = directory.join("fingerpost.toml");
    let text = format!(
        "[snmp]\nagentx_master = '{}'\nagentx_master_group = 'frr'\n",
        agentx.display()
    );
    fs::write(&config, text)?;
    let config = config.to_str().context("a path that is not UTF-8")?;
    Daemon::start_with(setting, netns, &["--config", config])
}

/// net-snmp's agent with the system group alone: what others it has costs
/// time at the end of a walk.
fn snmpd(netns: &Netns, directory: &Path, agentx: &Path) -> Result<Child> {
    let config = directory.join("snmpd.conf");
    let text = format!(
        "rocommunity public\nagentAddress udp:127.0.0.1:1161\nmaster agentx\n\
         agentXSocket {}\nagentXPerms 0777 0755\nagentXTimeout 30\n",
        agentx.display()
    );
    fs::write(&config, text)?;
    let mut command = netns.command("snmpd");
    command
        .args(["-f", "-Ln", "-I", "system_mib", "-C", "-c"])
        .arg(&config);
    command.env("SNMP_PERSISTENT_DIR", directory);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let snmpd = Child::spawn(command)?;
    let agentx: PathBuf = agentx.into();
    wait_until(PATIENCE, "snmpd", || agentx.exists().then_some(()))?;
    Ok(snmpd)
}

fn speaker(peer: &Netns, paths: u32) -> Result<Speaker> {
    let connect = || {
        let opened = peer.inside(|| {
            let bgpd = "10.1.0.1:179".parse()?;
            Speaker::open(bgpd, 65_002, [10, 1, 0, 2].into())
        });
        opened.ok()?.ok()
    };
    let mut speaker = wait_until(PATIENCE, "a session with bgpd", connect)?;
    speaker.announce(0..paths, [10, 1, 0, 2].into())?;
    Ok(speaker)
}

/// Waits until the last path is there.
fn has_all(netns: &Netns, paths: u32) -> Result<()> {
    // bgpd does not answer when it is asked for a path by its name.
    let name = |path| format!("{COLUMN}.{}.24.10.1.0.2", prefix(path));
    let (before, last) = (name(paths - 2), name(paths - 1));
    let words = ["-v2c", "-c", "public", "-t", "20", "-On", "127.0.0.1:1161"];
    let words: Vec<&str> = words.into_iter().chain([before.as_str()]).collect();
    wait_until(PATIENCE, "the last path", || {
        let said = netns.run("snmpgetnext", &words).ok()?;
        said.starts_with(&last).then_some(())
    })
}
