//! What a router knows, in tables that stay fast at carrier scale.
//!
//! - [`row`]: the rows, plain values.
//! - [`Tables`]: one moment of all tables, with their indexes. Cheap to
//!   share; immutable once published.
//! - [`Writer`]: the one that changes them, in batches
//!   ([`Writer::commit`] publishes a [`Generation`]).
//! - [`Feeders`]: where others join a writer, each to feed rows of its own
//!   beside ([`Feeder`]); a snapshot holds those of all owners.
//! - [`Reader`]: takes snapshots and watches for events; never waits for
//!   the writer.
//! - [`Source`]: what keeps tables: reader, status, [`Samples`], time.
//! - [`text`]: names that are not UTF-8.
//!
//! No socket, thread or clock in here; time is an argument.

mod addresses;
mod cost;
mod event;
mod family;
mod fdb;
mod host;
mod links;
mod lookup;
mod monitored;
mod neighbours;
mod nexthops;
mod ordered;
mod pairs;
mod prefix;
mod route_bodies;
mod routes;
pub mod row;
mod rules;
mod sample;
mod samples;
mod source;
mod source_address;
mod source_state;
mod status;
pub mod text;
mod writer;

pub use addresses::{AddressPlace, Addresses};
pub use cost::{copied, touched};
pub use event::{
    Bell, Changed, Event, EventBatch, Events, Flaps, Generation, Operation, RouteChanges,
    RouteFlaps, RouteHistory, Row,
};
pub use family::{AF_INET, AF_INET6};
pub use fdb::Fdb;
pub use host::Host;
pub use links::Links;
pub use lookup::{Decision, NoRoute, Open, Packet};
pub use monitored::{MonitoredPeer, MonitoredRouter, PeerEvent};
pub use neighbours::Neighbours;
pub use nexthops::Nexthops;
pub use ordered::{Iter, Ordered};
pub use pairs::{Pair, pairs};
pub use routes::{
    BodyId, BodyKey, Placement, RouteCount, RouteLoad, RoutePlace, RouteRun, Routes, longest_first,
};
pub use row::address::{Address, AddressKey};
pub use row::attributes::RawAttributes;
pub use row::bridge_vlan::BridgeVlan;
pub use row::counters::{IpCounters, IpPlace, IpSettings, LinkCounters, NeighbourAges};
pub use row::encap::{Encap, Tunnel};
pub use row::fdb::{FdbEntry, FdbKey, FdbRemote, Station};
pub use row::ip_interface::{IpInterface, NeighbourTimes};
pub use row::link::{KindData, Link, PortData};
pub use row::link_layer_address::LinkLayerAddress;
pub use row::machine::{FileSystem, Machine, Memory, Processor, ProcessorTimes, Product};
pub use row::neighbour::{Neighbour, NeighbourKey};
pub use row::nexthop::{GroupMember, Nexthop, Resilient};
pub use row::path_attributes::{AsPath, PathAttributes, Segment};
pub use row::protocol_counters::{
    IcmpCounters, IcmpType, ProtocolCounters, TcpCounters, UdpCounters,
};
pub use row::route::{
    NextHop, NextHops, OtherRoute, OtherRouteKey, Route, RouteBody, RouteRef, SharedRoute,
};
pub use row::route_metrics::{Metric, RouteMetrics};
pub use row::rule::{RareMatch, Rule};
pub use row::socket::{Endpoint, Reach, Socket, Sockets};
pub use rules::{RuleKey, Rules};
pub use sample::{Counted, NeighbourSample, Sample};
pub use samples::{CountedBeside, Fresh, LinkRanges, Sampled, Samples};
pub use source::{OfOwner, Source};
pub use source_state::SourceState;
pub use status::{FeedStatus, Phase, Status, When};

pub use writer::{
    Change, Feeder, Feeders, JoinError, KERNEL, Limits, MAX_FEEDERS, Owner, Reader, Refused,
    Routing, TableFull, Tables, Unconfirmed, Writer,
};
