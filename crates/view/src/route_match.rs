//! `route get` by the routes of a feed or a file: the longest match in one
//! table, with the next hops that can be used. What only a kernel has is
//! left out, and said to be: rules, and the choice of a source address.
//! Called by [`crate::route_get`].

use std::io;

use ipnet::IpNet;
use table::row::route::{kind, table_id};
use table::{AF_INET, AF_INET6, Decision, NextHop, RouteRef, Tables};
use words::Names;

use crate::answer_error::AnswerError;
use crate::colour::{Colour, coloured};
use crate::context::{Context, View};
use crate::fields::{Value, Visit, push_name};
use crate::printer::Show;
use crate::route::{
    device_text, encap_fields, encap_text, flag_fields, gateway_fields, gateway_text, hop_fields,
    hop_text, kind_name, labelled,
};
use crate::route_get::{RouteQuestion, link_of, show_one};
use crate::route_metrics::{metric_fields, metric_text};
use crate::route_path::{path_fields, path_text};
use crate::selection::{BadQuestion, table_number};

/// What of a kernel's answer there is not.
const NOT_APPLIED: [&str; 2] = ["rules", "source-address"];

/// Writes which route of a source a packet would take. `tables` are the
/// source's. O(log n).
pub(crate) fn route_match(
    question: &RouteQuestion,
    source: &str,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    refuse_rules(question, source)?;
    let context = Context {
        links: tables.named_links(),
        tables: Some(tables),
        now_millis,
        names,
    };
    let mut packet = question.packet(tables)?;
    let links = context.links;
    // A VRF is a table, and no route leaves by it.
    let is_vrf = |oif: &u32| links.get(*oif).is_some_and(|link| link.vrf_table.is_some());
    packet.oif = packet.oif.filter(|oif| !is_vrf(oif));
    let named = question.vrf.as_ref().or(question.oif.as_ref());
    let vrf_table = named.and_then(|name| link_of(links, name)?.vrf_table);
    let table = match (&question.table, vrf_table) {
        (Some(_), Some(_)) => return Err(BadQuestion::TableTwice.into()),
        (Some(name), None) => table_number(&context, name)?,
        (None, vrf_table) => vrf_table.unwrap_or(table_id::MAIN),
    };
    let decision = tables.longest_match(&packet, table);
    let decision = decision.map_err(|why| {
        let mut name = Vec::new();
        push_name(&mut name, names.table(table));
        BadQuestion::NoRouteOf {
            to: question.to,
            source_name: source.to_owned(),
            table: String::from_utf8_lossy(&name).into_owned(),
            why,
        }
    })?;
    let Some(route) = decision.route else {
        return Ok(0);
    };
    let matched = Matched {
        question,
        source,
        decision,
        route,
    };
    show_one(&matched, &question.output, context, out)
}

/// Refuses what is said of the packet for rules alone.
fn refuse_rules(question: &RouteQuestion, source: &str) -> Result<(), BadQuestion> {
    let said = [
        ("iif", question.iif.is_some()),
        ("mark", question.mark != 0),
        ("uid", question.uid.is_some()),
        ("ipproto", question.ipproto.is_some()),
        ("sport", question.sport.is_some()),
        ("dport", question.dport.is_some()),
    ];
    match said.into_iter().find(|(_, is_said)| *is_said) {
        None => Ok(()),
        Some((word, _)) => Err(BadQuestion::OfRules {
            word,
            source_name: source.to_owned(),
        }),
    }
}

/// A packet and the route that it takes.
struct Matched<'a> {
    question: &'a RouteQuestion,
    source: &'a str,
    decision: Decision<'a>,
    route: RouteRef<'a>,
}

impl Matched<'_> {
    fn only_hop(&self) -> Option<&NextHop> {
        match &*self.decision.hops {
            [hop] => Some(hop),
            _ => None,
        }
    }

    fn several(&self) -> &[NextHop] {
        match &*self.decision.hops {
            [_] => &[],
            hops => hops,
        }
    }

    /// Whose links' states mark next hops.
    fn family(&self) -> Option<u8> {
        Some(match self.question.to.is_ipv4() {
            true => AF_INET,
            false => AF_INET6,
        })
    }
}

impl Show for Matched<'_> {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        let (prefix, body) = (IpNet::from(self.question.to), self.route.body);
        if self.decision.kind != kind::UNICAST || view.details {
            visit.value("type", kind_name(self.decision.kind, view));
        }
        visit.value("dst", Value::Address(self.question.to));
        if let Some(from) = self.question.from {
            visit.value("from", Value::Address(from));
        }
        let hop = self.only_hop();
        encap_fields(hop.and_then(|hop| hop.encap.as_deref()), view, visit);
        if let Some(hop) = hop {
            gateway_fields(hop.gateway, prefix, visit);
            if hop.link != 0 {
                visit.value("dev", Value::Name(view.device(hop.link)));
            }
        }
        let names = view.names;
        visit.value("table", Value::Name(names.table(self.decision.table)));
        visit.value("protocol", Value::Name(names.protocol(body.protocol)));
        visit.value("metric", Value::Number(self.route.metric.into()));
        flag_fields(0, visit);
        visit.value("match", Value::Destination(self.route.prefix));
        visit.value("source", Value::Text(self.source));
        visit.list("not_applied");
        for word in NOT_APPLIED {
            visit.item(Value::Text(word));
        }
        visit.end_list();
        metric_fields(body.metrics.as_deref(), view, visit);
        path_fields(&body.path, visit);
        if !self.several().is_empty() {
            visit.list("nexthops");
            for hop in self.several() {
                visit.object_item();
                hop_fields(hop, prefix, self.family(), view, visit);
                visit.end_item();
            }
            visit.end_list();
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        let (prefix, body) = (IpNet::from(self.question.to), self.route.body);
        if self.decision.kind != kind::UNICAST || view.details {
            labelled(out, b"", kind_name(self.decision.kind, view));
        }
        let to = self.question.to;
        coloured(view, Colour::of_address(to), out, |out| {
            labelled(out, b"", Value::Address(to));
        });
        if let Some(from) = self.question.from {
            coloured(view, Colour::of_address(from), out, |out| {
                labelled(out, b"from ", Value::Address(from));
            });
        }
        let hop = self.only_hop();
        encap_text(hop.and_then(|hop| hop.encap.as_deref()), view, out);
        if let Some(hop) = hop {
            gateway_text(hop.gateway, prefix, view, out);
            if hop.link != 0 {
                device_text(hop.link, view, out);
            }
        }
        let names = view.names;
        labelled(
            out,
            b"table ",
            Value::Name(names.table(self.decision.table)),
        );
        labelled(out, b"proto ", Value::Name(names.protocol(body.protocol)));
        labelled(out, b"metric ", Value::Number(self.route.metric.into()));
        metric_text(body.metrics.as_deref(), out);
        path_text(&body.path, out);
        out.push(view.line_break());
        labelled(out, b"    match ", Value::Destination(self.route.prefix));
        labelled(out, b"source ", Value::Text(self.source));
        labelled(out, b"not-applied ", Value::Text(&NOT_APPLIED.join(",")));
        for hop in self.several() {
            out.push(view.line_break());
            hop_text(hop, prefix, self.family(), view, out);
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
