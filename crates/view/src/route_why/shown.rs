//! The answer to `route why` as text and as JSON. For [`super`].

use std::sync::Arc;

use table::{Event, Neighbour, NeighbourKey, NextHop, Operation, Row};

use super::verdict::Verdict;
use super::{Candidates, Followed, Why};
use crate::context::View;
use crate::fields::{Json, Value, Visit, push_name};
use crate::format::{push_address, push_destination, push_duration, push_u64};
use crate::printer::Show;
use crate::route::{device_text, gateway_fields, gateway_text};
use crate::route_diff::row_text;

/// The sources, a line for each route and what became of it below; then the
/// packet, with its next hops.
pub(super) fn text(why: &Why<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    push_destination(out, why.to);
    out.extend_from_slice(b" in table ");
    push_name(out, view.names.table(why.table));
    out.push(b'\n');
    for source in &why.sources {
        source_text(source, view, out);
    }
    packet_text(&why.packet, view, out);
}

fn source_text(source: &Candidates<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    if source.routes.is_empty() {
        push_text(out, &[source.name, ": no route"]);
    }
    for (row, verdict) in &source.routes {
        push_text(out, &[source.name, ": "]);
        row_text(row, view, out);
        out.extend_from_slice(b"    ");
        verdict_text(verdict, view, out);
        // Once, below the best: it is about all of the prefix.
        if std::ptr::eq(row, &source.routes[0].0) {
            changed_text(source, view, out);
        }
        out.push(b'\n');
    }
    if source.routes.is_empty() {
        changed_text(source, view, out);
        out.push(b'\n');
    }
    for (at_millis, event) in source.history.newest.iter().filter(is_timed) {
        history_text(*at_millis, event, view, out);
    }
}

fn verdict_text(verdict: &Verdict, view: &View<'_>, out: &mut Vec<u8>) {
    let plain = match verdict {
        Verdict::Taken => "taken",
        Verdict::Refuses(why) => {
            return push_text(out, &["taken, and refuses: ", &why.to_string()]);
        }
        Verdict::OtherTable(table) => {
            out.extend_from_slice(b"not taken: table ");
            push_name(out, view.names.table(*table));
            return out.extend_from_slice(b" decides before");
        }
        Verdict::LongerPrefix => "not taken: a longer prefix decides",
        Verdict::Unusable => "not taken: none of its next hops can be used",
        Verdict::NotBest => "not taken: the one above comes first",
        Verdict::Agrees => "goes where the kernel goes",
        Verdict::Differs => "goes elsewhere than the kernel",
    };
    out.extend_from_slice(plain.as_bytes());
}

/// Whether it is known when it was: of what a file has told it is not.
fn is_timed((at_millis, _): &&(u64, Event)) -> bool {
    *at_millis > 0
}

/// `; changed 12s ago, 3 times`, as far back as events are kept.
fn changed_text(source: &Candidates<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    let history = &source.history;
    match history.newest.last().filter(is_timed) {
        Some((at_millis, _)) => {
            out.extend_from_slice(b"; changed ");
            ago(*at_millis, view, out);
            out.extend_from_slice(b", ");
            push_u64(out, history.times as u64);
            out.extend_from_slice(if history.times == 1 {
                b" time"
            } else {
                b" times"
            });
            if history.forgotten_at_millis > 0 {
                out.extend_from_slice(b" since ");
                ago(history.forgotten_at_millis, view, out);
            }
        }
        None if history.forgotten_at_millis > 0 => {
            out.extend_from_slice(b"; unchanged since ");
            ago(history.forgotten_at_millis, view, out);
            out.extend_from_slice(b" or longer");
        }
        None => {}
    }
}

fn ago(at_millis: u64, view: &View<'_>, out: &mut Vec<u8>) {
    push_duration(out, view.now_millis.saturating_sub(at_millis) / 1000);
    out.extend_from_slice(b" ago");
}

fn operation(event: &Event) -> &'static str {
    match event.operation {
        Operation::Added => "added",
        Operation::Changed => "changed",
        Operation::Deleted => "deleted",
    }
}

fn history_text(at_millis: u64, event: &Event, view: &View<'_>, out: &mut Vec<u8>) {
    if let Row::Route(route) = &event.row {
        out.extend_from_slice(b"    ");
        ago(at_millis, view, out);
        push_text(out, &[" ", operation(event), " "]);
        row_text(&route.with_body(&route.body), view, out);
    }
}

/// Where the packet goes, and how its next hops are.
fn packet_text(packet: &Followed<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"a packet to ");
    push_address(out, packet.to);
    let decision = match &packet.decision {
        Ok(decision) => decision,
        Err(why) => {
            push_text(out, &[" is refused: ", &why.to_string(), "\n"]);
            return;
        }
    };
    out.extend_from_slice(b" is decided by table ");
    push_name(out, view.names.table(decision.table));
    if let Some(source) = decision.source {
        out.extend_from_slice(b", from ");
        push_address(out, source);
    }
    out.push(b'\n');
    for hop in &decision.hops {
        hop_text(hop, packet, view, out);
    }
}

fn hop_text(hop: &NextHop, packet: &Followed<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"    ");
    gateway_text(hop.gateway, packet.to.into(), view, out);
    if hop.link != 0 {
        device_text(hop.link, view, out);
    }
    out.extend_from_slice(b"link ");
    out.extend_from_slice(link_state(hop, view).as_bytes());
    match neighbour(hop, packet) {
        Some(row) => {
            out.extend_from_slice(b" neighbour ");
            let mut text = Vec::new();
            row.text(view, &mut text);
            out.extend_from_slice(text.trim_ascii_end());
        }
        None if needs_neighbour(hop, view) => {
            out.extend_from_slice(b" neighbour not known yet");
        }
        None => {}
    }
    out.push(b'\n');
}

fn link_state(hop: &NextHop, view: &View<'_>) -> &'static str {
    match view.link(hop.link) {
        None => "unknown",
        Some(link) if !link.is_up() => "down",
        Some(link) if !link.has_carrier() => "without carrier",
        Some(_) => "up",
    }
}

/// The neighbour that the packet is handed to.
fn neighbour<'a>(hop: &NextHop, packet: &Followed<'a>) -> Option<&'a Arc<Neighbour>> {
    packet.tables.neighbours.get(&NeighbourKey {
        link: hop.link,
        address: hop.gateway.unwrap_or(packet.to),
        proxy: false,
    })
}

/// Whether packets need a link-layer address there.
fn needs_neighbour(hop: &NextHop, view: &View<'_>) -> bool {
    use table::row::link::flag::{LOOPBACK, NOARP, POINTOPOINT};
    let without = LOOPBACK | NOARP | POINTOPOINT;
    view.link(hop.link)
        .is_some_and(|link| link.flags & without == 0)
}

fn push_text(out: &mut Vec<u8>, words: &[&str]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(word.as_bytes()));
}

/// One object: `to`, `table`, `sources` with their routes as `ip -j` has
/// them and a `verdict`, and `packet`.
pub(super) fn json(why: &Why<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut json = Json { out };
    json.value("to", Value::Destination(why.to));
    json.value("table", Value::Name(view.names.table(why.table)));
    json.list("sources");
    for source in &why.sources {
        json.object_item();
        source_fields(source, view, &mut json);
        json.end_item();
    }
    json.end_list();
    json.object("packet");
    packet_fields(&why.packet, view, &mut json);
    json.end_object();
    json.out.extend_from_slice(b"}\n");
}

fn source_fields(source: &Candidates<'_>, view: &View<'_>, json: &mut Json<'_>) {
    json.value("source", Value::Text(source.name));
    json.list("routes");
    for (row, verdict) in &source.routes {
        json.object_item();
        row.with_body(&**row.body).fields(view, json);
        json.value("verdict", Value::Text(verdict.name()));
        json.end_item();
    }
    json.end_list();
    let history = &source.history;
    json.value("changes", Value::Number(history.times as u64));
    if history.forgotten_at_millis > 0 {
        let at = history.forgotten_at_millis;
        json.value("known_since_millis", Value::Number(at));
    }
    json.list("history");
    for (at_millis, event) in history.newest.iter().filter(is_timed) {
        if let Row::Route(route) = &event.row {
            json.object_item();
            json.value("at_millis", Value::Number(*at_millis));
            json.value("event", Value::Text(operation(event)));
            route.with_body(&*route.body).fields(view, json);
            json.end_item();
        }
    }
    json.end_list();
}

fn packet_fields(packet: &Followed<'_>, view: &View<'_>, json: &mut Json<'_>) {
    json.value("to", Value::Address(packet.to));
    let decision = match &packet.decision {
        Ok(decision) => decision,
        Err(why) => return json.value("refused", Value::Text(&why.to_string())),
    };
    json.value("table", Value::Name(view.names.table(decision.table)));
    if let Some(source) = decision.source {
        json.value("prefsrc", Value::Address(source));
    }
    json.list("nexthops");
    for hop in &decision.hops {
        json.object_item();
        gateway_fields(hop.gateway, packet.to.into(), json);
        if hop.link != 0 {
            json.value("dev", Value::Name(view.device(hop.link)));
        }
        json.value("link", Value::Text(link_state(hop, view)));
        if let Some(row) = neighbour(hop, packet) {
            json.object("neighbour");
            row.fields(view, json);
            json.end_object();
        }
        json.end_item();
    }
    json.end_list();
}
