//! Flows of an engine that is gone, which others translated on its behalf
//! and still know: they are taken up one by one, by their ends alone.
//!
//! For `router`, whose program in the kernel outlives a process that was
//! killed. How a flow was made is not known: it is adopted in the first way
//! in which the settings make one with such ends.

use packet::protocol;

use super::Nat;
use super::counts::NO_BLOCK;
use super::create::{Back, Plan, Wish};
use super::mapped::MappingChoice;
use super::offload::Offloaded;
use super::port::{Chosen, Contest};
use super::taking_up::Unclaimed;
use super::{address, word};
use crate::blocks::BlockEventKind;

use crate::flow::{Ends, flag};
use crate::parse::Upper;
use crate::rules::{Found, Handle};
use crate::{PortChoice, State, Verdict};

/// Why a flow cannot be adopted: it is none then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotAdopted {
    /// It is neither TCP nor UDP, or a question of DNS, or one of two halves
    /// (a hairpin), or directions are swapped.
    #[error("such a flow is never offloaded")]
    Kind,
    /// It was unused for longer than its timeout.
    #[error("it has expired")]
    Expired,
    /// It is another part's ([`crate::Shards`]).
    #[error("it is another worker's")]
    Part,
    /// No setting gives its inside this outside address, nor does a redirect
    /// lead from there to it.
    #[error("its inside does not have its outside address by the settings")]
    Alias,
    /// Its outside port is neither of the range nor of a block.
    #[error("its outside port is none that flows have by the settings")]
    Port,
    /// Its inside is no subscriber, and only those have ports.
    #[error("its inside is no subscriber")]
    Subscriber,
    /// Another flow has its ends, or somebody else its port or block.
    #[error("another has its ends, its port or the block of its port")]
    Taken,
    /// Its subscriber has as much as it may have.
    #[error("its subscriber has as much as it may have")]
    Quota,
    /// There is no room.
    #[error("there is no room for it")]
    Full,
}

impl From<Verdict> for NotAdopted {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::OverQuota => Self::Quota,
            Verdict::TableFull => Self::Full,
            _ => Self::Taken,
        }
    }
}

impl From<Unclaimed> for NotAdopted {
    fn from(unclaimed: Unclaimed) -> Self {
        match unclaimed {
            Unclaimed::Taken => Self::Taken,
            Unclaimed::Quota => Self::Quota,
        }
    }
}

/// How the settings make a flow.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// With this very alias end, which counts for nobody: as it is, by a
    /// redirect, to the target.
    Laid(Option<Handle>),
    /// With a port that is chosen; `pooled`: at an address of the pool.
    Chosen { pooled: bool },
}

impl Nat {
    /// Takes up a flow that others translated on behalf of an engine that is
    /// gone ([`Nat::offload`]): it is established (TCP) or answered (UDP), and
    /// was used `idle_millis` ago. Its ends stay as they are. It counts as a
    /// flow of its subscriber, and has its port, its block and its shared
    /// mapping, as if it had been made here, but is no new one to statistics
    /// and rates. Events tell of it, and of a block that was taken for it. It
    /// is not offloaded: of UDP it may be with its next packet, of TCP when
    /// one came from each side. Of TCP no number is known: the first FIN or
    /// RST is believed.
    ///
    /// To be called when settings and rules are there and blocks are held
    /// ([`Nat::hold_block`]), before packets are translated: who comes first
    /// has a port. O(1), and O(addresses) for the first block of one.
    pub fn adopt(
        &mut self,
        flow: &Offloaded,
        idle_millis: u64,
        now_millis: u64,
    ) -> Result<(), NotAdopted> {
        self.begin(now_millis);
        self.catch_up_calls();
        let ends = flow.ends();
        let back = self.as_it_was(&ends, idle_millis)?;
        if self.shard.as_ref().is_some_and(|part| !part.has(&ends)) {
            return Err(NotAdopted::Part);
        }
        let out = self.table.hasher.hash(ends.out_key());
        let incoming = self.table.hasher.hash(ends.in_key());
        if self.living::<true>(ends.out_key(), out).is_some()
            || self.living::<false>(ends.in_key(), incoming).is_some()
        {
            return Err(NotAdopted::Taken);
        }
        if self.table.is_full() && !self.make_room() {
            return Err(NotAdopted::Full);
        }
        let plan = Plan {
            flags: flag::SEEN_OUT | flag::SEEN_IN,
            shared: MappingChoice::default(),
            chosen: Chosen::default(),
            ported: true,
            out,
            sweep: 0,
            back: Some(back),
        };
        self.adopt_as(&ends, plan)
    }

    fn adopt_as(&mut self, ends: &Ends, plan: Plan) -> Result<(), NotAdopted> {
        let plan = match self.way_of(ends) {
            Some(Way::Laid(handle)) => {
                if let Some(handle) = handle {
                    self.rules.take(handle);
                }
                plan
            }
            Some(Way::Chosen { pooled }) => match self.with_port(ends, pooled, plan) {
                Err(_) if self.is_to_target(ends) => plan,
                planned => planned?,
            },
            None if self.is_to_target(ends) => plan,
            None => return Err(NotAdopted::Alias),
        };
        self.make(ends, &plan)?;
        Ok(())
    }

    /// What it was when it was used last, if such a flow is offloaded and it
    /// would not have expired.
    fn as_it_was(&self, ends: &Ends, idle_millis: u64) -> Result<Back, NotAdopted> {
        const DNS: u16 = 53_u16.to_be();
        let is_dns = [ends.inside_port, ends.remote_port].contains(&DNS);
        let state = match ends.protocol {
            protocol::TCP => State::TcpEstablished,
            protocol::UDP if !is_dns => State::Udp,
            _ => return Err(NotAdopted::Kind),
        };
        // Nobody's address or port, and what stands for anybody's.
        let is_nobodys =
            [ends.inside, ends.alias, ends.remote].contains(&0) || ends.alias_port == 0;
        if is_nobodys || self.is_own(ends.remote) || self.config.mode.reverse {
            return Err(NotAdopted::Kind);
        }
        let used = self.clock.ago(idle_millis);
        if self.clock.now() - used > self.ticks.of(state as u8) {
            return Err(NotAdopted::Expired);
        }
        Ok(Back { state, used })
    }

    /// How the settings make a flow with such ends, but for the target.
    fn way_of(&self, ends: &Ends) -> Option<Way> {
        if self.stays_as_it_is(ends) {
            return Some(Way::Laid(None));
        }
        if let Some(found) = self.redirect(ends.in_key())
            && self.leads_to(&found, ends)
        {
            return Some(Way::Laid(found.one_shot.then_some(found.handle)));
        }
        if let Some((alias, handle)) = self.alias_laid_down(ends.out_key(), Upper::Udp) {
            let is_same = alias.address == ends.alias;
            return match alias.port {
                Wish::Exactly(port) if is_same && port == ends.alias_port => {
                    Some(Way::Laid(handle))
                }
                Wish::Same | Wish::Any if is_same => Some(Way::Chosen { pooled: false }),
                _ => None,
            };
        }
        if !self.config.mode.deny_incoming
            && let alias = address(ends.alias)
            && let Some(found) = self.rules.original_address(alias, self.is_own(ends.alias))
            && self.leads_to(&found, ends)
        {
            return Some(Way::Laid(None));
        }
        let is_translated = !self.config.mode.proxy_only
            && !self.is_left_alone(ends.inside)
            && !self.is_exempt(ends.remote);
        (is_translated && self.is_own(ends.alias)).then_some(Way::Chosen { pooled: true })
    }

    /// Whether a flow is not changed, by the modes.
    fn stays_as_it_is(&self, ends: &Ends) -> bool {
        let mode = self.config.mode;
        let comes_in = match mode.deny_incoming {
            true => self.is_foreign(ends.alias),
            false => self.config.target.is_none(),
        };
        let is_same = (ends.inside, ends.inside_port) == (ends.alias, ends.alias_port);
        is_same && !mode.proxy_only && (comes_in || self.is_left_alone(ends.inside))
    }

    fn is_to_target(&self, ends: &Ends) -> bool {
        let target = self.config.target.map(word);
        !self.config.mode.deny_incoming
            && target == Some(ends.inside)
            && ends.inside_port == ends.alias_port
    }

    /// Whether a redirect of an alias end leads to an inside one, which may be
    /// any of its servers.
    fn leads_to(&self, found: &Found, ends: &Ends) -> bool {
        let is_port = |port: u16| match port {
            0 => ends.inside_port == ends.alias_port,
            port => ends.inside_port == port.to_be(),
        };
        let servers = self.rules.servers(found.handle);
        if servers.is_empty() {
            let inside = found.address.map_or(ends.alias, word);
            return inside == ends.inside && is_port(found.port);
        }
        servers
            .iter()
            .any(|server| word(server.address) == ends.inside && is_port(server.port))
    }

    /// With its port as one that was chosen, if it might have been, and its
    /// shared mapping.
    fn with_port(&mut self, ends: &Ends, pooled: bool, plan: Plan) -> Result<Plan, NotAdopted> {
        let subscriber = self.new_subscriber(ends.inside)?;
        self.admit_session(subscriber, ends.protocol)?;
        let shared = self.shared_again(ends, pooled);
        if shared.mapping.is_some() {
            return Ok(Plan { shared, ..plan });
        }
        self.admit_port(subscriber, ends.protocol)?;
        let (remote, remote_port) = match shared.make_for {
            Some(remote) => (remote, 0),
            None => (ends.remote, ends.remote_port),
        };
        let group = self.group(ends.alias, remote, remote_port, ends.protocol);
        let contest = Contest::without_taking(ends, shared.make_for, group);
        let free = self.is_free(&contest, ends.alias_port);
        let free = free.ok_or(NotAdopted::Taken)?;
        let mark = match self.holder_of(ends, subscriber) {
            Err(_) => return Err(NotAdopted::Subscriber),
            Ok(Some(name)) => self.block_again(ends, name)? + 1,
            Ok(None) if !self.may_have_been_chosen(ends, pooled) => return Err(NotAdopted::Port),
            Ok(None) => subscriber.map_or(0, |_| NO_BLOCK),
        };
        let chosen = contest.chosen(free, mark);
        Ok(Plan {
            shared,
            chosen,
            ..plan
        })
    }

    /// The mapping that a flow shares, or that it opens anew. Where its
    /// inside has another one it has its port for itself, as one that came in
    /// by a redirect.
    fn shared_again(&mut self, ends: &Ends, pooled: bool) -> MappingChoice {
        let Some(remote) = self.remote_part(ends) else {
            return MappingChoice::default();
        };
        let shared = self.shared_for(ends, remote, pooled);
        let mapping = shared.mapping.and_then(|name| self.mappings.get(name));
        let is_same =
            mapping.is_none_or(|of| (of.alias, of.alias_port) == (ends.alias, ends.alias_port));
        match is_same {
            true => shared,
            false => MappingChoice::default(),
        }
    }

    /// Whether a port is one that flows get where there are no blocks.
    fn may_have_been_chosen(&self, ends: &Ends, pooled: bool) -> bool {
        let inside = ends.inside_port;
        let is_same = [inside, self.like(inside)].contains(&ends.alias_port);
        let keeps = !pooled || self.config.port_choice == PortChoice::Same;
        self.ports.has(u16::from_be(ends.alias_port)) || keeps && is_same
    }

    /// The block of a flow's port, which is its subscriber's from now on if it
    /// is nobody's.
    fn block_again(&mut self, ends: &Ends, name: u32) -> Result<u32, NotAdopted> {
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let port = u16::from_be(ends.alias_port);
        if pool.is_none_or(|pool| pool.layout().at(port).is_none()) {
            return Err(NotAdopted::Port);
        }
        // Its address can be reckoned, and its first block.
        let is_reckoned = pool.is_some_and(|pool| pool.reckoning.is_some());
        if is_reckoned && self.settled(name) != Some(ends.alias) {
            return Err(NotAdopted::Alias);
        }
        if self.is_in_block(ends.inside, ends.alias, ends.alias_port)
            && let Some(block) = self.block_at(ends.alias, ends.alias_port)
        {
            return Ok(block);
        }
        let block = self.claim_for(name, (ends.alias, port))?;
        self.tell_of(name, BlockEventKind::Taken, Some(block));
        Ok(block)
    }
}
