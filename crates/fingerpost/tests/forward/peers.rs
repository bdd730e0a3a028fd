//! Real programs over IPv6, through a translation, with the router itself,
//! and under rules with several tables.

use std::fs;
use std::path::Path;
use std::process::Command;

use lab::{Netns, skip, wait_until};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Between, PATIENCE};

/// The address of `Between`'s translation.
const ALIAS: &str = "192.0.2.1";
/// Sends datagrams back: to port 7000, until it is ended.
const ECHO: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 7000))
while True:
    data, sender = s.recvfrom(65535)
    s.sendto(data, sender)
";
/// Asks for one back that goes in pieces.
const ASK: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
data = bytes(at % 251 for at in range(4000))
s.sendto(data, ('10.2.0.2', 7000))
assert s.recvfrom(65535)[0] == data
";

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_until(PATIENCE, what, || is_so().then_some(())).unwrap();
}

fn pings(from: &Netns, to: &str) -> bool {
    from.run("ping", &["-c", "1", "-W", "1", to]).is_ok()
}

/// A file of a server in a namespace, fetched from another one.
fn fetches(server: &Netns, client: &Netns, host: &str) {
    let served = TempDir::new().unwrap();
    let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(served.path().join("file"), &content).unwrap();
    let directory = served.path().to_str().unwrap();
    let bound = if host.contains(':') { "::" } else { "0.0.0.0" };
    let arguments = ["-m", "http.server", "80", "--bind", bound];
    let arguments = [&arguments[..], &["--directory", directory]].concat();
    let _server = server.spawn("python3", &arguments).unwrap();
    let got = served.path().join("got");
    let url = format!("http://{host}/file");
    until("the file comes through", || {
        let to = ["-g", "-s", "-m", "20", "-o", got.to_str().unwrap(), &url];
        client.run("curl", &to).is_ok()
    });
    assert!(fs::read(&got).unwrap() == content);
}

#[test]
fn ipv6_programs_talk_through_it() {
    let Some(between) = skip::unless(Between::start(&["--tables=tables"])) else {
        return;
    };
    let (left, right) = (&between.left, &between.right);
    let far = "2001:db8:2::2";
    until("a ping through the forwarder", || pings(left, far));
    let route = left.run("traceroute", &["-6", "-n", "-w", "5", "-q", "1", far]);
    let route = route.unwrap();
    let hops: Vec<&str> = route.lines().skip(1).collect();
    assert_eq!(hops.len(), 2, "{route}");
    assert!(hops[0].contains("2001:db8:1::1") && hops[1].contains(far));
    // Too long for the second link: its sender is told, and cuts it itself.
    let long = ["-c", "1", "-W", "2", "-s", "1450", far];
    until("a long ping in pieces", || left.run("ping", &long).is_ok());
    let cached = left.ip(&["route", "get", far]).unwrap();
    assert!(cached.contains("mtu 1400"), "{cached}");
    fetches(right, left, "[2001:db8:2::2]");
    let _iperf = right.spawn("iperf3", &["-s"]).unwrap();
    until("iperf3 runs through it", || {
        let load = ["-6", "-c", far, "-t", "1", "-u", "-b", "20M", "-l", "1000"];
        left.run("iperf3", &load).is_ok()
    });
    let counted = between.end();
    let nodes = &counted["nodes"];
    assert!(nodes["ipv6"]["packets"].as_u64() > Some(1_000), "{counted}");
    let told = &nodes["output"]["reasons"];
    assert!(told["too-big"].as_u64() > Some(0), "{counted}");
    assert!(told["hops-exceeded"].as_u64() > Some(0), "{counted}");
}

/// Lines about what a capture holds, with all checksums looked at.
fn found(capture: &Path, filter: &str) -> String {
    let mut tshark = Command::new("tshark");
    for of in ["ip", "tcp", "udp"] {
        tshark.args(["-o", &format!("{of}.check_checksum:TRUE")]);
    }
    tshark.arg("-n").arg("-r").arg(capture).args(["-Y", filter]);
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_talk_through_a_translation() {
    let by = ["--tables=tables", "--nat=rules", "--outside=wan"];
    let Some(between) = skip::unless(Between::start(&by)) else {
        return;
    };
    let (left, right) = (&between.left, &between.right);
    let directory = TempDir::new().unwrap();
    let capture = |device: &str| directory.path().join(device);
    let mut listeners = [("fa", left), ("fb", right)].map(|(device, netns)| {
        let file = capture(device);
        let options = ["-U", "--immediate-mode", "-s", "2048", "-Z", "root"];
        let listen = [&options[..], &["-i", device, "-w", file.to_str().unwrap()]];
        let listener = netns.spawn("tcpdump", &listen.concat()).unwrap();
        until("the capture has begun", || {
            fs::metadata(&file).is_ok_and(|file| file.len() > 0)
        });
        listener
    });
    until("a ping through the translation", || pings(left, "10.2.0.2"));
    fetches(right, left, "10.2.0.2");
    let _echo = right.spawn("python3", &["-c", ECHO]).unwrap();
    until("a datagram in pieces comes back", || {
        left.run("python3", &["-c", ASK]).is_ok()
    });
    // Nobody from outside gets in who was not asked.
    assert!(!pings(right, ALIAS));
    for listener in &mut listeners {
        listener.signal(Signal::INT).unwrap();
        listener.wait(PATIENCE).unwrap();
    }
    let counted = between.end();
    assert!(counted["nodes"]["nat"]["packets"].as_u64() > Some(100));
    assert_eq!(found(&capture("fb"), "ip.addr == 10.1.0.2"), "");
    // What the forwarder has sent, on either side; the hosts' own checksums
    // may be left to a device that there is not.
    let wrong = ["ip", "tcp", "udp", "icmp"].map(|of| format!("{of}.checksum.status == 0"));
    let wrong = wrong.join(" || ");
    for (device, source) in [("fa", "10.2.0.2"), ("fb", ALIAS)] {
        let sent = |what: &str| found(&capture(device), &format!("ip.src == {source} && ({what})"));
        for some in ["icmp", "tcp", "udp", "ip.flags.mf == 1"] {
            assert_ne!(sent(some), "", "{device}, {some}");
        }
        assert_eq!(sent(&wrong), "", "{device}");
    }
}

#[test]
fn hosts_ask_the_router_itself_for_ports() {
    for workers in ["--workers=1", "--workers=2"] {
        let by = ["--tables=tables", "--nat=asked", "--outside=wan", workers];
        let Some(between) = skip::unless(Between::start(&by)) else {
            return;
        };
        let (left, right) = (&between.left, &between.right);
        until("a ping through the translation", || pings(left, "10.2.0.2"));
        right
            .ip(&["route", "replace", "192.0.2.1/32", "dev", "fb"])
            .unwrap();
        let asks = ["-g", "10.1.0.1", "-a", "40000", "7000", "udp", "600"];
        let said = left.run("natpmpc", &asks).unwrap();
        assert!(said.contains("Public IP address : 192.0.2.1"), "{said}");
        let port = said.split("Mapped public port ").nth(1).unwrap();
        let port: u16 = port.split(' ').next().unwrap().parse().unwrap();
        let _echo = left.spawn("python3", &["-c", ECHO]).unwrap();
        until("a stranger is answered", || {
            right
                .run("python3", &["-c", KNOCK, &port.to_string()])
                .is_ok()
        });
        // From outside nobody asks.
        let asks = ["-g", "10.2.0.1"];
        assert!(
            right
                .run("timeout", &[&["2", "natpmpc"], &asks[..]].concat())
                .is_err()
        );
    }
}

/// Asks behind a port of the alias address, from outside.
const KNOCK: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.sendto(b'knock', ('192.0.2.1', int(sys.argv[1])))
data, sender = s.recvfrom(100)
assert data == b'knock' and sender == ('192.0.2.1', int(sys.argv[1]))
";

/// Asks the host behind a redirect of the alias address, from another host
/// inside: the question and the answer go in pieces, and turn back.
const ASK_INSIDE: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0))
s.settimeout(1)
data = bytes(at % 251 for at in range(4000))
s.sendto(data, ('192.0.2.1', 7000))
assert s.recvfrom(65535)[0] == data
";

#[test]
fn two_workers_share_a_translation() {
    let by = [
        "--tables=turning",
        "--nat=redirects",
        "--outside=wan",
        "--workers=2",
    ];
    let Some(between) = skip::unless(Between::start(&by)) else {
        return;
    };
    let (left, right) = (&between.left, &between.right);
    let hosts: Vec<String> = (2..18).map(|host| format!("10.1.0.{host}")).collect();
    for host in &hosts {
        left.ip(&["addr", "replace", &format!("{host}/24"), "dev", "fa"])
            .unwrap();
    }
    let far = "10.2.0.2";
    until("a ping through the translation", || pings(left, far));
    let served = TempDir::new().unwrap();
    let content: Vec<u8> = (0..400_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(served.path().join("file"), &content).unwrap();
    let path = |name: &str| served.path().join(name).to_str().unwrap().to_owned();
    let serve = [
        "-m",
        "http.server",
        "80",
        "--directory",
        served.path().to_str().unwrap(),
    ];
    let _servers = [left, right].map(|netns| netns.spawn("python3", &serve).unwrap());
    let _echoes = [left, right].map(|netns| netns.spawn("python3", &["-c", ECHO]).unwrap());
    let _iperf = right.spawn("iperf3", &["-s"]).unwrap();
    for host in &hosts {
        until("a long ping in pieces", || {
            let ping = ["-c", "1", "-W", "1", "-s", "4000", "-I", host, far];
            left.run("ping", &ping).is_ok()
        });
        until("the file comes through", || {
            let (got, url) = (path("got"), format!("http://{far}/file"));
            let fetch = ["-s", "-m", "20", "--interface", host, "-o", &got, &url];
            left.run("curl", &fetch).is_ok()
        });
        assert!(fs::read(path("got")).unwrap() == content);
        until("two hosts inside meet", || {
            left.run("python3", &["-c", ASK_INSIDE, host]).is_ok()
        });
    }
    for host in &hosts[..4] {
        let route = ["-n", "-w", "5", "-q", "1", "-s", host, far];
        let route = left.run("traceroute", &route).unwrap();
        let hops: Vec<&str> = route.lines().skip(1).collect();
        // To the far kernel all are one host, which it answers so often only.
        assert!(hops[0].contains("10.1.0.1"), "{route}");
        assert!(hops.last().unwrap().contains(far), "{route}");
    }
    until("a datagram in pieces comes back", || {
        left.run("python3", &["-c", ASK]).is_ok()
    });
    for load in [&["-P", "4"][..], &["-u", "-b", "20M", "-l", "1000"]] {
        until("iperf3 runs through it", || {
            let load = [&["-c", far, "-t", "1", "-B", "10.1.0.7"][..], load].concat();
            left.run("iperf3", &load).is_ok()
        });
    }
    // From outside by a redirect, and nowhere else.
    until("the redirected server answers", || {
        let (got, url) = (path("from-outside"), format!("http://{ALIAS}:8080/file"));
        let fetch = ["-s", "-m", "20", "-o", &got, &url];
        right.run("curl", &fetch).is_ok()
    });
    assert!(fs::read(path("from-outside")).unwrap() == content);
    assert!(!pings(right, ALIAS));
    let counted = between.end();
    let handed = &counted["nodes"]["handoff"]["packets"];
    assert!(handed.as_u64() > Some(100), "{counted}");
    let each = counted["translation"]["workers"].as_array().unwrap();
    let made = |of: &serde_json::Value| of["flows_made"].as_u64().unwrap();
    assert_eq!(each.len(), 2);
    assert!(each.iter().all(|worker| made(worker) > 0), "{counted}");
    assert_eq!(
        each.iter().map(made).sum::<u64>(),
        made(&counted["translation"])
    );
}

#[test]
fn the_router_itself_is_asked_and_asks() {
    let by = ["--tables=tables", "--host=fh"];
    let Some(between) = skip::unless(Between::start(&by)) else {
        return;
    };
    let (left, right, router) = (&between.left, &between.right, &between.router);
    until("the host's device is there", || {
        router.ip(&["link", "set", "fh", "up"]).is_ok()
    });
    router
        .ip_batch("route add 10.1.0.2 dev fh\nroute add 10.2.0.2 dev fh\n")
        .unwrap();
    for own in ["10.1.0.1", "10.2.0.1"] {
        until("the router answers", || pings(left, own));
    }
    until("hosts still talk to one another", || {
        pings(left, "10.2.0.2")
    });
    for (host, netns) in [("10.1.0.2", left), ("10.2.0.2", right)] {
        let asked = router.run("ping", &["-c", "1", "-W", "5", host]).unwrap();
        // It came over one link: nobody took a hop.
        assert!(asked.contains("ttl=64"), "{asked}");
        fetches(router, netns, "10.1.0.1");
    }
    let counted = between.end();
    let nodes = &counted["nodes"];
    assert!(nodes["host"]["packets"].as_u64() > Some(50), "{counted}");
    assert_eq!(nodes["host"]["reasons"]["no-host-port"], 0, "{counted}");
}

#[test]
fn rules_and_their_tables_are_obeyed() {
    let Some(between) = skip::unless(Between::start(&[])) else {
        return;
    };
    between.answers();
    let (left, router) = (&between.left, &between.router);
    let ip = |lines: &str| router.ip_batch(lines).unwrap();
    for (family, far) in [("-4", "10.2.0.2"), ("-6", "2001:db8:2::2")] {
        let rule = |what: &str, number: &str| {
            let number = ["pref", number, "lookup", number];
            router
                .ip(&[&[family, "rule", what][..], &number].concat())
                .unwrap();
        };
        until("a ping through the forwarder", || pings(left, far));
        ip(&format!("route add prohibit {far} table 100\n"));
        rule("add", "100");
        until("a table in front is asked first", || !pings(left, far));
        ip(&format!("route add throw {far} table 50\n"));
        rule("add", "50");
        assert!(!pings(left, far));
        ip(&format!("route add {far} dev wan table 60\n"));
        rule("add", "60");
        until("one in front of that is obeyed", || pings(left, far));
        rule("del", "60");
        until("and forgotten", || !pings(left, far));
        rule("del", "100");
        until("without its rule a table says nothing", || pings(left, far));
    }
    // One that looks at more than the destination is passed over, aloud.
    ip("rule add pref 40 fwmark 7 lookup 100\n");
    let counted = between.end();
    let ignored = &counted["tables"]["ignored_rules"];
    assert!(ignored.is_u64(), "{counted}");
}

/// By source the kernel would refuse what forwarding passes: it begins only
/// where that is accepted.
#[test]
fn rules_by_source_are_accepted_by_name_or_nothing_begins() {
    let Some(netns) = skip::unless(Netns::new("fwrules")) else {
        return;
    };
    netns
        .ip_batch("rule add from 192.168.1.20 pref 40 lookup 100\n")
        .unwrap();
    let mut command = netns.command(super::program());
    command.args(["forward", "--tun", "fwa=lo", "--tun", "fwb=lo"]);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("`ip -4 rule` 40") && said.contains("--accept rule"),
        "{said}"
    );
}
