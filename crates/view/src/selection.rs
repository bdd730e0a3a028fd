//! A filter made ready: names become numbers once, then each row is a few
//! comparisons.

use std::net::IpAddr;

use ipnet::IpNet;
use table::row::address::flag as address_flag;
use table::row::neighbour::{flag as neighbour_flag, state};
use table::row::route::{flag, table_id};
use table::{
    AF_INET, AF_INET6, Address, FdbEntry, Link, LinkLayerAddress, Links, Neighbour, Nexthop,
    NoRoute, Route, RouteBody, Rule,
};
use thiserror::Error;

use crate::address::family;
use crate::context::Context;
use crate::link::OPER_STATES;
use crate::neighbour::STATES;
use crate::path_patterns::PathPattern;
use crate::pattern;
use crate::plan::KernelFilter;
use crate::question::{Filter, Object, Question};
use crate::route::KINDS;
use crate::rule_match::RuleMatch;
use words::NameFile;

/// A question that has no answer: what is wrong with it and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadQuestion {
    /// No link has this name.
    #[error("Cannot find device \"{0}\": `fingerpost link` lists the names")]
    NoSuchDevice(String),
    /// The same, of arp and ifconfig.
    #[error("no link is named `{0}`; `fingerpost link` lists them")]
    NoLink(String),
    /// The link is no VRF.
    #[error("Device \"{0}\" is not a VRF: `fingerpost link --kind vrf` lists them")]
    NotAVrf(String),
    /// Neither a family of addresses nor empty.
    #[error("Family {0} is not known: give 4 or 6")]
    BadFamily(u8),
    /// A prefix or address of the other family than the one asked for.
    #[error("{address} is not of IPv{family}: leave out one of the two")]
    FamiliesDiffer {
        /// The address or prefix.
        address: String,
        /// The family asked for.
        family: u8,
    },
    /// Text that is no link-layer address.
    #[error("\"{0}\" is not a link-layer address: write octets like 00:0c:29:65:4d:48")]
    BadMac(String),
    /// A name that stands for no number.
    #[error("{what} \"{name}\" is not known: give a number, or a name out of {file}")]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// Where names are kept.
        file: &'static str,
    },
    /// A name out of a fixed set that is not in it.
    #[error("{what} \"{name}\" is not known: give one of {valid}")]
    NotOneOf {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        valid: String,
    },
    /// A pattern of AS paths or communities that is none: what is wrong.
    #[error("{0}")]
    BadPattern(String),
    /// No way leads there (`route get`).
    #[error(
        "{why}: there is no way to {to}; `fingerpost rule` and `fingerpost route --table all` show what decided"
    )]
    NoRoute {
        /// Where the packet goes.
        to: IpAddr,
        /// The kernel's word for it.
        why: NoRoute,
    },
    /// The same in the rows of a feed or a file.
    #[error(
        "{why}: {source_name} has no way to {to} in table {table}; `fingerpost route --source {source_name} --table all` shows its routes"
    )]
    NoRouteOf {
        /// Where the packet goes.
        to: IpAddr,
        /// Whose rows they are.
        source_name: String,
        /// The table, by name or number.
        table: String,
        /// Why.
        why: NoRoute,
    },
    /// What says something to the kernel alone, asked of a feed's rows.
    #[error(
        "`{word}` is for the kernel's rules, and `{source_name}` has routes and no rules: leave it out"
    )]
    OfRules {
        /// The word.
        word: &'static str,
        /// Whose rows are asked for.
        source_name: String,
    },
    /// A table, asked of the kernel.
    #[error("`table` is for the rows of a `source`: in the kernel rules say which table decides")]
    TableByRules,
    /// A table said twice, by itself and by a VRF.
    #[error("`table` and `vrf` both say which table: leave out one of the two")]
    TableTwice,
    /// A position among rows of another table.
    #[error("The walk cannot go on there: it was begun with another question; begin again")]
    ForeignPosition,
    /// More prefixes differ than can be watched (`route diff --watch`).
    #[error(
        "more than {0} prefixes differ, too many to watch: ask for fewer, by table, protocol or prefix"
    )]
    TooManyDiffer(usize),
    /// A column that rows do not have.
    #[error("Field \"{name}\" is not known: there are {valid}")]
    UnknownField {
        /// The name.
        name: String,
        /// The columns there are.
        valid: String,
    },
}

/// Which tables of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InTable {
    Any,
    Only(u32),
}

/// A filter made ready: names became numbers, once. For whoever has rows
/// and prints none, to change those that a question would show.
#[derive(Debug, Clone)]
pub struct Selection {
    pub(crate) object: Object,
    pub(crate) family: Option<u8>,
    pub(crate) device: Option<u32>,
    /// Links that have the asked properties, in order; `None`: any.
    pub(crate) links: Option<Vec<u32>>,
    pub(crate) within: Option<IpNet>,
    pub(crate) exact: Option<IpNet>,
    pub(crate) covering: Option<IpNet>,
    pub(crate) mac: Option<LinkLayerAddress>,
    states: u16,
    stateless: bool,
    pub(crate) in_table: InTable,
    pub(crate) protocol: Option<u8>,
    pub(crate) kind: Option<u8>,
    scope: Option<u8>,
    pub(crate) source: Option<IpAddr>,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) id: Option<u32>,
    groups: bool,
    pub(crate) priority: Option<u32>,
    rule: RuleMatch,
    pub(crate) proxy: bool,
    vlan: Option<u16>,
    pub(crate) master: Option<u32>,
    /// Flags that addresses must have, and those that they must not.
    flags: (u32, u32),
    label: Option<Label>,
    /// Of forwarding entries: the bridge and its ports, in order.
    ports: Vec<u32>,
    /// Of routes only those with one next hop are picked by it.
    one_hop: bool,
    path: PathPattern,
    /// Routes from a prefix to another, in the order of a table.
    pub(crate) between: Option<(IpNet, IpNet)>,
    /// Links by their index, next hops by their id, ends included.
    pub(crate) numbers: Option<(u32, u32)>,
}

/// A pattern of labels. An address without one has the name of its link.
#[derive(Debug, Clone)]
struct Label {
    pattern: Box<str>,
    /// Links whose name is of the pattern, in order.
    links: Vec<u32>,
}

impl Label {
    fn new(filter: &Filter, links: &Links) -> Option<Self> {
        let pattern = filter.label.as_deref()?;
        let named = links
            .iter()
            .filter(|link| pattern::matches(pattern, &link.name));
        Some(Self {
            pattern: pattern.into(),
            links: named.map(|link| link.index).collect(),
        })
    }

    fn is_of(&self, row: &Address) -> bool {
        match row.label.as_deref() {
            Some(label) => pattern::matches(&self.pattern, label),
            None => self.links.binary_search(&row.link).is_ok(),
        }
    }
}

impl Selection {
    /// Of a table all rows, for who narrows them by what it has resolved.
    pub(crate) fn all_of(object: Object) -> Self {
        Self {
            object,
            family: None,
            device: None,
            links: None,
            within: None,
            exact: None,
            covering: None,
            mac: None,
            states: u16::MAX,
            stateless: true,
            in_table: InTable::Any,
            protocol: None,
            kind: None,
            scope: None,
            source: None,
            gateway: None,
            id: None,
            groups: false,
            priority: None,
            rule: RuleMatch::default(),
            proxy: false,
            vlan: None,
            master: None,
            flags: (0, 0),
            label: None,
            ports: Vec::new(),
            one_hop: false,
            path: PathPattern::any(),
            between: None,
            numbers: None,
        }
    }

    /// Reads a question's filter. O(links) when it asks for properties of
    /// links, else O(log links).
    pub fn new(question: &Question, context: &Context<'_>) -> Result<Self, BadQuestion> {
        let filter = &question.filter;
        let object = question.object;
        let device = |name: &String| {
            let found = context.links.by_name(name);
            found.ok_or_else(|| BadQuestion::NoSuchDevice(name.clone()))
        };
        let names = |file, what, name: &Option<String>| {
            name.as_deref()
                .map(|name| number_of(context, file, what, name))
                .transpose()
        };
        let master = filter.master.as_ref().map(device).transpose()?;
        let vrf = filter.vrf.as_ref().map(device).transpose()?;
        let vrf_table = vrf
            .map(|link| {
                let not_one = || BadQuestion::NotAVrf(link.name.to_string());
                link.vrf_table.ok_or_else(not_one)
            })
            .transpose()?;
        let (states, stateless) = neighbour_states(object, &filter.state)?;
        let octet = |number: Option<u32>| number.and_then(|n| u8::try_from(n).ok());
        Ok(Self {
            object,
            family: asked_family(object, filter)?,
            device: filter
                .dev
                .as_ref()
                .map(device)
                .transpose()?
                .map(|l| l.index),
            links: matching_links(
                object,
                filter,
                context.links,
                master.map(|link| link.index),
                vrf.filter(|_| object != Object::Route).map(|vrf| vrf.index),
            )?,
            within: filter.to.map(|net| net.trunc()),
            exact: filter.exact.map(|net| net.trunc()),
            covering: filter.covering.map(|net| net.trunc()),
            mac: filter.mac.as_deref().map(parse_mac).transpose()?,
            states,
            stateless,
            in_table: in_table(object, filter, vrf_table, context)?,
            protocol: octet(names(NameFile::Protocols, "Protocol", &filter.proto)?),
            kind: filter.route_type.as_deref().map(route_kind).transpose()?,
            scope: octet(names(NameFile::Scopes, "Scope", &filter.scope)?),
            source: filter.src,
            gateway: filter.via,
            id: filter.id,
            groups: filter.groups,
            priority: filter.priority,
            rule: filter.rule.clone().unwrap_or_default(),
            proxy: filter.proxy,
            vlan: filter.vlan,
            master: master.map(|link| link.index),
            flags: address_flags(&filter.flags)?,
            ports: ports(object, master.map(|link| link.index), context.links),
            label: Label::new(filter, context.links),
            one_hop: filter.one_hop,
            path: PathPattern::new(filter).map_err(BadQuestion::BadPattern)?,
            between: None,
            numbers: None,
        })
    }

    fn has_family(&self, address: IpAddr) -> bool {
        self.family.is_none_or(|asked| asked == family(address))
    }

    fn on_link(&self, link: u32) -> bool {
        self.device.is_none_or(|device| device == link)
            && self
                .links
                .as_ref()
                .is_none_or(|links| links.binary_search(&link).is_ok())
    }

    fn picks_links(&self) -> bool {
        self.device.is_some() || self.links.is_some()
    }

    /// Whether routes are picked by their table and family and by nothing
    /// else: then all of them are wanted, for tables hold no cloned ones.
    pub(crate) fn is_by_table_only(&self) -> bool {
        let prefix = self.within.or(self.exact).or(self.covering);
        let number = self.id.or(self.priority);
        let kind = self.protocol.or(self.kind).or(self.scope);
        prefix.is_none()
            && number.is_none()
            && kind.is_none()
            && self.source.or(self.gateway).is_none()
            && !self.picks_links()
            && self.path.is_any()
    }

    /// Whether addresses are picked by something of their own, so that
    /// links without a match are left out.
    pub(crate) fn picks_addresses(&self) -> bool {
        self.family.is_some()
            || self.within.is_some()
            || self.exact.is_some()
            || self.scope.is_some()
            || self.flags != (0, 0)
            || self.label.is_some()
    }

    /// What of it a dump of the kernel can leave out by itself.
    pub fn kernel_filter(&self) -> KernelFilter {
        KernelFilter::of(self)
    }

    /// Whether a link that has no address at all is shown, where addresses
    /// are picked by something of their own.
    pub(crate) fn shows_bare_links(&self) -> bool {
        self.family.is_none() && self.within.is_none() && self.exact.is_none()
    }

    /// The prefix that addresses must be in, if that narrows them: where
    /// to seek.
    pub(crate) fn inside(&self) -> Option<IpNet> {
        let exact_host = self
            .exact
            .filter(|net| net.prefix_len() == net.max_prefix_len());
        let narrows = |net: &IpNet| net.prefix_len() > 0;
        exact_host.or(self.within).filter(narrows)
    }

    /// Whether it has a link.
    pub fn link(&self, link: &Link) -> bool {
        self.on_link(link.index) && self.mac.is_none_or(|mac| mac == link.address)
    }

    /// Whether it has an address.
    pub fn address(&self, row: &Address) -> bool {
        self.has_family(row.local)
            && self.within.is_none_or(|net| net.contains(&row.local))
            && self.exact.is_none_or(|net| {
                net.addr() == row.local && net.prefix_len() == row.prefix_len
                    || net.prefix_len() == net.max_prefix_len() && net.addr() == row.local
            })
            && self.scope.is_none_or(|scope| scope == row.scope)
            && row.flags & self.flags.0 == self.flags.0
            && row.flags & self.flags.1 == 0
            && self.label.as_ref().is_none_or(|label| label.is_of(row))
    }

    /// Whether it has a neighbour.
    #[inline]
    pub fn neighbour(&self, row: &Neighbour) -> bool {
        row.proxy == self.proxy
            && self.has_family(row.address)
            && (self.proxy
                || row.state & self.states != 0
                || row.flags & neighbour_flag::EXT_LEARNED != 0
                || (row.state == state::NONE && self.stateless))
            && (!self.picks_links() || self.on_link(row.link))
            && self.within.is_none_or(|net| net.contains(&row.address))
            && self.exact.is_none_or(|net| net.contains(&row.address))
            && self.mac.is_none_or(|mac| mac == row.lladdr)
            && self.protocol.is_none_or(|number| number == row.protocol)
    }

    /// Whether it has a route.
    #[inline]
    pub fn route(&self, row: &Route<&RouteBody>) -> bool {
        let body = row.body;
        self.has_family(row.prefix.addr())
            && match self.in_table {
                InTable::Any => true,
                InTable::Only(table) => table == row.table,
            }
            && body.flags & flag::CLONED == 0
            && self.exact.is_none_or(|net| net == row.prefix)
            && self.within.is_none_or(|net| net.contains(&row.prefix))
            && self.covering.is_none_or(|net| row.prefix.contains(&net))
            && self.protocol.is_none_or(|number| number == body.protocol)
            && self.kind.is_none_or(|kind| kind == body.kind)
            && self.scope.is_none_or(|scope| scope == body.scope)
            && self.priority.is_none_or(|metric| metric == row.metric)
            && self.id.is_none_or(|id| body.nexthop_id == Some(id))
            && (self.source.is_none() || self.source == body.preferred_source)
            && self.hops(body)
            && self.path.matches(&body.path)
    }

    fn hops(&self, body: &RouteBody) -> bool {
        if !self.picks_links() && self.gateway.is_none() {
            return true;
        }
        let hops = body.next_hops.as_slice();
        if self.one_hop && hops.len() != 1 {
            return false;
        }
        hops.iter().any(|hop| {
            (!self.picks_links() || self.on_link(hop.link))
                && (self.gateway.is_none() || self.gateway == hop.gateway)
        })
    }

    /// Whether it has a next-hop object.
    pub fn nexthop(&self, row: &Nexthop) -> bool {
        self.id.is_none_or(|id| id == row.id)
            && (!self.groups || !row.group.is_empty())
            && self.family.is_none_or(|family| family == row.family)
            && (self.gateway.is_none() || self.gateway == row.gateway)
            && self.protocol.is_none_or(|number| number == row.protocol)
            && (!self.picks_links() || row.link.is_some_and(|link| self.on_link(link)))
    }

    /// Whether it has a rule.
    pub fn rule(&self, row: &Rule) -> bool {
        let in_table = match self.in_table {
            InTable::Any => true,
            InTable::Only(table) => row.table == table,
        };
        in_table
            && self.family.is_none_or(|family| family == row.family)
            && self.priority.is_none_or(|number| number == row.priority)
            && self.protocol.is_none_or(|number| number == row.protocol)
            && self
                .source
                .is_none_or(|address| row.source.is_some_and(|net| net.contains(&address)))
            && self.rule.is_of(row)
    }

    pub(crate) fn fdb(&self, row: &FdbEntry) -> bool {
        self.on_link(row.link)
            && self.mac.is_none_or(|mac| mac == row.lladdr)
            && self.master.is_none_or(|master| {
                row.master == Some(master) || self.ports.binary_search(&row.link).is_ok()
            })
            && self.vlan.is_none_or(|vlan| row.vlan == Some(vlan))
            && (row.state & self.states != 0 || row.state == state::NONE && self.stateless)
    }
}

/// The family asked for; routes and rules default to IPv4 as `ip` does
/// unless something else tells.
fn asked_family(object: Object, filter: &Filter) -> Result<Option<u8>, BadQuestion> {
    let asked = match filter.family {
        None => None,
        Some(4) => Some(AF_INET),
        Some(6) => Some(AF_INET6),
        Some(other) => return Err(BadQuestion::BadFamily(other)),
    };
    let nets = [filter.to, filter.exact, filter.covering].map(|net| net.map(|net| net.addr()));
    let mut told = nets.into_iter().flatten().chain(filter.src);
    let told = told.next();
    match (asked, told) {
        (Some(asked), Some(address)) if asked != family(address) => {
            Err(BadQuestion::FamiliesDiffer {
                address: address.to_string(),
                family: filter.family.unwrap_or(0),
            })
        }
        (Some(asked), _) => Ok(Some(asked)),
        (None, Some(address)) => Ok(Some(family(address))),
        (None, None) => Ok(match object {
            Object::Rule => Some(AF_INET),
            Object::Route
                if !matches!(filter.table.as_deref(), Some("all" | "0"))
                    && filter.via.is_none()
                    && filter.id.is_none() =>
            {
                Some(AF_INET)
            }
            _ => None,
        }),
    }
}

fn in_table(
    object: Object,
    filter: &Filter,
    vrf_table: Option<u32>,
    context: &Context<'_>,
) -> Result<InTable, BadQuestion> {
    let asked = match filter.table.as_deref() {
        Some("all") => return Ok(InTable::Any),
        Some(name) => Some(table_number(context, name)?),
        None => vrf_table,
    };
    Ok(match (asked, object) {
        (Some(0), _) => InTable::Any,
        (Some(table), _) => InTable::Only(table),
        (None, Object::Route) => InTable::Only(table_id::MAIN),
        (None, _) => InTable::Any,
    })
}

/// The number of a routing table, by its name or number.
pub(crate) fn table_number(context: &Context<'_>, name: &str) -> Result<u32, BadQuestion> {
    number_of(context, NameFile::Tables, "Table", name)
}

fn number_of(
    context: &Context<'_>,
    file: NameFile,
    what: &'static str,
    name: &str,
) -> Result<u32, BadQuestion> {
    let unknown = || BadQuestion::UnknownName {
        what,
        name: name.into(),
        file: file.file_name(),
    };
    context.names.number(file, name).ok_or_else(unknown)
}

fn route_kind(name: &str) -> Result<u8, BadQuestion> {
    let at = KINDS.iter().position(|kind| *kind == name);
    at.and_then(|at| u8::try_from(at).ok())
        .or_else(|| name.parse().ok())
        .ok_or_else(|| BadQuestion::NotOneOf {
            what: "Type",
            name: name.into(),
            valid: KINDS[1..10].join(", "),
        })
}

/// The mask of the states asked for, and whether none at all is one.
/// Without any: all but `noarp` and `none`, as `ip neigh` has it.
fn neighbour_states(object: Object, names: &[String]) -> Result<(u16, bool), BadQuestion> {
    match object {
        Object::Fdb if names.is_empty() => return Ok((u16::MAX, true)),
        Object::Neigh | Object::Fdb if !names.is_empty() => {}
        _ => return Ok((0xff & !state::NOARP, false)),
    }
    let (mut mask, mut none) = (0, false);
    for name in names {
        match name.to_ascii_uppercase().as_str() {
            "ALL" => (mask, none) = (u16::MAX, true),
            "NONE" => none = true,
            // The word of `bridge fdb` for entries that do not age.
            "STATIC" if object == Object::Fdb => mask |= state::NOARP,
            upper => {
                mask |= STATES
                    .iter()
                    .find(|(_, state)| *state == upper)
                    .map(|(bit, _)| *bit)
                    .ok_or_else(|| BadQuestion::NotOneOf {
                        what: "State",
                        name: name.clone(),
                        valid: format!(
                            "{}, none, all",
                            STATES.map(|(_, state)| state).join(", ").to_lowercase()
                        ),
                    })?;
            }
        }
    }
    Ok((mask, none))
}

/// The links that have the asked properties; `None` when none is asked.
/// O(links), once a question.
fn matching_links(
    object: Object,
    filter: &Filter,
    links: &Links,
    master: Option<u32>,
    vrf: Option<u32>,
) -> Result<Option<Vec<u32>>, BadQuestion> {
    let states = oper_states(object, &filter.state)?;
    // The master of a forwarding entry is a field of its own.
    let master = master.filter(|_| object != Object::Fdb);
    let asked = filter.name.is_some()
        || filter.up
        || filter.nomaster
        || filter.kind.is_some()
        || filter.group.is_some()
        || master.is_some()
        || vrf.is_some()
        || states.is_some();
    if !asked {
        return Ok(None);
    }
    let name_fits = |link: &Link, pattern: &str| {
        let mut names = std::iter::once(&link.name).chain(&link.alt_names);
        names.any(|name| pattern::matches(pattern, name))
    };
    let fits = |link: &Link| {
        filter.name.as_deref().is_none_or(|p| name_fits(link, p))
            && (!filter.up || link.is_up())
            && (!filter.nomaster || link.master.is_none())
            && filter
                .kind
                .as_deref()
                .is_none_or(|kind| is_of_kind(link, kind))
            && filter.group.is_none_or(|group| group == link.group)
            && (master.is_none() || master == link.master)
            && vrf.is_none_or(|vrf| link.index == vrf || link.master == Some(vrf))
            && states.as_ref().is_none_or(|s| s.contains(&link.oper_state))
    };
    // Links in the order of indexes: sorted already.
    Ok(Some(
        links.iter().filter(|l| fits(l)).map(|l| l.index).collect(),
    ))
}

/// A bridge and its ports, whose own entries name no bridge.
fn ports(object: Object, bridge: Option<u32>, links: &Links) -> Vec<u32> {
    let Some(bridge) = bridge.filter(|_| object == Object::Fdb) else {
        return Vec::new();
    };
    let ports = links.iter();
    let ports = ports.filter(|link| link.index == bridge || link.master == Some(bridge));
    ports.map(|link| link.index).collect()
}

/// `veth`, or `bridge_slave`: of what its master makes it.
fn is_of_kind(link: &Link, kind: &str) -> bool {
    match kind.strip_suffix("_slave") {
        Some(kind) => link.slave_kind.as_deref() == Some(kind),
        None => link.kind.as_deref() == Some(kind),
    }
}

/// `IFA_F_…` by the names of conditions: those that are wanted, and those
/// that are not.
fn address_flags(names: &[String]) -> Result<(u32, u32), BadQuestion> {
    let (mut with, mut without) = (0, 0);
    for name in names {
        let (is_without, plain) = match name.strip_prefix('-') {
            Some(plain) => (true, plain),
            None => (false, name.as_str()),
        };
        let known = ADDRESS_FLAGS.iter().find(|(known, ..)| *known == plain);
        let (_, bit, inverted) = known.ok_or_else(|| BadQuestion::NotOneOf {
            what: "Flag",
            name: name.clone(),
            valid: ADDRESS_FLAGS.map(|(name, ..)| name).join(", "),
        })?;
        *match *inverted != is_without {
            true => &mut without,
            false => &mut with,
        } |= bit;
    }
    Ok((with, without))
}

/// Names of flags of addresses; whether the name is for those without.
const ADDRESS_FLAGS: [(&str, u32, bool); 14] = [
    ("permanent", address_flag::PERMANENT, false),
    ("dynamic", address_flag::PERMANENT, true),
    ("secondary", address_flag::SECONDARY, false),
    ("primary", address_flag::SECONDARY, true),
    ("deprecated", address_flag::DEPRECATED, false),
    ("tentative", address_flag::TENTATIVE, false),
    ("dadfailed", address_flag::DADFAILED, false),
    ("nodad", address_flag::NODAD, false),
    ("optimistic", address_flag::OPTIMISTIC, false),
    ("home", address_flag::HOMEADDRESS, false),
    ("mngtmpaddr", address_flag::MANAGETEMPADDR, false),
    ("noprefixroute", address_flag::NOPREFIXROUTE, false),
    ("autojoin", address_flag::MCAUTOJOIN, false),
    ("stable-privacy", address_flag::STABLE_PRIVACY, false),
];

/// Whether addresses can be picked by a flag of this name.
pub fn address_flag(name: &str) -> bool {
    ADDRESS_FLAGS.iter().any(|(known, ..)| *known == name)
}

/// The bits of a neighbour's state by its name; `all` and `none` are
/// states as well, without a bit.
pub fn states_of(name: &str) -> Option<u16> {
    match name.to_ascii_uppercase().as_str() {
        "ALL" | "NONE" => Some(0),
        upper => {
            let known = STATES.iter().find(|(_, state)| *state == upper);
            known.map(|(bit, _)| *bit)
        }
    }
}

fn oper_states(object: Object, names: &[String]) -> Result<Option<Vec<u8>>, BadQuestion> {
    if !matches!(object, Object::Link | Object::Addr) || names.is_empty() {
        return Ok(None);
    }
    let number = |name: &String| {
        let upper = name.to_ascii_uppercase();
        let at = OPER_STATES.iter().position(|state| *state == upper);
        at.map(|at| at as u8).ok_or_else(|| BadQuestion::NotOneOf {
            what: "State",
            name: name.clone(),
            valid: OPER_STATES.join(", ").to_lowercase(),
        })
    };
    names.iter().map(number).collect::<Result<_, _>>().map(Some)
}

/// Octets in hexadecimal, one or two digits each, with `:` or `-`.
fn parse_mac(text: &str) -> Result<LinkLayerAddress, BadQuestion> {
    let octet = |digits: &str| {
        let plain =
            (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u8::from_str_radix(digits, 16).ok())?
    };
    text.split([':', '-'])
        .map(octet)
        .collect::<Option<Vec<u8>>>()
        .and_then(|octets| LinkLayerAddress::new(&octets))
        .ok_or_else(|| BadQuestion::BadMac(text.into()))
}
