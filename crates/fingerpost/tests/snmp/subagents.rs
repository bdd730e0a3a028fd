//! Subagents behind us: FRR, keepalived, lldpd, and such as lie.

use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use lab::frr::Frr;
use lab::speaker::{Speaker, prefix};
use lab::{Child, Netns, wait_until};
use rustix::process::Signal;

use crate::common::{Daemon, PATIENCE, at_rest, said};
use crate::{Walked, World};

/// bgp4PathAttrPeer: one row for each path.
const PATHS: &str = ".1.3.6.1.2.1.15.6.1.1";
const BGPD: &str = "agentx\nrouter bgp 65001\n bgp router-id 10.1.0.1\n \
    no bgp ebgp-requires-policy\n neighbor 10.1.0.2 remote-as 65002\n \
    neighbor 10.1.0.2 passive\n";

/// A world with a link to a BGP peer's namespace, and that one.
fn peered(tag: &str, programs: &[&str]) -> Option<(World, Netns)> {
    let netns = at_rest(tag)?;
    let peer = Netns::new(&format!("{tag}p")).unwrap();
    netns
        .ip_batch(
            "link add v0 type veth peer name w0\naddr add 10.1.0.1/24 dev v0\n\
             link set v0 up\n",
        )
        .unwrap();
    netns
        .ip(&["link", "set", "w0", "netns", peer.name()])
        .unwrap();
    peer.ip_batch("addr add 10.1.0.2/24 dev w0\nlink set w0 up\n")
        .unwrap();
    if !lab::frr::has_snmp() {
        lab::skip::skip("frr-snmp is not installed");
        return None;
    }
    Some((World::with(netns, programs)?, peer))
}

/// The daemon, with a master that FRR's user may attach to.
fn master(world: &World, more: &str) -> Daemon {
    // The way to the socket is for everybody, the socket is not.
    let directory = world.path("");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    world.up(&format!(
        "[snmp]\nagentx_master = '{}'\nagentx_master_group = 'frr'\n{more}",
        world.path("agentx").display()
    ))
}

/// A daemon of FRR with its SNMP module.
fn frr(world: &World, name: &str, config: &str) -> Child {
    let frr = Frr {
        netns: &world.netns,
        directory: &world.path(""),
        agentx: &world.path("agentx"),
    };
    frr.start(name, config).unwrap()
}

fn zebra(world: &World) -> Child {
    let zebra = frr(world, "zebra", "agentx\n");
    let socket = world.path("frr/zserv.api");
    wait_until(PATIENCE, "zebra's socket", || socket.exists().then_some(())).unwrap();
    zebra
}

fn status(world: &World) -> String {
    said(world.fingerpost(&["status"]).output().unwrap())
}

/// Waits until the status says something.
fn becomes(world: &World, wanted: &str) {
    let waited = wait_until(PATIENCE, wanted, || {
        status(world).contains(wanted).then_some(())
    });
    assert!(waited.is_ok(), "{}", status(world));
}

fn speaker(peer: &Netns, paths: u32) -> Speaker {
    let connect = || {
        let opened = peer.inside(|| {
            let bgpd = "10.1.0.1:179".parse().unwrap();
            Speaker::open(bgpd, 65_002, [10, 1, 0, 2].into())
        });
        opened.unwrap().ok()
    };
    let mut speaker = wait_until(PATIENCE, "a session with bgpd", connect).unwrap();
    speaker.announce(0..paths, [10, 1, 0, 2].into()).unwrap();
    speaker
}

/// What a walk of the paths has to give.
fn announced(paths: u32) -> Walked {
    let row = |number| {
        let name = format!("{PATHS}.{}.24.10.1.0.2", prefix(number));
        (name, "IpAddress: 10.1.0.2".to_owned())
    };
    (0..paths).map(row).collect()
}

fn bulk(world: &World, words: &str) -> Walked {
    walk(world, "snmpbulkwalk", words)
}

/// A walk that ends well; of values of several lines the first.
fn walk(world: &World, tool: &str, words: &str) -> Walked {
    let words = format!("-v2c -c public -t 20 127.0.0.1:1161 {words}");
    rows(&said(world.command(tool, &words).output().unwrap()))
}

fn rows(text: &str) -> Walked {
    let rows = text.lines().filter_map(|line| line.split_once(" = "));
    rows.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Waits until the paths are those announced.
fn has_paths(world: &World, paths: u32) {
    let expected = announced(paths);
    let seen = || {
        let words = format!("-v2c -c public -t 20 -Cr50 127.0.0.1:1161 {PATHS}");
        let text = world.tool("snmpbulkwalk", &words);
        (rows(&text) == expected).then_some(())
    };
    wait_until(PATIENCE, "all paths", seen).unwrap();
}

#[test]
fn frr_keepalived_and_lldpd_are_walked_as_one_tree_with_ours() {
    let programs = ["snmpwalk", "snmpbulkwalk", "keepalived", "lldpd"];
    let Some((world, peer)) = peered("attach", &programs) else {
        return;
    };
    let receiver = world.netns.inside(|| UdpSocket::bind("127.0.0.1:2001"));
    let receiver = receiver.unwrap().unwrap();
    let daemon = master(
        &world,
        // On a loaded machine a second may be too short for a daemon.
        "agentx_master_timeout_ms = 10000\n\
         [[snmp.community]]\nname = 'public'\n\
         [[snmp.community]]\nname = 'blind'\nview = 'blind'\n\
         [snmp.view]\nblind = ['1.3.6.1.2.1', '!1.3.6.1.2.1.15']\n\
         [[snmp.target]]\naddress = '127.0.0.1:2001'\n",
    );
    let _zebra = zebra(&world);
    let _bgpd = frr(&world, "bgpd", BGPD);
    let ospf = "agentx\nrouter ospf\n network 10.1.0.0/24 area 0\n";
    let _ospfd = frr(&world, "ospfd", ospf);
    let _keepalived = keepalived(&world);
    let _lldpd = lldpd(&world);
    becomes(&world, "5 subagents, 5 sessions");
    let speaker = speaker(&peer, 150);
    has_paths(&world, 150);
    for root in [
        ".1.3.6.1.2.1.14",
        ".1.0.8802.1.1.2",
        ".1.3.6.1.4.1.9586.100.5",
        ".1.3.6.1.2.1.2.2",
    ] {
        assert!(bulk(&world, root).len() > 5, "{root}");
    }
    // All of it, in order (net-snmp's tools look), and the same whether one
    // row is asked for or many.
    let names =
        |walked: Walked| -> Vec<String> { walked.into_iter().map(|(name, _)| name).collect() };
    let same = wait_until(PATIENCE, "walks without a change between", || {
        let by_one = walk(&world, "snmpwalk", ".1");
        let by_many = names(bulk(&world, "-Cr40 .1"));
        let by_one = names(by_one);
        (by_one == by_many).then_some(by_one)
    });
    assert!(same.unwrap().len() > 150 * 14);
    // What a view hides is not asked for, and what is behind it is told.
    let hidden = "-v2c -c blind -t 20 127.0.0.1:1161";
    let words = format!("{hidden} {PATHS}");
    assert!(world.tool("snmpwalk", &words).contains("No Such Object"));
    let words = format!("{hidden} .1.3.6.1.2.1.14.1.1");
    assert!(world.tool("snmpgetnext", &words).contains(".14.1.1.0 = "));
    let words = format!("{hidden} .1.3.6.1.2.1.14.99");
    let next = world.tool("snmpgetnext", &words);
    let is_behind = next.starts_with(".1.3.6.1.2.1.") && !next.starts_with(".1.3.6.1.2.1.15.");
    assert!(is_behind, "{next}");
    // Their modules stand beside ours.
    let modules = bulk(&world, ".1.3.6.1.2.1.1.9.1.3");
    assert!(modules.len() > 8, "{modules:?}");
    // What they tell goes to our targets: bgpBackwardTransNotification.
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    drop(speaker);
    let backward = [0x2b, 6, 1, 2, 1, 15, 0, 2];
    let mut datagram = [0; 2_048];
    loop {
        let len = receiver.recv(&mut datagram).unwrap();
        let told = &datagram[..len];
        if told.windows(backward.len()).any(|part| part == backward) {
            break;
        }
    }
    assert!(status(&world).contains(" 0 cut"), "{}", status(&world));
    daemon.end();
}

fn keepalived(world: &World) -> Child {
    let config = world.write(
        "keepalived.conf",
        "global_defs {\n script_user root\n}\nvrrp_instance V1 {\n state BACKUP\n \
         interface v0\n virtual_router_id 51\n priority 100\n advert_int 1\n \
         virtual_ipaddress {\n 10.1.0.77/24\n }\n}\n",
    );
    let path = |name: &str| world.path(name).display().to_string();
    let mut command = world.netns.command("keepalived");
    command
        .env("SNMP_PERSISTENT_DIR", world.path("net-snmp"))
        .args(["-n", "-l", "-x", "-A", &path("agentx"), "-f", &config])
        .args([
            "-p",
            &path("k.pid"),
            "-r",
            &path("v.pid"),
            "-c",
            &path("c.pid"),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Child::spawn(command).unwrap()
}

fn lldpd(world: &World) -> Child {
    // Where it locks its children in, made by its service otherwise.
    fs::create_dir_all("/run/lldpd").unwrap();
    let mut command = world.netns.command("lldpd");
    command
        .env("SNMP_PERSISTENT_DIR", world.path("net-snmp"))
        .arg("-d")
        .args(["-x", "-X", &world.path("agentx").display().to_string()])
        .args(["-u", &world.path("lldpd").display().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Child::spawn(command).unwrap()
}

/// The paths behind a name, ten at most; `None`: no answer, or an error.
fn step(world: &World, after: &str) -> Option<Walked> {
    let words = format!("-v2c -c public -t 20 -r 0 -Cr10 127.0.0.1:1161 {after}");
    let output = world.command("snmpbulkget", &words).output().unwrap();
    let rows = rows(&String::from_utf8(output.stdout).unwrap());
    (output.status.success() && !rows.is_empty()).then_some(rows)
}

/// Others are answered, by their own tables and by those of others.
fn others_are_answered(world: &World) {
    for _ in 0..10 {
        let words = "-v2c -c public -t 20 -r 0 127.0.0.1:1161 .1.3.6.1.2.1.1.3.0";
        assert!(world.tool("snmpget", words).contains("Timeticks"));
    }
    assert!(bulk(world, ".1.3.6.1.2.1.2.2").len() > 20);
    assert!(bulk(world, ".1.3.6.1.2.1.14.1").len() > 5);
}

#[test]
fn who_is_stopped_or_killed_in_a_walk_delays_nobody_else() {
    let Some((world, peer)) = peered("stalls", &["snmpbulkget", "snmpbulkwalk"]) else {
        return;
    };
    let daemon = master(&world, "agentx_master_timeout_ms = 100\n");
    let _zebra = zebra(&world);
    let bgpd = frr(&world, "bgpd", BGPD);
    let ospf = "agentx\nrouter ospf\n network 10.1.0.0/24 area 0\n";
    let _ospfd = frr(&world, "ospfd", ospf);
    becomes(&world, "3 subagents, 3 sessions");
    let _speaker = speaker(&peer, 100);
    has_paths(&world, 100);
    let mut walked = Walked::new();
    let mut at = PATHS.to_owned();
    while walked.len() < 100 {
        if walked.len() == 50 {
            bgpd.signal(Signal::STOP).unwrap();
            // It is answered by an error, and it alone.
            let words = format!("-v2c -c public -t 20 -r 0 -Cr10 127.0.0.1:1161 {at}");
            let error = world.tool("snmpbulkget", &words);
            assert!(error.contains("genError"), "{error}");
            others_are_answered(&world);
            becomes(&world, "has answered nothing for");
            bgpd.signal(Signal::CONT).unwrap();
        }
        // It goes on where it was: soon, or at the next try.
        let rows = wait_until(PATIENCE, "the next rows", || step(&world, &at)).unwrap();
        let rows = rows.into_iter().take(100 - walked.len());
        walked.extend(rows);
        at.clone_from(&walked.last().unwrap().0);
    }
    assert_eq!(walked, announced(100));
    becomes(&world, "3 subagents, 3 sessions, 0 cut");
    let metrics = world
        .netns
        .run("curl", &["-s", "http://127.0.0.1:9797/metrics"]);
    let metrics = metrics.unwrap();
    assert!(
        metrics.contains("\nfingerpost_agentx_sessions 3\n"),
        "{metrics}"
    );
    assert!(
        !metrics.contains("questions_timed_out_total 0\n"),
        "{metrics}"
    );
    // Killed, it is gone with all that was its, and comes again.
    drop(bgpd);
    becomes(&world, "2 subagents, 2 sessions, 0 cut");
    others_are_answered(&world);
    let words = "-v2c -c public -t 20 127.0.0.1:1161 .1.3.6.1.2.1.15";
    let gone = || {
        let text = world.tool("snmpbulkwalk", words);
        text.contains("No Such Object").then_some(())
    };
    wait_until(PATIENCE, "what is nobody's", gone).unwrap();
    drop(_speaker);
    let _bgpd = frr(&world, "bgpd", BGPD);
    let _speaker = speaker(&peer, 100);
    has_paths(&world, 100);
    daemon.end();
}

/// A message of a subagent, in network byte order.
fn message(kind: u8, session: u32, packet: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![1, kind, 0x10, 0];
    for word in [session, 0, packet, payload.len() as u32] {
        message.extend(word.to_be_bytes());
    }
    message.extend(payload);
    message
}

/// Sends a message; gives the header and what follows of the next that
/// comes. `None`: the connection is at its end.
fn exchange(stream: &mut UnixStream, sent: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    stream.write_all(sent).ok()?;
    let mut header = vec![0; 20];
    stream.read_exact(&mut header).ok()?;
    let len = u32::from_be_bytes(header[16..].try_into().unwrap());
    let mut payload = vec![0; len as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((header, payload))
}

/// A subagent that has 1.3.6.1.4.1.8072.9999.9999.7 to itself: its stream
/// and its session.
fn attached(world: &World) -> (UnixStream, u32) {
    let mut stream = UnixStream::connect(world.path("agentx")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let open = [&[0; 8][..], &4u32.to_be_bytes(), b"liar"].concat();
    let (header, _) = exchange(&mut stream, &message(1, 0, 1, &open)).unwrap();
    let session = u32::from_be_bytes(header[4..8].try_into().unwrap());
    let mut register = vec![0, 127, 0, 0, 5, 4, 0, 0];
    for id in [1_u32, 8_072, 9_999, 9_999, 7] {
        register.extend(id.to_be_bytes());
    }
    let (_, answer) = exchange(&mut stream, &message(3, session, 2, &register)).unwrap();
    assert_eq!(answer[4..6], [0, 0]);
    (stream, session)
}

#[test]
fn who_lies_is_cut_with_a_reason_and_the_places_are_limited() {
    let Some(world) = World::new("liars", &["snmpget", "snmpgetnext"]) else {
        return;
    };
    let daemon = world.up(&format!(
        "[snmp]\nagentx_master = '{}'\nagentx_master_timeout_ms = 10000\n",
        world.path("agentx").display()
    ));
    let mode = fs::metadata(world.path("agentx"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let name = ".1.3.6.1.4.1.8072.9999.9999.7.1";
    // An answer to nothing; a length that is none; a name out of order.
    let (mut stream, session) = attached(&world);
    becomes(&world, "liar");
    let closed = exchange(&mut stream, &message(18, session, 77, &[0; 8])).unwrap();
    assert_eq!((closed.0[1], closed.1[0]), (2, 3));
    daemon.logs("was not asked (packet 77)");
    let (mut stream, session) = attached(&world);
    let mut long = message(13, session, 3, &[]);
    long[16..].copy_from_slice(&u32::MAX.to_be_bytes());
    let closed = exchange(&mut stream, &long).unwrap();
    assert_eq!((closed.0[1], closed.1[0]), (2, 2));
    becomes(&world, "2 cut");
    let (mut stream, session) = attached(&world);
    let words = format!("-v2c -c public -t 20 -r 0 127.0.0.1:1161 {name}");
    let asking = || {
        let mut command = world.command("snmpget", &words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Child::spawn(command).unwrap()
    };
    let _asked = wait_until(PATIENCE, "a question", || {
        let child = asking();
        let mut header = vec![0; 20];
        stream.read_exact(&mut header).ok()?;
        let len = u32::from_be_bytes(header[16..].try_into().unwrap());
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload).unwrap();
        let packet = u32::from_be_bytes(header[12..16].try_into().unwrap());
        // Another name than was asked for: 1.3.6.1.1 = 7.
        let lie = [&[0; 8][..], &[0, 2, 0, 0, 0, 1, 0, 0], &7_u32.to_be_bytes()].concat();
        stream
            .write_all(&message(18, session, packet, &lie))
            .unwrap();
        Some(child)
    });
    becomes(&world, "3 cut");
    assert!(
        status(&world).contains("its answer has 1.3.6.1.1 where"),
        "{}",
        status(&world)
    );
    // All places, one beyond, and one that is free again.
    let mut all: Vec<UnixStream> = (0..64)
        .map(|_| UnixStream::connect(world.path("agentx")).unwrap())
        .collect();
    becomes(&world, "64 subagents");
    let mut beyond = UnixStream::connect(world.path("agentx")).unwrap();
    beyond.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(beyond.read(&mut [0; 8]).unwrap(), 0);
    becomes(&world, "1 refused");
    all.pop();
    becomes(&world, "63 subagents");
    let _again = UnixStream::connect(world.path("agentx")).unwrap();
    becomes(&world, "64 subagents");
    daemon.end();
    assert!(!world.path("agentx").exists());
}
