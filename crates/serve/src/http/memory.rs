//! The memory that the daemon has in use, for the status and the metrics.

use std::time::Instant;

use crate::status;

/// How long the memory in use is believed: asking the system costs more
/// than the rest of the answer.
const MEMORY_MILLIS: u128 = 500;

/// What the system said of our memory, and when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory(Option<(Instant, u64)>);

impl Memory {
    /// Octets in use, half a second old at most.
    pub fn octets(&mut self) -> u64 {
        match self.0 {
            Some((asked, octets)) if asked.elapsed().as_millis() < MEMORY_MILLIS => octets,
            _ => {
                let octets = status::resident_bytes();
                self.0 = Some((Instant::now(), octets));
                octets
            }
        }
    }
}
