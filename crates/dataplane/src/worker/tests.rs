mod in_place;

use std::net::Ipv4Addr;
use std::time::Instant;

use packet::build::Ip;

use super::*;
use crate::fib_sync::Attachment;
use crate::forward::{Node, Reason, Settings};
use crate::testing::*;
use crate::{Cache, Frames, Memory, Pool};

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
            pool.cache(),
        );
        let ports: Vec<(u16, Box<dyn Port + Send>)> = vec![
            (0, Box::new(Memory::frames(source))),
            (1, Box::new(Memory::pair(&pool, 64).0)),
        ];
        let worker = Worker::new(
            forwarder,
            domain.register().unwrap(),
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
        let state = worker.stop();
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
    assert_eq!(pool.outstanding(), 0);
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
    let mut places = [Place::new(1, Box::new(near))];
    let mut tagged = packet(9);
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    let local = Ip::new([10, 0, 2, 5].into(), [10, 0, 2, 1].into()).udp(1, 2, b"x");
    for bytes in [packet(9), tagged, frame(mac(1, 2), &local), packet(9)] {
        let mut buffer = cache.take().unwrap();
        assert!(buffer.set_frame(&bytes, 14));
        batch.push(buffer).unwrap();
    }
    let one = dispatch::forward(&mut forwarder, &reader.enter(), 0, &mut batch, 5);
    assert_eq!(one, None);
    dispatch::send(
        &mut forwarder,
        &mut batch,
        &mut leaving,
        &mut Ways {
            places: &mut places,
            mesh: None,
        },
        one,
    );
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

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 99);
const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 9);
/// Hosts inside, and flows of each.
const HOSTS: u8 = 20;
const FLOWS: u16 = 10;

/// The same with em3 outside, and workers that are not started: each gets
/// `packets` packets from inside, of the flows with its number in turn, and
/// by its other port what goes out is to be had.
fn translators(packets: u32, ring: usize) -> (Router, Pool, Vec<Worker>, Vec<Memory>) {
    let mut router = router();
    let hosts = (0..HOSTS).map(|host| known(2, &format!("10.0.2.{}", 10 + host), [2; 6]));
    router.commit(hosts.collect());
    let mut ports: Vec<_> = router.fill.ports().iter().cloned().collect();
    ports[1].is_outside = true;
    let ports = Ports::new(ports);
    // All that two workers make may wait outside while the test does not run,
    // and there are answers to make.
    let pool = Pool::new(16_384, 2_048).unwrap();
    let mut config = nat::Config::new(&[ALIAS]);
    config.seed = 11;
    let engines: Vec<nat::Nat> = (0..2)
        .map(|_| nat::Nat::new(config.clone()).unwrap())
        .collect();
    let shards = Arc::new(engines[0].shards(2).unwrap());
    let mesh = Mesh::of(&pool, 2, ring).unwrap();
    let (mut workers, mut outside) = (Vec::new(), Vec::new());
    for ((mut engine, mesh), number) in engines.into_iter().zip(mesh).zip(0_u16..) {
        engine.join_shards(Arc::clone(&shards), number);
        let forwarder = Forwarder::new(
            ports.clone(),
            router.fill.views(),
            router.fill.table(),
            Some(engine),
            Settings::default(),
            pool.cache(),
        );
        let (far, near) = Memory::pair(&pool, 4_096);
        outside.push(far);
        let mut made = 0;
        let source = Memory::generator(move |buffer| {
            let flow = made % u32::from(FLOWS) * 2 + u32::from(number);
            let from = Ipv4Addr::new(10, 0, 2, 10 + (made / u32::from(FLOWS)) as u8 % HOSTS);
            let data = made.to_be_bytes();
            let packet = Ip::new(from, REMOTE).udp(4_000 + flow as u16, 53, &data);
            made += 1;
            made <= packets && buffer.set_frame(&frame(mac(1, 2), &packet), 14)
        });
        let worker = Worker::new(
            forwarder,
            router.fill.table().domain().register().unwrap(),
            vec![(0, Box::new(source)), (1, Box::new(near))],
            64,
            Clock::System,
            None,
        );
        workers.push(worker.with_mesh(mesh));
    }
    (router, pool, workers, outside)
}

/// Has it run until so many packets came to it, by its ports or handed over
/// to it.
fn handed_over(worker: &Running, packets: u64) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = worker.state(PATIENCE).unwrap();
        if state.counters.of_node(Node::Ipv4) == packets {
            return state.counters.of_node(Node::Handoff);
        }
        assert!(Instant::now() < deadline, "{state:?}");
    }
}

#[test]
fn workers_hand_each_other_what_is_the_other_s() {
    const PACKETS: u32 = 4_000;
    let (_router, pool, workers, mut outside) = translators(PACKETS, 8_192);
    let running = workers
        .into_iter()
        .map(|worker| Running::start(worker, None).unwrap());
    let running: Vec<Running> = running.collect();
    let (mut cache, mut batch) = (pool.cache(), Batch::new(64));
    let mut last: std::collections::HashMap<(usize, u16), u32> = std::collections::HashMap::new();
    let (mut came, mut answers) = (0, 0);
    let deadline = Instant::now() + PATIENCE;
    while came < 2 * PACKETS {
        assert!(Instant::now() < deadline, "{came} came");
        for number in 0..2 {
            outside[number].receive(&mut cache, &mut batch).unwrap();
            came += batch.len() as u32;
            let mut back = Batch::new(64);
            for buffer in batch.packets() {
                let ip = packet::Ipv4::new(buffer.packet()).unwrap();
                let udp = packet::Udp::new(ip.payload()).unwrap();
                assert!(udp.checksum_is_right(ip.pseudo_header()));
                assert_eq!((ip.source(), ip.destination()), (ALIAS, REMOTE));
                let order = u32::from_be_bytes(udp.payload().try_into().unwrap());
                // Each port is one worker's, and a flow's order is kept.
                assert!(!last.contains_key(&(1 - number, udp.source_port())));
                let before = last.insert((number, udp.source_port()), order);
                assert!(before.is_none_or(|before| before < order));
                if order.is_multiple_of(2) {
                    let answer = Ip::new(REMOTE, ALIAS).udp(53, udp.source_port(), b"answer");
                    let mut buffer = cache.take().unwrap();
                    assert!(buffer.set_frame(&frame(mac(1, 3), &answer), 14));
                    back.push(buffer).unwrap();
                }
            }
            // Answers come to the other one.
            answers += back.len() as u64;
            outside[1 - number].send(&mut cache, &mut back).unwrap();
        }
        std::thread::yield_now();
    }
    assert_eq!(last.len(), usize::from(HOSTS) * usize::from(FLOWS) * 2);
    let inside = |worker: &Running| {
        let state = worker.state(PATIENCE).unwrap();
        assert_eq!(state.counters.of_reason(Reason::HandoffFull), 0);
        (
            state.ports[0].1.refused_packets + state.ports[0].1.sent_packets,
            state,
        )
    };
    // A worker without anything to do is woken for what is handed to it.
    while running.iter().map(|worker| inside(worker).0).sum::<u64>() < answers {
        assert!(Instant::now() < deadline, "{answers} were sent");
        std::thread::yield_now();
    }
    for worker in running {
        let state = worker.stop();
        assert!(state.counters.of_node(Node::Handoff) > 1_000, "{state:?}");
        assert!(state.nat.unwrap().flows_made > 100);
    }
    drop((outside, cache, batch));
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn what_a_worker_has_no_room_for_is_dropped_and_counted() {
    const PACKETS: u32 = 2_000;
    let (_router, pool, mut workers, outside) = translators(PACKETS, 32);
    let idle = workers.pop().unwrap();
    let busy = Running::start(workers.pop().unwrap(), None).unwrap();
    let handed = handed_over(&busy, u64::from(PACKETS));
    let state = busy.stop();
    assert!(handed > 300, "{handed}");
    assert_eq!(state.counters.of_reason(Reason::HandoffFull), handed - 32);
    let out = state.counters.of_node(Node::Output);
    assert_eq!(out + handed, u64::from(PACKETS));
    // What was handed over before it began is taken when it does.
    let late = Running::start(idle, None).unwrap();
    handed_over(&late, u64::from(PACKETS));
    let state = late.stop();
    assert!(state.counters.of_node(Node::Nat) >= 32);
    drop(outside);
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn who_is_held_takes_nothing_and_gives_its_engine_back() {
    const PACKETS: u32 = 500;
    let (_router, pool, mut workers, outside) = translators(PACKETS, 32);
    let held = Running::hold(workers.pop().unwrap(), None).unwrap();
    let mut late = Running::hold(workers.pop().unwrap(), None).unwrap();
    assert!(held.state(Duration::from_millis(50)).is_none() && !held.has_ended());
    let (state, engine) = held.end();
    assert_eq!(engine.unwrap().statistics().flows, 0);
    assert!(
        state
            .ports
            .iter()
            .all(|(_, counters)| counters.received_packets == 0)
    );
    late.begin();
    late.begin();
    handed_over(&late, u64::from(PACKETS));
    assert!(late.stop().nat.unwrap().flows_made > 0);
    drop(outside);
    assert_eq!(pool.outstanding(), 0);
}

/// A port that fails: at once when it is asked, or when it is sent by.
struct Broken {
    receives: bool,
}

impl Port for Broken {
    fn receive(&mut self, _: &mut Cache, _: &mut Batch) -> Result<Received, PortError> {
        match self.receives {
            true => Ok(Received::Nothing),
            false => Err(self.error()),
        }
    }

    fn send(&mut self, _: &mut Cache, _: &mut Batch) -> Result<crate::Sent, PortError> {
        Err(self.error())
    }

    fn readable(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> crate::Counters {
        crate::Counters::default()
    }
}

impl Broken {
    fn error(&self) -> PortError {
        PortError::Device {
            name: "broken".to_owned(),
            source: io::ErrorKind::NotConnected.into(),
            advice: "",
        }
    }
}

#[test]
fn a_port_that_fails_ends_by_itself() {
    // Port 2 fails when it is asked, port 1 when packets leave by it; port 0
    // goes on to its end.
    let router = router();
    let pool = Pool::new(256, 2_048).unwrap();
    let source = Frames::new([&packet(9)[..]], 14, 100);
    let ports: Vec<(u16, Box<dyn Port + Send>)> = vec![
        (2, Box::new(Broken { receives: false })),
        (0, Box::new(Memory::frames(source))),
        (1, Box::new(Broken { receives: true })),
    ];
    let worker = Worker::new(
        router.forwarder,
        router.reader,
        ports,
        10,
        Clock::System,
        None,
    );
    let (_keep, none) = sync_channel(1);
    let state = worker.run(&none);
    assert_eq!(state.counters.of_node(Node::Ipv4), 100);
    assert_eq!(state.counters.of_reason(Reason::NoPort), 100);
    let failed: Vec<u16> = state.failures.iter().map(|(number, _)| *number).collect();
    assert_eq!(failed, [2, 1]);
    assert!(
        state.failures[0].1.contains("broken"),
        "{:?}",
        state.failures
    );
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn who_takes_no_question_is_told_of_ports_later() {
    let (asks, asked) = sync_channel(1);
    let (go, gate) = channel::<()>();
    let (tell, told) = channel();
    let thread = thread::spawn(move || {
        gate.recv().unwrap();
        while let Ok(ask) = asked.recv() {
            match ask {
                Ask::Ports(ports) => tell.send(ports.len()).unwrap(),
                Ask::Stop => break,
                _ => {}
            }
        }
        (State::default(), None)
    });
    let running = Running {
        asks,
        rung: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
        held: None,
        thread,
        failed: Arc::default(),
    };
    let (to, _answer) = channel();
    assert!(running.ask(Ask::State(to)));
    let mut workers = Workers::default();
    workers.all.push(running);
    let port = crate::forward::PortSettings {
        link: 7,
        ethernet: None,
        vlan: None,
        mtu: 1_500,
        view: 0,
        is_host: false,
        is_outside: false,
        ipv4: None,
        ipv6: None,
    };
    workers.set_ports(&Ports::new(vec![port]));
    assert_eq!(workers.remind(), 1);
    go.send(()).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while workers.remind() > 0 {
        assert!(Instant::now() < deadline, "not told");
        thread::yield_now();
    }
    assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
    workers.all.pop().unwrap().stop();
}

#[test]
fn what_a_bad_link_does_is_repeated_and_a_trace_shows_it() {
    use crate::port::faults::{Faults, Rates};
    use crate::port::trace::Trace;
    use crate::{Capture, LinkType};

    let rates = Rates {
        loss: 100_000,
        duplicate: 50_000,
        reorder: 50_000,
        corrupt: 20_000,
    };
    let directory = tempfile::tempdir().unwrap();
    let mut runs = Vec::new();
    for run in 0..2 {
        let path = directory.path().join(format!("{run}.pcap"));
        let pool = Pool::new(256, 2_048).unwrap();
        let (mut cache, mut batch) = (pool.cache(), Batch::new(16));
        let trace = Trace::new(Memory::null(), &path, LinkType::Ethernet, || 5_000_000_000);
        let mut port = Faults::new(trace.unwrap(), rates, 7, 16);
        for round in 0..125_u32 {
            cache.fill(&mut batch, 16);
            for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
                let number = round * 16 + place as u32;
                let bytes = [&[0; 14][..], &number.to_be_bytes(), &[0; 42]].concat();
                assert!(buffer.set_frame(&bytes, 14));
            }
            assert_eq!(port.send(&mut cache, &mut batch).unwrap(), crate::Sent::All);
            assert!(batch.is_empty());
        }
        let (done, pending) = (port.done(), port.pending() as u64);
        let counters = port.into_inner().finish().unwrap().counters();
        assert_eq!(
            counters.sent_packets,
            2_000 - done.lost + done.duplicated - pending
        );
        for (count, rate) in [
            (done.lost, 200),
            (done.duplicated, 90),
            (done.reordered, 85),
            (done.corrupted, 36),
        ] {
            assert!(count > rate / 2 && count < rate * 2, "{done:?}");
        }
        let mut capture = Capture::open(&path, None).unwrap();
        let mut seen = Vec::new();
        while capture.receive(&mut cache, &mut batch).unwrap() == Received::Packets {
            for buffer in batch.packets() {
                assert_eq!(buffer.time_nanos(), 5_000_000_000);
                seen.push(buffer.packet().to_vec());
            }
        }
        assert_eq!(seen.len() as u64, counters.sent_packets);
        let number = |bytes: &Vec<u8>| u32::from_be_bytes(bytes[..4].try_into().unwrap());
        assert!(!seen.is_sorted_by_key(number));
        runs.push((done, seen));
    }
    assert_eq!(runs[0], runs[1]);
}
