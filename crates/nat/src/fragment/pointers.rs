//! What libalias's callers hand over to be kept with a datagram:
//! `LibAliasSaveFragment` and `LibAliasGetFragment`. Numbers here, pointers
//! there. Callers: `libalias`.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use hashbrown::HashMap;

/// By what libalias knows a datagram: source and identification.
type DatagramKey = (Ipv4Addr, u16);

#[derive(Debug)]
struct SavedPointer {
    name: DatagramKey,
    until_millis: u64,
    /// `None`: taken.
    number: Option<usize>,
}

/// Numbers kept for datagrams, at most so many, for so long.
#[derive(Debug)]
pub struct Pointers {
    /// Which places are a datagram's, counted from the first ever.
    kept: HashMap<DatagramKey, Vec<u64>>,
    /// In the order they came, from the oldest that was not taken.
    places: VecDeque<SavedPointer>,
    /// How many places came before those.
    gone: u64,
    limit: usize,
    timeout_millis: u64,
}

impl Pointers {
    /// None, and at most `limit`, each for `timeout_millis`.
    pub fn new(limit: usize, timeout_millis: u64) -> Self {
        Self {
            kept: HashMap::new(),
            places: VecDeque::new(),
            gone: 0,
            limit,
            timeout_millis,
        }
    }

    /// Keeps a number for a datagram. The limit counts all that came since
    /// the oldest that is still kept. What is never asked for comes out of
    /// [`Self::expired`]. O(1).
    pub fn save(
        &mut self,
        source: Ipv4Addr,
        identification: u16,
        number: usize,
        now_millis: u64,
    ) -> Result<(), NoRoom> {
        if self.places.len() >= self.limit {
            return Err(NoRoom);
        }
        let name = (source, identification);
        let place = self.gone + self.places.len() as u64;
        self.kept.entry(name).or_default().push(place);
        self.places.push_back(SavedPointer {
            name,
            until_millis: now_millis.saturating_add(self.timeout_millis),
            number: Some(number),
        });
        Ok(())
    }

    /// Takes a number that was kept for a datagram, the latest first. O(1),
    /// amortised.
    pub fn get(&mut self, source: Ipv4Addr, identification: u16, now_millis: u64) -> Option<usize> {
        let name = (source, identification);
        let latest = *self.kept.get(&name)?.last()?;
        let place = self
            .places
            .get_mut(latest.checked_sub(self.gone)? as usize)?;
        if place.until_millis <= now_millis {
            return None;
        }
        let number = place.number.take();
        self.unname(name, latest);
        while self
            .places
            .front()
            .is_some_and(|place| place.number.is_none())
        {
            self.pop();
        }
        number
    }

    /// The next number whose time is over: its owner may free it. O(1),
    /// amortised.
    pub fn expired(&mut self, now_millis: u64) -> Option<usize> {
        while let Some(place) = self.places.front() {
            if place.number.is_some() && place.until_millis > now_millis {
                return None;
            }
            let at = self.gone;
            let place = self.pop()?;
            if place.number.is_some() {
                self.unname(place.name, at);
                return place.number;
            }
        }
        None
    }

    fn pop(&mut self) -> Option<SavedPointer> {
        self.gone += 1;
        self.places.pop_front()
    }

    fn unname(&mut self, name: DatagramKey, place: u64) {
        if let Some(kept) = self.kept.get_mut(&name) {
            kept.retain(|known| *known != place);
            if kept.is_empty() {
                self.kept.remove(&name);
            }
        }
    }
}

/// As many numbers are kept as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room to keep another fragment: take some back, or free those that expired")]
pub struct NoRoom;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_taken_expired() {
        let mut pointers = Pointers::new(3, 100);
        let host = Ipv4Addr::new(18, 0, 0, 1);
        pointers.save(host, 7, 1, 0).unwrap();
        pointers.save(host, 7, 2, 0).unwrap();
        pointers.save(host, 8, 3, 50).unwrap();
        assert_eq!(pointers.save(host, 9, 4, 50), Err(NoRoom));
        assert_eq!(pointers.get(host, 7, 60), Some(2));
        assert_eq!(
            pointers.save(host, 9, 4, 60),
            Err(NoRoom),
            "the oldest is there"
        );
        assert_eq!(pointers.expired(99), None);
        assert_eq!(pointers.get(host, 7, 100), None, "over");
        assert_eq!(pointers.expired(100), Some(1));
        assert_eq!(pointers.expired(100), None);
        pointers.save(host, 9, 4, 60).unwrap();
        assert_eq!(pointers.get(host, 8, 120), Some(3));
        assert_eq!(
            [pointers.expired(160), pointers.expired(160)],
            [Some(4), None]
        );
        assert_eq!(pointers.get(host, 5, 0), None);
    }
}
