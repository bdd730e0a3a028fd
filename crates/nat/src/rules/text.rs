//! Rules as text, one a line, in natd's and ipfw's words; what
//! `fingerpost nat run --rules FILE` reads. `#` begins a comment.
//!
//! ```text
//! alias_address 192.0.2.1 [192.0.2.8/29 192.0.2.20-192.0.2.29 …]  also: ip
//! redirect_port tcp 10.0.0.5:80 8080
//! redirect_port udp 10.0.0.5:5000-5009 192.0.2.2:6000-6009 198.51.100.7[:53]
//! redirect_port tcp 10.0.0.6:80,10.0.0.7:80 80        a pool, in turn
//! redirect_address 10.0.0.8 192.0.2.3         also: redirect_addr
//! redirect_address 10.0.0.8,10.0.0.9 192.0.2.3
//! redirect_proto gre 10.0.0.5 [192.0.2.2 [198.51.100.7]]
//! redirect_dynamic tcp 10.0.0.5:80 8080 198.51.100.7:4000   used once
//! proxy_rule port 80 server 10.0.0.1:3128 type encode_ip_hdr
//! target_address 10.0.0.7
//! port_range 2000-3000
//! deny_incoming [yes|no]      same_ports, unregistered_only, carrier_grade,
//!                             reset_on_address_change, reverse, proxy_only,
//!                             inbound_refresh, subscriber_counters
//! mapping endpoint-independent | address-dependent | address-and-port-dependent
//! filtering endpoint-independent | …
//! timeout tcp_established 7440                in seconds; tcp_opening, udp, …
//! hold_down 120                               in seconds; 0: not at all
//! pooling paired | arbitrary
//! helper ftp [yes|no]                         pptp, irc, tftp, rtsp, nbt, sip
//! skinny_port 2000                            0: not helped
//! pcp 100.64.0.1 [10.0.0.1 …] [ports N] [leases N] [shortest S] [longest S]
//!                             our inside addresses that answer PCP, NAT-PMP
//! exempt 10.0.0.0/8 [192.0.2.0/24 …]          destinations not translated
//! subscribers 100.64.0.0/10 [100.128.0.0-100.128.0.9 …] [each /29]
//! port_blocks size 128 [most 8] [active S] [hold_down S] [interim S]
//! reserve_ports 5060-5061 [8080 …]            in no block
//! deterministic [ratio C] [dynamic D] [key 32 hexadecimal digits]
//! limit ports | sessions | half_open [tcp | udp | icmp] N
//! limit new_mappings [tcp | udp | icmp] N [burst N]     a second
//! max_subscribers 1000000
//! max_flows 1000000
//! state_file /var/lib/fingerpost/nat.state    what is there outlives a restart
//! at_cap refuse | evict
//! ```
//! Addresses and ports are numbers, protocols their names or numbers:
//! nothing is looked up anywhere. Words of natd that are not for here are
//! refused by name.

use std::net::Ipv4Addr;

use super::proxy::{self, ProxyError, ProxyWord};
use super::{Redirect, RuleError, Server, aliases, pcp, settings, subscribers};
use crate::blocks::Deterministic;
use crate::{AddressRange, AtCap, Dependence, PcpConfig, Pooling, QuotaKind, State};

/// Lines of a text at most; more is refused.
const MAX_LINES: usize = 1 << 21;
/// Ports that a redirect with a range of remote ports may name: it becomes
/// a redirect for each.
const MAX_PAIRED: u16 = 1_024;

/// Why ports of these are not translated.
const SCTP: &str = "its checksum is over the ports, and both ends may have several addresses";
const ESP: &str = "it has none that the two directions share";

/// A switch of the engine that the text can turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// What comes in without flow or redirect is denied.
    DenyIncoming,
    /// A flow keeps its port where it is free.
    SamePorts,
    /// Only private sources (RFC 1918) are translated.
    UnregisteredOnly,
    /// As that, and RFC 6598's shared space as well.
    CarrierGrade,
    /// Flows end when the alias address changes.
    ResetOnAddressChange,
    /// Out is In and In is Out.
    Reverse,
    /// Nothing but proxy rules.
    ProxyOnly,
    /// What comes in keeps flows alive, too.
    InboundRefresh,
    /// Packets, mappings and refusals are counted for each subscriber.
    SubscriberCounters,
}

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// The alias addresses, the first of them current.
    AliasAddresses(Vec<Ipv4Addr>),
    /// Redirects, each with its pool (empty: none).
    Redirect {
        /// One, or one for each port where remote ports go along.
        redirects: Vec<Redirect>,
        /// Used once, then gone.
        one_shot: bool,
        /// The servers of a pool.
        servers: Vec<Server>,
    },
    /// A proxy rule more, or all of a number away.
    Proxy(ProxyWord),
    /// Where packets without flow and redirect go.
    Target(Ipv4Addr),
    /// First and last port of aliases.
    PortRange(u16, u16),
    /// A switch.
    Switch(Switch, bool),
    /// How mappings are made.
    Mapping(Dependence),
    /// Who gets in through one.
    Filtering(Dependence),
    /// How long a flow in a state lives unused, seconds.
    Timeout(State, u32),
    /// How long a port that was given back is not given again, seconds.
    HoldDown(u32),
    /// Which of several alias addresses a host gets.
    Pooling(Pooling),
    /// A helper, by its name in [`crate::helper::REGISTRY`], on or off.
    Helper(&'static str, bool),
    /// Where Skinny's call managers are; 0: it is not helped.
    SkinnyPort(u16),
    /// Whether and how inside hosts may ask for ports.
    Pcp(PcpConfig),
    /// Destinations that are not translated; several lines add up.
    Exempt(Vec<AddressRange>),
    /// Whose addresses are subscribers', and how many bits of one tell which;
    /// several lines add up.
    Subscribers(Vec<AddressRange>, Option<u8>),
    /// Blocks of ports, as far as the line says.
    Blocks(BlocksWord),
    /// Ports that are in no block; several lines add up.
    ReservePorts(Vec<(u16, u16)>),
    /// Ports that can be reckoned.
    Deterministic(Deterministic),
    /// What each subscriber may have.
    Limit(Limit),
    /// Most subscribers.
    MaxSubscribers(usize),
    /// Most flows.
    MaxFlows(usize),
    /// Where what is there is kept from one end to the next start.
    StateFile(String),
    /// What becomes of a new flow when there are so many.
    AtCap(AtCap),
}

/// What a line says of blocks; `None`: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlocksWord {
    /// Ports of a block.
    pub size: Option<u16>,
    /// Most blocks of a subscriber.
    pub most: Option<u8>,
    /// For how long new ports come from the newest block, seconds.
    pub active_secs: Option<u32>,
    /// How long a block rests, seconds.
    pub hold_down_secs: Option<u32>,
    /// How often a held block is told again, seconds.
    pub interim_secs: Option<u32>,
}

/// A limit of each subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Of what; not of blocks.
    pub of: QuotaKind,
    /// Of TCP (0), UDP (1), ICMP and others (2); `None`: of all together.
    pub class: Option<usize>,
    /// How many.
    pub most: u32,
    /// How many new mappings may come at once; 0: not said.
    pub burst: u32,
}

/// The lines of a text in order, each with its number from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Line and what it asks for.
    pub statements: Vec<(usize, Statement)>,
}

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: TextErrorKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextErrorKind {
    /// No statement begins so.
    #[error(
        "`{0}` begins no rule; redirect_port, redirect_address, redirect_proto, proxy_rule, alias_address, deny_incoming, timeout, … do"
    )]
    Unknown(String),
    /// A word of natd's that is not for here.
    #[error("`{word}` is natd's and not for here: {why}")]
    NotHere {
        /// The word.
        word: &'static str,
        /// What does its work.
        why: &'static str,
    },
    /// A protocol whose ports, if it has some, are not translated.
    #[error("ports of `{0}` are not translated: {1}; redirect_proto {0} takes all of it")]
    Portless(&'static str, &'static str),
    /// An alias address that is none.
    #[error(transparent)]
    Alias(#[from] aliases::AliasError),
    /// A word that should be something else.
    #[error("`{found}` is not {wanted}")]
    Wrong {
        /// What stands there.
        found: String,
        /// What should.
        wanted: &'static str,
    },
    /// The line ends too early.
    #[error("the line ends where {0} should follow")]
    Missing(&'static str),
    /// The line goes on too long.
    #[error("`{0}` is one word too many")]
    Extra(String),
    /// Ranges that should be as long as each other and are not.
    #[error("{0} ports are to become {1}: ranges must be equally long")]
    Lengths(u16, u16),
    /// Lifetimes of which none is between.
    #[error("longest {1} s is shorter than shortest {0} s")]
    Lifetimes(u32, u32),
    /// A rule that cannot be.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A proxy rule that cannot be.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The text has too many lines.
    #[error("more than {MAX_LINES} lines")]
    TooLong,
}

/// Reads a text; the first line that is wrong ends it. O(length).
pub fn parse(text: &str) -> Result<Script, TextError> {
    let mut script = Script::default();
    for (index, whole) in text.lines().enumerate() {
        let line = index + 1;
        if index >= MAX_LINES {
            let kind = TextErrorKind::TooLong;
            return Err(TextError {
                line,
                column: 1,
                kind,
            });
        }
        let meant = whole.split('#').next().unwrap_or_default();
        let mut words = Words {
            whole: meant,
            at: 0,
            word_at: 0,
        };
        match statement(&mut words) {
            Ok(Some(statement)) => script.statements.push((line, statement)),
            Ok(None) => {}
            Err(kind) => {
                let before = meant.get(..words.word_at).unwrap_or(meant);
                let column = before.chars().count() + 1;
                return Err(TextError { line, column, kind });
            }
        }
    }
    Ok(script)
}

/// The words of a line, and where the last one began.
pub(super) struct Words<'a> {
    whole: &'a str,
    at: usize,
    word_at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let rest = self.whole.get(self.at..)?;
        let trimmed = rest.trim_start();
        self.word_at = self.at + (rest.len() - trimmed.len());
        let len = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        self.at = self.word_at + len;
        trimmed.get(..len).filter(|word| !word.is_empty())
    }

    pub(super) fn wanted(&mut self, what: &'static str) -> Result<&'a str, TextErrorKind> {
        self.next().ok_or(TextErrorKind::Missing(what))
    }

    fn end(&mut self) -> Result<(), TextErrorKind> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(TextErrorKind::Extra(word.to_owned())),
        }
    }
}

pub(super) fn wrong(found: &str, wanted: &'static str) -> TextErrorKind {
    TextErrorKind::Wrong {
        found: found.to_owned(),
        wanted,
    }
}

fn statement(words: &mut Words<'_>) -> Result<Option<Statement>, TextErrorKind> {
    let Some(first) = words.next() else {
        return Ok(None);
    };
    let statement = match first {
        "alias_address" | "ip" => alias_addresses(words)?,
        "redirect_port" => redirect_port(words, false)?,
        "redirect_dynamic" => redirect_port(words, true)?,
        "redirect_address" | "redirect_addr" => redirect_address(words)?,
        "redirect_proto" => redirect_protocol(words)?,
        "proxy_rule" => {
            let rest = words.whole.get(words.at..).unwrap_or_default();
            words.word_at = words.at + (rest.len() - rest.trim_start().len());
            words.at = words.whole.len();
            Statement::Proxy(proxy::parse(rest)?)
        }
        "target_address" => Statement::Target(address(words.wanted("an address")?)?),
        "port_range" => {
            let word = words.wanted("a range of ports")?;
            let (first, last) = port_range(word)?;
            Statement::PortRange(first, last)
        }
        "mapping" => Statement::Mapping(dependence(words)?),
        "filtering" => Statement::Filtering(dependence(words)?),
        "timeout" => settings::timeout(words)?,
        "hold_down" => settings::hold_down(words)?,
        "pooling" => settings::pooling(words)?,
        "helper" => settings::helper(words)?,
        "skinny_port" => settings::skinny_port(words)?,
        "pcp" => pcp::server(words)?,
        "exempt" => Statement::Exempt(subscribers::ranges(words)?),
        "subscribers" => subscribers::inside(words)?,
        "port_blocks" => subscribers::blocks(words)?,
        "reserve_ports" => subscribers::reserved(words)?,
        "deterministic" => subscribers::deterministic(words)?,
        "limit" => subscribers::limit(words)?,
        "max_subscribers" => subscribers::most(words)?,
        "max_flows" => settings::max_flows(words)?,
        "at_cap" => settings::at_cap(words)?,
        "state_file" => Statement::StateFile(words.wanted("a file")?.to_owned()),
        _ => switch(first, words)?,
    };
    words.end()?;
    Ok(Some(statement))
}

fn alias_addresses(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let mut addresses = aliases::parse(words.wanted("an address")?)?;
    while let Some(word) = words.next() {
        addresses.extend(aliases::parse(word)?);
    }
    aliases::check(&addresses)?;
    Ok(Statement::AliasAddresses(addresses))
}

fn switch(word: &str, words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let switch = match word {
        "deny_incoming" | "deny_in" => Switch::DenyIncoming,
        "same_ports" => Switch::SamePorts,
        "unregistered_only" | "unreg_only" => Switch::UnregisteredOnly,
        "carrier_grade" | "unreg_cgn" => Switch::CarrierGrade,
        "reset_on_address_change" | "reset" => Switch::ResetOnAddressChange,
        "reverse" => Switch::Reverse,
        "proxy_only" => Switch::ProxyOnly,
        "inbound_refresh" => Switch::InboundRefresh,
        "subscriber_counters" => Switch::SubscriberCounters,
        _ => return Err(unknown(word)),
    };
    Ok(Statement::Switch(switch, is_on(words)?))
}

/// Why a word begins no rule.
fn unknown(word: &str) -> TextErrorKind {
    const NOT_HERE: &[(&[&str], &str)] = &[
        (
            &["interface", "n", "dynamic"],
            "name the outside addresses by alias_address",
        ),
        (
            &[
                "log",
                "log_denied",
                "log_facility",
                "log_ipfw_denied",
                "verbose",
                "v",
            ],
            "no log of flows is written; SIGUSR1 prints the counters",
        ),
        (
            &["punch_fw", "use_sockets", "s"],
            "no firewall and no socket is touched",
        ),
        (
            &[
                "port",
                "p",
                "in_port",
                "i",
                "out_port",
                "o",
                "globalport",
                "instance",
            ],
            "packets come from TUN devices or a capture, not from a divert socket",
        ),
        (
            &["config", "f", "pid_file", "P", "exit_delay"],
            "say it on the command line, or leave it to who starts the program",
        ),
    ];
    for (words, why) in NOT_HERE {
        if let Some(word) = words.iter().find(|known| **known == word) {
            return TextErrorKind::NotHere { word, why };
        }
    }
    TextErrorKind::Unknown(word.to_owned())
}

pub(super) fn is_on(words: &mut Words<'_>) -> Result<bool, TextErrorKind> {
    match words.next() {
        None | Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(other) => Err(wrong(other, "yes or no")),
    }
}

fn dependence(words: &mut Words<'_>) -> Result<Dependence, TextErrorKind> {
    const WANTED: &str = "endpoint-independent, address-dependent or address-and-port-dependent";
    match words.wanted(WANTED)? {
        "endpoint-independent" => Ok(Dependence::Endpoint),
        "address-dependent" => Ok(Dependence::Address),
        "address-and-port-dependent" => Ok(Dependence::AddressAndPort),
        other => Err(wrong(other, WANTED)),
    }
}

/// `PROTO TARGET:PORT[-PORT][,TARGET:PORT…] [ALIAS:]PORT[-PORT] [REMOTE[:PORT[-PORT]]]`.
fn redirect_port(words: &mut Words<'_>, one_shot: bool) -> Result<Statement, TextErrorKind> {
    let protocol = match words.wanted("tcp or udp")? {
        "tcp" => 6,
        "udp" => 17,
        "sctp" => return Err(TextErrorKind::Portless("sctp", SCTP)),
        "esp" => return Err(TextErrorKind::Portless("esp", ESP)),
        other => return Err(wrong(other, "tcp or udp")),
    };
    let targets = words.wanted("ADDRESS:PORT of the target")?;
    let (servers, target) = if targets.contains(',') {
        (
            targets
                .split(',')
                .map(server)
                .collect::<Result<Vec<_>, _>>()?,
            None,
        )
    } else {
        (Vec::new(), Some(endpoint(targets)?))
    };
    let (alias, alias_ports) = alias_endpoint(words.wanted("the alias port")?)?;
    let ports = length(alias_ports);
    let mut redirect = Redirect {
        protocol: Some(protocol),
        inside: None,
        inside_port: alias_ports.0,
        alias,
        alias_port: alias_ports.0,
        ports,
        remote: None,
        remote_port: None,
    };
    if let Some((inside, inside_ports)) = target {
        let inside_len = length(inside_ports);
        if inside_len != ports {
            return Err(TextErrorKind::Lengths(ports, inside_len));
        }
        (redirect.inside, redirect.inside_port) = (given(inside), inside_ports.0);
    }
    let mut redirects = vec![redirect];
    if let Some(word) = words.next() {
        redirects = from_remote(redirect, word)?;
    }
    for redirect in &redirects {
        redirect.check()?;
        if one_shot && !redirect.is_exact() {
            return Err(RuleError::NotExact.into());
        }
    }
    Ok(Statement::Redirect {
        redirects,
        one_shot,
        servers,
    })
}

/// With a range of remote ports, as long as the range of alias ports, each
/// alias port is for its own remote port.
fn from_remote(redirect: Redirect, word: &str) -> Result<Vec<Redirect>, TextErrorKind> {
    let Some((host, ports)) = word.split_once(':') else {
        return Ok(vec![redirect.from(given(address(word)?), None)]);
    };
    let remote = given(address(host)?);
    if ports == "0" {
        return Ok(vec![redirect.from(remote, None)]);
    }
    let range = port_range(ports)?;
    let count = length(range);
    if count == 1 {
        return Ok(vec![redirect.from(remote, Some(range.0))]);
    }
    if count != redirect.ports || count > MAX_PAIRED {
        return Err(TextErrorKind::Lengths(redirect.ports, count));
    }
    let one = |offset: u16| {
        let mut redirect = redirect.ports(1).from(remote, Some(range.0 + offset));
        redirect.inside_port += offset;
        redirect.alias_port += offset;
        redirect
    };
    Ok((0..count).map(one).collect())
}

/// `TARGET[,TARGET…] ALIAS`.
fn redirect_address(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let targets = words.wanted("the target's address")?;
    let hosts: Vec<Ipv4Addr> = targets.split(',').map(address).collect::<Result<_, _>>()?;
    let alias = given(address(words.wanted("the alias address")?)?);
    let inside = hosts.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
    let redirect = Redirect {
        inside: given(inside),
        alias,
        ..Redirect::address(inside, inside)
    };
    let server = |address: &Ipv4Addr| Server {
        address: *address,
        port: 0,
    };
    let servers = if hosts.len() > 1 {
        hosts.iter().map(server).collect()
    } else {
        Vec::new()
    };
    Ok(Statement::Redirect {
        redirects: vec![redirect],
        one_shot: false,
        servers,
    })
}

/// `PROTO TARGET [ALIAS [REMOTE]]`.
fn redirect_protocol(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "a protocol: gre, esp, ah, icmp, … or its number, without tcp and udp";
    let word = words.wanted(WANTED)?;
    let protocol = match word {
        "icmp" => Some(1),
        "igmp" => Some(2),
        "ipip" | "ipencap" => Some(4),
        "ipv6" => Some(41),
        "gre" => Some(47),
        "esp" => Some(50),
        "ah" => Some(51),
        "ospf" => Some(89),
        "sctp" => Some(132),
        number => number
            .parse()
            .ok()
            .filter(|number| !matches!(number, 0 | 6 | 17)),
    };
    let protocol = protocol.ok_or_else(|| wrong(word, WANTED))?;
    let inside = address(words.wanted("the target's address")?)?;
    let mut redirect = Redirect::protocol(protocol, inside);
    redirect.inside = given(inside);
    if let Some(word) = words.next() {
        redirect.alias = given(address(word)?);
    }
    if let Some(word) = words.next() {
        redirect.remote = given(address(word)?);
    }
    Ok(Statement::Redirect {
        redirects: vec![redirect],
        one_shot: false,
        servers: Vec::new(),
    })
}

fn address(word: &str) -> Result<Ipv4Addr, TextErrorKind> {
    word.parse().map_err(|_| wrong(word, "an IPv4 address"))
}

/// 0.0.0.0 stands for "any", and for "the current one".
fn given(address: Ipv4Addr) -> Option<Ipv4Addr> {
    (!address.is_unspecified()).then_some(address)
}

fn server(word: &str) -> Result<Server, TextErrorKind> {
    let (address, (first, last)) = endpoint(word)?;
    if first != last {
        return Err(wrong(word, "one server's ADDRESS:PORT"));
    }
    Ok(Server {
        address,
        port: first,
    })
}

fn endpoint(word: &str) -> Result<(Ipv4Addr, (u16, u16)), TextErrorKind> {
    let parts = word.split_once(':');
    let (host, ports) = parts.ok_or_else(|| wrong(word, "ADDRESS:PORT"))?;
    Ok((address(host)?, port_range(ports)?))
}

type AliasEndpoint = (Option<Ipv4Addr>, (u16, u16));

fn alias_endpoint(word: &str) -> Result<AliasEndpoint, TextErrorKind> {
    match word.split_once(':') {
        Some((host, ports)) => Ok((given(address(host)?), port_range(ports)?)),
        None => Ok((None, port_range(word)?)),
    }
}

/// `PORT` or `FIRST-LAST`. All ports are one too many for a count of 16
/// bits, and port 0 is none.
pub(super) fn port_range(word: &str) -> Result<(u16, u16), TextErrorKind> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0);
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(wrong(
            word,
            "a port or a range of ports: numbers from 1 to 65535, no names of services",
        )),
    }
}

/// Ports of a range that [`port_range`] has read.
fn length((first, last): (u16, u16)) -> u16 {
    last - first + 1
}

#[cfg(test)]
mod tests;
