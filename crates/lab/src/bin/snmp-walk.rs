//! A fast SNMP client for benchmarks: many GetBulk requests in flight, and
//! no more decoded of an answer than where it ended.
//!
//! `snmp-walk ADDRESS REPETITIONS IN_FLIGHT WALKS COLUMN [PREFIX]`: walks
//! the whole column so many times at once; with `WALKS` 0 once, divided at
//! the sub-identifier behind `COLUMN[.PREFIX]` into 256 parts. Writes: rows,
//! bindings answered (those behind the column's end, too), answers, seconds.

use std::collections::VecDeque;
use std::env;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::net::sockopt;

/// Nothing is lost on loopback; an agent that is silent for so long is
/// not there.
const PATIENCE: Duration = Duration::from_secs(20);

/// All answers in flight, and what the kernel keeps around them.
const BUFFER_BYTES: usize = 16 << 20;

/// What was told.
#[derive(Default)]
struct Told {
    rows: u64,
    bindings: u64,
}

/// A part of the column being walked.
#[derive(Clone)]
struct Part {
    /// Contents of the last name, in BER.
    after: Vec<u8>,
    /// Contents that all its names begin with.
    inside: Vec<u8>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, repetitions, in_flight, walks, column, prefix @ ..] = &arguments[..] else {
        bail!("usage: snmp-walk ADDRESS REPETITIONS IN_FLIGHT WALKS COLUMN [PREFIX]");
    };
    let walks: usize = walks.parse()?;
    let repetitions: u16 = repetitions.parse()?;
    let in_flight: usize = in_flight.parse()?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Beyond the host's limit: an answer lost is a walk lost.
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    let name = match prefix.first() {
        Some(prefix) => format!("{column}.{prefix}"),
        None => column.clone(),
    };
    let mut waiting: VecDeque<Part> = match walks {
        0 => parts(&name)?.into(),
        walks => vec![whole(column)?; walks].into(),
    };
    let mut flying: Vec<Option<Part>> = (0..in_flight).map(|_| None).collect();
    let mut request = Vec::new();
    let mut answer = vec![0; 65_536];
    let mut told = Told::default();
    let (mut answers, mut outstanding) = (0_u64, 0_usize);
    let start = Instant::now();
    for (slot, place) in flying.iter_mut().enumerate() {
        let Some(part) = waiting.pop_front() else {
            break;
        };
        ask(&socket, slot, repetitions, &part.after, &mut request)?;
        *place = Some(part);
        outstanding += 1;
    }
    while outstanding > 0 {
        let len = socket.recv(&mut answer).context("the agent is silent")?;
        let octets = answer.get(..len).unwrap_or_default();
        let (slot, list) = read(octets).context("an answer that cannot be read")?;
        answers += 1;
        let place = flying.get_mut(slot).context("an answer to nobody")?;
        let mut part = place.take().context("an answer twice")?;
        let goes_on = take(list, &mut part, &mut told).context("an answer cut short")?;
        let next = if goes_on {
            Some(part)
        } else {
            waiting.pop_front()
        };
        match next {
            Some(part) => {
                ask(&socket, slot, repetitions, &part.after, &mut request)?;
                *place = Some(part);
            }
            None => outstanding -= 1,
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let Told { rows, bindings } = told;
    writeln!(io::stdout().lock(), "{rows} {bindings} {answers} {seconds}")?;
    Ok(())
}

/// A name in BER.
fn encode(name: &str) -> Result<Vec<u8>> {
    let numbers: Vec<u32> = name
        .trim_start_matches('.')
        .split('.')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [first, second, rest @ ..] = &numbers[..] else {
        bail!("a column has a longer name than {name}");
    };
    let mut out = Vec::new();
    put_number(&mut out, first * 40 + second);
    rest.iter().for_each(|number| put_number(&mut out, *number));
    Ok(out)
}

/// All of a column.
fn whole(name: &str) -> Result<Part> {
    let inside = encode(name)?;
    Ok(Part {
        after: inside.clone(),
        inside,
    })
}

/// 256 parts of a column.
fn parts(name: &str) -> Result<Vec<Part>> {
    let head = encode(name)?;
    Ok((0..256)
        .map(|number| {
            let mut inside = head.clone();
            put_number(&mut inside, number);
            Part {
                after: inside.clone(),
                inside,
            }
        })
        .collect())
}

/// A sub-identifier in BER.
fn put_number(out: &mut Vec<u8>, number: u32) {
    let groups = (32 - number.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        out.push((number >> (7 * group)) as u8 & 0x7f | more);
    }
}

/// Sends a GetBulk; its request-id is the slot.
fn ask(
    socket: &UdpSocket,
    slot: usize,
    repetitions: u16,
    after: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let name = 2 + after.len();
    let binding = name + 2;
    let list = 2 + binding;
    let pdu = 4 + 3 + 4 + 2 + list;
    let message = 3 + 8 + 2 + pdu;
    let [id_high, id_low] = (slot as u16).to_be_bytes();
    let [high, low] = repetitions.to_be_bytes();
    out.clear();
    // All lengths are below 128: names have a few dozen sub-identifiers.
    out.extend([0x30, message as u8, 2, 1, 1, 4, 6]);
    out.extend(b"public");
    out.extend([0xa5, pdu as u8, 2, 2, id_high, id_low, 2, 1, 0]);
    out.extend([2, 2, high, low, 0x30, list as u8, 0x30, binding as u8]);
    out.extend([6, after.len() as u8]);
    out.extend(after);
    out.extend([5, 0]);
    socket.send(out)?;
    Ok(())
}

/// A value's contents, and what follows it.
fn value(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = octets.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        short @ 0..0x80 => (usize::from(*short), rest),
        long => {
            let (len, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let len = len
                .iter()
                .fold(0, |len, octet| len << 8 | usize::from(*octet));
            (len, rest)
        }
    };
    rest.split_at_checked(len)
}

/// The slot that an answer is for, and its bindings.
fn read(octets: &[u8]) -> Option<(usize, &[u8])> {
    let (message, _) = value(octets)?;
    let (_, rest) = value(message)?;
    let (_, rest) = value(rest)?;
    let (pdu, _) = value(rest)?;
    let (id, rest) = value(pdu)?;
    let (_, rest) = value(rest)?;
    let (_, rest) = value(rest)?;
    let (list, _) = value(rest)?;
    let slot = id.iter().fold(0, |id, octet| id << 8 | usize::from(*octet));
    Some((slot, list))
}

/// Counts what was told; whether the part goes on.
fn take(mut list: &[u8], part: &mut Part, told: &mut Told) -> Option<bool> {
    let mut last = None;
    let mut goes_on = true;
    while !list.is_empty() {
        let (binding, rest) = value(list)?;
        list = rest;
        told.bindings += 1;
        let (name, _) = value(binding)?;
        // endOfMibView is told under the name that was asked.
        goes_on &= name.starts_with(&part.inside) && name != part.after;
        if goes_on {
            told.rows += 1;
            last = Some(name);
        }
    }
    if let Some(last) = last {
        part.after.clear();
        part.after.extend_from_slice(last);
    }
    Some(goes_on && last.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_ber() {
        for (number, octets) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x81, 0]),
            (u32::MAX, &[0x8f, 0xff, 0xff, 0xff, 0x7f]),
        ] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, octets);
        }
    }
}
