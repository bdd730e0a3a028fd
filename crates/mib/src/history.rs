//! When what changed: kept from the tables' events, for `ifLastChange` and
//! its like, and for notifications. Times are milliseconds since the agent
//! started, by its own clock; 0 for what was so before the history began,
//! which a `TimeTicks` of 0 says (RFC 2863, ifLastChange).
//!
//! The program keeps one [`History`], hands it every batch of events, and
//! gives a clone (O(1)) to each request.

use table::{Address, AddressKey, Event, Link, Operation, Ordered, Row, Tables};

use crate::notification::{LinkNotification, LinkTrap};
use crate::status::{admin_status, oper_status};

/// When links, addresses and the stack of links changed. Cloning is O(1).
#[derive(Debug, Clone, Default)]
pub struct History {
    links: Ordered<u32, Seen>,
    addresses: Ordered<AddressKey, Times>,
    links_changed_at: u64,
    stack_changed_at: u64,
}

/// A link as it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    oper: i32,
    master: Option<u32>,
    below: Option<u32>,
    /// When it came into the namespace; 0: before anybody looked.
    came: u64,
    /// When it entered this `ifOperStatus`.
    since: u64,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    created: u64,
    changed: u64,
}

impl History {
    /// What is there now, since before. O(links).
    pub fn since_before(tables: &Tables) -> Self {
        let mut history = Self::default();
        for link in tables.links.iter() {
            history.links.insert(link.index, Seen::now(link, 0));
        }
        history
    }

    /// Takes in a batch of events, seen at `up_millis`; calls `notify` for
    /// each link that came up or went down (RFC 2863 §3.1.15). O(log n) an
    /// event.
    pub fn events(
        &mut self,
        events: &[Event],
        up_millis: u64,
        notify: &mut dyn FnMut(LinkNotification),
    ) {
        for event in events {
            match (&event.row, event.operation) {
                (Row::Link(link), Operation::Deleted) => self.link_gone(link.index, up_millis),
                (Row::Link(link), _) => {
                    if let Some(notification) = self.link(link, up_millis) {
                        notify(notification);
                    }
                }
                (Row::Address(row), operation) => self.address(row, operation, up_millis),
                _ => {}
            }
        }
    }

    /// Events were missed: takes the tables as they are now instead, and
    /// calls `notify` for the links that have another state than when last
    /// seen. Addresses are taken to be as old as the history. O(links).
    pub fn catch_up(
        &mut self,
        tables: &Tables,
        up_millis: u64,
        notify: &mut dyn FnMut(LinkNotification),
    ) {
        let gone: Vec<u32> = self
            .links
            .iter()
            .map(|(index, _)| *index)
            .filter(|&index| tables.links.get(index).is_none())
            .collect();
        for index in gone {
            self.link_gone(index, up_millis);
        }
        for link in tables.links.iter() {
            if let Some(notification) = self.link(link, up_millis) {
                notify(notification);
            }
        }
        self.addresses = Ordered::default();
    }

    fn link(&mut self, link: &Link, up_millis: u64) -> Option<LinkNotification> {
        let seen = Seen::now(link, up_millis);
        let Some(before) = self.links.get(&link.index).copied() else {
            self.links.insert(link.index, seen);
            self.links_changed_at = up_millis;
            self.stack_changed_at = up_millis;
            return None;
        };
        if (before.master, before.below) != (seen.master, seen.below) {
            self.stack_changed_at = up_millis;
        }
        let is_same = before.oper == seen.oper;
        let since = if is_same { before.since } else { up_millis };
        let now = Seen {
            since,
            came: before.came,
            ..seen
        };
        if now != before {
            self.links.insert(link.index, now);
        }
        let trap = LinkTrap::of(before.oper, now.oper)?;
        Some(LinkNotification {
            trap,
            link: link.index,
            admin_status: admin_status(link),
            oper_status: now.oper,
            name: link.name.clone(),
            alias: link.alias.clone(),
        })
    }

    fn link_gone(&mut self, index: u32, up_millis: u64) {
        if self.links.remove(&index).is_some() {
            self.links_changed_at = up_millis;
            self.stack_changed_at = up_millis;
        }
    }

    fn address(&mut self, row: &Address, operation: Operation, up_millis: u64) {
        let key = row.key();
        let created = match operation {
            Operation::Deleted => {
                self.addresses.remove(&key);
                return;
            }
            Operation::Added => up_millis,
            Operation::Changed => self.address_times(&key).0,
        };
        let times = Times {
            created,
            changed: up_millis,
        };
        self.addresses.insert(key, times);
    }

    /// `ifLastChange`.
    pub(crate) fn link_changed_at(&self, index: u32) -> u64 {
        self.links.get(&index).map_or(0, |seen| seen.since)
    }

    /// `ifCounterDiscontinuityTime`: when a link of this index came.
    pub(crate) fn link_came_at(&self, index: u32) -> u64 {
        self.links.get(&index).map_or(0, |seen| seen.came)
    }

    /// `ifTableLastChange`: when a link came or went.
    pub(crate) fn links_changed_at(&self) -> u64 {
        self.links_changed_at
    }

    /// `ifStackLastChange`.
    pub(crate) fn stack_changed_at(&self) -> u64 {
        self.stack_changed_at
    }

    /// `ipAddressCreated` and `ipAddressLastChanged`.
    pub(crate) fn address_times(&self, key: &AddressKey) -> (u64, u64) {
        let times = self.addresses.get(key);
        times.map_or((0, 0), |times| (times.created, times.changed))
    }
}

impl Seen {
    fn now(link: &Link, since: u64) -> Self {
        Self {
            oper: oper_status(link),
            master: link.master,
            below: link.below(),
            came: since,
            since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use table::row::link::oper;

    fn event(operation: Operation, oper_state: u8, master: Option<u32>) -> Event {
        let row = Link {
            index: 7,
            flags: 1,
            oper_state,
            master,
            ..Link::default()
        };
        Event::new(operation, Row::Link(Arc::new(row)))
    }

    #[test]
    fn a_link_comes_goes_up_down_into_a_bridge_and_away() {
        let mut history = History::default();
        let mut heard = Vec::new();
        let mut take = |history: &mut History, operation, state, master, at| {
            let events = [event(operation, state, master)];
            history.events(&events, at, &mut |heard_now| heard.push((at, heard_now)));
        };
        take(&mut history, Operation::Added, oper::DOWN, None, 10);
        take(&mut history, Operation::Changed, oper::UP, None, 20);
        take(&mut history, Operation::Changed, oper::UP, None, 30);
        assert_eq!(history.link_changed_at(7), 20);
        assert_eq!(history.links_changed_at(), 10);
        take(&mut history, Operation::Changed, oper::UP, Some(3), 40);
        assert_eq!(
            (history.stack_changed_at(), history.links_changed_at()),
            (40, 10)
        );
        take(
            &mut history,
            Operation::Changed,
            oper::LOWER_LAYER_DOWN,
            Some(3),
            50,
        );
        assert_eq!(history.link_came_at(7), 10);
        take(&mut history, Operation::Deleted, oper::DOWN, Some(3), 60);
        assert_eq!(
            (history.link_changed_at(7), history.links_changed_at()),
            (0, 60)
        );
        take(&mut history, Operation::Added, oper::DOWN, None, 70);
        assert_eq!(history.link_came_at(7), 70, "another of the same index");
        let heard: Vec<_> = heard.iter().map(|(at, heard)| (*at, heard.trap)).collect();
        assert_eq!(heard, [(20, LinkTrap::Up), (50, LinkTrap::Down)]);
    }

    #[test]
    fn what_was_missed_is_caught_up_with() {
        let mut writer = table::Writer::default();
        let link = |index, oper_state| Link {
            index,
            oper_state,
            name: format!("v{index}").into(),
            ..Link::default()
        };
        let put = |writer: &mut table::Writer, row| {
            writer.commit([table::Change::PutLink(row)]).unwrap();
        };
        put(&mut writer, link(1, oper::UP));
        put(&mut writer, link(2, oper::UP));
        let mut history = History::since_before(writer.tables());
        put(&mut writer, link(1, oper::DOWN));
        writer.commit([table::Change::DeleteLink(2)]).unwrap();
        let mut heard = Vec::new();
        history.catch_up(writer.tables(), 90, &mut |one| heard.push(one));
        assert_eq!(heard.len(), 1);
        assert_eq!((heard[0].link, heard[0].trap), (1, LinkTrap::Down));
        assert_eq!(
            (history.link_changed_at(1), history.links_changed_at()),
            (90, 90)
        );
    }
}
