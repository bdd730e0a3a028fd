//! What is done with the bytes of the target `agentx_master`: a master takes
//! them for a subagent's whose session is open and who was asked three
//! questions.

use fingerpost_snmp::agentx::{Answer, Event, Known, Master, MasterConfig, Now, Question, What};

/// What a master lets wait for a subagent that reads nothing, and one answer
/// beyond it.
const MAX_WAITING_BYTES: usize = (1 << 20) + (1 << 21);
/// An Open in network byte order: the session is number 1.
const OPEN: [u8; 32] = [
    1, 1, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0,
];
/// bgp4PathAttrEntry, and what is behind it.
const START: [u32; 9] = [1, 3, 6, 1, 2, 1, 15, 6, 1];
const END: [u32; 8] = [1, 3, 6, 1, 2, 1, 15, 7];

fn questions() -> [What; 3] {
    let next = |rows| What::Next {
        start: START.into(),
        include: rows > 1,
        end: Some(END.into()),
        rows,
    };
    [What::Get(START.into()), next(1), next(20)]
}

/// Whatever a subagent sends after its session is open, in two pieces.
pub fn agentx_master(bytes: &[u8]) {
    let mut master = Master::new(MasterConfig {
        timeout_millis: 1_000,
        own: vec![&[1, 3, 6, 1, 2, 1, 2, 2]],
    });
    let now = |millis| Now { millis, up_time: 0 };
    let connection = master.connected();
    let opened = master.received(connection, &OPEN, now(0));
    opened.expect("a session that opens");
    let asked = questions().map(|what| Question {
        session: 1,
        context: Vec::new(),
        timeout_millis: 1_000,
        what,
    });
    for (token, question) in (0..).zip(&asked) {
        master.ask(token, question.clone(), 0);
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut cut = None;
    for (piece, millis) in [(first, 1), (second, 2)] {
        if cut.is_none() {
            cut = master.received(connection, piece, now(millis)).err();
        }
        assert!(master.to_write(connection).len() < MAX_WAITING_BYTES);
    }
    regions_are_whole(&mut master);
    master.tick(2_000);
    master.farewell(connection, cut.as_ref());
    master.lost(connection);
    // Each question has one end, and rows are as they have to be.
    let mut ends = [0; 3];
    let mut known = Known::default();
    for event in master.events() {
        if let Event::Answered { token, answer } = event {
            ends[token as usize] += 1;
            let question = &asked[token as usize];
            answer_is_sound(question, &answer);
            known.add(question, answer, 0);
        }
    }
    assert_eq!(ends, [1; 3]);
    assert!(master.dispatch().is_empty() && master.capabilities().is_empty());
    assert_eq!(master.sessions(0).count(), 0);
}

/// Regions follow each other without a gap, from the first name to the last.
fn regions_are_whole(master: &mut Master) {
    let dispatch = master.dispatch();
    let Some(regions) = dispatch.regions(b"") else {
        return;
    };
    assert!(regions[0].start.is_empty());
    for pair in regions.windows(2) {
        assert_eq!(pair[0].end.as_ref(), Some(&pair[1].start));
        assert!(pair[0].start < pair[1].start && pair[0].owner != pair[1].owner);
    }
    assert!(regions.last().is_some_and(|last| last.end.is_none()));
}

fn answer_is_sound(question: &Question, answer: &Answer) {
    let Answer::Rows { rows, .. } = answer else {
        return;
    };
    let names = rows.iter().map(|row| &*row.name);
    match &question.what {
        What::Get(name) => assert!(names.eq([&**name])),
        What::Next { start, rows, .. } => {
            let names: Vec<&[u32]> = names.collect();
            assert!(names.is_sorted_by(|a, b| a < b) && names.len() <= usize::from(*rows));
            assert!(
                names
                    .iter()
                    .all(|name| *name >= &**start && *name < &END[..])
            );
        }
    }
}
