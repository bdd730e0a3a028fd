//! The TUN port against the real kernel, in a network namespace.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use fingerpost_dataplane::{Batch, Cache, Pool, Port, PortError, Received, Tun};
use lab::{Netns, skip, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);

/// The next UDP packet over IPv4; what the kernel says to the link of its
/// own accord (router solicitations) is passed over.
fn next_udp(tun: &mut Tun, cache: &mut Cache, batch: &mut Batch) -> Vec<u8> {
    wait_until(PATIENCE, "a UDP packet on the TUN device", || {
        if tun.receive(cache, batch).unwrap() != Received::Packets {
            return None;
        }
        let mut packets = batch.packets().iter().map(|buffer| buffer.packet());
        packets
            .find(|packet| packet[0] >> 4 == 4 && packet[9] == 17)
            .map(<[u8]>::to_vec)
    })
    .unwrap()
}

/// The Internet checksum of what is given, 0 when it holds its own.
fn checksum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words = bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u64::from));
    let mut sum: u64 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn packets_come_whole_and_go_back() {
    if skip::unless(skip::tun()).is_none() {
        return;
    }
    let Some(netns) = skip::unless(Netns::new("tunport")) else {
        return;
    };
    let mut tun = netns.inside(|| Tun::open("fptun%d")).unwrap().unwrap();
    assert_eq!(tun.name(), "fptun0");
    netns
        .ip_batch("addr add 10.9.0.1/24 dev fptun0\nlink set fptun0 up\n")
        .unwrap();
    let socket = netns.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7_000)));
    let socket = socket.unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let pool = Pool::new(256, 65_535).unwrap();
    let (mut cache, mut batch) = (pool.cache(), Batch::new(128));

    // The kernel leaves the sum to the device; the port makes it whole.
    socket.send_to(b"question", "10.9.0.2:9").unwrap();
    let mut packet = next_udp(&mut tun, &mut cache, &mut batch);
    assert_eq!(&packet[28..], b"question");
    let len = ((packet.len() - 20) as u16).to_be_bytes();
    assert_eq!(
        checksum(&[&packet[12..20], &[0, 17], &len, &packet[20..]]),
        0
    );
    assert_eq!(checksum(&[&packet[..20]]), 0);

    // Sent back with both ends turned round; the sums stay right.
    for (one, other, len) in [(12, 16, 4), (20, 22, 2)] {
        for at in 0..len {
            packet.swap(one + at, other + at);
        }
    }
    for buffer in batch.packets_mut() {
        if buffer.packet().len() == packet.len() {
            buffer.packet_mut().copy_from_slice(&packet);
        } else {
            buffer.set_discarded(true);
        }
    }
    tun.send(&mut cache, &mut batch).unwrap();
    assert_eq!(tun.counters().sent_packets, 1);
    let mut answer = [0; 100];
    let (len, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(
        (&answer[..len], from.to_string().as_str()),
        (&b"question"[..], "10.9.0.2:9")
    );
}

#[test]
fn a_device_that_is_down_refuses_and_one_that_is_gone_is_an_error() {
    if skip::unless(skip::tun()).is_none() {
        return;
    }
    let Some(netns) = skip::unless(Netns::new("tunport")) else {
        return;
    };
    let mut tun = netns.inside(|| Tun::open("fptun")).unwrap().unwrap();
    netns
        .ip_batch("addr add 10.9.0.1/24 dev fptun\nlink set fptun up\n")
        .unwrap();
    let socket = netns.inside(|| UdpSocket::bind("10.9.0.1:0")).unwrap();
    socket.unwrap().send_to(b"x", "10.9.0.2:9").unwrap();
    let pool = Pool::new(256, 65_535).unwrap();
    let (mut cache, mut batch) = (pool.cache(), Batch::new(128));
    next_udp(&mut tun, &mut cache, &mut batch);

    netns.ip(&["link", "set", "fptun", "down"]).unwrap();
    let packets = batch.len() as u64;
    tun.send(&mut cache, &mut batch).unwrap();
    let counters = tun.counters();
    assert_eq!(counters.refused_packets, packets);
    assert_eq!(counters.sent_packets, 0);

    netns.ip(&["link", "del", "fptun"]).unwrap();
    let error = wait_until(PATIENCE, "the device to be gone", || {
        tun.receive(&mut cache, &mut batch).err()
    });
    assert!(matches!(error.unwrap(), PortError::Device { name, .. } if name == "fptun"));
}
