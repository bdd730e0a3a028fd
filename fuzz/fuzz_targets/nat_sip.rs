//! Datagrams of SIP through a NAT engine, any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::nat_sip(bytes));
