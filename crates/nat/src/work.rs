//! The work of one call, counted in debug builds and tested against the
//! bounds that the interface promises. In release builds it is nothing.
//!
//! For the engine; its callers may ask.

/// What one call did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Lines of an index looked at.
    pub lines: u32,
    /// Names moved by growth.
    pub moved: u32,
    /// Flows looked at by the sweep or for eviction.
    pub slots: u32,
    /// Alias ports tried.
    pub ports: u32,
}

impl Work {
    /// A line of an index was looked at.
    #[inline(always)]
    pub(crate) fn line(&mut self) {
        self.count(|work| &mut work.lines, 1);
    }

    /// A name was moved.
    #[inline(always)]
    pub(crate) fn moved(&mut self) {
        self.count(|work| &mut work.moved, 1);
    }

    /// A flow was looked at.
    #[inline(always)]
    pub(crate) fn slot(&mut self) {
        self.count(|work| &mut work.slots, 1);
    }

    /// A port was tried.
    #[inline(always)]
    pub(crate) fn port(&mut self) {
        self.count(|work| &mut work.ports, 1);
    }

    #[inline(always)]
    fn count(&mut self, which: impl Fn(&mut Self) -> &mut u32, by: u32) {
        if cfg!(debug_assertions) {
            let counter = which(self);
            *counter = counter.saturating_add(by);
        }
    }
}
