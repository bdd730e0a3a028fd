//! A complaint that would be the same over and over: it is made once a
//! minute. For whoever accepts clients.

use std::time::{Duration, Instant};

/// Between two of the same.
const PAUSE: Duration = Duration::from_secs(60);

/// When it was last made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Complaint(Option<Instant>);

impl Complaint {
    /// Whether it is to be made now; it counts as made then.
    pub fn is_due(&mut self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_a_minute() {
        let (mut complaint, now) = (Complaint::default(), Instant::now());
        let times = [0, 1, 59, 60, 61, 120];
        let made = times.map(|secs| complaint.is_due_at(now + Duration::from_secs(secs)));
        assert_eq!(made, [true, false, false, true, false, true]);
    }
}
