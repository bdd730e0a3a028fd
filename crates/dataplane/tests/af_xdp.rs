//! Frames by AF_XDP over a veth pair: from the pool's own memory, by two
//! sockets at a time, and by copying from any other pool.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::UdpSocket;
use std::time::Duration;

use fingerpost_dataplane::port::af_xdp::AfXdp;
use fingerpost_dataplane::{Batch, Cache, Counters, Pool, Port, PortError};
use lab::{Netns, skip, wait_until};
use packet::build::Ip;

const PATIENCE: Duration = Duration::from_secs(20);
const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Frames that may be under way.
const UNDER_WAY: usize = 64;

struct Pair {
    near: Netns,
    far: Netns,
    socket: UdpSocket,
}

/// Two queues at the near side, and somebody who listens at the far one.
fn pair(tag: &str) -> Option<Pair> {
    let near = skip::unless(Netns::new(&format!("{tag}-near")))?;
    let far = skip::unless(Netns::new(&format!("{tag}-far")))?;
    let link = format!(
        "link add near address 02:00:00:00:00:01 numtxqueues 2 numrxqueues 2 type veth \
         peer name far address 02:00:00:00:00:02 numtxqueues 2 numrxqueues 2 netns {}\n\
         link set near up\n",
        far.name()
    );
    near.ip_batch(&link).unwrap();
    far.ip_batch("addr add 10.7.0.2/24 dev far\nlink set far up\n")
        .unwrap();
    wait_until(PATIENCE, "the link's carrier", || {
        let shown = near.ip(&["-o", "link", "show", "dev", "near"]).unwrap();
        shown.contains("LOWER_UP").then_some(())
    })
    .unwrap();
    let socket = far.inside(|| UdpSocket::bind("10.7.0.2:9000"));
    let socket = socket.unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(Pair { near, far, socket })
}

impl Pair {
    /// An AF_XDP port at the near side; `None`, and said, where the kernel
    /// has none.
    fn open(&self, queue: u32, pool: &Pool) -> Option<AfXdp> {
        let opened = self
            .near
            .inside(|| AfXdp::open("near", queue, 1_514, UNDER_WAY, pool));
        match opened.unwrap() {
            Err(PortError::Socket(error)) if error.raw_os_error() == Some(97) => {
                skip::unless(Err(anyhow::Error::from(error)))
            }
            opened => Some(opened.unwrap()),
        }
    }

    /// Numbers of the packets that have come, as many as are wanted, each
    /// whole.
    fn numbers(&self, wanted: usize, payload_bytes: usize) -> Vec<u32> {
        let mut bytes = [0; 2_048];
        let mut numbers: Vec<u32> = (0..wanted)
            .map(|_| {
                let len = self.socket.recv(&mut bytes).unwrap();
                let number = u32::from_be_bytes(*bytes.first_chunk().unwrap());
                assert_eq!(bytes[4..len], payload(number, payload_bytes)[4..]);
                assert_eq!(len, payload_bytes);
                number
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

fn payload(number: u32, bytes: usize) -> Vec<u8> {
    let rest = (4..bytes).map(|at| (at as u32).wrapping_mul(number + 7) as u8);
    number.to_be_bytes().into_iter().chain(rest).collect()
}

/// Sends so many packets by a port, numbered from `first` on; what is under
/// way at the end is waited for.
fn send(port: &mut AfXdp, cache: &mut Cache, first: u32, count: u32, payload_bytes: usize) {
    let mut batch = Batch::new(32);
    let mut next = first;
    let all = || next < first + count;
    let deadline = std::time::Instant::now() + PATIENCE;
    let mut going = all();
    while going {
        assert!(std::time::Instant::now() < deadline, "{next} of {count}");
        while next < first + count
            && batch.room() > 0
            && let Some(mut buffer) = cache.take()
        {
            let ip = Ip::new([10, 7, 0, 1].into(), [10, 7, 0, 2].into());
            let packet = ip.udp(9, 9_000, &payload(next, payload_bytes));
            let frame = [&FAR[..], &NEAR, &[8, 0], &packet].concat();
            assert!(buffer.set_frame(&frame, 14));
            batch.push(buffer).unwrap();
            next += 1;
        }
        port.send(cache, &mut batch).unwrap();
        going = next < first + count || !batch.is_empty() || port.pending() > 0;
    }
}

/// Sent, copied and refused.
fn counts(counters: Counters) -> (u64, u64, u64) {
    (
        counters.sent_packets,
        counters.copied_packets,
        counters.refused_packets,
    )
}

#[test]
fn frames_go_from_where_they_lie_in_the_pool() {
    let Some(pair) = pair("axlie") else { return };
    // 1,472 bytes of payload are the whole MTU.
    for (slot_bytes, payload_bytes) in [(2_048, 4), (2_048, 1_472), (4_096, 1_472)] {
        let pool = Pool::aligned(100, slot_bytes).unwrap();
        let Some(mut port) = pair.open(0, &pool) else {
            return;
        };
        let mut cache = pool.cache();
        // Many times all buffers there are.
        for round in 0..20 {
            send(&mut port, &mut cache, round * 50, 50, payload_bytes);
            let numbers = pair.numbers(50, payload_bytes);
            assert!(numbers.into_iter().eq(round * 50..round * 50 + 50));
        }
        assert_eq!(counts(port.counters()), (1_000, 0, 0));
        assert_eq!(
            port.counters().sent_bytes,
            1_000 * (payload_bytes as u64 + 28)
        );
        drop((port, cache));
        assert_eq!(pool.outstanding(), 0);
    }
}

#[test]
fn two_sockets_send_from_one_pool() {
    let Some(pair) = pair("axtwo") else { return };
    let pool = Pool::aligned(256, 2_048).unwrap();
    let Some(mut first) = pair.open(0, &pool) else {
        return;
    };
    let mut second = pair.open(1, &pool).unwrap();
    let mut cache = pool.cache();
    for round in 0..10 {
        send(&mut first, &mut cache, round * 60, 30, 500);
        send(&mut second, &mut cache, round * 60 + 30, 30, 500);
        let numbers = pair.numbers(60, 500);
        assert!(numbers.into_iter().eq(round * 60..round * 60 + 60));
    }
    for port in [&first, &second] {
        assert_eq!(counts(port.counters()), (300, 0, 0));
    }
    // While one has packets under way, the other ends.
    drop(first);
    send(&mut second, &mut cache, 0, 30, 500);
    assert_eq!(pair.numbers(30, 500).len(), 30);
    drop((second, cache));
    assert_eq!((pool.outstanding(), pair.far.name().is_empty()), (0, false));
}

#[test]
fn any_other_pool_is_copied_from_and_a_stranger_refused() {
    let Some(pair) = pair("axcopy") else { return };
    let pool = Pool::new(100, 1_514).unwrap();
    let Some(mut port) = pair.open(0, &pool) else {
        return;
    };
    let mut cache = pool.cache();
    // No more at a time than the socket at the far side takes.
    for round in 0..4 {
        send(&mut port, &mut cache, round * 50, 50, 700);
        let numbers = pair.numbers(50, 700);
        assert!(numbers.into_iter().eq(round * 50..round * 50 + 50));
    }
    assert_eq!(counts(port.counters()), (200, 200, 0));
    drop(port);
    // A pool that is the device's memory, and a buffer that is not of it.
    let own = Pool::aligned(100, 2_048).unwrap();
    let mut port = pair.open(0, &own).unwrap();
    send(&mut port, &mut cache, 0, 10, 700);
    assert_eq!(counts(port.counters()), (0, 0, 10));
    send(&mut port, &mut own.cache(), 0, 10, 700);
    assert_eq!(pair.numbers(10, 700).len(), 10);
    assert_eq!(counts(port.counters()), (10, 0, 10));
    drop((port, cache));
    assert_eq!((pool.outstanding(), own.outstanding()), (0, 0));
}
