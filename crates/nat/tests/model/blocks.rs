//! Blocks of ports in the model: nobody has a port of another's block, nobody
//! has more blocks than may be, and nobody is refused who has a port free.

use super::*;

/// A port that the engine chose for a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    protocol: u8,
    host: Ipv4Addr,
    alias: End,
}

/// Draws blocks for a range that has enough of them for everybody.
pub(super) fn settings(config: &mut Config, random: &mut Random) {
    if config.ports.len() < 10_000 || random.chance(40) {
        return;
    }
    config.blocks = Some(Blocks {
        size: random.of(&[8, 16, 64]),
        most: random.of(&[1, 3]),
        hold_down_secs: random.of(&[0, 120]),
        ..Blocks::default()
    });
}

impl Model {
    /// The block that a port is in.
    fn block_of(&self, alias: End) -> Option<(Ipv4Addr, u16)> {
        let size = self.config.blocks.as_ref()?.size;
        let place = alias.1.checked_sub(*self.config.ports.start())?;
        Some((alias.0, place / size))
    }

    fn lives(&self, given: &Given, certain: bool) -> bool {
        self.flows.iter().any(|flow| {
            let is_it = (flow.protocol, flow.inside.0, flow.alias)
                == (given.protocol, given.host, given.alias);
            is_it && (!certain || self.is(flow) == Is::Alive)
        })
    }

    /// A port was chosen for a new flow.
    pub(super) fn note_given(&mut self, tuple: &Tuple, alias: End) {
        let Some(blocks) = &self.config.blocks else {
            return;
        };
        let most = usize::from(blocks.most);
        let given = std::mem::take(&mut self.given);
        let kept = given.into_iter().filter(|given| self.lives(given, false));
        self.given = kept.collect();
        let block = self.block_of(alias);
        let mut own = BTreeSet::from([block]);
        for given in &self.given {
            if !self.lives(given, true) {
                continue;
            }
            let others = self.block_of(given.alias);
            let is_own = given.host == tuple.source.0;
            assert!(is_own || others != block, "{alias:?} is {}'s", given.host);
            if is_own {
                own.insert(others);
            }
        }
        assert!(self.moved || own.len() <= most, "{own:?} for {tuple:?}");
        self.given.push(Given {
            protocol: tuple.protocol,
            host: tuple.source.0,
            alias,
        });
    }

    /// Whether a host has all its blocks, and each of their ports is taken.
    pub(super) fn is_over(&self, tuple: &Tuple) -> bool {
        let Some(blocks) = &self.config.blocks else {
            return false;
        };
        if self.moved {
            // It may have blocks of addresses that went.
            return true;
        }
        let of_host = self
            .given
            .iter()
            .filter(|given| given.host == tuple.source.0);
        let own: BTreeSet<_> = of_host
            .filter_map(|given| self.block_of(given.alias))
            .collect();
        let first = *self.config.ports.start();
        let full = own.iter().filter(|(alias, block)| {
            let from = first + block * blocks.size;
            (from..from + blocks.size).all(|port| {
                let end = (*alias, port);
                let (_, all) = self.holders(tuple.protocol, end, tuple.destination);
                all > 0 || self.is_ruled(tuple.protocol, end)
            })
        });
        full.count() >= usize::from(blocks.most)
    }
}
