//! `IFLA_TUN_…`.

use table::row::link::tun::Tun;

use super::attributes;

attributes!(Tun {
    1 owner: Own,
    2 group: Own,
    3 kind: Own,
    4 pi: Own,
    5 vnet_hdr: Own,
    6 persist: Own,
    7 multi_queue: Own,
    8 num_queues: Own,
    9 num_disabled_queues: Own,
});
