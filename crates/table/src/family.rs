//! The address families that rows name, as the kernel numbers them. For all
//! who read rows.

/// `AF_INET`.
pub const AF_INET: u8 = 2;
/// `AF_INET6`.
pub const AF_INET6: u8 = 10;
