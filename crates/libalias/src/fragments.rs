//! Fragments that came before their first one, kept for the caller as
//! pointers to memory of `malloc`. Called by `packets`; the keeping itself
//! is `nat`'s, which knows numbers only.

use std::ffi::c_void;
use std::ptr;

use nat::fragment::Pointers;
use packet::Ipv4;

/// Most fragments that an instance keeps.
const MAX_SAVED: usize = 4_096;
/// How long one is kept.
const KEPT_MILLIS: u64 = 30_000;
/// How many expired ones a call frees at most, beside its own work.
const FREED_A_CALL: usize = 8;

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// The fragments of an instance: ours from the call that saves them to the
/// one that takes them.
pub struct Fragments {
    pointers: Pointers,
    /// How many are kept.
    count: usize,
}

impl Default for Fragments {
    fn default() -> Self {
        Self {
            pointers: Pointers::new(MAX_SAVED, KEPT_MILLIS),
            count: 0,
        }
    }
}

impl Fragments {
    /// Takes a fragment of malloc's memory; false, with nothing taken, when
    /// there are too many.
    pub fn save<B: AsRef<[u8]>>(
        &mut self,
        header: &Ipv4<B>,
        fragment: *mut c_void,
        now_millis: u64,
    ) -> bool {
        self.expire(now_millis);
        let number = fragment.expose_provenance();
        let saved =
            self.pointers
                .save(header.source(), header.identification(), number, now_millis);
        self.count = self.count.saturating_add(usize::from(saved.is_ok()));
        saved.is_ok()
    }

    /// Gives a fragment of a packet back; it is the caller's again.
    pub fn take<B: AsRef<[u8]>>(
        &mut self,
        header: &Ipv4<B>,
        now_millis: u64,
    ) -> Option<*mut c_void> {
        self.expire(now_millis);
        let number = self
            .pointers
            .get(header.source(), header.identification(), now_millis)?;
        self.count = self.count.saturating_sub(1);
        Some(ptr::with_exposed_provenance_mut(number))
    }

    /// Frees some that have expired. O(1).
    pub fn expire(&mut self, now_millis: u64) {
        for _ in 0..FREED_A_CALL {
            if !self.free_expired(now_millis) {
                return;
            }
        }
    }

    /// Whether there is nothing to expire.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn free_expired(&mut self, now_millis: u64) -> bool {
        let Some(number) = self.pointers.expired(now_millis) else {
            return false;
        };
        self.count = self.count.saturating_sub(1);
        // SAFETY: by alias.h the memory is malloc's, and it has been ours
        // since `save`; `expired` gives each number once.
        unsafe { free(ptr::with_exposed_provenance_mut(number)) }
        true
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        while self.free_expired(u64::MAX) {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use packet::build::Ip;

    use super::*;

    unsafe extern "C" {
        fn malloc(len: usize) -> *mut c_void;
    }

    fn block() -> *mut c_void {
        // SAFETY: any length may be asked for.
        unsafe { malloc(20) }
    }

    #[test]
    fn what_is_not_fetched_is_freed_and_what_is_too_much_is_refused() {
        let packet = Ip::new(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST).udp(1, 2, b"");
        let header = Ipv4::new(&packet).unwrap();
        let mut fragments = Fragments::default();
        for _ in 0..MAX_SAVED {
            assert!(fragments.save(&header, block(), 1_000));
        }
        let refused = block();
        assert!(!fragments.save(&header, refused, 1_000 + KEPT_MILLIS - 1));
        assert!(fragments.save(&header, refused, 1_000 + KEPT_MILLIS));
        while fragments.count > 1 {
            fragments.expire(1_000 + KEPT_MILLIS);
        }
        assert_eq!(fragments.take(&header, 1_000 + KEPT_MILLIS), Some(refused));
        assert!(fragments.is_empty());
        assert!(fragments.save(&header, refused, 0), "freed with the rest");
    }
}
