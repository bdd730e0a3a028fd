//! What is done with the bytes of the target `agentx`: a session that is
//! open takes them for its master's, and answers within bounds.

use fingerpost_snmp::agentx::{Config, Registration, Session};
use fingerpost_snmp::mib::{DefaultContext, Mib, WalkSink};
use fingerpost_snmp::{Oid, Value};

/// What waits for a master that reads nothing, at most: the room, and one
/// answer beyond it.
const MAX_WAITING_BYTES: usize = (1 << 20) + (1 << 23);

/// A thousand numbers under mib-2.
struct Numbers;

const PREFIX: [u32; 6] = [1, 3, 6, 1, 2, 1];

impl Mib for Numbers {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (at, name) in names.iter().enumerate() {
            match name.strip_prefix(&PREFIX) {
                Some([last @ 0..1_000]) => sink(at, Value::Gauge32(*last)),
                Some(_) => sink(at, Value::NoSuchInstance),
                None => sink(at, Value::NoSuchObject),
            }
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        for last in 0..1_000 {
            let name = [1, 3, 6, 1, 2, 1, last];
            if name.as_slice() > after && sink(&name, Value::Gauge32(last)).is_break() {
                return;
            }
        }
    }
}

/// A response to the first message of a session: it is open, number 9.
const OPENED: [u8; 28] = [
    1, 18, 0x10, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// Whatever a master sends after the session is open, in two pieces.
pub fn agentx(bytes: &[u8]) {
    let mut session = Session::new(Config {
        id: Oid::default(),
        description: String::new(),
        priority: 100,
        registrations: vec![Registration {
            context: Vec::new(),
            subtree: Oid::new(&PREFIX).expect("a name"),
        }],
        patience_millis: 1_000,
        ping_millis: 500,
    });
    let contexts = DefaultContext(&Numbers);
    session.connected(0);
    session.received(&OPENED, 0);
    session.work(&contexts, 0).expect("a session that opens");
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for (piece, now_millis) in [(first, 1), (second, 2)] {
        session.received(piece, now_millis);
        if session.work(&contexts, now_millis).is_err() {
            return;
        }
        assert!(session.to_write().len() < MAX_WAITING_BYTES);
        let waiting = session.to_write().len();
        session.written(waiting / 2);
    }
    // A master that said nonsense may be refused, but never too early.
    let _ = session.tick(3);
}
