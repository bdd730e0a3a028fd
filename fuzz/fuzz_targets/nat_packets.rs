//! Packets through a NAT engine with redirects, a proxy and fragments, any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::nat_packets(bytes));
