//! A BMP station at the edge: its door, and the connections of its routers.
//!
//! Each connection is read a bounded piece at a time, one after the other:
//! a router that says much, or nothing in the middle of a message, keeps
//! none of the others waiting.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use super::StationFeed;
use super::candidate::read;
use super::entrance::Entrance;
use super::line::PACE;
use crate::bmp::{Broken, Heard, Messages, RouterId, Station, StationLimits};
use crate::now::Now;
use crate::recording::Taping;

/// Bytes that are read of a router before it is the next one's turn.
const TURN: usize = 64 << 10;
/// Connections that have not said who they are, at most; one more takes the
/// place of the oldest.
const MOST_UNNAMED: usize = 16;

/// A station.
#[derive(Debug)]
pub(super) struct Routers {
    entrance: Entrance,
    station: Station,
    /// The newest last.
    connections: Vec<Connection>,
    published: Duration,
    taping: Taping,
}

/// A connection and what was read of it.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    messages: Messages,
    /// Who it is; `None`: it has not said that yet.
    router: Option<RouterId>,
    /// The number that the recording has of it, once it has said that.
    recorded: u32,
}

/// Why a connection ends.
#[derive(Debug)]
struct End {
    why: String,
    /// It said what cannot be.
    is_lie: bool,
}

impl Routers {
    pub(super) fn new(feed: StationFeed) -> Self {
        let listening = feed.door.address.to_string();
        Self {
            entrance: Entrance::new(feed.own.name(), feed.door),
            station: Station::new(feed.own, feed.feeders, listening, feed.limits),
            connections: Vec::new(),
            published: Duration::ZERO,
            taping: Taping::new(feed.tape),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.station.name()
    }

    pub(super) fn set_limits(&mut self, limits: StationLimits) {
        self.station.set_limits(limits);
    }

    /// What is waited for, and for what.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let all = self.connections.iter().map(|one| one.stream.as_fd());
        let all = std::iter::once(self.entrance.as_fd()).chain(all);
        all.map(|fd| (fd, PollFlags::IN))
    }

    /// When something is to be done without a call.
    pub(super) fn due(&self) -> Option<Duration> {
        self.station.has_news().then_some(self.published + PACE)
    }

    /// Serves those of [`Routers::sockets`] that were called.
    pub(super) fn serve(&mut self, called: &[bool], buffer: &mut [u8], now: Now) {
        let mut called = called.iter().copied();
        let door = called.next().unwrap_or_default();
        let most = buffer.len().min(TURN);
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        let called: Vec<SocketAddr> = self
            .connections
            .iter()
            .zip(called)
            .filter_map(|(one, is_called)| is_called.then_some(one.peer))
            .collect();
        for peer in called {
            let at = self.connections.iter().position(|one| one.peer == peer);
            if let Some(at) = at {
                self.serve_one(at, buffer, now);
            }
        }
        if door {
            self.accept(now);
        }
    }

    fn serve_one(&mut self, at: usize, buffer: &mut [u8], now: Now) {
        let Some(one) = self.connections.get_mut(at) else {
            return;
        };
        let heard = one.hear(&mut self.station, &mut self.taping, buffer, now);
        let (is_new, router, peer) = (one.router.is_none(), one.router, one.peer);
        let recorded = one.recorded;
        match heard {
            Ok(Some(id)) if is_new => {
                one.router = Some(id);
                let name = (self.name(), self.station.name_of(id));
                tracing::info!("feed {}: {peer} is router {}", name.0, name.1);
                // What came behind its first message.
                self.serve_named(peer, now);
            }
            Ok(_) => {}
            Err(end) => {
                self.connections.remove(at);
                self.ended(router, peer, recorded, &end, now);
            }
        }
    }

    /// Takes in what is there of a router that has just said who it is.
    fn serve_named(&mut self, peer: SocketAddr, now: Now) {
        let Some(at) = self.connections.iter().position(|one| one.peer == peer) else {
            return;
        };
        let Some(one) = self.connections.get_mut(at) else {
            return;
        };
        if let Err(end) = one.received(&mut self.station, now) {
            let (router, recorded) = (one.router, one.recorded);
            self.connections.remove(at);
            self.ended(router, peer, recorded, &end, now);
        }
    }

    fn ended(
        &mut self,
        router: Option<RouterId>,
        peer: SocketAddr,
        recorded: u32,
        end: &End,
        now: Now,
    ) {
        let why = &end.why;
        let Some(id) = router else {
            self.station.turned_away();
            return self.entrance.turned_away(peer, why, now);
        };
        let (feed, router) = (self.name(), self.station.name_of(id));
        match end.is_lie {
            true => {
                tracing::error!("feed {feed}: the connection of {router}, {peer}, is closed: {why}")
            }
            false => tracing::warn!("feed {feed}: {router}, {peer}, is gone: {why}; its rows stay"),
        }
        let why = format!("{peer}: {why}");
        self.taping.closed(recorded, &why, end.is_lie, now);
        self.station.lost(id, &why, end.is_lie, now);
    }

    fn accept(&mut self, now: Now) {
        let came = self.entrance.accept(now);
        for _ in 0..came.refused {
            self.station.turned_away();
        }
        for (stream, peer) in came.admitted {
            let mut unnamed = self.connections.iter().enumerate();
            let unnamed = unnamed.by_ref().filter(|(_, one)| one.router.is_none());
            let unnamed: Vec<usize> = unnamed.map(|(at, _)| at).collect();
            if unnamed.len() >= MOST_UNNAMED
                && let Some(oldest) = unnamed.first()
            {
                let oldest = self.connections.remove(*oldest);
                let why = "it did not say who it is, and others came".to_owned();
                let end = End { why, is_lie: false };
                self.ended(None, oldest.peer, oldest.recorded, &end, now);
            }
            self.connections.push(Connection {
                stream,
                peer,
                messages: Messages::default(),
                router: None,
                recorded: 0,
            });
        }
    }

    /// Looks whether routers have told all, and whether a recording wants to
    /// know how they stand.
    pub(super) fn tick(&mut self, now: Now) {
        if self.taping.wants_state(now) {
            self.tell_state(now);
        }
        let Self {
            station, taping, ..
        } = self;
        station.tick(now, &mut |table| taping.settled(table, now));
    }

    fn tell_state(&mut self, now: Now) {
        let Self {
            connections,
            taping,
            station,
            ..
        } = self;
        let state = station.state(|id| {
            let mut all = connections.iter();
            let of_router = all.find(|one| one.router == Some(id));
            of_router.map_or_else(|| taping.next_connection(), |one| one.recorded)
        });
        let named = connections.iter().filter(|one| one.router.is_some());
        let pending = named.map(|one| (one.recorded, one.messages.unread()));
        taping.tell(state, pending, now);
    }

    /// Shows readers what came, if it is time to.
    pub(super) fn publish(&mut self, now: Now) {
        if self.due().is_some_and(|due| due <= now.monotonic) {
            self.station.publish();
            self.published = now.monotonic;
        }
    }
}

impl Connection {
    /// Reads once, and takes in what is there whole. Who it is, once it has
    /// said so.
    fn hear(
        &mut self,
        station: &mut Station,
        taping: &mut Taping,
        buffer: &mut [u8],
        now: Now,
    ) -> Result<Option<RouterId>, End> {
        let read = read(&mut self.stream, buffer).map_err(|error| End::of(&error))?;
        let bytes = match read {
            None => return Ok(self.router),
            Some([]) => return Err(End::of(&"the router closed the connection")),
            Some(bytes) => bytes,
        };
        self.messages.push(bytes);
        if self.router.is_some() {
            taping.said(self.recorded, bytes, now);
            self.received(station, now)?;
            return Ok(self.router);
        }
        match self.messages.has_message().map_err(Broken::from) {
            Ok(false) => Ok(None),
            Ok(true) => {
                // Who is turned away is not recorded.
                let said = self.messages.unread().to_vec();
                let id = station.connected(self.peer, &mut self.messages, now);
                let id = id.map_err(End::of_lie)?;
                self.recorded = taping.connected(&self.peer.to_string(), &said, now);
                Ok(Some(id))
            }
            Err(error) => Err(End::of_lie(error)),
        }
    }

    fn received(&mut self, station: &mut Station, now: Now) -> Result<(), End> {
        let Some(id) = self.router else {
            return Ok(());
        };
        match station.received(id, &mut self.messages, now) {
            Ok(Heard::On) => Ok(()),
            Ok(Heard::Ended(why)) => Err(End::of(&format!("the router ends: {why}"))),
            Err(error) => Err(End::of_lie(error)),
        }
    }
}

impl End {
    fn of(why: &dyn std::fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            is_lie: false,
        }
    }

    fn of_lie(error: Broken) -> Self {
        Self {
            why: error.to_string(),
            is_lie: true,
        }
    }
}
