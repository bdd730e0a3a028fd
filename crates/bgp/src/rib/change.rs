//! What a peer says behind a dump, or without one: paths one by one.

use ipnet::IpNet;
use table::{RouteBody, RouteLoad};

use super::{MAX_DIRTY, Rib};
use crate::mrt::{Message, Named};
use crate::paths::Said;
use crate::{Bad, paths};

impl Rib {
    /// Takes a message in. What it announces with attributes that cannot be
    /// read is taken as withdrawn (RFC 7606 §2).
    pub(super) fn change(&mut self, message: Message<'_>, first: &mut Option<Bad>) {
        let number = match self.peers.number(message.peer) {
            Ok(number) => number,
            Err(bad) => return self.note(bad, first),
        };
        let size = message.session.as_size;
        paths::each(&message.update, size, |said| match said {
            Ok(Said::Gone(prefix, path_id)) => self.withdraw(number, prefix, path_id),
            Ok(Said::There(prefix, path)) => self.announce(number, prefix, path),
            Ok(Said::Unreadable(prefix, path_id, bad)) => {
                self.note(bad, first);
                self.withdraw(number, prefix, path_id);
            }
            Err(bad) => self.note(bad, first),
        });
    }

    fn withdraw(&mut self, number: usize, prefix: IpNet, path_id: Option<u32>) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        self.counts.withdrawn += 1;
        if paths::take_out(&mut peer.feeder, prefix, path_id) {
            peer.is_touched = true;
            self.touched(prefix);
        }
    }

    fn announce(&mut self, number: usize, prefix: IpNet, path: RouteBody) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        self.counts.paths += 1;
        peer.is_touched = true;
        // A refusal is counted and told with the peer's rows.
        let _ = paths::put(&mut peer.feeder, prefix, path);
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
