//! A small natd over the shared library, with the kernel at both ends: the
//! router that it serves, hosts behind that, and the world. Whoever is asked
//! answers from the address and port that was asked, in three modes.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab::{Child, Netns, skip, wait_until};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const REGISTERED: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const WORLD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Ports of ssh and of http.
const PORTS: [u16; 2] = [22, 80];

/// The program, linked with the library that was built beside this test.
fn natd(directory: &Path) -> PathBuf {
    let built = env::current_exe().unwrap();
    let library = built.parent().unwrap().join("libalias.so");
    for name in ["libalias.so", "libalias.so.7"] {
        symlink(&library, directory.join(name)).unwrap();
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("natd");
    let done = Command::new("cc")
        .args(["-std=c11", "-D_DEFAULT_SOURCE", "-O1", "-Wall", "-Werror"])
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/natd/natd.c"))
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", directory.display()))
        .arg(format!("-Wl,-rpath,{}", directory.display()))
        .arg("-lalias")
        .status();
    assert!(done.unwrap().success());
    program
}

/// Router, host behind it and world, with natd between router and world.
struct Network {
    host: Netns,
    router: Netns,
    world: Netns,
    _natd: Child,
    _directory: TempDir,
}

impl Network {
    /// `None`, and counted as skipped, where it cannot be.
    fn new(mode: &str) -> Option<Self> {
        skip::unless(skip::tun())?;
        let router = skip::unless(Netns::new("lnrouter"))?;
        let [host, world] = ["lnhost", "lnworld"].map(|tag| Netns::new(tag).unwrap());
        let directory = TempDir::new().unwrap();
        let program = natd(directory.path());
        let mut command = router.command(program.to_str().unwrap());
        command
            .args(["alout", "alworld", &ROUTER.to_string(), mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut natd = Child::spawn(command).unwrap();
        let mut said = String::new();
        let output = natd.process().stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        router
            .ip(&["link", "set", "alworld", "netns", world.name()])
            .unwrap();
        let wire = ["link", "add", "alin", "type", "veth", "peer", "name"];
        let peer = ["alhost", "netns", host.name()];
        router.ip(&[&wire[..], &peer[..]].concat()).unwrap();
        wire_up(&host, &router, &world);
        Some(Self {
            host,
            router,
            world,
            _natd: natd,
            _directory: directory,
        })
    }
}

fn wire_up(host: &Netns, router: &Netns, world: &Netns) {
    host.ip_batch(
        "addr add 10.0.0.2/24 dev alhost\n\
         addr add 203.0.113.5/32 dev alhost\n\
         link set alhost up\n\
         link set lo up\n\
         route add default via 10.0.0.1\n",
    )
    .unwrap();
    router
        .ip_batch(
            "addr add 10.0.0.1/24 dev alin\n\
             addr add 192.0.2.1/32 dev alout\n\
             link set alin up\n\
             link set alout up\n\
             link set lo up\n\
             route add 203.0.113.5/32 dev alin\n\
             route add default dev alout\n",
        )
        .unwrap();
    router.sysctl("net/ipv4/ip_forward", "1").unwrap();
    world
        .ip_batch(
            "addr add 198.51.100.7/32 dev alworld\n\
             link set alworld up\n\
             link set lo up\n\
             route add default dev alworld\n",
        )
        .unwrap();
}

/// Serves one TCP connection: says whom it sees.
fn serve(netns: &Netns, address: Ipv4Addr, port: u16) -> JoinHandle<()> {
    let listener = netns
        .inside(|| TcpListener::bind((address, port)).unwrap())
        .unwrap();
    thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        writeln!(stream, "{peer}").unwrap();
        // The client has all when it closes.
        let _ = stream.read(&mut [0]);
    })
}

/// Connects from an address, and gives the one that the server sees.
fn connect(netns: &Netns, from: Ipv4Addr, to: (Ipv4Addr, u16)) -> IpAddr {
    let said = netns.inside(|| {
        let to = SocketAddr::from((to.0, to.1));
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(stream.local_addr().unwrap().ip(), from);
        let mut said = String::new();
        BufReader::new(&mut stream).read_line(&mut said).unwrap();
        said
    });
    let seen: SocketAddr = said.unwrap().trim().parse().unwrap();
    seen.ip()
}

/// A connected socket hears nothing but answers from whom it has asked.
fn ask_by_udp(from: &Netns, of: &Netns, to: (Ipv4Addr, u16)) {
    let server = of.inside(|| UdpSocket::bind(to).unwrap()).unwrap();
    let asks = thread::spawn(move || {
        let mut room = [0; 64];
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let (len, peer) = server.recv_from(&mut room).unwrap();
        server.send_to(room.get(..len).unwrap(), peer).unwrap();
    });
    let client = from
        .inside(|| {
            let client = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            client.connect(to).unwrap();
            client
        })
        .unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send(b"question").unwrap();
    let mut room = [0; 64];
    assert_eq!(client.recv(&mut room).unwrap(), 8);
    asks.join().unwrap();
}

fn ping(netns: &Netns, to: Ipv4Addr) {
    let to = to.to_string();
    let said = netns.run("ping", &["-c", "1", "-W", "60", &to]).unwrap();
    assert!(said.contains(&format!("from {to}")), "{said}");
}

/// All that is asked of somebody from the world.
fn asked_from_the_world(network: &Network, of: &Netns, who: Ipv4Addr) {
    ping(&network.world, who);
    for port in PORTS {
        let server = serve(of, who, port);
        let seen = connect(&network.world, WORLD, (who, port));
        assert_eq!(seen, IpAddr::V4(WORLD), "{who}:{port}");
        server.join().unwrap();
    }
    ask_by_udp(&network.world, of, (who, 53));
}

/// What the host behind the router asks of the world as one of its
/// addresses, and as whom it is seen.
fn asked_from_inside(network: &Network, source: Ipv4Addr, seen_as: Ipv4Addr) {
    let src = source.to_string();
    let route = ["route", "replace", "default", "via", "10.0.0.1", "src"];
    network.host.ip(&[&route[..], &[&src]].concat()).unwrap();
    ping(&network.host, WORLD);
    let server = serve(&network.world, WORLD, 80);
    let seen = connect(&network.host, source, (WORLD, 80));
    assert_eq!(seen, IpAddr::V4(seen_as), "{source}");
    server.join().unwrap();
    ask_by_udp(&network.host, &network.world, (WORLD, 53));
}

fn everybody_answers_as_asked(mode: &str, registered_as: Ipv4Addr) {
    let Some(network) = Network::new(mode) else {
        return;
    };
    wait_until(PATIENCE, "a device that is up", || {
        let shown = network.world.ip(&["link", "show", "alworld"]).ok()?;
        shown.contains("UP").then_some(())
    })
    .unwrap();
    asked_from_the_world(&network, &network.router, ROUTER);
    asked_from_the_world(&network, &network.host, REGISTERED);
    asked_from_inside(&network, PRIVATE, ROUTER);
    asked_from_inside(&network, REGISTERED, registered_as);
    // The router's own questions.
    ping(&network.router, WORLD);
    let server = serve(&network.world, WORLD, 22);
    let seen = connect(&network.router, ROUTER, (WORLD, 22));
    assert_eq!(seen, IpAddr::V4(ROUTER));
    server.join().unwrap();
}

#[test]
fn in_the_modes_of_a_new_instance() {
    everybody_answers_as_asked("default", ROUTER);
}

#[test]
fn without_a_mode() {
    everybody_answers_as_asked("0", ROUTER);
}

#[test]
fn with_private_sources_only() {
    everybody_answers_as_asked("unregistered-only", REGISTERED);
}
