//! A record as bytes: numbers in little-endian order, a sum at the end.

use std::net::Ipv4Addr;

use super::super::record::{Record, What};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 40;
/// Bytes before the sum.
const SUMMED: usize = RECORD_BYTES - 4;

pub fn write(record: &Record, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend(record.at_millis.to_le_bytes());
    out.extend([record.what.number(), record.protocol, record.bits, 0]);
    for address in [record.inside, record.alias, record.remote] {
        out.extend(address.to_bits().to_le_bytes());
    }
    let (first, last) = record.ports;
    for port in [first, last, record.inside_port, record.remote_port] {
        out.extend(port.to_le_bytes());
    }
    // Room for what a later version wants to say.
    out.extend([0; 4]);
    let sum = crc32fast::hash(out.get(at..).unwrap_or_default());
    out.extend(sum.to_le_bytes());
}

/// `None`: it was not written whole, is of a later version, or cannot be.
pub fn read(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let (summed, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(summed) != u32::from_le_bytes(*sum) || summed.len() != SUMMED {
        return None;
    }
    let (at, rest) = summed.split_first_chunk::<8>()?;
    let ([what, protocol, bits, _], rest) = rest.split_first_chunk::<4>()?;
    let (words, rest) = rest.split_first_chunk::<12>()?;
    let (ports, _) = rest.split_first_chunk::<8>()?;
    let (words, _) = words.as_chunks::<4>();
    let (ports, _) = ports.as_chunks::<2>();
    let [inside, alias, remote] = words else {
        return None;
    };
    let [first, last, inside_port, remote_port] = ports else {
        return None;
    };
    if *bits > 32 {
        return None;
    }
    let address = |word: &[u8; 4]| Ipv4Addr::from_bits(u32::from_le_bytes(*word));
    let port = |word: &[u8; 2]| u16::from_le_bytes(*word);
    Some(Record {
        at_millis: u64::from_le_bytes(*at),
        what: What::of(*what)?,
        bits: *bits,
        inside: address(inside),
        alias: address(alias),
        ports: (port(first), port(last)),
        protocol: *protocol,
        inside_port: port(inside_port),
        remote: address(remote),
        remote_port: port(remote_port),
    })
}
