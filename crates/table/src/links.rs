//! The table of links: by index and by any of their names.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ordered::Ordered;
use crate::row::link::Link;

/// Links by index, name, alternative name, master and lower link.
#[derive(Debug, Clone, Default)]
pub struct Links {
    by_index: Ordered<u32, (u64, Arc<Link>)>,
    /// By when they came, as far as the rows tell.
    by_arrival: Ordered<u64, u32>,
    by_name: Ordered<Box<str>, u32>,
    by_master: Ordered<(u32, u32), ()>,
    /// Those on top of another link of this namespace.
    by_lower: Ordered<(u32, u32), ()>,
}

impl Links {
    /// Number of links. O(1).
    pub fn len(&self) -> usize {
        self.by_index.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// The link of an index. O(log n).
    pub fn get(&self, index: u32) -> Option<&Arc<Link>> {
        self.by_index.get(&index).map(|(_, link)| link)
    }

    /// The link of a name or alternative name. O(log n).
    pub fn by_name(&self, name: &str) -> Option<&Arc<Link>> {
        let (found, index) = self.by_name.from(&name.into()).next()?;
        (**found == *name).then(|| self.get(*index))?
    }

    /// The name of an index. O(log n).
    pub fn name(&self, index: u32) -> Option<&str> {
        self.get(index).map(|link| &*link.name)
    }

    /// All links from an index on, in the order of indexes.
    pub fn from(&self, index: u32) -> impl Iterator<Item = &Arc<Link>> {
        self.by_index
            .from(&index)
            .fetching(|(_, link)| &**link)
            .map(|(_, (_, link))| link)
    }

    /// All links in the order of indexes.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.from(0)
    }

    /// All links in the order in which they came into the namespace, which
    /// is the order of the kernel's list of devices (`dev_base_head`): one
    /// that leaves and comes back is last, whatever its index. Of those that
    /// were there before anybody looked it is the order of indexes.
    pub fn by_arrival(&self) -> impl Iterator<Item = &Arc<Link>> {
        let all = self.by_arrival.iter();
        all.filter_map(|(_, index)| self.get(*index))
    }

    /// The links in a bridge, bond or VRF. O(rows returned).
    pub fn of_master(&self, master: u32) -> impl Iterator<Item = &Arc<Link>> {
        self.by_master
            .from(&(master, 0))
            .take_while(move |((of, _), ())| *of == master)
            .filter_map(|((_, index), ())| self.get(*index))
    }

    /// The links on top of a link ([`Link::below`]), in the order of
    /// indexes. A seek, then O(log n) a row.
    pub fn on_top_of(&self, lower: u32) -> impl Iterator<Item = &Arc<Link>> {
        self.by_lower
            .from(&(lower, 0))
            .take_while(move |((of, _), ())| *of == lower)
            .filter_map(|((_, index), ())| self.get(*index))
    }

    /// Bytes of heap, names and rows included.
    pub fn heap_bytes(&self) -> usize {
        let rows: usize = self
            .iter()
            .map(|link| size_of::<Link>() + link.name.len() * 2 + 64)
            .sum();
        self.by_index.heap_bytes()
            + self.by_arrival.heap_bytes()
            + self.by_name.heap_bytes()
            + self.by_master.heap_bytes()
            + self.by_lower.heap_bytes()
            + rows
    }

    /// Puts a link: a new one behind all others, one that is known in its
    /// own place.
    pub(crate) fn put(&mut self, link: Arc<Link>) -> Option<Arc<Link>> {
        let known = self.by_index.get(&link.index).map(|(arrival, _)| *arrival);
        let arrival = known.unwrap_or_else(|| {
            let last = self.by_arrival.last_to(&u64::MAX);
            last.map_or(0, |(arrival, _)| arrival.saturating_add(1))
        });
        let old = self.remove(link.index);
        self.by_arrival.insert(arrival, link.index);
        for name in names(&link) {
            self.by_name.insert(name.clone(), link.index);
        }
        if let Some(master) = link.master {
            self.by_master.insert((master, link.index), ());
        }
        if let Some(lower) = link.below() {
            self.by_lower.insert((lower, link.index), ());
        }
        self.by_index.insert(link.index, (arrival, link));
        old
    }

    /// Says in which order links came, as far as they are known here; each
    /// counts where it is named first, and those that are not named came
    /// after them. Whether that changes anything. O(n log n).
    pub(crate) fn order(&mut self, came: impl Iterator<Item = u32>) -> bool {
        let mut named = BTreeSet::new();
        let known = came.filter(|link| self.by_index.contains_key(link) && named.insert(*link));
        let mut order: Vec<u32> = known.collect();
        let before: Vec<u32> = self.by_arrival.iter().map(|(_, link)| *link).collect();
        order.extend(before.iter().filter(|link| !named.contains(link)));
        if order == before {
            return false;
        }
        self.by_arrival = Ordered::default();
        for (arrival, index) in (0..).zip(order) {
            self.by_arrival.insert(arrival, index);
            if let Some(link) = self.get(index).cloned() {
                self.by_index.insert(index, (arrival, link));
            }
        }
        true
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Arc<Link>> {
        let (arrival, old) = self.by_index.remove(&index)?;
        self.by_arrival.remove(&arrival);
        for name in names(&old) {
            // A name may have moved to another link meanwhile.
            if self.by_name.get(name) == Some(&index) {
                self.by_name.remove(name);
            }
        }
        if let Some(master) = old.master {
            self.by_master.remove(&(master, index));
        }
        if let Some(lower) = old.below() {
            self.by_lower.remove(&(lower, index));
        }
        Some(old)
    }
}

fn names(link: &Link) -> impl Iterator<Item = &Box<str>> {
    std::iter::once(&link.name).chain(&link.alt_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::link::KindData;
    use crate::row::link::vxlan::Vxlan;

    fn link(index: u32, name: &str, alt: &[&str], master: Option<u32>) -> Arc<Link> {
        Arc::new(Link {
            index,
            name: name.into(),
            alt_names: alt.iter().map(|&a| a.into()).collect(),
            master,
            ..Link::default()
        })
    }

    #[test]
    fn found_by_every_name_and_only_by_the_present_ones() {
        let mut links = Links::default();
        links.put(link(1, "eth0", &["wan"], None));
        links.put(link(1, "eth1", &["lan"], Some(9)));
        assert!(links.by_name("eth0").is_none() && links.by_name("wan").is_none());
        assert_eq!(links.by_name("lan").map(|l| l.index), Some(1));
        assert_eq!(links.of_master(9).count(), 1);
        links.remove(1);
        assert_eq!((links.len(), links.of_master(9).count()), (0, 0));
        assert!(links.by_name("eth1").is_none());
    }

    #[test]
    fn found_by_what_they_lie_on_and_pairs_lie_on_nothing() {
        let mut links = Links::default();
        let over = |index, kind: &str, lower| {
            Arc::new(Link {
                index,
                name: kind.into(),
                kind: Some(kind.into()),
                lower: Some(lower),
                ..Link::default()
            })
        };
        links.put(link(1, "eth0", &[], None));
        links.put(over(3, "vlan", 1));
        links.put(over(2, "macvlan", 1));
        links.put(over(4, "veth", 1));
        let above = |links: &Links| links.on_top_of(1).map(|l| l.index).collect::<Vec<_>>();
        assert_eq!(above(&links), [2, 3]);
        links.put(Arc::new(Link {
            index: 5,
            name: "vx5".into(),
            kind: Some("vxlan".into()),
            kind_data: KindData::Vxlan(Box::new(Vxlan {
                link: Some(1),
                ..Vxlan::default()
            })),
            ..Link::default()
        }));
        assert_eq!(above(&links), [2, 3, 5], "by its settings");
        links.remove(5);
        links.put(over(3, "vlan", 4));
        links.remove(2);
        assert_eq!((above(&links), links.on_top_of(4).count()), (vec![], 1));
    }

    #[test]
    fn two_links_may_swap_names() {
        let mut links = Links::default();
        links.put(link(1, "a", &[], None));
        links.put(link(2, "b", &[], None));
        // a -> t, b -> a, t -> b, as seen event by event.
        links.put(link(1, "t", &[], None));
        links.put(link(2, "a", &[], None));
        links.put(link(1, "b", &[], None));
        assert_eq!(links.by_name("a").map(|l| l.index), Some(2));
        assert_eq!(links.by_name("b").map(|l| l.index), Some(1));
        assert!(links.by_name("t").is_none());
    }
}
