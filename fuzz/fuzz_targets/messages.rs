//! A received buffer, any bytes: the walk ends, and each message is
//! decoded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::messages(bytes));
