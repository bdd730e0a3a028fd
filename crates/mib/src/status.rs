//! A link's status as IF-MIB numbers it, and the names of the objects that
//! tell it. For the interfaces' tables, and for what is notified of them.

use table::Link;
use table::row::link::{flag, oper};

/// The name of an interface's `ifIndex`, `ifAdminStatus` and
/// `ifOperStatus`, as in notifications.
pub(crate) const IF_INDEX: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 1];
pub(crate) const IF_ADMIN_STATUS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7];
pub(crate) const IF_OPER_STATUS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 8];
/// Its `ifDescr` and `ifAlias`.
pub(crate) const IF_DESCR: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
pub(crate) const IF_ALIAS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18];

/// `ifAlias`: what of it the module has room for, 64 octets, no character
/// cut in two.
pub(crate) fn alias(of_link: Option<&str>) -> &str {
    let alias = of_link.unwrap_or_default();
    let end = alias.floor_char_boundary(64);
    alias.get(..end).unwrap_or_default()
}

/// `ifAdminStatus`: up(1), down(2).
pub(crate) fn admin_status(link: &Link) -> i32 {
    if link.is_up() { 1 } else { 2 }
}

/// `ifOperStatus`. A driver that does not report its state (`IF_OPER_UNKNOWN`,
/// as the loopback) is up while it runs, as for the kernel itself.
pub(crate) fn oper_status(link: &Link) -> i32 {
    match link.oper_state {
        oper::UP => 1,
        oper::UNKNOWN if link.flags & flag::RUNNING != 0 => 1,
        oper::TESTING => 3,
        oper::DORMANT => 5,
        oper::NOT_PRESENT => 6,
        oper::LOWER_LAYER_DOWN => 7,
        _ => 2,
    }
}
