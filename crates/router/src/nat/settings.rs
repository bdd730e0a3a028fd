//! What the engine is told: options and the file of rules. The file comes
//! first; an option that says something about the same thing wins.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum, ValueHint};
use ipnet::Ipv4Net;
use nat::rules::{self, BlocksWord, ProxyWord, Redirect, Rules, Script, Server, Statement, Switch};
use nat::{Behaviour, Config, Nat, PortChoice};
use tracing::warn;

mod subscribers;

/// Sources that are inside when nothing is said: RFC 1918 and RFC 6598.
const PRIVATE: [(Ipv4Addr, u8); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
];

/// Most flows when nothing is said.
const DEFAULT_MAX_FLOWS: usize = 1 << 20;

/// A mode of the engine, by libalias's name where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeWord {
    /// New connections from outside are refused (the default)
    DenyIncoming,
    /// New connections from outside pass as they are
    AcceptIncoming,
    /// A flow keeps its port if that is free
    SamePorts,
    /// Only private sources (RFC 1918) are translated
    UnregisteredOnly,
    /// As that, and RFC 6598's shared addresses as well
    CarrierGrade,
    /// Only proxy rules are obeyed
    ProxyOnly,
    /// Inside and outside are swapped
    Reverse,
    /// Endpoint-independent mapping and filtering (RFC 4787)
    EndpointIndependent,
}

/// Options that say how to translate.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Outside addresses to translate to (192.0.2.1, 192.0.2.0/28,
    /// 192.0.2.1-192.0.2.9); may be given several times
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = aliases)]
    alias: Vec<Aliases>,
    /// File of redirects, proxy rules and modes, one per line, in natd's words
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rules: Option<PathBuf>,
    /// Sources inside this prefix go out (of a capture); may be given several
    /// times [default: the private ones, RFC 1918 and 6598]
    #[arg(
        long,
        value_name = "PREFIX",
        value_delimiter = ',',
        conflicts_with = "tun"
    )]
    inside: Vec<Ipv4Net>,
    /// A mode; may be given several times
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    mode: Vec<ModeWord>,
    /// The outside ports that flows get [default: 32768-65535]
    #[arg(long, value_name = "LOW-HIGH", value_parser = ports)]
    ports: Option<(u16, u16)>,
    /// Inside host that new connections from outside go to; they are then not
    /// refused, unless that is asked for as well
    #[arg(long, value_name = "ADDR")]
    target: Option<Ipv4Addr>,
    /// Most flows [default: 1048576]
    #[arg(long, value_name = "N")]
    max_flows: Option<usize>,
    /// Makes the choice of ports the same in every run (for tests)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Says nothing about rules that are taken
    #[arg(skip)]
    is_silent: bool,
    /// Room for events: of blocks, of sessions
    #[arg(skip)]
    events: (usize, usize),
    /// Flows that memory is made ready for at least
    #[arg(skip)]
    initial_flows: usize,
    /// Packets are routed as well: the machine has other addresses, and
    /// hosts with addresses of their own
    #[arg(skip)]
    is_router: bool,
}

/// The addresses of a word.
#[derive(Debug, Clone)]
struct Aliases(Vec<Ipv4Addr>);

fn aliases(text: &str) -> Result<Aliases, rules::aliases::AliasError> {
    rules::aliases::parse(text).map(Aliases)
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('-').and_then(|(low, high)| {
        let range: (u16, u16) = (low.parse().ok()?, high.parse().ok()?);
        Some(range).filter(|(low, high)| *low > 0 && low <= high)
    });
    parsed.ok_or_else(|| "two ports, as 2000-3000, the lower first".to_owned())
}

/// A rule that is laid down once there is an engine.
enum Rule {
    Redirect {
        redirects: Vec<Redirect>,
        one_shot: bool,
        servers: Vec<Server>,
    },
    Proxy(ProxyWord),
}

impl Rule {
    /// Whether it is the redirect of a whole address.
    fn is_of_address(&self) -> bool {
        let Self::Redirect { redirects, .. } = self else {
            return false;
        };
        redirects.iter().any(|redirect| redirect.protocol.is_none())
    }
}

impl Settings {
    /// All defaults, and a file of rules, for a router.
    pub fn of_rules(path: &Path) -> Self {
        Self {
            alias: Vec::new(),
            rules: Some(path.to_owned()),
            inside: Vec::new(),
            mode: Vec::new(),
            ports: None,
            target: None,
            max_flows: None,
            seed: None,
            is_silent: false,
            events: (0, 0),
            initial_flows: 0,
            is_router: true,
        }
    }

    /// The prefixes that are inside.
    pub fn inside(&self) -> Vec<Ipv4Net> {
        if !self.inside.is_empty() {
            return self.inside.clone();
        }
        let private = PRIVATE
            .iter()
            .filter_map(|(address, len)| Ipv4Net::new(*address, *len).ok());
        private.collect()
    }

    /// The same with room for events of blocks and of sessions.
    pub fn with_events(&self, events: (usize, usize)) -> Self {
        Self {
            events,
            ..self.clone()
        }
    }

    /// The file that outlives a restart, as the rules say.
    pub fn state_file(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(path) = &self.rules else {
            return Ok(None);
        };
        let statements = read(path)?.statements.into_iter().rev();
        let mut files = statements.filter_map(|(_, statement)| match statement {
            Statement::StateFile(file) => Some(PathBuf::from(file)),
            _ => None,
        });
        Ok(files.next())
    }

    /// The same for engines that take up what others left: with their seed,
    /// unless one is said, and room for so many flows at once.
    pub fn following(&self, seed: u64, flows: usize) -> Self {
        Self {
            seed: Some(self.seed.unwrap_or(seed)),
            initial_flows: flows,
            ..self.clone()
        }
    }

    /// The settings of the engine, without its rules.
    pub fn config(&self) -> anyhow::Result<Config> {
        self.read().map(|(config, _)| config)
    }

    /// The engine, with its rules.
    pub fn engine(&self) -> anyhow::Result<Nat> {
        self.one_of(1)
    }

    /// Engines that are parts of one, with its rules; the flows that there
    /// may be are distributed among them.
    pub fn engines(&self, parts: u16) -> anyhow::Result<Vec<Nat>> {
        let mut like = self.seeded();
        let first = like.one_of(parts)?;
        if parts == 1 {
            return Ok(vec![first]);
        }
        let shards = first.shards(parts).context("dealing the translation")?;
        let shards = Arc::new(shards);
        let mut engines = vec![first];
        // What there is to say of the rules was said with the first.
        like.is_silent = true;
        for _ in 1..parts {
            engines.push(like.one_of(parts)?);
        }
        for (number, nat) in engines.iter_mut().enumerate() {
            nat.join_shards(Arc::clone(&shards), number as u16);
        }
        Ok(engines)
    }

    /// The same with a seed, which all parts must have in common.
    fn seeded(&self) -> Self {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        Self {
            seed: Some(seed),
            ..self.clone()
        }
    }

    /// One of so many engines, with all rules.
    fn one_of(&self, parts: u16) -> anyhow::Result<Nat> {
        let (mut config, rules) = self.read()?;
        let limits = &mut config.limits;
        limits.max_flows = limits.max_flows.div_ceil(usize::from(parts.max(1)));
        let wanted = self.initial_flows.min(limits.max_flows);
        limits.initial_flows = limits.initial_flows.max(wanted);
        let mut nat = Nat::new(config).context("making the engine")?;
        *nat.rules_mut() = rules;
        Ok(nat)
    }

    /// Reads the file again. An engine that runs gets its rules, addresses,
    /// ports, modes and timeouts, and keeps its flows; where something is
    /// wrong, nothing changes.
    pub fn reload(&self, nat: &mut Nat) -> anyhow::Result<()> {
        self.read_again(1)?.give(nat)
    }

    /// Reads the file again, for so many engines that are parts of one.
    pub fn read_again(&self, parts: u16) -> anyhow::Result<Again> {
        let (mut config, rules) = self.read()?;
        let limits = &mut config.limits;
        limits.max_flows = limits.max_flows.div_ceil(usize::from(parts.max(1)));
        Ok(Again { config, rules })
    }

    /// What in the file says which of several engines a packet is of.
    pub fn shared(&self) -> anyhow::Result<Vec<Statement>> {
        let Some(path) = &self.rules else {
            return Ok(Vec::new());
        };
        let statements = read(path)?.statements.into_iter();
        let statements = statements.map(|(_, statement)| match statement {
            // The rest of the line may change.
            Statement::Blocks(word) => Statement::Blocks(BlocksWord {
                size: word.size,
                ..BlocksWord::default()
            }),
            other => other,
        });
        let is_shared = |statement: &Statement| {
            matches!(
                statement,
                Statement::AliasAddresses(_)
                    | Statement::Redirect { .. }
                    | Statement::Proxy(_)
                    | Statement::Target(_)
                    | Statement::PortRange(..)
                    | Statement::Switch(..)
                    | Statement::Subscribers(..)
                    | Statement::Blocks(_)
                    | Statement::ReservePorts(_)
                    | Statement::Deterministic(_)
            )
        };
        Ok(statements.filter(is_shared).collect())
    }

    /// What the options and the file ask for.
    fn read(&self) -> anyhow::Result<(Config, Rules)> {
        let mut config = Config::new(&[]);
        config.limits.max_flows = DEFAULT_MAX_FLOWS;
        (config.limits.block_events, config.limits.events) = self.events;
        config.seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut rules = Vec::new();
        let mut said = None;
        // The last line about subscribers and blocks.
        let mut blocks_line = None;
        if let Some(path) = &self.rules {
            for (line, statement) in read(path)?.statements {
                if subscribers::is_about(&statement) {
                    blocks_line = Some(line);
                }
                if let Statement::Switch(Switch::DenyIncoming, is_on) = statement {
                    said = Some(is_on);
                }
                if let Some(rule) = take(statement, &mut config) {
                    rules.push((line, rule));
                }
            }
        }
        self.apply(&mut config)?;
        let denies = self.denies().or(said);
        // Who names a target wants new connections to get there.
        config.mode.deny_incoming = denies.unwrap_or(config.target.is_none());
        if config.addresses.is_empty() && rules.is_empty() {
            bail!(
                "nothing would be translated: name an outside address by --alias, or by alias_address in the rules"
            );
        }
        let checked = config.check_blocks();
        checked.with_context(|| match (&self.rules, blocks_line) {
            (Some(path), Some(line)) => format!("{}:{line}", path.display()),
            _ => "blocks".to_owned(),
        })?;
        let mut laid_down = Rules::default();
        for (line, rule) in rules {
            let place = || self.rules.as_deref().unwrap_or(Path::new("")).display();
            let is_open = !self.is_silent && denies != Some(true);
            if is_open && config.mode.deny_incoming && rule.is_of_address() {
                warn!(
                    "{}:{line}: new connections from outside to this address are refused: say `deny_incoming no`, or `deny_incoming` if that is meant",
                    place()
                );
            }
            lay_down(&mut laid_down, rule).with_context(|| format!("{}:{line}", place()))?;
        }
        Ok((config, laid_down))
    }

    /// Whether new connections from outside are refused, if an option says.
    fn denies(&self) -> Option<bool> {
        let words = self.mode.iter().rev();
        let mut said = words.filter_map(|word| match word {
            ModeWord::DenyIncoming => Some(true),
            ModeWord::AcceptIncoming => Some(false),
            _ => None,
        });
        said.next()
    }

    fn apply(&self, config: &mut Config) -> anyhow::Result<()> {
        config.passes_foreign = self.is_router;
        if !self.alias.is_empty() {
            let words = self.alias.iter().map(|Aliases(addresses)| addresses);
            config.addresses = words.flatten().copied().collect();
            rules::aliases::check(&config.addresses).context("--alias")?;
        }
        if let Some((low, high)) = self.ports {
            config.ports = low..=high;
        }
        if self.target.is_some() {
            config.target = self.target;
        }
        if let Some(most) = self.max_flows {
            config.limits.max_flows = most;
        }
        for word in &self.mode {
            match word {
                // Looked at by `denies`.
                ModeWord::DenyIncoming | ModeWord::AcceptIncoming => {}
                ModeWord::SamePorts => config.port_choice = PortChoice::Same,
                ModeWord::UnregisteredOnly => config.mode.unregistered_only = true,
                ModeWord::CarrierGrade => config.mode.carrier_grade = true,
                ModeWord::ProxyOnly => config.mode.proxy_only = true,
                ModeWord::Reverse => config.mode.reverse = true,
                ModeWord::EndpointIndependent => {
                    (config.udp, config.tcp) = (Behaviour::FULL_CONE, Behaviour::FULL_CONE);
                }
            }
        }
        Ok(())
    }
}

/// What a file said when it was read again.
#[derive(Debug, Clone)]
pub struct Again {
    config: Config,
    rules: Rules,
}

impl Again {
    /// Gives it to an engine; where something cannot be, nothing changes.
    pub fn give(self, nat: &mut Nat) -> anyhow::Result<()> {
        let Self { mut config, rules } = self;
        let former = nat.config().clone();
        if let Some(blocks) = &former.blocks
            && (former.ports != config.ports
                || blocks.deterministic.is_some() && former.addresses != config.addresses)
        {
            bail!(
                "with blocks port_range stays, and with deterministic ones alias_address as well: restart for that"
            );
        }
        nat.set_addresses(&config.addresses)?;
        nat.set_ports(config.ports.clone())?;
        let has_all = nat.set_subscribers(&config);
        nat.set_rules(rules);
        nat.set_pcp(config.pcp.clone());
        nat.set_mode(config.mode);
        nat.set_target(config.target);
        nat.set_udp(config.udp);
        nat.set_tcp(config.tcp);
        nat.set_port_choice(config.port_choice);
        nat.set_timeouts(config.timeouts);
        if !has_all {
            warn!(
                "what is new of subscribers' prefixes, max_subscribers, subscriber_counters, the size of blocks, reserve_ports and deterministic is for the next start"
            );
        }
        config.limits.block_events = former.limits.block_events;
        config.limits.events = former.limits.events;
        config.limits.initial_flows = former.limits.initial_flows;
        let is_whole = former.limits == config.limits
            && former.helpers == config.helpers
            && former.pooling == config.pooling
            && former.hold_down_secs == config.hold_down_secs
            && former.inbound_refresh == config.inbound_refresh;
        if !is_whole {
            warn!(
                "max_flows, at_cap, helper, pooling, hold_down and inbound_refresh are for the next start"
            );
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Script> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    match rules::parse(&text) {
        Ok(script) => Ok(script),
        Err(error) => bail!("{}:{error}", path.display()),
    }
}

/// Takes a statement into the settings, or gives it as a rule for later.
fn take(statement: Statement, config: &mut Config) -> Option<Rule> {
    match statement {
        Statement::AliasAddresses(addresses) => config.addresses = addresses,
        Statement::Target(target) => config.target = Some(target),
        Statement::PortRange(low, high) => config.ports = low..=high,
        Statement::Switch(switch, is_on) => turn(switch, is_on, config),
        Statement::Mapping(mapping) => {
            (config.tcp.mapping, config.udp.mapping) = (mapping, mapping);
        }
        Statement::Filtering(filtering) => {
            (config.tcp.filtering, config.udp.filtering) = (filtering, filtering);
        }
        Statement::Timeout(state, secs) => config.timeouts.set(state, secs),
        Statement::HoldDown(secs) => config.hold_down_secs = secs,
        Statement::Pooling(pooling) => config.pooling = pooling,
        Statement::SkinnyPort(port) => config.helpers = config.helpers.skinny_at(port),
        Statement::Helper(name, is_on) => {
            // It is in the registry: that is where its name is from.
            let switched = config.helpers.switched(name, is_on);
            config.helpers = switched.unwrap_or(config.helpers);
        }
        Statement::Pcp(pcp) => config.pcp = pcp,
        Statement::Exempt(ranges) => config.exempt.extend(ranges),
        Statement::Subscribers(ranges, bits) => {
            config.subscribers.inside.extend(ranges);
            config.subscribers.bits = bits.unwrap_or(config.subscribers.bits);
        }
        Statement::Blocks(word) => subscribers::blocks(word, config),
        Statement::ReservePorts(ports) => subscribers::of(config).reserved.extend(ports),
        Statement::Deterministic(word) => subscribers::of(config).deterministic = Some(word),
        Statement::Limit(limit) => subscribers::limit(limit, config),
        Statement::MaxSubscribers(most) => config.subscribers.most = most,
        // Looked at by `state_file`.
        Statement::StateFile(_) => {}
        Statement::MaxFlows(most) => config.limits.max_flows = most,
        Statement::AtCap(at_cap) => config.limits.at_cap = at_cap,
        Statement::Proxy(word) => return Some(Rule::Proxy(word)),
        Statement::Redirect {
            redirects,
            one_shot,
            servers,
        } => {
            return Some(Rule::Redirect {
                redirects,
                one_shot,
                servers,
            });
        }
    }
    None
}

fn turn(switch: Switch, is_on: bool, config: &mut Config) {
    match switch {
        // Looked at by `engine`.
        Switch::DenyIncoming => {}
        Switch::SamePorts if is_on => config.port_choice = PortChoice::Same,
        Switch::SamePorts => config.port_choice = PortChoice::Random,
        Switch::UnregisteredOnly => config.mode.unregistered_only = is_on,
        Switch::CarrierGrade => config.mode.carrier_grade = is_on,
        Switch::ResetOnAddressChange => config.mode.reset_on_address_change = is_on,
        Switch::Reverse => config.mode.reverse = is_on,
        Switch::ProxyOnly => config.mode.proxy_only = is_on,
        Switch::InboundRefresh => config.inbound_refresh = is_on,
        Switch::SubscriberCounters => config.subscribers.counted = is_on,
    }
}

fn lay_down(rules: &mut Rules, rule: Rule) -> anyhow::Result<()> {
    match rule {
        Rule::Proxy(ProxyWord::Add(proxy)) => rules.add_proxy(proxy)?,
        Rule::Proxy(ProxyWord::Delete(number)) => {
            if !rules.remove_proxies(number) {
                bail!("there is no proxy rule {number} to delete");
            }
        }
        Rule::Redirect {
            redirects,
            one_shot,
            servers,
        } => {
            for redirect in redirects {
                let handle = rules.insert(redirect)?;
                // The latest has the first turn: so the first named has it.
                for server in servers.iter().rev() {
                    rules.add_server(handle, *server)?;
                }
                if one_shot {
                    rules.make_dynamic(handle, u64::MAX)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
