//! Where a new route goes, as whoever puts it says. For changes and for
//! routes.

/// Where a new route goes among those of the same table, prefix, TOS and
/// metric; the kernel uses the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Before them (`ip route prepend`).
    First,
    /// Behind them (`ip route append`, and rows of a dump in their order).
    Last,
    /// In place of the first of them (`ip route replace`, IPv4).
    InsteadOfFirst,
    /// Where one stood that has just been taken out
    /// ([`Writer::ordinal_of`](crate::Writer::ordinal_of)); behind them if
    /// another is there.
    At(u32),
}
