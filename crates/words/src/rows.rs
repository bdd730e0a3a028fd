//! Rows from `ip`'s lines without a kernel: for tables that are a file.
//! Called by whatever reads such a file.

use std::collections::HashMap;

use crate::Names;
use table::{Address, Neighbour, Route};

use crate::Verb;
use crate::line::{Context, Links, ParseError};
use crate::{address, neighbour, route};

/// Links by name.
struct Given(HashMap<Box<str>, u32>);

impl Links for Given {
    fn index(&mut self, name: &str) -> Result<u32, ParseError> {
        let index = self.0.get(name).copied();
        index.ok_or_else(|| format!("no link is named `{name}`"))
    }

    fn vrf_table(&mut self, name: &str) -> Result<u32, ParseError> {
        self.index(name)?;
        Err(format!("`{name}` is no VRF"))
    }
}

/// Reads rows; links are those that it was given.
pub struct Rows {
    links: Given,
    names: Names,
    now_millis: u64,
}

impl Rows {
    /// Knows these links by name and index.
    pub fn new<'a>(links: impl Iterator<Item = (&'a str, u32)>, now_millis: u64) -> Self {
        Self {
            links: Given(links.map(|(name, index)| (name.into(), index)).collect()),
            names: crate::load(),
            now_millis,
        }
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            links: &mut self.links,
            names: &self.names,
            family: None,
            verb: Verb::Add,
            now_millis: self.now_millis,
        }
    }

    /// A route, as `ip route add` takes it or `ip route show` prints it.
    pub fn route(&mut self, line: &str) -> Result<Route, ParseError> {
        route::route(line, &mut self.context())
    }

    /// A neighbour, as `ip neigh add` takes it or `ip neigh show` prints it.
    pub fn neighbour(&mut self, line: &str) -> Result<Neighbour, ParseError> {
        neighbour::neighbour(line, &mut self.context())
    }

    /// An address, as `ip addr add` takes it.
    pub fn address(&mut self, line: &str) -> Result<Address, ParseError> {
        address::address(line, &mut self.context())
    }
}
