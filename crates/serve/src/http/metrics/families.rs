//! The metrics by name.

use table::{LinkCounters, Status, Tables};

use super::{OfLink, escape};
use crate::status::FeederStatus;

/// A metric that every link has.
pub struct LinkFamily {
    /// Its name, node_exporter's.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    /// Its value, if the link has one.
    pub value: fn(&OfLink<'_>) -> Option<u64>,
    /// Labels beside the device, each beginning with `",`.
    pub labels: Option<fn(&OfLink<'_>, &mut String)>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&OfLink<'_>) -> Option<u64>,
) -> LinkFamily {
    LinkFamily {
        name,
        help,
        kind: "counter",
        value,
        labels: None,
    }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    value: fn(&OfLink<'_>) -> Option<u64>,
) -> LinkFamily {
    LinkFamily {
        kind: "gauge",
        ..counter(name, help, value)
    }
}

fn count(of: &OfLink<'_>, value: impl Fn(&LinkCounters) -> u64) -> Option<u64> {
    of.counters.map(value)
}

/// What node_exporter's `netdev` and `netclass` tell; sums are those of
/// `/proc/net/dev`.
pub static LINK_FAMILIES: &[LinkFamily] = &[
    counter(
        "node_network_receive_bytes_total",
        "Octets received",
        |of| count(of, |c| c.rx_bytes),
    ),
    counter(
        "node_network_receive_packets_total",
        "Packets received",
        |of| count(of, |c| c.rx_packets),
    ),
    counter(
        "node_network_receive_errs_total",
        "Packets received with an error",
        |of| count(of, |c| c.rx_errors),
    ),
    counter(
        "node_network_receive_drop_total",
        "Packets received and dropped",
        |of| count(of, |c| c.rx_dropped.wrapping_add(c.rx_missed_errors)),
    ),
    counter(
        "node_network_receive_fifo_total",
        "Overruns of the receive queue",
        |of| count(of, |c| c.rx_fifo_errors),
    ),
    counter(
        "node_network_receive_frame_total",
        "Frames received broken",
        |of| {
            count(of, |c| {
                c.rx_length_errors
                    .wrapping_add(c.rx_over_errors)
                    .wrapping_add(c.rx_crc_errors)
                    .wrapping_add(c.rx_frame_errors)
            })
        },
    ),
    counter(
        "node_network_receive_compressed_total",
        "Compressed packets received",
        |of| count(of, |c| c.rx_compressed),
    ),
    counter(
        "node_network_receive_multicast_total",
        "Multicast packets received",
        |of| count(of, |c| c.multicast),
    ),
    counter(
        "node_network_receive_nohandler_total",
        "Packets received that nobody wanted",
        |of| count(of, |c| c.rx_nohandler),
    ),
    counter("node_network_transmit_bytes_total", "Octets sent", |of| {
        count(of, |c| c.tx_bytes)
    }),
    counter(
        "node_network_transmit_packets_total",
        "Packets sent",
        |of| count(of, |c| c.tx_packets),
    ),
    counter(
        "node_network_transmit_errs_total",
        "Packets not sent for an error",
        |of| count(of, |c| c.tx_errors),
    ),
    counter(
        "node_network_transmit_drop_total",
        "Packets dropped instead of sent",
        |of| count(of, |c| c.tx_dropped),
    ),
    counter(
        "node_network_transmit_fifo_total",
        "Errors of the transmit queue",
        |of| count(of, |c| c.tx_fifo_errors),
    ),
    counter("node_network_transmit_colls_total", "Collisions", |of| {
        count(of, |c| c.collisions)
    }),
    counter(
        "node_network_transmit_carrier_total",
        "Losses of the carrier while sending",
        |of| {
            count(of, |c| {
                c.tx_carrier_errors
                    .wrapping_add(c.tx_aborted_errors)
                    .wrapping_add(c.tx_window_errors)
                    .wrapping_add(c.tx_heartbeat_errors)
            })
        },
    ),
    counter(
        "node_network_transmit_compressed_total",
        "Compressed packets sent",
        |of| count(of, |c| c.tx_compressed),
    ),
    gauge(
        "node_network_up",
        "Whether its operational state is up",
        |of| Some((of.link.oper_state == table::row::link::oper::UP).into()),
    ),
    gauge("node_network_carrier", "Whether it has a carrier", |of| {
        of.link.is_up().then(|| of.link.has_carrier().into())
    }),
    gauge("node_network_mtu_bytes", "Its MTU", |of| {
        Some(of.link.mtu.into())
    }),
    gauge(
        "node_network_speed_bytes",
        "Its speed, octets a second",
        |of| of.speed.map(|speed| u64::from(speed) * 125_000),
    ),
    gauge("node_network_iface_id", "Its index", |of| {
        Some(of.link.index.into())
    }),
    gauge("node_network_flags", "Its flags, IFF_…", |of| {
        Some(of.link.flags.into())
    }),
    gauge(
        "node_network_protocol_type",
        "Its hardware type, ARPHRD_…",
        |of| Some(of.link.hardware.into()),
    ),
    gauge("node_network_net_dev_group", "Its group", |of| {
        Some(of.link.group.into())
    }),
    gauge(
        "node_network_transmit_queue_length",
        "Length of its transmit queue, packets",
        |of| Some(of.link.tx_queue_len.into()),
    ),
    LinkFamily {
        name: "node_network_info",
        help: "What it is, in labels",
        kind: "gauge",
        value: |_| Some(1),
        labels: Some(|of, out| {
            for (label, text) in [
                ("address", of.link.address.to_string()),
                ("broadcast", of.link.broadcast.to_string()),
                ("ifalias", of.link.alias.as_deref().unwrap_or("").to_owned()),
                ("operstate", operstate(of.link.oper_state).to_owned()),
            ] {
                out.push_str("\",");
                out.push_str(label);
                out.push_str("=\"");
                escape(out, &text);
            }
        }),
    },
];

/// A metric of a mirror.
type OfMirror = fn(&Status, &Tables) -> u64;

/// How each mirror is: name, help, kind, value.
pub static MIRROR_FAMILIES: [(&str, &str, &str, OfMirror); 13] = [
    (
        "fingerpost_generation",
        "Changes of the tables since the start",
        "gauge",
        |_, tables| tables.generation.0,
    ),
    (
        "fingerpost_mirror_live",
        "Whether the tables are the kernel's: 0 while they are listed again or miss rows",
        "gauge",
        |status, _| status.is_whole().into(),
    ),
    (
        "fingerpost_mirror_refused_total",
        "Rows that had no place in a table",
        "counter",
        |status, _| status.refused.values().sum(),
    ),
    (
        "fingerpost_mirror_last_scan_seconds",
        "When the last scan for drift ended, seconds since the UNIX epoch; 0: there was none",
        "gauge",
        |status, _| status.last_scan_millis / 1000,
    ),
    (
        "fingerpost_mirror_last_scan_drift",
        "Rows that the last scan found to differ",
        "gauge",
        |status, _| status.last_scan_drift,
    ),
    (
        "fingerpost_mirror_foreign_total",
        "Messages of other processes that were dropped",
        "counter",
        |status, _| status.foreign,
    ),
    (
        "fingerpost_mirror_events_total",
        "Events of the kernel applied",
        "counter",
        |status, _| status.events,
    ),
    (
        "fingerpost_mirror_resyncs_total",
        "Times that the tables were listed again after a loss",
        "counter",
        |status, _| status.resyncs,
    ),
    (
        "fingerpost_mirror_overruns_total",
        "Times that the kernel dropped events",
        "counter",
        |status, _| status.overruns,
    ),
    (
        "fingerpost_mirror_interrupted_dumps_total",
        "Listings that changed under way",
        "counter",
        |status, _| status.interrupted_dumps,
    ),
    (
        "fingerpost_mirror_scans_total",
        "Scans for drift",
        "counter",
        |status, _| status.scans,
    ),
    (
        "fingerpost_mirror_drift_total",
        "Rows that a scan found to differ: to be 0",
        "counter",
        |status, _| status.drift,
    ),
    (
        "fingerpost_mirror_malformed_total",
        "Messages that could not be read",
        "counter",
        |status, _| status.malformed,
    ),
];

/// A metric of a table.
type OfTable = fn(&Status, &str) -> u64;

/// How each table of a namespace is: name, help, kind, value.
pub static TABLE_FAMILIES: [(&str, &str, &str, OfTable); 2] = [
    (
        "fingerpost_table_complete",
        "Whether the table has all rows: 0 where some had no place",
        "gauge",
        |status, table| (!status.has_gap && !status.incomplete.contains(table)).into(),
    ),
    (
        "fingerpost_table_refused_total",
        "Rows that had no place in the table",
        "counter",
        |status, table| status.refused.get(table).copied().unwrap_or(0),
    ),
];

/// A metric of a feeder.
type OfFeeder = fn(&FeederStatus) -> u64;

/// How each feeder of a namespace is: name, help, kind, value.
pub static FEEDER_FAMILIES: [(&str, &str, &str, OfFeeder); 15] = [
    (
        "fingerpost_feeder_complete",
        "Whether a feeder follows and misses nothing",
        "gauge",
        |feeder| feeder.complete.into(),
    ),
    (
        "fingerpost_feeder_routes",
        "Routes of a feeder",
        "gauge",
        |feeder| feeder.routes as u64,
    ),
    (
        "fingerpost_feeder_nexthops",
        "Next-hop objects of a feeder",
        "gauge",
        |feeder| feeder.nexthops as u64,
    ),
    (
        "fingerpost_feeder_refused_total",
        "Rows of a feeder that had no place",
        "counter",
        |feeder| feeder.refused,
    ),
    (
        "fingerpost_feeder_connected",
        "Whether a peer feeds it over a connection now",
        "gauge",
        |feeder| (feeder.peer.is_some() && !feeder.phase.starts_with("disconnected")).into(),
    ),
    (
        "fingerpost_feeder_unconfirmed_rows",
        "Rows that were not told since its peer came, or went",
        "gauge",
        |feeder| feeder.unconfirmed,
    ),
    (
        "fingerpost_feeder_swept_rows_total",
        "Rows that were never told again, and went",
        "counter",
        |feeder| feeder.swept,
    ),
    (
        "fingerpost_feeder_connections_total",
        "Connections that fed it",
        "counter",
        |feeder| feeder.connections,
    ),
    (
        "fingerpost_feeder_turned_away_total",
        "Connections that were closed before they fed it",
        "counter",
        |feeder| feeder.turned_away,
    ),
    (
        "fingerpost_feeder_frames_total",
        "Frames that its peer sent",
        "counter",
        |feeder| feeder.frames,
    ),
    (
        "fingerpost_feeder_messages_total",
        "Messages in those frames",
        "counter",
        |feeder| feeder.messages,
    ),
    (
        "fingerpost_feeder_skipped_total",
        "Messages that have no row here",
        "counter",
        |feeder| feeder.skipped.values().sum(),
    ),
    (
        "fingerpost_feeder_last_heard_seconds",
        "When the last frame came, since 1970; 0: none came yet",
        "gauge",
        |feeder| feeder.last_heard_millis.unwrap_or(0) / 1_000,
    ),
    (
        "fingerpost_feeder_peer_up",
        "Whether the BGP peer is up whose table a router tells",
        "gauge",
        |feeder| {
            let is_up = feeder.monitored.as_ref().is_some_and(|peer| peer.up);
            (is_up && !feeder.phase.starts_with("disconnected")).into()
        },
    ),
    (
        "fingerpost_feeder_peer_downs_total",
        "Times that this peer went down",
        "counter",
        |feeder| feeder.monitored.as_ref().map_or(0, |peer| peer.downs),
    ),
];

/// An operational state as sysfs writes it.
fn operstate(state: u8) -> &'static str {
    let names = [
        "unknown",
        "notpresent",
        "down",
        "lowerlayerdown",
        "testing",
        "dormant",
        "up",
    ];
    names.get(usize::from(state)).copied().unwrap_or("unknown")
}
