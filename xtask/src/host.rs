//! What the host must offer before a chore can run: programs, and rights.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

/// A program that the tests start, and the Debian package it comes in.
pub type Needed = (&'static str, &'static str);

/// What the tests start.
pub const FOR_TESTS: &[Needed] = &[
    ("ip", "iproute2"),
    ("arp", "net-tools"),
    ("ifconfig", "net-tools"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("tc", "iproute2"),
    ("mount", "mount"),
    ("strace", "strace"),
    ("snmpd", "snmpd"),
    ("snmpget", "snmp"),
    ("snmptrapd", "snmptrapd"),
    ("prometheus-snmp-exporter", "prometheus-snmp-exporter"),
    ("cfgmaker", "mrtg"),
    // A library for Python, in no path.
    (
        "/usr/lib/python3/dist-packages/pysnmp/hlapi/__init__.py",
        "python3-pysnmp4",
    ),
    // Another time of day for one process.
    ("faketime", "faketime"),
    // libalias: a C program against it, and what watches that.
    ("cc", "gcc"),
    ("c++", "g++"),
    ("nm", "binutils"),
    ("valgrind", "valgrind"),
    // nat run: both ends of real connections, and what checks their sums.
    ("curl", "curl"),
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("traceroute", "traceroute"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("python3", "python3"),
    ("vsftpd", "vsftpd"),
    // Telephones that call through it.
    ("sipp", "sip-tester"),
    // Sessions that outlive its restart, and logging in to a router that it
    // forwards on.
    ("ssh", "openssh-client"),
    ("/usr/sbin/sshd", "openssh-server"),
    // Those who ask it for ports.
    ("natpmpc", "natpmpc"),
    // router: what may be in its way, and offloads of veth pairs.
    ("nft", "nftables"),
    ("iptables-nft", "iptables"),
    ("ethtool", "ethtool"),
    // What it writes for the record: those who collect it.
    ("nfcapd", "nfdump"),
    ("rsyslogd", "rsyslog-gnutls"),
    // Tables of BGP paths, written by those who keep such.
    ("bird", "bird2"),
    ("gobgpd", "gobgpd"),
    // Packages: what makes them, and what their scripts and their test call.
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("adduser", "adduser"),
    ("systemd-analyze", "systemd"),
    // top and the page: a real terminal, a real browser and its driver.
    ("tmux", "tmux"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    // HTTP: those who ask.
    ("jq", "jq"),
    ("openssl", "openssl"),
    ("prometheus", "prometheus"),
    // Feeds: zebra, bgpd and staticd lie beside this one, in no path.
    ("vtysh", "frr"),
    // AgentX subagents. FRR's module is no program: its package is told by
    // a file that lies at the same place everywhere.
    ("/usr/share/doc/frr-snmp/copyright", "frr-snmp"),
    ("keepalived", "keepalived"),
    ("lldpd", "lldpd"),
];

/// Set in the namespaces that [`enter_own_namespaces`] makes.
const INSIDE: &str = "FINGERPOST_OWN_NAMESPACES";

/// Says a line to the one who waits. A closed pipe is no reason to stop.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// The directory of the workspace.
pub fn workspace() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parent = here.parent().context("xtask has no parent directory")?;
    Ok(parent.to_path_buf())
}

/// The Cargo that runs us.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What the Cargo that runs us says of this package: build scripts look
    // at it, and would make anew what depends on them.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Where Cargo puts what it builds: the directory above our own program's.
pub fn target() -> Result<PathBuf> {
    let program = env::current_exe().context("finding our own program")?;
    let target = program.ancestors().nth(2);
    Ok(target
        .context("xtask lies in no target directory")?
        .to_path_buf())
}

/// A release build of the program.
pub fn released() -> Result<PathBuf> {
    let built = cargo()
        .args(["build", "--release", "-p", "fingerpost"])
        .status()?;
    if !built.success() {
        bail!("the program could not be built");
    }
    Ok(target()?.join("release/fingerpost"))
}

/// Where a program lies, looking where root would look as well.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Installs the packages of the programs that are not there.
pub fn install_missing(needed: &[Needed]) -> Result<()> {
    let mut missing: Vec<Needed> = needed
        .iter()
        .copied()
        .filter(|(program, _)| find(program).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    missing.sort_by_key(|(_, package)| *package);
    missing.dedup_by_key(|(_, package)| *package);
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    let advice = format!(
        "install {} by hand (they hold: {})",
        packages.join(" "),
        programs.join(" ")
    );
    if find("apt-get").is_none() {
        bail!("some programs are missing and there is no apt-get: {advice}");
    }
    say(format_args!("installing {}", packages.join(" ")));
    apt(&["update"]).with_context(|| advice.clone())?;
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(&packages);
    apt(&install).context(advice)
}

/// Installs a package that holds no program.
pub fn install_package(package: &str) -> Result<()> {
    let advice = format!("install {package} by hand");
    if find("apt-get").is_none() {
        bail!("a package is missing and there is no apt-get: {advice}");
    }
    say(format_args!("installing {package}"));
    apt(&["update"]).with_context(|| advice.clone())?;
    apt(&["install", "--yes", "--no-install-recommends", package]).context(advice)
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = if geteuid().is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    let status = command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("running apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed", arguments.join(" "));
    }
    Ok(())
}

/// Whether this process may make network namespaces.
pub fn may_make_namespaces() -> bool {
    ::lab::Netns::new("probe").is_ok()
}

/// Whether the system gives an ordinary user namespaces of his own.
pub fn has_own_namespaces() -> bool {
    own_namespaces("true", std::iter::empty::<&OsStr>())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs this chore again as root of user, network and mount namespaces of
/// its own, where it may make further ones. Returns only on failure.
pub fn enter_own_namespaces() -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        bail!("no rights even in namespaces of our own");
    }
    let program = env::current_exe().context("finding our own program")?;
    let error = own_namespaces(program, env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
    Err(error).context("starting unshare")
}

/// A command in namespaces of its own. `/run` is empty there, so that
/// named namespaces and sockets can be made; the loopback is up.
fn own_namespaces(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    const PREPARE: &str =
        "PATH=$PATH:/usr/sbin:/sbin; mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--mount"])
        .args(["--propagation", "private", "sh", "-c", PREPARE, "sh"])
        .arg(program)
        .args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_missing_ones_are_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
        install_missing(&[("sh", "dash")]).unwrap();
    }
}
