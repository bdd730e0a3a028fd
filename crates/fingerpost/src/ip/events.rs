//! An event's text. Called by [`super::monitor`].

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

use linux::mirror::now_millis;
use netlink::decode::{self, Announcement, Decoded, Item, Netconf, NetconfSetting, Operation};
use netlink::message::{Message, kind};
use table::row::route::flag;
use table::{
    AF_INET, AF_INET6, Change, Link, NeighbourSample, NextHops, Route, Sample, Tables, Writer,
};
use view::{Context, Format, Monitored, Output, monitored};

use super::forwarding;
use super::hearing::list_links;
use super::monitor::{AF_MPLS, Object};
use super::session::{Session, complain};
use super::show;
use super::stamp::Stamp;
use super::stop::Stop;

/// `AF_BRIDGE`, `linux/socket.h`.
const AF_BRIDGE: u8 = 7;

/// `RTNL_FAMILY_IPMR` and `RTNL_FAMILY_IP6MR`, `linux/rtnetlink.h`.
const MULTICAST_FAMILIES: [u8; 2] = [128, 129];

/// `IFLA_EVENT_…` by number, `linux/if_link.h`, in `ip`'s words.
const HAPPENED: [&str; 7] = [
    "NONE",
    "REBOOT",
    "FEATURE CHANGE",
    "BONDING FAILOVER",
    "NOTIFY PEERS",
    "RESEND IGMP",
    "BONDING OPTION",
];

/// Writes events.
pub struct Teller {
    output: Output,
    labels: bool,
    link: Option<u32>,
    family: Option<u8>,
    /// Names of namespaces by their numbers here.
    namespaces: HashMap<i32, String>,
    /// Kinds of messages that are not shown, and were said to be.
    left_out: HashSet<u16>,
    text: Vec<u8>,
}

/// What of an event is shown.
struct Told {
    object: Object,
    is_gone: bool,
}

impl Teller {
    /// `link`: only events of this one.
    pub fn new(session: &Session, labels: bool, link: Option<u32>) -> Result<Self, Stop> {
        Ok(Self {
            // There is no JSON of events: `ip` writes text.
            output: Output {
                format: Format::Text,
                ..show::output(session)
            },
            labels,
            link,
            family: session.options.family,
            namespaces: session.names_by_id()?,
            left_out: HashSet::new(),
            text: Vec::new(),
        })
    }

    /// Takes a message: keeps `links` up to date, and writes it if it is
    /// wanted.
    pub fn tell(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        links: &mut Writer,
        wants: &dyn Fn(Object) -> bool,
        stamp: &Stamp,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        self.text.clear();
        let Some(told) = self.of_message(session, message, links)? else {
            return Ok(());
        };
        if !wants(told.object) {
            return Ok(());
        }
        out.write_all(stamp.now().as_bytes())?;
        if self.labels {
            out.write_all(label(told.object).as_bytes())?;
        }
        if told.is_gone {
            out.write_all(b"Deleted ")?;
        }
        match told.object {
            Object::Link => session.with_names(&self.text, || Ok(self.namespaces.clone()), out),
            _ => Ok(out.write_all(&self.text)?),
        }
    }

    /// The text of a message; `None`: nothing is shown of it.
    fn of_message(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        links: &mut Writer,
    ) -> Result<Option<Told>, Stop> {
        let payload = message.payload;
        let family = payload.first().copied().unwrap_or_default();
        let told = |object, is_gone| Ok(Some(Told { object, is_gone }));
        match message.kind {
            kind::NEWLINK | kind::DELLINK => {
                let is_gone = message.kind == kind::DELLINK;
                let is_shown = self.link_event(session, payload, family, is_gone, links)?;
                match is_shown {
                    true => told(Object::Link, is_gone),
                    false => Ok(None),
                }
            }
            kind::NEWNSID | kind::DELNSID => {
                self.nsid(session, payload)?;
                told(Object::Nsid, message.kind == kind::DELNSID)
            }
            kind::NEWNETCONF | kind::DELNETCONF => {
                let Ok(settings) = decode::netconf(payload) else {
                    return Ok(None);
                };
                let wanted = self.link.map(u32::cast_signed);
                if wanted.is_some() && settings.link != wanted {
                    return Ok(None);
                }
                let index = settings.link.and_then(|index| u32::try_from(index).ok());
                if index.is_some_and(|index| links.tables().links.get(index).is_none()) {
                    // A link's settings are told before the link is.
                    list_links(session, links)?;
                }
                self.netconf(session, &settings, links.tables());
                told(Object::Netconf, message.kind == kind::DELNETCONF)
            }
            kind::NEWPREFIX => {
                let Ok(prefix) = decode::announced_prefix(payload) else {
                    return Ok(None);
                };
                // As `ip`, which puts the label before it looks at the family.
                if self.family.is_none_or(|wanted| wanted == AF_INET6) {
                    self.with_context(session, links.tables(), |context, out| {
                        forwarding::prefix_text(&prefix, context, out);
                    });
                }
                told(Object::Prefix, false)
            }
            kind::NEWROUTE | kind::DELROUTE if MULTICAST_FAMILIES.contains(&family) => {
                let Ok(route) = decode::multicast_route(payload) else {
                    return Ok(None);
                };
                let output = self.output.clone();
                self.with_context(session, links.tables(), |context, out| {
                    forwarding::route_text(&route, &output, context, out);
                });
                told(Object::Mroute, message.kind == kind::DELROUTE)
            }
            kind::NEWSTATS => {
                self.left_out(message.kind, "counters of hardware");
                Ok(None)
            }
            _ => match decode::decode(message, now_millis()) {
                Ok(Decoded::Announcement(announcement)) => {
                    Ok(self.row(session, &announcement, message, links.tables()))
                }
                Ok(Decoded::Unknown(kind)) => {
                    self.left_out(kind, &format!("messages of type {kind}"));
                    Ok(None)
                }
                Ok(_) => Ok(None),
                Err(malformed) => {
                    complain(&format!("fingerpost: ip: monitor: {malformed}"));
                    Ok(None)
                }
            },
        }
    }

    /// Says once that events of a kind are not shown.
    fn left_out(&mut self, kind: u16, what: &str) {
        if self.left_out.insert(kind) {
            complain(&format!("fingerpost: ip: monitor: {what} are not shown"));
        }
    }

    /// A link came, changed or went; whether it is shown.
    fn link_event(
        &mut self,
        session: &Session,
        payload: &[u8],
        family: u8,
        is_gone: bool,
        links: &mut Writer,
    ) -> Result<bool, Stop> {
        let link = match decode::link(payload) {
            Ok(link) => link,
            Err(malformed) => {
                complain(&format!("fingerpost: ip: monitor: {malformed}"));
                return Ok(false);
            }
        };
        let is_port = family == AF_BRIDGE;
        let change = match (is_port, is_gone) {
            (false, true) => Some(Change::DeleteLink(link.index)),
            (false, false) => Some(Change::PutLink(link.clone())),
            (true, _) => flags_told(&link, links.tables()).map(Change::PutLink),
        };
        if let Some(change) = change {
            let applied = links.apply(change);
            applied.map_err(|full| Stop::Broken(full.into()))?;
        }
        if self.link.is_some_and(|wanted| wanted != link.index) {
            return Ok(false);
        }
        let mut tables = links.tables().clone();
        if self.output.details {
            let moving = vec![(link.index, decode::unannounced(payload))];
            tables.host.unannounced = Arc::new(Sample::new(now_millis(), moving));
        }
        let number = decode::link_event(payload).filter(|number| *number != 0);
        let happened = number.map(|number| {
            let known = HAPPENED.get(number as usize);
            known.map_or_else(|| number.to_string(), |name| (*name).to_owned())
        });
        let row = Monitored::Link {
            row: &link,
            happened: happened.as_deref(),
            is_port,
        };
        self.put(session, row, &tables);
        Ok(true)
    }

    fn with_context(
        &mut self,
        session: &Session,
        tables: &Tables,
        write: impl FnOnce(&Context<'_>, &mut Vec<u8>),
    ) {
        let context = Context {
            links: &tables.links,
            tables: Some(tables),
            now_millis: now_millis(),
            names: &session.names,
        };
        write(&context, &mut self.text);
    }

    fn put(&mut self, session: &Session, row: Monitored<'_>, tables: &Tables) {
        let context = Context {
            links: &tables.links,
            tables: Some(tables),
            now_millis: now_millis(),
            names: &session.names,
        };
        let of_one_link = self.link.is_some();
        monitored(row, of_one_link, &self.output, &context, &mut self.text);
    }

    /// A row of another table; `None`: it is not shown.
    fn row(
        &mut self,
        session: &Session,
        announcement: &Announcement,
        message: &Message<'_>,
        tables: &Tables,
    ) -> Option<Told> {
        let is_of = |link: u32| self.link.is_none_or(|wanted| wanted == link);
        let is_family = |family: u8| self.family.is_none_or(|wanted| wanted == family);
        let (object, row) = match &announcement.item {
            Item::Address(row) if is_of(row.link) => (Object::Address, Monitored::Address(row)),
            Item::Neighbour(row) if is_of(row.link) => {
                let family = match row.address.is_ipv4() {
                    true => AF_INET,
                    false => AF_INET6,
                };
                if !is_family(family) {
                    return None;
                }
                (Object::Neigh, Monitored::Neighbour(row))
            }
            Item::Fdb(row) if is_of(row.link) && is_family(AF_BRIDGE) => {
                (Object::Neigh, Monitored::Fdb(row))
            }
            Item::Route(row) if row.body.flags & flag::CLONED == 0 && self.is_over(row) => {
                (Object::Route, Monitored::Route(row))
            }
            Item::Nexthop(row) => (Object::Nexthop, Monitored::Nexthop(row)),
            Item::Rule(row) => (Object::Rule, Monitored::Rule(row)),
            Item::OtherRoute(_) => {
                self.left_out(message.kind, "routes of MPLS");
                return None;
            }
            _ => return None,
        };
        let mut tables = tables.clone();
        if let (Item::Neighbour(row), true) = (&announcement.item, self.output.statistics)
            && let Some(ages) = decode::neighbour_ages(message.payload)
        {
            let sample = vec![(row.key(), NeighbourSample { ages })];
            tables.neighbour_samples = Arc::new(Sample::new(now_millis(), sample));
        }
        self.put(session, row, &tables);
        Some(Told {
            object,
            is_gone: announcement.operation == Operation::Delete,
        })
    }

    /// Whether a route leads over the link that is asked for.
    fn is_over(&self, row: &Route) -> bool {
        let Some(wanted) = self.link else {
            return true;
        };
        matches!(&row.body.next_hops, NextHops::One(hop) if hop.link == wanted)
    }

    /// A namespace has, or had, a number here.
    fn nsid(&mut self, session: &Session, payload: &[u8]) -> Result<(), Stop> {
        let Ok(Some(id)) = decode::netns_id(payload) else {
            return Ok(());
        };
        if !self.namespaces.contains_key(&id) {
            self.namespaces.extend(session.names_by_id()?);
        }
        let mut text = format!("nsid {id} ");
        if let Some(name) = self.namespaces.get(&id) {
            text.push_str(&format!("(iproute2 netns name: {name})"));
        }
        text.push('\n');
        self.text = text.into_bytes();
        Ok(())
    }

    fn netconf(&mut self, session: &Session, told: &Netconf, tables: &Tables) {
        let family = match told.family {
            AF_INET => "inet".to_owned(),
            AF_INET6 => "inet6".to_owned(),
            AF_MPLS => "mpls".to_owned(),
            other => format!("unknown({other})"),
        };
        self.text = format!("{family} ").into_bytes();
        match told.link {
            Some(-1) => self.text.extend_from_slice(b"all "),
            Some(-2) => self.text.extend_from_slice(b"default "),
            Some(index) => {
                let context = Context {
                    links: &tables.links,
                    tables: None,
                    now_millis: 0,
                    names: &session.names,
                };
                let index = index.cast_unsigned();
                view::device(index, &self.output, &context, &mut self.text);
            }
            None => {}
        }
        for (setting, value) in &told.settings {
            let (name, value) = setting_words(*setting, *value);
            self.text
                .extend_from_slice(format!("{name} {value} ").as_bytes());
        }
        self.text.push(b'\n');
    }
}

/// A link that is there, with the flags that a bridge tells of its port.
fn flags_told(told: &Link, tables: &Tables) -> Option<Link> {
    let known = tables.links.get(told.index)?;
    Some(Link {
        flags: told.flags,
        ..(**known).clone()
    })
}

fn setting_words(setting: NetconfSetting, value: i32) -> (&'static str, &'static str) {
    let on_off = if value != 0 { "on" } else { "off" };
    match setting {
        NetconfSetting::Forwarding => ("forwarding", on_off),
        NetconfSetting::RpFilter => (
            "rp_filter",
            match value {
                0 => "off",
                1 => "strict",
                2 => "loose",
                _ => "unknown mode",
            },
        ),
        NetconfSetting::McForwarding => ("mc_forwarding", on_off),
        NetconfSetting::ProxyNeigh => ("proxy_neigh", on_off),
        NetconfSetting::IgnoreRoutesWithLinkdown => ("ignore_routes_with_linkdown", on_off),
        NetconfSetting::Input => ("input", on_off),
    }
}

/// What stands before an event of an object.
fn label(object: Object) -> &'static str {
    match object {
        Object::Link => "[LINK]",
        Object::Address => "[ADDR]",
        Object::Route => "[ROUTE]",
        Object::Mroute => "[MROUTE]",
        Object::Prefix => "[PREFIX]",
        Object::Neigh => "[NEIGH]",
        Object::Netconf => "[NETCONF]",
        Object::Rule => "[RULE]",
        Object::Nsid => "[NSID]",
        Object::Nexthop => "[NEXTHOP]",
        Object::Stats => "[STATS]",
    }
}
