//! The rows: plain values, one file for each kind.
//!
//! Anybody may build and read them; only a [`Writer`](crate::Writer) puts
//! them into tables. Numbers keep the kernel's values (their names are in
//! the `flag`, `state`, `kind`, … modules of each row's file), so that
//! nothing the kernel says is lost.

pub mod address;
pub mod attributes;
pub mod bridge_vlan;
pub mod counters;
pub mod encap;
pub mod fdb;
pub(crate) mod heap_bytes;
pub mod ip_interface;
pub mod link;
pub mod link_layer_address;
pub mod machine;
pub mod multicast_group;
pub mod neighbour;
pub mod nexthop;
pub mod nexthop_bucket;
pub mod path_attributes;
pub mod protocol_counters;
pub mod route;
pub mod route_metrics;
pub mod rule;
pub mod segments;
pub mod socket;
