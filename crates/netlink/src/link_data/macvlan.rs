//! `IFLA_MACVLAN_…`.

use table::row::link::macvlan::Macvlan;

use super::attributes;

attributes!(Macvlan {
    1 mode: Own,
    2 flags: Own,
    5 macaddr_data: Macs,
    6 macaddr_count: Own,
    7 bc_queue_len: Own,
    8 bc_queue_len_used: Own,
    9 bc_cutoff: Own,
});
