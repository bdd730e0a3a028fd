//! What is measured of forwarding at XDP. Called by [`super`].

use dataplane::xdp::REASONS;
use dataplane::xdp::standing::{PortStanding, Report};

use super::{head, labelled};
use crate::forwarding::ForwardingStatus;

/// What is told of a port, by family.
type OfPort = fn(&PortStanding) -> [bool; 2];

/// Writes how it stands; of one that does not answer, only that.
pub fn write(status: &ForwardingStatus, out: &mut String) {
    let name = "fingerpost_router_up";
    let help = "Whether the router at XDP that is there answers";
    head(out, name, help, "gauge");
    labelled(out, name, &[], u8::from(status.report.is_some()));
    let Some(report) = &status.report else { return };
    let name = "fingerpost_router_uptime_seconds";
    head(out, name, "How long it has forwarded", "gauge");
    labelled(out, name, &[], report.status.seconds);
    if let Some(translation) = &report.status.translation {
        let name = "fingerpost_router_translating";
        head(
            out,
            name,
            "Whether the engine that translates answers",
            "gauge",
        );
        labelled(out, name, &[], u8::from(translation.works));
        let name = "fingerpost_router_translated_flows";
        head(
            out,
            name,
            "Established flows that are translated at XDP",
            "gauge",
        );
        labelled(out, name, &[], translation.flows);
    }
    ports(report, out);
    obstacles(report, out);
    reasons(report, out);
    let name = "fingerpost_router_neighbours_used_total";
    let help = "Stale neighbours that the kernel was told are in use";
    head(out, name, help, "counter");
    labelled(out, name, &[], report.status.neighbours_used);
}

fn ports(report: &Report, out: &mut String) {
    let families: [(&str, &str, OfPort); 2] = [
        (
            "fingerpost_router_receives",
            "Whether packets that come in by a port are forwarded at XDP; 0: by the kernel",
            |port| [port.receives.ipv4, port.receives.ipv6],
        ),
        (
            "fingerpost_router_sends",
            "Whether packets leave by a port from XDP",
            |port| [port.sends.ipv4, port.sends.ipv6],
        ),
    ];
    for (name, help, of) in families {
        head(out, name, help, "gauge");
        for port in &report.status.ports {
            for (family, value) in ["ipv4", "ipv6"].into_iter().zip(of(port)) {
                let labels = [
                    ("device", Some(port.name.as_str())),
                    ("family", Some(family)),
                ];
                labelled(out, name, &labels, u8::from(value));
            }
        }
    }
}

fn obstacles(report: &Report, out: &mut String) {
    let name = "fingerpost_router_obstacles";
    let help = "What is in the way of forwarding at XDP; accepted: packets pass it by";
    head(out, name, help, "gauge");
    for obstacle in &report.status.obstacles {
        let accepted = if obstacle.accepted { "yes" } else { "no" };
        let labels = [
            ("obstacle", Some(obstacle.name.as_str())),
            ("accepted", Some(accepted)),
        ];
        labelled(out, name, &labels, 1);
    }
}

/// All reasons of all ports: a rate wants a beginning.
fn reasons(report: &Report, out: &mut String) {
    for (name, help, is_bytes) in [
        (
            "fingerpost_router_packets_total",
            "Packets that came in by a port, by what became of them: forwarded or translated, \
             dropped, or why they went up",
            false,
        ),
        (
            "fingerpost_router_bytes_total",
            "Their bytes, link headers included",
            true,
        ),
    ] {
        head(out, name, help, "counter");
        for port in &report.status.ports {
            for reason in REASONS {
                let mut rows = report.reasons.iter();
                let row = rows.find(|row| row.name == port.name && row.reason == reason.name);
                let value = row.map_or(0, |row| if is_bytes { row.bytes } else { row.packets });
                let labels = [
                    ("device", Some(port.name.as_str())),
                    ("reason", Some(reason.name)),
                ];
                labelled(out, name, &labels, value);
            }
        }
    }
}
