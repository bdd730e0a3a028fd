//! Which of the paths to a prefix is the best: RFC 4271 §9.1.2, as far as
//! the paths alone tell. That is a simplification: a router also knows which
//! next hops it reaches and how far they are, which peers are of its own AS,
//! and what its policy says.
//!
//! In this order: the highest local preference (100 where none is said), the
//! shortest AS path, the lowest origin, the lowest MED (0 where none is
//! said) among those of one neighbour AS, the lowest address of the peer.

use std::net::IpAddr;

use table::PathAttributes;

use super::Rib;
use super::peers::Peers;

/// What a path is compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Local preference, AS path, origin: the lowest first.
    first: u64,
    med: u32,
    /// The neighbour AS. 0, which is none's, where the path does not say.
    neighbour: u32,
}

/// Preferred so much where nothing is said.
const LOCAL_PREF: u32 = 100;
/// `INCOMPLETE`, the last of the origins.
const INCOMPLETE: u8 = 2;

impl Rank {
    /// Of a path with these attributes.
    pub fn of(path: &PathAttributes) -> Self {
        let preference = path.local_pref().unwrap_or(LOCAL_PREF);
        let as_path = path.as_path();
        let hops = as_path.map_or(0, |path| path.hops());
        let hops = u16::try_from(hops).unwrap_or(u16::MAX);
        let origin = path.origin().unwrap_or(INCOMPLETE);
        Self {
            first: u64::from(!preference) << 32 | u64::from(hops) << 16 | u64::from(origin),
            med: path.med().unwrap_or(0),
            neighbour: as_path.and_then(|path| path.neighbour()).unwrap_or(0),
        }
    }
}

/// A path that may be the best, and what it is.
pub type Candidate<T> = (Rank, IpAddr, T);

/// The best of some paths. `left` is room to work in.
pub fn best<T: Copy>(paths: &[Candidate<T>], left: &mut Vec<Candidate<T>>) -> Option<T> {
    let first = paths.iter().map(|(rank, ..)| rank.first).min()?;
    left.clear();
    left.extend(paths.iter().filter(|(rank, ..)| rank.first == first));
    if let [(_, _, only)] = left[..] {
        return Some(only);
    }
    // Of each neighbour those of its lowest MED stay; stable, so that of
    // two paths of one peer the one that it told first is taken.
    left.sort_by_key(|(rank, address, _)| (rank.neighbour, rank.med, *address));
    let groups = left.chunk_by(|(a, ..), (b, ..)| a.neighbour == b.neighbour);
    let best = groups.filter_map(|group| group.first());
    best.min_by_key(|(_, address, _)| *address)
        .map(|(_, _, best)| *best)
}

impl Rib {
    /// Finds the best path again where it may be another now.
    pub(super) fn choose(&mut self) {
        let mut room = Vec::new();
        for prefix in std::mem::take(&mut self.dirty) {
            let best = self.peers.best(prefix, &mut room);
            let old = self.best.tables().routes.exact(super::TABLE, prefix).next();
            let change = match (best, old) {
                (None, None) => continue,
                (None, Some(old)) => table::Change::DeleteRoute(old.to_shared()),
                (Some(best), Some(old)) if **old.body == best.body => continue,
                (Some(best), _) => table::Change::PutRoute(best, table::Placement::InsteadOfFirst),
            };
            // A refusal is counted, and told with the others.
            let _ = self.best.apply(change);
        }
    }
}

impl Peers {
    /// The best path of all peers to a prefix. O(peers), each O(log n).
    fn best(&self, prefix: ipnet::IpNet, room: &mut Vec<Candidate<usize>>) -> Option<table::Route> {
        let paths: Vec<_> = self
            .iter()
            .flat_map(|peer| {
                let paths = peer.tables().routes.exact(super::TABLE, prefix);
                paths.map(|path| (peer.named().address, path))
            })
            .collect();
        let candidates: Vec<Candidate<usize>> = paths
            .iter()
            .enumerate()
            .map(|(at, (address, path))| (Rank::of(&path.body.path), *address, at))
            .collect();
        let (_, path) = paths.get(best(&candidates, room)?)?;
        Some(path.with_body(table::RouteBody::clone(path.body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::row::path_attributes::number;

    fn rank(preference: Option<u32>, path: &[u32], origin: u8, med: Option<u32>) -> Rank {
        let mut as_path = vec![2, path.len() as u8];
        as_path.extend(path.iter().flat_map(|number| number.to_be_bytes()));
        let (preference, med) = (preference.map(u32::to_be_bytes), med.map(u32::to_be_bytes));
        let some = [
            preference.as_ref().map(|of| (number::LOCAL_PREF, &of[..])),
            med.as_ref().map(|of| (number::MED, &of[..])),
        ];
        let always = [
            (number::AS_PATH, &as_path[..]),
            (number::ORIGIN, &[origin][..]),
        ];
        Rank::of(&PathAttributes::pack(
            always.into_iter().chain(some.into_iter().flatten()),
        ))
    }

    fn chosen(ranks: &[Rank]) -> usize {
        let peer = |at: usize| IpAddr::from([192, 0, 2, 200 - at as u8]);
        let paths: Vec<_> = ranks
            .iter()
            .enumerate()
            .map(|(at, rank)| (*rank, peer(at), at))
            .collect();
        best(&paths, &mut Vec::new()).unwrap()
    }

    #[test]
    fn each_step_decides_where_those_before_do_not() {
        let plain = rank(None, &[1, 2], 0, None);
        for (better, worse) in [
            (rank(Some(101), &[1, 2, 3], 2, None), plain),
            (plain, rank(Some(99), &[1], 0, None)),
            (rank(Some(100), &[1], 2, None), plain),
            (plain, rank(None, &[1, 2], 1, None)),
            (plain, rank(None, &[1, 9], 0, Some(1))),
        ] {
            assert_eq!(chosen(&[better, worse]), 0);
            assert_eq!(chosen(&[worse, better]), 1);
        }
        // The lowest address: the last of them.
        assert_eq!(chosen(&[plain, plain, plain]), 2);
        // A MED says nothing between neighbours.
        let other = rank(None, &[7, 2], 0, Some(9));
        assert_eq!(chosen(&[plain, other]), 1);
        // The worse of one neighbour does not stand in the way of another.
        let worse = rank(None, &[1, 2], 0, Some(5));
        assert_eq!(chosen(&[plain, other, worse]), 1);
        assert_eq!(chosen(&[other, plain, worse]), 1);
    }
}
