//! A UDP datagram whose data is changed, in place or in length. For the
//! helpers.

use packet::checksum::{Delta, Sum};
use packet::{Ipv4, Udp, protocol};

use super::Refusal;
use super::edit::{Edit, new_end, replace};

/// Bytes of UDP's header.
const HEADER_LEN: usize = 8;

/// Where the parts of a datagram are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Where UDP's header begins.
    header_at: usize,
    /// Where the data ends, and the packet.
    end: usize,
}

impl Datagram {
    /// Of an IPv4 packet that is whole; `None` of anything else, a fragment
    /// as well.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let ip = Ipv4::new(bytes).ok()?;
        if ip.protocol() != protocol::UDP || ip.is_fragment() {
            return None;
        }
        let udp = Udp::new(ip.payload()).ok()?;
        let is_whole = udp.length() == ip.payload().len();
        is_whole.then_some(Self {
            header_at: ip.header_len(),
            end: ip.total_len(),
        })
    }

    /// Whether it goes from or to a port.
    pub fn has_port(&self, bytes: &[u8], port: u16) -> bool {
        let udp = Udp::new(bytes.get(self.header_at..).unwrap_or_default());
        udp.is_ok_and(|udp| udp.source_port() == port || udp.destination_port() == port)
    }

    fn data_at(&self) -> usize {
        self.header_at + HEADER_LEN
    }

    /// Its data.
    pub fn data<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.data_at()..self.end).unwrap_or_default()
    }

    /// Lets `change` write into the data and keeps the checksum as right, as
    /// wrong, or as absent as it was.
    pub fn patch(&self, bytes: &mut [u8], change: impl FnOnce(&mut [u8])) {
        let before = sum(bytes, self.header_at, self.end);
        if let Some(data) = bytes.get_mut(self.data_at()..self.end) {
            change(data);
        }
        let after = sum(bytes, self.header_at, self.end);
        let all = bytes.get_mut(self.header_at..self.end);
        if let Ok(mut udp) = Udp::new(all.unwrap_or_default()) {
            udp.set_checksum(Delta::of16(before, after).apply_udp(udp.checksum()));
        }
    }

    /// Makes the edits (in order, apart from each other); `bytes` reaches to
    /// the end of the room that there is.
    pub fn rewrite(&self, bytes: &mut [u8], edits: &[Edit]) -> Result<(), Refusal> {
        let end = new_end(bytes.len(), self.end, edits).ok_or(Refusal::NoRoom)?;
        let total_len = u16::try_from(end).map_err(|_| Refusal::NoRoom)?;
        let before = sum(bytes, self.header_at, self.end);
        replace(bytes, self.data_at(), self.end, edits);
        let set = Ipv4::parse_truncated(&mut *bytes).map(|mut ip| ip.set_total_len(total_len));
        // It was read as IPv4 before, and fits as was just seen.
        debug_assert!(set.is_ok_and(|set| set));
        let length = |end: usize| (end - self.header_at) as u16;
        let Some(all) = bytes.get_mut(self.header_at..end) else {
            return Err(Refusal::NoRoom);
        };
        if let Ok(mut udp) = Udp::new(&mut *all) {
            udp.set_length(length(end));
        }
        let after = Sum::of(all).folded();
        // The pseudo header has the length as well.
        let lengths = Delta::of16(length(self.end).to_be(), length(end).to_be());
        let delta = Delta::of16(before, after).and(lengths);
        if let Ok(mut udp) = Udp::new(all) {
            udp.set_checksum(delta.apply_udp(udp.checksum()));
        }
        Ok(())
    }
}

fn sum(bytes: &[u8], from: usize, to: usize) -> u16 {
    Sum::of(bytes.get(from..to).unwrap_or_default()).folded()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use packet::build::Ip;
    use proptest::prelude::*;

    use super::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
    const TO: Ipv4Addr = Ipv4Addr::new(18, 0, 0, 1);

    fn is_right(bytes: &[u8]) -> bool {
        let ip = Ipv4::new(bytes).unwrap();
        let udp = Udp::new(ip.payload()).unwrap();
        ip.checksum_is_right()
            && udp.length() == ip.payload().len()
            && udp.checksum_is_right(ip.pseudo_header())
    }

    #[test]
    fn what_is_none() {
        let whole = Ip::new(FROM, TO).udp(1, 2, b"data");
        assert!(Datagram::read(&whole).is_some());
        assert!(Datagram::read(&whole[..27]).is_none());
        let mut short = whole.clone();
        short[25] = 11;
        assert!(Datagram::read(&short).is_none(), "the lengths differ");
        let mut part = whole;
        part[6] = 0x20;
        assert!(Datagram::read(&part).is_none(), "a fragment");
    }

    proptest! {
        #[test]
        fn lengths_and_checksums_stay_right(
            data in prop::collection::vec(any::<u8>(), 0..60),
            cuts in prop::collection::vec((0..60_usize, 0..10_usize, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
            room in 0..200_usize,
            summed in any::<bool>(),
        ) {
            let mut edits: Vec<Edit> = Vec::new();
            let mut from = 0;
            for (gap, len, text) in cuts {
                let (start, end) = (from + gap, from + gap + len);
                if end > data.len() { break; }
                edits.push(Edit { start, end, text: text.into_iter().collect() });
                from = end;
            }
            let mut expected = Vec::new();
            let mut at = 0;
            for edit in &edits {
                expected.extend_from_slice(&data[at..edit.start]);
                expected.extend_from_slice(&edit.text);
                at = edit.end;
            }
            expected.extend_from_slice(&data[at..]);
            let mut bytes = Ip::new(FROM, TO).udp(1, 2, &data);
            if !summed { bytes[26..28].fill(0); }
            bytes.resize(bytes.len() + room, 0xee);
            let before = bytes.clone();
            let datagram = Datagram::read(&bytes).unwrap();
            match datagram.rewrite(&mut bytes, &edits) {
                Ok(()) => {
                    let now = Datagram::read(&bytes).unwrap();
                    prop_assert_eq!(now.data(&bytes), expected);
                    prop_assert!(is_right(&bytes));
                    prop_assert!(summed || bytes[26..28] == [0, 0]);
                }
                Err(_) => prop_assert_eq!(bytes, before),
            }
        }
    }
}
