//! What one target is still to be told, and when: paced, so that a burst
//! does not overflow the receiver's buffer, and for informs again until it
//! says that it heard. Pure: time is an argument. For `teller`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::notify::Notification;

/// Notifications that wait for a target at most: all links of a large
/// router, down and up. Further ones are dropped.
const MOST: usize = 1 << 16;
/// So many may be sent at once, and then one for each pause: what a
/// receiver with a usual buffer takes in although it sleeps for a while.
const BURST: u32 = 64;
const PAUSE: Duration = Duration::from_millis(1);
/// Informs that wait for their acknowledgement at most.
const MOST_IN_FLIGHT: usize = 32;

/// How a target is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// It is to acknowledge; until it does, or the tries are over, it is
    /// told again.
    pub inform: Option<Retries>,
    /// Whether it is tried with one at a time until it acknowledges: who has
    /// to be found out first.
    pub begins_alone: bool,
}

/// When an inform is sent again, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Without an acknowledgement for so long.
    pub timeout: Duration,
    /// At most.
    pub retries: u8,
}

/// The notifications that one target is to be told.
#[derive(Debug)]
pub struct Outbox {
    manner: Manner,
    waiting: VecDeque<Arc<Notification>>,
    in_flight: VecDeque<InFlight>,
    /// The target did not acknowledge lately: it is tried with one at a
    /// time.
    is_silent: bool,
    /// Before this nothing is sent.
    not_before: Instant,
    last_id: i32,
}

#[derive(Debug)]
struct InFlight {
    id: i32,
    notification: Arc<Notification>,
    again_at: Instant,
    retries_left: u8,
    /// The target could not take it: it counts as not sent.
    is_untold: bool,
}

/// What is to be done next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// This is to be sent, under this number.
    Send(i32, Arc<Notification>),
    /// The same, once more.
    Again(i32, Arc<Notification>),
    /// An inform was never acknowledged.
    GivenUp,
    /// Nothing, until then, or until something comes.
    Rest(Option<Instant>),
}

impl Outbox {
    /// Nothing is to be told.
    pub fn new(manner: Manner, now: Instant) -> Self {
        Self {
            manner,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            is_silent: manner.begins_alone,
            // The first burst may go at once.
            not_before: now.checked_sub(BURST * PAUSE).unwrap_or(now),
            last_id: 0,
        }
    }

    /// Whether all was told.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// What is not told yet, or not acknowledged.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// Puts one in; false: there is no room, and it is dropped.
    pub fn put(&mut self, notification: Arc<Notification>) -> bool {
        let has_room = self.len() < MOST;
        if has_room {
            self.waiting.push_back(notification);
        }
        has_room
    }

    /// The target acknowledged; false: nothing of this number is in flight.
    pub fn acknowledged(&mut self, id: i32) -> bool {
        let at = self.in_flight.iter().position(|one| one.id == id);
        let known = at.and_then(|at| self.in_flight.remove(at)).is_some();
        self.is_silent &= !known;
        known
    }

    /// The target did not take what is in flight, and will now: it is sent at
    /// once, and none of its tries is lost.
    pub fn untold(&mut self, now: Instant) {
        for one in &mut self.in_flight {
            one.again_at = now;
            one.is_untold = true;
        }
    }

    /// What is to be done now. O(informs in flight).
    pub fn step(&mut self, now: Instant) -> Step {
        let next = self.in_flight.iter().map(|one| one.again_at).min();
        if next.is_some_and(|at| at <= now) {
            return self.again(now);
        }
        let most = if self.is_silent { 1 } else { MOST_IN_FLIGHT };
        if self.waiting.is_empty() || self.in_flight.len() >= most {
            return Step::Rest(next);
        }
        if !self.may_send(now) {
            let soonest = next.map_or(self.not_before, |next| next.min(self.not_before));
            return Step::Rest(Some(soonest));
        }
        match self.waiting.pop_front() {
            Some(notification) => self.first(notification, now),
            None => Step::Rest(next),
        }
    }

    /// A burst may go ahead of the pace by its length.
    fn may_send(&self, now: Instant) -> bool {
        self.not_before <= now
    }

    fn note_sent(&mut self, now: Instant) {
        let earliest = now.checked_sub(BURST * PAUSE).unwrap_or(now);
        self.not_before = self.not_before.max(earliest) + PAUSE;
    }

    fn first(&mut self, notification: Arc<Notification>, now: Instant) -> Step {
        self.note_sent(now);
        self.last_id = self.last_id.wrapping_add(1) & i32::MAX;
        let id = self.last_id;
        if let Some(Retries { timeout, retries }) = self.manner.inform {
            self.in_flight.push_back(InFlight {
                id,
                notification: Arc::clone(&notification),
                again_at: now + timeout,
                retries_left: retries,
                is_untold: false,
            });
        }
        Step::Send(id, notification)
    }

    /// What was not acknowledged in time is sent again, or given up.
    fn again(&mut self, now: Instant) -> Step {
        self.is_silent = true;
        let due = self.in_flight.iter().position(|one| one.again_at <= now);
        let Some(mut one) = due.and_then(|at| self.in_flight.remove(at)) else {
            return Step::Rest(None);
        };
        if !std::mem::take(&mut one.is_untold) {
            let Some(retries_left) = one.retries_left.checked_sub(1) else {
                return Step::GivenUp;
            };
            one.retries_left = retries_left;
        }
        one.again_at = now + self.manner.inform.map_or(PAUSE, |inform| inform.timeout);
        let step = Step::Again(one.id, Arc::clone(&one.notification));
        self.in_flight.push_back(one);
        self.note_sent(now);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::super::notify::What;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn notification() -> Arc<Notification> {
        Arc::new(Notification {
            context: "".into(),
            what: What::ColdStart,
            up_time_ticks: 0,
        })
    }

    fn outbox(inform: Option<Retries>, waiting: usize, now: Instant) -> Outbox {
        let begins_alone = false;
        let mut outbox = Outbox::new(
            Manner {
                inform,
                begins_alone,
            },
            now,
        );
        (0..waiting).for_each(|_| assert!(outbox.put(notification())));
        outbox
    }

    fn sent_at_once(outbox: &mut Outbox, now: Instant) -> Vec<i32> {
        std::iter::from_fn(|| match outbox.step(now) {
            Step::Send(id, _) | Step::Again(id, _) => Some(id),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn a_burst_is_paced_and_nothing_of_it_is_lost() {
        let start = Instant::now();
        let mut outbox = outbox(None, 6_000, start);
        let mut now = start;
        let mut sent = 0;
        while !outbox.is_empty() {
            let of_now = sent_at_once(&mut outbox, now).len();
            assert!(of_now as u32 <= BURST + 1, "{of_now}");
            sent += of_now;
            now = match outbox.step(now) {
                Step::Rest(Some(at)) => at.max(now),
                _ => now,
            };
        }
        assert_eq!(sent, 6_000);
        let pace = now - start;
        assert!(pace > 5 * SECOND && pace < 7 * SECOND, "{pace:?}");
        // After a pause a burst goes at once, and no longer one.
        (0..1_000).for_each(|_| assert!(outbox.put(notification())));
        let burst = sent_at_once(&mut outbox, now + 60 * SECOND).len();
        assert_eq!(burst as u32, BURST + 1);
    }

    #[test]
    fn an_inform_is_sent_again_until_it_is_acknowledged_or_given_up() {
        let retries = Retries {
            timeout: SECOND,
            retries: 2,
        };
        let start = Instant::now();
        let mut outbox = outbox(Some(retries), 2, start);
        assert_eq!(sent_at_once(&mut outbox, start), [1, 2]);
        assert_eq!(outbox.step(start), Step::Rest(Some(start + SECOND)));
        assert!(outbox.acknowledged(1) && !outbox.acknowledged(1));
        assert_eq!(sent_at_once(&mut outbox, start + SECOND), [2]);
        assert_eq!(sent_at_once(&mut outbox, start + 2 * SECOND), [2]);
        assert_eq!(outbox.step(start + 3 * SECOND), Step::GivenUp);
        assert!(outbox.is_empty() && !outbox.acknowledged(2));
        assert_eq!(outbox.step(start + 3 * SECOND), Step::Rest(None));
    }

    #[test]
    fn a_silent_target_is_tried_with_one_at_a_time_and_comes_back() {
        let retries = Retries {
            timeout: SECOND,
            retries: 0,
        };
        let start = Instant::now();
        let mut outbox = outbox(Some(retries), 1_000, start);
        let first = sent_at_once(&mut outbox, start);
        assert_eq!(first.len(), MOST_IN_FLIGHT);
        let later = start + 2 * SECOND;
        for _ in &first {
            assert_eq!(outbox.step(later), Step::GivenUp);
        }
        let tried = sent_at_once(&mut outbox, later);
        assert_eq!(tried.len(), 1);
        assert!(outbox.acknowledged(tried[0]));
        assert_eq!(sent_at_once(&mut outbox, later).len(), MOST_IN_FLIGHT);
    }

    #[test]
    fn a_target_that_has_to_be_found_out_is_told_at_once_then() {
        let retries = Retries {
            timeout: SECOND,
            retries: 1,
        };
        let start = Instant::now();
        let manner = Manner {
            inform: Some(retries),
            begins_alone: true,
        };
        let mut outbox = Outbox::new(manner, start);
        (0..3).for_each(|_| assert!(outbox.put(notification())));
        assert_eq!(sent_at_once(&mut outbox, start), [1]);
        // Who it is, then its time: neither costs a try.
        for _ in 0..2 {
            outbox.untold(start);
            assert_eq!(sent_at_once(&mut outbox, start), [1]);
        }
        assert_eq!(sent_at_once(&mut outbox, start + SECOND), [1]);
        assert!(outbox.acknowledged(1));
        assert_eq!(sent_at_once(&mut outbox, start + SECOND), [2, 3]);
    }

    #[test]
    fn the_room_of_a_target_is_bounded_and_comes_back() {
        let now = Instant::now();
        let mut outbox = outbox(None, MOST, now);
        assert!(!outbox.put(notification()));
        assert!(matches!(outbox.step(now), Step::Send(..)));
        assert!(outbox.put(notification()));
        assert!(!outbox.put(notification()));
    }
}
