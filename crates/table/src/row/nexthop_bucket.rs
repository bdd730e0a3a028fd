//! A bucket of a resilient group of next hops (`NHA_RES_BUCKET`), as one
//! listing tells it: of who asks for it, and of no table.

/// A bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NexthopBucket {
    /// The group's id.
    pub group: u32,
    /// Its place in the group.
    pub index: u16,
    /// Since it was last used, in hundredths of a second.
    pub idle: u64,
    /// The id of the next hop that it leads to.
    pub nexthop: u32,
}
