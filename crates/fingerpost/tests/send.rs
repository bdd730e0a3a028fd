//! `fingerpost send` and `receive` with a real kernel between them: each
//! way's packets looked at by `tshark`, counted at the other side, and what
//! happens when the way is bad.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{PATIENCE, assert_confined, fingerpost, program};
use lab::{Child, Netns, skip, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const KERNELS: [&str; 4] = ["sendto", "connected", "sendmmsg", "segments"];
const FRAMES: [&str; 3] = ["af-packet", "af-packet-ring", "af-xdp"];

/// Two namespaces with a link between them. The link takes no trains of
/// segments: at the far side datagrams are seen one by one.
struct Pair {
    near: Netns,
    far: Netns,
}

fn pair(tag: &str) -> Option<Pair> {
    let near = skip::unless(Netns::new(&format!("{tag}-near")))?;
    let far = skip::unless(Netns::new(&format!("{tag}-far")))?;
    let link = format!(
        "link add near address 02:00:00:00:00:01 type veth \
         peer name far address 02:00:00:00:00:02 netns {}\n\
         addr add 10.7.0.1/24 dev near\n\
         addr add 2001:db8:7::1/64 dev near nodad\n\
         link set near gso_max_segs 1 up\n",
        far.name()
    );
    near.ip_batch(&link).unwrap();
    far.ip_batch(
        "addr add 10.7.0.2/24 dev far\n\
         addr add 2001:db8:7::2/64 dev far nodad\n\
         link set far up\n",
    )
    .unwrap();
    wait_until(PATIENCE, "the link's carrier", || {
        let shown = near.ip(&["-o", "link", "show", "dev", "near"]).unwrap();
        shown.contains("LOWER_UP").then_some(())
    })
    .unwrap();
    Some(Pair { near, far })
}

/// A running `receive`, and where it listens.
struct Receiver {
    process: Child,
    port: String,
}

fn receiver(netns: Option<&Netns>, arguments: &[&str]) -> Receiver {
    let mut command = match netns {
        Some(netns) => netns.command(program()),
        None => Command::new(program()),
    };
    command.arg("receive").args(arguments).arg("--json");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Child::spawn(command).unwrap();
    let stderr = process.process().stderr.take().unwrap();
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().unwrap_or_default();
    assert!(line.starts_with("listening on"), "{line}");
    Receiver {
        port: port.to_owned(),
        process,
    }
}

impl Receiver {
    /// What it counted, once it has ended.
    fn report(&mut self) -> Value {
        assert!(self.process.wait(PATIENCE).unwrap().success());
        let mut said = String::new();
        let mut out = self.process.process().stdout.take().unwrap();
        out.read_to_string(&mut said).unwrap();
        serde_json::from_str(&said).unwrap()
    }
}

fn json(output: &Output) -> Value {
    let said = serde_json::from_slice(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_ok(), "{complaint}");
    said.unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines of tshark about the packets of a capture that pass a filter.
fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-o", "ip.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE", "-r"])
        .arg(capture)
        .args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || said.contains("cut short"),
        "{said}"
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// Captures at the far side while `work` is done.
fn captured(far: &Netns, capture: &Path, packets: usize, work: impl FnOnce()) {
    let mut command = far.command("tcpdump");
    command
        .args([
            "-i",
            "far",
            "-U",
            "--immediate-mode",
            "-B",
            "16384",
            "-s",
            "256",
            "-w",
        ])
        .arg(capture)
        .args([
            "-c",
            &packets.to_string(),
            "udp",
            "and",
            "dst",
            "port",
            "9000",
        ])
        .stderr(Stdio::piped());
    let mut tcpdump = Child::spawn(command).unwrap();
    let stderr = tcpdump.process().stderr.take().unwrap();
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening on")));
    work();
    tcpdump.wait(PATIENCE).unwrap();
}

#[test]
fn every_way_delivers_what_it_says() {
    // While a neighbour is being found the kernel keeps a few packets and
    // drops the rest, and tells no sender.
    let Some(pair) = routed("ways") else { return };
    let directory = TempDir::new().unwrap();
    for way in KERNELS.iter().chain(&FRAMES) {
        for (to, family) in [("10.7.0.2", "ip"), ("2001:db8:7::2", "ipv6")] {
            let capture = directory.path().join(format!("{way}-{family}"));
            let mut receiver = receiver(Some(&pair.far), &["9000", "--count", "600"]);
            captured(&pair.far, &capture, 600, || {
                let sent = fingerpost(
                    &pair.near,
                    &[
                        "send", to, "9000", "--by", way, "-n", "600", "--flows", "4", "-s", "100",
                        "--json", "--rate", "20k",
                    ],
                );
                let sent = json(&sent);
                assert_eq!(sent["sent_packets"], 600, "{way} {to}: {sent}");
            });
            let received = receiver.report();
            assert_eq!(received["packets"], 600, "{way} {to}: {received}");
            assert_eq!(received["bytes"], 60_000, "{way} {to}: {received}");
            assert_eq!(received["flows"], 4, "{way} {to}: {received}");
            for none in [
                "lost",
                "before_first",
                "reordered",
                "duplicates",
                "foreign_packets",
            ] {
                assert_eq!(received[none], 0, "{way} {to} {none}: {received}");
            }
            assert_eq!(received["latency"]["packets"], 600, "{way}: {received}");
            look_at(&capture, way, to, family);
        }
    }
}

/// Addresses, ports, lengths and sums of a capture of 600 packets.
fn look_at(capture: &Path, way: &str, to: &str, family: &str) {
    let source = if family == "ip" {
        "10.7.0.1"
    } else {
        "2001:db8:7::1"
    };
    let right = format!(
        "{family}.src == {source} && {family}.dst == {to} && udp.dstport == 9000 && \
         udp.length == 108 && eth.src == 02:00:00:00:00:01 && eth.dst == 02:00:00:00:00:02"
    );
    let mut ports = tshark(capture, &right, &["udp.srcport"]);
    assert_eq!(ports.len(), 600, "{way} {to}");
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 4, "{way} {to}: {ports:?}");
    // The kernel leaves its own sums to a device that is none.
    if FRAMES.contains(&way) {
        let bad = "ip.checksum.status == 0 || udp.checksum.status == 0";
        assert!(
            tshark(capture, bad, &["frame.number"]).is_empty(),
            "{way} {to}"
        );
        let good = "udp.checksum.status == 1";
        assert_eq!(tshark(capture, good, &["frame.number"]).len(), 600);
    }
}

#[test]
fn flows_differ_by_what_was_asked_for() {
    let Some(pair) = routed("flows") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    pair.far
        .ip_batch("addr add 10.7.0.3/24 dev far\naddr add 10.7.0.4/24 dev far\n")
        .unwrap();
    pair.near
        .ip_batch(
            "neigh add 10.7.0.3 lladdr 02:00:00:00:00:02 dev near nud permanent\n\
             neigh add 10.7.0.4 lladdr 02:00:00:00:00:02 dev near nud permanent\n",
        )
        .unwrap();
    for (number, (way, vary, field, source)) in [
        ("sendmmsg", "destination-address", "ip.dst", "10.7.0.1"),
        ("segments", "destination-address", "ip.dst", "10.7.0.1"),
        ("af-packet", "source-address", "ip.src", "10.7.0.100"),
        ("af-xdp", "source-port", "udp.srcport", "10.7.0.1:7000"),
    ]
    .into_iter()
    .enumerate()
    {
        let capture = directory.path().join(number.to_string());
        captured(&pair.far, &capture, 300, || {
            let sent = fingerpost(
                &pair.near,
                &[
                    "send",
                    "10.7.0.2:9000",
                    "--by",
                    way,
                    "-n",
                    "300",
                    "--flows",
                    "3",
                    "--vary",
                    vary,
                    "--source",
                    source,
                    "--batch",
                    "10",
                    "--json",
                ],
            );
            assert_eq!(json(&sent)["sent_packets"], 300, "{sent:?}");
        });
        let mut values = tshark(&capture, "udp.dstport == 9000", &[field]);
        assert_eq!(values.len(), 300, "{way} {vary}");
        values.sort();
        values.dedup();
        assert_eq!(values.len(), 3, "{way} {vary}: {values:?}");
    }
}

#[test]
fn a_rate_gives_the_count_it_promises() {
    let Some(pair) = pair("rate") else { return };
    for (way, cores) in [("sendto", "1"), ("sendmmsg", "2"), ("af-packet-ring", "1")] {
        let sent = fingerpost(
            &pair.near,
            &[
                "send",
                "10.7.0.2",
                "9000",
                "--by",
                way,
                "--rate",
                "5k",
                "--duration",
                "1.5",
                "--cores",
                cores,
                "--json",
            ],
        );
        let sent = json(&sent);
        let number = |name: &str| sent[name].as_u64().unwrap();
        // On a machine that stands still, packets are left out and counted.
        let all = number("sent_packets") + number("slipped_packets") + number("unsent_packets");
        assert_eq!(all, 7_500, "{way}: {sent}");
        assert!(sent["seconds"].as_f64().unwrap() >= 1.4, "{way}: {sent}");
    }
}

/// A datagram as `send` makes it.
fn datagram(run: u16, flow: u16, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0xf1, 0x9e];
    bytes.extend(run.to_be_bytes());
    bytes.extend(flow.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(0_u64.to_be_bytes());
    bytes
}

#[test]
fn losses_order_and_duplicates_of_several_senders_are_counted() {
    let mut receiver = receiver(
        None,
        &[
            "127.0.0.1:0",
            "--count",
            "22",
            "--per-flow",
            "--max-flows",
            "3",
        ],
    );
    let to = format!("127.0.0.1:{}", receiver.port);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |from: &UdpSocket, bytes: &[u8]| from.send_to(bytes, &to).unwrap();
    for sequence in [0, 1, 4, 2, 2, 7, 6] {
        send(&sender, &datagram(1, 0, sequence));
    }
    for sequence in 0..5 {
        send(&sender, &datagram(1, 1, sequence));
        send(&other, &datagram(1, 1, 10 + 2 * sequence));
    }
    send(&other, &datagram(2, 0, 0));
    send(&other, &datagram(2, 0, 1));
    send(&other, b"hello");
    send(&other, b"");
    send(&other, &[0xff; 2_000]);
    let report = receiver.report();
    for (name, expected) in [
        ("packets", 22),
        ("flows", 3),
        ("lost", 2 + 4),
        ("before_first", 10),
        ("reordered", 2),
        ("reordered_by_most", 2),
        ("duplicates", 1),
        ("untracked_packets", 2),
        ("foreign_packets", 3),
        ("dropped_by_socket", 0),
    ] {
        assert_eq!(report[name], expected, "{name}: {report}");
    }
    assert_eq!(report["per_flow"].as_array().unwrap().len(), 3);
}

#[test]
fn what_a_small_buffer_drops_is_told() {
    let mut receiver = receiver(None, &["127.0.0.1:0", "--idle", "1", "--buffer", "1"]);
    let to = format!("127.0.0.1:{}", receiver.port);
    // It stands still while more comes than the buffer holds.
    receiver.process.signal(Signal::STOP).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for sequence in 0..1_000 {
        sender.send_to(&datagram(1, 0, sequence), &to).unwrap();
    }
    receiver.process.signal(Signal::CONT).unwrap();
    let report = receiver.report();
    let number = |name: &str| report[name].as_u64().unwrap();
    assert!(number("dropped_by_socket") > 0, "{report}");
    assert_eq!(number("packets") + number("dropped_by_socket"), 1_000);
}

/// UDP datagrams that this namespace's sockets were given.
fn datagrams_received() -> u64 {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let names = lines.next().unwrap().split(' ');
    let mut numbers = names.zip(lines.next().unwrap().split(' '));
    let (_, number) = numbers.find(|(name, _)| *name == "InDatagrams").unwrap();
    number.parse().unwrap()
}

/// Whether a process has a handler for Ctrl-C.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines();
    let mask = lines
        .find_map(|line| line.strip_prefix("SigCgt:\t"))
        .unwrap();
    let bit = 1 << (Signal::INT.as_raw() - 1);
    u64::from_str_radix(mask, 16).unwrap() & bit != 0
}

#[test]
fn an_interrupt_ends_both_with_their_reports() {
    let mut receiver = receiver(None, &["127.0.0.1:0"]);
    assert_confined(receiver.process.id(), 0);
    let mut command = Command::new(program());
    command
        .args(["send", "127.0.0.1", &receiver.port, "--rate", "200"])
        .args(["--duration", "3600", "--json"])
        .stdout(Stdio::piped());
    let mut sender = Child::spawn(command).unwrap();
    // Its handler is there, and some of its packets are.
    let before = datagrams_received();
    wait_until(PATIENCE, "a sender that can be interrupted", || {
        let sends = datagrams_received() >= before + 20;
        (sends && catches_interrupts(sender.id())).then_some(())
    })
    .unwrap();
    // CAP_IPC_LOCK.
    assert_confined(sender.id(), 1 << 14);
    sender.signal(Signal::INT).unwrap();
    assert!(sender.wait(PATIENCE).unwrap().success());
    let mut said = String::new();
    let mut out = sender.process().stdout.take().unwrap();
    out.read_to_string(&mut said).unwrap();
    let sent: Value = serde_json::from_str(&said).unwrap();
    receiver.process.signal(Signal::INT).unwrap();
    let received = receiver.report();
    assert_eq!(
        sent["sent_packets"], received["packets"],
        "{sent} {received}"
    );
}

#[test]
fn what_cannot_be_sent_is_refused_with_advice() {
    let Some(pair) = pair("bad") else { return };
    let alone = Netns::new("alone").unwrap();
    let no_route = |way: &str| {
        let arguments = ["send", "10.9.9.9", "9", "--by", way, "-n", "1"];
        complaint(&fingerpost(&alone, &arguments))
    };
    for way in ["sendto", "connected", "sendmmsg", "segments", "af-packet"] {
        let said = no_route(way);
        assert!(
            said.contains("nreachable") || said.contains("no route"),
            "{way}: {said}"
        );
    }
    for (arguments, part) in [
        (&["10.7.0.2", "0"][..], "port 0"),
        (&["10.7.0.255", "9"], "--allow-broadcast"),
        (&["224.0.0.7", "9"], "--allow-multicast"),
        (
            &["10.7.0.2", "9", "--by", "af-packet", "-s", "1473"],
            "at most 1472",
        ),
        (
            &["10.7.0.2", "9", "--by", "segments", "-s", "1473", "-n", "9"],
            "MTU",
        ),
        (
            &["10.7.0.2", "9", "--by", "af-xdp", "--interface", "none"],
            "no interface none",
        ),
        (&["10.7.0.77", "9", "--by", "af-packet"], "--next-hop MAC"),
        (
            &["10.7.0.2", "9", "--source", "10.8.8.8", "-n", "1"],
            "no such address",
        ),
        (
            &["10.7.0.2", "9", "--by", "af-xdp", "--cores", "2"],
            "queue",
        ),
    ] {
        let all: Vec<&str> = [&["send"], arguments].concat();
        let said = complaint(&fingerpost(&pair.near, &all));
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    for way in FRAMES {
        let mut command = pair.near.command("setpriv");
        command.args([
            "--bounding-set=-net_raw,-net_admin",
            "--inh-caps=-net_raw,-net_admin",
        ]);
        let output = command
            .args([program(), "send", "10.7.0.2", "9", "--by", way, "-n", "1"])
            .output()
            .unwrap();
        let said = complaint(&output);
        assert!(said.contains("CAP_NET_RAW"), "{way}: {said}");
    }
}

#[test]
fn a_group_is_reached_when_it_is_meant() {
    let Some(pair) = pair("group") else { return };
    let directory = TempDir::new().unwrap();
    for (number, (to, allow, way, mac)) in [
        (
            "10.7.0.255",
            "--allow-broadcast",
            "sendmmsg",
            "ff:ff:ff:ff:ff:ff",
        ),
        (
            "10.7.0.255",
            "--allow-broadcast",
            "af-packet",
            "ff:ff:ff:ff:ff:ff",
        ),
        (
            "239.1.2.3",
            "--allow-multicast",
            "af-packet",
            "01:00:5e:01:02:03",
        ),
        (
            "ff15::7",
            "--allow-multicast",
            "af-packet",
            "33:33:00:00:00:07",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let capture = directory.path().join(number.to_string());
        captured(&pair.far, &capture, 3, || {
            let arguments = [
                "send",
                to,
                "9000",
                "--by",
                way,
                "-n",
                "3",
                allow,
                "--interface",
                "near",
                "--json",
            ];
            let sent = json(&fingerpost(&pair.near, &arguments));
            assert_eq!(sent["sent_packets"], 3, "{to} {way}: {sent}");
        });
        let filter = format!("eth.dst == {mac}");
        assert_eq!(
            tshark(&capture, &filter, &["frame.number"]).len(),
            3,
            "{to} {way}"
        );
    }
}

#[test]
fn a_link_that_vanishes_ends_it_with_a_report() {
    for way in ["sendmmsg", "af-packet", "af-packet-ring", "af-xdp"] {
        let Some(pair) = pair("vanish") else { return };
        let mut command = pair.near.command(program());
        command
            .args(["send", "10.7.0.2", "9000", "--by", way, "--rate", "2k"])
            .args(["--duration", "3600", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut sender = Child::spawn(command).unwrap();
        let packets = || {
            let read = pair
                .far
                .inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
            let text = read.unwrap().unwrap();
            let line = text
                .lines()
                .find(|line| line.contains("far:"))
                .unwrap_or_default();
            let number = line
                .split_whitespace()
                .nth(2)
                .and_then(|word| word.parse().ok());
            number.unwrap_or(0_u64)
        };
        // The kernel sends some of its own there.
        wait_until(PATIENCE, "packets at the far side", || {
            (packets() > 150).then_some(())
        })
        .unwrap();
        pair.near.ip(&["link", "delete", "near"]).unwrap();
        let status = sender.wait(PATIENCE).unwrap();
        let (mut out, mut said) = (String::new(), String::new());
        let process = sender.process();
        process
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        process
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(!status.success(), "{way}: {said}");
        let sent: Value = serde_json::from_str(&out).unwrap();
        assert!(
            sent["sent_packets"].as_u64().unwrap() > 100,
            "{way}: {sent}"
        );
        assert!(said.contains("ended early"), "{way}: {said}");
    }
}

#[test]
fn a_full_socket_is_waited_for_and_counted() {
    let Some(pair) = pair("full") else { return };
    let shaped = pair.near.run(
        "tc",
        &[
            "qdisc", "add", "dev", "near", "root", "tbf", "rate", "4mbit", "burst", "3000",
            "limit", "20000000",
        ],
    );
    if skip::unless(shaped).is_none() {
        return;
    }
    for way in ["sendto", "sendmmsg"] {
        let arguments = [
            "send",
            "10.7.0.2",
            "9000",
            "--by",
            way,
            "-s",
            "1000",
            "--duration",
            "1",
            "--json",
        ];
        let sent = json(&fingerpost(&pair.near, &arguments));
        assert!(sent["socket_full"].as_u64().unwrap() > 0, "{way}: {sent}");
        assert!(sent["sent_packets"].as_u64().unwrap() > 0, "{way}: {sent}");
    }
}

#[test]
fn a_next_hop_that_does_not_answer_is_named() {
    let Some(pair) = pair("silent") else { return };
    let arguments = ["send", "10.7.0.77", "9", "--duration", "1"];
    let output = fingerpost(&pair.near, &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("10.7.0.77 does not say its link-layer"),
        "{output:?}"
    );
}

#[test]
fn a_few_packets_to_a_silent_next_hop_are_lost_and_it_is_named() {
    let Some(pair) = pair("few") else { return };
    let send = |arguments: &[&str]| {
        let output = fingerpost(&pair.near, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    for way in ["sendto", "connected", "sendmmsg"] {
        // One packet fills no socket.
        let (is_done, said) = send(&["send", "10.7.0.77", "9", "--by", way, "-n", "1"]);
        assert!(is_done, "{said}");
        let name = "10.7.0.77 does not say its link-layer";
        assert!(said.contains(name), "{way}: {said}");
        // One that answers is not named, though it is asked for this packet.
        pair.near.ip(&["neigh", "flush", "dev", "near"]).unwrap();
        let (_, said) = send(&["send", "10.7.0.2", "9", "--by", way, "-n", "1"]);
        assert!(!said.contains("link-layer"), "{way}: {said}");
    }
}

/// A pair whose near side knows a router at the far side.
fn routed(tag: &str) -> Option<Pair> {
    let pair = pair(tag)?;
    pair.near
        .ip_batch(
            "neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev near nud permanent\n\
             neigh add 2001:db8:7::2 lladdr 02:00:00:00:00:02 dev near nud permanent\n\
             route add 198.51.100.0/24 via 10.7.0.2\n\
             route add 2001:db8:8::/48 via 2001:db8:7::2\n",
        )
        .unwrap();
    Some(pair)
}

#[test]
fn our_own_stack_stops_where_it_is_told() {
    let Some(pair) = routed("stops") else { return };
    for to in ["198.51.100.7", "2001:db8:8::7"] {
        for stage in ["payload", "buffer", "header", "route", "neighbour", "port"] {
            let arguments = [
                "send",
                to,
                "9000",
                "--by",
                "own",
                "--stop-after",
                stage,
                "-n",
                "10k",
                "--cores",
                "2",
                "--json",
            ];
            let sent = json(&fingerpost(&pair.near, &arguments));
            assert_eq!(sent["sent_packets"], 10_000, "{to} {stage}: {sent}");
            assert_eq!(sent["refused_packets"], 0, "{to} {stage}: {sent}");
        }
    }
    let said = fingerpost(
        &pair.near,
        &[
            "send",
            "10.7.0.2",
            "9",
            "--by",
            "sendto",
            "--stop-after",
            "route",
        ],
    );
    assert!(complaint(&said).contains("--by own"));
}

#[test]
fn our_own_stack_delivers_by_mirrored_routes() {
    let Some(pair) = routed("own") else { return };
    let directory = TempDir::new().unwrap();
    for (number, (to, into)) in [
        ("198.51.100.7", "af-packet"),
        ("10.7.0.2", "af-packet-ring"),
        ("198.51.100.7", "af-xdp"),
        ("2001:db8:8::7", "af-packet"),
    ]
    .into_iter()
    .enumerate()
    {
        let capture = directory.path().join(number.to_string());
        captured(&pair.far, &capture, 500, || {
            let arguments = [
                "send", to, "9000", "--by", "own", "--into", into, "-n", "500", "--flows", "5",
                "--rate", "20k", "--json",
            ];
            let sent = json(&fingerpost(&pair.near, &arguments));
            assert_eq!(sent["sent_packets"], 500, "{to} {into}: {sent}");
        });
        let family = if to.contains(':') { "ipv6" } else { "ip" };
        let right = format!(
            "{family}.dst == {to} && udp.length == 72 && udp.checksum.status == 1 && \
             eth.src == 02:00:00:00:00:01 && eth.dst == 02:00:00:00:00:02"
        );
        let mut ports = tshark(&capture, &right, &["udp.srcport"]);
        assert_eq!(ports.len(), 500, "{to} {into}");
        ports.sort();
        ports.dedup();
        assert_eq!(ports.len(), 5, "{to} {into}");
        let bad = tshark(&capture, "ip.checksum.status == 0", &["frame.number"]);
        assert!(bad.is_empty(), "{to} {into}");
    }
}

#[test]
fn our_own_stack_keeps_the_order() {
    let Some(pair) = routed("order") else { return };
    for into in FRAMES {
        let mut receiver = receiver(Some(&pair.far), &["9000", "--count", "600"]);
        let arguments = [
            "send", "10.7.0.2", "9000", "--by", "own", "--into", into, "-n", "600", "--flows", "4",
            "--rate", "20k", "--json",
        ];
        let sent = json(&fingerpost(&pair.near, &arguments));
        assert_eq!(sent["sent_packets"], 600, "{into}: {sent}");
        let received = receiver.report();
        assert_eq!(received["packets"], 600, "{into}: {received}");
        for none in ["lost", "before_first", "reordered", "duplicates"] {
            assert_eq!(received[none], 0, "{into} {none}: {received}");
        }
    }
}

#[test]
fn our_own_stack_counts_what_it_cannot_send() {
    let Some(pair) = routed("drops") else { return };
    let arguments = [
        "send",
        "10.7.0.2",
        "9000",
        "--by",
        "own",
        "-n",
        "300",
        "--flows",
        "3",
        "--vary",
        "destination-address",
        "--json",
    ];
    let sent = json(&fingerpost(&pair.near, &arguments));
    assert_eq!(sent["sent_packets"], 100, "{sent}");
    assert_eq!(sent["stack"]["dropped"]["unresolved"], 200, "{sent}");
    let long = [
        "send", "10.7.0.2", "9000", "--by", "own", "-n", "10", "-s", "1473", "--json",
    ];
    let output = fingerpost(&pair.near, &long);
    let sent = json(&output);
    assert_eq!(sent["stack"]["dropped"]["too_long"], 10, "{sent}");
    assert!(complaint(&output).contains("nothing could be sent"));
}

#[test]
fn our_own_stack_writes_into_a_tun_device() {
    let Some(netns) = skip::unless(Netns::new("tun")) else {
        return;
    };
    if skip::unless(skip::tun()).is_none() {
        return;
    }
    netns
        .ip_batch(
            "tuntap add mode tun name into\n\
             link set into up\n\
             addr add 10.8.0.1/24 dev into\n",
        )
        .unwrap();
    let arguments = [
        "send", "10.8.0.7", "9000", "--by", "own", "--into", "tun:into", "-n", "200", "--json",
    ];
    let sent = json(&fingerpost(&netns, &arguments));
    assert_eq!(sent["sent_packets"], 200, "{sent}");
    let shown = netns
        .ip(&["-s", "-j", "link", "show", "dev", "into"])
        .unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[0]["stats64"]["rx"]["packets"], 200, "{shown}");
}

#[test]
fn the_profile_shows_every_stage_on_one_core_and_on_all() {
    let Some(pair) = routed("profile") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let svg = directory.path().join("split.svg");
    let arguments = [
        "send",
        "198.51.100.7",
        "9000",
        "--by",
        "own",
        "--profile",
        "--duration",
        "0.4",
        "--svg",
        svg.to_str().unwrap(),
    ];
    let text = fingerpost(&pair.near, &arguments);
    let text = String::from_utf8(text.stdout).unwrap();
    let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let shown = json(&fingerpost(&pair.near, &with_json));
    for side in shown["sides"].as_array().unwrap() {
        assert_eq!(side["stages"].as_array().unwrap().len(), 6, "{shown}");
        assert!(side["pps"].as_f64().unwrap() > 0.0, "{shown}");
    }
    for stage in ["payload", "buffer", "header", "route", "neighbour", "port"] {
        assert!(text.contains(&format!("\n{stage} ")), "{text}");
    }
    assert!(text.contains("1 core:") && text.contains('#'), "{text}");
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.contains("<polyline") && picture.contains("neighbour"));
}
