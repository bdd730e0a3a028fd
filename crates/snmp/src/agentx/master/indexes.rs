//! Values of index objects that sessions hold (RFC 2741 §7.1.5.1). Called
//! by [`super::Master`].

use std::collections::BTreeMap;

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
}

/// The values of one index object.
#[derive(Debug, Default)]
struct Object {
    /// Who holds each that was ever given; 0: nobody any more.
    values: BTreeMap<OwnedValue, u32>,
}

impl Indexes {
    /// Gives all values that are asked for, or none: the error and the
    /// place, from 1, that it is of.
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
                    self.release(context, row);
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
        let object = self.objects.entry(key).or_default();
        object.values.insert(row.value.clone(), session);
        Ok(())
    }

    /// Takes back all values that are named, or none.
    pub fn deallocate(
        &mut self,
        session: u32,
        context: &[u8],
        named: &[Row],
    ) -> Result<(), (u16, u16)> {
        for (at, row) in named.iter().enumerate() {
            let object = self.objects.get(&(context.to_vec(), row.name.clone()));
            let holder = object.and_then(|object| object.values.get(&row.value));
            let again = named[..at].contains(row);
            if holder != Some(&session) || again {
                return Err((error::INDEX_NOT_ALLOCATED, place(at)));
            }
        }
        named.iter().for_each(|row| self.release(context, row));
        Ok(())
    }

    fn release(&mut self, context: &[u8], row: &Row) {
        let object = self.objects.get_mut(&(context.to_vec(), row.name.clone()));
        if let Some(holder) = object.and_then(|object| object.values.get_mut(&row.value)) {
            *holder = 0;
        }
    }

    /// Takes back all values of a session.
    pub fn forget(&mut self, session: u32) {
        for object in self.objects.values_mut() {
            let holders = object.values.values_mut();
            holders
                .filter(|holder| **holder == session)
                .for_each(|holder| *holder = 0);
        }
        // What nobody holds is remembered while somebody holds another.
        self.objects
            .retain(|_, object| object.values.values().any(|holder| *holder != 0));
        self.count = self.objects.values().map(|one| one.values.len()).sum();
    }
}

/// A number that is free, or one that was never given.
fn any(object: Option<&Object>, like: &OwnedValue, is_new: bool) -> Result<OwnedValue, u16> {
    // Of what is no number the master cannot make one up.
    let OwnedValue::Integer(_) = like else {
        return Err(error::INDEX_NONE_AVAILABLE);
    };
    let mut free = 1;
    for (value, holder) in object.iter().flat_map(|object| &object.values) {
        match value {
            OwnedValue::Integer(number) if *number == free && (is_new || *holder != 0) => {
                free = free.checked_add(1).ok_or(error::INDEX_NONE_AVAILABLE)?;
            }
            OwnedValue::Integer(number) if *number < free => {}
            _ => break,
        }
    }
    Ok(OwnedValue::Integer(free))
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
