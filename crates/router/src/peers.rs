//! Who may ask a running router or translation, and for what. What it has says
//! who talks to whom: root and the user who runs it are answered, and the group
//! that its socket was given to, which may ask and change nothing. Places are
//! kept for root, and for who runs it. For `live::control` and `nat::control`.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use translation::request::Request;

/// Clients at a time: of all, of who is not root, of the group.
const CLIENTS: [usize; 3] = [16, 12, 8];

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    Root,
    Runner,
    Group,
}

impl Peer {
    /// Who it is; an error: nobody who is answered.
    pub fn of(client: &UnixStream, has_group: bool) -> Result<Self> {
        let uid = socket_peercred(client).context("asking who asks")?.uid;
        match uid {
            uid if uid.is_root() => Ok(Self::Root),
            uid if uid == geteuid() => Ok(Self::Runner),
            // Who came through the socket's file is of the group.
            _ if has_group => Ok(Self::Group),
            _ => bail!("only root and who runs it are answered"),
        }
    }

    /// Whether it may ask for this.
    pub fn check(self, request: &Request) -> Result<()> {
        match request {
            Request::Clear { .. } | Request::Reload if self == Self::Group => {
                bail!("only root and who runs the translation may change anything")
            }
            _ => Ok(()),
        }
    }
}

/// How many clients there are.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<AtomicUsize>);

impl Places {
    /// A place for one; an error: there is none.
    pub fn take(&self, peer: Peer) -> Result<Taken> {
        let [all, not_root, group] = CLIENTS;
        let most = match peer {
            Peer::Root => all,
            Peer::Runner => not_root,
            Peer::Group => group,
        };
        // One thread gives places out.
        if self.0.load(Ordering::Relaxed) >= most {
            bail!("there are too many clients");
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Taken(Arc::clone(&self.0)))
    }
}

/// A client's place, given back when it goes.
#[derive(Debug)]
pub struct Taken(Arc<AtomicUsize>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use translation::request::{Filter, Table};

    #[test]
    fn places_are_kept_for_root_and_who_runs_it() {
        let places = Places::default();
        let take = |peer: Peer| places.take(peer);
        let mut taken: Vec<Taken> = (0..8).map(|_| take(Peer::Group).unwrap()).collect();
        assert!(take(Peer::Group).is_err(), "at its limit");
        taken.extend((0..4).map(|_| take(Peer::Runner).unwrap()));
        assert!(take(Peer::Runner).is_err());
        taken.extend((0..4).map(|_| take(Peer::Root).unwrap()));
        assert!(take(Peer::Root).is_err());
        taken.truncate(7);
        assert!(take(Peer::Group).is_ok(), "and back");
    }

    #[test]
    fn the_group_asks_and_changes_nothing() {
        let clear = Request::Clear {
            filter: Filter::default(),
        };
        for peer in [Peer::Root, Peer::Runner, Peer::Group] {
            let rows = Request::rows(Table::Flows, Filter::default());
            assert!(peer.check(&rows).is_ok() && peer.check(&Request::Statistics).is_ok());
            for change in [&clear, &Request::Reload] {
                assert_eq!(peer.check(change).is_ok(), peer != Peer::Group, "{peer:?}");
            }
        }
    }
}
