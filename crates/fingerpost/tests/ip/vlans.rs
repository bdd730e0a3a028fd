//! VLANs of bridges. Here, where the kernel's bridges may filter none, both
//! refuse alike; in user-mode Linux (`cargo xtask lab vlans`) they are there.

use crate::twins::table;

#[test]
fn vlans_of_bridges_are_as_bridge_has_them() {
    table("vlans", include_str!("commands/vlans.txt"), false, 100);
}
