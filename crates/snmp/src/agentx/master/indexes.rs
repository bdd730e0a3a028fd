//! Values of index objects that sessions hold (RFC 2741 §7.1.5.1). Called
//! by [`super::Master`].

use std::collections::{BTreeMap, BTreeSet};

use crate::agentx::owned::{OwnedValue, Row};
use crate::agentx::wire::{error, flag};
use crate::oid::MAX_SUB_IDS;

/// Values that are remembered at most, of all sessions.
pub const MAX_VALUES: usize = 16_384;

type Key = (Vec<u8>, Box<[u32]>);

/// The values of all index objects.
#[derive(Debug, Default)]
pub struct Indexes {
    objects: BTreeMap<Key, Object>,
    count: usize,
    /// What each session holds.
    held: BTreeMap<u32, BTreeSet<(Key, OwnedValue)>>,
}

/// The values of one index object. What was ever given is remembered while
/// somebody holds any of it.
#[derive(Debug, Default)]
struct Object {
    /// Who holds each that was ever given; 0: nobody any more.
    values: BTreeMap<OwnedValue, u32>,
    /// How many somebody holds.
    held: usize,
    /// Numbers from 1 on that were given, as runs: the first of each and its
    /// last.
    given: BTreeMap<i32, i32>,
    /// Those of them that nobody holds.
    returned: BTreeSet<i32>,
}

impl Object {
    fn give(&mut self, value: &OwnedValue, session: u32) {
        self.values.insert(value.clone(), session);
        self.held += 1;
        let OwnedValue::Integer(number @ 1..) = *value else {
            return;
        };
        self.returned.remove(&number);
        let before = self.given.range(..=number).next_back();
        let before = before.map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= number) {
            return;
        }
        let joins = before.filter(|(_, last)| *last == number - 1);
        let first = joins.map_or(number, |(first, _)| first);
        let behind = number
            .checked_add(1)
            .and_then(|next| self.given.remove(&next));
        self.given.insert(first, behind.unwrap_or(number));
    }

    fn take_back(&mut self, value: &OwnedValue) {
        let Some(holder) = self.values.get_mut(value).filter(|holder| **holder != 0) else {
            return;
        };
        *holder = 0;
        self.held -= 1;
        if let OwnedValue::Integer(number @ 1..) = *value {
            self.returned.insert(number);
        }
    }

    /// A number that is free, or one that was never given; `None`: there is
    /// none left. O(log values).
    fn any(&self, is_new: bool) -> Option<i32> {
        // The first run may begin with 1, and nothing that was given is
        // between it and the second.
        let never = match self.given.first_key_value() {
            Some((1, last)) => last.checked_add(1),
            _ => Some(1),
        };
        let returned = self.returned.first().copied().filter(|_| !is_new);
        [never, returned].into_iter().flatten().min()
    }
}

impl Indexes {
    /// Gives all values that are asked for, or none: the error and the
    /// place, from 1, that it is of. O(log values) each.
    pub fn allocate(
        &mut self,
        session: u32,
        context: &[u8],
        flags: u8,
        mut asked: Vec<Row>,
    ) -> Result<Vec<Row>, (u16, u16)> {
        for at in 0..asked.len() {
            let row = &mut asked[at];
            let given = self.allocate_one(session, context, flags, row);
            if let Err(error) = given {
                // A batch is given whole or not at all.
                asked.truncate(at);
                for row in &asked {
                    self.release(session, context, row);
                }
                return Err((error, place(at)));
            }
        }
        Ok(asked)
    }

    fn allocate_one(
        &mut self,
        session: u32,
        context: &[u8],
        flags: u8,
        row: &mut Row,
    ) -> Result<(), u16> {
        if !is_index(&row.value) {
            return Err(error::INDEX_WRONG_TYPE);
        }
        let key = (context.to_vec(), row.name.clone());
        if let Some(object) = self.objects.get(&key) {
            let kind = std::mem::discriminant(&row.value);
            let mut known = object.values.keys();
            if known.next().map(std::mem::discriminant) != Some(kind) {
                return Err(error::INDEX_WRONG_TYPE);
            }
        }
        if flags & (flag::NEW_INDEX | flag::ANY_INDEX) != 0 {
            let is_new = flags & flag::NEW_INDEX != 0;
            row.value = any(self.objects.get(&key), &row.value, is_new)?;
        }
        let object = self.objects.get(&key);
        match object.and_then(|object| object.values.get(&row.value)) {
            Some(0) => {}
            Some(_) => return Err(error::INDEX_ALREADY_ALLOCATED),
            None if self.count >= MAX_VALUES => return Err(error::INDEX_NONE_AVAILABLE),
            None => self.count += 1,
        }
        let object = self.objects.entry(key.clone()).or_default();
        object.give(&row.value, session);
        let held = self.held.entry(session).or_default();
        held.insert((key, row.value.clone()));
        Ok(())
    }

    /// Takes back all values that are named, or none. O(log values) each.
    pub fn deallocate(
        &mut self,
        session: u32,
        context: &[u8],
        named: &[Row],
    ) -> Result<(), (u16, u16)> {
        let mut seen = BTreeSet::new();
        for (at, row) in named.iter().enumerate() {
            let object = self.objects.get(&(context.to_vec(), row.name.clone()));
            let holder = object.and_then(|object| object.values.get(&row.value));
            let again = !seen.insert((&row.name, &row.value));
            if holder != Some(&session) || again {
                return Err((error::INDEX_NOT_ALLOCATED, place(at)));
            }
        }
        for row in named {
            self.release(session, context, row);
        }
        Ok(())
    }

    fn release(&mut self, session: u32, context: &[u8], row: &Row) {
        let of = ((context.to_vec(), row.name.clone()), row.value.clone());
        if let Some(held) = self.held.get_mut(&session) {
            held.remove(&of);
        }
        self.take_back(&of.0, &of.1);
    }

    /// What nobody holds is remembered while somebody holds another of the
    /// object.
    fn take_back(&mut self, key: &Key, value: &OwnedValue) {
        let Some(object) = self.objects.get_mut(key) else {
            return;
        };
        object.take_back(value);
        if object.held == 0 {
            self.count -= object.values.len();
            self.objects.remove(key);
        }
    }

    /// Takes back all values of a session. O(log values) for each of them.
    pub fn forget(&mut self, session: u32) {
        for (key, value) in self.held.remove(&session).unwrap_or_default() {
            self.take_back(&key, &value);
        }
    }
}

/// A number that is free, or one that was never given.
fn any(object: Option<&Object>, like: &OwnedValue, is_new: bool) -> Result<OwnedValue, u16> {
    // Of what is no number the master cannot make one up.
    let OwnedValue::Integer(_) = like else {
        return Err(error::INDEX_NONE_AVAILABLE);
    };
    let any = object.map_or(Some(1), |object| object.any(is_new));
    any.map(OwnedValue::Integer)
        .ok_or(error::INDEX_NONE_AVAILABLE)
}

/// What an index may be (RFC 2578 §7.7): an octet is a sub-identifier, and a
/// name has room for so many.
fn is_index(value: &OwnedValue) -> bool {
    if let OwnedValue::OctetString(octets) = value {
        return octets.len() <= MAX_SUB_IDS;
    }
    matches!(
        value,
        OwnedValue::Integer(_)
            | OwnedValue::ObjectIdentifier(_)
            | OwnedValue::IpAddress(_)
            | OwnedValue::Gauge32(_)
            | OwnedValue::TimeTicks(_)
    )
}

/// A binding's place as an answer says it.
fn place(at: usize) -> u16 {
    u16::try_from(at + 1).unwrap_or(u16::MAX)
}
