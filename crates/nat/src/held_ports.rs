//! Ports that open mappings gave back a while ago (RFC 6888 REQ-8): who
//! still sends to one is not to reach the next who would get it. For the
//! engine, which says when a port is free otherwise.

/// Ports that are remembered. With one alias address it is all of them; with
/// more, a port may push out that of another address.
const SLOTS: usize = 1 << 16;
/// Ticks of a second, rounded up ([`crate::clock`]).
const TICKS_A_SECOND: u32 = 4;

/// A port that was given back. Which one is told by its slot and address.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Memory order; 0 is no alias.
    alias: u32,
    /// When it was given back.
    since: u32,
}

/// See the module. Room is made with the first port.
#[derive(Debug)]
pub struct HeldPorts {
    ticks: u32,
    slots: Box<[Held]>,
}

impl HeldPorts {
    /// Each is held so long; with 0 seconds none is.
    pub fn new(secs: u32) -> Self {
        Self {
            ticks: secs.saturating_mul(TICKS_A_SECOND),
            slots: Box::default(),
        }
    }

    /// A port (host order) of an alias address is given back. O(1).
    pub fn hold(&mut self, alias: u32, port: u16, now: u32) {
        if self.ticks == 0 {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![Held::default(); SLOTS].into_boxed_slice();
        }
        if let Some(slot) = self.slots.get_mut(place(alias, port)) {
            *slot = Held { alias, since: now };
        }
    }

    /// Whether a port is held still. O(1).
    pub fn holds(&self, alias: u32, port: u16, now: u32) -> bool {
        let slot = self.slots.get(place(alias, port));
        slot.is_some_and(|slot| slot.alias == alias && now.saturating_sub(slot.since) < self.ticks)
    }
}

impl HeldPorts {
    /// Those that are held still: slot, address and since when.
    pub fn all(&self, now: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let held = self.slots.iter().enumerate();
        let held = held.filter(move |(_, slot)| {
            slot.alias != 0 && now.saturating_sub(slot.since) < self.ticks
        });
        held.map(|(at, slot)| (at as u32, slot.alias, slot.since))
    }

    /// One of them again.
    pub fn restore(&mut self, (at, alias, since): (u32, u32, u32)) {
        if self.ticks > 0 && self.slots.is_empty() {
            self.slots = vec![Held::default(); SLOTS].into_boxed_slice();
        }
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = Held { alias, since };
        }
    }
}

/// Another one for each port of an address.
fn place(alias: u32, port: u16) -> usize {
    usize::from(port ^ (alias.wrapping_mul(0x9e37_79b1) >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_held_as_long_as_it_is_said_and_no_other() {
        let mut held = HeldPorts::new(120);
        assert!(!held.holds(7, 40_000, 5));
        held.hold(7, 40_000, 5);
        assert!(held.holds(7, 40_000, 5 + 479));
        assert!(!held.holds(7, 40_000, 5 + 480));
        assert!(!held.holds(8, 40_000, 5) && !held.holds(7, 40_001, 5));
        let mut none = HeldPorts::new(0);
        none.hold(7, 40_000, 5);
        assert!(!none.holds(7, 40_000, 5) && none.slots.is_empty());
    }

    #[test]
    fn the_ports_of_an_address_have_a_place_each() {
        let mut places: Vec<usize> = (0..=u16::MAX)
            .map(|port| place(0x0102_0304, port))
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), SLOTS);
    }
}
