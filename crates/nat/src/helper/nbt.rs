//! NetBIOS over UDP (RFC 1002): datagrams say who has sent them (§4.4.1), and
//! the name service says at which address a name is (§4.2). Nothing changes
//! its length, and nothing is opened.

use std::net::Ipv4Addr;

use super::datagram::Datagram;

/// The port of the name service (RFC 1002 §4.2).
pub const NAMES: u16 = 137;
/// The port of datagrams (RFC 1002 §4.4).
pub const DATAGRAMS: u16 = 138;

/// Bytes of a message's header in the name service (§4.2.1.1).
const HEADER_LEN: usize = 12;
/// Bytes behind the name of a question (§4.2.1.2).
const QUESTION_LEN: usize = 4;
/// Bytes between the name and the data of a record (§4.2.1.3).
const RECORD_LEN: usize = 10;
/// Records with an address: `A`, four bytes, and `NB`, six for each (§4.2.1.3).
const A: u16 = 0x0001;
const NB: u16 = 0x0020;
/// Kinds of datagrams (§4.4.1).
const KINDS: std::ops::RangeInclusive<u8> = 0x10..=0x16;

/// Which end stands for which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// What is looked for.
    pub from: (Ipv4Addr, u16),
    /// What is written in its place.
    pub to: (Ipv4Addr, u16),
}

/// Writes the other end into a packet of a flow with one of the two ports,
/// on its way out (`out`) or in, not translated yet. O(bytes).
pub fn exchange(bytes: &mut [u8], out: bool, exchange: &Exchange) {
    let Some(datagram) = Datagram::read(bytes) else {
        return;
    };
    if datagram.has_port(bytes, NAMES) {
        datagram.patch(bytes, |data| names(data, exchange.from.0, exchange.to.0));
    } else if out {
        // Where a datagram from outside comes from is so as it says.
        datagram.patch(bytes, |data| sender(data, exchange));
    }
}

/// Who has sent a datagram.
fn sender(data: &mut [u8], exchange: &Exchange) {
    let Some([kind, _, _, _, a, b, c, d, high, low]) = data.first_chunk_mut::<10>() else {
        return;
    };
    if KINDS.contains(kind) && Ipv4Addr::new(*a, *b, *c, *d) == exchange.from.0 {
        let (address, port) = exchange.to;
        [*a, *b, *c, *d] = address.octets();
        [*high, *low] = port.to_be_bytes();
    }
}

/// The addresses of names, of all sections.
fn names(data: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
    let count = |at: usize| word(data, at).unwrap_or(0);
    let questions = count(4);
    let records = [6, 8, 10]
        .map(|at| u32::from(count(at)))
        .iter()
        .sum::<u32>();
    let mut at = HEADER_LEN;
    for _ in 0..questions {
        match behind_name(data, at) {
            Some(behind) => at = behind + QUESTION_LEN,
            None => return,
        }
    }
    // Each takes some bytes, so their end is there before all of a count.
    for _ in 0..records {
        match record(data, at, from, to) {
            Some(behind) => at = behind,
            None => return,
        }
    }
}

/// Writes into the record at a place; where the next one begins.
fn record(data: &mut [u8], at: usize, from: Ipv4Addr, to: Ipv4Addr) -> Option<usize> {
    let head = behind_name(data, at)?;
    let kind = word(data, head)?;
    let begin = head + RECORD_LEN;
    let end = begin + usize::from(word(data, begin - 2)?);
    let addresses = data.get_mut(begin..end)?;
    let (stride, skipped) = match kind {
        NB => (6, 2),
        A => (4, 0),
        _ => return Some(end),
    };
    for entry in addresses.chunks_exact_mut(stride) {
        if let Some(address) = entry.get_mut(skipped..)
            && *address == from.octets()
        {
            address.copy_from_slice(&to.octets());
        }
    }
    Some(end)
}

/// Where a name ends that begins at a place (RFC 1002 §4.1, RFC 883's labels
/// and pointers).
fn behind_name(data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *data.get(at)? {
            0 => return Some(at + 1),
            byte if byte & 0xc0 == 0xc0 => return Some(at + 2),
            byte if byte & 0xc0 != 0 => return None,
            byte => at += 1 + usize::from(byte),
        }
    }
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    let field = data.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field))
}

#[cfg(test)]
mod tests {
    use packet::build::Ip;
    use packet::{Ipv4, Udp};
    use proptest::prelude::*;

    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
    const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const REMOTE: Ipv4Addr = Ipv4Addr::new(18, 0, 0, 1);
    const OUT: Exchange = Exchange {
        from: (HOST, 138),
        to: (ALIAS, 40_000),
    };

    /// What becomes of data; the checksum is right afterwards.
    fn exchanged(port: u16, out: bool, how: &Exchange, data: &[u8]) -> Vec<u8> {
        let mut bytes = Ip::new(HOST, REMOTE).udp(port, port, data);
        exchange(&mut bytes, out, how);
        let ip = Ipv4::new(&bytes).unwrap();
        let udp = Udp::new(ip.payload()).unwrap();
        assert!(udp.checksum_is_right(ip.pseudo_header()));
        udp.payload().to_vec()
    }

    fn name() -> Vec<u8> {
        [&[32][..], &[b'C'; 32], &[0]].concat()
    }

    /// A message of the name service: one question, then records, each of a
    /// name, a kind and data.
    fn message(counts: [u16; 3], records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x29, 0x00, 0, 1];
        bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
        bytes.extend([name(), vec![0, 0x20, 0, 1]].concat());
        for (name, kind, data) in records {
            bytes.extend_from_slice(name);
            bytes.extend(kind.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 0]);
            bytes.extend((data.len() as u16).to_be_bytes());
            bytes.extend_from_slice(data);
        }
        bytes
    }

    fn nb(addresses: &[Ipv4Addr]) -> Vec<u8> {
        let entry = |address: &Ipv4Addr| [&[0x60, 0][..], &address.octets()].concat();
        addresses.iter().flat_map(entry).collect()
    }

    #[test]
    fn a_datagram_says_who_has_sent_it() {
        let datagram = |sender: Ipv4Addr, port: u16| {
            let head = [0x11, 2, 0, 7];
            [&head[..], &sender.octets(), &port.to_be_bytes(), b"rest"].concat()
        };
        let sent = datagram(HOST, 138);
        assert_eq!(
            exchanged(DATAGRAMS, true, &OUT, &sent),
            datagram(ALIAS, 40_000)
        );
        let relayed = datagram(REMOTE, 138);
        assert_eq!(exchanged(DATAGRAMS, true, &OUT, &relayed), relayed);
        assert_eq!(exchanged(DATAGRAMS, false, &OUT, &sent), sent);
        let mut other = sent.clone();
        other[0] = 0x17;
        assert_eq!(exchanged(DATAGRAMS, true, &OUT, &other), other);
        assert_eq!(exchanged(DATAGRAMS, true, &OUT, &sent[..9]), sent[..9]);
    }

    #[test]
    fn names_are_where_the_other_side_reaches_them() {
        let registration = |host: Ipv4Addr| {
            let pointer: &[u8] = &[0xc0, 12];
            message([0, 0, 1], &[(pointer, NB, &nb(&[REMOTE, host, host]))])
        };
        let (inside, outside) = (registration(HOST), registration(ALIAS));
        assert_eq!(exchanged(NAMES, true, &OUT, &inside), outside);
        let back = Exchange {
            from: OUT.to,
            to: OUT.from,
        };
        assert_eq!(exchanged(NAMES, false, &back, &outside), inside);
        let redirect = |host: Ipv4Addr| {
            let (name, octets) = (name(), host.octets());
            let records = [
                (name.as_slice(), 0x0002, &[0xc0_u8, 12][..]),
                (name.as_slice(), A, &octets),
            ];
            message([0, 1, 1], &records)
        };
        assert_eq!(
            exchanged(NAMES, true, &OUT, &redirect(HOST)),
            redirect(ALIAS)
        );
        // What is cut off stays as it is.
        let cut = &inside[..inside.len() - 1];
        assert_eq!(exchanged(NAMES, true, &OUT, cut), cut);
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(
            mut data in prop::collection::vec(any::<u8>(), 0..120),
            few in any::<bool>(),
            names in any::<bool>(),
            out in any::<bool>(),
        ) {
            if few {
                for byte in &mut data { *byte &= 3; }
            }
            let port = if names { NAMES } else { DATAGRAMS };
            prop_assert_eq!(exchanged(port, out, &OUT, &data).len(), data.len());
        }

        /// There and back is as it was.
        #[test]
        fn there_and_back(
            hosts in prop::collection::vec(prop::sample::select(vec![HOST, REMOTE]), 1..12),
        ) {
            let data = message([1, 0, 0], &[(&name(), NB, &nb(&hosts))]);
            let there = exchanged(NAMES, true, &OUT, &data);
            prop_assert!(!there.windows(4).any(|bytes| bytes == HOST.octets()));
            let back = Exchange { from: OUT.to, to: OUT.from };
            prop_assert_eq!(exchanged(NAMES, false, &back, &there), data);
        }
    }
}
