//! The TAP port against the real kernel, in network namespaces.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use fingerpost_dataplane::{Batch, Cache, HEADROOM, Pool, Port, PortError, Received, Tap};
use lab::{Netns, Wire, skip, wait_until};
use packet::build::Ip;

const PATIENCE: Duration = Duration::from_secs(20);
/// The router's own, on its link `out0`.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// The router's as well: what the engine translates to.
const ALIAS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 100);
/// The other end of `out0`.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// Behind the far one.
const BEYOND: Ipv4Addr = Ipv4Addr::new(172, 16, 5, 9);
const PORT: u16 = 7_000;

/// A router with a TAP device that is up.
struct Router {
    tap: Tap,
    cache: Cache,
    batch: Batch,
    pool: Pool,
    netns: Netns,
}

impl Router {
    /// `None`: it cannot be here. The settings are those of the namespace
    /// before the device is made.
    fn new(settings: &[(&str, &str)]) -> Option<Self> {
        skip::unless(skip::tun())?;
        let netns = skip::unless(Netns::new("tapport"))?;
        for (name, value) in settings {
            netns
                .sysctl(&format!("net/ipv4/conf/{name}"), value)
                .unwrap();
        }
        let made = netns.inside(|| Tap::make("fptap").and_then(|tap| tap.up().map(|()| tap)));
        let pool = Pool::new(256, 2_048).unwrap();
        Some(Self {
            tap: made.unwrap().unwrap(),
            cache: pool.cache(),
            batch: Batch::new(64),
            pool,
            netns,
        })
    }

    /// Gives it the link `out0` and another namespace behind that.
    fn far(&self) -> Netns {
        let far = Netns::new("tapfar").unwrap();
        self.netns
            .ip_batch(&format!(
                "link add out0 type veth peer name in0 netns {}\n\
                 addr add {OWN}/24 dev out0\n\
                 addr add {ALIAS}/32 dev out0\n\
                 link set out0 up\n\
                 route add 172.16.0.0/16 via {FAR}\n",
                far.name()
            ))
            .unwrap();
        far.ip_batch(&format!("addr add {FAR}/24 dev in0\nlink set in0 up\n"))
            .unwrap();
        far
    }

    /// Sends packets into the kernel.
    fn send(&mut self, packets: &[Vec<u8>]) {
        self.cache.clear(&mut self.batch);
        self.cache.fill(&mut self.batch, packets.len());
        for (buffer, packet) in self.batch.packets_mut().iter_mut().zip(packets) {
            assert!(buffer.set_frame(packet, 0));
        }
        self.tap.send(&mut self.cache, &mut self.batch).unwrap();
    }

    /// Everything that waits: mark, link header and packet of each.
    fn received(&mut self) -> Vec<(u16, Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        while self.tap.receive(&mut self.cache, &mut self.batch).unwrap() == Received::Packets {
            all.extend(self.batch.packets().iter().map(|buffer| {
                let (link, packet) = (buffer.link().to_vec(), buffer.packet().to_vec());
                (buffer.mark(), link, packet)
            }));
        }
        assert!(self.batch.is_empty());
        all
    }
}

fn udp_socket(netns: &Netns) -> UdpSocket {
    let socket = netns.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)));
    let socket = socket.unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn expect(socket: &UdpSocket, data: &[u8], source: Ipv4Addr) {
    let mut bytes = [0; 100];
    let (len, from) = socket.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..len], from), (data, (source, 5_000).into()));
}

/// A frame of the program at XDP: notes and number in its source.
fn noted(notes: u8, number: u16, packet: &[u8]) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let header = [1, 1, 1, 1, 1, 1, 0x02, 0x46, 0x50, notes, high, low, 8, 0];
    [&header[..], packet].concat()
}

fn sends_on(settings: &[(&str, &str)]) {
    let Some(mut router) = Router::new(settings) else {
        return;
    };
    let far = router.far();
    let (there, here) = (udp_socket(&far), udp_socket(&router.netns));
    let udp = |source, to, data| Ip::new(source, to).udp(5_000, PORT, data);
    router.send(&[
        udp(ALIAS, FAR, b"of the alias"),
        udp(OWN, FAR, b"of its own"),
        udp(BEYOND, FAR, b"of a link that is another"),
        udp(BEYOND, OWN, b"for the router"),
        udp(FAR, ALIAS, b"for its alias"),
    ]);
    assert_eq!(router.tap.counters().sent_packets, 5);
    expect(&there, b"of the alias", ALIAS);
    expect(&there, b"of its own", OWN);
    expect(&there, b"of a link that is another", BEYOND);
    expect(&here, b"for the router", BEYOND);
    expect(&here, b"for its alias", FAR);
}

#[test]
fn the_kernel_forwards_what_is_sent_with_own_and_remote_sources() {
    sends_on(&[]);
}

#[test]
fn so_it_does_where_sources_are_checked() {
    sends_on(&[("all/rp_filter", "1"), ("default/rp_filter", "1")]);
}

#[test]
fn so_it_does_where_sources_are_checked_loosely() {
    sends_on(&[("all/rp_filter", "2")]);
}

#[test]
fn so_it_does_where_links_do_not_forward_unless_told() {
    sends_on(&[("default/forwarding", "0"), ("default/rp_filter", "1")]);
}

#[test]
fn frames_with_notes_come_as_packets_with_a_mark() {
    let Some(mut router) = Router::new(&[]) else {
        return;
    };
    let wire = Wire::deaf(&router.netns).unwrap();
    let packet = Ip::new(BEYOND, OWN).udp(1, 2, b"hello");
    let before = router.tap.counters().refused_packets;
    wire.send("fptap", &noted(0x85, 0x1234, &packet)).unwrap();
    // Nothing that the program has written: dropped. So is what is too long.
    let mut foreign = noted(1, 0, &packet);
    for at in 6..9 {
        foreign[at] ^= 0x10;
        wire.send("fptap", &foreign).unwrap();
        foreign[at] ^= 0x10;
    }
    let most = router.pool.packet_bytes();
    wire.send("fptap", &noted(2, 0, &vec![0x45; most + 1]))
        .unwrap();
    wire.send("fptap", &noted(3, 0, &vec![0x45; most])).unwrap();

    let received = router.received();
    let marks: Vec<_> = received.iter().map(|(mark, ..)| *mark).collect();
    assert_eq!(marks, [0x85, 3]);
    assert_eq!(received[0].2, packet);
    assert_eq!(received[0].1[10..12], [0x12, 0x34]);
    assert_eq!(received[1].2.len(), most);
    let counters = router.tap.counters();
    assert_eq!(counters.refused_packets - before, 4);
    assert_eq!(counters.received_packets, 2);
    assert_eq!(counters.received_bytes, (packet.len() + most) as u64);
}

#[test]
fn the_ring_holds_thousands_and_batches_empty_it() {
    let Some(mut router) = Router::new(&[]) else {
        return;
    };
    let wire = Wire::deaf(&router.netns).unwrap();
    let packet = Ip::new(BEYOND, OWN).udp(1, 2, b"hello");
    for number in 0..9_000 {
        wire.send("fptap", &noted(1, number, &packet)).unwrap();
    }
    let numbers = router.received().into_iter().map(|(_, link, _)| {
        let number = link[10..12].try_into().unwrap();
        u16::from_be_bytes(number)
    });
    assert!(numbers.eq(0..9_000));
}

#[test]
fn frames_as_long_as_any_links_are_taken() {
    let Some(mut router) = Router::new(&[]) else {
        return;
    };
    let pool = Pool::new(16, 10_000).unwrap();
    (router.cache, router.batch) = (pool.cache(), Batch::new(8));
    let wire = Wire::deaf(&router.netns).unwrap();
    wire.send("fptap", &noted(1, 0, &[0x45; 9_600])).unwrap();
    assert_eq!(router.received()[0].2.len(), 9_600);
}

#[test]
fn what_is_sent_is_a_frame_to_the_device_and_only_ip_is() {
    let Some(mut router) = Router::new(&[]) else {
        return;
    };
    let wire = Wire::open(&router.netns).unwrap();
    let (four, six) = (vec![0x45; 40], vec![0x60; 50]);
    router.send(&[vec![0x50; 40], Vec::new(), six.clone(), four.clone()]);
    let counters = router.tap.counters();
    assert_eq!((counters.sent_packets, counters.refused_packets), (2, 2));
    assert_eq!(counters.sent_bytes, 90);

    let link = link(&router.netns).unwrap();
    let mac = link.split("link/ether ").nth(1).unwrap().split(' ');
    let mac = mac.map(|text| {
        text.split(':')
            .map(|two| u8::from_str_radix(two, 16).unwrap())
    });
    let mac: Vec<u8> = mac.into_iter().next().unwrap().collect();
    for (packet, kind) in [(six, [0x86, 0xdd]), (four, [8, 0])] {
        let frame = [&mac[..], &[2, 0x46, 0x50, 0, 0, 0], &kind, &packet].concat();
        assert_eq!(wire.receive(PATIENCE).unwrap(), Some(("fptap", frame)));
    }
}

#[test]
fn a_packet_without_room_in_front_and_a_device_that_is_down_refuse() {
    let Some(mut router) = Router::new(&[]) else {
        return;
    };
    router.cache.fill(&mut router.batch, 2);
    let [full, fits] = router.batch.packets_mut() else {
        panic!("two buffers were asked for");
    };
    full.push_head(HEADROOM - 13).unwrap().fill(0x45);
    fits.push_head(HEADROOM - 14).unwrap().fill(0x45);
    router
        .tap
        .send(&mut router.cache, &mut router.batch)
        .unwrap();
    let counters = router.tap.counters();
    assert_eq!((counters.sent_packets, counters.refused_packets), (1, 1));

    router.netns.ip(&["link", "set", "fptap", "down"]).unwrap();
    router.send(&[vec![0x45; 40]]);
    let counters = router.tap.counters();
    assert_eq!((counters.sent_packets, counters.refused_packets), (1, 2));

    router.netns.ip(&["link", "del", "fptap"]).unwrap();
    let error = wait_until(PATIENCE, "the device to be gone", || {
        router
            .tap
            .receive(&mut router.cache, &mut router.batch)
            .err()
    });
    assert!(matches!(error.unwrap(), PortError::Device { name, .. } if name == "fptap"));
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_device_goes_with_its_value() {
    let Some(router) = Router::new(&[]) else {
        return;
    };
    let Router { netns, tap, .. } = router;
    netns
        .run("ip", &["tuntap", "add", "kept", "mode", "tap"])
        .unwrap();
    for name in ["fptap", "kept", "lo"] {
        let error = netns.inside(|| Tap::make(name).err()).unwrap().unwrap();
        assert!(
            matches!(&error, PortError::Device { source, .. } if source.kind() == ErrorKind::AlreadyExists),
            "{error}"
        );
    }
    let too_long = netns.inside(|| Tap::make("a-name-that-is-too-long").is_err());
    assert!(too_long.unwrap());

    assert_eq!(tap.name(), "fptap");
    let begin = format!("{}: fptap: ", tap.index());
    assert!(link(&netns).unwrap().starts_with(&begin));
    drop(tap);
    wait_until(PATIENCE, "the device to be gone", || {
        link(&netns).is_none().then_some(())
    })
    .unwrap();
}

#[test]
fn a_device_is_down_until_told_and_may_be_told_twice() {
    let Some(router) = Router::new(&[]) else {
        return;
    };
    let Router { netns, tap, .. } = router;
    let second = netns.inside(|| {
        tap.up().unwrap();
        Tap::make("fptap2").unwrap()
    });
    let shown = |name| netns.ip(&["-o", "link", "show", name]).unwrap();
    let second = second.unwrap();
    assert!(shown("fptap").contains(",UP"));
    assert!(!shown("fptap2").contains(",UP"));
    // Two of them have the same address, and neither is in the other's way.
    netns.inside(|| second.up().unwrap()).unwrap();
    assert!(shown("fptap2").contains(",UP"));
    let addresses = netns.ip(&["-o", "addr", "show", "dev", "fptap2"]).unwrap();
    assert!(!addresses.contains("inet6"), "{addresses}");
}

/// What `ip` says of the device; `None`: it is not there.
fn link(netns: &Netns) -> Option<String> {
    netns.ip(&["-o", "link", "show", "fptap"]).ok()
}
