//! `IFLA_INET6_STATS`: an array without names.
//!
//! Its order is that of the kernel's `IPSTATS_MIB_…` (`linux/snmp.h`), which
//! kernels have changed: Linux 6.18 counts the kinds of congestion
//! notification before what goes out, older ones near the end, and the
//! arrays are of one length. Which it is shows by what they count: each
//! packet received is of exactly one kind.

use table::IpCounters;

/// Numbers of the array; what a kernel has beyond is not read.
const LEN: usize = 38;

/// The order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6Layout {
    /// Congestion notification behind the rest (headers of Linux 6.1).
    Late,
    /// Congestion notification before what goes out (seen on Linux 6.18).
    Early,
}

/// What IPv6 counted on a link, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Statistics([u64; LEN]);

impl Ipv6Statistics {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let (values, _) = bytes.as_chunks::<8>();
        let at = |place: usize| values.get(place).map(|value| u64::from_ne_bytes(*value));
        Self(std::array::from_fn(|place| at(place).unwrap_or(0)))
    }

    /// The one order in which this link's numbers add up, if it is one.
    /// (While a packet is being counted they may add up in neither.)
    fn layout(&self) -> Option<Ipv6Layout> {
        let received = self.0[1];
        let adds_up = |kinds: &[u64]| kinds.iter().sum::<u64>() == received;
        match (adds_up(&self.0[32..36]), adds_up(&self.0[4..8])) {
            (true, false) => Some(Ipv6Layout::Late),
            (false, true) => Some(Ipv6Layout::Early),
            _ => None,
        }
    }

    /// As named counters.
    pub fn counters(&self, layout: Ipv6Layout) -> IpCounters {
        let is_early = layout == Ipv6Layout::Early;
        let either = |late: usize, early: usize| self.0[if is_early { early } else { late }];
        // From 7 on the early order is the late one moved by five.
        let at = |late: usize| either(late, late + 5);
        IpCounters {
            in_receives: self.0[1],
            in_octets: self.0[2],
            in_delivers: self.0[3],
            out_forwarded: either(4, 11),
            out_requests: either(5, 8),
            out_octets: either(6, 10),
            // InHdrErrors and InTooBigErrors.
            in_header_errors: at(7) + at(8),
            in_no_routes: at(9),
            in_address_errors: at(10),
            in_unknown_protocols: at(11),
            in_truncated: at(12),
            in_discards: at(13),
            out_discards: at(14),
            out_no_routes: at(15),
            reassembly_requests: at(17),
            reassembly_oks: at(18),
            reassembly_fails: at(19),
            fragment_oks: at(20),
            fragment_fails: at(21),
            fragment_creates: at(22),
            in_multicasts: at(23),
            out_multicasts: at(24),
            in_broadcasts: at(25),
            out_broadcasts: at(26),
            in_multicast_octets: at(27),
            out_multicast_octets: at(28),
            // Kernels before 6.9 do not count it: what was asked for and
            // what was forwarded.
            out_transmits: match either(37, 9) {
                0 if !is_early => self.0[4] + self.0[5],
                counted => counted,
            },
        }
    }
}

impl Ipv6Layout {
    /// The order that these links show, if one does and no more links show
    /// the other. Where nothing was counted yet any order is right.
    pub fn of<'a>(links: impl Iterator<Item = &'a Ipv6Statistics>) -> Option<Self> {
        let (mut late, mut early, mut is_idle) = (0_usize, 0_usize, true);
        for link in links {
            is_idle &= link.0[1..].iter().all(|&counted| counted == 0);
            match link.layout() {
                Some(Self::Late) => late += 1,
                Some(Self::Early) => early += 1,
                None => {}
            }
        }
        if is_idle || late > early {
            return Some(Self::Late);
        }
        (early > late).then_some(Self::Early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Received 30, all of one kind; sent 16 of 1,092 octets.
    fn sample(layout: Ipv6Layout) -> Ipv6Statistics {
        let mut all = [0; LEN];
        let places: [(usize, u64); 6] = match layout {
            Ipv6Layout::Late => [(1, 30), (32, 30), (5, 16), (37, 17), (6, 1_092), (24, 9)],
            Ipv6Layout::Early => [(1, 30), (4, 30), (8, 16), (9, 17), (10, 1_092), (29, 9)],
        };
        for (place, value) in places {
            all[place] = value;
        }
        Ipv6Statistics(all)
    }

    #[test]
    fn the_order_shows_by_what_was_counted() {
        for layout in [Ipv6Layout::Late, Ipv6Layout::Early] {
            let link = sample(layout);
            assert_eq!(Ipv6Layout::of([&link].into_iter()), Some(layout));
            let counters = link.counters(layout);
            assert_eq!((counters.in_receives, counters.out_requests), (30, 16));
            assert_eq!((counters.out_transmits, counters.out_octets), (17, 1_092));
            assert_eq!(counters.out_multicasts, 9);
        }
        let both = [sample(Ipv6Layout::Late), sample(Ipv6Layout::Early)];
        assert_eq!(Ipv6Layout::of(both.iter()), None);
        let idle = Ipv6Statistics([0; LEN]);
        assert!(Ipv6Layout::of([&idle].into_iter()).is_some());
    }

    #[test]
    fn a_short_array_is_zeros_behind_its_end() {
        let bytes = [3_u64, 5, 6].map(u64::to_ne_bytes).concat();
        let counters = Ipv6Statistics::new(&bytes).counters(Ipv6Layout::Early);
        assert_eq!((counters.in_receives, counters.in_octets), (5, 6));
        assert_eq!(counters.out_transmits, 0);
    }
}
