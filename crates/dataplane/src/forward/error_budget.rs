//! How many ICMP errors a worker sends: so many in all, and of those so many
//! to each sender, so that one who asks for them takes nobody else's (RFC
//! 1812 §4.3.2.8, RFC 4443 §2.4 (f)).

use super::Settings;

/// Senders that are told apart; two of one slot share.
const SLOTS: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub struct ErrorBudget {
    all: Allowance,
    each: Box<[Slot]>,
    fresh: Allowance,
    seed: u64,
}

#[derive(Debug, Clone)]
struct Slot {
    sender: u64,
    allowance: Allowance,
}

impl ErrorBudget {
    /// Nothing sent yet.
    pub fn new(settings: &Settings) -> Self {
        let fresh = Allowance::new(
            settings.errors_each_per_second,
            settings.errors_each_at_once,
        );
        let slot = Slot {
            sender: 0,
            allowance: fresh.clone(),
        };
        Self {
            all: Allowance::new(settings.errors_per_second, settings.errors_at_once),
            each: vec![slot; SLOTS].into_boxed_slice(),
            fresh,
            seed: settings.hash_seed,
        }
    }

    /// Takes one for a sender, if there is one. What a sender is refused
    /// takes nothing from the others. O(1).
    pub fn take(&mut self, sender: u64, now_millis: u64) -> bool {
        let mixed = (sender ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(slot) = self.each.get_mut((mixed >> 32) as usize % SLOTS) else {
            return false;
        };
        // Who has sent nothing for long leaves the slot to another.
        if slot.sender != sender && slot.allowance.is_full(now_millis) {
            slot.sender = sender;
            slot.allowance = self.fresh.clone();
        }
        slot.allowance.take(now_millis) && self.all.take(now_millis)
    }
}

/// How many errors may be sent: so many a second, and so many at once.
#[derive(Debug, Clone)]
struct Allowance {
    per_second: u64,
    burst: u64,
    /// Thousandths of errors that may be sent now.
    thousandths: u64,
    seen_millis: u64,
}

impl Allowance {
    /// A full allowance.
    fn new(per_second: u32, burst: u32) -> Self {
        let (per_second, burst) = (u64::from(per_second), u64::from(burst));
        Self {
            per_second,
            burst,
            thousandths: burst * 1_000,
            seen_millis: 0,
        }
    }

    /// Takes one, if there is one.
    fn take(&mut self, now_millis: u64) -> bool {
        let passed = now_millis.saturating_sub(self.seen_millis).min(1 << 32);
        self.seen_millis = self.seen_millis.max(now_millis);
        let grown = self.thousandths + passed * self.per_second;
        self.thousandths = grown.min(self.burst * 1_000);
        let has_one = self.thousandths >= 1_000;
        if has_one {
            self.thousandths -= 1_000;
        }
        has_one
    }

    /// Whether as many may be sent as ever at once.
    fn is_full(&self, now_millis: u64) -> bool {
        let passed = now_millis.saturating_sub(self.seen_millis).min(1 << 32);
        self.thousandths + passed * self.per_second >= self.burst * 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_fills_up_again() {
        let mut allowance = Allowance::new(10, 3);
        let taken = |allowance: &mut Allowance, now| (0..9).filter(|_| allowance.take(now)).count();
        assert_eq!(taken(&mut allowance, 5_000), 3);
        assert_eq!(taken(&mut allowance, 5_099), 0);
        assert_eq!(taken(&mut allowance, 5_200), 2);
        // A clock that goes back gives nothing.
        assert_eq!(taken(&mut allowance, 0), 0);
        assert_eq!(taken(&mut allowance, u64::MAX), 3);
    }

    #[test]
    fn who_asks_for_many_takes_nobody_elses() {
        let settings = Settings {
            errors_per_second: 100,
            errors_at_once: 40,
            errors_each_per_second: 10,
            errors_each_at_once: 5,
            ..Settings::default()
        };
        let mut budget = ErrorBudget::new(&settings);
        let loud = (0..1_000).filter(|_| budget.take(1, 1_000)).count();
        assert_eq!(loud, 5);
        // Of 1,024 slots hardly one is shared by so few.
        let others = (2..8).filter(|sender| budget.take(*sender, 1_000)).count();
        assert!(others >= 5, "{others}");
        assert_eq!((0..99).filter(|_| budget.take(1, 1_200)).count(), 2);
        // All together have their limit still.
        let many = (100..1_100)
            .filter(|sender| budget.take(*sender, 1_200))
            .count();
        assert!(many <= 40, "{many}");
    }
}
