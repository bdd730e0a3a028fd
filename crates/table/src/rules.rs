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

    /// Whether there is a rule that equals this one.
    pub(crate) fn contains(&self, rule: &Rule) -> bool {
        self.place_of(rule).is_some()
    }

    /// Puts a rule that has no equal behind those of its priority.
    pub(crate) fn put(&mut self, rule: Arc<Rule>) {
        let last = RuleKey {
            ordinal: u32::MAX,
            ..first(rule.family, rule.priority)
        };
        let of_priority =
            |key: &&RuleKey| (key.family, key.priority) == (rule.family, rule.priority);
        let before = self.by_priority.last_to(&last).map(|(key, _)| key);
        let ordinal = match before.filter(of_priority).map(|key| key.ordinal) {
            Some(u32::MAX) => self.renumber(&last),
            Some(before) => before + 1,
            None => 0,
        };
        self.by_priority.insert(RuleKey { ordinal, ..last }, rule);
    }

    /// Numbers the rules of a priority from 0; gives the next number. Four
    /// billion rules come and go before this is needed.
    fn renumber(&mut self, of: &RuleKey) -> u32 {
        let rows: Vec<(RuleKey, Arc<Rule>)> = self
            .of_priority(of.family, of.priority)
            .map(|(key, row)| (*key, Arc::clone(row)))
            .collect();
        for (key, _) in &rows {
            self.by_priority.remove(key);
        }
        let mut next = 0;
        for (key, row) in rows {
            let key = RuleKey {
                ordinal: next,
                ..key
            };
            self.by_priority.insert(key, row);
            next += 1;
        }
        next
    }

    /// Takes the rule out that equals this one.
    pub(crate) fn remove(&mut self, rule: &Rule) -> Option<Arc<Rule>> {
        let key = self.place_of(rule)?;
        self.by_priority.remove(&key)
    }

    /// Puts a rule in the place of the one that equals `old`.
    pub(crate) fn replace(&mut self, old: &Rule, new: Arc<Rule>) -> Option<Arc<Rule>> {
        let key = self.place_of(old)?;
        self.by_priority.insert(key, new)
    }

    fn place_of(&self, rule: &Rule) -> Option<RuleKey> {
        self.of_priority(rule.family, rule.priority)
            .find(|(_, row)| ***row == *rule)
            .map(|(key, _)| *key)
    }

    fn of_priority(
        &self,
        family: u8,
        priority: u32,
    ) -> impl Iterator<Item = (&RuleKey, &Arc<Rule>)> {
        self.by_priority
            .from(&first(family, priority))
            .take_while(move |(key, _)| key.family == family && key.priority == priority)
    }
}

fn first(family: u8, priority: u32) -> RuleKey {
    RuleKey {
        family,
        priority,
        ordinal: 0,
    }
}
