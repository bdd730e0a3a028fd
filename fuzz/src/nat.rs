//! What is done with the bytes of the NAT targets: packets through a whole
//! engine, what an FTP, PPTP, RTSP or Skinny connection carries, datagrams of
//! SIP and NetBIOS, requests of PCP and NAT-PMP, and rules as text. A packet
//! that does not go on is as it was.

use std::net::Ipv4Addr;

use fingerpost_nat::rules::{self, Redirect, Rules, Statement};
use fingerpost_nat::{Config, Cursor, Nat, Verdict};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
/// Where ports are asked for.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const CLIENT: u16 = 3_000;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const SYN: u8 = 2;
const ACK: u8 = 0x10;
/// Room behind each packet: some have it, some do not.
const ROOMS: [usize; 4] = [0, 1, 16, 64];

fn engine() -> Option<Nat> {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = 16;
    config.limits.max_flows = 64;
    config.limits.fragments.held_bytes = 4_096;
    config.helpers = config.helpers.skinny_at(2_000);
    config.helpers = config.helpers.switched("sip", true)?;
    Nat::new(config).ok()
}

/// Translates, and holds the engine to what its verdict says.
fn translate(nat: &mut Nat, out: bool, packet: &[u8], room: usize, now_millis: u64) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    bytes.resize(packet.len() + room, 0xee);
    let before = bytes.clone();
    let verdict = if out {
        nat.translate_out(&mut bytes, now_millis)
    } else {
        nat.translate_in(&mut bytes, now_millis)
    };
    if !verdict.goes_on() {
        assert_eq!(bytes, before, "{verdict:?}: as it was");
    }
    let mut buffer = [0; 2_048];
    while let Some((len, _, verdict)) = nat.next_fragment(&mut buffer, now_millis) {
        assert!(len <= buffer.len() && verdict != Verdict::FragmentWaiting);
    }
    bytes
}

/// Packets one after the other: direction and room, time, length, bytes. Some
/// are handed to In as they came out, of some an error comes back.
pub fn nat_packets(bytes: &[u8]) {
    let Some(mut nat) = engine() else { return };
    let redirect = Redirect::port(17, INSIDE, 80, 8_080).ports(10);
    let _ = nat.rules_mut().insert(redirect);
    let _ = nat.rules_mut().insert(Redirect::address(INSIDE, ALIAS));
    if let Ok(rules::ProxyWord::Add(proxy)) =
        rules::parse_proxy("type encode_ip_hdr port 80 server 198.51.100.9:3128")
    {
        let _ = nat.rules_mut().add_proxy(proxy);
    }
    let (mut rest, mut now_millis) = (bytes, 0);
    while let [how, time, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (packet, tail) = tail.split_at(len);
        now_millis += u64::from(*time) * 100;
        let room = ROOMS[usize::from(how >> 1) % ROOMS.len()];
        let after = translate(&mut nat, how & 1 == 0, packet, room, now_millis);
        if how & 0x80 != 0 {
            translate(&mut nat, false, &after, 0, now_millis);
        }
        if how & 0x40 != 0 {
            let error = error(&after, usize::from(*time));
            translate(&mut nat, how & 1 != 0, &error, room, now_millis);
        }
        nat.maintain(now_millis, 4);
        rest = tail;
    }
}

/// An ICMP error to whom a packet says it is from, with so many bytes of it
/// behind its header's first ones; no checksum, which nobody needs.
fn error(about: &[u8], more: usize) -> Vec<u8> {
    let quote = about.get(..20 + more).unwrap_or(about);
    let to = about.get(12..16).unwrap_or(&[0; 4]);
    let [high, low] = ((28 + quote.len()) as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, ICMP, 0, 0];
    bytes.extend(REMOTE.octets());
    bytes.extend(to);
    bytes.extend([3, 4, 0, 0, 0, 0, 5, 0]);
    bytes.extend(quote);
    bytes
}

/// An FTP control connection.
pub fn nat_ftp(bytes: &[u8]) {
    connection(21, bytes);
}

/// A PPTP control connection.
pub fn nat_pptp(bytes: &[u8]) {
    connection(1_723, bytes);
}

/// An RTSP connection.
pub fn nat_rtsp(bytes: &[u8]) {
    connection(554, bytes);
}

/// A Skinny connection.
pub fn nat_skinny(bytes: &[u8]) {
    connection(2_000, bytes);
}

/// Datagrams of SIP.
pub fn nat_sip(bytes: &[u8]) {
    datagrams(&[5_060], bytes);
}

/// Datagrams of NetBIOS: names, and others.
pub fn nat_nbt(bytes: &[u8]) {
    datagrams(&[137, 138], bytes);
}

/// Datagrams of flows with a helper: direction, port and room, length, data.
/// Where one of ours was changed its sums are right, and its length is what it
/// says.
fn datagrams(ports: &[u16], bytes: &[u8]) {
    let Some(mut nat) = engine() else { return };
    let (mut rest, mut now_millis) = (bytes, 0);
    while let [how, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (data, tail) = tail.split_at(len);
        let port = ports[usize::from(how >> 3) % ports.len()];
        let room = ROOMS[usize::from(how >> 1) % ROOMS.len()];
        let (inside, remote) = ((INSIDE, port), (REMOTE, port));
        let opened = translate(
            &mut nat,
            true,
            &datagram(inside, remote, b""),
            0,
            now_millis,
        );
        let alias = (ALIAS, u16::from_be_bytes([opened[20], opened[21]]));
        let packet = match how & 1 {
            0 => datagram(inside, remote, data),
            _ => datagram(remote, alias, data),
        };
        let after = translate(&mut nat, how & 1 == 0, &packet, room, now_millis);
        let total = usize::from(u16::from_be_bytes([after[2], after[3]]));
        let length = usize::from(u16::from_be_bytes([after[24], after[25]]));
        assert!(total <= after.len() && length + 20 == total);
        now_millis += 1_000 * u64::from(how >> 4);
        rest = tail;
    }
}

/// Segments of a connection with a helper: direction and room, place in the
/// stream, length, data. Both sides are tried inside, alone and together.
fn connection(port: u16, bytes: &[u8]) {
    for (inside_port, remote_port) in [(CLIENT, port), (port, CLIENT)] {
        let remote = (REMOTE, remote_port);
        segments((INSIDE, inside_port), remote, remote, bytes);
    }
    segments((INSIDE, CLIENT), (ALIAS, port), (NEIGHBOUR, port), bytes);
}

/// The connection of `inside` with `remote`, which is really `server`:
/// another host inside, where that is not the same.
fn segments(
    inside: (Ipv4Addr, u16),
    remote: (Ipv4Addr, u16),
    server: (Ipv4Addr, u16),
    bytes: &[u8],
) {
    let Some(mut nat) = engine() else { return };
    let turns = remote != server;
    if turns {
        let redirect = Redirect::port(TCP, server.0, server.1, remote.1);
        let _ = nat.rules_mut().insert(redirect);
    }
    let syn = segment(inside, remote, 999, SYN, b"");
    let after = translate(&mut nat, true, &syn, 0, 0);
    let alias_port = u16::from_be_bytes([after[20], after[21]]);
    // Without both SYNs nothing is opened.
    let syn = segment(server, (ALIAS, alias_port), 999, SYN | ACK, b"");
    translate(&mut nat, turns, &syn, 0, 0);
    let mut rest = bytes;
    while let [how, place, len, tail @ ..] = rest {
        let (data, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        let sequence = 1_000 + u32::from(*place);
        let out = how & 1 == 0;
        let packet = if out {
            segment(inside, remote, sequence, ACK, data)
        } else {
            segment(server, (ALIAS, alias_port), sequence, ACK, data)
        };
        let room = ROOMS[usize::from(how >> 1) % ROOMS.len()];
        translate(&mut nat, out || turns, &packet, room, 0);
        rest = tail;
    }
}

/// A TCP segment with an SACK block; no checksum, which nobody needs.
fn segment(
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    sequence: u32,
    flags: u8,
    data: &[u8],
) -> Vec<u8> {
    let len = (52 + data.len()) as u16;
    let [high, low] = len.to_be_bytes();
    let mut bytes = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, TCP, 0, 0];
    bytes.extend(from.0.octets());
    bytes.extend(to.0.octets());
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0x80, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 5, 10]);
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(sequence.wrapping_add(9).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Requests of PCP and NAT-PMP: client and room, time, length, data. What is
/// answered is an answer, no longer than one may be; each host's leases stay
/// within its bounds, and all end.
pub fn nat_pcp(bytes: &[u8]) {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = 16;
    config.limits.max_flows = 64;
    config.pcp.addresses = vec![SERVER];
    config.pcp.most_ports = 20;
    config.pcp.most_leases = 30;
    let Ok(mut nat) = Nat::new(config) else {
        return;
    };
    let (mut rest, mut now_millis) = (bytes, 0);
    while let [how, time, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (data, tail) = tail.split_at(len);
        now_millis += u64::from(*time) * 10_000;
        let client = if how & 1 == 0 { INSIDE } else { NEIGHBOUR };
        let room = ROOMS[usize::from(how >> 1) % ROOMS.len()];
        let packet = datagram((client, CLIENT), (SERVER, 5_351), data);
        let after = translate(&mut nat, true, &packet, room, now_millis);
        if after.get(12..16) == Some(&SERVER.octets()[..]) {
            let len = usize::from(u16::from_be_bytes([after[2], after[3]]));
            let answer = &after[28..len];
            assert!(answer.len() <= 1_100 && answer[1] & 0x80 != 0);
            assert!(answer[0] != 2 || answer.len().is_multiple_of(4));
        }
        nat.maintain(now_millis, 4);
        audit(&nat);
        rest = tail;
    }
    nat.maintain(now_millis + 604_800_000, 64);
    assert_eq!(nat.statistics().leases, 0);
}

fn audit(nat: &Nat) {
    let mut ports = [0; 2];
    let _ = nat.leases(Cursor::default(), usize::MAX, &mut |lease| {
        assert!(lease.ports > 0 && lease.alias_port.checked_add(lease.ports - 1).is_some());
        ports[usize::from(lease.inside == NEIGHBOUR)] += u32::from(lease.ports);
    });
    assert!(ports.iter().all(|ports| *ports <= 20));
    assert!(nat.statistics().leases <= 30);
}

/// A UDP packet; no checksum, which nobody needs.
fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), data: &[u8]) -> Vec<u8> {
    let [high, low] = ((28 + data.len()) as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend(from.0.octets());
    bytes.extend(to.0.octets());
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(((8 + data.len()) as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(data);
    bytes
}

/// Rules as text: read, laid down, taken away.
pub fn nat_rules(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = rules::parse_proxy(&text);
    let Ok(script) = rules::parse(&text) else {
        return;
    };
    let mut rules = Rules::new(10_000);
    let mut handles = Vec::new();
    for (line, statement) in script.statements {
        assert!(line > 0);
        if let Statement::Redirect {
            redirects, servers, ..
        } = statement
        {
            for redirect in redirects {
                let Ok(handle) = rules.insert(redirect) else {
                    continue;
                };
                handles.push(handle);
                for server in &servers {
                    let _ = rules.add_server(handle, *server);
                }
            }
        }
    }
    for handle in handles {
        assert!(rules.remove(handle).is_ok());
    }
    assert!(rules.is_empty());
}
