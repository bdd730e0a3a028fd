//! The next hops of all prefixes of up to some bits, in an array that lies
//! as a heap does: the children of node *n* are 2*n* and 2*n* + 1. Its
//! leaves are the longest prefixes.

use crate::compiled::Noted;

/// Next hops by node, 0 where there is no route.
#[derive(Debug)]
pub struct Heap(Vec<u16>);

/// The node of a prefix: its bits, and how many.
pub fn node(bits: usize, len: u8) -> usize {
    1 << len | bits
}

impl Heap {
    /// No route of up to `bits` bits.
    pub fn new(bits: u8) -> Self {
        Self(vec![0; 2 << bits])
    }

    fn leaves(&self) -> usize {
        self.0.len() / 2
    }

    /// Takes all routes out.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Has a node's route lead somewhere, without asking what was there.
    pub fn set(&mut self, node: usize, next_hop: u16) {
        self.0[node] = next_hop;
    }

    /// Has a node's route lead somewhere, or takes it out.
    pub fn note(&mut self, node: usize, next_hop: Option<u16>, may_grow: bool) -> Noted {
        let noted = match (self.0[node], next_hop) {
            (0, None) => Noted::Same,
            (0, Some(_)) if !may_grow => return Noted::Refused,
            (0, Some(_)) => Noted::Added,
            (_, None) => Noted::Removed,
            (old, Some(new)) if old == new => Noted::Same,
            (_, Some(_)) => Noted::Changed,
        };
        self.0[node] = next_hop.unwrap_or(0);
        noted
    }

    /// The next hop of the longest route that holds all beneath a node, 0
    /// where there is none.
    pub fn cover(&self, node: usize) -> u16 {
        let nodes = std::iter::successors(Some(node), |node| Some(node / 2));
        let above = nodes.take_while(|node| *node > 0);
        above
            .map(|node| self.0[node])
            .find(|cover| *cover != 0)
            .unwrap_or(0)
    }

    /// The leaves beneath a node that no longer route covers than the
    /// node's.
    pub fn each_covered(&self, node: usize, see: &mut impl FnMut(usize)) {
        if let Some(leaf) = node.checked_sub(self.leaves()) {
            see(leaf);
            return;
        }
        for child in [2 * node, 2 * node + 1] {
            if self.0[child] == 0 {
                self.each_covered(child, see);
            }
        }
    }

    /// All leaves in order, and the next hop of the longest route that
    /// covers each: `above` where there is none in here.
    pub fn each_cover(&self, above: u16, see: &mut impl FnMut(usize, u16)) {
        self.each_cover_beneath(1, above, see);
    }

    fn each_cover_beneath(&self, node: usize, above: u16, see: &mut impl FnMut(usize, u16)) {
        let own = self.0[node];
        let cover = if own == 0 { above } else { own };
        if let Some(leaf) = node.checked_sub(self.leaves()) {
            see(leaf, cover);
            return;
        }
        self.each_cover_beneath(2 * node, cover, see);
        self.each_cover_beneath(2 * node + 1, cover, see);
    }

    /// The prefixes that have a route: bits, and how many.
    pub fn prefixes(&self) -> impl Iterator<Item = (usize, u8)> {
        let nodes = self.0.iter().enumerate().skip(1);
        let with_route = nodes.filter(|(_, next_hop)| **next_hop != 0);
        with_route.map(|(node, _)| {
            let len = node.ilog2() as u8;
            (node - (1 << len), len)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_covers_what_no_longer_one_does() {
        let mut heap = Heap::new(3);
        let whole = node(0, 0);
        let upper = node(1, 1);
        assert_eq!(heap.note(whole, Some(7), true), Noted::Added);
        assert_eq!(heap.note(upper, Some(8), true), Noted::Added);
        assert_eq!(heap.note(upper, Some(8), true), Noted::Same);
        assert_eq!(heap.note(node(5, 3), Some(9), false), Noted::Refused);
        let mut seen = Vec::new();
        heap.each_covered(whole, &mut |leaf| seen.push(leaf));
        assert_eq!(seen, [0, 1, 2, 3]);
        let mut covers = Vec::new();
        heap.each_cover(0, &mut |_, cover| covers.push(cover));
        assert_eq!(covers, [7, 7, 7, 7, 8, 8, 8, 8]);
        assert_eq!(heap.cover(node(5, 3)), 8);
        assert_eq!(heap.prefixes().collect::<Vec<_>>(), [(0, 0), (1, 1)]);
        assert_eq!(heap.note(upper, None, true), Noted::Removed);
        assert_eq!(heap.cover(node(5, 3)), 7);
    }
}
