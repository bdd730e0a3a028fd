//! The keys of routes: packed, since there are millions of them.

use std::cmp::Ordering;
use std::fmt;

use crate::prefix::RouteAddress;
use crate::route_bodies::BodyId;
use crate::row::route::Route;

/// Table, prefix, TOS and metric: routes that have these in common are one
/// run. 14 bytes (IPv4; 26 for IPv6). What decides first lies last, so that
/// parts which are compared together are one word in memory.
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub(super) struct RunKey<A> {
    metric: u32,
    len_and_tos: u16,
    address: A,
    table: u32,
}

/// A run, and a place in it: the order of routes, by table, then as a MIB
/// walks them. 18 bytes (IPv4; 30 for IPv6).
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub(super) struct Key<A> {
    ordinal: u32,
    run: RunKey<A>,
}

/// A body and a run: a run has a route with a body once. 18 bytes (IPv4;
/// 30 for IPv6).
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub(super) struct BodyKey<A> {
    body: BodyId,
    run: RunKey<A>,
}

impl<A: RouteAddress> RunKey<A> {
    pub(super) fn new(table: u32, address: A, len: u8, tos: u8, metric: u32) -> Self {
        Self {
            table,
            address,
            len_and_tos: u16::from(len) << 8 | u16::from(tos),
            metric,
        }
    }

    /// The run of a route whose network address this is.
    pub(super) fn of<B>(address: A, route: &Route<B>) -> Self {
        let len = route.prefix.prefix_len();
        Self::new(route.table, address, len, route.tos, route.metric)
    }

    pub(super) fn table(&self) -> u32 {
        self.table
    }

    pub(super) fn address(&self) -> A {
        self.address
    }

    pub(super) fn len(&self) -> u8 {
        (self.len_and_tos >> 8) as u8
    }

    pub(super) fn tos(&self) -> u8 {
        self.len_and_tos as u8
    }

    pub(super) fn metric(&self) -> u32 {
        self.metric
    }

    /// A place in this run.
    pub(super) fn at(self, ordinal: u32) -> Key<A> {
        Key { run: self, ordinal }
    }

    pub(super) fn with_body(self, body: BodyId) -> BodyKey<A> {
        BodyKey { body, run: self }
    }

    /// Length, type of service and metric as one number.
    fn rest(&self) -> u64 {
        u64::from(self.len_and_tos) << 32 | u64::from(self.metric)
    }

    fn in_table(&self) -> A::InTable {
        self.address.in_table(self.table)
    }
}

impl<A: RouteAddress> Key<A> {
    /// Before all routes of a prefix.
    pub(super) fn first_of(table: u32, address: A, len: u8) -> Self {
        RunKey::new(table, address.masked(len), len, 0, 0).at(0)
    }

    /// Behind all routes of a prefix.
    pub(super) fn last_of(table: u32, address: A, len: u8) -> Self {
        RunKey::new(table, address.masked(len), len, u8::MAX, u32::MAX).at(u32::MAX)
    }

    pub(super) fn run(&self) -> RunKey<A> {
        self.run
    }

    pub(super) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Whether it is a route of the same table and prefix.
    pub(super) fn is_beside(&self, run: RunKey<A>) -> bool {
        self.is_of(run.table(), run.address(), run.len())
    }

    pub(super) fn is_of(&self, table: u32, address: A, len: u8) -> bool {
        let run = self.run();
        (run.table(), run.address(), run.len()) == (table, address, len)
    }
}

impl<A: RouteAddress> BodyKey<A> {
    pub(super) fn body(&self) -> BodyId {
        self.body
    }

    pub(super) fn run(&self) -> RunKey<A> {
        self.run
    }
}

/// An order by two parts, asked without a branch: a search of a node asks
/// it of keys that come either way.
macro_rules! ordered_by {
    ($key:ident, |$self:ident| $parts:expr) => {
        impl<A: RouteAddress> Ord for $key<A> {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                let parts = |$self: &Self| $parts;
                parts(self).cmp(&parts(other))
            }
        }

        impl<A: RouteAddress> PartialOrd for $key<A> {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }

            #[inline(always)]
            fn lt(&self, other: &Self) -> bool {
                let parts = |$self: &Self| $parts;
                let (left, right) = (parts(self), parts(other));
                (left.0 < right.0) | ((left.0 == right.0) & (left.1 < right.1))
            }

            #[inline(always)]
            fn le(&self, other: &Self) -> bool {
                !(other < self)
            }
        }

        impl<A: RouteAddress> PartialEq for $key<A> {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                let parts = |$self: &Self| $parts;
                parts(self) == parts(other)
            }
        }

        impl<A: RouteAddress> Eq for $key<A> {}

        impl<A: RouteAddress> fmt::Debug for $key<A> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $self = self;
                write!(f, "{:x?}", $parts)
            }
        }
    };
}

ordered_by!(RunKey, |key| (key.in_table(), key.rest()));
ordered_by!(Key, |key| {
    let run = key.run();
    let rest = u128::from(run.rest()) << 32 | u128::from(key.ordinal());
    (run.in_table(), rest)
});
ordered_by!(BodyKey, |key| {
    let run = key.run();
    (key.body(), (run.in_table(), run.rest()))
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::Halves;

    #[test]
    fn keys_are_packed_and_order_by_their_parts() {
        assert_eq!(size_of::<Key<u32>>(), 18);
        assert_eq!(size_of::<BodyKey<u32>>(), 18);
        assert_eq!(size_of::<Key<Halves>>(), 30);
        let mut ordered = Vec::new();
        for (table, address) in [(1, 5 << 24), (1, 9 << 24), (2, 0)] {
            for (len, tos) in [(8, 0), (8, 255), (9, 0)] {
                for (metric, ordinal) in [(0, 0), (0, u32::MAX), (1, 0), (u32::MAX, 1)] {
                    ordered.push(RunKey::new(table, address, len, tos, metric).at(ordinal));
                }
            }
        }
        assert!(ordered.is_sorted_by(|a, b| a < b));
        let first = ordered[0];
        let parts = (first.run().len(), first.run().tos(), first.run().metric());
        assert_eq!(parts, (8, 0, 0));
        assert!(Key::first_of(1, 5 << 24, 8) <= first && first < Key::last_of(1, 5 << 24, 8));
    }
}
