//! The state machine of either kind of feed, without its sockets: what the
//! feeds' thread does with what connections say (`server::line`,
//! `server::routers`), for connections that are over.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use table::{Feeders, Limits};

use super::ReplayLimits;
use crate::bmp::{Heard, Messages, RouterId, Station, StationLimits};
use crate::fpm::{Frames, Session};
use crate::now::Now;
use crate::recording::heard::{BadHeard, Declaration, Kind, What};

/// Why rows may not be so any more.
const GAP: &str = "the recording lacks what it heard here";

/// A feed's.
#[derive(Debug)]
pub(super) enum Machine {
    Fpm(Box<Fpm>),
    Bmp(Box<Bmp>),
}

/// A feed by FPM.
#[derive(Debug)]
pub(super) struct Fpm {
    session: Session,
    /// The connection that feeds it, or did last.
    connection: u32,
    /// `None`: it has said what cannot be.
    frames: Option<Frames>,
    latest: Now,
}

/// One by BMP.
#[derive(Debug)]
pub(super) struct Bmp {
    station: Station,
    connections: BTreeMap<u32, Connection>,
    latest: Now,
}

#[derive(Debug)]
struct Connection {
    from: SocketAddr,
    /// `None`: it has said what cannot be, or that it ends.
    messages: Option<Messages>,
    router: Option<RouterId>,
}

impl Machine {
    /// One that nobody has fed; `None`: its name cannot be had.
    pub(super) fn new(
        declaration: &Declaration,
        feeders: &Feeders,
        limits: ReplayLimits,
    ) -> Option<Self> {
        let own = feeders.join(&declaration.name, limits.rows).ok()?;
        let listening = declaration.listening.clone();
        let mut machine = match declaration.kind {
            Kind::Fpm => Self::Fpm(Box::new(Fpm {
                session: Session::new(own, listening),
                connection: 0,
                frames: None,
                latest: Now::default(),
            })),
            Kind::Bmp => Self::Bmp(Box::new(Bmp {
                station: Station::new(own, feeders.clone(), listening, of_station(limits.rows)),
                connections: BTreeMap::new(),
                latest: Now::default(),
            })),
        };
        machine.publish();
        Some(machine)
    }

    /// Takes in what happened to a connection.
    pub(super) fn take(
        &mut self,
        connection: u32,
        what: What<'_>,
        now: Now,
    ) -> Result<(), BadHeard> {
        match self {
            Self::Fpm(fpm) => {
                fpm.take(connection, what, now);
                Ok(())
            }
            Self::Bmp(bmp) => bmp.take(connection, what, now),
        }
    }

    /// What a connection has said before that was not whole.
    pub(super) fn pending(&mut self, connection: u32, bytes: &[u8]) {
        match self {
            Self::Fpm(fpm) if fpm.connection == connection => {
                if let Some(frames) = &mut fpm.frames {
                    frames.push(bytes);
                }
            }
            Self::Fpm(_) => {}
            Self::Bmp(bmp) => {
                let one = bmp.connections.get_mut(&connection);
                if let Some(messages) = one.and_then(|one| one.messages.as_mut()) {
                    messages.push(bytes);
                }
            }
        }
    }

    /// Something is missing: nobody feeds it, as far as is known.
    pub(super) fn gap(&mut self) {
        match self {
            Self::Fpm(fpm) => {
                fpm.frames = None;
                fpm.session.lost(GAP, false, fpm.latest);
            }
            Self::Bmp(bmp) => {
                let connections = std::mem::take(&mut bmp.connections);
                for id in connections.values().filter_map(|one| one.router) {
                    bmp.station.lost(id, GAP, false, bmp.latest);
                }
            }
        }
    }

    /// Lets readers see what came.
    pub(super) fn publish(&mut self) {
        match self {
            Self::Fpm(fpm) => fpm.session.publish(),
            Self::Bmp(bmp) => bmp.station.publish(),
        }
    }
}

fn of_station(rows: Limits) -> StationLimits {
    StationLimits {
        rows,
        ..StationLimits::default()
    }
}

impl Fpm {
    fn take(&mut self, connection: u32, what: What<'_>, now: Now) {
        self.latest = now;
        match what {
            What::Connected(peer) => {
                self.session.connected(peer, now);
                self.connection = connection;
                self.frames = Some(Frames::default());
            }
            What::Said(bytes) if self.connection == connection => self.said(bytes, now),
            What::Closed { is_lie, why } if self.connection == connection => {
                // It was counted when it was read.
                let is_new = self.frames.take().is_some();
                self.session.lost(why, is_lie && is_new, now);
            }
            What::Settled(_) if self.session.is_settling() => {
                self.session.settled(now);
            }
            What::Settled(_) | What::Said(_) | What::Closed { .. } | What::Pending(_) => {}
        }
    }

    fn said(&mut self, bytes: &[u8], now: Now) {
        let Some(frames) = &mut self.frames else {
            return;
        };
        frames.push(bytes);
        if let Err(error) = self.session.received(frames, now) {
            self.frames = None;
            self.session.lost(&error.to_string(), true, now);
        }
    }
}

impl Bmp {
    fn take(&mut self, connection: u32, what: What<'_>, now: Now) -> Result<(), BadHeard> {
        self.latest = now;
        match what {
            What::Connected(from) => {
                let from = from.parse().map_err(|_| BadHeard("an address"))?;
                let one = Connection {
                    from,
                    messages: Some(Messages::default()),
                    router: None,
                };
                self.connections.insert(connection, one);
            }
            What::Said(bytes) => self.said(connection, bytes, now),
            What::Closed { is_lie, why } => {
                if let Some(one) = self.connections.remove(&connection)
                    && let Some(id) = one.router
                {
                    let is_new = one.messages.is_some();
                    self.station.lost(id, why, is_lie && is_new, now);
                }
            }
            What::Settled(table) => self.station.settled(table, now),
            What::Pending(_) => {}
        }
        Ok(())
    }

    fn said(&mut self, connection: u32, bytes: &[u8], now: Now) {
        let Some(one) = self.connections.get_mut(&connection) else {
            return;
        };
        let Some(messages) = &mut one.messages else {
            return;
        };
        messages.push(bytes);
        let (why, is_lie) = match hear(&mut self.station, one.from, &mut one.router, messages, now)
        {
            Ok(Heard::On) => return,
            Ok(Heard::Ended(why)) => (why, false),
            Err(why) => (why, true),
        };
        one.messages = None;
        match one.router {
            Some(id) => self.station.lost(id, &why, is_lie, now),
            // It was turned away, and nothing more is told of it.
            None => drop(self.connections.remove(&connection)),
        }
    }
}

/// Takes in what is there whole of a connection, and first who it is.
fn hear(
    station: &mut Station,
    from: SocketAddr,
    router: &mut Option<RouterId>,
    messages: &mut Messages,
    now: Now,
) -> Result<Heard, String> {
    let id = match *router {
        Some(id) => id,
        None if !messages.has_message().map_err(|error| error.to_string())? => {
            return Ok(Heard::On);
        }
        None => {
            let id = station.connected(from, messages, now);
            *router.insert(id.map_err(|error| error.to_string())?)
        }
    };
    let heard = station.received(id, messages, now);
    heard.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use table::Writer;

    use super::*;

    #[test]
    fn who_was_turned_away_leaves_nothing_behind() {
        let first = Writer::default();
        let declaration = Declaration {
            kind: Kind::Bmp,
            name: "bmp".into(),
            listening: "127.0.0.1:1".into(),
        };
        let limits = ReplayLimits::default();
        let mut machine = Machine::new(&declaration, &first.feeders(), limits).unwrap();
        for connection in 1..=100 {
            let mut take = |what| machine.take(connection, what, Now::default());
            take(What::Connected("127.0.0.1:9")).unwrap();
            take(What::Said(b"GET / HTTP/1.1")).unwrap();
        }
        let Machine::Bmp(bmp) = machine else {
            panic!("it is by another protocol");
        };
        assert_eq!(bmp.connections.len(), 0);
    }
}
