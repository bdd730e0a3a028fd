//! `fingerpost nat run` by itself: capture files, and between two TUN
//! devices, with real programs on both sides and `tshark` to check sums.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{PATIENCE, assert_confined, program};
use lab::{Child, Netns, skip, wait_until};
use packet::build::{Ip, Segment};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: &str = "198.51.100.2";
/// What tshark calls a sum that is wrong, of whatever protocol.
const BAD_SUMS: &str = "ip.checksum.status == 0 || tcp.checksum.status == 0 || \
                        udp.checksum.status == 0 || icmp.checksum.status == 0";

/// Runs tshark over a capture; the lines that it writes.
fn tshark(capture: &Path, filter: &str) -> Vec<String> {
    let output = Command::new("tshark")
        .args(["-n", "-o", "ip.check_checksum:TRUE"])
        .args(["-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE", "-r"])
        .arg(capture)
        .args(["-Y", filter])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    // It does not mind a last packet that is cut off by tcpdump's end.
    assert!(
        output.status.success() || complaint.contains("cut short"),
        "{complaint}"
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// A capture of raw IP packets, a second apart.
fn raw_capture(path: &Path, packets: &[Vec<u8>]) {
    fs::write(path, common::capture(common::RAW, packets)).unwrap();
}

fn run(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(["nat", "run"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_capture_is_translated_by_its_own_time() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (input, output, rules) = (path("in"), path("out"), path("rules"));
    let (inside, remote) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 7));
    let question = Ip::new(inside, remote).udp(4_000, 53, b"question");
    let answer = Ip::new(remote, ALIAS).udp(53, 4_000, b"answer");
    let knock = Ip::new(remote, ALIAS).udp(9, 8_080, b"knock");
    let stray = Ip::new(remote, ALIAS).udp(9, 9_999, b"stray");
    let mut packets = vec![question, answer.clone(), knock, stray];
    // By the time of the capture the flow has died long before.
    packets.extend(vec![
        Ip::new(inside, Ipv4Addr::new(10, 0, 0, 3))
            .udp(1, 2, b"");
        600
    ]);
    packets.push(answer);
    raw_capture(Path::new(&input), &packets);
    fs::write(&rules, "same_ports\nredirect_port udp 10.0.0.5:80 8080\n").unwrap();
    let done = run(&[
        "--alias",
        "192.0.2.1",
        "--rules",
        &rules,
        "--pcap-in",
        &input,
        "--pcap-out",
        &output,
        "--json",
    ]);
    assert!(done.status.success(), "{done:?}");
    let counted: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(counted["out"]["translated"], 1, "{counted}");
    assert_eq!(counted["in"]["translated"], 2, "{counted}");
    assert_eq!(counted["in"]["no_mapping"], 2, "{counted}");
    assert_eq!(counted["left_alone"], 600, "{counted}");
    let output = Path::new(&output);
    assert_eq!(tshark(output, BAD_SUMS), Vec::<String>::new());
    for (expected, times) in [
        ("ip.src == 192.0.2.1 && udp.srcport == 4000", 1),
        ("ip.dst == 10.0.0.2 && udp.dstport == 4000", 1),
        ("ip.dst == 10.0.0.5 && udp.dstport == 80", 1),
        ("ip.dst == 192.0.2.1", 0),
    ] {
        assert_eq!(tshark(output, expected).len(), times, "{expected}");
    }
}

#[test]
fn the_largest_segment_is_lowered_both_ways() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (inside, remote) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 7));
    let syn = |from: Ipv4Addr, to: Ipv4Addr, mss: u16| {
        let [high, low] = mss.to_be_bytes();
        Ip::new(from, to).tcp(&Segment {
            source_port: 4_000,
            destination_port: 80,
            flags: packet::tcp::SYN,
            options: &[1, 2, 4, high, low, 1, 1, 0],
            ..Segment::default()
        })
    };
    let packets = [
        syn(inside, remote, 1_460),
        syn(remote, ALIAS, 8_960),
        syn(inside, Ipv4Addr::new(198, 51, 100, 8), 1_300),
    ];
    raw_capture(Path::new(&path("in")), &packets);
    fs::write(path("rules"), "redirect_port tcp 10.0.0.5:80 80\n").unwrap();
    let (rules, input, output) = (path("rules"), path("in"), path("out"));
    let done = run(&[
        "--alias=192.0.2.1",
        "--rules",
        &rules,
        "--clamp-mss=1400",
        "--pcap-in",
        &input,
        "--pcap-out",
        &output,
    ]);
    assert!(done.status.success(), "{done:?}");
    let output = Path::new(&output);
    assert_eq!(tshark(output, BAD_SUMS), Vec::<String>::new());
    for (expected, times) in [
        ("tcp.options.mss_val == 1400", 2),
        ("tcp.options.mss_val == 1300", 1),
    ] {
        assert_eq!(tshark(output, expected).len(), times, "{expected}");
    }
}

#[test]
fn fragments_of_a_capture_wait_for_their_first_one() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (inside, remote) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 7));
    let whole = Ip::new(inside, remote).udp(4_000, 53, &[7; 1_000]);
    let (first, second) = (fragment(&whole, 0, 512), fragment(&whole, 512, 1_008));
    raw_capture(&path("in"), &[second, first]);
    let (input, output) = (path("in"), path("out"));
    let done = run(&[
        "--alias=192.0.2.1",
        "--pcap-in",
        input.to_str().unwrap(),
        "--pcap-out",
        output.to_str().unwrap(),
    ]);
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.contains("1 fragment waiting"), "{said}");
    assert_eq!(tshark(&output, "ip.src == 192.0.2.1").len(), 2);
    assert_eq!(tshark(&output, "udp.length == 1008").len(), 1);
    assert_eq!(tshark(&output, BAD_SUMS), Vec::<String>::new());
}

/// The part of a packet's payload from `from` to `to`, as a fragment.
fn fragment(whole: &[u8], from: usize, to: usize) -> Vec<u8> {
    let payload = &whole[20..];
    let mut part = [&whole[..20], &payload[from..to]].concat();
    let more = if to < payload.len() { 0x2000 } else { 0 };
    let len = part.len() as u16;
    part[2..4].copy_from_slice(&len.to_be_bytes());
    part[6..8].copy_from_slice(&(more | (from as u16 / 8)).to_be_bytes());
    packet::Ipv4::new(&mut part[..]).unwrap().fill_checksum();
    part
}

#[test]
fn what_is_wrong_is_said_and_ends_with_its_status() {
    let directory = TempDir::new().unwrap();
    let rules = directory.path().join("rules");
    fs::write(&rules, "redirect_port tcp 10.0.0.5:80\n").unwrap();
    let rules = rules.to_str().unwrap();
    for (arguments, status, complaint) in [
        (&[][..], 2, "--pcap-in"),
        (&["--pcap-in", "x", "--tun", "a", "b"], 2, "cannot be used"),
        (&["--tun", "a"], 2, "2 values"),
        (&["--ports", "9-8", "--pcap-in", "x"], 2, "the lower first"),
        (&["--pcap-in", "x"], 1, "--alias"),
        (
            &["--alias=192.0.2.1", "--pcap-in", "/nowhere/x.pcap"],
            1,
            "/nowhere/x.pcap",
        ),
        (
            &["--alias=192.0.2.1", "--pcap-in", rules],
            1,
            "neither pcap nor pcapng",
        ),
        (&["--rules", rules, "--pcap-in", "x"], 1, "rules:1:"),
    ] {
        let done = run(arguments);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
}

/// A client, the translator between two TUN devices, a router and a server
/// behind it; what the translator wrote is captured on both sides.
struct Trial {
    client: Netns,
    router: Netns,
    server: Netns,
    nat: Child,
    captures: Vec<(Child, PathBuf)>,
    directory: TempDir,
    _middle: Netns,
}

impl Trial {
    /// `None`, and counted as skipped, where it cannot be.
    fn new() -> Option<Self> {
        Self::with("")
    }

    /// With rules in their file.
    fn with(rules: &str) -> Option<Self> {
        skip::unless(skip::tun())?;
        let client = skip::unless(Netns::new("natclient"))?;
        let [middle, router, server] =
            ["nat", "natrouter", "natserver"].map(|tag| Netns::new(tag).unwrap());
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("rules");
        fs::write(&path, rules).unwrap();
        let mut command = middle.command(program());
        command
            .args(["nat", "run", "--json", "--alias", "192.0.2.1", "--rules"])
            .arg(&path)
            .args(["--tun", "fpin", "fpout"])
            .stdout(Stdio::piped());
        let nat = Child::spawn(command).unwrap();
        for (device, to) in [("fpin", &client), ("fpout", &router)] {
            wait_until(PATIENCE, device, || {
                middle.ip(&["link", "show", device]).ok()
            })
            .unwrap();
            let moved = ["link", "set", device, "netns", to.name()];
            middle.ip(&moved).unwrap();
        }
        address(&client, &router, &server);
        let mut trial = Self {
            client,
            router,
            server,
            nat,
            captures: Vec::new(),
            directory,
            _middle: middle,
        };
        trial.capture();
        Some(trial)
    }

    /// Captures what the translator writes into both devices.
    fn capture(&mut self) {
        for (netns, device) in [(&self.client, "fpin"), (&self.router, "fpout")] {
            let path = self.directory.path().join(device);
            let mut command = netns.command("tcpdump");
            command
                .args(["-i", device, "-Q", "in", "--immediate-mode"])
                .args(["-U", "-Z", "root", "-w"])
                .arg(&path)
                .stderr(Stdio::null());
            let tcpdump = Child::spawn(command).unwrap();
            wait_until(PATIENCE, "tcpdump's file", || {
                fs::metadata(&path).ok().filter(|file| file.len() >= 24)
            })
            .unwrap();
            self.captures.push((tcpdump, path));
        }
    }

    fn client(&self, program: &str, arguments: &[&str]) -> String {
        self.client.run(program, arguments).unwrap()
    }

    /// Starts a server, and waits until it listens on its TCP port.
    fn serve(&self, port: u16, program: &str, arguments: &[&str]) -> Child {
        self.serve_in(&self.server, port, program, arguments)
    }

    fn serve_in(&self, netns: &Netns, port: u16, program: &str, arguments: &[&str]) -> Child {
        let mut command = netns.command(program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Child::spawn(command).unwrap();
        let listening = format!(":{port}");
        wait_until(PATIENCE, program, || {
            let shown = netns.run("ss", &["-Hltn"]).unwrap();
            let is_there = shown.split_whitespace().any(|w| w.ends_with(&listening));
            is_there.then_some(())
        })
        .unwrap();
        child
    }

    /// Ends the translator; no sum that it wrote was wrong.
    fn end(mut self) -> Value {
        for (_, path) in &self.captures {
            // A capture hears of a packet a moment behind it, and of nothing
            // any more once its device is gone.
            wait_until(PATIENCE, "a packet in the capture", || {
                fs::metadata(path).ok().filter(|file| file.len() > 24)
            })
            .unwrap();
        }
        self.nat.signal(Signal::INT).unwrap();
        assert!(self.nat.wait(PATIENCE).unwrap().success());
        let stdout = self.nat.process().stdout.take().unwrap();
        let counted: Value = serde_json::from_reader(stdout).unwrap();
        for (tcpdump, path) in &mut self.captures {
            tcpdump.signal(Signal::INT).unwrap();
            tcpdump.wait(PATIENCE).unwrap();
            let packets = tshark(path, "ip").len();
            assert!(packets > 0, "{}", path.display());
            assert_eq!(tshark(path, BAD_SUMS), Vec::<String>::new());
        }
        assert_eq!(counted["out"]["malformed"], 0, "{counted}");
        assert_eq!(counted["in"]["malformed"], 0, "{counted}");
        counted
    }
}

fn address(client: &Netns, router: &Netns, server: &Netns) {
    client
        .ip_batch(
            "addr add 10.0.0.2/24 dev fpin\n\
             link set fpin up\n\
             route add default dev fpin\n",
        )
        .unwrap();
    let pair = [
        "link",
        "add",
        "wire",
        "type",
        "veth",
        "peer",
        "name",
        "wire",
        "netns",
        server.name(),
    ];
    router.ip(&pair).unwrap();
    router
        .ip_batch(
            "addr add 192.0.2.2/24 dev fpout\n\
             link set fpout up\n\
             addr add 198.51.100.1/24 dev wire\n\
             link set wire up\n",
        )
        .unwrap();
    router.sysctl("net/ipv4/ip_forward", "1").unwrap();
    server
        .ip_batch(
            "addr add 198.51.100.2/24 dev wire\n\
             link set wire up\n\
             route add default via 198.51.100.1\n",
        )
        .unwrap();
    // The first packet of all finds its neighbour, and the wire its carrier.
    wait_until(PATIENCE, "the way from client to server", || {
        client.run("ping", &["-c1", "-W1", SERVER]).ok()
    })
    .unwrap();
}

#[test]
fn ping_and_traceroute_see_through() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let pinged = trial.client("ping", &["-c5", "-i0.2", "-W5", SERVER]);
    assert!(pinged.contains(" 0% packet loss"), "{pinged}");
    let large = trial.client("ping", &["-c2", "-i0.2", "-W5", "-s8000", SERVER]);
    assert!(large.contains(" 0% packet loss"), "{large}");
    // The router's errors and the server's find their way to the client.
    for kind in ["--udp", "--icmp"] {
        let arguments = [kind, "-n", "-q1", "-w5", "-m4", SERVER];
        let hops = trial.client("traceroute", &arguments);
        let hop = |number: usize| hops.lines().nth(number).unwrap_or_default().to_owned();
        assert!(hop(1).contains("192.0.2.2"), "{kind}: {hops}");
        assert!(hop(2).contains(SERVER), "{kind}: {hops}");
    }
    // Nothing of the inside was seen outside.
    let outside = trial.captures[1].1.clone();
    assert_eq!(tshark(&outside, "ip.src == 10.0.0.0/8").len(), 0);
    assert_confined(trial.nat.id(), 0);
    trial.end();
}

/// vsftpd's: anonymous, reading only, without the rights it would take away.
fn ftp_configuration(trial: &Trial) -> String {
    let directory = trial.directory.path();
    fs::create_dir(directory.join("empty")).unwrap();
    let place = directory.display();
    let path = directory.join("ftp.conf");
    let text = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nno_anon_password=YES\n\
         anon_root={place}\nsecure_chroot_dir={place}/empty\nlocal_enable=NO\n\
         run_as_launching_user=YES\nallow_writeable_chroot=YES\nxferlog_enable=NO\n\
         seccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nconnect_from_port_20=NO\n"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn curl_fetches_by_http_and_by_ftp_of_every_kind() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let text = "all of it\n".repeat(50_000);
    fs::write(trial.directory.path().join("file"), &text).unwrap();
    let _http = trial.serve(80, "python3", &["-m", "http.server", "80"]);
    let _ftp = trial.serve(21, "vsftpd", &[&ftp_configuration(&trial)]);
    let (http, ftp) = (
        format!("http://{SERVER}/file"),
        format!("ftp://{SERVER}/file"),
    );
    for (what, arguments) in [
        ("HTTP", &[http.as_str()][..]),
        ("FTP, EPSV", &[&ftp]),
        ("FTP, PASV", &["--disable-epsv", &ftp]),
        ("FTP, EPRT", &["--ftp-port", "-", &ftp]),
        ("FTP, PORT", &["--ftp-port", "-", "--disable-eprt", &ftp]),
    ] {
        let usual = ["--silent", "--show-error", "--max-time", "30"];
        let got = trial.client("curl", &[&usual[..], arguments].concat());
        assert!(got == text, "{what}: {} bytes", got.len());
    }
    // Again and again over one connection: the sequence numbers stay right.
    let many: Vec<&str> = std::iter::repeat_n(ftp.as_str(), 5).collect();
    let usual = ["--silent", "--show-error", "--max-time", "30"];
    let active = ["--ftp-port", "-", "--disable-eprt"];
    let got = trial.client("curl", &[&usual[..], &active, &many].concat());
    assert!(got == text.repeat(5), "{} bytes", got.len());
    trial.end();
}

/// By the outside address: each packet of the control connection is changed
/// by a helper on its way out, and its numbers by the other's on its way in.
#[test]
fn ftp_of_every_kind_between_two_hosts_inside() {
    let rules = "redirect_port tcp 10.0.0.3:21 192.0.2.1:21\n";
    let Some(trial) = Trial::with(rules) else {
        return;
    };
    let second = ["addr", "add", "10.0.0.3/24", "dev", "fpin"];
    trial.client.ip(&second).unwrap();
    let text = "all of it\n".repeat(50_000);
    fs::write(trial.directory.path().join("file"), &text).unwrap();
    let configuration = ftp_configuration(&trial);
    let _ftp = trial.serve_in(&trial.client, 21, "vsftpd", &[&configuration]);
    let ftp = format!("ftp://{ALIAS}/file");
    let usual = ["--silent", "--show-error", "--max-time", "30"];
    for (what, arguments) in [
        ("EPSV", &[][..]),
        ("PASV", &["--disable-epsv"]),
        ("EPRT", &["--ftp-port", "10.0.0.2"]),
        ("PORT", &["--ftp-port", "10.0.0.2", "--disable-eprt"]),
    ] {
        // Several transfers over one control connection.
        let arguments = [&usual[..], arguments, &[ftp.as_str(); 3]].concat();
        let got = trial.client("curl", &arguments);
        assert!(got == text.repeat(3), "{what}: {} bytes", got.len());
    }
    // Something leaves as well, for the capture of that side.
    trial.client("ping", &["-c1", "-W5", SERVER]);
    let counted = trial.end();
    let turned = counted["out"]["hairpinned"].as_u64();
    assert!(turned > Some(100), "{counted}");
}

#[test]
fn tcp_of_many_streams() {
    let Some(trial) = Trial::new() else {
        return;
    };
    for way in [&[][..], &["--reverse"]] {
        let _server = trial.serve(5_201, "iperf3", &["--server", "--one-off"]);
        let usual = ["--client", SERVER, "--json", "-P20", "-t2", "-b4M"];
        let report = trial.client("iperf3", &[&usual[..], way].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        let streams = report["end"]["streams"].as_array().unwrap();
        assert_eq!(streams.len(), 20);
        for stream in streams {
            let bytes = stream["receiver"]["bytes"].as_u64();
            assert!(bytes > Some(0), "{way:?}: {stream}");
        }
    }
    let counted = trial.end();
    assert!(counted["flows"]["made"].as_u64() >= Some(40), "{counted}");
}

#[test]
fn udp_of_all_sizes_with_fragments() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let bound = |netns: &Netns, port: u16| {
        let socket = netns.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)));
        let socket = socket.unwrap().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let (server, client) = (bound(&trial.server, 7), bound(&trial.client, 0));
    let few = (0..64)
        .chain(1_440..1_520)
        .chain([2_952, 2_953, 4_000, 9_000]);
    let sizes: Vec<usize> = few.chain([16_000, 32_768, 65_000, 65_507]).collect();
    let count = sizes.len();
    let echo = thread::spawn(move || {
        let mut room = vec![0; 65_536];
        for _ in 0..count {
            let (len, from) = server.recv_from(&mut room).unwrap();
            assert_eq!(from.ip(), ALIAS);
            server.send_to(&room[..len], from).unwrap();
        }
    });
    let mut room = vec![0; 65_536];
    for size in sizes {
        let sent: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
        client.send_to(&sent, (SERVER, 7)).unwrap();
        let len = client.recv(&mut room).unwrap();
        assert!(room[..len] == sent, "{size}: {len} bytes came back");
    }
    echo.join().unwrap();
    trial.end();
}

/// Sends to the alias until the client gets it, from a port that is new each
/// time.
fn knocks(trial: &Trial, client: &UdpSocket, to: u16) {
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    wait_until(PATIENCE, "a packet by the redirect", || {
        let sent = trial.server.inside(|| {
            let server = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            server.send_to(b"knock", (ALIAS, to)).unwrap()
        });
        assert_eq!(sent.unwrap(), 5);
        client.recv(&mut [0; 16]).ok()
    })
    .unwrap();
}

#[test]
fn signals_read_the_rules_again_and_write_the_statistics() {
    let Some(mut trial) = Trial::new() else {
        return;
    };
    let rules = trial.directory.path().join("rules");
    let inside = |port: u16| {
        let bound = trial.client.inside(|| UdpSocket::bind(("10.0.0.2", port)));
        bound.unwrap().unwrap()
    };
    let (first, second) = (inside(7_000), inside(7_001));
    fs::write(&rules, "redirect_port udp 10.0.0.2:7000 7000\n").unwrap();
    trial.nat.signal(Signal::HUP).unwrap();
    knocks(&trial, &first, 7_000);
    // With a wrong line all stays as it was.
    fs::write(&rules, "redirect_porf udp\n").unwrap();
    trial.nat.signal(Signal::HUP).unwrap();
    knocks(&trial, &first, 7_000);
    let rule = "redirect_port udp 10.0.0.2:7001 7001\n";
    fs::write(&rules, rule).unwrap();
    trial.nat.signal(Signal::HUP).unwrap();
    knocks(&trial, &second, 7_001);
    trial.nat.signal(Signal::USR1).unwrap();
    let stdout = trial.nat.process().stdout.as_mut().unwrap();
    // Nothing is written behind it before the end.
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let so_far: Value = serde_json::from_str(&line).unwrap();
    assert!(so_far["in"]["translated"].as_u64() >= Some(3), "{so_far}");
    // Something goes the other way too.
    let sent = trial.client.inside(|| second.send_to(b"out", (SERVER, 9)));
    assert_eq!(sent.unwrap().unwrap(), 3);
    trial.end();
}

/// The messages that a telephone has heard, by its own record.
fn heard(record: &Path) -> Vec<String> {
    let text = fs::read_to_string(record).unwrap().replace('\r', "");
    let all = text.split("-----------------------------------------------");
    let heard = all.filter_map(|part| part.split_once("UDP message received"));
    // The message stands behind a line about its length, and an empty one.
    let messages = heard.filter_map(|(_, message)| message.split_once("\n\n"));
    messages.map(|(_, message)| message.to_owned()).collect()
}

#[test]
fn a_telephone_calls_by_sip_and_its_media_find_it() {
    let Some(trial) = Trial::with("helper sip\n") else {
        return;
    };
    let record = |name: &str| trial.directory.path().join(name);
    let mut called = trial.server.command("sipp");
    called
        .args(["-sn", "uas", "-i", SERVER, "-p", "5060", "-m", "1"])
        .args(["-nostdin", "-timeout", "60", "-trace_msg", "-message_file"])
        .arg(record("called"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut called = Child::spawn(called).unwrap();
    wait_until(PATIENCE, "a telephone that waits", || {
        let shown = trial.server.run("ss", &["-Hlun"]).unwrap();
        shown.contains(":5060").then_some(())
    })
    .unwrap();
    let caller = record("caller");
    let to = format!("{SERVER}:5060");
    let arguments = [
        &["-sn", "uac", &to, "-i", "10.0.0.2", "-p", "5060"][..],
        &["-mp", "6000", "-m", "1", "-nostdin", "-timeout", "60"],
        &["-trace_msg", "-message_file", caller.to_str().unwrap()],
    ];
    trial.client("sipp", &arguments.concat());
    // The telephone has hung up, and its port for media is free again; the
    // way to it stands for a while.
    let media = trial
        .client
        .inside(|| UdpSocket::bind(("10.0.0.2", 6_000)).unwrap());
    let media = media.unwrap();
    assert!(called.wait(PATIENCE).unwrap().success());
    // Who is called knows the caller by the alias alone.
    let invite = heard(&record("called")).remove(0);
    for line in [
        "Via: SIP/2.0/UDP 192.0.2.1:",
        "Contact: sip:sipp@192.0.2.1:",
    ] {
        assert!(invite.contains(line), "{invite}");
    }
    let (head, body) = invite.split_once("\n\n").unwrap();
    let body = body.trim_end_matches('\n');
    assert!(
        body.contains("\nc=IN IP4 192.0.2.1\n") && !body.contains("10.0.0.2"),
        "{body}"
    );
    let length = head.split("Content-Length:").nth(1).unwrap();
    let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
    // Each line ends with two characters there.
    assert_eq!(length, body.len() + 1 + body.lines().count(), "{invite}");
    // The caller hears answers to what it has sent.
    let answers = heard(&caller);
    assert!(answers.len() >= 3);
    for answer in answers {
        assert!(
            answer.contains("Via: SIP/2.0/UDP 10.0.0.2:5060;"),
            "{answer}"
        );
    }
    let port = body.split("m=audio ").nth(1).unwrap();
    let port = port.split(' ').next().unwrap().parse().unwrap();
    knocks(&trial, &media, port);
    trial.end();
}
