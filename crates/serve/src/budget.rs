//! Memory for what clients have not taken yet: one budget for all who are
//! answered, at the control socket and over HTTP. Whoever would keep more
//! than there is left keeps less, or tells its client so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that may be kept, and those that are.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    kept: AtomicUsize,
}

impl Budget {
    /// So many bytes for all.
    pub fn new(most: usize) -> Arc<Self> {
        let kept = AtomicUsize::new(0);
        Arc::new(Self { most, kept })
    }

    /// All that may be kept.
    pub fn most(&self) -> usize {
        self.most
    }

    /// What those may keep who are not root.
    pub fn of_others(&self) -> usize {
        self.most / 4 * 3
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Counts other `bytes` than `before`, if all of them stay within `most`.
    pub(crate) fn replace(&self, before: usize, bytes: usize, most: usize) -> bool {
        let all = self.kept.fetch_add(bytes, Ordering::Relaxed) + bytes - before;
        let fits = bytes <= before || all <= most;
        let out = if fits { before } else { bytes };
        self.kept.fetch_sub(out, Ordering::Relaxed);
        fits
    }

    /// A piece of an answer that counts until it is sent or dropped; where
    /// there is no room for it, it is given back.
    pub fn keep(self: &Arc<Self>, piece: Vec<u8>) -> Result<Bytes, Vec<u8>> {
        match self.replace(0, piece.capacity(), self.of_others()) {
            true => Ok(Bytes::from_owner(Kept {
                budget: Arc::clone(self),
                counted: piece.capacity(),
                piece,
            })),
            false => Err(piece),
        }
    }
}

/// A piece that counts.
struct Kept {
    budget: Arc<Budget>,
    counted: usize,
    piece: Vec<u8>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.budget.replace(self.counted, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_until_it_is_gone() {
        let budget = Budget::new(400);
        let first = budget.keep(vec![1; 200]).unwrap();
        let part = first.slice(..5);
        assert_eq!(
            budget.keep(vec![2; 101]),
            Err(vec![2; 101]),
            "root's quarter"
        );
        assert!(budget.keep(vec![2; 100]).is_ok());
        drop(first);
        assert_eq!(budget.kept(), 200, "a part of it is on its way");
        drop(part);
        assert_eq!(budget.kept(), 0);
    }
}
