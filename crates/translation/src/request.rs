//! What is asked: one line of JSON.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use nat::{FlowView, LeaseView, MappingView, State};
use serde::{Deserialize, Serialize};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// Each conversation
    Flows,
    /// Outside ports that flows share
    Mappings,
    /// Who counts, and what each has
    Subscribers,
    /// Blocks of outside ports that somebody has
    Blocks,
    /// Outside addresses
    Pools,
    /// Ports that inside hosts asked for (PCP, NAT-PMP)
    Leases,
    /// Protocols that are helped
    Helpers,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Rows of a table.
    Show {
        /// Which.
        table: Table,
        /// Which rows of it.
        filter: Filter,
        /// Their number instead of them.
        count: bool,
        /// So many rows at most; `None`: all.
        limit: Option<usize>,
        /// So many inside addresses instead, those with the most rows; of
        /// subscribers those with the most sessions.
        top: Option<usize>,
        /// Rows behind this place, where an answer said that it goes on.
        #[serde(default)]
        after: Option<String>,
    },
    /// Ends flows.
    Clear {
        /// Which.
        filter: Filter,
    },
    /// Reads the rules again.
    Reload,
    /// Whose an alias port is.
    Who {
        /// The alias address.
        alias: Ipv4Addr,
        /// The port.
        port: u16,
    },
    /// What was counted, and how much there is.
    Statistics,
}

impl Request {
    /// For all rows of a table that are meant.
    pub fn rows(table: Table, filter: Filter) -> Self {
        Self::Show {
            table,
            filter,
            count: false,
            limit: None,
            top: None,
            after: None,
        }
    }

    /// As it is sent.
    pub fn line(&self) -> Vec<u8> {
        // Plain data: it does not fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Which rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Of an inside address or prefix
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub inside: Option<Ipv4Net>,
    /// Of an outside address of ours or a prefix
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub alias: Option<Ipv4Net>,
    /// Of an outside port of ours
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// With a remote address or prefix
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub remote: Option<Ipv4Net>,
    /// Of a protocol: tcp, udp, icmp, gre or a number
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol)]
    pub protocol: Option<u8>,
}

/// An IPv4 address or prefix.
pub fn prefix(text: &str) -> Result<Ipv4Net, String> {
    let address = || text.parse::<Ipv4Addr>().ok().map(Ipv4Net::from);
    let prefix = text.parse().ok().or_else(address);
    prefix.ok_or_else(|| "an IPv4 address or prefix".to_owned())
}

/// A protocol by name or number.
pub fn protocol(text: &str) -> Result<u8, String> {
    match text {
        "icmp" => Ok(packet::protocol::ICMP),
        "tcp" => Ok(packet::protocol::TCP),
        "udp" => Ok(packet::protocol::UDP),
        "gre" => Ok(packet::protocol::GRE),
        number => number
            .parse()
            .map_err(|_| "tcp, udp, icmp, gre or a number".to_owned()),
    }
}

impl Filter {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it names something that rows of a table do not have.
    pub fn stray(&self, table: Table) -> Option<&'static str> {
        let has_remote = matches!(table, Table::Flows | Table::Mappings | Table::Leases);
        let has_inside = has_remote || matches!(table, Table::Subscribers | Table::Blocks);
        let has_port = has_remote || table == Table::Blocks;
        let strays = [
            (self.remote.is_some() && !has_remote, "--remote"),
            (self.protocol.is_some() && !has_remote, "--protocol"),
            (self.inside.is_some() && !has_inside, "--inside"),
            (self.port.is_some() && !has_port, "--port"),
            (self.alias.is_some() && table == Table::Helpers, "--alias"),
        ];
        strays.iter().find(|(is, _)| *is).map(|(_, name)| *name)
    }

    /// Whether a flow is meant.
    pub fn fits_flow(&self, flow: &FlowView) -> bool {
        self.fits(
            flow.inside,
            Some(flow.alias),
            Some(flow.remote),
            flow.protocol,
        ) && self.port.is_none_or(|port| port == flow.alias_port)
    }

    /// Whether a mapping is meant.
    pub fn fits_mapping(&self, mapping: &MappingView) -> bool {
        let alias = Some(mapping.alias);
        self.fits(mapping.inside, alias, mapping.remote, mapping.protocol)
            && self.port.is_none_or(|port| port == mapping.alias_port)
    }

    /// Whether a lease is meant.
    pub fn fits_lease(&self, lease: &LeaseView) -> bool {
        let (alias, remote) = (Some(lease.alias), lease.remote.map(|end| end.0));
        let port = |port: u16| (0..lease.ports).contains(&port.wrapping_sub(lease.alias_port));
        self.fits(lease.inside, alias, remote, lease.protocol) && self.port.is_none_or(port)
    }

    fn fits(&self, inside: IpAddr, alias: Option<IpAddr>, remote: Option<IpAddr>, of: u8) -> bool {
        fits(self.inside, Some(inside))
            && fits(self.alias, alias)
            && fits(self.remote, remote)
            && self.protocol.is_none_or(|protocol| protocol == of)
    }

    /// Whether a subscriber's range is meant, with an alias address.
    pub fn fits_range(&self, first: Ipv4Addr, last: Ipv4Addr, alias: Option<IpAddr>) -> bool {
        let inside = self
            .inside
            .is_none_or(|prefix| first <= prefix.broadcast() && prefix.network() <= last);
        inside && fits(self.alias, alias)
    }
}

fn fits(prefix: Option<Ipv4Net>, address: Option<IpAddr>) -> bool {
    match (prefix, address) {
        (None, _) => true,
        (Some(prefix), Some(IpAddr::V4(address))) => prefix.contains(&address),
        (Some(_), _) => false,
    }
}

/// A state's name in rows.
pub fn state(state: State) -> &'static str {
    match state {
        State::TcpOpening => "tcp_opening",
        State::TcpEstablished => "tcp_established",
        State::TcpHalfClosed => "tcp_half_closed",
        State::TcpClosed => "tcp_closed",
        State::TcpReset => "tcp_reset",
        State::UdpUnreplied => "udp_unreplied",
        State::Udp => "udp",
        State::Icmp => "icmp",
        State::Gre => "gre",
        State::Other => "other",
        State::Dns => "dns",
    }
}
