//! One feed at the edge: its door, the connection that feeds it, and those
//! that have not fed it yet.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use table::Limits;

use super::FpmFeed;
use super::candidate::{self, Connection, Spoke, is_passing};
use super::entrance::Entrance;
use crate::fpm::{Forwarded, Frames, Now, Session};
use crate::recording::Taping;

/// Readers see what came so often at most.
pub(super) const PACE: Duration = Duration::from_millis(2);
/// Writes to a peer before it is the others' turn.
const WRITES: usize = 8;

/// One feed.
#[derive(Debug)]
pub(super) struct Line {
    name: String,
    entrance: Entrance,
    session: Session,
    live: Option<Connection>,
    /// The newest last.
    candidates: Vec<Connection>,
    published: Duration,
    sending: Sending,
    taping: Taping,
    /// The number that the recording has of the live connection.
    recorded: u32,
}

/// How what is sent to the peer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Nothing is to be sent.
    Done,
    /// There is more, and it is taken.
    On,
    /// The peer does not read.
    Blocked,
    /// It cannot be written to any more. What it said stays to be read, and
    /// that says why it ends.
    Broken,
}

impl Line {
    pub(super) fn new(feed: FpmFeed) -> Self {
        let listening = feed.door.address.to_string();
        let name = feed.feeder.name().to_owned();
        let mut session = Session::new(feed.feeder, listening);
        if feed.is_forwarded {
            session = session.acknowledging();
        }
        Self {
            entrance: Entrance::new(&name, feed.door),
            name,
            session,
            live: None,
            candidates: Vec::new(),
            published: Duration::ZERO,
            sending: Sending::Done,
            taping: Taping::new(feed.tape),
            recorded: 0,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.session.set_limits(limits);
    }

    /// Whoever forwards by it has looked at more of its routes.
    pub(super) fn forwarded(&mut self, news: Forwarded) {
        self.session.forwarded(news);
    }

    /// What is waited for, and for what.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let of_live = match self.sending {
            Sending::Blocked => PollFlags::IN | PollFlags::OUT,
            Sending::Done | Sending::On | Sending::Broken => PollFlags::IN,
        };
        let live = self.live.iter().map(move |live| (live.as_fd(), of_live));
        let candidates = self.candidates.iter().map(AsFd::as_fd);
        let others = std::iter::once(self.entrance.as_fd());
        let others = others.map(|fd| (fd, PollFlags::IN));
        let candidates = candidates.map(|fd| (fd, PollFlags::IN));
        others.chain(live).chain(candidates)
    }

    /// When something is to be done without a call.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.sending == Sending::On {
            return Some(Duration::ZERO);
        }
        self.publishing_due()
    }

    fn publishing_due(&self) -> Option<Duration> {
        self.session.has_news().then_some(self.published + PACE)
    }

    /// Sends the peer what there is, as far as it reads. Never waits.
    pub(super) fn send(&mut self) {
        if self.sending == Sending::Broken && self.live.is_some() {
            return;
        }
        self.sending = Sending::Done;
        for _ in 0..WRITES {
            let Some(live) = &mut self.live else {
                return;
            };
            let Some(bytes) = self.session.unsent() else {
                return;
            };
            if bytes.is_empty() {
                continue;
            }
            match live.stream.write(bytes) {
                Ok(written) => self.session.sent(written),
                Err(error) if is_passing(&error) => {
                    self.sending = Sending::Blocked;
                    return;
                }
                Err(error) => {
                    tracing::warn!("feed {}: nothing can be told back: {error}", self.name);
                    self.sending = Sending::Broken;
                    return;
                }
            }
        }
        self.sending = Sending::On;
    }

    /// Serves those of [`Line::sockets`] that were called.
    pub(super) fn serve(&mut self, called: &[bool], buffer: &mut [u8], now: Now) {
        let mut called = called.iter().copied();
        let door = called.next().unwrap_or_default();
        if self.live.is_some() && called.next().unwrap_or_default() {
            self.read(buffer, now);
        }
        let called: Vec<bool> = called.collect();
        self.listen(&called, buffer, now);
        if door {
            self.accept(now);
        }
    }

    /// Reads the live connection once.
    fn read(&mut self, buffer: &mut [u8], now: Now) {
        let Some(live) = &mut self.live else {
            return;
        };
        let read = match live.read(buffer) {
            Ok(None) => return,
            Ok(Some(0)) => Err(("the peer closed the connection".to_owned(), false)),
            Ok(Some(read)) => {
                let said = buffer.get(..read).unwrap_or_default();
                self.taping.said(self.recorded, said, now);
                let received = self.session.received(&mut live.frames, now);
                received.map_err(|error| (error.to_string(), true))
            }
            Err(error) => Err((error.to_string(), false)),
        };
        if let Err((why, is_lie)) = read {
            self.lose(&why, is_lie, now);
        }
    }

    fn lose(&mut self, why: &str, is_lie: bool, now: Now) {
        let Some(live) = self.live.take() else {
            return;
        };
        let (name, peer) = (&self.name, live.peer);
        match is_lie {
            true => tracing::error!("feed {name}: the connection of {peer} is closed: {why}"),
            false => tracing::warn!("feed {name}: {peer} is gone: {why}; its rows stay"),
        }
        let why = format!("{peer}: {why}");
        self.taping.closed(self.recorded, &why, is_lie, now);
        self.session.lost(&why, is_lie, now);
    }

    /// Hears candidates; the newest that feeds takes over.
    fn listen(&mut self, called: &[bool], buffer: &mut [u8], now: Now) {
        let mut kept = Vec::new();
        let mut called = called.iter().copied();
        let mut ready = None;
        for mut one in std::mem::take(&mut self.candidates) {
            let spoke = match called.next().unwrap_or_default() {
                true => one.listen(buffer),
                false => Spoke::Waits,
            };
            match spoke {
                Spoke::Waits => kept.push(one),
                Spoke::Feeds => {
                    if let Some(older) = ready.replace(one) {
                        self.turn_away(older.peer, "a newer connection feeds", now);
                    }
                }
                Spoke::Ended(why) => self.turn_away(one.peer, &why, now),
            }
        }
        self.candidates = kept;
        if let Some(one) = ready {
            self.take_over(one, now);
        }
    }

    fn take_over(&mut self, mut one: Connection, now: Now) {
        if self.live.is_some() {
            self.lose("the same feed connected anew", false, now);
        }
        tracing::info!("feed {}: {} feeds it", self.name, one.peer);
        let peer = one.peer.to_string();
        self.recorded = self.taping.connected(&peer, one.frames.unread(), now);
        self.session.connected(&peer, now);
        let received = self.session.received(&mut one.frames, now);
        self.sending = Sending::Done;
        self.live = Some(one);
        if let Err(error) = received {
            self.lose(&error.to_string(), true, now);
        }
    }

    /// Accepts who has come.
    fn accept(&mut self, now: Now) {
        let came = self.entrance.accept(now);
        for _ in 0..came.refused {
            self.session.turned_away();
        }
        for (stream, peer) in came.admitted {
            self.admit(stream, peer, now);
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr, now: Now) {
        if self.candidates.len() >= candidate::MOST {
            let oldest = self.candidates.remove(0);
            self.turn_away(oldest.peer, "it said nothing, and others came", now);
        }
        self.candidates.push(Connection {
            stream,
            peer,
            frames: Frames::default(),
        });
    }

    fn turn_away(&mut self, peer: SocketAddr, why: &str, now: Now) {
        self.session.turned_away();
        self.entrance.turned_away(peer, why, now);
    }

    /// Looks whether its peer has told all, and whether a recording wants to
    /// know how it stands.
    pub(super) fn tick(&mut self, now: Now) {
        if self.taping.wants_state(now) {
            let state = self.session.state(self.recorded);
            let live = self.live.iter();
            let pending = live.map(|live| (self.recorded, live.frames.unread()));
            self.taping.tell(state, pending, now);
        }
        if let Some(swept) = self.session.tick(now) {
            self.taping.settled("", now);
            tracing::info!("feed {}: all was told; {swept} rows are gone", self.name);
        }
    }

    /// Shows readers what came, if it is time to.
    pub(super) fn publish(&mut self, now: Now) {
        if self
            .publishing_due()
            .is_some_and(|due| due <= now.monotonic)
        {
            self.session.publish();
            self.published = now.monotonic;
        }
    }
}
