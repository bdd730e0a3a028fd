//! `fingerpost nat run` and `forward --nat` asked for ports by clients that
//! others wrote: natpmpc (NAT-PMP), and a client of PCP from the registry.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{PATIENCE, program};
use crab_nat::{InternetProtocol, PortMapping, PortMappingOptions, pcp};
use lab::{Child, Netns, skip, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RULES: &str = "alias_address 192.0.2.1\nport_range 1024-65535\npcp 10.0.0.1 ports 4\n";

/// A client and a stranger, and what translates between their kernels.
struct Trial {
    client: Netns,
    stranger: Netns,
    middle: Netns,
    directory: TempDir,
    translation: Child,
}

impl Trial {
    fn new() -> Option<Self> {
        skip::unless(skip::tun())?;
        let client = skip::unless(Netns::new("natpcpclient"))?;
        let [middle, stranger] = ["natpcp", "natpcpout"].map(|tag| Netns::new(tag).unwrap());
        middle.ip(&["link", "set", "lo", "up"]).unwrap();
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("rules"), RULES).unwrap();
        let translation = started([&client, &middle, &stranger], directory.path());
        Some(Self {
            client,
            stranger,
            middle,
            directory,
            translation,
        })
    }

    /// Ends it, and starts another one in its place.
    fn restart(&mut self) {
        self.translation.signal(Signal::INT).unwrap();
        assert!(self.translation.wait(PATIENCE).unwrap().success());
        let namespaces = [&self.client, &self.middle, &self.stranger];
        self.translation = started(namespaces, self.directory.path());
    }

    fn control(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    fn leases(&self, filter: &[&str]) -> Vec<Value> {
        let mut command = Command::new(program());
        command
            .args(["nat", "show", "leases", "--json"])
            .args(filter);
        let output = command.arg("--control").arg(self.control()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn natpmpc(&self, arguments: &[&str]) -> String {
        let gateway = GATEWAY.to_string();
        let all = [&["-g", &gateway][..], arguments].concat();
        let mut said = String::new();
        // It asks nine times, and begins before the device may be up.
        wait_until(PATIENCE, "natpmpc", || {
            said = self.client.run("natpmpc", &all).ok()?;
            Some(())
        })
        .unwrap();
        said
    }

    /// Whether a stranger reaches a port of the client's by an outside one.
    fn reaches(&self, inside: u16, outside: u16) -> bool {
        let listening = self.client.inside(|| bound(CLIENT, inside)).unwrap();
        let sent = self.stranger.inside(|| {
            let socket = bound(STRANGER, 0);
            socket.send_to(b"knock", (ALIAS, outside)).unwrap();
        });
        sent.unwrap();
        let mut bytes = [0; 16];
        let heard = listening.recv_from(&mut bytes).ok();
        heard.is_some_and(|(len, from)| {
            assert_eq!(from.ip(), IpAddr::V4(STRANGER));
            bytes.get(..len) == Some(&b"knock"[..])
        })
    }

    fn end(mut self) -> Value {
        self.translation.signal(Signal::INT).unwrap();
        assert!(self.translation.wait(PATIENCE).unwrap().success());
        let stdout = self.translation.process().stdout.take().unwrap();
        serde_json::from_reader(stdout).unwrap()
    }
}

/// A translation between the kernels of a client and a stranger.
fn started([client, middle, stranger]: [&Netns; 3], directory: &Path) -> Child {
    let path = |name: &str| directory.join(name);
    let mut command = middle.command(program());
    command
        .args(["nat", "run", "--json", "--tun", "fpin", "fpout", "--rules"])
        .arg(path("rules"))
        .arg("--control")
        .arg(path("control"))
        .arg("--state")
        .arg(path("state"))
        .stdout(Stdio::piped());
    let translation = Child::spawn(command).unwrap();
    for (device, to) in [("fpin", client), ("fpout", stranger)] {
        let shown = || middle.ip(&["link", "show", device]).ok();
        wait_until(PATIENCE, device, shown).unwrap();
        let moved = ["link", "set", device, "netns", to.name()];
        middle.ip(&moved).unwrap();
    }
    let inside = "addr add 10.0.0.2/24 dev fpin\nlink set fpin up\nlink set lo up\n\
                  route add default via 10.0.0.1 dev fpin\n";
    client.ip_batch(inside).unwrap();
    let outside = "addr add 198.51.100.9/32 dev fpout\nlink set fpout up\n\
                   route add 192.0.2.0/24 dev fpout\n";
    stranger.ip_batch(outside).unwrap();
    translation
}

fn bound(address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((address, port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    socket
}

/// Runs a client of PCP in the client's namespace.
fn asked<T: Send>(netns: &Netns, ask: impl AsyncFnOnce() -> T + Send) -> T {
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(ask())
    };
    netns.inside(run).unwrap()
}

fn base(port: u16, protocol: InternetProtocol) -> pcp::BaseMapRequest {
    let port = NonZeroU16::new(port).unwrap();
    pcp::BaseMapRequest::new(GATEWAY.into(), CLIENT.into(), protocol, port)
}

#[test]
fn natpmpc_gets_ports_and_gives_them_back() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let said = trial.natpmpc(&[]);
    assert!(said.contains("Public IP address : 192.0.2.1"), "{said}");
    let said = trial.natpmpc(&["-a", "8080", "4000", "udp", "600"]);
    let mapped = "Mapped public port 8080 protocol UDP to local port 4000";
    assert!(said.contains(mapped), "{said}");
    assert!(trial.reaches(4000, 8080));
    let [lease] = &trial.leases(&["--inside", "10.0.0.2"])[..] else {
        unreachable!()
    };
    assert_eq!(lease["alias_port"], 8080);
    assert_eq!(lease["inside_port"], 4000);
    assert!(lease["expires_millis"].as_u64() > Some(500_000), "{lease}");
    // The rules are read again: what was asked for stays.
    let control = trial.control();
    let reload = ["nat", "reload", "--control", control.to_str().unwrap()];
    let reloaded = Command::new(program()).args(reload).output().unwrap();
    assert!(reloaded.status.success(), "{reloaded:?}");
    assert!(trial.reaches(4000, 8080));
    // As many as it may have; then it hears so.
    for port in ["1", "2", "3"] {
        trial.natpmpc(&["-a", "0", port, "tcp", "600"]);
    }
    let gateway = GATEWAY.to_string();
    let one_more = ["-g", &gateway, "-a", "0", "4", "tcp", "600"];
    assert!(trial.client.run("natpmpc", &one_more).is_err());
    assert_eq!(trial.leases(&[]).len(), 4);
    let said = trial.natpmpc(&["-a", "0", "4000", "udp", "0"]);
    assert!(said.contains("to local port 4000"), "{said}");
    assert_eq!(trial.leases(&["--protocol", "udp"]).len(), 0);
    let counted = trial.end();
    assert!(counted["out"]["answered"].as_u64() > Some(8), "{counted}");
    assert_eq!(counted["leases"], 3);
}

/// The seconds that natpmpc says the gateway knows what it was asked for.
fn epoch(said: &str) -> u64 {
    let (_, rest) = said.split_once("epoch = ").unwrap();
    let digits = rest.split(|of: char| !of.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn ports_that_were_asked_for_outlive_a_restart() {
    let Some(mut trial) = Trial::new() else {
        return;
    };
    trial.natpmpc(&["-a", "8080", "4000", "udp", "600"]);
    // Until it is told from one that has just begun.
    let before = wait_until(PATIENCE, "some seconds", || {
        let known = epoch(&trial.natpmpc(&[]));
        (known >= 5).then_some(known)
    });
    let before = before.unwrap();
    trial.restart();
    let [lease] = &trial.leases(&[])[..] else {
        unreachable!()
    };
    assert_eq!(lease["alias_port"], 8080);
    let left = lease["expires_millis"].as_u64();
    assert!(left < Some(600_000), "{lease}");
    // Nobody asked again, and who comes from outside gets in.
    assert!(trial.reaches(4000, 8080));
    let after = epoch(&trial.natpmpc(&[]));
    assert!(after >= before, "{before} s, then {after} s");
    trial.end();
}

#[test]
fn a_client_of_pcp_maps_renews_and_drops() {
    let Some(trial) = Trial::new() else {
        return;
    };
    // Announced after the start, to all hosts.
    let heard = trial.client.inside(|| {
        let socket = bound(Ipv4Addr::UNSPECIFIED, 5_350);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = [0; 64];
        let (len, from) = socket.recv_from(&mut bytes).unwrap();
        (bytes[..len].to_vec(), from)
    });
    let (announced, from) = heard.unwrap();
    assert_eq!(from, SocketAddr::from((GATEWAY, 5_351)));
    assert_eq!(announced.get(1), Some(&0x80), "{announced:?}");
    let mut mapping = asked(&trial.client, async || {
        let options = PortMappingOptions {
            lifetime_seconds: Some(900),
            ..PortMappingOptions::default()
        };
        let base = base(4_000, InternetProtocol::Udp);
        pcp::port_mapping(base, None, None, options).await.unwrap()
    });
    assert_eq!(mapping.lifetime(), 900);
    let outside = mapping.external_port().get();
    assert!(trial.reaches(4_000, outside));
    mapping = asked(&trial.client, async || {
        mapping.renew().await.unwrap();
        mapping
    });
    assert_eq!(mapping.external_port().get(), outside);
    // Somebody else's nonce.
    let stolen = asked(&trial.client, async || {
        let options = PortMappingOptions::default();
        let base = base(4_000, InternetProtocol::Udp);
        pcp::port_mapping(base, None, None, options).await
    });
    let refused = format!("{:?}", stolen.unwrap_err());
    assert!(refused.contains("NotAuthorized"), "{refused}");
    asked(&trial.client, async || mapping.try_drop().await.unwrap());
    assert_eq!(trial.leases(&[]).len(), 0);
    // A peer's: it alone gets in.
    let peer = asked(&trial.client, async || {
        let remote = SocketAddr::from((STRANGER, 7_000));
        let options = PortMappingOptions::default();
        let base = base(4_001, InternetProtocol::Udp);
        let peer = pcp::peer_mapping(base, None, None, remote, options).await;
        peer.unwrap()
    });
    assert_eq!(peer.internal_port().get(), 4_001);
    let leases = trial.leases(&["--remote", "198.51.100.9"]);
    assert_eq!(leases.len(), 1, "{leases:?}");
    assert_eq!(leases[0]["remote_port"], 7_000);
    let outside = leases[0]["alias_port"].as_u64().unwrap() as u16;
    assert!(!trial.reaches(4_001, outside));
    // Its other end is asked for by what it calls a whole mapping.
    let both = asked(&trial.client, async || {
        let port = NonZeroU16::new(4_002).unwrap();
        let options = PortMappingOptions::default();
        let gateway = GATEWAY.into();
        let tcp = InternetProtocol::Tcp;
        PortMapping::new(gateway, CLIENT.into(), tcp, port, options).await
    });
    assert_eq!(both.unwrap().internal_port().get(), 4_002);
    assert!(trial.middle.ip(&["link"]).is_ok());
    trial.end();
}
