//! The engine against a plain model of lists: the same verdicts, no two
//! flows with one outside tuple, what goes out comes back to who sent it,
//! and every checksum verified by another crate.
//!
//! Packets, time, redirects and alias addresses change by random steps:
//! 200,000 of them in the normal run, over settings drawn at random;
//! `FINGERPOST_NAT_STEPS` asks for another number.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use etherparse::{IpNumber, NetSlice, SlicedPacket, TransportSlice};
use fingerpost_nat::rules::{Handle, Redirect};
use fingerpost_nat::{
    AtCap, Behaviour, Blocks, Config, Dependence, Direction, Hairpin, Nat, Packet, Pooling,
    PortChoice, Statistics, Timeouts, Verdict,
};
use packet::build::{Ip, Segment};
use packet::{Ipv4, protocol};

#[path = "model/blocks.rs"]
mod blocks;
#[path = "model/checks.rs"]
mod checks;
#[path = "model/errors.rs"]
mod errors;
#[path = "model/packets.rs"]
mod packets;

use packets::{build, read};

const UNREPLIED: u64 = 20;
const REPLIED: u64 = 45;
const TCP: u64 = 70;
const ICMP: u64 = 15;
const OTHER: u64 = 25;
const DNS: u64 = 8;
/// A protocol without ports.
const ESP: u8 = 50;

/// The lab's numbers, in the ways of the model.
struct Random(lab::Random);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.number()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }
}

type End = (Ipv4Addr, u16);

/// An address of a flow: what goes in here is IPv4.
fn ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("a flow with {address}"),
    }
}

/// What a packet is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tuple {
    protocol: u8,
    source: End,
    destination: End,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    protocol: u8,
    inside: End,
    remote: End,
    alias: End,
    last: u64,
    out: bool,
    incoming: bool,
    /// It belongs to a mapping that serves new flows.
    mapped: bool,
    /// It was made with a mapping, whose address may have gone: what it lets
    /// in it lets in still, where the inside has this alias endpoint again.
    permits: bool,
    /// It may have been made anew by a packet of this direction, and not be
    /// answered yet.
    doubt: Option<Direction>,
    /// It was ended for another's sake: its mapping may live still.
    gone: bool,
    /// Someone outside made it, or may have.
    stranger: bool,
}

impl Flow {
    fn used(&mut self, direction: Direction, state: Is) {
        // Perhaps it was made anew, from outside.
        self.stranger |= state == Is::Perhaps && direction == Direction::In;
        self.doubt = match self.doubt {
            _ if state == Is::Perhaps => Some(direction),
            Some(other) if other != direction => None,
            doubt => doubt,
        };
    }

    fn is_dns(&self) -> bool {
        self.inside.1 == 53 || self.remote.1 == 53
    }

    fn timeout(&self) -> u64 {
        1_000
            * match self.protocol {
                protocol::TCP => TCP,
                protocol::UDP if self.out && self.incoming && self.is_dns() => DNS,
                protocol::UDP if self.out && self.incoming => REPLIED,
                protocol::UDP => UNREPLIED,
                protocol::ICMP => ICMP,
                _ => OTHER,
            }
    }
}

/// Whether something is, by the model; `Perhaps` in the second after a
/// timeout, when the engine may go either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Alive,
    Perhaps,
    Dead,
}

fn is(flow: &Flow, now: u64) -> Is {
    let timeout = flow.timeout();
    // A mapping with several flows does not hear that one had its answer.
    let lasts = flow.permits && flow.is_dns();
    let doubtful = (flow.doubt.is_some() || lasts) && flow.protocol == protocol::UDP;
    let other = if doubtful { UNREPLIED * 1_000 } else { timeout };
    let (least, most) = (timeout.min(other), timeout.max(other));
    match now - flow.last {
        idle if idle <= least && !flow.gone => Is::Alive,
        idle if idle <= most + 1_000 => Is::Perhaps,
        _ => Is::Dead,
    }
}

/// A redirect of a UDP port, from any remote or from all ports of one.
#[derive(Debug, Clone, Copy)]
struct Rule {
    inside: End,
    alias: End,
    remote: Option<Ipv4Addr>,
    handle: Handle,
}

struct Model {
    config: Config,
    flows: Vec<Flow>,
    /// Alias endpoints that mappings have had.
    had: BTreeSet<End>,
    /// The latest last.
    rules: Vec<Rule>,
    /// Flows that were made by a redirect.
    by_rule: u64,
    /// Flows of what came in unasked and passed as it was.
    as_they_are: u64,
    /// Flows ended for the packet that is looked at.
    gave_way: bool,
    /// Ports that the engine chose, where there are blocks.
    given: Vec<blocks::Given>,
    /// The alias addresses have changed.
    moved: bool,
    now: u64,
}

impl Model {
    fn is(&self, flow: &Flow) -> Is {
        is(flow, self.now)
    }

    fn bury(&mut self) {
        let now = self.now;
        self.flows.retain(|flow| is(flow, now) != Is::Dead);
    }

    /// The redirect that speaks for one end of a flow with a remote: the
    /// latest for the very remote, else the latest for any.
    fn rule(&self, protocol: u8, remote: End, fits: impl Fn(&Rule) -> bool) -> Option<Rule> {
        let rules = self.rules.iter().rev();
        let fitting = rules.filter(|rule| protocol == protocol::UDP && fits(rule));
        let fitting: Vec<&Rule> = fitting.collect();
        let of = |wanted| fitting.iter().find(|rule| rule.remote == wanted);
        of(Some(remote.0)).or_else(|| of(None)).map(|rule| **rule)
    }

    fn rule_out(&self, tuple: &Tuple) -> Option<Rule> {
        let fits = |rule: &Rule| rule.inside == tuple.source;
        self.rule(tuple.protocol, tuple.destination, fits)
    }

    fn rule_in(&self, tuple: &Tuple) -> Option<Rule> {
        let fits = |rule: &Rule| rule.alias == tuple.destination;
        self.rule(tuple.protocol, tuple.source, fits)
    }

    /// Whether a redirect from any remote has an alias port.
    fn is_ruled(&self, protocol: u8, alias: End) -> bool {
        let mut rules = self.rules.iter();
        protocol == protocol::UDP && rules.any(|rule| rule.remote.is_none() && rule.alias == alias)
    }

    /// A new flow out finds its mapping's address gone: the mapping serves
    /// no flow any more but those it has.
    fn detach(&mut self, tuple: &Tuple) {
        let behaviour = self.behaviour(tuple.protocol);
        for flow in &mut self.flows {
            let part = match behaviour.mapping {
                Dependence::Endpoint => true,
                Dependence::Address => flow.remote.0 == tuple.destination.0,
                Dependence::AddressAndPort => flow.remote == tuple.destination,
            };
            let kin = flow.protocol == tuple.protocol && flow.inside == tuple.source && part;
            if kin && !self.config.addresses.contains(&flow.alias.0) {
                flow.mapped = false;
            }
        }
    }

    /// The engine has a flow no more, but perhaps its mapping.
    fn lose(&mut self, at: usize) {
        match self.is(&self.flows[at]) {
            Is::Perhaps if self.flows[at].permits => self.flows[at].gone = true,
            _ => {
                self.flows.remove(at);
            }
        }
    }

    fn find_out(&self, tuple: &Tuple) -> Option<usize> {
        self.find(|flow| {
            flow.protocol == tuple.protocol
                && flow.inside == tuple.source
                && flow.remote == tuple.destination
        })
    }

    fn find_in(&self, tuple: &Tuple) -> Option<usize> {
        self.find(|flow| {
            flow.protocol == tuple.protocol
                && flow.remote == tuple.source
                && flow.alias == tuple.destination
        })
    }

    /// A flow that is there.
    fn find(&self, is: impl Fn(&Flow) -> bool) -> Option<usize> {
        self.flows.iter().position(|flow| is(flow) && !flow.gone)
    }

    fn behaviour(&self, protocol: u8) -> Behaviour {
        match protocol {
            protocol::TCP => self.config.tcp,
            protocol::UDP => self.config.udp,
            _ => Behaviour::SYMMETRIC,
        }
    }

    /// Whether two remotes share a mapping.
    fn same_part(&self, protocol: u8, a: End, b: End) -> bool {
        match self.behaviour(protocol).mapping {
            Dependence::Endpoint => true,
            Dependence::Address => a.0 == b.0,
            Dependence::AddressAndPort => a == b,
        }
    }

    /// Flows that hold an alias port against a new one, certain and not: a
    /// mapping whose address had gone serves no new flow, but may stand until
    /// its flows end, with its port where the address came back.
    fn holders(&self, protocol: u8, alias: End, remote: End) -> (usize, usize) {
        let holds = |flow: &&Flow, shared: fn(&Flow) -> bool| {
            flow.protocol == protocol
                && flow.alias == alias
                && (flow.remote == remote
                    || shared(flow) && self.same_part(protocol, flow.remote, remote))
        };
        let certain = self
            .flows
            .iter()
            .filter(|flow| holds(flow, |flow| flow.mapped) && self.is(flow) == Is::Alive);
        let all = self
            .flows
            .iter()
            .filter(|flow| holds(flow, |flow| flow.permits));
        (certain.count(), all.count())
    }

    fn has_ports(protocol: u8) -> bool {
        matches!(protocol, protocol::TCP | protocol::UDP | protocol::ICMP)
    }

    /// What the engine answered to an outgoing packet is held against the
    /// lists, which then take it in.
    fn out(&mut self, tuple: &Tuple, verdict: Verdict, alias: End) {
        let found = self.find_out(tuple);
        let state = found.map_or(Is::Dead, |at| self.is(&self.flows[at]));
        if let Some(at) = found
            && state != Is::Dead
            && (state == Is::Alive
                || verdict == Verdict::Translated && self.flows[at].alias == alias)
        {
            assert_eq!(verdict, Verdict::Translated, "{tuple:?}");
            let flow = &mut self.flows[at];
            assert_eq!(flow.alias, alias, "{tuple:?}");
            flow.used(Direction::Out, state);
            (flow.last, flow.out) = (self.now, true);
            return;
        }
        if let Some(at) = found {
            self.lose(at);
        }
        if let Some(rule) = self.rule_out(tuple) {
            match verdict {
                Verdict::Translated => {
                    assert_eq!(alias, rule.alias, "{tuple:?}");
                    self.by_rule += 1;
                    self.open(tuple, alias, false);
                }
                Verdict::TableFull => self.check_full(),
                verdict => {
                    assert_eq!(verdict, Verdict::PortsExhausted, "{tuple:?}");
                    assert!(self.is_exhausted(tuple), "{tuple:?}");
                }
            }
            return;
        }
        if self.keeps_its_own(tuple) {
            // It keeps its own endpoint, and has a flow all the same.
            if verdict == Verdict::Translated {
                assert_eq!(alias, tuple.source);
                self.open(tuple, alias, false);
            } else if verdict == Verdict::TableFull {
                self.check_full();
            } else if verdict == Verdict::Passed {
                // No flow could be made, and unsolicited packets pass without one.
                assert!(!self.config.mode.deny_incoming && self.config.target.is_none());
            } else {
                // Another flow has this very tuple outside.
                assert_eq!(verdict, Verdict::PortsExhausted);
            }
            return;
        }
        if Self::has_ports(tuple.protocol) {
            self.detach(tuple);
        }
        match verdict {
            Verdict::Translated => self.check_new(tuple, alias),
            Verdict::PortsExhausted => assert!(self.is_exhausted(tuple), "{tuple:?}"),
            Verdict::OverQuota => assert!(self.is_over(tuple), "{tuple:?}"),
            Verdict::TableFull => self.check_full(),
            other => panic!("{other:?} for {tuple:?}"),
        }
    }

    /// A new flow out that the engine refused for its own reasons: it has
    /// looked for a mapping all the same.
    fn refused(&mut self, tuple: &Tuple) {
        let own = self.rule_out(tuple).is_some() || self.keeps_its_own(tuple);
        if !own && Self::has_ports(tuple.protocol) {
            self.detach(tuple);
        }
    }

    /// Whether an outgoing packet keeps its source.
    fn keeps_its_own(&self, tuple: &Tuple) -> bool {
        self.config.mode.unregistered_only && !tuple.source.0.is_private()
    }

    fn check_full(&self) {
        assert!(self.flows.len() >= self.config.limits.max_flows);
    }

    fn check_new(&mut self, tuple: &Tuple, alias: End) {
        assert!(self.config.addresses.contains(&alias.0), "{alias:?}");
        let alive = self.flows.iter().filter(|flow| {
            // Without ports the last who sends takes the outside tuple.
            let taken = (flow.protocol, flow.remote, flow.alias)
                == (tuple.protocol, tuple.destination, alias);
            self.is(flow) == Is::Alive && !taken
        });
        assert!(alive.count() < self.config.limits.max_flows);
        let ported = Self::has_ports(tuple.protocol);
        if !ported {
            assert_eq!(alias.1, tuple.source.1);
            self.open(tuple, alias, false);
            return;
        }
        let mapped = self.behaviour(tuple.protocol).mapping != Dependence::AddressAndPort;
        let kin: Vec<Flow> = self
            .flows
            .iter()
            .filter(|flow| {
                mapped
                    && flow.mapped
                    && flow.protocol == tuple.protocol
                    && flow.inside == tuple.source
                    && self.same_part(tuple.protocol, flow.remote, tuple.destination)
            })
            .copied()
            .collect();
        let living = kin.iter().find(|flow| self.is(flow) == Is::Alive);
        if let Some(flow) = living {
            assert_eq!(flow.alias, alias, "the mapping's endpoint: {tuple:?}");
        } else if !kin.iter().any(|flow| flow.alias == alias) {
            self.note_given(tuple, alias);
            let wishes =
                self.config.port_choice == PortChoice::Same && self.config.blocks.is_none();
            let same = wishes && alias.1 == tuple.source.1;
            assert!(same || self.config.ports.contains(&alias.1), "{alias:?}");
            let (certain, _) = self.holders(tuple.protocol, alias, tuple.destination);
            self.give_up(tuple, alias, certain > 0);
            let ruled = self.is_ruled(tuple.protocol, alias);
            assert!(!ruled, "{alias:?} is a redirect's: {tuple:?}");
            if wishes && alias.1 != tuple.source.1 {
                let wished = (alias.0, tuple.source.1);
                let (_, holders) = self.holders(tuple.protocol, wished, tuple.destination);
                let ruled = self.is_ruled(tuple.protocol, wished);
                let rests = self.may_rest(tuple.protocol, wished);
                assert!(
                    ruled || holders > 0 || self.gave_way || rests,
                    "the same port was free: {tuple:?}"
                );
            }
        }
        self.open(tuple, alias, mapped);
    }

    /// Whether the engine may hold an alias endpoint though it is free: a
    /// mapping that let everybody in had it before.
    fn may_rest(&self, protocol: u8, alias: End) -> bool {
        let is_open = self.config.udp.filtering == Dependence::Endpoint;
        let holds = self.config.hold_down_secs > 0 && is_open;
        holds && protocol == protocol::UDP && self.had.contains(&alias)
    }

    /// With every port taken a mapping without a conversation serves no new
    /// flows any more, and another inside gets its alias endpoint.
    fn give_up(&mut self, tuple: &Tuple, alias: End, certain: bool) {
        let taken = certain && !self.is_exhausted(tuple) && !self.is_over(tuple);
        assert!(!taken, "{alias:?} is taken: {tuple:?}");
        let now = self.now;
        let behaviour = self.behaviour(tuple.protocol);
        for flow in &mut self.flows {
            let part = match behaviour.mapping {
                Dependence::Endpoint => true,
                _ => flow.remote.0 == tuple.destination.0,
            };
            if part && flow.mapped && (flow.protocol, flow.alias) == (tuple.protocol, alias) {
                let udp = flow.protocol == protocol::UDP && is(flow, now) == Is::Alive;
                let spoken = udp && flow.out && flow.incoming && flow.doubt.is_none();
                assert!(!spoken || flow.is_dns(), "{flow:?} gave way to {tuple:?}");
                assert!(
                    is(flow, now) != Is::Alive || flow.remote != tuple.destination,
                    "two with one outside tuple"
                );
                flow.mapped = false;
            }
        }
    }

    fn open(&mut self, tuple: &Tuple, alias: End, mapped: bool) {
        if mapped {
            self.had.insert(alias);
        }
        // Whoever had the outside tuple before has it no more.
        self.flows.retain(|flow| {
            (flow.protocol, flow.remote, flow.alias) != (tuple.protocol, tuple.destination, alias)
        });
        self.flows.push(Flow {
            protocol: tuple.protocol,
            inside: tuple.source,
            remote: tuple.destination,
            alias,
            last: self.now,
            out: true,
            incoming: false,
            mapped,
            permits: mapped,
            doubt: None,
            gone: false,
            stranger: false,
        });
    }

    fn is_exhausted(&self, tuple: &Tuple) -> bool {
        assert!(Self::has_ports(tuple.protocol));
        if let Some(rule) = self.rule_out(tuple) {
            // This port or none.
            let mut flows = self.flows.iter();
            let outside = (tuple.protocol, tuple.destination, rule.alias);
            return flows.any(|flow| (flow.protocol, flow.remote, flow.alias) == outside);
        }
        let bound = self.flows.iter().any(|flow| {
            // Its mapping's port is taken by what came in to the target.
            let kin = flow.mapped && flow.inside == tuple.source;
            let other = (flow.alias, tuple.destination);
            let holds = |flow: &Flow| (flow.alias, flow.remote) == other && !flow.mapped;
            kin && self.flows.iter().any(holds)
        });
        if bound {
            return true;
        }
        let addresses = self.config.addresses.iter();
        let full = |alias: Ipv4Addr| {
            self.config.ports.clone().all(|port| {
                let end = (alias, port);
                let (_, all) = self.holders(tuple.protocol, end, tuple.destination);
                all > 0 || self.is_ruled(tuple.protocol, end)
            })
        };
        let full: Vec<bool> = addresses.map(|alias| full(*alias)).collect();
        match self.config.pooling {
            Pooling::Paired => full.contains(&true),
            Pooling::Arbitrary => full.iter().all(|full| *full),
        }
    }

    /// As [`Model::out`]; `inside` is where the packet went.
    fn incoming(&mut self, tuple: &Tuple, verdict: Verdict, inside: End) {
        let found = self.find_in(tuple);
        let state = found.map_or(Is::Dead, |at| self.is(&self.flows[at]));
        if let Some(at) = found
            && state != Is::Dead
            && (state == Is::Alive
                || verdict == Verdict::Translated && self.flows[at].inside == inside)
        {
            assert_eq!(verdict, Verdict::Translated, "{tuple:?}");
            let flow = &mut self.flows[at];
            assert_eq!(flow.inside, inside, "{tuple:?}");
            flow.used(Direction::In, state);
            (flow.last, flow.incoming) = (self.now, true);
            return;
        }
        if let Some(at) = found {
            self.lose(at);
        }
        if let Some(rule) = self.rule_in(tuple) {
            if verdict == Verdict::TableFull {
                self.check_full();
            } else {
                assert_eq!((verdict, inside), (Verdict::Translated, rule.inside));
                self.by_rule += 1;
                self.open_in(tuple, inside, false);
            }
            return;
        }
        if let Some(known) = self.admitted(tuple, verdict, inside) {
            if known {
                self.open_in(tuple, inside, true);
            }
            return;
        }
        if self.config.mode.deny_incoming {
            assert_eq!(verdict, Verdict::NoMapping, "{tuple:?}");
            return;
        }
        let Some(target) = self.config.target else {
            self.as_it_is(tuple, verdict, inside);
            return;
        };
        match verdict {
            Verdict::TableFull => self.check_full(),
            verdict => {
                assert_eq!(verdict, Verdict::Translated, "{tuple:?}");
                let port = match Self::has_ports(tuple.protocol) {
                    true => tuple.destination.1,
                    false => 0,
                };
                assert_eq!(inside, (target, port));
                self.open_in(tuple, inside, false);
            }
        }
    }

    /// An unsolicited packet that may pass goes as it is, and has a flow
    /// but where there is no room for one, or the two ends have one that is
    /// in use already.
    fn as_it_is(&mut self, tuple: &Tuple, verdict: Verdict, inside: End) {
        let mut others = self.flows.iter();
        let other = others.find(|flow| {
            (flow.protocol, flow.inside, flow.remote)
                == (tuple.protocol, tuple.destination, tuple.source)
        });
        let spoken = |flow: &Flow| flow.out && flow.incoming;
        if verdict == Verdict::Passed {
            let full = self.flows.len() >= self.config.limits.max_flows;
            assert!(full || other.is_some_and(spoken), "{tuple:?}");
            return;
        }
        assert_eq!(verdict, Verdict::Translated, "{tuple:?}");
        assert_eq!(inside, tuple.destination, "{tuple:?}");
        let stays = other.is_some_and(|flow| {
            let over = flow.protocol == protocol::TCP || flow.is_dns();
            spoken(flow) && !over && flow.doubt.is_none() && self.is(flow) == Is::Alive
        });
        assert!(!stays, "{tuple:?}: {other:?} has these ends");
        self.as_they_are += 1;
        self.open_in(tuple, inside, false);
    }

    fn open_in(&mut self, tuple: &Tuple, inside: End, mapped: bool) {
        self.flows.retain(|flow| {
            (flow.protocol, flow.inside, flow.remote) != (tuple.protocol, inside, tuple.source)
        });
        self.flows.push(Flow {
            protocol: tuple.protocol,
            inside,
            remote: tuple.source,
            alias: tuple.destination,
            last: self.now,
            out: false,
            incoming: true,
            mapped,
            permits: mapped,
            doubt: None,
            gone: false,
            stranger: true,
        });
    }

    /// The engine ended so many flows for another's sake: those that it has
    /// no more. `asked`: the packet whose flow wanted room or a port.
    /// Expired flows that were not swept yet take room as well.
    fn evicted(
        &mut self,
        before: &Statistics,
        many: u64,
        asked: &Tuple,
        has: impl Fn(&Flow) -> bool,
    ) {
        let most = self.config.limits.max_flows;
        let full = before.flows >= most || (before.strangers + 1) * 4 >= most;
        let lost: Vec<Flow> = self
            .flows
            .iter()
            .filter(|flow| !has(flow))
            .copied()
            .collect();
        let sure = lost.iter().filter(|flow| self.is(flow) == Is::Alive);
        let mut evicted = 0;
        for flow in sure {
            let (inside, remote) = ((flow.protocol, flow.inside), flow.remote);
            if (flow.protocol, flow.remote, flow.alias)
                == (asked.protocol, asked.source, asked.destination)
                || (inside, remote) == ((asked.protocol, asked.destination), asked.source)
            {
                // It gave way to this very packet's flow.
                continue;
            }
            evicted += 1;
            let answered = flow.out && flow.incoming && !flow.is_dns() && flow.doubt.is_none();
            let udp = flow.protocol == protocol::UDP;
            if flow.stranger && full {
                let comes_again = flow.mapped || flow.inside == flow.alias;
                assert!(
                    !answered || comes_again || !udp,
                    "{flow:?} was the inside's own"
                );
            } else {
                // Its port, which was the last.
                assert!(!answered || !udp, "{flow:?} was answered");
                assert_eq!(
                    (flow.protocol, flow.remote),
                    (asked.protocol, asked.destination),
                    "{flow:?} for {asked:?}: {before:?}"
                );
                assert!(self.now - flow.last >= 700, "{flow:?} was used just now");
                let none = self.is_exhausted(asked) || self.is_over(asked);
                assert!(none, "{flow:?} for {asked:?}");
            }
        }
        assert!(evicted <= many, "{evicted} are lost, {many} were evicted");
        self.gave_way = true;
        // A mapping lives as long as the flow would have that is gone.
        self.flows.retain(|flow| flow.permits || has(flow));
        for flow in self.flows.iter_mut().filter(|flow| !has(flow)) {
            flow.gone = true;
        }
    }

    fn strangers(&self) -> usize {
        self.flows.iter().filter(|flow| flow.stranger).count()
    }

    /// Whether a shared mapping decided; `Some(true)`: it let the packet in.
    fn admitted(&self, tuple: &Tuple, verdict: Verdict, inside: End) -> Option<bool> {
        let behaviour = self.behaviour(tuple.protocol);
        let kin = self.flows.iter().filter(|flow| {
            flow.mapped
                && flow.protocol == tuple.protocol
                && flow.alias == tuple.destination
                && self.same_part(tuple.protocol, flow.remote, tuple.source)
        });
        let kin: Vec<_> = kin.collect();
        let certain = kin.iter().any(|flow| self.is(flow) == Is::Alive);
        if kin.is_empty() {
            return None;
        }
        let knows = |certain: bool| {
            kin.iter().any(|flow| {
                flow.remote.0 == tuple.source.0
                    && (self.is(flow) == Is::Alive || !certain && self.is(flow) == Is::Perhaps)
            })
        };
        let permitted = self.flows.iter().any(|flow| {
            let ends = (flow.protocol, flow.alias, flow.remote.0);
            flow.permits
                && ends == (tuple.protocol, tuple.destination, tuple.source.0)
                && flow.inside == inside
        });
        let (must, may) = match behaviour.filtering {
            Dependence::Endpoint => (certain, true),
            Dependence::Address => (certain && knows(true), knows(false) || permitted),
            Dependence::AddressAndPort => (false, false),
        };
        match verdict {
            Verdict::Translated if may && kin.iter().any(|flow| flow.inside == inside) => {
                Some(true)
            }
            Verdict::Denied => {
                // A connection of the same inside with this remote, through
                // an address that went, does not give way.
                let stands = self.flows.iter().any(|flow| {
                    let ends = (flow.protocol, flow.remote);
                    ends == (protocol::TCP, tuple.source)
                        && tuple.protocol == protocol::TCP
                        && kin.iter().any(|kin| kin.inside == flow.inside)
                });
                assert!(!must || stands, "{tuple:?}");
                Some(false)
            }
            Verdict::TableFull => {
                self.check_full();
                Some(false)
            }
            _ => {
                assert!(!certain, "{verdict:?} for {tuple:?}, {inside:?}");
                None
            }
        }
    }
}

struct World {
    /// To see it again: `FINGERPOST_NAT_SEED`.
    seed: u64,
    random: Random,
    model: Model,
    nat: Nat,
    clock: u64,
    hosts: Vec<Ipv4Addr>,
    remotes: Vec<Ipv4Addr>,
    ports: u64,
    /// Of a hundred steps, how many change the addresses, and the rules.
    changes: u64,
    /// ICMP errors that found their way.
    complaints: u64,
    seen: [u64; Verdict::ALL.len()],
    /// What the engine counted before the packets of a step.
    before: Statistics,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = format!("with FINGERPOST_NAT_SEED={}\n", self.seed);
            // A broken pipe is not what the test is about.
            let _ = std::io::stderr().write_all(seed.as_bytes());
        }
    }
}

const TARGET: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);

/// The alias addresses, of which some are set.
const OWN: [Ipv4Addr; 3] = [
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(192, 0, 2, 2),
    Ipv4Addr::new(192, 0, 2, 77),
];
/// Steps of the normal run.
const USUAL_STEPS: u64 = 200_000;
/// Redirects at a time.
const MOST_RULES: usize = 6;

fn settings(random: &mut Random) -> Config {
    let depend = [
        Dependence::Endpoint,
        Dependence::Address,
        Dependence::AddressAndPort,
    ];
    let mut config = Config::new(&OWN[..random.of(&[1, 1, 3])]);
    let mut behaviour = || {
        let mapping = random.of(&depend);
        let filtering = random.of(&depend).max(mapping);
        Behaviour { mapping, filtering }
    };
    (config.tcp, config.udp) = (behaviour(), behaviour());
    config.pooling = random.of(&[Pooling::Paired, Pooling::Arbitrary]);
    config.port_choice = random.of(&[PortChoice::Random, PortChoice::Same]);
    config.ports = random.of(&[
        40_000..=40_004,
        40_000..=40_050,
        40_000..=40_099,
        1..=300,
        1_024..=65_535,
        20_000..=60_000,
    ]);
    blocks::settings(&mut config, random);
    config.hairpin = Hairpin::Caller;
    config.mode.deny_incoming = random.chance(50);
    config.mode.unregistered_only = random.chance(20);
    config.mode.reset_on_address_change = random.chance(30);
    config.target = random.chance(40).then_some(TARGET);
    config.limits.max_flows = random.of(&[20, 3_000]);
    config.limits.initial_flows = 0;
    config.limits.at_cap = AtCap::Refuse;
    config.seed = random.next();
    config.hold_down_secs = if config.seed & 1 == 0 { 0 } else { 120 };
    let secs = |secs: u64| secs as u32;
    config.timeouts = Timeouts {
        tcp_opening_secs: secs(TCP),
        tcp_established_secs: secs(TCP),
        tcp_half_closed_secs: secs(TCP),
        tcp_closed_secs: secs(TCP),
        tcp_reset_secs: secs(TCP),
        udp_unreplied_secs: secs(UNREPLIED),
        udp_secs: secs(REPLIED),
        icmp_secs: secs(ICMP),
        gre_secs: secs(OTHER),
        other_secs: secs(OTHER),
        dns_secs: secs(DNS),
    };
    config
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(lab::Random::new(seed));
        let config = settings(&mut random);
        let hosts = random.of(&[3_u8, 20]);
        let hosts = (1..=hosts).map(|host| Ipv4Addr::new(10, 0, 0, host));
        let hosts = hosts.chain([Ipv4Addr::new(203, 0, 113, 5)]).collect();
        let remotes = random.of(&[1_u8, 4, 30]);
        let remotes = (1..=remotes).map(|host| Ipv4Addr::new(198, 51, 100, host));
        Self {
            seed,
            hosts,
            remotes: remotes.collect(),
            ports: random.of(&[2, 12, 300]),
            nat: Nat::new(config.clone()).unwrap(),
            model: Model {
                config,
                flows: Vec::new(),
                had: BTreeSet::new(),
                rules: Vec::new(),
                by_rule: 0,
                as_they_are: 0,
                gave_way: false,
                given: Vec::new(),
                moved: false,
                now: 0,
            },
            changes: random.of(&[0, 0, 1, 5]),
            complaints: 0,
            clock: random.next() >> 20,
            random,
            seen: [0; Verdict::ALL.len()],
            before: Statistics::default(),
        }
    }

    fn protocol(&mut self) -> u8 {
        let all = [
            protocol::TCP,
            protocol::UDP,
            protocol::UDP,
            protocol::ICMP,
            ESP,
        ];
        self.random.of(&all)
    }

    fn port(&mut self) -> u16 {
        40_000 + self.random.below(self.ports) as u16
    }

    fn outgoing(&mut self) -> Tuple {
        let protocol = self.protocol();
        let (host, remote) = (self.random.of(&self.hosts), self.random.of(&self.remotes));
        let (inside, outside) = match protocol {
            protocol::ICMP => (self.port(), 0),
            ESP => (0, 0),
            _ => (self.port(), self.random.of(&[53, 1_000, 1_001, 1_002])),
        };
        Tuple {
            protocol,
            source: (host, inside),
            destination: (remote, outside),
        }
    }

    /// An answer to a flow, or something like one.
    fn incoming(&mut self) -> Option<Tuple> {
        let flows = &self.model.flows;
        let mut tuple = if flows.is_empty() {
            let tuple = self.outgoing();
            Tuple {
                source: tuple.destination,
                destination: (self.model.config.addresses[0], tuple.source.1),
                ..tuple
            }
        } else {
            let flow = flows[self.random.below(flows.len() as u64) as usize];
            Tuple {
                protocol: flow.protocol,
                source: flow.remote,
                destination: flow.alias,
            }
        };
        let ported = matches!(tuple.protocol, protocol::TCP | protocol::UDP);
        if self.random.chance(15) {
            tuple.source.0 = self.random.of(&self.remotes);
        }
        if ported && self.random.chance(10) {
            tuple.source.1 = 1_000 + self.random.below(6) as u16;
        }
        if tuple.protocol != ESP && self.random.chance(10) {
            tuple.destination.1 = self.port();
        }
        // Whether a TCP connection gives way is a matter of its state, which
        // the model does not know.
        (tuple.protocol != protocol::TCP
            || self.model.config.target.is_none()
            || self.model.config.mode.deny_incoming
            || self.model.find_in(&tuple).is_some())
        .then_some(tuple)
    }

    fn pass_time(&mut self) {
        let forward = match self.random.below(100) {
            0 => self.random.below(80_000),
            1..10 => self.random.below(3_000),
            10..60 => self.random.below(100),
            _ => 0,
        };
        self.clock += forward;
        self.model.now += forward;
        if self.random.chance(1) {
            // A clock that steps back: no time passes. The engine must see it
            // on both sides of the step, or time that goes forward before the
            // next packet would be hidden by it.
            self.nat.maintain(self.clock, 0);
            self.clock = self.clock.saturating_sub(self.random.below(1_000_000));
            self.nat.maintain(self.clock, 0);
        }
        self.model.bury();
    }

    /// Other alias addresses: flows stay, or all are forgotten.
    fn change_addresses(&mut self) {
        let sets: [&[Ipv4Addr]; 5] = [&OWN[..1], &OWN[1..2], &OWN[..2], &OWN[1..], &OWN];
        let addresses = self.random.of(&sets);
        if addresses == self.model.config.addresses {
            return;
        }
        self.nat.set_addresses(addresses).unwrap();
        self.model.config.addresses = addresses.to_vec();
        self.model.moved = true;
        if self.model.config.mode.reset_on_address_change {
            self.model.flows.clear();
        }
    }

    /// A redirect more, or one less.
    fn change_rules(&mut self) {
        let many = self.model.rules.len() as u64;
        if many > 0 && (many >= MOST_RULES as u64 || self.random.chance(40)) {
            let at = self.random.below(many) as usize;
            let rule = self.model.rules.remove(at);
            self.nat.rules_mut().remove(rule.handle).unwrap();
            let stale = self.nat.rules_mut().remove(rule.handle);
            assert!(stale.is_err(), "a handle that was used");
            return;
        }
        let inside = (self.random.of(&self.hosts), self.port());
        let alias = (self.random.of(&OWN), self.port());
        let remote = self.random.of(&self.remotes);
        let remote = self.random.chance(40).then_some(remote);
        let redirect = Redirect::port(protocol::UDP, inside.0, inside.1, alias.1)
            .at(alias.0)
            .from(remote, None);
        let handle = self.nat.rules_mut().insert(redirect).unwrap();
        self.model.rules.push(Rule {
            inside,
            alias,
            remote,
            handle,
        });
    }

    fn step(&mut self) -> u64 {
        self.pass_time();
        if self.random.chance(self.changes) {
            self.change_addresses();
        }
        if self.random.chance(self.changes) {
            self.change_rules();
        }
        let direction = self.random.of(&[Direction::Out, Direction::In]);
        let count = match self.may_evict() {
            // Who went is looked up after each packet.
            true => 1,
            false => self.random.of(&[1, 1, 2, 7, 33, 40]),
        };
        let mut tuples = Vec::new();
        for _ in 0..count {
            let tuple = match direction {
                Direction::Out => Some(self.outgoing()),
                Direction::In => self.incoming(),
            };
            tuples.extend(tuple);
        }
        let before: Vec<Vec<u8>> = tuples
            .iter()
            .map(|tuple| build(tuple, &mut self.random))
            .collect();
        let mut after = before.clone();
        self.before = self.nat.statistics();
        self.model.gave_way = false;
        let mut verdicts = self.translate(direction, &mut after);
        if let Some(asked) = tuples.first() {
            self.note_evicted(asked, tuples.len());
        }
        for at in 0..tuples.len() {
            if verdicts[at] == Verdict::TableFull && tuples[at].protocol == ESP {
                // The last who sends has the outside tuple: to try it again
                // out of turn would change who that is.
                assert_eq!(before[at], after[at]);
                continue;
            }
            if self.is_early(&tuples[at], verdicts[at]) {
                self.nat.maintain(self.clock, usize::MAX);
                verdicts[at] = match direction {
                    Direction::Out => self.nat.translate_out(&mut after[at], self.clock),
                    Direction::In => self.nat.translate_in(&mut after[at], self.clock),
                };
                self.note_evicted(&tuples[at], 1);
                // Packets behind it in the batch, which the model has yet to
                // see, may have taken the room or the last ports.
                let tuple = &tuples[at];
                let refused = match verdicts[at] {
                    Verdict::TableFull => true,
                    Verdict::PortsExhausted
                        if !self.model.keeps_its_own(tuple) && !self.model.is_exhausted(tuple) =>
                    {
                        assert!(self.engines_own().is_exhausted(tuple), "{tuple:?}");
                        true
                    }
                    Verdict::OverQuota if !self.model.is_over(tuple) => {
                        assert!(self.engines_own().is_over(tuple), "{tuple:?}");
                        true
                    }
                    _ => false,
                };
                if refused {
                    assert_eq!(before[at], after[at]);
                    if direction == Direction::Out {
                        self.model.refused(tuple);
                    }
                    continue;
                }
            }
            self.seen[verdicts[at].index()] += 1;
            self.check(
                direction,
                &tuples[at],
                verdicts[at],
                &before[at],
                &after[at],
            );
        }
        if let (Some(tuple), Some(Verdict::Translated)) = (tuples.last(), verdicts.last())
            && self.random.chance(30)
        {
            let last = tuples.len() - 1;
            self.complain(direction, tuple, &before[last], &after[last]);
        }
        if self.random.chance(2) {
            let budget = self.random.below(5_000) as usize;
            self.nat.maintain(self.clock, budget);
        }
        tuples.len() as u64
    }
}

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn the_engine_is_the_model() {
    let mut done = 0;
    let mut seen = [0; Verdict::ALL.len()];
    let (mut by_rule, mut complaints) = (0, 0);
    let (mut evicted, mut as_they_are) = (0, 0);
    let mut seed = asked("FINGERPOST_NAT_SEED").unwrap_or(1);
    let steps = asked("FINGERPOST_NAT_STEPS").unwrap_or(USUAL_STEPS);
    while done < steps {
        let mut world = World::new(seed);
        let mut here = 0;
        while here < 4_000 {
            here += world.step();
        }
        world.compare();
        done += here;
        by_rule += world.model.by_rule;
        evicted += world.nat.statistics().flows_evicted;
        as_they_are += world.model.as_they_are;
        complaints += world.complaints;
        seed += 1;
        for (sum, one) in seen.iter_mut().zip(world.seen) {
            *sum += one;
        }
    }
    if steps < USUAL_STEPS {
        // A few worlds, looked at again: not all comes about in them.
        return;
    }
    assert!(by_rule > 100, "{by_rule} flows by redirects");
    assert!(complaints > 1_000, "{complaints} errors");
    assert!(evicted > 1_000, "{evicted} flows gave way");
    assert!(
        as_they_are > 100,
        "{as_they_are} flows of what passed as it was"
    );
    for verdict in [
        Verdict::Translated,
        Verdict::Passed,
        Verdict::NoMapping,
        Verdict::Denied,
        Verdict::TableFull,
        Verdict::PortsExhausted,
        Verdict::OverQuota,
    ] {
        assert!(seen[verdict.index()] > 100, "{verdict:?}: {seen:?}");
    }
}

/// The view of a packet's bytes agrees with the crate used here.
#[test]
fn both_parsers_agree() {
    let mut random = Random(lab::Random::new(1));
    for _ in 0..1_000 {
        let tuple = Tuple {
            protocol: random.of(&[protocol::TCP, protocol::UDP, ESP]),
            source: (Ipv4Addr::from(random.next() as u32), 5),
            destination: (Ipv4Addr::from(random.next() as u32), 6),
        };
        let bytes = build(&tuple, &mut random);
        let ip = Ipv4::new(bytes.as_slice()).unwrap();
        assert!(ip.checksum_is_right());
        assert_eq!(ip.source(), read(&bytes, Direction::Out).0.source.0);
    }
}
