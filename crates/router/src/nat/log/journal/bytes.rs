//! A record as bytes: numbers in little-endian order, a sum at the end.

use std::net::Ipv4Addr;

use super::super::record::{Record, What};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 40;
/// Those of its sum.
pub const SUM_BYTES: usize = 4;
/// Bytes before the sum.
const SUMMED: usize = RECORD_BYTES - SUM_BYTES;

pub fn write(record: &Record, out: &mut Vec<u8>) {
    let at = out.len();
    write_bare(record, out);
    let sum = crc32fast::hash(out.get(at..).unwrap_or_default());
    out.extend(sum.to_le_bytes());
}

/// Without the sum.
pub fn write_bare(record: &Record, out: &mut Vec<u8>) {
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
}

/// `None`: it was not written whole, is of a later version, or cannot be.
pub fn read(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let (summed, sum) = bytes.split_first_chunk::<SUMMED>()?;
    let sum = u32::from_le_bytes(*sum.first_chunk()?);
    (crc32fast::hash(summed) == sum).then(|| read_bare(summed))?
}

/// One without its sum; `None`: it is of a later version, or cannot be.
pub fn read_bare(bytes: &[u8; SUMMED]) -> Option<Record> {
    let (at, rest) = bytes.split_first_chunk::<8>()?;
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
