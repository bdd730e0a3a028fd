//! The state machine of one feed: who feeds it, what that peer told, and
//! whether it has told all. Bytes and a time in, changes of rows out.

use netlink::Malformed;
use netlink::message::messages;
use table::{FeedStatus, Feeder, Limits, Phase};
use thiserror::Error;

use super::acknowledging::{Acknowledging, Forwarded};
use super::frames::{BadFrame, Frames};
use super::rows::{Rows, Taken};
use super::state::FpmState;
use crate::now::Now;
use crate::settling::Settling;

/// A message longer than this is none of zebra's, whose buffer has 8,192
/// bytes.
const MAX_MESSAGE: usize = 16_384;

/// Why a connection cannot be read on. Names the place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken {
    /// The stream is not made of frames.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// A frame does not hold what it should.
    #[error("the frame at byte {offset}: {error}")]
    Message {
        /// Where the frame begins in the stream.
        offset: u64,
        /// What is wrong in it.
        error: Malformed,
    },
    /// A message that is too long to be one.
    #[error(
        "the frame at byte {offset}: a message of {bytes} bytes; {MAX_MESSAGE} at most are taken"
    )]
    TooLong {
        /// Where the frame begins in the stream.
        offset: u64,
        /// Bytes of the message.
        bytes: usize,
    },
}

/// One feed. Dropped, its rows leave.
#[derive(Debug)]
pub struct Session {
    rows: Rows,
    status: FeedStatus,
    phase: Phase,
    /// What is to come after a resync, until it is settled.
    settling: Option<Settling>,
    events: u64,
    malformed: u64,
    trouble: Option<String>,
    is_told: bool,
    /// Where packets are forwarded by it.
    acknowledging: Option<Acknowledging>,
}

impl Session {
    /// A feed that nobody feeds yet. `listening` is where it is waited for.
    pub fn new(feeder: Feeder, listening: String) -> Self {
        let mut session = Self {
            rows: Rows::new(feeder),
            status: FeedStatus {
                listening,
                ..FeedStatus::default()
            },
            phase: Phase::Disconnected("nobody has connected yet".to_owned()),
            settling: None,
            events: 0,
            malformed: 0,
            trouble: None,
            is_told: false,
            acknowledging: None,
        };
        session.tell();
        session
    }

    /// The same; its routes are acknowledged to its peer once somebody who
    /// forwards packets by them says how that stands
    /// ([`Session::forwarded`]).
    pub fn acknowledging(self) -> Self {
        Self {
            acknowledging: Some(Acknowledging::default()),
            ..self
        }
    }

    /// Whoever forwards by its rows has looked at more of them. Nothing
    /// where they are not acknowledged.
    pub fn forwarded(&mut self, news: Forwarded) {
        if let Some(acknowledging) = &mut self.acknowledging {
            acknowledging.forwarded(news);
        }
    }

    /// What is to be sent to the peer that feeds it now; more is made as
    /// that is taken ([`Session::sent`]). Nothing yet, where it is to be
    /// asked again at once; `None` before something happens. O(bytes).
    pub fn unsent(&mut self) -> Option<&[u8]> {
        let is_connected = self.is_connected();
        let acknowledging = self.acknowledging.as_mut().filter(|_| is_connected)?;
        let has_more = acknowledging.make(self.rows.feeder());
        let counts = acknowledging.counts();
        let told = (self.status.acknowledged, self.status.acknowledged_refused);
        if told != (counts.forwarded, counts.refused) {
            self.status.acknowledged = counts.forwarded;
            self.status.acknowledged_refused = counts.refused;
            self.is_told = false;
        }
        let bytes = acknowledging.bytes();
        (has_more || !bytes.is_empty()).then_some(bytes)
    }

    /// The peer took so many of those bytes.
    pub fn sent(&mut self, bytes: usize) {
        if let Some(acknowledging) = &mut self.acknowledging {
            acknowledging.taken(bytes);
        }
    }

    /// What it is asked for by.
    pub fn name(&mut self) -> String {
        self.rows.feeder().name().to_owned()
    }

    /// Takes other limits, for rows to come.
    pub fn set_limits(&mut self, limits: Limits) {
        self.rows.feeder().set_limits(limits);
    }

    /// Somebody begins to feed it, and will tell all. One step.
    pub fn connected(&mut self, peer: &str, now: Now) {
        let feeder = self.rows.feeder();
        feeder.set_time(now.millis);
        let rows = feeder.tables().rows();
        self.phase = match rows {
            0 => Phase::Loading,
            _ => Phase::Resyncing,
        };
        self.rows.begin();
        self.status.peer = Some(peer.to_owned());
        self.status.connections += 1;
        if let Some(acknowledging) = &mut self.acknowledging {
            acknowledging.begin();
        }
        self.status.since = Some(now.when());
        self.settling = Some(Settling::begin(now.monotonic, rows, self.status.messages));
        self.is_told = false;
    }

    /// Takes in all frames that are there whole. What was read before an
    /// error counts; who gets one ends the connection and says so
    /// ([`Session::lost`]). Readers see it after [`Session::publish`].
    pub fn received(&mut self, frames: &mut Frames, now: Now) -> Result<(), Broken> {
        self.rows.feeder().set_time(now.millis);
        while let Some(frame) = frames.next_frame()? {
            self.status.frames += 1;
            self.status.last_heard = Some(now.when());
            self.is_told = false;
            self.frame(frame.offset, frame.payload, now)?;
        }
        Ok(())
    }

    fn frame(&mut self, offset: u64, payload: &[u8], now: Now) -> Result<(), Broken> {
        for message in messages(payload) {
            let message = message.map_err(|error| Broken::Message { offset, error })?;
            let bytes = message.payload.len();
            if bytes > MAX_MESSAGE {
                return Err(Broken::TooLong { offset, bytes });
            }
            self.status.messages += 1;
            let taken = self.rows.take(&message, now.millis);
            match taken.map_err(|error| Broken::Message { offset, error })? {
                Taken::Row => self.events += 1,
                Taken::Nexthop => {
                    self.events += 1;
                    if let Some(acknowledging) = &mut self.acknowledging {
                        acknowledging.changed_hops();
                    }
                }
                Taken::Route(place) => {
                    self.events += 1;
                    if let Some(acknowledging) = &mut self.acknowledging {
                        acknowledging.told(place);
                    }
                }
                Taken::Skipped(what) => *self.status.skipped.entry(what).or_default() += 1,
                Taken::Full(full) => self.trouble = Some(full.to_string()),
            }
        }
        Ok(())
    }

    /// A connection was turned away that fed nothing.
    pub fn turned_away(&mut self) {
        self.status.turned_away += 1;
        self.is_told = false;
    }

    /// Its peer is gone. The rows stay, and none of them is confirmed.
    pub fn lost(&mut self, why: &str, broken: bool, now: Now) {
        self.malformed += u64::from(broken);
        self.phase = Phase::Disconnected(why.to_owned());
        self.status.since = Some(now.when());
        self.settling = None;
        self.is_told = false;
        self.publish();
    }

    /// Whether somebody feeds it.
    pub fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Disconnected(_))
    }

    /// Whether its peer is about to tell all, as far as is known.
    pub fn is_settling(&self) -> bool {
        self.settling.is_some()
    }

    /// Looks whether the peer has told all; what it did not tell goes then.
    /// To be called each second. Gives the rows that went, once.
    pub fn tick(&mut self, now: Now) -> Option<usize> {
        let settling = self.settling.as_mut()?;
        let unconfirmed = self.rows.feeder().unconfirmed();
        let is_settled = settling.is_settled(now.monotonic, unconfirmed, self.status.messages);
        is_settled.then(|| self.settled(now))
    }

    /// The peer has told all; what it did not tell goes. Gives the rows that
    /// went.
    pub(crate) fn settled(&mut self, now: Now) -> usize {
        self.settling = None;
        self.rows.feeder().set_time(now.millis);
        let swept = self.rows.end();
        self.status.swept += swept as u64;
        self.phase = Phase::Live;
        self.trouble = None;
        self.is_told = false;
        self.publish();
        swept
    }

    /// How it stands, for a recording. `connection` is that which feeds it.
    pub(crate) fn state(&mut self, connection: u32) -> FpmState {
        let is_connected = self.is_connected();
        let feeder = self.rows.feeder();
        FpmState {
            connection,
            tables: feeder.tables().clone(),
            // Of one that is gone all rows are.
            unconfirmed: feeder.unconfirmed_rows().filter(|_| is_connected),
            peer: self.status.peer.clone(),
            gone: match &self.phase {
                Phase::Disconnected(why) => Some(why.clone()),
                _ => None,
            },
            is_settled: self.settling.is_none(),
            is_resyncing: self.phase == Phase::Resyncing,
        }
    }

    /// Readers see what came since, and how the feed fares. O(1).
    pub fn publish(&mut self) {
        if self.is_told {
            return;
        }
        let generation = self.rows.feeder().publish();
        if let Some(acknowledging) = &mut self.acknowledging {
            acknowledging.published(generation);
        }
        self.tell();
    }

    /// Whether there is something to publish.
    pub fn has_news(&self) -> bool {
        !self.is_told
    }

    fn tell(&mut self) {
        self.is_told = true;
        let feeder = self.rows.feeder();
        self.status.unconfirmed = match self.phase {
            Phase::Disconnected(_) => feeder.tables().rows() as u64,
            _ => feeder.unconfirmed() as u64,
        };
        let (phase, events, malformed) = (self.phase.clone(), self.events, self.malformed);
        let (trouble, feed) = (self.trouble.clone(), Box::new(self.status.clone()));
        feeder.update_status(|status| {
            status.phase = phase;
            status.resyncs = feed.connections.saturating_sub(1);
            status.events = events;
            status.malformed = malformed;
            status.last_trouble = trouble;
            status.feed = Some(feed);
        });
    }
}
