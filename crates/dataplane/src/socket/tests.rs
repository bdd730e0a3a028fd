use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use lab::wait_until;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn receiver() -> (UdpReceiver, SocketAddr) {
    let config = ReceiverConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        buffer_bytes: 1 << 20,
        batch: 16,
    };
    let receiver = UdpReceiver::open(&config).unwrap();
    let address = receiver.local_address().unwrap();
    (receiver, address)
}

fn config(way: UdpWay, destinations: &[SocketAddr]) -> UdpConfig {
    UdpConfig {
        way,
        destinations: destinations.into(),
        sources: vec!["127.0.0.1:0".parse().unwrap()],
        payload_bytes: 100,
        batch: 10,
        broadcast: false,
        interface: None,
    }
}

/// First bytes and lengths of so many datagrams.
fn received(receiver: &mut UdpReceiver, count: usize) -> Vec<(u8, usize)> {
    let mut all = Vec::new();
    wait_until(PATIENCE, "datagrams", || {
        receiver
            .receive(|datagram| {
                assert!(datagram.time_nanos > 0 && datagram.source.ip().is_loopback());
                assert_eq!(datagram.bytes.len(), datagram.len.min(64));
                all.push((datagram.bytes[0], datagram.len));
            })
            .unwrap();
        (all.len() >= count).then_some(())
    })
    .unwrap();
    all
}

#[test]
fn each_way_sends_what_was_pushed() {
    for way in [
        UdpWay::SendTo,
        UdpWay::Connected,
        UdpWay::SendMmsg,
        UdpWay::Segments,
    ] {
        let (mut receiver, to) = receiver();
        let mut sender = UdpSender::open(&config(way, &[to])).unwrap();
        for round in 0..3_u8 {
            for number in 0..10_u8 {
                let slot = sender.push(0).unwrap();
                assert_eq!(slot.len(), 100);
                // The slot has its last packet.
                assert_eq!(slot[1], if round == 0 { 0 } else { number });
                slot[..2].copy_from_slice(&[10 * round + number, number]);
            }
            assert!(sender.push(0).is_none(), "a batch is ten");
            assert_eq!(sender.flush().unwrap(), Flushed::All);
        }
        assert_eq!((sender.sent(), sender.pending()), (30, 0));
        let expected: Vec<(u8, usize)> = (0..30).map(|number| (number, 100)).collect();
        assert_eq!(received(&mut receiver, 30), expected, "{way:?}");
    }
}

#[test]
fn several_destinations_take_one_socket_or_one_each() {
    let ((mut one, to_one), (mut two, to_two)) = (receiver(), receiver());
    for (way, sockets) in [
        (UdpWay::SendTo, 1),
        (UdpWay::SendMmsg, 1),
        (UdpWay::Connected, 2),
    ] {
        let mut sender = UdpSender::open(&config(way, &[to_one, to_two])).unwrap();
        assert_eq!(sender.sockets(), sockets, "{way:?}");
        for number in 0..4_u8 {
            let is_second = u32::from(number % 2);
            if sockets == 2 {
                assert_eq!(sender.flush().unwrap(), Flushed::All);
                sender.choose(is_second as usize);
            }
            sender.push(is_second).unwrap()[0] = number;
        }
        assert_eq!(sender.flush().unwrap(), Flushed::All);
        assert_eq!(received(&mut one, 2), [(0, 100), (2, 100)], "{way:?}");
        assert_eq!(received(&mut two, 2), [(1, 100), (3, 100)], "{way:?}");
    }
}

#[test]
fn nobody_listening_is_an_answer_and_no_error() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = socket.local_addr().unwrap();
    drop(socket);
    let mut sender = UdpSender::open(&config(UdpWay::Connected, &[nobody])).unwrap();
    wait_until(PATIENCE, "an answer", || {
        let _ = sender.push(0);
        (sender.flush().unwrap() == Flushed::PortUnreachable).then_some(())
    })
    .unwrap();
    assert!(sender.pending() > 0, "the packet is still there");
}

#[test]
fn too_much_is_refused_with_a_reason() {
    let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let mut large = config(UdpWay::SendMmsg, &[to]);
    large.payload_bytes = 65_508;
    let refused = UdpSender::open(&large).err().unwrap().to_string();
    assert!(refused.contains("at most 65507"), "{refused}");
    let mut elsewhere = config(UdpWay::SendTo, &[to]);
    elsewhere.interface = Some("no-such-link".into());
    let refused = UdpSender::open(&elsewhere).err().unwrap().to_string();
    assert!(refused.contains("no interface no-such-link"), "{refused}");
    assert!(interface_index("lo\0").is_err());
}

#[test]
fn what_a_socket_dropped_is_counted() {
    let config = ReceiverConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        buffer_bytes: 1,
        batch: 16,
    };
    let mut receiver = UdpReceiver::open(&config).unwrap();
    let to = receiver.local_address().unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..500 {
        sender.send_to(&[0; 200], to).unwrap();
    }
    let mut came = 0;
    wait_until(PATIENCE, "all of them, counted or dropped", || {
        came += receiver.receive(|_| {}).unwrap() as u64;
        (came + receiver.dropped() == 500).then_some(())
    })
    .unwrap();
    assert!(receiver.dropped() > 0);
}
