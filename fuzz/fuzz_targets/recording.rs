//! A recording of a mirror's input, any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::recording(bytes));
