//! What the program's tests share: namespaces with something in them, the
//! real binary, a daemon that does not outlive its value.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use lab::{Child, Netns, wait_until};
use tempfile::TempDir;

/// The program under test.
pub fn program() -> &'static str {
    lab::program::under_test(env!("CARGO_BIN_EXE_fingerpost"))
}

/// Names the daemon's directory of state.
pub const STATE: &str = "STATE_DIRECTORY";

/// Gives the clients their end of a translator's devices, with hosts up to
/// 10.0.0.`last`; the other end stays where it is.
pub fn put_clients_behind(middle: &Netns, client: &Netns, last: u8) {
    for device in ["fpin", "fpout"] {
        let shown = || middle.ip(&["link", "show", device]).ok();
        wait_until(PATIENCE, device, shown).unwrap();
    }
    let moved = ["link", "set", "fpin", "netns", client.name()];
    middle.ip(&moved).unwrap();
    middle.ip(&["link", "set", "fpout", "up"]).unwrap();
    let hosts: String = (2..=last)
        .map(|host| format!("addr add 10.0.0.{host}/24 dev fpin\n"))
        .collect();
    let rest = "link set fpin up\nroute add default dev fpin\n";
    client.ip_batch(&format!("{hosts}{rest}")).unwrap();
}

/// For whatever is expected to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Every listing.
pub const OBJECTS: [&str; 7] = ["link", "addr", "neigh", "route", "nexthop", "rule", "fdb"];

/// A namespace without duplicate address detection, which would go on changing
/// addresses and routes for seconds, between two readings that shall be the
/// same; `None`, and counted as skipped, where none can be made.
pub fn at_rest(tag: &str) -> Option<Netns> {
    let netns = lab::skip::unless(Netns::new(tag))?;
    let accept = "/proc/sys/net/ipv6/conf/{all,default}/accept_dad";
    netns
        .run("bash", &["-c", &format!("echo 0 | tee {accept}")])
        .unwrap();
    Some(netns)
}

/// A namespace with rows in every table; `None`, and counted as skipped,
/// where none can be made.
pub fn furnished(tag: &str) -> Option<Netns> {
    let netns = at_rest(tag)?;
    netns
        .ip_batch(
            "link add br0 type bridge\n\
             link add veth0 type veth peer name veth1\n\
             link set veth0 master br0\n\
             link set br0 up\n\
             link set veth0 up\n\
             link set veth1 up\n",
        )
        .unwrap();
    // Next-hop objects want a carrier, which comes a moment later.
    wait_until(PATIENCE, "the carrier of br0", || {
        let shown = netns.ip(&["-o", "link", "show", "dev", "br0"]).unwrap();
        shown.contains("LOWER_UP").then_some(())
    })
    .unwrap();
    netns
        .ip_batch(
            "addr add 10.9.0.1/24 dev br0\n\
             addr add 10.8.0.1/30 brd + dev veth1 label veth1:1\n\
             addr add 2001:db8::1/64 dev br0 nodad\n\
             neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev br0 nud permanent\n\
             neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev veth1 nud permanent\n\
             neigh add 2001:db8::7 lladdr 02:00:00:00:00:07 dev br0 nud permanent router\n\
             nexthop add id 1 via 10.9.0.7 dev br0\n\
             nexthop add id 2 via 10.8.0.2 dev veth1\n\
             nexthop add id 3 group 1/2,3\n\
             route add 10.1.0.0/16 via 10.9.0.7 proto bgp metric 20\n\
             route add 10.1.2.0/24 nhid 3\n\
             route add 10.2.0.0/16 nexthop via 10.9.0.7 dev br0 weight 2 nexthop via 10.8.0.2 dev veth1\n\
             route add blackhole 10.3.0.0/16 table 100\n\
             route add default via 10.9.0.7\n\
             route add 2001:db8:1::/48 via 2001:db8::7\n\
             rule add from 10.9.0.0/24 lookup 100 pref 1000\n\
             rule add fwmark 7 lookup 100 pref 1001\n",
        )
        .unwrap();
    Some(netns)
}

/// Runs the program inside a namespace to its end.
pub fn fingerpost(netns: &Netns, arguments: &[&str]) -> Output {
    netns.command(program()).args(arguments).output().unwrap()
}

/// The same, and what it writes; it must succeed.
pub fn says(netns: &Netns, arguments: &[&str]) -> String {
    said(fingerpost(netns, arguments))
}

/// What a successful run wrote.
pub fn said(output: Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Lines in an order of their own: the kernel lists tables in another than
/// the daemon.
pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A running `fingerpost up`; ended when dropped.
pub struct Daemon {
    /// The process.
    pub process: Child,
    /// What it said when it was ready.
    pub screen: String,
    log: PathBuf,
    _directory: TempDir,
}

impl Daemon {
    /// Starts one inside a namespace and waits until it is ready.
    pub fn up(netns: &Netns, arguments: &[&str]) -> Self {
        let mut command = netns.command(program());
        command.arg("up").args(arguments);
        Self::spawn(command)
    }

    /// The same with a command made elsewhere.
    pub fn spawn(mut command: Command) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // What it keeps from one start to the next goes with it, unless
        // the test has a place for it.
        if !command.get_envs().any(|(key, _)| key == STATE) {
            command.env(STATE, directory.path());
        }
        command
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap());
        let mut process = Child::spawn(command).unwrap();
        let stdout = process.process().stdout.take().unwrap();
        let mut screen = String::new();
        // The daemon writes it whole, or ends and closes it.
        for line in BufReader::new(stdout).lines() {
            let line = line.unwrap();
            screen += &line;
            screen += "\n";
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let daemon = Self {
            process,
            screen,
            log,
            _directory: directory,
        };
        assert!(daemon.screen.contains("Ctrl-C"), "{}", daemon.log());
        daemon
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it logs something.
    pub fn logs(&self, what: &str) {
        let waited = wait_until(PATIENCE, what, || self.log().contains(what).then_some(()));
        assert!(waited.is_ok(), "{waited:?}\n{}", self.log());
    }

    /// Has it read its configuration again.
    pub fn reload(&self) {
        self.process.signal(rustix::process::Signal::HUP).unwrap();
    }

    /// Ends it as a service manager does.
    pub fn end(mut self) {
        self.process.signal(rustix::process::Signal::TERM).unwrap();
        let status = self.process.wait(PATIENCE).unwrap();
        assert!(status.success(), "{status}: {}", self.log());
    }
}

impl Drop for Daemon {
    /// Lets it remove its socket; a test that fails leaves nothing behind.
    fn drop(&mut self) {
        if matches!(self.process.process().try_wait(), Ok(None)) {
            // What does not end in time is killed with its value.
            let _ = self.process.signal(rustix::process::Signal::TERM);
            let _ = self.process.wait(Duration::from_secs(10));
        }
    }
}

/// The inode of a namespace.
pub fn inode(netns: &Netns) -> u64 {
    fs::metadata(netns.path()).unwrap().ino()
}

/// Where a namespace's daemon of root listens.
pub fn socket(netns: &Netns) -> PathBuf {
    Path::new("/run/fingerpost").join(format!("{}.sock", inode(netns)))
}

/// Reads from a child's pipe until a text is in it.
pub fn read_until(from: &mut impl Read, text: &str) -> String {
    let mut seen = Vec::new();
    let mut octets = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let read = from.read(&mut octets).unwrap();
        assert!(read > 0, "{text}: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&octets[..read]);
    }
    String::from_utf8(seen).unwrap()
}

/// A copy of the program that every user may run.
pub fn for_everybody(directory: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.join("fingerpost");
    fs::copy(program(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// `setpriv` to a user without rights, before a program.
pub fn as_nobody(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(program);
    command
}

/// `CapPrm` of a process or thread.
pub fn capabilities(status: &Path) -> u64 {
    let held = field(status, "CapPrm:");
    u64::from_str_radix(held.as_deref().unwrap_or(""), 16).unwrap_or(u64::MAX)
}

/// Every thread of a process has no other capabilities than these, and the
/// system calls that no command needs are taken away from it.
pub fn assert_confined(pid: u32, most: u64) {
    let tasks: Vec<_> = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
        .map(|task| task.path())
        .collect();
    assert!(!tasks.is_empty());
    for task in tasks {
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        let status = task.join("status");
        assert_eq!(capabilities(&status) & !most, 0, "{name}");
        assert_eq!(field(&status, "Seccomp:").as_deref(), Some("2"), "{name}");
    }
}

fn field(status: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(status).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

/// What captures of raw IP packets say of their link (`LINKTYPE_RAW`).
pub const RAW: u32 = 101;

/// A capture (pcap) of packets on a kind of link, a second apart.
pub fn capture(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(word.to_le_bytes());
    }
    for (second, packet) in packets.iter().enumerate() {
        let len = packet.len() as u32;
        for word in [second as u32, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}
