//! `route get`: which route a packet would take, shown as `ip route get`
//! shows it, but with all members of a multipath group.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::row::link::flag::LOOPBACK;
use table::row::route::{kind, protocol, table_id};
use table::{Decision, Link, Links, NextHop, Open, Packet, Route, RouteBody, Tables};

use crate::answer_error::AnswerError;
use crate::colour::{Colour, coloured};
use crate::context::{Context, View};
use crate::fields::{Value, Visit, push_plain};
use crate::printer::{Printer, Show};
use crate::question::{Filter, Object, Output, Question};
use crate::route::{
    device_text, encap_fields, encap_text, family_of, flow_fields, flow_text, gateway_fields,
    gateway_text, hop_fields, hop_text, kind_name, labelled, preference, source_text,
};
use crate::route_match::route_match;
use crate::route_metrics::{metric_fields, metric_text};
use crate::route_path::{path_fields, path_text};
use crate::selection::BadQuestion;
use words::Names;

/// `INVALID_UID`.
const NOBODY: u32 = u32::MAX;

/// Whose the kernel's own packets are (`sock_net_uid`).
const ROOT: u32 = 0;

/// What `ip` says of the kernel's mark of multicast (`RTCF_MULTICAST`), whose
/// bit routes have for another thing.
const MULTICAST_FLAG: &str = "rt_offload_failed";

/// `IPPROTO_UDP`.
const UDP: u8 = 17;

/// Which route a packet would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteQuestion {
    /// Where it goes.
    pub to: IpAddr,
    /// Where it comes from.
    #[serde(default)]
    pub from: Option<IpAddr>,
    /// Name of the link it came in by; without: it is the host's own.
    #[serde(default)]
    pub iif: Option<String>,
    /// Name of the link it must leave by.
    #[serde(default)]
    pub oif: Option<String>,
    /// Its firewall mark.
    #[serde(default)]
    pub mark: u32,
    /// Name of the VRF it is in.
    #[serde(default)]
    pub vrf: Option<String>,
    /// Its type of service.
    #[serde(default)]
    pub tos: u8,
    /// The user whose it is, for rules about users; shown when given.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Who asks: the user whose it is where none is given.
    #[serde(default)]
    pub asker: u32,
    /// Its protocol, for rules about protocols. Without: the kernel takes
    /// an IPv4 packet to be UDP.
    #[serde(default)]
    pub ipproto: Option<u8>,
    /// Its source port, for rules about ports.
    #[serde(default)]
    pub sport: Option<u16>,
    /// Its destination port, for rules about ports.
    #[serde(default)]
    pub dport: Option<u16>,
    /// Whose routes it would take; `None`: the kernel's.
    #[serde(default)]
    pub source: Option<String>,
    /// In which table of that source, by name or number; without: `main`.
    #[serde(default)]
    pub table: Option<String>,
    /// How the answer is written.
    #[serde(default)]
    pub output: Output,
}

impl RouteQuestion {
    /// About a packet of the host's own, of which only the destination is
    /// known.
    pub fn to(to: IpAddr) -> Self {
        Self {
            to,
            from: None,
            iif: None,
            oif: None,
            mark: 0,
            vrf: None,
            tos: 0,
            uid: None,
            asker: 0,
            ipproto: None,
            sport: None,
            dport: None,
            source: None,
            table: None,
            output: Output::default(),
        }
    }

    /// An IPv4 packet that came in and is said to be from nowhere is from
    /// 0.0.0.0.
    fn any_source(&self) -> Option<IpAddr> {
        let came_in = self.to.is_ipv4() && self.iif.is_some();
        came_in.then_some(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Whose a packet is: of IPv4 that came in always root's, whatever is
    /// said (`ip_route_input_slow`); of which nothing is said, nobody's where
    /// it came in (`inet6_rtm_getroute`).
    fn user(&self) -> u32 {
        match self.iif {
            Some(_) if self.to.is_ipv4() => ROOT,
            Some(_) => self.uid.unwrap_or(NOBODY),
            None => self.uid.unwrap_or(self.asker),
        }
    }

    /// The kernel's own default (`inet_rtm_getroute`).
    fn protocol(&self) -> u8 {
        let default = if self.to.is_ipv4() { UDP } else { 0 };
        self.ipproto.unwrap_or(default)
    }

    pub(crate) fn packet(&self, tables: &Tables) -> Result<Packet, BadQuestion> {
        let link = |name: &String| -> Result<&Link, BadQuestion> {
            let found = link_of(tables.named_links(), name);
            found.ok_or_else(|| BadQuestion::NoSuchDevice(name.clone()))
        };
        let vrf = self.vrf.as_ref().map(link).transpose()?;
        if let Some(other) = vrf.filter(|link| link.vrf_table.is_none()) {
            return Err(BadQuestion::NotAVrf(other.name.to_string()));
        }
        let oif = self.oif.as_ref().map(link).transpose()?.or(vrf);
        if let Some(from) = self.from
            && from.is_ipv4() != self.to.is_ipv4()
        {
            return Err(BadQuestion::FamiliesDiffer {
                address: from.to_string(),
                family: if self.to.is_ipv4() { 4 } else { 6 },
            });
        }
        Ok(Packet {
            destination: self.to,
            source: self.from.or(self.any_source()),
            iif: self.iif.as_ref().map(link).transpose()?.map(|l| l.index),
            oif: oif.map(|link| link.index),
            mark: self.mark,
            tos: self.tos,
            uid: self.user(),
            ip_protocol: self.protocol(),
            source_port: self.sport.unwrap_or(0),
            destination_port: self.dport.unwrap_or(0),
        })
    }
}

/// The link of a name; as in `ip`, `if7` where no link is called so is the
/// one with index 7 (`ll_name_to_index`).
pub fn link_of<'a>(links: &'a Links, name: &str) -> Option<&'a Link> {
    let by_number = || links.get(name.strip_prefix("if")?.parse().ok()?);
    links.by_name(name).or_else(by_number).map(|link| &**link)
}

/// What came of a question about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteAnswer {
    /// Rows of the answer: one.
    pub rows: u64,
    /// What of it only the kernel can tell.
    pub open: Option<Open>,
}

/// Writes which route a packet would take: by the kernel's rules, or by the
/// longest match among the rows of the source that the question names, whose
/// tables these are then. That there is none is an error with the kernel's
/// word for it. Cost: that of [`Tables::route_of`].
pub fn route_get(
    question: &RouteQuestion,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<RouteAnswer, AnswerError> {
    if let Some(source) = &question.source {
        let rows = route_match(question, source, tables, names, now_millis, out)?;
        return Ok(RouteAnswer { rows, open: None });
    }
    if question.table.is_some() {
        return Err(BadQuestion::TableByRules.into());
    }
    let packet = question.packet(tables)?;
    let decision = tables
        .route_of(&packet)
        .map_err(|why| BadQuestion::NoRoute {
            to: question.to,
            why,
        })?;
    let open = decision.open;
    let taken = Taken {
        question,
        packet,
        decision,
        members: &[],
    };
    let rows = show(&taken, tables, names, now_millis, out)?;
    Ok(RouteAnswer { rows, open })
}

/// Writes the kernel's own answer to a question, which takes one of several
/// members, if there are such. The tables need its links only.
pub fn route_got(
    question: &RouteQuestion,
    answer: &Route,
    members: &[NextHop],
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let body = Arc::new(answer.body.clone());
    let taken = Taken {
        question,
        packet: question.packet(tables)?,
        decision: Decision {
            kind: body.kind,
            hops: body.next_hops.as_slice().to_vec(),
            source: body.preferred_source,
            // That of a destination taken to be on a link has no number.
            table: match answer.table {
                table_id::UNSPEC => table_id::MAIN,
                table => table,
            },
            route: Some(answer.with_body(&body)),
            open: None,
        },
        members,
    };
    show(&taken, tables, names, now_millis, out)
}

fn show(
    taken: &Taken<'_>,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let context = Context {
        links: &tables.links,
        tables: Some(tables),
        now_millis,
        names,
    };
    show_one(taken, &taken.question.output, context, out)
}

/// Writes the one row of an answer.
pub(crate) fn show_one(
    row: &impl Show,
    output: &Output,
    context: Context<'_>,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let shape = Question {
        object: Object::Route,
        filter: Filter::default(),
        output: output.clone(),
    };
    let mut printer = Printer::new(&shape, context, out)?;
    printer.one(row)?;
    Ok(printer.close()?)
}

/// A packet and what became of it.
struct Taken<'a> {
    question: &'a RouteQuestion,
    packet: Packet,
    decision: Decision<'a>,
    /// Of which it takes one.
    members: &'a [NextHop],
}

impl Taken<'_> {
    fn body(&self) -> Option<&RouteBody> {
        self.decision.route.map(|route| &**route.body)
    }

    fn only_hop(&self) -> Option<&NextHop> {
        match &*self.decision.hops {
            [hop] => Some(hop),
            _ => None,
        }
    }

    /// Between which members it is, if there are several.
    fn several(&self) -> &[NextHop] {
        let hops = match self.members {
            [] => &self.decision.hops,
            members => members,
        };
        if hops.len() > 1 { hops } else { &[] }
    }

    fn is_v6(&self) -> bool {
        self.packet.destination.is_ipv6()
    }

    /// IPv6 answers show whose route it is; IPv4 ones do not.
    fn v6_body(&self) -> Option<&RouteBody> {
        self.body().filter(|_| self.is_v6())
    }

    /// `from ::` stands in every IPv6 answer.
    fn from(&self) -> Option<IpAddr> {
        let unspecified = || Some(std::net::Ipv6Addr::UNSPECIFIED.into());
        self.question
            .from
            .filter(|from| self.is_v6() || !from.is_unspecified())
            .or_else(|| unspecified().filter(|_| self.is_v6()))
    }

    /// The name of the link that it came in by: the question may have its
    /// number, or another name.
    fn came_in_by<'v>(&self, view: &View<'v>) -> Option<&'v str> {
        Some(&*view.link(self.packet.iif?)?.name)
    }

    /// The kernel tells the route's, not the packet's.
    fn tos(&self) -> u8 {
        self.decision.route.map_or(0, |route| route.tos)
    }

    fn is_over_loopback(&self, links: &Links) -> bool {
        let link = self.only_hop().and_then(|hop| links.get(hop.link));
        link.is_some_and(|link| link.flags & LOOPBACK != 0)
    }

    fn is_multicast(&self) -> bool {
        !self.is_v6() && self.decision.kind == kind::MULTICAST
    }

    fn cache_flags(&self, links: &Links) -> &'static [&'static str] {
        let joined = self.packet.destination == IpAddr::from([224, 0, 0, 1]);
        match self.decision.kind {
            kind::LOCAL => &["local"],
            kind::BROADCAST => &["local", "brd"],
            kind::MULTICAST if joined => &["local", "mc"],
            kind::MULTICAST => &["mc"],
            // One that came in is sent on (`__mkroute_input`).
            _ if self.packet.iif.is_none() && self.is_over_loopback(links) => &["local"],
            _ => &[],
        }
    }

    /// Metrics belong to the route; broadcast has none, nor has multicast
    /// by a route for more than that.
    fn metric_body(&self) -> Option<&RouteBody> {
        let route = self.decision.route?;
        let is_its_own = match self.decision.kind {
            kind::UNICAST | kind::LOCAL => true,
            kind::MULTICAST => route.prefix.prefix_len() >= 4,
            _ => false,
        };
        self.body().filter(|_| is_its_own)
    }
}

impl Show for Taken<'_> {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        let prefix = IpNet::from(self.packet.destination);
        if self.decision.kind != kind::UNICAST || view.details {
            visit.value("type", kind_name(self.decision.kind, view));
        }
        visit.value("dst", Value::Address(self.packet.destination));
        if let Some(from) = self.from() {
            visit.value("from", Value::Address(from));
        }
        let hop = self.only_hop();
        encap_fields(hop.and_then(|hop| hop.encap.as_deref()), view, visit);
        if self.tos() != 0 {
            visit.value("tos", Value::Name(view.names.ds_field(self.tos())));
        }
        if let Some(hop) = hop {
            gateway_fields(hop.gateway, prefix, visit);
            // A route out of a file has none.
            if hop.link != 0 {
                visit.value("dev", Value::Name(view.device(hop.link)));
            }
        }
        if self.decision.table != table_id::MAIN || view.details {
            let table = view.names.table(self.decision.table);
            visit.value("table", Value::Name(table));
        }
        if let Some(body) = self.v6_body().filter(|b| b.protocol != protocol::BOOT) {
            visit.value("protocol", Value::Name(view.names.protocol(body.protocol)));
        }
        if let Some(source) = self.decision.source {
            visit.value("prefsrc", Value::Address(source));
        }
        if let Some(route) = self.decision.route.filter(|_| self.is_v6()) {
            visit.value("metric", Value::Number(route.metric.into()));
        }
        visit.list("flags");
        if self.is_multicast() {
            visit.item(Value::Text(MULTICAST_FLAG));
        }
        visit.end_list();
        if self.packet.mark != 0 && !self.is_v6() {
            visit.value("mark", Value::Number(self.packet.mark.into()));
        }
        flow_fields(hop.map_or(0, |hop| hop.realms), view, visit);
        if let Some(uid) = self.question.uid.filter(|_| !self.is_v6()) {
            visit.value("uid", Value::Number(uid.into()));
        }
        if !self.is_v6() {
            visit.list("cache");
            for name in self.cache_flags(view.links) {
                visit.item(Value::Text(name));
            }
            visit.end_list();
        }
        if let Some(body) = self.metric_body() {
            metric_fields(body.metrics.as_deref(), view, visit);
        }
        if let Some(iif) = self.came_in_by(view) {
            visit.value("iif", Value::Text(iif));
        }
        if let Some(number) = self.v6_body().and_then(|body| body.preference) {
            visit.value("pref", preference(number));
        }
        if let Some(body) = self.body() {
            path_fields(&body.path, visit);
        }
        if !self.several().is_empty() {
            visit.list("nexthops");
            for hop in self.several() {
                visit.object_item();
                hop_fields(hop, prefix, Some(family_of(prefix)), view, visit);
                visit.end_item();
            }
            visit.end_list();
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        let prefix = IpNet::from(self.packet.destination);
        if self.decision.kind != kind::UNICAST || view.details {
            labelled(out, b"", kind_name(self.decision.kind, view));
        }
        let to = self.packet.destination;
        coloured(view, Colour::of_address(to), out, |out| {
            labelled(out, b"", Value::Address(to));
        });
        if let Some(from) = self.from() {
            coloured(view, Colour::of_address(from), out, |out| {
                labelled(out, b"from ", Value::Address(from));
            });
        }
        let hop = self.only_hop();
        encap_text(hop.and_then(|hop| hop.encap.as_deref()), view, out);
        if self.tos() != 0 {
            let tos = view.names.ds_field(self.tos());
            labelled(out, b"tos ", Value::Name(tos));
        }
        if let Some(hop) = hop {
            gateway_text(hop.gateway, prefix, view, out);
            if hop.link != 0 {
                device_text(hop.link, view, out);
            }
        }
        if self.decision.table != table_id::MAIN || view.details {
            let table = view.names.table(self.decision.table);
            labelled(out, b"table ", Value::Name(table));
        }
        if let Some(body) = self.v6_body().filter(|b| b.protocol != protocol::BOOT) {
            let name = view.names.protocol(body.protocol);
            labelled(out, b"proto ", Value::Name(name));
        }
        if let Some(source) = self.decision.source {
            source_text(source, view, out);
        }
        if let Some(route) = self.decision.route.filter(|_| self.is_v6()) {
            labelled(out, b"metric ", Value::Number(route.metric.into()));
        }
        if self.is_multicast() {
            labelled(out, b"", Value::Text(MULTICAST_FLAG));
        }
        if self.packet.mark != 0 && !self.is_v6() {
            labelled(out, b"mark ", Value::Number(self.packet.mark.into()));
        }
        flow_text(hop.map_or(0, |hop| hop.realms), view, out);
        if let Some(uid) = self.question.uid.filter(|_| !self.is_v6()) {
            labelled(out, b"uid ", Value::Number(uid.into()));
        }
        if let Some(body) = self.body() {
            path_text(&body.path, out);
        }
        self.cache_text(view, out);
        for hop in self.several() {
            out.push(view.line_break());
            hop_text(hop, prefix, Some(family_of(prefix)), view, out);
        }
        out.push(b'\n');
    }
}

impl Taken<'_> {
    /// The second line of an IPv4 answer; the end of an IPv6 one.
    fn cache_text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        if self.is_v6() {
            if let Some(body) = self.metric_body() {
                metric_text(body.metrics.as_deref(), out);
            }
            if let Some(number) = self.v6_body().and_then(|body| body.preference) {
                out.extend_from_slice(b"pref ");
                push_plain(out, preference(number));
            }
            return;
        }
        out.push(view.line_break());
        out.extend_from_slice(b"    cache ");
        for (at, name) in self.cache_flags(view.links).iter().enumerate() {
            out.push(if at == 0 { b'<' } else { b',' });
            out.extend_from_slice(name.as_bytes());
        }
        if !self.cache_flags(view.links).is_empty() {
            out.extend_from_slice(b"> ");
        }
        if let Some(body) = self.metric_body() {
            metric_text(body.metrics.as_deref(), out);
        }
        if let Some(iif) = self.came_in_by(view) {
            labelled(out, b"iif ", Value::Text(iif));
        }
    }
}
