//! Changes of an IPv6 forwarding table against a plain map.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::fib6_changes(bytes));
