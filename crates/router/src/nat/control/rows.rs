//! Rows as JSON objects, those that a filter means.

use std::net::IpAddr;

use nat::{BlockView, FlowView, LeaseView, MappingView, PoolView, SubscriberView};
use serde_json::{Value, json};

use super::pieces::Rows;
use translation::request::{Filter, state};

/// A row of a table, before it is written: most are only counted.
pub enum Row<'a> {
    Flow(&'a FlowView),
    Mapping(&'a MappingView),
    Subscriber(&'a SubscriberView),
    Block(&'a BlockView),
    Pool(&'a PoolView),
    Lease(&'a LeaseView),
    Helper(&'a (&'static str, bool)),
}

impl Row<'_> {
    /// As an object.
    pub fn json(&self) -> Value {
        match self {
            Self::Flow(row) => flow(row),
            Self::Mapping(row) => mapping(row),
            Self::Subscriber(row) => subscriber(row),
            Self::Block(row) => block(row),
            Self::Pool(row) => pool(row),
            Self::Lease(row) => lease(row),
            Self::Helper((name, is_on)) => json!({"helper": name, "on": is_on}),
        }
    }
}

/// The rows that are meant, each with its inside address.
pub fn meant<'a>(rows: &'a Rows, filter: &Filter) -> Vec<(Option<IpAddr>, Row<'a>)> {
    match rows {
        Rows::None | Rows::Ended(_) | Rows::Reloaded(_) | Rows::Statistics(_) => Vec::new(),
        Rows::Flows(flows) => {
            let meant = flows.iter().filter(|flow| filter.fits_flow(flow));
            meant
                .map(|row| (Some(row.inside), Row::Flow(row)))
                .collect()
        }
        Rows::Mappings(mappings) => {
            let meant = mappings.iter().filter(|row| filter.fits_mapping(row));
            meant
                .map(|row| (Some(row.inside), Row::Mapping(row)))
                .collect()
        }
        Rows::Subscribers(subscribers) => {
            let meant = subscribers.iter().filter(|row| {
                let of = row.subscriber;
                filter.fits_range(of.first, of.last, row.alias)
            });
            let inside = |row: &SubscriberView| Some(row.subscriber.first.into());
            meant
                .map(|row| (inside(row), Row::Subscriber(row)))
                .collect()
        }
        Rows::Blocks(blocks) => {
            let meant = blocks.iter().filter(|row| {
                let of = row.subscriber;
                let port = filter.port.is_none_or(|port| {
                    let of_row = |(first, last): (u16, u16)| (first..=last).contains(&port);
                    row.ports.is_some_and(of_row)
                });
                port && filter.fits_range(of.first, of.last, Some(row.alias))
            });
            let inside = |row: &BlockView| Some(row.subscriber.first.into());
            meant.map(|row| (inside(row), Row::Block(row))).collect()
        }
        Rows::Pools(pools) => {
            let fits = |row: &&PoolView| match (filter.alias, row.alias) {
                (Some(prefix), IpAddr::V4(alias)) => prefix.contains(&alias),
                (Some(_), IpAddr::V6(_)) => false,
                (None, _) => true,
            };
            pools
                .iter()
                .filter(fits)
                .map(|row| (None, Row::Pool(row)))
                .collect()
        }
        Rows::Leases(leases) => {
            let meant = leases.iter().filter(|row| filter.fits_lease(row));
            meant
                .map(|row| (Some(row.inside), Row::Lease(row)))
                .collect()
        }
        Rows::Helpers(helpers) => {
            let row = |row: &'a (&'static str, bool)| (None, Row::Helper(row));
            helpers.iter().map(row).collect()
        }
    }
}

fn flow(row: &FlowView) -> Value {
    json!({
        "protocol": row.protocol,
        "state": state(row.state),
        "inside": row.inside,
        "inside_port": row.inside_port,
        "alias": row.alias,
        "alias_port": row.alias_port,
        "remote": row.remote,
        "remote_port": row.remote_port,
        "idle_millis": row.idle_millis,
        "expires_millis": row.expires_millis,
    })
}

fn mapping(row: &MappingView) -> Value {
    json!({
        "protocol": row.protocol,
        "inside": row.inside,
        "inside_port": row.inside_port,
        "alias": row.alias,
        "alias_port": row.alias_port,
        "remote": row.remote,
        "flows": row.flows,
        "expires_millis": row.expires_millis,
    })
}

fn lease(row: &LeaseView) -> Value {
    json!({
        "protocol": row.protocol,
        "inside": row.inside,
        "inside_port": row.inside_port,
        "alias": row.alias,
        "alias_port": row.alias_port,
        "ports": row.ports,
        "remote": row.remote.map(|(address, _)| address),
        "remote_port": row.remote.map(|(_, port)| port),
        "expires_millis": row.expires_millis,
    })
}

/// A subscriber.
pub fn subscriber(row: &SubscriberView) -> Value {
    let classes = |[tcp, udp, other]: [u32; 3]| json!({"tcp": tcp, "udp": udp, "other": other});
    let [tcp, udp] = row.half_open;
    let mut said = json!({
        "subscriber": row.subscriber.to_string(),
        "alias": row.alias,
        "ports": classes(row.ports),
        "sessions": classes(row.sessions),
        "half_open": {"tcp": tcp, "udp": udp},
        "blocks": row.blocks,
    });
    if let Some(counted) = &row.counted {
        said["counted"] = json!({
            "translated": counted.translated,
            "addresses_made": counted.addresses_made,
            "mappings_made": counted.mappings_made,
            "addresses_exhausted": counted.addresses_exhausted,
            "refused": counted.refused,
        });
    }
    said
}

/// A block.
pub fn block(row: &BlockView) -> Value {
    json!({
        "subscriber": row.subscriber.to_string(),
        "alias": row.alias,
        "first_port": row.ports.map(|ports| ports.0),
        "last_port": row.ports.map(|ports| ports.1),
        "deterministic": row.is_deterministic,
        "used": row.used,
        "held_millis": row.held_millis,
        "idle_millis": row.idle_millis,
    })
}

fn pool(row: &PoolView) -> Value {
    json!({
        "alias": row.alias,
        "open": row.is_open,
        "blocks": row.blocks,
        "free_blocks": row.free_blocks,
    })
}
