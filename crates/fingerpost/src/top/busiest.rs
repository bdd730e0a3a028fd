//! Which rows change most, in bounded memory.

use std::collections::HashMap;
use std::time::Duration;

/// Over how long a rate is smoothed.
const SMOOTH_SECS: f64 = 5.0;

/// What names a row: a neighbour's address and link, a prefix and its
/// table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Address or prefix.
    pub dst: String,
    /// Link or table.
    pub place: String,
}

/// How a row changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Busy {
    /// Changes seen.
    pub total: u64,
    /// Changes a second, smoothed.
    pub rate: f64,
    /// The last change: `added`, `changed`, `deleted`.
    pub last: String,
    /// What else to show of the row as it was then.
    pub detail: String,
    /// Changes since the last [`Busiest::pass`].
    fresh: u64,
}

impl Busy {
    fn weight(&self) -> f64 {
        self.rate + self.fresh as f64
    }
}

/// The rows that change most. A row that changes less often than all that
/// are kept may be forgotten and counted from nothing later.
#[derive(Debug)]
pub struct Busiest {
    rows: HashMap<Key, Busy>,
    keep: usize,
}

impl Busiest {
    /// Keeps this many rows at least, twice as many at most.
    pub fn new(keep: usize) -> Self {
        Self {
            rows: HashMap::new(),
            keep: keep.max(1),
        }
    }

    /// Counts a change. O(1), amortised over the forgetting.
    pub fn count(&mut self, key: Key, last: String, detail: String) {
        if self.rows.len() >= self.keep * 2 && !self.rows.contains_key(&key) {
            self.forget();
        }
        let busy = self.rows.entry(key).or_default();
        busy.total += 1;
        busy.fresh += 1;
        busy.last = last;
        busy.detail = detail;
    }

    /// Lets time pass: what is fresh becomes part of the rate. O(rows).
    pub fn pass(&mut self, time: Duration) {
        let secs = time.as_secs_f64();
        if secs <= 0.0 {
            return;
        }
        let stays = (-secs / SMOOTH_SECS).exp();
        for busy in self.rows.values_mut() {
            let now = busy.fresh as f64 / secs;
            busy.rate = busy.rate * stays + now * (1.0 - stays);
            busy.fresh = 0;
        }
    }

    /// All that are kept, in no order.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, &Busy)> {
        self.rows.iter()
    }

    fn forget(&mut self) {
        let mut rows: Vec<(Key, Busy)> = self.rows.drain().collect();
        rows.select_nth_unstable_by(self.keep, |a, b| b.1.weight().total_cmp(&a.1.weight()));
        rows.truncate(self.keep);
        self.rows.extend(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key {
            dst: number.to_string(),
            place: "main".to_owned(),
        }
    }

    fn count(busiest: &mut Busiest, number: usize) {
        busiest.count(key(number), "changed".to_owned(), String::new());
    }

    #[test]
    fn the_busy_stay_among_many_others() {
        let mut busiest = Busiest::new(8);
        for other in 0..10_000 {
            count(&mut busiest, 1_000_000);
            count(&mut busiest, other);
            assert!(busiest.rows.len() <= 16);
        }
        assert_eq!(busiest.rows[&key(1_000_000)].total, 10_000);
    }

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
        let mut busiest = Busiest::new(8);
        for _ in 0..60 {
            for _ in 0..20 {
                count(&mut busiest, 1);
            }
            busiest.pass(Duration::from_secs(2));
        }
        let rate = busiest.rows[&key(1)].rate;
        assert!((9.9..10.1).contains(&rate), "{rate}");
        busiest.pass(Duration::from_secs(60));
        assert!(busiest.rows[&key(1)].rate < 0.1);
        busiest.pass(Duration::ZERO);
    }
}
