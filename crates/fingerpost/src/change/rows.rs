//! Rows from `ip`'s lines without a kernel: for tables that are a file.
//! Called by `forward`.

use table::{Address, Neighbour, Route};
use view::Names;

use super::links::Links;
use super::verb::Verb;
use super::words::{Context, Wrong};
use super::{address, neighbour, route};

/// Reads rows; links are those that it was given.
pub struct Rows {
    links: Links,
    names: Names,
    now_millis: u64,
}

impl Rows {
    /// Knows these links by name and index.
    pub fn new<'a>(links: impl Iterator<Item = (&'a str, u32)>, now_millis: u64) -> Self {
        Self {
            links: Links::given(links),
            names: words::load(),
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
    pub fn route(&mut self, line: &str) -> Result<Route, Wrong> {
        route::route(line, &mut self.context())
    }

    /// A neighbour, as `ip neigh add` takes it or `ip neigh show` prints it.
    pub fn neighbour(&mut self, line: &str) -> Result<Neighbour, Wrong> {
        neighbour::neighbour(line, &mut self.context())
    }

    /// An address, as `ip addr add` takes it.
    pub fn address(&mut self, line: &str) -> Result<Address, Wrong> {
        address::address(line, &mut self.context())
    }
}
