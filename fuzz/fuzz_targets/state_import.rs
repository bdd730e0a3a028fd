//! A file of ifupdown, networkd, netplan or nmstate, any text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::state_import(bytes));
