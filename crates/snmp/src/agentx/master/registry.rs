//! Who answers for which names (RFC 2741 §7.1.4, §7.2.1). Called by
//! [`super::Master`].

use std::collections::BTreeMap;

use super::dispatch::{Candidate, Dispatch, Owner, Region};
use crate::agentx::wire::error;
use crate::oid::{MAX_SUB_IDS, Name};

/// Subtrees of a session, those of ranges singly, at most.
pub const MAX_SUBTREES_OF_SESSION: usize = 4_096;
/// Subtrees of all sessions at most.
pub const MAX_SUBTREES: usize = 16_384;
/// What only the agent itself says: the system group with sysORTable, and
/// the modules of SNMP, engine and users among them.
const PROTECTED: [&[u32]; 2] = [&[1, 3, 6, 1, 2, 1, 1], &[1, 3, 6, 1, 6, 3]];

/// What a Register or an Unregister names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub context: Vec<u8>,
    pub subtree: Name,
    pub priority: u8,
    /// The place, from 1, that takes all numbers up to the second; 0: none.
    pub range: (u8, u32),
}

/// A registration that stands.
#[derive(Debug)]
struct Standing {
    session: u32,
    named: Named,
    subtrees: usize,
}

/// Who registered a subtree at a priority.
#[derive(Debug)]
struct Holder {
    session: u32,
    timeout_millis: u64,
}

/// All registrations.
#[derive(Debug, Default)]
pub struct Registry {
    standing: Vec<Standing>,
    contexts: BTreeMap<Vec<u8>, BTreeMap<(Name, u8), Holder>>,
    subtrees: usize,
}

impl Named {
    /// Each subtree that it means; `None` for a range that is none, or too
    /// long a one.
    fn subtrees(&self) -> Option<Vec<Name>> {
        let (place, last) = self.range;
        if place == 0 {
            return Some(vec![self.subtree.clone()]);
        }
        let at = usize::from(place) - 1;
        let first = *self.subtree.get(at)?;
        let more = last.checked_sub(first)? as usize;
        if more >= MAX_SUBTREES_OF_SESSION {
            return None;
        }
        let one = |number| {
            let mut subtree = self.subtree.clone();
            subtree[at] = number;
            subtree
        };
        Some((first..=last).map(one).collect())
    }
}

impl Registry {
    /// Registers all of it, or nothing: the error says why. O(subtrees of
    /// it · log all).
    pub fn register(&mut self, session: u32, named: Named, timeout_millis: u64) -> Result<(), u16> {
        let subtrees = named.subtrees().ok_or(error::REQUEST_DENIED)?;
        let protected = |subtree: &Name| PROTECTED.iter().any(|of| subtree.starts_with(of));
        // The longest name has nothing below it, and no place in an answer.
        let is_long = named.subtree.len() >= MAX_SUB_IDS;
        let is_short = named.subtree.is_empty();
        if is_long || is_short || subtrees.iter().any(protected) {
            return Err(error::REQUEST_DENIED);
        }
        let is_full = self.subtrees_of(session) + subtrees.len() > MAX_SUBTREES_OF_SESSION
            || self.subtrees + subtrees.len() > MAX_SUBTREES;
        if is_full {
            return Err(error::REQUEST_DENIED);
        }
        let context = self.contexts.entry(named.context.clone()).or_default();
        let priority = named.priority;
        let held = |subtree: &Name| context.contains_key(&(subtree.clone(), priority));
        if subtrees.iter().any(held) {
            return Err(error::DUPLICATE_REGISTRATION);
        }
        self.subtrees += subtrees.len();
        self.standing.push(Standing {
            session,
            named,
            subtrees: subtrees.len(),
        });
        for subtree in subtrees {
            let holder = Holder {
                session,
                timeout_millis,
            };
            context.insert((subtree, priority), holder);
        }
        Ok(())
    }

    /// Takes a registration back that was made just so.
    pub fn unregister(&mut self, session: u32, named: &Named) -> Result<(), u16> {
        let mut standing = self.standing.iter();
        let at = standing.position(|one| one.session == session && one.named == *named);
        let at = at.ok_or(error::UNKNOWN_REGISTRATION)?;
        let gone = self.standing.swap_remove(at);
        self.remove(&gone);
        Ok(())
    }

    /// Takes all of a session's back; whether there were any.
    pub fn forget(&mut self, session: u32) -> bool {
        let of_session = |one: &Standing| one.session == session;
        let (gone, rest) = self.standing.drain(..).partition(of_session);
        self.standing = rest;
        let gone: Vec<Standing> = gone;
        gone.iter().for_each(|standing| self.remove(standing));
        !gone.is_empty()
    }

    /// Forgets the subtrees of a registration that stands no more.
    fn remove(&mut self, gone: &Standing) {
        self.subtrees -= gone.subtrees;
        let Some(context) = self.contexts.get_mut(&gone.named.context) else {
            return;
        };
        for subtree in gone.named.subtrees().unwrap_or_default() {
            context.remove(&(subtree, gone.named.priority));
        }
        if context.is_empty() {
            self.contexts.remove(&gone.named.context);
        }
    }

    /// Subtrees that a session has, those of ranges singly.
    pub fn subtrees_of(&self, session: u32) -> usize {
        let of_session = self.standing.iter().filter(|one| one.session == session);
        of_session.map(|one| one.subtrees).sum()
    }

    /// Who is to be asked for what. `own` are the subtrees that the agent
    /// itself answers for, in order. O(all).
    pub fn dispatch(&self, own: &[&[u32]]) -> Dispatch {
        let regions = |holders: &BTreeMap<(Name, u8), Holder>| -> Box<[Region]> {
            let mut candidates: Vec<Candidate<'_>> = own
                .iter()
                .map(|subtree| Candidate::own(subtree))
                .chain(holders.iter().map(|((subtree, priority), holder)| {
                    let owner = Owner::Subagent {
                        session: holder.session,
                        timeout_millis: holder.timeout_millis,
                    };
                    Candidate {
                        subtree,
                        priority: *priority,
                        owner,
                    }
                }))
                .collect();
            candidates.sort_by(|a, b| (a.subtree, a.priority).cmp(&(b.subtree, b.priority)));
            candidates.dedup_by(|later, first| later.subtree == first.subtree);
            super::dispatch::regions(&candidates)
        };
        let contexts = self.contexts.iter();
        Dispatch::new(contexts.map(|(name, holders)| (name.clone(), regions(holders))))
    }
}
