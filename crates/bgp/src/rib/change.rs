//! What a peer says behind a dump, or without one: paths one by one.

use ipnet::IpNet;
use table::{Change, Placement, Route, RouteBody, RouteLoad, SharedRoute};

use super::body::body;
use super::peers::Peer;
use super::{MAX_DIRTY, Rib, TABLE};
use crate::Bad;
use crate::mrt::{Message, Named};

impl Rib {
    /// Takes a message in. What it announces with attributes that cannot be
    /// read is taken as withdrawn (RFC 7606 §2).
    pub(super) fn change(&mut self, message: Message<'_>, first: &mut Option<Bad>) {
        let number = match self.peers.number(message.peer) {
            Ok(number) => number,
            Err(bad) => return self.note(bad, first),
        };
        let update = message.update;
        for one in update.withdrawn.into_iter().flatten() {
            match one {
                Ok((path_id, prefix)) => self.withdraw(number, prefix, path_id),
                Err(bad) => self.note(bad, first),
            }
        }
        let size = message.session.as_size;
        for (prefixes, next_hop) in update.announced {
            for one in prefixes {
                let (path_id, prefix) = match one {
                    Ok(one) => one,
                    Err(bad) => {
                        self.note(bad, first);
                        continue;
                    }
                };
                match update.attributes.packed(size, path_id) {
                    Ok(path) => self.announce(number, prefix, path_id, body(next_hop, path)),
                    Err(bad) => {
                        self.note(bad, first);
                        self.withdraw(number, prefix, path_id);
                    }
                }
            }
        }
    }

    fn withdraw(&mut self, number: usize, prefix: IpNet, path_id: Option<u32>) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        self.counts.withdrawn += 1;
        if let Some(old) = peer.path(prefix, path_id) {
            peer.apply(Change::DeleteRoute(old));
            self.touched(prefix);
        }
    }

    fn announce(&mut self, number: usize, prefix: IpNet, path_id: Option<u32>, body: RouteBody) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        self.counts.paths += 1;
        let route = Route {
            table: TABLE,
            prefix,
            tos: 0,
            metric: 0,
            body,
        };
        let placement = match path_id {
            None => Placement::InsteadOfFirst,
            Some(_) => {
                let old = peer.path(prefix, path_id);
                if let Some(old) = old.filter(|old| *old.body != route.body) {
                    peer.apply(Change::DeleteRoute(old));
                }
                Placement::Last
            }
        };
        peer.apply(Change::PutRoute(route, placement));
        self.touched(prefix);
    }

    /// Takes all paths of a peer out.
    pub(super) fn went_down(&mut self, named: Named) {
        let Ok(number) = self.peers.number(named) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        peer.is_touched = true;
        let prefixes: Vec<IpNet> = peer.tables().routes.iter().map(|row| row.prefix).collect();
        peer.feeder.replace_routes(RouteLoad::new(&self.limits));
        self.counts.withdrawn += prefixes.len() as u64;
        prefixes.into_iter().for_each(|prefix| self.touched(prefix));
    }

    fn touched(&mut self, prefix: IpNet) {
        self.dirty.insert(prefix);
        if self.dirty.len() >= MAX_DIRTY {
            self.choose();
        }
    }
}

impl Peer {
    /// Its path to a prefix.
    fn path(&self, prefix: IpNet, path_id: Option<u32>) -> Option<SharedRoute> {
        let mut paths = self.tables().routes.exact(TABLE, prefix);
        let path = paths.find(|path| path.body.path.path_id() == path_id)?;
        Some(path.to_shared())
    }

    fn apply(&mut self, change: Change) {
        self.is_touched = true;
        // A refusal is counted and told with the peer's rows.
        let _ = self.feeder.apply(change);
    }
}
