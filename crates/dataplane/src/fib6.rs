//! IPv6's longest match until `fib` has it: a map of prefixes by length.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use fib::{Change6, Config, Error, Route6};
use memory::quiescent::{Domain, Section};

type Map = BTreeMap<(u8, u128), u16>;

/// The writing end.
#[derive(Debug)]
pub struct Writer6(Arc<RwLock<Map>>);

/// The reading end.
#[derive(Debug, Clone)]
pub struct Reader6(Arc<RwLock<Map>>);

/// An empty table.
pub fn fib6(_config: Config, _domain: &Arc<Domain>) -> Result<(Writer6, Reader6), Error> {
    let map = Arc::default();
    Ok((Writer6(Arc::clone(&map)), Reader6(map)))
}

impl Writer6 {
    /// Makes changes.
    pub fn apply(&mut self, changes: &[Change6]) -> Result<(), Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            let key = (change.len, change.prefix);
            match change.next_hop {
                Some(next_hop) => map.insert(key, next_hop),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    /// Makes everything anew.
    pub fn build(&mut self, routes: impl Iterator<Item = Route6>) -> Result<(), Error> {
        let new = routes.map(|route| ((route.len, route.prefix), route.next_hop));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new.collect();
        Ok(())
    }
}

impl Reader6 {
    /// The next hop of each address; 0: no route.
    pub fn lookup(&self, _section: &Section<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (address, next_hop) in addresses.iter().zip(next_hops) {
            let mut found = (0..=128_u8).rev().filter_map(|len| {
                let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
                map.get(&(len, address & !host))
            });
            *next_hop = found.next().copied().unwrap_or(0);
        }
    }
}
