//! The payload of a route's message, any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::route(bytes));
