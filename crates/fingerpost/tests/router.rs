//! `fingerpost router`: forwarding at XDP on veth pairs, beside a kernel that
//! stays in charge; what is in the way with the real thing installed; and
//! beside a twin that the kernel alone forwards.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

#[path = "router/changes.rs"]
mod changes;
mod common;
#[path = "router/frames.rs"]
mod frames;
#[path = "router/host.rs"]
mod host;
#[path = "router/kinds.rs"]
mod kinds;
#[path = "router/nat.rs"]
mod nat;
#[path = "router/obstacles.rs"]
mod obstacles;
#[path = "router/ospf.rs"]
mod ospf;
#[path = "router/place.rs"]
mod place;
#[path = "router/routers.rs"]
mod routers;
#[path = "router/told.rs"]
mod told;
#[path = "router/twin.rs"]
mod twin;
