//! Nanoseconds and allocated bytes for a binding of an answer, beside what
//! the objects themselves cost: a table with names as long as those of
//! inetCidrRouteTable, a million rows, walked by bulk requests.
//!
//! `cargo bench -p fingerpost-snmp`

#![allow(
    clippy::expect_used,
    reason = "a bench stops at the first thing that is not as it should be"
)]
#![allow(dead_code, reason = "the fixture has more than one user")]

use std::hint::black_box;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use cap::Cap;
use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome};
use fingerpost_snmp::ber::{Writer, tag};
use fingerpost_snmp::mib::{DefaultContext, Mib, Value, WalkSink};
use fingerpost_snmp::pdu::{OpenPdu, PduKind};

#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

/// Counts the bytes that are ever allocated.
#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const ROWS: u32 = 1_000_000;
const ROUNDS: usize = 9;
/// Requests of a round.
const REQUESTS: usize = 2_000;
/// inetCidrRouteEntry.
const ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 4, 24, 7, 1];
const COLUMNS: std::ops::RangeInclusive<u32> = 7..=17;

/// Routes 1.0.0.0/24, 1.0.1.0/24, … by one of 200 next hops: the index is
/// computed from the row, so that hardly anything but the agent is measured.
struct Routes;

impl Routes {
    fn name(column: u32, row: u32) -> [u32; 27] {
        let [a, b, c, d] = (0x0100_0000 + (row << 8)).to_be_bytes().map(u32::from);
        let hop = row % 200;
        [
            1, 3, 6, 1, 2, 1, 4, 24, 7, 1, column, 1, 4, a, b, c, d, 24, 2, 0, 0, 1, 4, 10, 0, 0,
            hop,
        ]
    }

    /// The first row behind a name.
    fn behind(after: &[u32]) -> (u32, u32) {
        let Some(index) = after.strip_prefix(&ENTRY) else {
            return (*COLUMNS.start(), 0);
        };
        match index {
            [column, 1, 4, a, b, c, ..] => {
                let prefix = (a << 24 | b << 16 | c << 8) - 0x0100_0000;
                (*column, (prefix >> 8) + 1)
            }
            [column, ..] => (*column, 0),
            [] => (*COLUMNS.start(), 0),
        }
    }
}

impl Mib for Routes {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (place, name) in names.iter().enumerate() {
            sink(place, Value::Integer(name.len() as i32));
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let (first, mut row) = Self::behind(after);
        for column in first..=*COLUMNS.end() {
            let mut name = Self::name(column, row);
            while row < ROWS {
                let fresh = Self::name(column, row);
                name[13..].copy_from_slice(&fresh[13..]);
                if sink(&name, Value::Integer(row as i32)).is_break() {
                    return;
                }
                row += 1;
            }
            row = 0;
        }
    }
}

/// A request of v2c for some columns, from a row on.
fn request(kind: PduKind, repetitions: i32, columns: u32, row: u32) -> Vec<u8> {
    let mut buffer = vec![0; 4_096];
    let mut out = Writer::new(&mut buffer);
    let message = out.open(tag::SEQUENCE).expect("room");
    out.integer(1).expect("room");
    out.octets(b"public").expect("room");
    let pdu = OpenPdu::begin(&mut out, kind, row as i32, 0, repetitions).expect("room");
    for column in COLUMNS.take(columns as usize) {
        out.binding(&Routes::name(column, row), &Value::Null)
            .expect("room");
    }
    pdu.end(&mut out);
    out.close(message);
    out.written().to_vec()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut seen = 0u64;
    let alone = measure(50 * REQUESTS, || {
        for row in rows() {
            let mut left = 50;
            Routes.walk(&Routes::name(7, row), &mut |name, _| {
                seen += u64::from(black_box(name)[16]);
                left -= 1;
                if left > 0 {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        }
    });
    black_box(seen);
    writeln!(
        out,
        "{:34} {:6.1} ns a binding",
        "the objects alone", alone.nanos
    )?;
    for (what, kind, repetitions, columns) in [
        ("GetBulk, 50 of one column", PduKind::GetBulk, 50, 1),
        ("GetBulk, 10 of five columns", PduKind::GetBulk, 10, 5),
        ("GetBulk, all that fits (1)", PduKind::GetBulk, i32::MAX, 1),
        ("GetBulk, all that fits (8)", PduKind::GetBulk, i32::MAX, 8),
        ("GetNext, one name", PduKind::GetNext, 0, 1),
        ("Get, eight names", PduKind::Get, 0, 8),
    ] {
        let requests: Vec<_> = rows()
            .map(|row| request(kind, repetitions, columns, row))
            .collect();
        let found = answers(&requests);
        writeln!(
            out,
            "{what:34} {:6.1} ns a binding, {:7.0} a request of {:4} bindings, {} bytes allocated",
            found.nanos, found.request_nanos, found.bindings, found.allocated
        )?;
    }
    Ok(())
}

fn rows() -> impl Iterator<Item = u32> {
    (0..REQUESTS as u32).map(|number| number * 400 + 77)
}

struct Found {
    nanos: f64,
    request_nanos: f64,
    bindings: usize,
    allocated: usize,
}

fn answers(requests: &[Vec<u8>]) -> Found {
    let mut config = fixture::config();
    config.max_message_bytes = 65_507;
    let mut agent = Agent::new(config).expect("a sound configuration");
    let mut buffer = vec![0; ANSWER_BUFFER_BYTES];
    let contexts = DefaultContext(&Routes);
    let mut all = || {
        for request in requests {
            let outcome = agent.answer(request, fixture::ALLOWED, 0, &contexts, &mut buffer);
            assert!(matches!(black_box(outcome), Outcome::Answered(_)));
        }
        agent.counters().snmp.in_total_req_vars as usize
    };
    // Once to let the working memory grow.
    let bindings = all();
    let mut found = measure(bindings, || {
        all();
    });
    found.bindings = bindings / requests.len();
    found.request_nanos = found.nanos * bindings as f64 / requests.len() as f64;
    found
}

/// The median of some rounds.
fn measure(bindings: usize, mut round: impl FnMut()) -> Found {
    let allocated = ALLOCATOR.total_allocated();
    let mut rounds = [0.0; ROUNDS];
    for nanos in &mut rounds {
        let start = Instant::now();
        round();
        *nanos = start.elapsed().as_secs_f64() * 1e9 / bindings as f64;
    }
    rounds.sort_by(f64::total_cmp);
    Found {
        nanos: rounds[ROUNDS / 2],
        request_nanos: 0.0,
        bindings: 0,
        allocated: ALLOCATOR.total_allocated() - allocated,
    }
}
