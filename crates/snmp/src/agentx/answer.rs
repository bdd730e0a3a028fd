//! What a question of the master is answered (RFC 2741 §7.2). Called by
//! [`super::Session`].

use std::ops::ControlFlow;

use super::wire::{Header, Malformed, Message, Payload, error, flag, kind};
use crate::mib::{Mib, Value};
use crate::oid::Name;

/// A bulk answer grows no further once it is so long: more than any SNMP
/// message holds.
const MAX_ANSWER_BYTES: usize = 1 << 16;
/// Ranges whose places are kept from one repetition to the next. A bulk
/// question about more is answered with one repetition, as RFC 2741
/// §7.2.3.3 allows.
const MAX_REPEATERS: usize = 256;

/// A range of names to search (RFC 2741 §5.2).
struct Range {
    start: Name,
    include: bool,
    /// The first name beyond; empty: there is no end.
    end: Name,
}

impl Range {
    fn read(payload: &mut Payload<'_>) -> Result<Self, Malformed> {
        let (start, include) = payload.name()?;
        let (end, _) = payload.name()?;
        Ok(Self {
            start,
            include,
            end,
        })
    }
}

/// The context that a question is about; empty: the default one. It comes
/// first in the payload.
pub fn context<'a>(header: &Header, payload: &mut Payload<'a>) -> Result<&'a [u8], Malformed> {
    if header.flags & flag::NON_DEFAULT_CONTEXT == 0 {
        return Ok(&[]);
    }
    payload.octets()
}

/// Answers a Get, GetNext or GetBulk from `mib`, the answer appended to
/// `out`; gives the number of bindings. `payload` is what follows the
/// context. What cannot be read to its end is answered with `parseError`.
///
/// One seek for each range and repetition, one for all repetitions where a
/// bulk question repeats one range.
pub fn question(header: &Header, payload: Payload<'_>, mib: &dyn Mib, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    let mut message = Message::begin(out, &answer_to(header));
    outcome(&mut message, error::NONE, 0);
    let answered = match header.kind {
        kind::GET => get(payload, mib, &mut message),
        kind::GET_NEXT => get_next(payload, mib, &mut message),
        _ => get_bulk(payload, mib, &mut message),
    };
    match answered {
        Ok(bindings) => {
            message.end();
            bindings
        }
        Err(_) => {
            out.truncate(start);
            refusal(header, error::PARSE_ERROR, 0, out);
            0
        }
    }
}

/// An answer that says only what went wrong: `index` is the binding's,
/// from 1, or 0.
pub fn refusal(header: &Header, error: u16, index: u16, out: &mut Vec<u8>) {
    let mut message = Message::begin(out, &answer_to(header));
    outcome(&mut message, error, index);
    message.end();
}

/// An answer bears the identifiers of its question (RFC 2741 §6.2.16).
fn answer_to(header: &Header) -> Header {
    Header {
        kind: kind::RESPONSE,
        flags: 0,
        ..*header
    }
}

/// `res.sysUpTime` (the master's business), `res.error`, `res.index`.
fn outcome(message: &mut Message<'_>, error: u16, index: u16) {
    message.word(0);
    message.halves(error, index);
}

fn get(
    mut payload: Payload<'_>,
    mib: &dyn Mib,
    message: &mut Message<'_>,
) -> Result<u64, Malformed> {
    let mut bindings = 0;
    while !payload.is_empty() {
        let range = Range::read(&mut payload)?;
        mib.get(&[&range.start], &mut |_, value| {
            message.binding(&range.start, &value);
        });
        bindings += 1;
    }
    Ok(bindings)
}

fn get_next(
    mut payload: Payload<'_>,
    mib: &dyn Mib,
    message: &mut Message<'_>,
) -> Result<u64, Malformed> {
    let mut bindings = 0;
    while !payload.is_empty() {
        let range = Range::read(&mut payload)?;
        next(mib, &range, &mut |name, value| {
            message.binding(name, &value)
        });
        bindings += 1;
    }
    Ok(bindings)
}

/// The first of a range, or `endOfMibView` under the name it starts from
/// (RFC 2741 §7.2.3.2).
fn next(mib: &dyn Mib, range: &Range, put: &mut dyn FnMut(&[u32], Value<'_>)) {
    let mut found = false;
    if range.include {
        mib.get(&[&range.start], &mut |_, value| {
            if !value.is_exception() {
                put(&range.start, value);
                found = true;
            }
        });
    }
    if !found {
        mib.walk(&range.start, &mut |name, value| {
            if is_before(name, &range.end) {
                put(name, value);
                found = true;
            }
            ControlFlow::Break(())
        });
    }
    if !found {
        put(&range.start, Value::EndOfMibView);
    }
}

/// Whether a name lies before the end of a range, which is not of it.
fn is_before(name: &[u32], end: &[u32]) -> bool {
    end.is_empty() || name < end
}

fn get_bulk(
    mut payload: Payload<'_>,
    mib: &dyn Mib,
    message: &mut Message<'_>,
) -> Result<u64, Malformed> {
    let non_repeaters = payload.half("a bulk question")?;
    let repetitions = payload.half("a bulk question")?;
    let mut bindings = 0;
    for _ in 0..non_repeaters {
        if payload.is_empty() {
            return Ok(bindings);
        }
        let range = Range::read(&mut payload)?;
        next(mib, &range, &mut |name, value| {
            message.binding(name, &value)
        });
        bindings += 1;
    }
    // The first repetition of each range is also what reads it.
    let mut ranges = Vec::new();
    let mut all_ended = true;
    while !payload.is_empty() && repetitions > 0 {
        let mut range = Range::read(&mut payload)?;
        let last = payload.is_empty();
        if ranges.is_empty() && last {
            return Ok(bindings + run(mib, &mut range, repetitions, message));
        }
        all_ended &= repeat(mib, &mut range, message);
        bindings += 1;
        if ranges.len() <= MAX_REPEATERS {
            ranges.push(range);
        }
    }
    if ranges.len() > MAX_REPEATERS {
        return Ok(bindings);
    }
    for _ in 1..repetitions {
        if all_ended || message.len_bytes() >= MAX_ANSWER_BYTES {
            break;
        }
        all_ended = true;
        for range in &mut ranges {
            all_ended &= repeat(mib, range, message);
            bindings += 1;
        }
    }
    Ok(bindings)
}

/// The next of a range, from which the range then goes on; whether it has
/// ended.
fn repeat(mib: &dyn Mib, range: &mut Range, message: &mut Message<'_>) -> bool {
    let mut place = None;
    next(mib, range, &mut |name, value| {
        message.binding(name, &value);
        place = (!value.is_exception()).then(|| name.iter().copied().collect());
    });
    range.include = false;
    let ended = place.is_none();
    if let Some(place) = place {
        range.start = place;
    }
    ended
}

/// All repetitions of one range: a seek and a run. Gives the bindings.
fn run(mib: &dyn Mib, range: &mut Range, repetitions: u16, message: &mut Message<'_>) -> u64 {
    let ended = repeat(mib, range, message);
    let mut bindings = 1;
    if ended || repetitions == 1 {
        return bindings;
    }
    let wanted = u64::from(repetitions);
    let mut last = range.start.clone();
    mib.walk(&range.start, &mut |name, value| {
        if !is_before(name, &range.end) {
            return ControlFlow::Break(());
        }
        message.binding(name, &value);
        bindings += 1;
        last = name.iter().copied().collect();
        if bindings == wanted || message.len_bytes() >= MAX_ANSWER_BYTES {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    if bindings < wanted && message.len_bytes() < MAX_ANSWER_BYTES {
        message.binding(&last, &Value::EndOfMibView);
        bindings += 1;
    }
    bindings
}
