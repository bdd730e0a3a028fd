//! For which alias ports a redirect may speak: nearly all packets that come in
//! unasked are told by one bit that none does. Kept by [`super::Rules`].

/// Ranges up to this are counted port by port; a longer one speaks for all.
const MOST_COUNTED: u16 = 1_024;
/// Ports there are.
const PORTS: usize = 65_536;

/// How many redirects speak for each port; 136 KiB with the first of them.
#[derive(Debug, Clone, Default)]
pub struct HeldPorts {
    /// Redirects that speak for ports which are not counted.
    wide: u32,
    /// A bit for each port that some speak for.
    bits: Vec<u64>,
    /// How many; one that was full is never counted down again.
    counts: Vec<u16>,
}

impl HeldPorts {
    /// Whether a redirect may speak for a port. O(1).
    #[inline(always)]
    pub fn has(&self, port: u16) -> bool {
        let word = self.bits.get(usize::from(port >> 6)).copied().unwrap_or(0);
        self.wide != 0 || word >> (port & 63) & 1 != 0
    }

    /// One more for so many ports; none: for something else than ports.
    pub fn add(&mut self, first: u16, ports: u16) {
        if !(1..=MOST_COUNTED).contains(&ports) {
            self.wide += 1;
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; PORTS];
            self.bits = vec![0; PORTS / 64];
        }
        for port in (first..=u16::MAX).take(usize::from(ports)) {
            if let Some(count) = self.counts.get_mut(usize::from(port)) {
                *count = count.saturating_add(1);
            }
            self.set(port, true);
        }
    }

    /// One less.
    pub fn remove(&mut self, first: u16, ports: u16) {
        if !(1..=MOST_COUNTED).contains(&ports) {
            self.wide -= 1;
            return;
        }
        for port in (first..=u16::MAX).take(usize::from(ports)) {
            if let Some(count) = self.counts.get_mut(usize::from(port))
                && *count != u16::MAX
            {
                *count = count.saturating_sub(1);
                let is_held = *count != 0;
                self.set(port, is_held);
            }
        }
    }

    /// Bytes of it.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.bits.as_slice()) + size_of_val(self.counts.as_slice())
    }

    fn set(&mut self, port: u16, is_held: bool) {
        if let Some(word) = self.bits.get_mut(usize::from(port >> 6)) {
            let bit = 1 << (port & 63);
            *word = if is_held { *word | bit } else { *word & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use lab::Random;

    use super::*;

    #[test]
    fn each_port_as_often_as_it_is_held() {
        let mut held = HeldPorts::default();
        assert!(!held.has(0) && held.memory_bytes() == 0);
        let mut random = Random::new(5);
        let mut all: Vec<(u16, u16)> = Vec::new();
        for _ in 0..2_000 {
            if !all.is_empty() && random.below(2) == 0 {
                let (first, ports) = all.swap_remove(random.below(all.len()));
                held.remove(first, ports);
            } else {
                let first = random.below(65_536) as u16;
                let most = usize::from(u16::MAX - first) + 1;
                let ports = random.below(most.min(1_500)) as u16;
                held.add(first, ports);
                all.push((first, ports));
            }
            let is_wide = all
                .iter()
                .any(|(_, ports)| *ports == 0 || *ports > MOST_COUNTED);
            for _ in 0..20 {
                let port = random.below(65_536) as u16;
                let is_held = all.iter().any(|(first, ports)| {
                    port >= *first && u32::from(port) < u32::from(*first) + u32::from(*ports)
                });
                assert_eq!(held.has(port), is_held || is_wide);
            }
        }
    }

    #[test]
    fn a_full_count_stays() {
        let mut held = HeldPorts::default();
        for _ in 0..70_000 {
            held.add(80, 1);
        }
        for _ in 0..70_000 {
            held.remove(80, 1);
        }
        assert!(held.has(80) && !held.has(81));
        held.add(65_535, 1);
        held.remove(65_535, 1);
        assert!(!held.has(65_535));
    }
}
