//! ICMP errors about packets that the model has just seen pass: their
//! receiver gets the packet as it knows it, to the last bit.

use std::net::Ipv4Addr;

use fingerpost_nat::{Direction, Verdict};
use packet::build::Ip;
use packet::icmp;

use super::{Tuple, World, read};

/// A router on the way.
const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 200);
/// What an error quotes at least (RFC 792).
const LEAST: usize = 28;
/// Half of TCP's checksum is in what is so long: it cannot be told.
const HALF_A_SUM: usize = 37;
/// Bytes that lie behind a packet in its buffer.
const BEHIND: [u8; 40] = [0xbe; 40];

impl World {
    /// Someone on the far side complains about a packet as it had `after`;
    /// who sent it hears of it as `before`.
    pub fn complain(&mut self, direction: Direction, tuple: &Tuple, before: &[u8], after: &[u8]) {
        let least = LEAST.min(after.len());
        let cut = least + self.random.below((after.len() - least) as u64 + 1) as usize;
        let cut = if cut == HALF_A_SUM { cut - 1 } else { cut };
        let (there, _, _) = read(after, direction);
        let (from, to) = match direction {
            Direction::Out => (ROUTER, there.source.0),
            Direction::In => (there.destination.0, there.source.0),
        };
        let mut error = Ip::new(from, to).icmp(icmp::UNREACHABLE, 3, [0; 4], &after[..cut]);
        let len = error.len();
        error.extend(BEHIND);
        let verdict = match direction {
            Direction::Out => self.nat.translate_in(&mut error, self.clock),
            Direction::In => self.nat.translate_out(&mut error, self.clock),
        };
        assert_eq!(verdict, Verdict::Translated, "about {tuple:?}");
        assert_eq!(error[len..], BEHIND);
        let (heard, quoted, _) = read(&error[..len], Direction::In);
        let (source, destination) = match direction {
            Direction::Out => (ROUTER, tuple.source.0),
            Direction::In => (tuple.destination.0, tuple.source.0),
        };
        assert_eq!(
            (heard.source.0, heard.destination.0),
            (source, destination),
            "about {tuple:?}"
        );
        assert_eq!(quoted, before[..cut], "about {tuple:?}");
        self.complaints += 1;
    }
}
