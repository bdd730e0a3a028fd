//! How many one-shot redirects wait for whom: what a helper has opened is a
//! port of its subscriber's (RFC 6888 REQ-4). Kept by [`super::Rules`].

use hashbrown::HashMap;

use super::{Handle, Redirect, RuleError, Rules};
use crate::blocks::Class;

/// By subscriber (its address, host order): TCP, UDP, all others.
#[derive(Debug, Clone, Default)]
pub struct Awaited {
    by_subscriber: HashMap<u32, [u32; 3]>,
}

impl Awaited {
    fn add(&mut self, subscriber: u32, class: Class) {
        let counts = self.by_subscriber.entry(subscriber).or_default();
        if let Some(count) = counts.get_mut(class as usize) {
            *count += 1;
        }
    }

    fn remove(&mut self, subscriber: u32, class: Class) {
        let Some(counts) = self.by_subscriber.get_mut(&subscriber) else {
            return;
        };
        if let Some(count) = counts.get_mut(class as usize) {
            *count = count.saturating_sub(1);
        }
        if *counts == [0; 3] {
            self.by_subscriber.remove(&subscriber);
        }
    }
}

impl Rules {
    /// [`Rules::expect`] for a subscriber (its address, host order), of whose
    /// ports it is one as long as it waits. O(1).
    pub(crate) fn expect_for(
        &mut self,
        subscriber: Option<u32>,
        redirect: Redirect,
        until_millis: u64,
    ) -> Result<Handle, RuleError> {
        let handle = self.expect(redirect, until_millis)?;
        if let Some(subscriber) = subscriber {
            self.rule_mut(handle)?.awaited_by = Some(subscriber);
            self.awaited.add(subscriber, class_of(&redirect));
        }
        Ok(handle)
    }

    /// Whether a redirect waits for a subscriber.
    pub(crate) fn is_awaited(&self, handle: Handle) -> bool {
        let rule = self.rule(handle);
        rule.is_some_and(|rule| rule.awaited_by.is_some())
    }

    /// How many wait for a subscriber: TCP, UDP, all others. O(1), and mostly
    /// a comparison.
    #[inline]
    pub(crate) fn awaited(&self, subscriber: u32) -> [u32; 3] {
        if self.awaited.by_subscriber.is_empty() {
            return [0; 3];
        }
        let counts = self.awaited.by_subscriber.get(&subscriber);
        counts.copied().unwrap_or_default()
    }

    /// One does not wait any more.
    pub(super) fn awaits_no_more(&mut self, awaited_by: Option<u32>, redirect: &Redirect) {
        if let Some(subscriber) = awaited_by {
            self.awaited.remove(subscriber, class_of(redirect));
        }
    }
}

fn class_of(redirect: &Redirect) -> Class {
    Class::of(redirect.protocol.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use packet::protocol::{TCP, UDP};

    use super::*;

    #[test]
    fn each_is_counted_until_it_is_used_or_over() {
        let mut rules = Rules::default();
        let inside = Ipv4Addr::new(10, 0, 0, 1);
        let expect = |rules: &mut Rules, of, port, until| {
            let redirect = Redirect::port(of, inside, port, port);
            rules.expect_for(Some(7), redirect, until).unwrap()
        };
        let used = expect(&mut rules, UDP, 4_000, 100);
        expect(&mut rules, UDP, 4_001, 100);
        let late = expect(&mut rules, TCP, 4_002, 200);
        let of_nobody = Redirect::port(TCP, inside, 1, 1);
        let of_nobody = rules.expect_for(None, of_nobody, 200).unwrap();
        assert_eq!((rules.awaited(7), rules.awaited(8)), ([1, 2, 0], [0; 3]));
        assert!(rules.is_awaited(used) && !rules.is_awaited(of_nobody));
        rules.take(used);
        rules.take(used);
        assert_eq!(rules.awaited(7), [1, 1, 0]);
        rules.expire(150);
        assert_eq!(rules.awaited(7), [1, 0, 0]);
        assert!(rules.is_awaited(late));
        rules.drop_dynamic();
        assert_eq!(rules.awaited(7), [0; 3]);
        assert!(rules.awaited.by_subscriber.is_empty());
    }
}
