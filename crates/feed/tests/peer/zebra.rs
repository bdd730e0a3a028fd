//! What a zebra has and tells: random changes of next hops, groups and routes.

use std::collections::BTreeMap;

use lab::Random;
use netlink::decode::Item;

use super::{blackhole, by_id, gone, group, new, object};

/// What zebra has: by id what it means, by prefix metric and id.
#[derive(Default, Clone)]
pub struct Zebra {
    pub objects: BTreeMap<u32, Item>,
    pub routes: BTreeMap<String, (u32, u32)>,
}

impl Zebra {
    /// One change, as zebra tells it.
    pub fn change(&mut self, random: &mut Random) -> Vec<Vec<u8>> {
        let id = 1 + random.below(6) as u32;
        let prefix = format!("10.{}.0.0/16", random.below(8));
        let gateway = format!("192.0.2.{}", 1 + random.below(9));
        match random.below(8) {
            0 | 1 => {
                let item = match random.below(6) {
                    0 => blackhole(id),
                    _ => object(id, &gateway),
                };
                self.objects.insert(id, item.clone());
                vec![new(&item)]
            }
            2 => {
                let members = self.objects.keys().copied().filter(|id| *id < 7);
                let members: Vec<u32> = members.collect();
                if members.is_empty() {
                    return Vec::new();
                }
                let item = group(7 + id, &members);
                self.objects.insert(7 + id, item.clone());
                vec![new(&item)]
            }
            3 if !self.uses(id) => {
                let item = self.objects.remove(&id);
                item.iter().map(gone).collect()
            }
            4 => {
                let route = self.routes.remove(&prefix);
                let route = route.map(|(metric, id)| gone(&by_id(&prefix, metric, id)));
                route.into_iter().collect()
            }
            _ => self.route(prefix, random),
        }
    }

    fn route(&mut self, prefix: String, random: &mut Random) -> Vec<Vec<u8>> {
        let ids: Vec<u32> = self.objects.keys().copied().collect();
        if ids.is_empty() {
            return Vec::new();
        }
        let (id, metric) = (ids[random.below(ids.len())], 20 * random.below(2) as u32);
        let old = self.routes.insert(prefix.clone(), (metric, id));
        let replaces = random.below(2) == 0;
        let old = old.filter(|_| !replaces);
        let old = old.map(|(metric, id)| gone(&by_id(&prefix, metric, id)));
        let row = new(&by_id(&prefix, metric, id));
        old.into_iter().chain([row]).collect()
    }

    fn uses(&self, id: u32) -> bool {
        let in_group = self.objects.values().any(|item| match item {
            Item::Nexthop(object) => object.group.iter().any(|member| member.id == id),
            _ => false,
        });
        in_group || self.routes.values().any(|(_, of)| *of == id)
    }
}
