//! What feeds heard, as a recording has it, any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::feed_recording(bytes));
