use std::time::Instant;

use packet::build::Ip;

use super::*;
use crate::fill::Attachment;
use crate::forward::{Node, Reason, Settings};
use crate::testing::*;
use crate::{Frames, Memory, Pool};

const PATIENCE: Duration = Duration::from_secs(60);

fn packet(host: u8) -> Vec<u8> {
    let ip = Ip::new([10, 0, 2, 5].into(), [10, 0, 3, host].into());
    frame(mac(1, 2), &ip.udp(4_000, 53, b"question"))
}

/// em2 to em3, where 10.0.3.9 is known.
fn router() -> Router {
    let changes = [
        vec![link(1, 2, true, 1_500), link(1, 3, true, 1_500)],
        address(2, "10.0.2.1/24"),
        address(3, "10.0.3.1/24"),
        vec![known(3, "10.0.3.9", [2, 7, 0, 0, 0, 9])],
    ]
    .concat();
    let ports = vec![Attachment::ethernet("em2"), Attachment::ethernet("em3")];
    Router::new(changes, ports)
}

#[test]
fn workers_forward_each_for_itself_and_are_asked_between_batches() {
    let mut router = router();
    let pool = Pool::new(4_096, 2_048).unwrap();
    let domain = Arc::clone(router.fill.table().domain());
    let (requests, asked) = sync_channel(16);
    let mut running = Vec::new();
    for _ in 0..2 {
        let source = Frames::new([&packet(9)[..], &packet(8)], 14, 20_000);
        let forwarder = Forwarder::new(
            router.fill.ports().clone(),
            router.fill.views(),
            router.fill.table(),
            None,
            Settings::default(),
        );
        let ports: Vec<(u16, Box<dyn Port + Send>)> = vec![
            (0, Box::new(Memory::frames(source))),
            (1, Box::new(Memory::pair(&pool, 64).0)),
        ];
        let worker = Worker::new(
            forwarder,
            domain.register().unwrap(),
            pool.cache(),
            ports,
            64,
            Clock::System,
            Some(requests.clone()),
        );
        running.push(Running::start(worker, Some(0)).unwrap());
    }
    for worker in &running {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // One that has ended does not answer; its end says the same.
            let Some(state) = worker.state(PATIENCE) else {
                // Its channel ends a moment before its thread.
                while !worker.has_ended() {
                    assert!(Instant::now() < deadline, "neither answers nor ends");
                    std::thread::yield_now();
                }
                break;
            };
            if state.counters.of_node(Node::Ipv4) == 20_000 {
                break;
            }
            assert!(Instant::now() < deadline, "{state:?}");
        }
    }
    for worker in running {
        let state = worker.stop().unwrap();
        assert_eq!(state.counters.of_node(Node::Ipv4), 20_000);
        assert_eq!(state.counters.of_node(Node::Output), 20_000);
        let held = state.counters.of_reason(Reason::Held);
        let full = state.counters.of_reason(Reason::QueueFull);
        assert_eq!((held, held + full), (101, 10_000));
        let (_, out) = state.ports[1];
        // The other end is gone: what reached the port was refused there.
        assert_eq!(out.refused_packets, 10_000);
    }
    let request = asked.try_recv().unwrap();
    assert_eq!(request.key.ip(), std::net::IpAddr::from([10, 0, 3, 8]));
    assert_eq!(pool.away(), 0);
    router.commit(vec![known(3, "10.0.3.8", [2, 7, 0, 0, 0, 8])]);
}

#[test]
fn what_leaves_a_worker_is_what_came_with_another_header() {
    let router = router();
    let mut reader = router.reader;
    let mut forwarder = router.forwarder;
    let pool = Pool::new(64, 2_048).unwrap();
    let mut cache = pool.cache();
    let (mut batch, mut leaving) = (Batch::new(8), Batch::new(8));
    let (far, near) = Memory::pair(&pool, 8);
    let mut far = far;
    let mut places = [Place {
        number: 1,
        port: Box::new(near),
        has_ended: false,
        takes_all: false,
    }];
    let mut tagged = packet(9);
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    let local = Ip::new([10, 0, 2, 5].into(), [10, 0, 2, 1].into()).udp(1, 2, b"x");
    for bytes in [packet(9), tagged, frame(mac(1, 2), &local), packet(9)] {
        let mut buffer = cache.take().unwrap();
        assert!(buffer.set_frame(&bytes, 14));
        batch.push(buffer).unwrap();
    }
    let one = carry::forward(&mut forwarder, &reader.enter(), 0, &mut batch, 5);
    assert_eq!(one, None);
    carry::send(
        &mut forwarder,
        &mut cache,
        &mut batch,
        &mut leaving,
        &mut places,
        one,
    )
    .unwrap();
    assert!(batch.is_empty());
    assert_eq!(forwarder.counters().of_reason(Reason::NoHost), 1);
    far.receive(&mut cache, &mut batch).unwrap();
    assert_eq!(batch.len(), 3);
    for buffer in batch.packets() {
        assert_eq!(buffer.link()[..6], [2, 7, 0, 0, 0, 9]);
        assert_eq!(buffer.link()[12..], [8, 0]);
        assert_eq!(buffer.packet()[20..], packet(9)[34..]);
        assert_eq!(buffer.packet()[8], 63);
    }
}
