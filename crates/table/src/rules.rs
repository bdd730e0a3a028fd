//! The table of rules, in the order in which the kernel tries them.

use std::sync::Arc;

use crate::ordered::Ordered;
use crate::row::rule::Rule;

/// The place of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey {
    /// `AF_INET` or `AF_INET6`.
    pub family: u8,
    /// Its priority.
    pub priority: u32,
    /// Its place among rules of one priority: later ones come later.
    pub ordinal: u32,
}

/// Rules by (family, priority, order of making).
#[derive(Debug, Clone, Default)]
pub struct Rules {
    by_priority: Ordered<RuleKey, Arc<Rule>>,
}

impl Rules {
    /// Number of rules. O(1).
    pub fn len(&self) -> usize {
        self.by_priority.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_priority.is_empty()
    }

    /// All: IPv4 first, each family in the order of evaluation.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.by_priority.iter().map(|(_, row)| row)
    }

    /// All from a place on (itself included), each with its place. A seek,
    /// then O(1) a row.
    pub fn from(&self, place: &RuleKey) -> impl Iterator<Item = (RuleKey, &Arc<Rule>)> {
        self.by_priority.from(place).map(|(key, row)| (*key, row))
    }

    /// Those of a family in the order of evaluation.
    pub fn of_family(&self, family: u8) -> impl Iterator<Item = &Arc<Rule>> {
        self.by_priority
            .from(&first(family, 0))
            .take_while(move |(key, _)| key.family == family)
            .map(|(_, row)| row)
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        self.by_priority.heap_bytes() + self.len() * (size_of::<Rule>() + 16)
    }

    /// Puts a rule behind those of its priority; an equal one stays.
    pub(crate) fn put(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        let equals = self.of_priority(rule.family, rule.priority);
        let mut ordinal = 0;
        for (key, row) in equals {
            if row == rule {
                return Some(row);
            }
            ordinal = key.ordinal + 1;
        }
        let key = RuleKey {
            ordinal,
            ..first(rule.family, rule.priority)
        };
        self.by_priority.insert(key, rule)
    }

    /// Takes the rule out that equals this one.
    pub(crate) fn remove(&mut self, rule: &Rule) -> Option<Arc<Rule>> {
        let (key, _) = self
            .of_priority(rule.family, rule.priority)
            .find(|(_, row)| **row == *rule)?;
        self.by_priority.remove(&key)
    }

    /// Puts a rule in the place of the one that equals `old`.
    pub(crate) fn replace(&mut self, old: &Rule, new: Arc<Rule>) -> Option<Arc<Rule>> {
        let (key, _) = self
            .of_priority(old.family, old.priority)
            .find(|(_, row)| **row == *old)?;
        self.by_priority.insert(key, new)
    }

    fn of_priority(
        &self,
        family: u8,
        priority: u32,
    ) -> impl Iterator<Item = (RuleKey, Arc<Rule>)> + use<> {
        let all: Vec<_> = self
            .by_priority
            .from(&first(family, priority))
            .take_while(|(key, _)| key.family == family && key.priority == priority)
            .map(|(key, row)| (*key, Arc::clone(row)))
            .collect();
        all.into_iter()
    }
}

fn first(family: u8, priority: u32) -> RuleKey {
    RuleKey {
        family,
        priority,
        ordinal: 0,
    }
}
