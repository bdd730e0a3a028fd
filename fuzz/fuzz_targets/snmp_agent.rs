//! An SNMP datagram, any bytes, through a whole agent.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fingerpost_fuzz::snmp_agent(bytes));
