//! The peers, each a feeder of rows.

use std::net::{IpAddr, Ipv4Addr};

use hashbrown::HashMap;
use table::{Feeder, Feeders, JoinError, Limits, MAX_FEEDERS, Status, Tables};

use crate::Bad;
use crate::mrt::Named;

/// A peer and its rows.
#[derive(Debug)]
pub struct Peer {
    named: Named,
    pub(super) feeder: Feeder,
    /// Something was applied since it was last published.
    pub(super) is_touched: bool,
}

impl Peer {
    /// Who it is.
    pub fn named(&self) -> Named {
        self.named
    }

    /// What its rows are asked for by.
    pub fn name(&self) -> &str {
        self.feeder.name()
    }

    /// Its rows.
    pub fn tables(&self) -> &Tables {
        self.feeder.tables()
    }
}

/// All peers, in the order in which they came.
#[derive(Debug)]
pub struct Peers {
    feeders: Feeders,
    limits: Limits,
    all: Vec<Peer>,
    /// The first of each address and AS.
    by_name: HashMap<(IpAddr, u32), usize>,
}

impl Peers {
    pub fn new(feeders: Feeders, limits: Limits) -> Self {
        Self {
            feeders,
            limits,
            all: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.all.iter()
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut Peer> {
        self.all.get_mut(at)
    }

    pub fn address(&self, at: usize) -> IpAddr {
        let peer = self.all.get(at);
        peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.named.address)
    }

    /// The number of a peer, who joins if it is new. Those of one address
    /// and AS are one, unless their BGP identifiers differ; where one of
    /// the two is not said, that of the first.
    pub fn number(&mut self, named: Named) -> Result<usize, Bad> {
        let key = (named.address, named.asn);
        if let Some(first) = self.by_name.get(&key) {
            let differs =
                |peer: &Peer| matches!((peer.named.id, named.id), (Some(a), Some(b)) if a != b);
            let of_name = |peer: &Peer| (peer.named.address, peer.named.asn) == key;
            let same = |(_, peer): &(usize, &Peer)| of_name(peer) && !differs(peer);
            let mut rest = self.all.iter().enumerate().skip(*first);
            if let Some((at, _)) = rest.find(same) {
                return Ok(at);
            }
        }
        let feeder = self.join(named.address)?;
        feeder.update_status(|status| status.phase = table::Phase::Live);
        self.all.push(Peer {
            named,
            feeder,
            is_touched: false,
        });
        let at = self.all.len() - 1;
        self.by_name.entry(key).or_insert(at);
        Ok(at)
    }

    /// Joins by the address: `peer-192.0.2.1`, `peer-2001-db8--1`; a second
    /// one of an address has a number behind it.
    fn join(&self, address: IpAddr) -> Result<Feeder, Bad> {
        let name = format!("peer-{address}").replace(':', "-");
        let others = (2..=MAX_FEEDERS).map(|at| format!("{name}_{at}"));
        for name in std::iter::once(name.clone()).chain(others) {
            match self.feeders.join(&name, self.limits) {
                Ok(feeder) => return Ok(feeder),
                Err(JoinError::Taken(_)) => {}
                Err(JoinError::TooMany | JoinError::BadName(_)) => break,
            }
        }
        Err(Bad::TooManyPeers(MAX_FEEDERS))
    }

    pub fn publish(&mut self, at_millis: u64) {
        for peer in &mut self.all {
            if std::mem::take(&mut peer.is_touched) {
                peer.feeder.set_time(at_millis);
                peer.feeder.publish();
            }
        }
    }

    pub fn update(&self, change: impl Fn(&mut Status)) {
        self.all
            .iter()
            .for_each(|peer| peer.feeder.update_status(&change));
    }
}
