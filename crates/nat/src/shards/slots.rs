//! How ports are sliced: by bits above the lowest, so that a pair of
//! an even port and the next one (RTP and RTCP, RFC 3550 §11) is one part's,
//! and that every part has even and odd ports all over the range.

/// Pairs of ports that are assigned by one bit mask; the next ones the same way.
const SLOTS: u32 = 256;
/// Ports of them.
const BLOCK: u32 = 2 * SLOTS;
/// Most parts: each has a slot at least.
pub const MOST_SHARDS: u16 = SLOTS as u16;

/// Which part has which port.
#[derive(Debug, Clone)]
pub struct Slots {
    of: [u8; SLOTS as usize],
}

impl Slots {
    /// For so many parts, at most [`MOST_SHARDS`].
    pub fn new(parts: u16) -> Self {
        let parts = parts.clamp(1, MOST_SHARDS);
        let mut of = [0; SLOTS as usize];
        for (slot, part) in of.iter_mut().enumerate() {
            *part = (slot % usize::from(parts)) as u8;
        }
        Self { of }
    }

    /// The part of a port (host order).
    #[inline(always)]
    pub fn of(&self, port: u16) -> u16 {
        u16::from(self.of[usize::from(port >> 1) % SLOTS as usize])
    }
}

/// The ports of one part, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSlice {
    parts: u32,
    part: u32,
    /// Ports of the part in a block.
    ports: u32,
}

impl PortSlice {
    /// One of so many parts.
    pub fn new(part: u16, parts: u16) -> Self {
        let parts = u32::from(parts.clamp(1, MOST_SHARDS));
        let part = u32::from(part).min(parts - 1);
        Self {
            parts,
            part,
            ports: 2 * ((SLOTS - 1 - part) / parts + 1),
        }
    }

    /// How many ports of the part are below one, of 0 to 65,536.
    pub fn below(self, port: u32) -> u32 {
        let slot = port / 2 % SLOTS;
        let slots = (slot + self.parts - 1 - self.part) / self.parts;
        let half = if slot % self.parts == self.part {
            port % 2
        } else {
            0
        };
        port / BLOCK * self.ports + 2 * slots + half
    }

    /// The port of the part that has so many below it.
    pub fn port(self, place: u32) -> u16 {
        let rest = place % self.ports;
        let slot = rest / 2 * self.parts + self.part;
        (place / self.ports * BLOCK + slot * 2 + rest % 2) as u16
    }

    /// A port of the part that is like another one: itself if it is of the
    /// part, else one nearby of the same parity (RFC 4787 REQ-4).
    pub fn like(self, port: u16) -> u16 {
        let slot = u32::from(port) / 2 % SLOTS;
        let mut own = slot - slot % self.parts + self.part;
        if own >= SLOTS {
            own -= self.parts;
        }
        let others = u32::from(port) & !(BLOCK - 2);
        others as u16 | (own * 2) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_and_share_nothing() {
        for parts in [1, 2, 3, 5, 48, 64, 255, 256] {
            let slots = Slots::new(parts);
            let cuts: Vec<PortSlice> = (0..parts).map(|part| PortSlice::new(part, parts)).collect();
            let mut next = vec![0; usize::from(parts)];
            for port in 0..=u16::MAX {
                let part = slots.of(port);
                assert_eq!(part, slots.of(port ^ 1));
                let at = usize::from(part);
                assert_eq!(cuts[at].below(u32::from(port)), next[at]);
                assert_eq!(cuts[at].port(next[at]), port);
                next[at] += 1;
                for (of, slice) in cuts.iter().enumerate().take(3) {
                    let like = slice.like(port);
                    assert_eq!(usize::from(slots.of(like)), of);
                    assert_eq!((like & 1, like >> 9), (port & 1, port >> 9));
                    assert_eq!(like == port, of == at);
                }
            }
            for (slice, count) in cuts.iter().zip(next) {
                assert_eq!(slice.below(1 << 16), count);
            }
        }
    }
}
