//! PCP (RFC 6887, RFC 7753) and NAT-PMP (RFC 6886): requests through the
//! engine as packets, and what the mappings then do.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by it"
)]

mod bounds;
mod mappings;
mod natpmp;
mod protocol;
mod trial;
