use super::*;
use crate::agentx::owned::OwnedValue;
use crate::agentx::wire::error;
use crate::mib::Value;
use registry::MAX_SUBTREES_OF_SESSION;

const OWN: &[&[u32]] = &[&[1, 3, 6, 1, 2, 1, 2, 2], &[1, 3, 6, 1, 2, 1, 4, 24, 4]];

fn at(millis: u64) -> Now {
    Now {
        millis,
        up_time: 4_711,
    }
}

/// A master, and the messages of one who connects to it.
struct Peer {
    master: Master,
    connection: u32,
    session: u32,
    order: u8,
    packet: u32,
}

impl Peer {
    /// An open session, in network byte order or the other.
    fn open(is_network_order: bool) -> Self {
        let mut master = Master::new(MasterConfig {
            timeout_millis: 1_000,
            own: OWN.to_vec(),
        });
        let connection = master.connected();
        let order = if is_network_order {
            flag::NETWORK_BYTE_ORDER
        } else {
            0
        };
        let mut peer = Self {
            master,
            connection,
            session: 0,
            order,
            packet: 0,
        };
        let (header, _) = peer.ask(kind::OPEN, 0, |message| {
            message.quad([0; 4]);
            message.name(&[]);
            message.octets(b"a test\n");
        });
        peer.session = header.session;
        peer
    }

    fn message(&mut self, kind: u8, flags: u8, fill: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
        self.packet += 1;
        let header = Header {
            kind,
            flags: flags | self.order,
            session: self.session,
            transaction: 0,
            packet: self.packet,
            payload_len: 0,
        };
        let mut out = Vec::new();
        let mut message = Message::begin_in_order(&mut out, &header);
        fill(&mut message);
        message.end();
        out
    }

    /// Asks for something; the answer's header and error.
    fn ask(&mut self, kind: u8, flags: u8, fill: impl FnOnce(&mut Message<'_>)) -> (Header, u16) {
        let message = self.message(kind, flags, fill);
        self.sent();
        self.master
            .received(self.connection, &message, at(0))
            .unwrap();
        let (header, payload) = self.sent().pop().expect("an answer");
        assert_eq!((header.kind, header.packet), (kind::RESPONSE, self.packet));
        assert_eq!(header.flags & flag::NETWORK_BYTE_ORDER, self.order);
        let mut payload = Payload::new(&payload, header.flags);
        assert_eq!(payload.word(""), Ok(4_711));
        (header, payload.half("").unwrap())
    }

    /// What the master sent.
    fn sent(&mut self) -> Vec<(Header, Vec<u8>)> {
        let octets = self.master.to_write(self.connection).to_vec();
        self.master.written(self.connection, octets.len());
        let mut rest = &octets[..];
        let mut all = Vec::new();
        while let Some(header) = Header::read(rest).unwrap() {
            let whole = HEADER_BYTES + header.payload_len;
            all.push((header, rest[HEADER_BYTES..whole].to_vec()));
            rest = &rest[whole..];
        }
        assert!(rest.is_empty());
        all
    }

    fn register(&mut self, subtree: &[u32], priority: u8, range: (u8, u32)) -> u16 {
        let fill = registration(subtree, priority, range);
        self.ask(kind::REGISTER, 0, fill).1
    }

    fn unregister(&mut self, subtree: &[u32], priority: u8, range: (u8, u32)) -> u16 {
        let fill = registration(subtree, priority, range);
        self.ask(kind::UNREGISTER, 0, fill).1
    }

    /// Who owns a name of the default context.
    fn owner(&mut self, name: &[u32]) -> Owner {
        let dispatch = self.master.dispatch();
        let Some(regions) = dispatch.regions(b"") else {
            return Owner::Own;
        };
        let mut of_name = regions.iter().filter(|region| {
            let ends = region.end.as_deref().is_none_or(|end| name < end);
            *region.start <= *name && ends
        });
        let owner = of_name.next().expect("each name is in a region").owner;
        assert!(of_name.next().is_none(), "each name is in one region");
        owner
    }

    fn is_theirs(&mut self, name: &[u32]) -> bool {
        self.owner(name) != Owner::Own
    }

    fn next(&mut self, token: u64, rows: u16, now_millis: u64) {
        let question = Question {
            session: self.session,
            context: Vec::new(),
            timeout_millis: 1_000,
            what: What::Next {
                start: [1, 3, 6, 1, 4, 1, 9].into(),
                include: true,
                end: Some([1, 3, 6, 1, 4, 1, 10].into()),
                rows,
            },
        };
        self.master.ask(token, question, now_millis);
    }

    /// Answers a question of the master by these names.
    fn answer(&mut self, packet: u32, names: &[&[u32]], now_millis: u64) -> Result<(), Cut> {
        let message = self.message(kind::RESPONSE, 0, |message| {
            message.word(0);
            message.halves(0, 0);
            for name in names {
                message.binding(name, &Value::Integer(1));
            }
        });
        let mut message = message;
        let octets = match self.order {
            0 => packet.to_le_bytes(),
            _ => packet.to_be_bytes(),
        };
        message[12..16].copy_from_slice(&octets);
        self.master
            .received(self.connection, &message, at(now_millis))
    }
}

fn registration(
    subtree: &[u32],
    priority: u8,
    (place, last): (u8, u32),
) -> impl FnOnce(&mut Message<'_>) {
    move |message| {
        message.quad([0, priority, place, 0]);
        message.name(subtree);
        if place > 0 {
            message.word(last);
        }
    }
}

const BGP: [u32; 7] = [1, 3, 6, 1, 2, 1, 15];
const NINE: [u32; 7] = [1, 3, 6, 1, 4, 1, 9];

#[test]
fn the_longest_subtree_decides_then_the_lowest_priority() {
    for is_network_order in [true, false] {
        let mut peer = Peer::open(is_network_order);
        assert!(!peer.is_theirs(&BGP));
        assert_eq!(peer.register(&BGP, 127, (0, 0)), error::NONE);
        assert!(peer.is_theirs(&BGP) && peer.is_theirs(&[1, 3, 6, 1, 2, 1, 15, 6, 1]));
        assert!(!peer.is_theirs(&[1, 3, 6, 1, 2, 1, 16]));
        assert!(!peer.is_theirs(&[1, 3, 6, 1, 2, 1, 14, 9]));
        // Around ours, what is ours stays so; what is longer is theirs.
        assert_eq!(
            peer.register(&[1, 3, 6, 1, 2, 1, 4, 24], 127, (0, 0)),
            error::NONE
        );
        assert!(peer.is_theirs(&[1, 3, 6, 1, 2, 1, 4, 24, 3, 0]));
        assert!(!peer.is_theirs(&[1, 3, 6, 1, 2, 1, 4, 24, 4, 1]));
        assert!(peer.is_theirs(&[1, 3, 6, 1, 2, 1, 4, 24, 5]));
        // Of equals, ours is better than who did not choose.
        assert_eq!(peer.register(OWN[0], 127, (0, 0)), error::NONE);
        assert!(!peer.is_theirs(OWN[0]));
        assert_eq!(peer.register(OWN[0], 99, (0, 0)), error::NONE);
        assert!(peer.is_theirs(OWN[0]));
        // Once it is taken back, it is as before.
        assert_eq!(peer.unregister(OWN[0], 99, (0, 0)), error::NONE);
        assert!(!peer.is_theirs(OWN[0]));
        assert_eq!(
            peer.unregister(OWN[0], 99, (0, 0)),
            error::UNKNOWN_REGISTRATION
        );
    }
}

#[test]
fn a_range_is_each_of_its_subtrees() {
    let mut peer = Peer::open(true);
    // ifEntry's columns 1 to 22 of row 7 (RFC 2741 §7.1.4.1).
    let row = [1, 3, 6, 1, 4, 1, 9, 1, 7];
    assert_eq!(peer.register(&row, 127, (8, 22)), error::NONE);
    for (column, index, is_theirs) in [
        (1, 7, true),
        (22, 7, true),
        (23, 7, false),
        (0, 7, false),
        (2, 6, false),
    ] {
        let name = [1, 3, 6, 1, 4, 1, 9, column, index, 0];
        assert_eq!(peer.is_theirs(&name), is_theirs, "{name:?}");
    }
    // One of them is taken: nothing of a second range is registered.
    let again = [1, 3, 6, 1, 4, 1, 9, 22, 7];
    assert_eq!(
        peer.register(&again, 127, (8, 30)),
        error::DUPLICATE_REGISTRATION
    );
    assert!(!peer.is_theirs(&[1, 3, 6, 1, 4, 1, 9, 30, 7]));
    assert_eq!(peer.register(&again, 126, (8, 30)), error::NONE);
    // It is taken back as it was made, or not at all.
    assert_eq!(
        peer.unregister(&row, 127, (8, 21)),
        error::UNKNOWN_REGISTRATION
    );
    assert_eq!(peer.unregister(&row, 127, (8, 22)), error::NONE);
    assert!(!peer.is_theirs(&[1, 3, 6, 1, 4, 1, 9, 1, 7]));
    assert!(peer.is_theirs(&[1, 3, 6, 1, 4, 1, 9, 22, 7]));
    // Ranges that are none.
    for range in [(8, 0), (20, 9), (9, u32::MAX)] {
        assert_eq!(
            peer.register(&row, 1, range),
            error::REQUEST_DENIED,
            "{range:?}"
        );
    }
}

#[test]
fn what_is_the_agents_alone_and_more_than_the_limit_is_denied() {
    let mut peer = Peer::open(true);
    for denied in [
        &[1, 3, 6, 1, 2, 1, 1][..],
        &[1, 3, 6, 1, 2, 1, 1, 9, 1],
        &[1, 3, 6, 1, 6, 3, 15],
        &[],
    ] {
        assert_eq!(peer.register(denied, 1, (0, 0)), error::REQUEST_DENIED);
    }
    let most = MAX_SUBTREES_OF_SESSION as u32;
    let first = [1, 3, 6, 1, 4, 1, 9, 1];
    assert_eq!(peer.register(&first, 127, (8, most)), error::NONE);
    assert_eq!(peer.register(&BGP, 127, (0, 0)), error::REQUEST_DENIED);
    assert_eq!(peer.unregister(&first, 127, (8, most)), error::NONE);
    assert_eq!(peer.register(&BGP, 127, (0, 0)), error::NONE);
}

#[test]
fn sessions_are_apart_and_end_with_their_connection() {
    let mut peer = Peer::open(true);
    assert_eq!(peer.register(&BGP, 127, (0, 0)), error::NONE);
    let first = peer.session;
    // A second session of the connection, then as many as may be.
    for _ in 1..MAX_SESSIONS_OF_CONNECTION {
        let (header, error) = peer.ask(kind::OPEN, 0, open);
        assert_eq!(error, error::NONE);
        peer.session = header.session;
    }
    assert_eq!(peer.ask(kind::OPEN, 0, open).1, error::OPEN_FAILED);
    assert_eq!(
        peer.register(&BGP, 127, (0, 0)),
        error::DUPLICATE_REGISTRATION
    );
    assert_eq!(
        peer.unregister(&BGP, 127, (0, 0)),
        error::UNKNOWN_REGISTRATION
    );
    // Its better priority wins, and goes with it.
    assert_eq!(peer.register(&BGP, 5, (0, 0)), error::NONE);
    let owner = peer.owner(&BGP);
    let second = peer.session;
    assert!(matches!(owner, Owner::Subagent { session, .. } if session == second));
    let close = |message: &mut Message<'_>| message.quad([reason::SHUTDOWN, 0, 0, 0]);
    assert_eq!(peer.ask(kind::CLOSE, 0, close).1, error::NONE);
    let owner = peer.owner(&BGP);
    assert!(matches!(owner, Owner::Subagent { session, .. } if session == first));
    // What is closed is not open, and another connection has no part in it.
    assert_eq!(peer.ask(kind::PING, 0, |_| ()).1, error::NOT_OPEN);
    let (own, other) = (peer.connection, peer.master.connected());
    peer.session = first;
    peer.connection = other;
    assert_eq!(peer.ask(kind::PING, 0, |_| ()).1, error::NOT_OPEN);
    peer.connection = own;
    assert_eq!(peer.ask(kind::PING, 0, |_| ()).1, error::NONE);
    peer.master.lost(own);
    assert!(!peer.is_theirs(&BGP));
    assert_eq!(peer.master.sessions(0).count(), 0);
}

fn open(message: &mut Message<'_>) {
    message.quad([0; 4]);
    message.name(&[]);
    message.octets(b"another");
}

#[test]
fn contexts_have_regions_of_their_own() {
    let mut peer = Peer::open(false);
    let in_context = |message: &mut Message<'_>| {
        message.octets(b"red");
        registration(&BGP, 127, (0, 0))(message);
    };
    let asked = peer.ask(kind::REGISTER, flag::NON_DEFAULT_CONTEXT, in_context);
    assert_eq!(asked.1, error::NONE);
    assert!(!peer.is_theirs(&BGP));
    let dispatch = peer.master.dispatch();
    assert!(dispatch.regions(b"red").is_some() && dispatch.regions(b"blue").is_none());
    let long = |message: &mut Message<'_>| message.octets(&[b'x'; 33]);
    let asked = peer.ask(kind::PING, flag::NON_DEFAULT_CONTEXT, long);
    assert_eq!(asked.1, error::UNSUPPORTED_CONTEXT);
}

#[test]
fn index_values_are_held_by_one() {
    let mut peer = Peer::open(true);
    let name = [1, 3, 6, 1, 4, 1, 9, 1, 1];
    let mut ask = |kind, flags, value: Value<'_>| {
        peer.sent();
        let fill = |message: &mut Message<'_>| message.binding(&name, &value);
        let message = peer.message(kind, flags, fill);
        peer.master
            .received(peer.connection, &message, at(0))
            .unwrap();
        let (header, payload) = peer.sent().pop().unwrap();
        let mut payload = Payload::new(&payload, header.flags);
        payload.word("").unwrap();
        let error = payload.half("").unwrap();
        payload.half("").unwrap();
        (error, payload.binding().unwrap().value)
    };
    let number = OwnedValue::Integer;
    let (allocate, deallocate) = (kind::INDEX_ALLOCATE, kind::INDEX_DEALLOCATE);
    let (any, new) = (flag::ANY_INDEX, flag::NEW_INDEX);
    assert_eq!(ask(allocate, 0, Value::Integer(2)), (0, number(2)));
    let again = ask(allocate, 0, Value::Integer(2));
    assert_eq!(again.0, error::INDEX_ALREADY_ALLOCATED);
    assert_eq!(ask(allocate, any, Value::Integer(0)), (0, number(1)));
    assert_eq!(ask(allocate, any, Value::Integer(0)), (0, number(3)));
    assert_eq!(ask(deallocate, 0, Value::Integer(1)), (0, number(1)));
    let again = ask(deallocate, 0, Value::Integer(1));
    assert_eq!(again.0, error::INDEX_NOT_ALLOCATED);
    // One that was never given is another than one that is free.
    assert_eq!(ask(allocate, new, Value::Integer(0)), (0, number(4)));
    assert_eq!(ask(allocate, any, Value::Integer(0)), (0, number(1)));
    let other = ask(allocate, 0, Value::OctetString(b"x"));
    assert_eq!(other.0, error::INDEX_WRONG_TYPE);
    let none = ask(allocate, 0, Value::Counter64(1));
    assert_eq!(none.0, error::INDEX_WRONG_TYPE);
}

#[test]
fn an_index_value_fits_a_name() {
    let row = |len: usize| Row {
        name: NINE.into(),
        value: OwnedValue::OctetString(vec![7; len].into()),
    };
    let mut indexes = Indexes::default();
    let most = crate::oid::MAX_SUB_IDS;
    assert!(indexes.allocate(1, b"", 0, vec![row(most)]).is_ok());
    let refused = indexes.allocate(1, b"", 0, vec![row(most + 1)]);
    assert_eq!(refused, Err((error::INDEX_WRONG_TYPE, 1)));
}

#[test]
fn index_values_are_limited_and_go_with_their_session() {
    let mut indexes = Indexes::default();
    let row = |number: i32| Row {
        name: NINE.into(),
        value: OwnedValue::Integer(number),
    };
    let all = (1..=indexes::MAX_VALUES as i32).map(row).collect();
    assert!(indexes.allocate(1, b"", 0, all).is_ok());
    let beyond = vec![row(i32::MAX)];
    let refused = indexes.allocate(2, b"", 0, beyond.clone());
    assert_eq!(refused, Err((error::INDEX_NONE_AVAILABLE, 1)));
    indexes.forget(1);
    assert!(indexes.allocate(2, b"", 0, beyond).is_ok());
    // A batch is given whole or not at all.
    let batch = vec![row(5), row(i32::MAX)];
    let refused = indexes.allocate(1, b"", 0, batch);
    assert_eq!(refused, Err((error::INDEX_ALREADY_ALLOCATED, 2)));
    assert!(indexes.allocate(3, b"", 0, vec![row(5)]).is_ok());
}

/// Numbers as an index, given and taken back at random, beside a model that
/// looks at all of them.
#[test]
fn any_number_is_the_least_that_is_free_whoever_had_which() {
    let mut indexes = Indexes::default();
    let mut model: std::collections::BTreeMap<i32, u32> = Default::default();
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let row = |number: i32| Row {
        name: NINE.into(),
        value: OwnedValue::Integer(number),
    };
    for _ in 0..5_000 {
        let session = next(3) as u32 + 1;
        let number = next(40) as i32 - 3;
        match next(10) {
            0..=2 => {
                let given = indexes.allocate(session, b"", 0, vec![row(number)]);
                let holder = model.get(&number).copied().unwrap_or(0);
                assert_eq!(given.is_ok(), holder == 0);
                if holder == 0 {
                    model.insert(number, session);
                }
            }
            choice @ 3..=6 => {
                let is_new = choice > 4;
                let flags = if is_new {
                    flag::NEW_INDEX
                } else {
                    flag::ANY_INDEX
                };
                let is_free = |number: &i32| match model.get(number) {
                    None => true,
                    Some(holder) => *holder == 0 && !is_new,
                };
                let least = (1..).find(is_free).unwrap();
                let given = indexes.allocate(session, b"", flags, vec![row(0)]);
                assert_eq!(given, Ok(vec![row(least)]));
                model.insert(least, session);
            }
            7 | 8 => {
                let taken = indexes.deallocate(session, b"", &[row(number)]);
                let is_held = model.get(&number) == Some(&session);
                assert_eq!(taken.is_ok(), is_held);
                if is_held {
                    model.insert(number, 0);
                }
            }
            _ => {
                indexes.forget(session);
                let holders = model.values_mut();
                holders
                    .filter(|holder| **holder == session)
                    .for_each(|holder| *holder = 0);
            }
        }
        // What nobody holds any of is forgotten.
        if model.values().all(|holder| *holder == 0) {
            model.clear();
        }
    }
}

#[test]
fn modules_are_listed_while_their_session_is_open() {
    let mut peer = Peer::open(true);
    let add = |message: &mut Message<'_>| {
        message.name(&NINE);
        message.octets(b"nine");
    };
    for _ in 0..MAX_CAPABILITIES_OF_SESSION {
        assert_eq!(peer.ask(kind::ADD_AGENT_CAPS, 0, add).1, error::NONE);
    }
    let beyond = peer.ask(kind::ADD_AGENT_CAPS, 0, add).1;
    assert_eq!(beyond, error::REQUEST_DENIED);
    let remove = |message: &mut Message<'_>| message.name(&NINE);
    assert_eq!(peer.ask(kind::REMOVE_AGENT_CAPS, 0, remove).1, error::NONE);
    assert_eq!(peer.ask(kind::ADD_AGENT_CAPS, 0, add).1, error::NONE);
    let other = |message: &mut Message<'_>| message.name(&BGP);
    let unknown = peer.ask(kind::REMOVE_AGENT_CAPS, 0, other).1;
    assert_eq!(unknown, error::UNKNOWN_AGENT_CAPS);
    let capabilities = peer.master.capabilities();
    assert_eq!(capabilities.len(), MAX_CAPABILITIES_OF_SESSION);
    assert_eq!(
        (&*capabilities[0].id, capabilities[0].up_time),
        (&NINE[..], 4_711)
    );
    peer.master.lost(peer.connection);
    assert!(peer.master.capabilities().is_empty());
}

#[test]
fn what_a_subagent_tells_is_handed_on() {
    let mut peer = Peer::open(false);
    let trap: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
    let fill = |message: &mut Message<'_>| {
        message.binding(&[1, 3, 6, 1, 2, 1, 1, 3, 0], &Value::TimeTicks(12));
        message.binding(trap, &Value::ObjectIdentifier(&BGP));
        message.binding(&NINE, &Value::Counter64(1 << 40));
    };
    assert_eq!(peer.ask(kind::NOTIFY, 0, fill).1, error::NONE);
    let told = Told {
        context: Vec::new(),
        up_time: Some(12),
        name: BGP.into(),
        rows: vec![Row {
            name: NINE.into(),
            value: OwnedValue::Counter64(1 << 40),
        }],
    };
    assert_eq!(peer.master.events(), [Event::Notified(told)]);
    // Without its name it is none.
    let nameless = |message: &mut Message<'_>| message.binding(&NINE, &Value::Integer(1));
    let refused = peer.ask(kind::NOTIFY, 0, nameless).1;
    assert_eq!(refused, error::PROCESSING_ERROR);
    assert!(!peer.master.has_events());
}

fn failed(token: u64) -> Event {
    Event::Answered {
        token,
        answer: Answer::Failed,
    }
}

#[test]
fn who_answers_nothing_is_asked_now_and_then_and_cut_in_the_end() {
    let mut peer = Peer::open(true);
    peer.next(1, 8, 0);
    let (header, _) = peer.sent().pop().expect("a question");
    assert_eq!(header.kind, kind::GET_BULK);
    assert_eq!(peer.master.deadline(), Some(1_000));
    // More wait behind it than are on their way.
    (2..=10).for_each(|token| peer.next(token, 8, 0));
    assert_eq!(peer.sent().len(), 3);
    assert!(peer.master.tick(999).is_empty() && !peer.master.has_events());
    assert!(peer.master.tick(1_000).is_empty());
    let all: Vec<Event> = (1..=10).map(failed).collect();
    assert_eq!(peer.master.events(), all);
    // It is not asked again at once, but it is tried.
    peer.next(11, 8, 1_999);
    assert_eq!(peer.master.events(), [failed(11)]);
    peer.next(12, 8, 2_000);
    peer.next(13, 8, 2_001);
    assert_eq!(peer.master.events(), [failed(13)]);
    assert_eq!(peer.sent().len(), 1);
    // What it answers too late is no lie, and it is asked again.
    let name = [1, 3, 6, 1, 4, 1, 9, 1];
    peer.answer(header.packet, &[&name], 2_500).unwrap();
    assert!(!peer.master.has_events());
    peer.next(14, 1, 2_600);
    let (header, _) = peer.sent().pop().unwrap();
    assert_eq!(header.kind, kind::GET_NEXT);
    peer.answer(header.packet, &[&name], 2_700).unwrap();
    let event = peer.master.events().pop().unwrap();
    assert!(
        matches!(event, Event::Answered { token: 14, answer: Answer::Rows { ref rows, ended: false } } if rows.len() == 1)
    );
    // It stalls for good.
    peer.master.tick(10_000);
    assert_eq!(peer.master.events(), [failed(12)]);
    let last = 10_000 + LONGEST_STALL_MILLIS;
    assert!(peer.master.tick(last - 1).is_empty());
    assert_eq!(peer.master.tick(last), [(peer.connection, Cut::Stalled)]);
    let state = peer.master.sessions(last).next().unwrap();
    assert_eq!(state.stalled_millis, Some(LONGEST_STALL_MILLIS));
    assert_eq!((state.counters.timed_out, state.counters.answered), (5, 2));
}

#[test]
fn who_answers_only_some_is_cut_before_they_are_many() {
    let mut peer = Peer::open(true);
    let name = [1, 3, 6, 1, 4, 1, 9, 1];
    let mut now = 0;
    for left in 1..=MOST_UNANSWERED {
        peer.next(1, 8, now);
        peer.sent();
        assert!(peer.master.tick(now + 1_000).is_empty(), "{left}");
        peer.next(2, 8, now + 2_000);
        let (header, _) = peer.sent().pop().expect("a question");
        peer.answer(header.packet, &[&name], now + 2_000).unwrap();
        now += 3_000;
        assert!(peer.master.tick(now).is_empty(), "{left}");
    }
    peer.next(3, 8, now);
    assert_eq!(peer.master.tick(now), [(peer.connection, Cut::Forgets)]);
}

#[test]
fn who_reads_slowly_and_never_all_takes_no_more_room() {
    let mut peer = Peer::open(true);
    let ping = peer.message(kind::PING, 0, |_| ());
    let mut most = 0;
    for second in 1..=10_000 {
        peer.master
            .received(peer.connection, &ping, at(second * 1_000))
            .unwrap();
        let waiting = peer.master.to_write(peer.connection).len();
        peer.master.written(peer.connection, waiting - 1);
        most = most.max(peer.master.connections[&peer.connection].output.len());
    }
    assert!(most < 1_000, "{most}");
}

#[test]
fn what_waits_for_a_session_is_bounded_and_fails_with_it() {
    let mut peer = Peer::open(true);
    let fits = questions::MAX_WAITING as u64 + 4;
    (1..=fits).for_each(|token| peer.next(token, 8, 0));
    assert!(!peer.master.has_events());
    peer.next(0, 8, 0);
    assert_eq!(peer.master.events(), [failed(0)]);
    peer.master.lost(peer.connection);
    assert_eq!(peer.master.events().len() as u64, fits);
    peer.next(1, 8, 0);
    assert_eq!(peer.master.events(), [failed(1)]);
}

#[test]
fn liars_are_found_out() {
    let in_range: &[u32] = &[1, 3, 6, 1, 4, 1, 9, 5];
    let later: &[u32] = &[1, 3, 6, 1, 4, 1, 9, 6];
    let before: &[u32] = &[1, 3, 6, 1, 4, 1, 8];
    let beyond: &[u32] = &[1, 3, 6, 1, 4, 1, 10];
    let asked = |rows| {
        let mut peer = Peer::open(true);
        peer.next(1, rows, 0);
        let packet = peer.sent()[0].0.packet;
        (peer, packet)
    };
    let lies: [&[&[u32]]; 5] = [
        &[],
        &[before],
        &[in_range, in_range],
        &[later, in_range],
        &[
            in_range,
            later,
            &[1, 3, 6, 1, 4, 1, 9, 7],
            &[1, 3, 6, 1, 4, 1, 9, 8],
        ],
    ];
    for lie in lies {
        let (mut peer, packet) = asked(3);
        let answered = peer.answer(packet, lie, 1);
        let is_found = matches!(
            answered,
            Err(Cut::WrongName { .. } | Cut::WrongCount { .. })
        );
        assert!(is_found, "{lie:?}: {answered:?}");
    }
    let (mut peer, packet) = asked(1);
    let answered = peer.answer(packet, &[beyond], 1);
    assert!(
        matches!(answered, Err(Cut::WrongName { .. })),
        "{answered:?}"
    );
    // net-snmp's library goes on beyond the end where it is asked for more.
    let (mut peer, packet) = asked(3);
    peer.answer(packet, &[in_range, beyond], 1).unwrap();
    let event = peer.master.events().pop();
    assert!(
        matches!(event, Some(Event::Answered { answer: Answer::Rows { ref rows, ended: true }, .. }) if rows.len() == 1)
    );
    assert_eq!(
        peer.answer(packet, &[in_range], 1),
        Err(Cut::UnknownAnswer(packet))
    );
    let (mut peer, _) = asked(3);
    let message = peer.message(kind::GET, 0, |_| ());
    let cut = peer.master.received(peer.connection, &message, at(0));
    assert_eq!(cut, Err(Cut::Unexpected(kind::GET)));
    let mut message = peer.message(kind::PING, 0, |_| ());
    message[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    let cut = peer.master.received(peer.connection, &message, at(0));
    assert!(matches!(cut, Err(Cut::Malformed(_))));
    peer.master.farewell(peer.connection, cut.err().as_ref());
    let (header, payload) = peer.sent().pop().unwrap();
    assert_eq!(
        (header.kind, payload[0]),
        (kind::CLOSE, reason::PARSE_ERROR)
    );
}

#[test]
fn a_request_that_cannot_be_read_is_answered_so() {
    let mut peer = Peer::open(true);
    let (_, error) = peer.ask(kind::REGISTER, 0, |message| message.quad([0; 4]));
    assert_eq!(error, error::PARSE_ERROR);
}

#[test]
fn floods_and_who_does_not_read_are_cut() {
    let mut peer = Peer::open(true);
    let ping = peer.message(kind::PING, 0, |_| ());
    let ask = |peer: &mut Peer, millis| {
        peer.sent();
        peer.master.received(peer.connection, &ping, at(millis))
    };
    // The Open was one, too.
    (1..MAX_MESSAGES_PER_SECOND).for_each(|_| ask(&mut peer, 999).unwrap());
    assert_eq!(ask(&mut peer, 999), Err(Cut::Flood));
    ask(&mut peer, 1_000).unwrap();
    let mut second = 2;
    let cut = loop {
        let asked = peer
            .master
            .received(peer.connection, &ping, at(second * 1_000));
        if let Err(cut) = asked {
            break cut;
        }
        second += 1;
        let waiting = peer.master.to_write(peer.connection).len();
        assert!(waiting <= MAX_OUTPUT_BYTES + 1_000, "{waiting}");
    };
    assert_eq!(cut, Cut::ReadsNothing);
}
