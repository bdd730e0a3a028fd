//! Packets that wait for their neighbour, and what the program is asked to
//! do about it.

use std::collections::{HashMap, VecDeque};

use crate::neighbour::Key;

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingLimits {
    /// Packets for one neighbour.
    pub packets_each: usize,
    /// Neighbours at a time.
    pub neighbours: usize,
    /// Bytes of all packets.
    pub bytes: usize,
    /// How long a packet waits, milliseconds.
    pub patience_millis: u64,
}

impl Default for WaitingLimits {
    /// As Linux has it by default: 101 packets each, three requests of a
    /// second.
    fn default() -> Self {
        Self {
            packets_each: 101,
            neighbours: 1_024,
            bytes: 4 << 20,
            patience_millis: 3_000,
        }
    }
}

/// A packet that waits, from its IP header on, ready but for the link's
/// header.
#[derive(Debug)]
pub struct Held {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The port it came in by.
    pub port_in: u16,
}

/// All packets for one neighbour.
#[derive(Debug)]
struct Queue {
    packets: VecDeque<Held>,
    since_millis: u64,
}

/// The packets of a worker that wait.
#[derive(Debug)]
pub struct Waiting {
    limits: WaitingLimits,
    queues: HashMap<Key, Queue, foldhash::fast::RandomState>,
    bytes: usize,
    next_look_millis: u64,
}

/// Between two looks for packets that have waited too long.
const LOOK_MILLIS: u64 = 100;

impl Waiting {
    pub(super) fn new(limits: WaitingLimits) -> Self {
        Self {
            limits,
            queues: HashMap::default(),
            bytes: 0,
            next_look_millis: 0,
        }
    }

    /// Neighbours that packets wait for.
    pub fn neighbours(&self) -> usize {
        self.queues.len()
    }

    /// Bytes of packets that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a copy of a packet. False where there is no room for it.
    pub(super) fn hold(&mut self, key: Key, packet: &[u8], port_in: u16, now_millis: u64) -> bool {
        let is_known = self.queues.contains_key(&key);
        if self.bytes + packet.len() > self.limits.bytes
            || (!is_known && self.queues.len() >= self.limits.neighbours)
        {
            return false;
        }
        let queue = self.queues.entry(key).or_insert_with(|| Queue {
            packets: VecDeque::new(),
            since_millis: now_millis,
        });
        if queue.packets.len() >= self.limits.packets_each {
            return false;
        }
        self.bytes += packet.len();
        queue.packets.push_back(Held {
            bytes: packet.to_vec(),
            port_in,
        });
        true
    }

    /// The neighbours that packets wait for. O(their number).
    pub(super) fn keys(&self) -> Vec<Key> {
        self.queues.keys().copied().collect()
    }

    /// The packets that waited for a neighbour, in their order.
    pub(super) fn release(&mut self, key: Key) -> VecDeque<Held> {
        let queue = self.queues.remove(&key);
        let packets = queue.map(|queue| queue.packets).unwrap_or_default();
        let bytes: usize = packets.iter().map(|held| held.bytes.len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        packets
    }

    /// The neighbours whose packets have waited long enough. Looks every
    /// [`LOOK_MILLIS`] at most, and gives `None` in between: O(neighbours).
    pub(super) fn overdue(&mut self, now_millis: u64) -> Option<Vec<Key>> {
        if self.queues.is_empty() || now_millis < self.next_look_millis {
            return None;
        }
        self.next_look_millis = now_millis + LOOK_MILLIS;
        let patience = self.limits.patience_millis;
        let queues = self.queues.iter();
        let late = queues.filter(|(_, queue)| now_millis >= queue.since_millis + patience);
        Some(late.map(|(key, _)| *key).collect())
    }
}

/// What the program is asked to do: have the kernel resolve a neighbour, or
/// hear that it is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Index of the neighbour's link.
    pub link: u32,
    /// Which neighbour.
    pub key: Key,
}

/// Requests until the program carries them. The same one goes out once a
/// second at most.
#[derive(Debug)]
pub struct Requests {
    ready: VecDeque<Request>,
    /// By a hash of the neighbour: which one, and when it was asked last.
    asked: Box<[(Key, u64)]>,
    lost: u64,
}

/// Requests that wait for the program at most.
const MAX_READY: usize = 1_024;
/// Neighbours whose last request is remembered at most.
const REMEMBERED: usize = 1_024;
/// Between two requests for a neighbour.
const PAUSE_MILLIS: u64 = 1_000;

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::with_capacity(MAX_READY),
            asked: vec![(Key::default(), 0); REMEMBERED].into(),
            lost: 0,
        }
    }

    /// Asks, unless it was asked a moment ago.
    pub(super) fn ask(&mut self, request: Request, now_millis: u64) {
        let key = request.key;
        let folded = (key.address >> 64) as u64 ^ key.address as u64 ^ u64::from(key.port) << 48;
        let mixed = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let asked = &mut self.asked[mixed as usize % REMEMBERED];
        if asked.0 == key && asked.1 != 0 && now_millis < asked.1 + PAUSE_MILLIS {
            return;
        }
        if self.ready.len() >= MAX_READY {
            self.lost += 1;
            return;
        }
        *asked = (key, now_millis.max(1));
        self.ready.push_back(request);
    }

    /// The oldest request.
    pub fn take(&mut self) -> Option<Request> {
        self.ready.pop_front()
    }

    /// Requests for which there was no room; they are made again by later
    /// packets.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> WaitingLimits {
        WaitingLimits {
            packets_each: 2,
            neighbours: 2,
            bytes: 100,
            patience_millis: 1_000,
        }
    }

    #[test]
    fn each_limit_refuses_and_what_waited_stays() {
        let mut waiting = Waiting::new(limits());
        let key = |host| Key::v4(0, host);
        assert!(waiting.hold(key(1), &[1; 10], 7, 0));
        assert!(waiting.hold(key(1), &[2; 10], 7, 5));
        assert!(!waiting.hold(key(1), &[3; 10], 7, 5));
        assert!(!waiting.hold(key(2), &[4; 81], 7, 5));
        assert!(waiting.hold(key(2), &[4; 80], 7, 5));
        assert_eq!((waiting.neighbours(), waiting.bytes()), (2, 100));
        assert!(!waiting.hold(key(3), &[], 7, 5));
        let packets = waiting.release(key(1));
        let first: Vec<u8> = packets.iter().map(|held| held.bytes[0]).collect();
        assert_eq!((first, waiting.bytes()), (vec![1, 2], 80));
        assert!(waiting.release(key(1)).is_empty());
        assert!(waiting.hold(key(3), &[], 7, 5));
    }

    #[test]
    fn packets_wait_no_longer_than_patience() {
        let mut waiting = Waiting::new(limits());
        assert!(waiting.hold(Key::v4(0, 1), &[1], 0, 10_000));
        assert_eq!(waiting.overdue(10_950), Some(Vec::new()));
        assert_eq!(waiting.overdue(10_999), None);
        assert_eq!(waiting.overdue(11_100), Some(vec![Key::v4(0, 1)]));
    }

    #[test]
    fn a_request_goes_out_once_a_second() {
        let mut requests = Requests::new();
        let request = Request {
            link: 3,
            key: Key::v4(0, 9),
        };
        for now in [0, 10, 900, 999] {
            requests.ask(request, now);
        }
        assert_eq!(requests.take(), Some(request));
        assert_eq!(requests.take(), None);
        requests.ask(request, 1_002);
        assert_eq!(requests.take(), Some(request));
        for host in 0..5_000 {
            let key = Key::v4(1, host);
            requests.ask(Request { link: 3, key }, 5_000);
        }
        let ready = std::iter::from_fn(|| requests.take()).count();
        assert_eq!((ready, requests.lost()), (1_024, 5_000 - 1_024));
    }
}
