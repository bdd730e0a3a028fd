//! Requests that wait, by source: each source has its turn.
//!
//! A socket has one queue for all who ask. One that asks faster than it is
//! answered would fill it, and what others ask would be lost. So, when more
//! requests come than are answered at once, all are taken out of the
//! socket, which costs little, and answered a source after the other; one
//! that had nothing waiting goes before those that always have.
//! For `listener`, `put_off` and `master`.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use super::socket::Way;

/// Requests of a source that wait at most.
const MOST_OF_SOURCE: usize = 128;
/// Requests that wait at most; beyond that only a source that has none
/// waiting is heard.
const MOST: usize = 4_096;
/// Octets of them.
const MOST_BYTES: usize = 4 << 20;

/// Requests that wait.
#[derive(Debug, Default)]
pub struct Waiting {
    of: HashMap<SocketAddr, VecDeque<Datagram>>,
    /// Whose turn it is: each source with requests is here or there, once.
    turns: VecDeque<SocketAddr>,
    /// Those that had none waiting.
    fresh: VecDeque<SocketAddr>,
    /// The last turn was one of theirs.
    was_fresh: bool,
    count: usize,
    bytes: usize,
}

/// A request.
#[derive(Debug)]
pub struct Datagram {
    /// As it came.
    pub octets: Box<[u8]>,
    /// Whence, and to which of our addresses.
    pub way: Way,
}

impl Waiting {
    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a request in; false: too many wait, and it is dropped. O(1).
    pub fn put(&mut self, octets: &[u8], way: Way) -> bool {
        let source = source(way.from);
        let of_source = self.of.get(&source).map_or(0, VecDeque::len);
        let is_full = self.count >= MOST || self.bytes + octets.len() > MOST_BYTES;
        // Twice the bound in all, whoever comes.
        let is_over = self.count >= 2 * MOST || self.bytes >= 2 * MOST_BYTES;
        if of_source >= MOST_OF_SOURCE || is_full && of_source > 0 || is_over {
            return false;
        }
        if of_source == 0 {
            self.fresh.push_back(source);
        }
        self.count += 1;
        self.bytes += octets.len();
        let octets = octets.into();
        let queue = self.of.entry(source).or_default();
        queue.push_back(Datagram { octets, way });
        true
    }

    /// The next one, of the source whose turn it is: of those that had
    /// none waiting every other, while there are any. O(1).
    pub fn take(&mut self) -> Option<Datagram> {
        self.was_fresh = !self.fresh.is_empty() && (!self.was_fresh || self.turns.is_empty());
        let source = match self.was_fresh {
            true => self.fresh.pop_front(),
            false => self.turns.pop_front(),
        }?;
        let queue = self.of.get_mut(&source)?;
        let next = queue.pop_front();
        match queue.is_empty() {
            true => drop(self.of.remove(&source)),
            false => self.turns.push_back(source),
        }
        let bytes = next.as_ref().map_or(0, |next| next.octets.len());
        self.count -= usize::from(next.is_some());
        self.bytes -= bytes;
        next
    }
}

/// Who shares a turn: a host, a /64 of IPv6; on this host a program.
pub fn source(from: SocketAddr) -> SocketAddr {
    match from.ip().to_canonical() {
        loopback if loopback.is_loopback() => from,
        IpAddr::V6(v6) => (IpAddr::V6((u128::from(v6) >> 64 << 64).into()), 0).into(),
        v4 => (v4, 0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Way {
        Way::of(text.parse().unwrap())
    }

    #[test]
    fn each_source_has_its_turn_whatever_another_asks() {
        let mut waiting = Waiting::default();
        let flood = "192.0.2.1";
        let taken = (0..10_000).filter(|port| {
            let way = from(&format!("{flood}:{}", 1_024 + port % 50_000));
            waiting.put(b"flood", way)
        });
        assert_eq!(taken.count(), MOST_OF_SOURCE);
        assert!(waiting.put(b"first", from("192.0.2.2:1")));
        assert!(waiting.put(b"second", from("192.0.2.2:1")));
        let said: Vec<_> = (0..5).filter_map(|_| waiting.take()).collect();
        let said: Vec<&[u8]> = said.iter().map(|one| &*one.octets).collect();
        let expected: [&[u8]; 5] = [b"flood", b"flood", b"first", b"flood", b"second"];
        assert_eq!(said, expected);
        while waiting.take().is_some() {}
        assert!(waiting.is_empty() && waiting.of.is_empty() && waiting.bytes == 0);
    }

    #[test]
    fn who_has_nothing_waiting_does_not_wait_for_all_who_have() {
        let mut waiting = Waiting::default();
        for host in 1..=50 {
            for _ in 0..10 {
                waiting.put(b"flood", from(&format!("192.0.2.{host}:1")));
            }
        }
        // Every other turn is of one that is new: all have been, then.
        (0..120).for_each(|_| drop(waiting.take()));
        waiting.put(b"other", from("192.0.2.99:1"));
        let next: Vec<_> = (0..2).filter_map(|_| waiting.take()).collect();
        assert!(next.iter().any(|one| &*one.octets == b"other"));
    }

    #[test]
    fn sources_without_number_are_held_within_bounds() {
        let mut waiting = Waiting::default();
        for host in 0..4 * MOST as u32 {
            let from = SocketAddr::from((host.to_be_bytes(), 1));
            waiting.put(&[0; 64], Way::of(from));
        }
        assert!(waiting.count <= 2 * MOST, "{}", waiting.count);
        let large = vec![0; 60_000];
        for host in 0..4_000_u32 {
            waiting.put(&large, Way::of(SocketAddr::from((host.to_be_bytes(), 2))));
        }
        assert!(waiting.bytes <= 2 * MOST_BYTES + large.len());
    }

    #[test]
    fn programs_of_this_host_are_sources_of_their_own() {
        let of = |text: &str| source(text.parse().unwrap());
        assert_ne!(of("127.0.0.1:5"), of("127.0.0.1:6"));
        assert_eq!(of("192.0.2.1:5"), of("192.0.2.1:6"));
        assert_eq!(of("[2001:db8::1]:5"), of("[2001:db8::2]:6"));
    }
}
