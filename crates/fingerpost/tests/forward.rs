//! `fingerpost forward` by itself: captures, and between TUN devices whose
//! other ends are kernels in namespaces, with real programs on both sides.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;
#[path = "forward/peers.rs"]
mod peers;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{PATIENCE, assert_confined, program};
use lab::{Child, Netns, skip, wait_until};
use packet::build::{Ip, Segment};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const TABLES: &str = "\
link lan address 02:00:00:00:00:01
link wan address 02:00:00:00:00:02 mtu 1400
addr 10.1.0.1/24 dev lan
addr 10.2.0.1/24 dev wan
addr 2001:db8:1::1/64 dev lan
addr 2001:db8:2::1/64 dev wan
route 198.51.100.0/24 via 10.2.0.9 dev wan
route unreachable 203.0.113.0/24
neigh 10.2.0.9 dev wan lladdr 02:00:00:00:00:99 PERMANENT
neigh 10.1.0.5 dev lan lladdr 02:00:00:00:00:55 PERMANENT
";

fn frame(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x55, 8, 0], packet].concat()
}

fn capture(path: &Path, link: u32, packets: &[Vec<u8>]) {
    fs::write(path, common::capture(link, packets)).unwrap();
}

fn tshark(capture: &Path, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args(["-n", "-o", "ip.check_checksum:TRUE", "-r"])
        .arg(capture)
        .args(["-Y", filter])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().count()
}

/// Forwards the capture `in` of a directory by its `tables` to `out`.
fn forwarded(directory: &Path, more: &[&str]) -> Output {
    Command::new(program())
        .current_dir(directory)
        .args(["forward", "--json", "--in=lan", "--tables=tables"])
        .args(["--pcap-in=in", "--pcap-out=out"])
        .args(more)
        .output()
        .unwrap()
}

/// Sources are held against the way back where that is asked for.
#[test]
fn a_source_that_is_not_routed_by_where_it_came_from_is_dropped() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("tables"), TABLES).unwrap();
    let to = [198, 51, 100, 7].into();
    let sources = [[10, 1, 0, 5], [10, 2, 0, 9], [192, 0, 2, 5]];
    let packets = sources.map(|source| frame(&Ip::new(source.into(), to).udp(1, 2, b"x")));
    capture(&path("in"), 1, &packets);
    for (check, passes) in [(None, 3), (Some("loose"), 2), (Some("strict"), 1)] {
        let check = check.map(|check| format!("--source-check={check}"));
        let more: Vec<&str> = check.as_deref().into_iter().collect();
        let output = forwarded(directory.path(), &more);
        assert!(output.status.success(), "{output:?}");
        let counted: Value = serde_json::from_slice(&output.stdout).unwrap();
        let dropped = &counted["nodes"]["fib"]["reasons"]["source-not-routed"];
        assert_eq!(dropped.as_u64(), Some(3 - passes), "{counted}");
        assert_eq!(tshark(&path("out"), "udp.dstport == 2") as u64, passes);
        assert_eq!(tshark(&path("out"), "icmp"), 0, "in silence");
    }
}

#[test]
fn a_capture_is_forwarded_with_new_headers_and_errors_beside() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("tables"), TABLES).unwrap();
    let from = |to: [u8; 4]| Ip::new([10, 1, 0, 5].into(), to.into());
    let mut late = from([198, 51, 100, 7]);
    late.ttl = 1;
    let mut broken = frame(&from([198, 51, 100, 7]).udp(1, 2, b"x"));
    broken[20] ^= 1;
    let packets = [
        frame(&from([198, 51, 100, 7]).udp(4_000, 53, b"question")),
        frame(&late.udp(4_000, 53, b"late")),
        frame(&from([203, 0, 113, 7]).udp(4_000, 53, b"nowhere")),
        frame(&from([198, 51, 100, 7]).udp(4_000, 53, &[7; 1_440])),
        broken,
        frame(&from([10, 1, 0, 1]).udp(1, 2, b"own")),
    ];
    capture(&path("in"), 1, &packets);
    let done = forwarded(directory.path(), &[]);
    assert!(done.status.success(), "{done:?}");
    let counted: Value = serde_json::from_slice(&done.stdout).unwrap();
    let nodes = &counted["nodes"];
    assert_eq!(nodes["ethernet"]["packets"], 6, "{counted}");
    assert_eq!(nodes["ipv4"]["reasons"]["checksum"], 1, "{counted}");
    assert_eq!(nodes["output"]["reasons"]["hops-exceeded"], 1, "{counted}");
    assert_eq!(nodes["output"]["reasons"]["fragmented"], 1, "{counted}");
    assert_eq!(nodes["fib"]["reasons"]["unreachable"], 1, "{counted}");
    assert_eq!(nodes["host"]["reasons"]["no-host-port"], 1, "{counted}");
    let out = path("out");
    let gateway = "eth.dst == 02:00:00:00:00:99 && eth.src == 02:00:00:00:00:02";
    // The first, and two fragments of the long one.
    for (filter, count) in [
        (format!("{gateway} && ip.ttl == 63"), 3),
        (format!("{gateway} && ip.flags.mf == 1"), 1),
        (
            "icmp.type == 11 && eth.dst == 02:00:00:00:00:55".to_owned(),
            1,
        ),
        ("icmp.type == 3 && icmp.code == 1".to_owned(), 1),
        ("ip.checksum.status == 0 && !icmp".to_owned(), 0),
        ("frame".to_owned(), 5),
    ] {
        assert_eq!(tshark(&out, &filter), count, "{filter}");
    }
}

#[test]
fn the_largest_segment_is_lowered_over_both_families() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let far = "neigh 2001:db8:2::9 dev wan lladdr 02:00:00:00:00:99 PERMANENT\n";
    fs::write(path("tables"), format!("{TABLES}{far}")).unwrap();
    let segment = Segment {
        source_port: 4_000,
        destination_port: 80,
        flags: packet::tcp::SYN,
        options: &[2, 4, 0x05, 0xb4],
        ..Segment::default()
    };
    let packet = Ip::new([10, 1, 0, 5].into(), [198, 51, 100, 7].into()).tcp(&segment);
    let tcp = &packet[20..];
    let mut six = vec![0x60, 0, 0, 0, 0, tcp.len() as u8, 6, 64];
    for address in ["2001:db8:1::5", "2001:db8:2::9"] {
        six.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    six.extend(tcp);
    let six = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x55, 0x86, 0xdd],
        &six[..],
    ]
    .concat();
    capture(&path("in"), 1, &[frame(&packet), six]);
    for (clamp, four, sixth) in [("1300", 1_300, 1_280), ("1450", 1_450, 1_430)] {
        let done = forwarded(directory.path(), &["--clamp-mss", clamp]);
        assert!(done.status.success(), "{done:?}");
        for (family, size) in [("ip", four), ("ipv6", sixth)] {
            let filter = format!("{family} && tcp.options.mss_val == {size}");
            assert_eq!(tshark(&path("out"), &filter), 1, "{filter}");
        }
    }
}

/// A table of a collector with two peers, both with a prefix, the second by a
/// gateway that is on the link `wan`.
fn collected(path: &Path) {
    use lab::mrt::{Attributes, peer_index, record, rib};
    let peers = [[10, 9, 9, 9], [10, 2, 0, 9]].map(|at: [u8; 4]| (at.into(), 3_333));
    let attributes = peers.map(|(address, asn)| {
        let attributes = Attributes::default().origin(0).as_path(&[(2, vec![asn])]);
        attributes.next_hop(address).0
    });
    let entries = [(0, None, &attributes[0][..]), (1, None, &attributes[1][..])];
    let (subtype, body) = rib(1, "198.51.100.0/24".parse().unwrap(), &entries);
    let file = [
        record(1, 13, 1, &peer_index(&peers)),
        record(1, 13, subtype, &body),
    ];
    fs::write(path, file.concat()).unwrap();
}

#[test]
fn a_capture_is_forwarded_by_the_routes_of_a_collector_s_file() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    // Of its own routes only those of its addresses are used.
    let tables = TABLES.replace("route 198.51.100.0/24", "route 192.0.2.0/24");
    fs::write(path("tables"), tables).unwrap();
    collected(&path("rib"));
    let from = |to: [u8; 4]| Ip::new([10, 1, 0, 5].into(), to.into());
    let packets = [
        frame(&from([198, 51, 100, 7]).udp(4_000, 53, b"by the file")),
        frame(&from([192, 0, 2, 7]).udp(4_000, 53, b"by none")),
        frame(&from([10, 1, 0, 1]).udp(1, 2, b"own")),
    ];
    capture(&path("in"), 1, &packets);
    let by_the_file = |source: &[&str]| {
        let rib = path("rib");
        let routes = [&["--routes", rib.to_str().unwrap()], source].concat();
        let done = forwarded(directory.path(), &routes);
        let said = String::from_utf8(done.stderr).unwrap();
        let counted: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        (counted, said)
    };
    let gateway = "eth.dst == 02:00:00:00:00:99 && udp.dstport == 53 && !icmp";
    // The best path is the second's, by the lower address; no way leads to
    // the gateway of the first.
    for (source, lost, left) in [
        (&[][..], 1, 1),
        (&["--source", "peer-10.2.0.9"], 1, 1),
        (&["--source", "peer-10.9.9.9"], 2, 0),
    ] {
        let (counted, said) = by_the_file(source);
        let reasons = |node: &str| counted["nodes"][node]["reasons"].clone();
        assert_eq!(counted["routes"], "live", "{counted} {said}");
        assert_eq!(reasons("fib")["no-route"], lost, "{counted} {said}");
        assert_eq!(reasons("host")["no-host-port"], 1, "{counted}");
        assert_eq!(tshark(&path("out"), gateway), left);
    }
    let (_, said) = by_the_file(&["--source", "peer-10.2.0.8"]);
    assert!(
        said.contains("there are: peer-10.9.9.9, peer-10.2.0.9"),
        "{said}"
    );
}

#[test]
fn a_wrong_table_or_capture_says_what_to_do() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("tables"), "route 10.0.0.0/8 dev nowhere\n").unwrap();
    fs::write(path("good"), TABLES).unwrap();
    capture(Path::new(&path("sll")), 113, &[vec![0; 40]]);
    capture(Path::new(&path("in")), 1, &[]);
    for (tables, input, link, said) in [
        ("tables", "in", "lan", "nowhere"),
        ("good", "sll", "lan", "capture Ethernet or raw IP"),
        ("good", "in", "dmz", "no such link"),
    ] {
        let done = Command::new(program())
            .args(["forward", "--in", link, "--tables", &path(tables)])
            .args(["--pcap-in", &path(input)])
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{complaint}");
        assert!(complaint.contains(said), "{complaint}");
    }
    let two = Command::new(program()).arg("forward").output().unwrap();
    assert_eq!(two.status.code(), Some(2));
}

/// For those who translate.
const RULES: &str = "alias_address 192.0.2.1\n";

/// And where hosts may ask for ports.
const ASKED: &str = "port_range 1024-65535\npcp 10.1.0.1\n";

/// And for those who let some in.
const REDIRECTS: &str = "\
alias_address 192.0.2.1
redirect_port udp 10.1.0.2:7000 7000
redirect_port tcp 10.1.0.5:80 8080
";

/// A forwarder between two kernels: hosts 10.1.0.2 and 10.2.0.2, and
/// 2001:db8:1::2 and 2001:db8:2::2, each behind a TUN device.
struct Between {
    left: Netns,
    right: Netns,
    router: Netns,
    forward: Child,
    out: std::path::PathBuf,
    _directory: TempDir,
}

impl Between {
    /// `by` says where the tables come from.
    fn start(by: &[&str]) -> anyhow::Result<Self> {
        let directory = TempDir::new()?;
        let router = Netns::new("fwd-r")?;
        let (left, right) = (Netns::new("fwd-a")?, Netns::new("fwd-b")?);
        fs::write(directory.path().join("tables"), TABLES)?;
        fs::write(directory.path().join("rules"), RULES)?;
        fs::write(directory.path().join("redirects"), REDIRECTS)?;
        fs::write(directory.path().join("asked"), format!("{RULES}{ASKED}"))?;
        let turning = format!("{TABLES}addr 192.0.2.1/32 dev wan\n");
        fs::write(directory.path().join("turning"), turning)?;
        // What the mirror sees: links that stand for the devices.
        router.ip_batch(
            "link add lan type veth peer name lan2\nlink add wan type veth peer name wan2\n\
             link set wan mtu 1400\n\
             addr add 10.1.0.1/24 dev lan\naddr add 10.2.0.1/24 dev wan\n\
             addr add 2001:db8:1::1/64 dev lan nodad\n\
             addr add 2001:db8:2::1/64 dev wan nodad\n\
             link set lan up\nlink set lan2 up\nlink set wan up\nlink set wan2 up\n",
        )?;
        let out = directory.path().join("counters");
        let mut command = router.command(program());
        command.args(["forward", "--json", "--tun=fa=lan", "--tun=fb=wan"]);
        command.args(by).current_dir(directory.path());
        command
            .stdout(fs::File::create(&out)?)
            .stderr(Stdio::inherit());
        let forward = Child::spawn(command)?;
        for (device, netns, number) in [("fa", &left, 1), ("fb", &right, 2)] {
            wait_until(PATIENCE, "the device is there", || {
                router.ip(&["link", "show", device]).ok()
            })?;
            router.ip(&["link", "set", device, "netns", netns.name()])?;
            netns.ip_batch(&format!(
                "addr add 10.{number}.0.2/24 dev {device}\n\
                 addr add 2001:db8:{number}::2/64 dev {device} nodad\n\
                 link set {device} up\n\
                 route add default via 10.{number}.0.1\n\
                 route add 2001:db8::/32 dev {device}\n"
            ))?;
        }
        Ok(Self {
            left,
            right,
            router,
            forward,
            out,
            _directory: directory,
        })
    }

    fn answers(&self) {
        wait_until(PATIENCE, "a ping through the forwarder", || {
            let ping = ["-c", "1", "-W", "1", "10.2.0.2"];
            self.left.run("ping", &ping).ok()
        })
        .unwrap();
    }

    fn end(mut self) -> Value {
        // CAP_NET_ADMIN and, for another namespace, CAP_SYS_ADMIN.
        assert_confined(self.forward.id(), 1 << 12 | 1 << 21);
        self.forward.signal(Signal::INT).unwrap();
        self.forward.wait(PATIENCE).unwrap();
        serde_json::from_slice(&fs::read(&self.out).unwrap()).unwrap()
    }
}

#[test]
fn real_programs_talk_through_it() {
    let Some(between) = skip::unless(Between::start(&["--tables=tables"])) else {
        return;
    };
    between.answers();
    let route = between
        .left
        .run("traceroute", &["-n", "-w", "5", "-q", "1", "10.2.0.2"])
        .unwrap();
    let hops: Vec<&str> = route.lines().skip(1).collect();
    assert_eq!(hops.len(), 2, "{route}");
    assert!(
        hops[0].contains("10.1.0.1") && hops[1].contains("10.2.0.2"),
        "{route}"
    );
    // Longer than the second link takes: cut, or refused with its MTU.
    let long = ["-c", "1", "-W", "5", "-s", "1450", "-M", "dont", "10.2.0.2"];
    between.left.run("ping", &long).unwrap();
    let refused = ["-c", "1", "-W", "1", "-s", "1450", "-M", "do", "10.2.0.2"];
    assert!(between.left.run("ping", &refused).is_err());
    let cached = between.left.ip(&["route", "get", "10.2.0.2"]).unwrap();
    assert!(cached.contains("mtu 1400"), "{cached}");
    let served = TempDir::new().unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(served.path().join("file"), &content).unwrap();
    let directory = served.path().to_str().unwrap();
    let server = ["-m", "http.server", "80", "--directory", directory];
    let _server = between.right.spawn("python3", &server).unwrap();
    let got = served.path().join("got");
    wait_until(PATIENCE, "the file comes through", || {
        let got = got.to_str().unwrap();
        let fetch = ["-s", "-m", "20", "-o", got, "http://10.2.0.2/file"];
        between.left.run("curl", &fetch).ok()
    })
    .unwrap();
    assert!(fs::read(got).unwrap() == content);
    let _iperf = between.right.spawn("iperf3", &["-s"]).unwrap();
    wait_until(PATIENCE, "iperf3 runs through it", || {
        let load = ["-c", "10.2.0.2", "-t", "1", "-u", "-b", "20M", "-l", "1000"];
        between.left.run("iperf3", &load).ok()
    })
    .unwrap();
    let counted = between.end();
    assert!(
        counted["nodes"]["output"]["packets"].as_u64().unwrap() > 1_000,
        "{counted}"
    );
    assert!(
        counted["nodes"]["output"]["reasons"]["too-big"].as_u64() > Some(0),
        "{counted}"
    );
    assert_eq!(counted["tables"]["refused"], 0, "{counted}");
}

#[test]
fn the_kernel_s_tables_are_followed() {
    let Some(between) = skip::unless(Between::start(&["--workers=2"])) else {
        return;
    };
    between.answers();
    let ping = || {
        between
            .left
            .run("ping", &["-c", "1", "-W", "1", "10.2.0.2"])
            .is_ok()
    };
    let is = |wanted: bool| (ping() == wanted).then_some(());
    between
        .router
        .ip(&["route", "add", "prohibit", "10.2.0.2"])
        .unwrap();
    wait_until(PATIENCE, "the route that prohibits is obeyed", || is(false)).unwrap();
    between
        .router
        .ip(&["route", "del", "prohibit", "10.2.0.2"])
        .unwrap();
    wait_until(PATIENCE, "and forgotten", || is(true)).unwrap();
    between.router.ip(&["link", "set", "wan", "down"]).unwrap();
    wait_until(PATIENCE, "a link that is down is seen", || is(false)).unwrap();
    between.router.ip(&["link", "set", "wan", "up"]).unwrap();
    wait_until(PATIENCE, "and one that is up again", || is(true)).unwrap();
    let counted = between.end();
    let prohibited = &counted["nodes"]["fib"]["reasons"]["prohibited"];
    assert!(prohibited.as_u64() > Some(0), "{counted}");
    assert_eq!(
        counted["workers"].as_array().map(Vec::len),
        Some(2),
        "{counted}"
    );
}
