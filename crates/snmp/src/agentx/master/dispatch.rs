//! All names, cut into regions that one answers for (RFC 2741 §7.2.1).
//! Made by [`super::registry`], read by whoever gathers an answer.

use std::collections::BTreeMap;

use crate::oid;

/// Our own objects' priority: better than the 127 that a subagent has who
/// does not choose, and one that wants ours can have it.
const OWN_PRIORITY: u8 = 100;

/// Who answers for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The agent, of its own objects.
    Own,
    /// A session with a subagent.
    Subagent {
        /// Its number.
        session: u32,
        /// Milliseconds that it may take.
        timeout_millis: u64,
    },
}

/// Names from one to another, all of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first name.
    pub start: Box<[u32]>,
    /// The first name beyond; `None`: there is no end.
    pub end: Option<Box<[u32]>>,
    /// Who answers.
    pub owner: Owner,
}

/// Who is to be asked for what, by context.
#[derive(Debug, Default)]
pub struct Dispatch(BTreeMap<Vec<u8>, Box<[Region]>>);

impl Dispatch {
    /// Of contexts and their regions.
    pub(super) fn new(contexts: impl Iterator<Item = (Vec<u8>, Box<[Region]>)>) -> Self {
        Self(contexts.collect())
    }

    /// The regions of a context, in order, each name in one; `None` where no
    /// subagent has any. O(log contexts).
    pub fn regions(&self, context: &[u8]) -> Option<&[Region]> {
        self.0.get(context).map(|regions| &**regions)
    }

    /// Whether no subagent has any name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Somebody who would answer for a subtree.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) subtree: &'a [u32],
    pub(super) priority: u8,
    pub(super) owner: Owner,
}

impl<'a> Candidate<'a> {
    /// The agent itself.
    pub(super) fn own(subtree: &'a [u32]) -> Self {
        Self {
            subtree,
            priority: OWN_PRIORITY,
            owner: Owner::Own,
        }
    }
}

/// Cuts all names into regions: the longest subtree that a name is in
/// decides. `candidates` are in order, each subtree once. O(candidates).
pub(super) fn regions(candidates: &[Candidate<'_>]) -> Box<[Region]> {
    let mut cut = Cut::default();
    for candidate in candidates {
        cut.close_before(candidate.subtree);
        cut.up_to(candidate.subtree);
        let end = oid::behind(candidate.subtree).map(|end| end.as_slice().into());
        cut.open.push((end, candidate.owner));
    }
    cut.close_all();
    cut.regions.into()
}

/// Subtrees that are open around a place, the innermost last.
#[derive(Default)]
struct Cut {
    open: Vec<(Option<Box<[u32]>>, Owner)>,
    at: Box<[u32]>,
    regions: Vec<Region>,
}

impl Cut {
    fn owner(&self) -> Owner {
        self.open.last().map_or(Owner::Own, |(_, owner)| *owner)
    }

    /// All up to a name is of the innermost subtree.
    fn up_to(&mut self, name: &[u32]) {
        if *self.at != *name {
            self.push(Some(name.into()));
            self.at = name.into();
        }
    }

    fn push(&mut self, end: Option<Box<[u32]>>) {
        let owner = self.owner();
        match self.regions.last_mut().filter(|last| last.owner == owner) {
            Some(last) => last.end = end,
            None => self.regions.push(Region {
                start: self.at.clone(),
                end,
                owner,
            }),
        }
    }

    /// Closes the subtrees that end at a name or before it.
    fn close_before(&mut self, name: &[u32]) {
        while let Some((Some(end), _)) = self.open.last() {
            if **end > *name {
                return;
            }
            let end = end.clone();
            self.up_to(&end);
            self.open.pop();
        }
    }

    fn close_all(&mut self) {
        while let Some((end, _)) = self.open.last() {
            let Some(end) = end.clone() else {
                self.push(None);
                return;
            };
            self.up_to(&end);
            self.open.pop();
        }
        self.push(None);
    }
}
