//! What a measurement is, and the report that many make. Called by the
//! benchmarks and `cargo xtask bench`.

use std::fs;

use serde::{Deserialize, Serialize};

/// One measured thing, over all rounds. Any ratio can be taken from these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `fingerpost`, or the peer's name.
    pub who: String,
    /// What it did.
    pub what: String,
    /// Rows of the table it did it to.
    pub size: u64,
    /// What the numbers are, unit last: `wall_ms`, `cpu_ms`, `ns_per_op`,
    /// `bytes_per_row`…
    pub metric: String,
    /// The middle round (the mean of the two middle ones).
    pub median: f64,
    /// The best round.
    pub min: f64,
    /// The worst round.
    pub max: f64,
    /// How many rounds.
    pub rounds: usize,
}

/// The rows of a case and the machine they were measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the case.
    pub case: String,
    /// [`machine`].
    pub machine: String,
    /// In the order they were first measured.
    pub rows: Vec<Measured>,
}

/// Measurements of several rounds, gathered by what was measured.
#[derive(Debug, Default)]
pub struct Samples {
    samples: Vec<(MeasuredKey, Vec<f64>)>,
}

#[derive(Debug, PartialEq)]
struct MeasuredKey {
    who: String,
    what: String,
    size: u64,
    metric: String,
}

impl Samples {
    /// Adds what one round measured.
    pub fn add(&mut self, who: &str, what: &str, size: u64, metric: &str, value: f64) {
        let key = MeasuredKey {
            who: who.to_owned(),
            what: what.to_owned(),
            size,
            metric: metric.to_owned(),
        };
        match self.samples.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => self.samples.push((key, vec![value])),
        }
    }

    /// Median, best and worst of each.
    pub fn into_rows(self) -> Vec<Measured> {
        self.samples
            .into_iter()
            .map(|(key, values)| key.summary(values))
            .collect()
    }
}

impl MeasuredKey {
    fn summary(self, mut values: Vec<f64>) -> Measured {
        let median = median(&mut values);
        Measured {
            who: self.who,
            what: self.what,
            size: self.size,
            metric: self.metric,
            median,
            min: values.first().copied().unwrap_or(f64::NAN),
            max: values.last().copied().unwrap_or(f64::NAN),
            rounds: values.len(),
        }
    }
}

/// The middle one of some values, or between the two in the middle; not a
/// number of none. They are sorted then.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied().unwrap_or(f64::NAN);
    let lower = match middle.checked_sub(1) {
        Some(below) if values.len().is_multiple_of(2) => values.get(below).copied(),
        _ => None,
    };
    (lower.unwrap_or(upper) + upper) / 2.0
}

/// Processor, cores, memory and kernel in a line.
pub fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(|| "?".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {cores} cores, {} memory, Linux {}",
        field("/proc/cpuinfo", "model name"),
        field("/proc/meminfo", "MemTotal"),
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_gathered_into_medians() {
        let mut samples = Samples::default();
        for value in [3.0, 1.0, 2.0] {
            samples.add("us", "walk", 10, "wall_ms", value);
        }
        for value in [4.0, 1.0] {
            samples.add("peer", "walk", 10, "wall_ms", value);
        }
        let rows = samples.into_rows();
        let of = |row: &Measured| (row.median, row.min, row.max, row.rounds);
        assert_eq!(of(&rows[0]), (2.0, 1.0, 3.0, 3));
        assert_eq!(of(&rows[1]), (2.5, 1.0, 4.0, 2));
    }
}
