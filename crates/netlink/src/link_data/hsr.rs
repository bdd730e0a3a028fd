//! `IFLA_HSR_…`.

use table::row::link::hsr::Hsr;

use super::attributes;

attributes!(Hsr {
    1 slave1: Own,
    2 slave2: Own,
    3 multicast_spec: Own,
    4 supervision_addr: Own,
    5 seq_nr: Own,
    6 version: Own,
    7 protocol: Own,
    8 interlink: Own,
});
