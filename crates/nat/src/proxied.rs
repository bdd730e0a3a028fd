//! Flows that a proxy rule sends to a server instead: what they were meant
//! for. For the engine, which rewrites the other end of their packets by it
//! before and after it translates.

use std::net::Ipv4Addr;

use hashbrown::HashMap;

use crate::rules::{Encoding, Proxy, Tuple};

/// A remote end.
pub type End = (Ipv4Addr, u16);

/// A flow that goes elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxied {
    /// What it was meant for.
    pub meant: End,
    /// Where it goes.
    pub server: End,
    /// How the server is told.
    pub encoding: Encoding,
}

/// All of them, so many at most; each lives as long as its flow. Room for all
/// is reserved with the first one, so that it never grows.
#[derive(Debug)]
pub struct Table {
    limit: usize,
    /// By the tuple as the inside sends it.
    by_meant: HashMap<Tuple, Proxied>,
    /// By the tuple as the engine translates it: the server for its remote.
    by_server: HashMap<Tuple, End>,
}

impl Table {
    /// None yet. Allocates nothing.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            by_meant: HashMap::new(),
            by_server: HashMap::new(),
        }
    }

    /// Whether there is no room for another.
    pub fn is_full(&self) -> bool {
        self.by_meant.len() >= self.limit
    }

    /// Where a packet that goes out is sent, if its flow is known.
    pub fn outgoing(&self, tuple: &Tuple) -> Option<Proxied> {
        self.by_meant.get(tuple).copied()
    }

    /// What a flow (the server for its remote) was meant for.
    pub fn meant(&self, flow: &Tuple) -> Option<End> {
        self.by_server.get(flow).copied()
    }

    /// All about a flow (the server for its remote).
    pub fn by_flow(&self, flow: &Tuple) -> Option<Proxied> {
        self.outgoing(&to(*flow, self.meant(flow)?))
    }

    /// A new one by a rule.
    pub fn of(rule: &Proxy, tuple: &Tuple) -> Proxied {
        let port = match rule.server_port {
            0 => tuple.remote_port,
            port => port,
        };
        Proxied {
            meant: (tuple.remote, tuple.remote_port),
            server: (rule.server, port),
            encoding: rule.encoding,
        }
    }

    /// Remembers one whose flow was made.
    pub fn open(&mut self, tuple: Tuple, proxied: Proxied) {
        if self.by_meant.capacity() == 0 {
            self.by_meant.reserve(self.limit);
            self.by_server.reserve(self.limit);
        }
        self.by_meant.insert(tuple, proxied);
        self.by_server
            .insert(to(tuple, proxied.server), proxied.meant);
    }

    /// All of them, by the tuples as the inside sends them.
    pub fn all(&self) -> impl Iterator<Item = (&Tuple, &Proxied)> {
        self.by_meant.iter()
    }

    /// Its flow (the server for its remote) has ended.
    pub fn close(&mut self, flow: &Tuple) {
        if let Some(meant) = self.by_server.remove(flow) {
            self.by_meant.remove(&to(*flow, meant));
        }
    }
}

/// The tuple with another remote.
pub fn to(tuple: Tuple, (remote, remote_port): End) -> Tuple {
    Tuple {
        remote,
        remote_port,
        ..tuple
    }
}
