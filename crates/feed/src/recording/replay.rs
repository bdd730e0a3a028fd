//! The state machines of feeds, fed by the records of a recording.
//!
//! What a feed heard means nothing without how it stood before: that is told
//! at the beginning of each part. Who has followed from the part before
//! passes over it; else the feed begins anew with it, and what was heard
//! while it was told is taken in behind it.

mod machine;

use std::collections::BTreeMap;

use table::{Feeders, Limits};

use super::heard::{BadHeard, Declaration, Heard, What};
use machine::Machine;

/// Bytes that are kept of what was heard while a state is told.
const HELD_BYTES: usize = 64 << 20;
/// Feeds of a recording at most; the records of more are passed over.
const MAX_FEEDS: usize = 1_024;
/// Records after which readers see what came of them.
const BATCH: usize = 64;

/// What feeds that are replayed may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayLimits {
    /// Rows of a feed by FPM, and of a router by BMP.
    pub rows: Limits,
}

/// The feeds of a recording.
#[derive(Debug)]
pub struct Replay {
    limits: ReplayLimits,
    feeds: Vec<Replayed>,
    /// Which feed a number of the part at hand means.
    numbers: BTreeMap<u32, usize>,
    unpublished: usize,
}

/// A feed that is replayed.
#[derive(Debug)]
struct Replayed {
    declaration: Declaration,
    feeders: Feeders,
    /// `None`: its name cannot be had.
    machine: Option<Machine>,
    stage: Stage,
}

/// Whether it is known how a feed stands.
#[derive(Debug)]
enum Stage {
    /// It is not: what it hears says nothing.
    Unknown,
    /// It is being told.
    Telling {
        /// What connections have said that was not whole.
        pending: Vec<(u32, Vec<u8>)>,
        /// What was heard meanwhile, with its time.
        held: Vec<(u64, Vec<u8>)>,
        held_bytes: usize,
    },
    Known,
    /// The recording of it ended; the rows stay as they were.
    Ended,
}

impl Replay {
    /// No feed yet.
    pub fn new(limits: ReplayLimits) -> Self {
        Self {
            limits,
            feeds: Vec::new(),
            numbers: BTreeMap::new(),
            unpublished: 0,
        }
    }

    /// A file of the recording begins. `goes_on`: it is the part after the
    /// last one; else something is missing before it.
    pub fn begin(&mut self, goes_on: bool) {
        self.numbers.clear();
        if !goes_on {
            self.feeds.iter_mut().for_each(Replayed::gap);
        }
    }

    /// A feed is recorded under a number from here on, its rows beside those
    /// that `feeders` leads to. One that was there before goes on.
    pub fn feed(&mut self, number: u32, feeders: Feeders, said: &[u8]) -> Result<(), BadHeard> {
        let declaration = Declaration::read(said)?;
        let mut known = self.feeds.iter();
        let known = known.position(|one| one.declaration.name == declaration.name);
        let at = known.unwrap_or(self.feeds.len());
        match self.feeds.get_mut(at) {
            Some(feed) => feed.again(declaration, feeders),
            None if at >= MAX_FEEDS => return Ok(()),
            None => self.feeds.push(Replayed {
                machine: Machine::new(&declaration, &feeders, self.limits),
                declaration,
                feeders,
                stage: Stage::Unknown,
            }),
        }
        self.numbers.insert(number, at);
        Ok(())
    }

    /// What a feed heard.
    pub fn heard(&mut self, number: u32, at_micros: u64, payload: &[u8]) -> Result<(), BadHeard> {
        let heard = Heard::read(payload)?;
        let Some(feed) = self.of(number) else {
            return Ok(());
        };
        feed.heard(heard, at_micros, payload)?;
        self.unpublished += 1;
        if self.unpublished >= BATCH {
            self.publish();
        }
        Ok(())
    }

    /// How a feed stands begins to be told, or was told whole.
    pub fn state(&mut self, number: u32, is_whole: bool) -> Result<(), BadHeard> {
        let limits = self.limits;
        match self.of(number) {
            Some(feed) if is_whole => feed.told(),
            Some(feed) => {
                feed.begin(limits);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records of a number are missing here.
    pub fn gap(&mut self, number: u32) {
        if let Some(feed) = self.of(number) {
            feed.gap();
        }
    }

    /// A feed ended. Its rows stay as they were.
    pub fn ended(&mut self, number: u32) {
        if let Some(feed) = self.of(number)
            && matches!(feed.stage, Stage::Known)
        {
            feed.stage = Stage::Ended;
        }
        self.numbers.remove(&number);
    }

    /// Feeds of which it is not known how they stand.
    pub fn incomplete(&self) -> usize {
        let is_unknown = |one: &&Replayed| !matches!(one.stage, Stage::Known | Stage::Ended);
        self.feeds.iter().filter(is_unknown).count()
    }

    /// Lets readers see what came of the records so far.
    pub fn publish(&mut self) {
        self.unpublished = 0;
        for machine in self.feeds.iter_mut().filter_map(|one| one.machine.as_mut()) {
            machine.publish();
        }
    }

    fn of(&mut self, number: u32) -> Option<&mut Replayed> {
        let at = self.numbers.get(&number)?;
        self.feeds.get_mut(*at)
    }
}

impl Replayed {
    /// A feed of its name is recorded again: in another part, or by a later
    /// run, where it may be another.
    fn again(&mut self, declaration: Declaration, feeders: Feeders) {
        if declaration.kind != self.declaration.kind {
            self.machine = None;
            self.stage = Stage::Unknown;
        }
        if matches!(self.stage, Stage::Ended) {
            self.stage = Stage::Unknown;
        }
        (self.declaration, self.feeders) = (declaration, feeders);
    }

    fn heard(&mut self, heard: Heard<'_>, at_micros: u64, payload: &[u8]) -> Result<(), BadHeard> {
        let now = heard.now(at_micros);
        let Some(machine) = &mut self.machine else {
            return Ok(());
        };
        match &mut self.stage {
            Stage::Known if !heard.is_state => machine.take(heard.connection, heard.what, now),
            Stage::Telling { pending, .. } if heard.is_state => match heard.what {
                What::Pending(bytes) => {
                    pending.push((heard.connection, bytes.to_vec()));
                    Ok(())
                }
                what => machine.take(heard.connection, what, now),
            },
            Stage::Telling {
                held, held_bytes, ..
            } => {
                *held_bytes += payload.len();
                held.push((at_micros, payload.to_vec()));
                if *held_bytes > HELD_BYTES {
                    self.gap();
                }
                Ok(())
            }
            Stage::Known | Stage::Unknown | Stage::Ended => Ok(()),
        }
    }

    /// How it stands begins to be told: who knows it already goes on.
    fn begin(&mut self, limits: ReplayLimits) {
        if matches!(self.stage, Stage::Known) {
            return;
        }
        // Its rows leave first: a name is one feeder's.
        self.machine = None;
        self.machine = Machine::new(&self.declaration, &self.feeders, limits);
        self.stage = Stage::Telling {
            pending: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
        };
    }

    /// It was told whole.
    fn told(&mut self) -> Result<(), BadHeard> {
        if !matches!(self.stage, Stage::Telling { .. }) {
            return Ok(());
        }
        let Stage::Telling { pending, held, .. } = std::mem::replace(&mut self.stage, Stage::Known)
        else {
            return Ok(());
        };
        let Some(machine) = &mut self.machine else {
            return Ok(());
        };
        for (connection, bytes) in pending {
            machine.pending(connection, &bytes);
        }
        for (at_micros, payload) in held {
            let heard = Heard::read(&payload)?;
            machine.take(heard.connection, heard.what, heard.now(at_micros))?;
        }
        Ok(())
    }

    /// Something is missing: what it hears from here on says nothing. The
    /// rows stay, and say why they may not be so any more.
    fn gap(&mut self) {
        if matches!(self.stage, Stage::Ended) {
            return;
        }
        self.stage = Stage::Unknown;
        if let Some(machine) = &mut self.machine {
            machine.gap();
        }
    }
}
