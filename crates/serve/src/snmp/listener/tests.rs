use super::super::contexts::Facts;
use super::super::fair::Datagram;
use super::super::notify::Notifier;
use super::super::samples::Manner;
use super::super::socket::BATCH;
use super::*;
use snmp::Contexts;
use std::net::UdpSocket;

/// Tables that nobody follows.
#[derive(Debug)]
struct Still(table::Reader);

impl table::Source for Still {
    fn reader(&self) -> table::Reader {
        self.0.clone()
    }

    fn status(&self) -> table::Status {
        table::Status::default()
    }

    fn samples(&self) -> Option<&table::Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        0
    }
}

fn link(index: u32) -> table::Link {
    table::Link {
        index,
        name: format!("l{index}").into(),
        ..table::Link::default()
    }
}

/// What listeners share where these links are there.
fn shared(links: impl Iterator<Item = table::Link>) -> (Arc<Shared>, Notifier) {
    let mut writer = table::Writer::default();
    writer.commit(links.map(table::Change::PutLink)).unwrap();
    let agent = Agent::new(snmp::config::Config {
        engine_id: b"engine".to_vec(),
        engine_boots: 1,
        salt_seed: 1,
        communities: vec![snmp::config::Community {
            name: b"public".to_vec(),
            sources: Vec::new(),
            view: snmp::view::View::all(),
            context: Vec::new(),
        }],
        users: Vec::new(),
        remote_users: Vec::new(),
        max_message_bytes: 65_507,
        allowed_sources: vec!["127.0.0.0/8".parse().unwrap()],
        amplification: 2,
        authentic_amplification: 64,
    });
    let facts = Facts {
        system: mib::System::default(),
        engine_id: b"engine".to_vec(),
        boots: 1,
        max_message_bytes: 65_507,
        sends_authentication_failures: false,
    };
    let clock = Clock::start();
    let source = Source::new(facts, clock);
    let shared = Arc::new(Shared::new(agent.unwrap(), source, clock));
    let notifier = Notifier::start(Arc::clone(&shared), clock).unwrap();
    let namespace = crate::namespace::Namespace {
        name: None,
        inode: 0,
        is_others: false,
        source: Arc::new(Still(writer.reader())),
        feeder: None,
    };
    shared
        .source
        .set_namespaces([namespace].into_iter(), notifier.sender());
    (shared, notifier)
}

/// GetBulk of v2c: community `public`, 32,767 repetitions behind ifDescr.
const BULK: &[u8] = &[
    0x30, 0x28, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa5, 0x1b, 2, 1, 7, 2, 1, 0, 2,
    2, 0x7f, 0xff, 0x30, 0x0f, 0x30, 0x0d, 6, 9, 0x2b, 6, 1, 2, 1, 2, 2, 1, 2, 5, 0,
];

/// A master's requests that come in one read are answered from one [`Asked`],
/// whatever contexts they are of.
#[test]
fn contexts_that_are_asked_for_together_are_each_answered() {
    let bridge = |index| table::Link {
        kind_data: table::KindData::Bridge(Box::default()),
        ..link(index)
    };
    let port = |index, master| table::Link {
        master: Some(master),
        ..link(index)
    };
    let links = [bridge(1), bridge(2), port(3, 1), port(4, 2), port(5, 2)];
    let (shared, _notifier) = shared(links.into_iter());
    let asked = shared.source.moment(Default::default(), Manner::Take);
    // dot1dBaseNumPorts
    let ports = |context: &str| {
        let name = [1, 3, 6, 1, 2, 1, 17, 1, 2, 0];
        let mut told = None;
        let mib = asked.context(context.as_bytes())?;
        mib.get(&[&name], &mut |_, value| told = Some(format!("{value:?}")));
        told
    };
    let of = |ports: u32| Some(format!("Integer({ports})"));
    for _ in 0..2 {
        assert_eq!(ports("bridge-l1"), of(1));
        assert_eq!(ports("bridge-l2"), of(2));
        assert!(ports("").is_some());
        assert_eq!(ports("bridge-l3"), None);
    }
}

#[test]
fn a_turn_ends_when_its_answers_have_cost_enough() {
    let (shared, _notifier) = shared((1..=10_000).map(link));
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), PATIENCE).unwrap();
    let socket = Arc::new(socket);
    let (mut batch, mut queues) = (Batch::new(), Queues::new().unwrap());
    let mut askers = 0..AT_ONCE as u16;
    batch.load(AT_ONCE, || {
        let from = SocketAddr::from(([127, 0, 0, 1], 10_000 + askers.next()?));
        Some(Datagram {
            octets: BULK.into(),
            way: Way::of(from),
        })
    });
    shared.answer(&mut batch, &mut queues, &socket);
    let one = shared.agent().work();
    let mut left = 0;
    while queues.waiting.take().is_some() {
        left += 1;
    }
    // The last that was answered began within the turn's units.
    let answered = AT_ONCE as u32 - left;
    assert!(left > 0 && one > 1_000, "{left} left, {one} units each");
    assert!((answered - 1) * one <= MOST_WORK, "{answered} of {one}");
    assert!(answered * one > MOST_WORK, "{answered} of {one}");
}

#[test]
fn who_asks_once_is_among_the_first_that_are_answered() {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), PATIENCE).unwrap();
    let client = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (flood, other) = (client(), client());
    for _ in 0..10 * BATCH {
        flood.send_to(b"flood", socket.address()).unwrap();
    }
    other.send_to(b"other", socket.address()).unwrap();
    let (mut batch, mut queues) = (Batch::new(), Queues::new().unwrap());
    queues.receive(&socket, &mut batch).unwrap();
    let said: Vec<_> = batch.received().map(|(said, _)| said.to_vec()).collect();
    assert_eq!(said.len(), AT_ONCE);
    assert!(said.contains(&b"other".to_vec()));
    // What waits is answered before anybody is waited for.
    let mut answered = said.len();
    while !queues.waiting.is_empty() {
        queues.receive(&socket, &mut batch).unwrap();
        answered += batch.received().count();
    }
    assert!(answered > 2 * BATCH, "{answered}");
}
