//! `ip monitor`, theirs and ours in one namespace, hear the same events and
//! say the same of them.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab::{Netns, skip, wait_until};

use crate::common::program;

const PATIENCE: Duration = Duration::from_secs(30);

/// What happens while both listen. The last is what they are waited for by.
const HAPPENS: &str = "\
route add 10.253.0.0/16 dev v0
addr add 10.0.0.1/24 dev v0
addr add 2001:db8::1/64 dev v0 nodad
link set v0 mtu 1400
link set v0 alias \"an uplink\"
link property add dev v0 altname other-v0
neigh add 10.0.0.5 lladdr 02:00:00:00:00:05 dev v0
neigh replace 10.0.0.5 lladdr 02:00:00:00:00:06 dev v0 nud noarp
neigh add proxy 10.0.0.6 dev v0
neigh del 10.0.0.5 dev v0
route add 10.1.0.0/16 via 10.0.0.9
route add 10.2.0.0/16 via 10.0.0.9 metric 7 proto static table 100 mtu lock 1400
route add 10.3.0.0/16 nexthop via 10.0.0.8 weight 2 nexthop via 10.0.0.9
route add 10.4.0.0/16 encap ip id 5 dst 10.0.0.9 dev v0
route replace 10.1.0.0/16 via 10.0.0.8
route add blackhole 10.5.0.0/16
route add 2001:db8:1::/48 via 2001:db8::9
route del 10.1.0.0/16
rule add from 10.0.0.0/24 to 10.9.0.0/16 iif v0 lookup 100 pref 100
rule del pref 100
nexthop add id 1 via 10.0.0.9 dev v0
nexthop add id 3 via 10.0.0.8 dev v0
nexthop add id 10 group 1,2/3
nexthop del id 10
link set v1 master br0
link set br0 up
link set v1 type bridge_slave cost 7
link set v1 nomaster
link add m0 link v0 address 02:00:00:00:00:30 type macvlan mode bridge
link del m0
addr del 10.0.0.1/24 dev v0
route add 10.255.0.0/16 dev v0
";

/// A monitor and what it has said.
struct Monitor {
    child: Child,
    said: JoinHandle<String>,
    /// Whether it has told of 10.254.0.0/16.
    listens: Arc<AtomicBool>,
}

impl Monitor {
    fn new(mut command: Command, words: &str) -> Self {
        let mut child = command
            .args(words.split(' '))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut from = child.stdout.take().unwrap();
        let listens = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&listens);
        let said = thread::spawn(move || {
            let (mut all, mut bytes) = (String::new(), [0; 4096]);
            while let Ok(len @ 1..) = from.read(&mut bytes) {
                all.push_str(&String::from_utf8_lossy(&bytes[..len]));
                heard.fetch_or(all.contains("10.254.0.0/16"), Ordering::Relaxed);
                if all.contains("10.255.0.0/16") && all.ends_with('\n') {
                    break;
                }
            }
            all
        });
        Self {
            child,
            said,
            listens,
        }
    }

    fn listens(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
    }

    /// What it said up to the last event.
    fn ends(mut self) -> String {
        let heard = wait_until(PATIENCE, "the last event", || {
            self.said.is_finished().then_some(())
        });
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.said.join().unwrap();
        assert!(heard.is_ok(), "{said}");
        said
    }
}

/// Whether the kernel says it when it likes; or names a link that came
/// later and may be gone by the time that its name is asked for.
fn passes(line: &str) -> bool {
    // The last is of a link's settings, told before the link is.
    [
        "fe80::",
        "ff00::",
        "ff02::",
        "33:33:",
        "01:00:5e:",
        "proxy_neigh",
    ]
    .iter()
    .any(|own| line.contains(own))
}

/// Without times, which differ, and numbers of hundredths of a second.
fn steady(said: &str, is_stamped: bool) -> Vec<String> {
    let first = said.find("10.253.0.0/16").unwrap_or(said.len());
    let last = said.find("10.255.0.0/16").unwrap_or(said.len());
    let said = said.get(first..last).unwrap_or_default();
    let lines = said.lines().filter(|line| !passes(line));
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let line = match (is_stamped, line.split_once("] ")) {
            (true, Some((stamp, rest))) if stamp.starts_with('[') => {
                assert_eq!(stamp.len(), "[2026-11-24T08:42:11.783458".len(), "{line}");
                rest
            }
            _ => line,
        };
        let words: Vec<&str> = line.split(' ').collect();
        // Behind a timer's name there is its number, right in its column.
        let mut after_timer = false;
        let kept = words.iter().filter(|word| {
            let is_number = after_timer && (word.contains('.') || word.is_empty());
            after_timer = word.ends_with("_timer") || is_number && word.is_empty();
            !is_number
        });
        // Whether the link below was up when the links were listed.
        let line = kept.copied().collect::<Vec<_>>().join(" ");
        out.push(line.replace(",M-DOWN", ""));
    }
    out
}

#[test]
fn events_are_told_as_ip_tells_them() {
    for words in [
        "monitor",
        "monitor all",
        "-4 monitor",
        "-6 monitor label",
        "-o monitor label link address route neigh rule nexthop nsid netconf",
        "-d monitor",
        "-c monitor",
        "-ts monitor link route",
        "-N monitor route",
        "monitor route dev v0",
        "monitor neigh route",
    ] {
        // The last event is of IPv4.
        if words.starts_with("-6") {
            continue;
        }
        let Some(netns) = skip::unless(Netns::new("monitor")) else {
            return;
        };
        netns
            .ip_batch(
                "link add v0 address 02:00:00:00:00:10 type veth peer name v1 address \
                 02:00:00:00:00:11\nlink add br0 address 02:00:00:00:00:20 type bridge\n\
                 link set lo up\n",
            )
            .unwrap();
        for of in ["all", "default", "v0", "v1", "br0"] {
            let _ = netns.sysctl(&format!("net.ipv6.conf.{of}.accept_dad"), "0");
        }
        netns.ip_batch("link set v0 up\nlink set v1 up\n").unwrap();
        let theirs = Monitor::new(netns.command("ip"), words);
        let mut ours = netns.command(program());
        ours.arg("ip");
        let ours = Monitor::new(ours, words);
        wait_until(PATIENCE, "both to listen", || {
            let line = "10.254.0.0/16 dev v0\n";
            let lines = format!("route add {line}route del {line}");
            netns.ip_batch(&lines).unwrap();
            (theirs.listens() && ours.listens()).then_some(())
        })
        .unwrap();
        netns.ip_batch(HAPPENS).unwrap();
        let is_stamped = words.starts_with("-ts");
        let theirs = steady(&theirs.ends(), is_stamped);
        let ours = steady(&ours.ends(), is_stamped);
        let differs = theirs
            .iter()
            .zip(&ours)
            .find(|(theirs, ours)| theirs != ours);
        assert_eq!(differs, None, "ip {words}\n{}", ours.join("\n"));
        assert_eq!(theirs.len(), ours.len(), "ip {words}");
        assert!(theirs.len() > 5, "ip {words}: {theirs:?}");
    }
}

/// Waits until so many sockets have joined a group of events.
fn listening(netns: &Netns, many: usize) {
    wait_until(PATIENCE, "listeners", || {
        let sockets = netns.run("cat", &["/proc/net/netlink"]).unwrap();
        let of_groups = sockets.lines().skip(1).filter(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let (protocol, port) = (columns.next(), columns.next());
            let groups = columns.next();
            protocol == Some("0")
                && port != Some("0")
                && groups.is_some_and(|groups| groups.contains(|c: char| c != '0'))
        });
        (of_groups.count() >= many).then_some(())
    })
    .unwrap();
}

/// By the name of another namespace, whose links are asked for again once
/// rights were given up.
#[test]
fn another_namespace_is_heard_by_name() {
    let Some(netns) = skip::unless(Netns::new("named")) else {
        return;
    };
    let mut ours = Command::new(program());
    ours.args(["ip", "-n", netns.name()]);
    let ours = Monitor::new(ours, "monitor netconf link route");
    listening(&netns, 1);
    netns
        .ip_batch("link add v0 type veth peer name v1\nroute add blackhole 10.255.0.0/16\n")
        .unwrap();
    let said = ours.ends();
    assert!(said.contains("inet v0 forwarding"), "{said}");
}

/// An attribute.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len() + 4).unwrap();
    let mut out = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn message(kind: u16, header: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut payload = header.to_vec();
    for (kind, value) in attributes {
        payload.extend(attribute(*kind, value));
    }
    let len = u32::try_from(payload.len() + 16).unwrap();
    let mut out = len.to_ne_bytes().to_vec();
    out.extend_from_slice(&kind.to_ne_bytes());
    out.resize(16, 0);
    out.extend(payload);
    out
}

const V4: [u8; 4] = [10, 0, 0, 1];
const GROUP4: [u8; 4] = [239, 1, 1, 1];
const V6: [u8; 16] = [0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const GROUP6: [u8; 16] = [0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Routes of multicast packets, which need a daemon to be made.
fn multicast_routes() -> Vec<u8> {
    let counted = [5_u64, 500, 2].map(u64::to_ne_bytes).concat();
    let lo = 1_u32.to_ne_bytes();
    let hops = [8, 0, 0, 1, 1, 0, 0, 0, 8, 0, 0, 3, 1, 0, 0, 0];
    let age = 123_u64.to_ne_bytes();
    let table = |number: u32| number.to_ne_bytes();
    let header = |family: u8, flags: u8| [family, 32, 32, 0, 253, 17, 0, 5, flags, 0, 0, 0];
    let whole = [
        (15, &table(253)[..]),
        (2, &V4),
        (1, &GROUP4),
        (3, &lo),
        (9, &hops),
        (17, &counted),
        (23, &age),
    ];
    let mut out = message(24, &header(128, 0), &whole);
    out.extend(message(
        25,
        &header(128, 0),
        &[(15, &table(254)), (2, &V4), (1, &GROUP4)],
    ));
    out.extend(message(24, &header(128, 32), &[(1, &GROUP4)]));
    out.extend(message(
        24,
        &header(128, 8),
        &[(1, &GROUP4), (3, &lo), (17, &counted)],
    ));
    out.extend(message(
        24,
        &header(129, 0),
        &[(15, &table(1000)), (2, &V6), (1, &GROUP6)],
    ));
    out
}

/// What a router announced.
fn announced() -> Vec<u8> {
    let lifetimes = [600_u32, 1200].map(u32::to_ne_bytes).concat();
    let mut out = Vec::new();
    for flags in 0..4 {
        let header = [10, 0, 0, 0, 1, 0, 0, 0, 3, 64, flags, 0];
        out.extend(message(52, &header, &[(1, &V6), (2, &lifetimes)]));
        out.extend(message(52, &header, &[(1, &V6)]));
    }
    // Of a link that is not there, without an address.
    let header = [10, 0, 0, 0, 99, 0, 0, 0, 3, 64, 3, 0];
    out.extend(message(52, &header, &[(2, &lifetimes)]));
    out
}

/// Messages that no kernel at hand makes, from a file, which both read.
#[test]
fn a_file_of_messages_is_told_as_ip_tells_it() {
    let Some(netns) = skip::unless(Netns::new("monitor")) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages");
    let name = path.to_str().unwrap();
    let all = [multicast_routes(), announced()].concat();
    let file = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();
    let both = |words: &[&str]| {
        let run = |mut command: Command| command.args(words).output().unwrap();
        let mut ours = netns.command(program());
        ours.arg("ip");
        (run(netns.command("ip")), run(ours))
    };
    file(&all);
    for options in ["-o", "-s", "-o -s", "-d", "-4", "-6", "-color=always", "-N"] {
        let mut words: Vec<&str> = options.split(' ').collect();
        words.extend(["monitor", "all", "file", name]);
        let (theirs, ours) = both(&words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&theirs.stdout), text(&ours.stdout), "{words:?}");
        assert_eq!(theirs.status.code(), Some(0));
        assert_eq!(ours.status.code(), Some(0), "{}", text(&ours.stderr));
        assert!(theirs.stdout.len() > 500);
    }
    let long = [300_000_u32.to_ne_bytes().to_vec(), all.clone()].concat();
    let short = [3_u32.to_ne_bytes().to_vec(), all.clone()].concat();
    for damaged in [&all[..30], &all[..7], &long, &short] {
        file(damaged);
        let (theirs, ours) = both(&["monitor", "file", name]);
        assert_eq!(theirs.status.code(), ours.status.code());
        assert_eq!(theirs.stdout, ours.stdout);
    }
    let (theirs, ours) = both(&["monitor", "file", "/nowhere/at/all"]);
    assert_eq!((theirs.stderr, theirs.status), (ours.stderr, ours.status));
}

/// A program that says something until it is dropped.
struct Said {
    child: Child,
    all: Arc<Mutex<String>>,
}

impl Said {
    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut from = child.stdout.take().unwrap();
        let all = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&all);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = from.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..len]);
                heard.lock().unwrap().push_str(&text);
            }
        });
        Self { child, all }
    }

    fn has(&self, what: &str) -> bool {
        self.all.lock().unwrap().contains(what)
    }

    /// The lines that are whole.
    fn lines(&self) -> Vec<String> {
        let all = self.all.lock().unwrap();
        let whole = all.rfind('\n').map_or("", |end| &all[..end]);
        whole.lines().map(str::to_owned).collect()
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What happens to bridges while both listen.
const OF_BRIDGES: [&str; 2] = [
    "link set v0 master br0\nlink set br0 up\nlink set v0 up\nlink set v1 up\n",
    "link set v0 mtu 1400\nlink set v1 down\nlink set v1 up\nlink set v0 nomaster\n\
     link set v3 up\n",
];
const BY_BRIDGE: &str = "\
fdb add 02:00:00:00:00:77 dev v0 master
fdb del 02:00:00:00:00:77 dev v0 master
link set dev v0 cost 7
mdb add dev br0 port v0 grp 239.1.1.1 permanent
mdb add dev br0 port v0 grp ff15::1 permanent
mdb del dev br0 port v0 grp 239.1.1.1
link set dev v0 mcast_router 2
link set dev v0 mcast_router 1
";

/// `bridge monitor`, theirs and ours. The last event is the other link's.
#[test]
fn events_of_bridges_are_told_as_bridge_tells_them() {
    for words in [
        "monitor",
        "monitor all",
        "-d monitor",
        "-o -d monitor link",
        "monitor mdb fdb link",
    ] {
        let Some(netns) = skip::unless(Netns::new("monitor")) else {
            return;
        };
        netns
            .ip_batch(
                "link add v0 address 02:00:00:00:00:10 type veth peer name v1 address \
                 02:00:00:00:00:11\nlink add br0 address 02:00:00:00:00:20 type bridge\n\
                 link add v2 type veth peer name v3 address 02:00:00:00:00:99\n",
            )
            .unwrap();
        let of = |mut command: Command, before: &[&str]| {
            command.args(before);
            command.args(words.split(' '));
            Said::of(command)
        };
        let theirs = of(netns.command("bridge"), &[]);
        let ours = of(netns.command(program()), &["bridge"]);
        // Theirs lists links on the socket where it listens, and leaves out
        // what happens by then.
        let mut mtu = 1300;
        wait_until(PATIENCE, "both to listen", || {
            mtu += 1;
            netns
                .ip(&["link", "set", "v2", "mtu", &mtu.to_string()])
                .unwrap();
            (theirs.has("v2@v3") && ours.has("v2@v3")).then_some(())
        })
        .unwrap();
        let batch = |program: &str, lines: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), lines).unwrap();
            let name = file.path().to_str().unwrap();
            netns.run(program, &["-batch", name]).unwrap();
        };
        batch("ip", OF_BRIDGES[0]);
        batch("bridge", BY_BRIDGE);
        batch("ip", OF_BRIDGES[1]);
        // v3 is up.
        let is_last = |line: &str| line.contains("v3@") && line.contains(",UP");
        wait_until(PATIENCE, "the last event", || {
            let heard = [&theirs, &ours].map(|said| said.lines().iter().any(|line| is_last(line)));
            (heard == [true; 2]).then_some(())
        })
        .unwrap();
        let lines = |said: &Said| -> Vec<String> {
            // IPv6's own groups and entries, at the kernel's leisure; details
            // of a port stand on the line behind it.
            let all = said.lines();
            let upto = all.iter().take_while(|line| !is_last(line));
            let kept = upto.filter(|line| !passes(line) && !line.contains("v3"));
            // Whether the link below was up when either first asked for it.
            kept.map(|line| line.replace(",M-DOWN", "")).collect()
        };
        let (theirs, ours) = (lines(&theirs), lines(&ours));
        let differs = theirs.iter().zip(&ours).find(|(a, b)| a != b);
        assert_eq!(differs, None, "bridge {words}\n{}", ours.join("\n"));
        assert_eq!(theirs.len(), ours.len(), "bridge {words}");
        assert!(theirs.len() > 8, "bridge {words}: {theirs:?}");
    }
}
