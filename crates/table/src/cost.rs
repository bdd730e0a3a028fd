//! Counts the nodes and rows of tables that a thread looks at, and the bytes
//! of nodes that it copies because a snapshot shares them, so that a test can
//! hold an operation to a cost that no clock blurs. In builds with debug
//! assertions; others count nothing.

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static TOUCHED: Cell<u64> = const { Cell::new(0) };
    static COPIED: Cell<u64> = const { Cell::new(0) };
}

/// One node or row more.
#[inline(always)]
pub(crate) fn touch() {
    #[cfg(debug_assertions)]
    TOUCHED.with(|touched| touched.set(touched.get() + 1));
}

/// How many nodes and rows this thread has looked at; `None` in a build
/// that does not count.
pub fn touched() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(TOUCHED.with(Cell::get));
    #[cfg(not(debug_assertions))]
    None
}

/// A node of so many bytes was copied.
#[inline(always)]
pub(crate) fn copy(_bytes: usize) {
    #[cfg(debug_assertions)]
    COPIED.with(|copied| copied.set(copied.get() + _bytes as u64));
}

/// How many bytes of nodes this thread has copied because a snapshot shared
/// them; `None` in a build that does not count.
pub fn copied() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(COPIED.with(Cell::get));
    #[cfg(not(debug_assertions))]
    None
}
