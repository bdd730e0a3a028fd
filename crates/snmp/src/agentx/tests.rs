use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::wire::{HEADER_BYTES, Header, Message, Payload, error, flag, kind, type_of};
use super::*;
use crate::mib::{Contexts, DefaultContext, Mib, Value, WalkSink};
use crate::oid::Oid;

/// The obvious agent: a map.
#[derive(Default)]
struct Map(BTreeMap<Vec<u32>, u32>);

impl Mib for Map {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (at, name) in names.iter().enumerate() {
            let value = self.0.get(*name);
            sink(
                at,
                value.map_or(Value::NoSuchInstance, |v| Value::Gauge32(*v)),
            );
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let behind = (
            std::ops::Bound::Excluded(after.to_vec()),
            std::ops::Bound::Unbounded,
        );
        for (name, value) in self.0.range(behind) {
            if sink(name, Value::Gauge32(*value)).is_break() {
                return;
            }
        }
    }
}

fn map() -> Map {
    Map((1..=5).map(|n| (vec![1, 3, 6, 1, 2, 1, n], n)).collect())
}

/// A master's message, in either byte order.
struct Writer {
    big: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn new(big: bool, kind: u8, flags: u8, session: u32, packet: u32) -> Self {
        let order = if big { flag::NETWORK_BYTE_ORDER } else { 0 };
        let mut new = Self {
            big,
            bytes: vec![1, kind, flags | order, 0],
        };
        for word in [session, 77, packet, 0] {
            new.word(word);
        }
        new
    }

    fn word(&mut self, word: u32) {
        let octets = if self.big {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        };
        self.bytes.extend(octets);
    }

    fn half(&mut self, half: u16) {
        let octets = if self.big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        };
        self.bytes.extend(octets);
    }

    fn name(&mut self, ids: &[u32], include: bool) {
        self.bytes
            .extend([ids.len() as u8, 0, u8::from(include), 0]);
        for id in ids {
            self.word(*id);
        }
    }

    fn octets(&mut self, octets: &[u8]) {
        self.word(octets.len() as u32);
        self.bytes.extend(octets);
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }

    fn done(mut self) -> Vec<u8> {
        let len = (self.bytes.len() - HEADER_BYTES) as u32;
        let octets = if self.big {
            len.to_be_bytes()
        } else {
            len.to_le_bytes()
        };
        self.bytes[16..20].copy_from_slice(&octets);
        self.bytes
    }
}

fn config() -> Config {
    Config {
        id: "1.3.6.1.4.1.8072".parse().unwrap(),
        description: "test".into(),
        priority: 100,
        registrations: vec![Registration {
            context: Vec::new(),
            subtree: "1.3.6.1.2.1".parse().unwrap(),
        }],
        patience_millis: 1_000,
        ping_millis: 500,
    }
}

/// Takes the messages that wait for the master.
fn sent(session: &mut Session) -> Vec<(Header, Vec<u8>)> {
    let bytes = session.to_write().to_vec();
    session.written(bytes.len());
    let mut rest: &[u8] = &bytes;
    let mut messages = Vec::new();
    while let Some(header) = Header::read(rest).unwrap() {
        let whole = HEADER_BYTES + header.payload_len;
        messages.push((header, rest[HEADER_BYTES..whole].to_vec()));
        rest = &rest[whole..];
    }
    assert!(rest.is_empty());
    messages
}

fn respond(session: &mut Session, to: &Header, id: u32, error: u16) {
    let mut answer = Writer::new(true, kind::RESPONSE, 0, id, to.packet);
    answer.word(0);
    answer.half(error);
    answer.half(0);
    session.received(&answer.done(), 10);
    session.work(&DefaultContext(&map()), 10).unwrap();
}

/// A session that is open, its registrations answered.
fn open() -> Session {
    let mut session = Session::new(config());
    session.connected(0);
    let opening = sent(&mut session);
    assert_eq!(opening.len(), 1);
    assert_eq!(opening[0].0.kind, kind::OPEN);
    respond(&mut session, &opening[0].0, 9, 0);
    for (header, _) in sent(&mut session) {
        // What is registered, and what we are (AddAgentCaps).
        assert!(matches!(header.kind, kind::REGISTER | 16));
        assert_eq!(header.session, 9);
        respond(&mut session, &header, 9, 0);
    }
    assert_eq!(session.state(), State::Open);
    session
}

/// Asks, and reads the answer: its error and what its bindings are.
fn ask(session: &mut Session, mib: &dyn Contexts, question: Vec<u8>) -> (u16, Vec<(Oid, u16)>) {
    session.received(&question, 20);
    session.work(mib, 20).unwrap();
    let answers = sent(session);
    assert_eq!(answers.len(), 1);
    let (header, payload) = &answers[0];
    assert_eq!((header.kind, header.transaction), (kind::RESPONSE, 77));
    let mut payload = Payload::new(payload, header.flags);
    payload.word("").unwrap();
    let error = payload.half("").unwrap();
    payload.half("").unwrap();
    let mut bindings = Vec::new();
    while !payload.is_empty() {
        let row = payload.binding().unwrap();
        let of_type = type_of(&row.value.value());
        bindings.push((Oid::new(&row.name).unwrap(), of_type));
    }
    (error, bindings)
}

fn name(last: u32) -> Vec<u32> {
    vec![1, 3, 6, 1, 2, 1, last]
}

fn question(big: bool, of_kind: u8, ranges: &[(u32, bool, u32)]) -> Vec<u8> {
    let mut question = Writer::new(big, of_kind, 0, 9, 5);
    if of_kind == kind::GET_BULK {
        question.half(1);
        question.half(3);
    }
    for (start, include, end) in ranges {
        question.name(&name(*start), *include);
        match end {
            0 => question.name(&[], false),
            end => question.name(&name(*end), false),
        }
    }
    question.done()
}

fn last_ids(bindings: &[(Oid, u16)]) -> Vec<(u32, u16)> {
    let last = |name: &Oid| name.last().copied().unwrap();
    bindings.iter().map(|(name, t)| (last(name), *t)).collect()
}

#[test]
fn get_and_get_next_in_both_byte_orders() {
    for big in [false, true] {
        let mut session = open();
        let map = map();
        let mib = DefaultContext(&map);
        let asked = question(big, kind::GET, &[(2, false, 0), (9, false, 0)]);
        let (error, got) = ask(&mut session, &mib, asked);
        assert_eq!(
            (error, last_ids(&got)),
            (error::NONE, vec![(2, 66), (9, 129)])
        );
        // The end of a range is not of it; what includes itself is.
        let ranges = [
            (2, false, 4),
            (2, true, 4),
            (2, false, 3),
            (5, false, 0),
            (0, true, 0),
        ];
        let (error, got) = ask(&mut session, &mib, question(big, kind::GET_NEXT, &ranges));
        let wanted = vec![(3, 66), (2, 66), (2, 130), (5, 130), (1, 66)];
        assert_eq!((error, last_ids(&got)), (error::NONE, wanted));
    }
}

#[test]
fn bulk_is_one_run_or_rows_of_repetitions() {
    let mut session = open();
    let map = map();
    let mib = DefaultContext(&map);
    let one = [(4, false, 0), (1, false, 5)];
    let (_, got) = ask(&mut session, &mib, question(true, kind::GET_BULK, &one));
    assert_eq!(
        last_ids(&got),
        [(5, 66), (2, 66), (3, 66), (4, 66)],
        "one that does not repeat, then three of the other"
    );
    let two = [(4, false, 0), (1, false, 3), (4, false, 0)];
    let (_, got) = ask(&mut session, &mib, question(true, kind::GET_BULK, &two));
    let rows = [(5, 66), (2, 66), (5, 66), (2, 130), (5, 130)];
    assert_eq!(last_ids(&got), rows);
}

#[test]
fn what_we_do_not_have_is_refused() {
    let mut session = open();
    let map = map();
    let mib = DefaultContext(&map);
    let mut other = Writer::new(false, kind::GET, flag::NON_DEFAULT_CONTEXT, 9, 5);
    other.octets(b"blue");
    other.name(&name(1), false);
    other.name(&[], false);
    let cases = [
        (other.done(), error::UNSUPPORTED_CONTEXT),
        (
            Writer::new(true, kind::TEST_SET, 0, 9, 5).done(),
            error::NOT_WRITABLE,
        ),
        (
            Writer::new(true, kind::COMMIT_SET, 0, 9, 5).done(),
            error::COMMIT_FAILED,
        ),
        (
            Writer::new(true, kind::UNDO_SET, 0, 9, 5).done(),
            error::UNDO_FAILED,
        ),
        (Writer::new(true, kind::PING, 0, 9, 5).done(), error::NONE),
        (
            Writer::new(true, kind::GET, 0, 8, 5).done(),
            error::NOT_OPEN,
        ),
        (Writer::new(true, 99, 0, 9, 5).done(), error::PARSE_ERROR),
    ];
    for (asked, wanted) in cases {
        let (error, bindings) = ask(&mut session, &mib, asked);
        assert_eq!((error, bindings.len()), (wanted, 0));
    }
    // A range cut in the middle.
    let mut cut = Writer::new(true, kind::GET, 0, 9, 5);
    cut.name(&name(1), false);
    let (error, _) = ask(&mut session, &mib, cut.done());
    assert_eq!(error, error::PARSE_ERROR);
    session.received(&Writer::new(true, kind::CLEANUP_SET, 0, 9, 5).done(), 0);
    session.work(&mib, 0).unwrap();
    assert!(session.to_write().is_empty());
}

/// What it tells first is too old to go out.
struct TooOld(Map, Cell<bool>);

impl Contexts for TooOld {
    fn context(&self, _: &[u8]) -> Option<&dyn Mib> {
        Some(&self.0)
    }

    fn take_too_old(&self) -> bool {
        self.1.take()
    }
}

#[test]
fn what_is_too_old_to_go_out_is_an_error_and_the_next_question_is_none() {
    let mut session = open();
    for of_kind in [kind::GET, kind::GET_NEXT, kind::GET_BULK] {
        let mib = TooOld(map(), Cell::new(true));
        let asked = question(true, of_kind, &[(1, true, 0), (2, true, 0)]);
        let (error, bindings) = ask(&mut session, &mib, asked.clone());
        assert_eq!((error, bindings.len()), (error::GEN_ERR, 0));
        let (error, bindings) = ask(&mut session, &mib, asked);
        assert!(error == error::NONE && bindings.len() >= 2);
    }
}

#[test]
fn a_silent_master_is_pinged_then_given_up_and_pauses_grow() {
    let mut session = open();
    session.tick(400).unwrap();
    assert!(session.to_write().is_empty());
    session.tick(600).unwrap();
    let ping = sent(&mut session);
    assert_eq!(ping[0].0.kind, kind::PING);
    session.tick(1_500).unwrap();
    assert_eq!(session.tick(1_600), Err(Broken::Silent(1_000)));
    // After a session: from the beginning.
    let pauses: Vec<u64> = (0..9).map(|_| session.lost()).collect();
    let wanted = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
    assert_eq!(pauses, wanted);
    session.connected(0);
    assert_eq!(session.lost(), 15_000, "no session was open");
}

#[test]
fn refusals_are_told() {
    let mut session = Session::new(config());
    session.connected(0);
    let opening = sent(&mut session);
    respond(&mut session, &opening[0].0, 9, 0);
    let register = sent(&mut session);
    respond(&mut session, &register[0].0, 9, 263);
    assert_eq!(
        session.refused(),
        [(config().registrations[0].clone(), 263)]
    );
    session.connected(0);
    let opening = sent(&mut session);
    let mut answer = Writer::new(false, kind::RESPONSE, 0, 0, opening[0].0.packet);
    answer.word(0);
    answer.half(256);
    answer.half(0);
    session.received(&answer.done(), 0);
    let refused = session.work(&DefaultContext(&map()), 0);
    assert_eq!(refused, Err(Broken::Refused(256)));
}

/// Its `sysUpTime` comes with each of its answers, and goes with the session.
#[test]
fn the_masters_clock_is_known_while_it_answers() {
    let mut session = open();
    // It was 0 at 10 ms.
    assert_eq!(session.master_up_ticks(10), Some(0));
    assert_eq!(session.master_up_ticks(1_010), Some(100));
    session.lost();
    assert_eq!(session.master_up_ticks(1_010), None);
}

#[test]
fn registrations_follow_what_is_wanted() {
    let mut session = open();
    let blue = Registration {
        context: b"blue".to_vec(),
        subtree: "1.3.6.1.2.1.4.24".parse().unwrap(),
    };
    session.register_only(vec![blue.clone()], 0);
    let kinds: Vec<u8> = sent(&mut session).iter().map(|(h, _)| h.kind).collect();
    assert_eq!(kinds, [kind::UNREGISTER, kind::REGISTER]);
    session.register_only(vec![blue], 0);
    assert!(session.to_write().is_empty());
}

#[test]
fn a_master_that_reads_nothing_bounds_us() {
    let mut session = open();
    let map = map();
    let mib = DefaultContext(&map);
    let trap: (&[u32], Value<'_>) = (&[1, 3], Value::Null);
    for _ in 0..1_000 {
        session.notify(b"", &[trap], 0);
    }
    assert_eq!(session.counters().dropped_notifications, 1_000 - 256);
    let many = question(true, kind::GET_NEXT, &[(0, false, 0); 1_000]);
    for _ in 0..500 {
        if session.may_read() {
            session.received(&many, 0);
        }
        session.work(&mib, 0).unwrap();
    }
    assert!(session.to_write().len() < (1 << 20) + (1 << 16));
    // What was not answered waits, and is answered when there is room.
    let before = session.counters().requests;
    let len = session.to_write().len();
    session.written(len);
    session.work(&mib, 0).unwrap();
    assert!(session.counters().requests >= before);
}

proptest! {
    #[test]
    fn any_octets_do_no_harm(octets in vec(any::<u8>(), 0..400), at in 0usize..200) {
        let map = map();
        let mib = DefaultContext(&map);
        let mut session = open();
        session.received(&octets, 0);
        let _ = session.work(&mib, 0);
        // The same as a disturbance of something sound.
        let mut session = open();
        let mut sound = question(true, kind::GET_BULK, &[(1, true, 4), (0, false, 0)]);
        for (place, octet) in sound.iter_mut().skip(at).zip(octets.iter().take(3)) {
            *place ^= octet;
        }
        session.received(&sound, 0);
        let _ = session.work(&mib, 0);
    }

    #[test]
    fn octets_may_come_in_any_pieces(cuts in vec(0usize..60, 0..6)) {
        let map = map();
        let mib = DefaultContext(&map);
        let whole = question(false, kind::GET_NEXT, &[(1, false, 0)]);
        let mut session = open();
        let mut from = 0;
        for to in cuts.into_iter().chain([whole.len()]) {
            let to = to.clamp(from, whole.len());
            session.received(&whole[from..to], 0);
            session.work(&mib, 0).unwrap();
            from = to;
        }
        prop_assert_eq!(sent(&mut session).len(), 1);
    }

    #[test]
    fn names_and_values_survive_the_journey(
        ids in vec(any::<u32>(), 0..128),
        internet in any::<bool>(),
        octets in vec(any::<u8>(), 0..20),
        number in any::<u64>(),
    ) {
        let name: Vec<u32> = if internet {
            [1, 3, 6, 1, 2].into_iter().chain(ids).take(128).collect()
        } else {
            ids
        };
        let word = number as u32;
        let values = [
            (2, Value::Integer(word as i32)),
            (4, Value::OctetString(&octets)),
            (5, Value::Null),
            (6, Value::ObjectIdentifier(&name)),
            (64, Value::IpAddress(word.to_be_bytes())),
            (65, Value::Counter32(word)),
            (66, Value::Gauge32(word)),
            (67, Value::TimeTicks(word)),
            (68, Value::Opaque(&octets)),
            (70, Value::Counter64(number)),
            (128, Value::NoSuchObject),
            (129, Value::NoSuchInstance),
            (130, Value::EndOfMibView),
        ];
        let header = Header {
            kind: kind::RESPONSE,
            flags: 0,
            session: 1,
            transaction: 2,
            packet: 3,
            payload_len: 0,
        };
        let mut out = Vec::new();
        let mut message = Message::begin(&mut out, &header);
        for (_, value) in &values {
            message.binding(&name, value);
        }
        message.end();
        let read = Header::read(&out).unwrap().unwrap();
        prop_assert_eq!(read.payload_len + HEADER_BYTES, out.len());
        let mut payload = Payload::new(&out[HEADER_BYTES..], read.flags);
        for (of_type, value) in values {
            let row = payload.binding().unwrap();
            prop_assert_eq!(&row.name[..], &name[..]);
            prop_assert_eq!(type_of(&value), of_type);
            prop_assert_eq!(row.value.value(), value);
        }
        prop_assert!(payload.is_empty());
    }
}
