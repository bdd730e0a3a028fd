//! Records out of files into the machines: at speed, or each at its time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use feed::recording::{Replay, ReplayLimits};
use linux::recording::format::kind;
use linux::recording::{Input, Player, Progress, Record};
use table::Limits;

use super::{BETWEEN_LOOKS, End, Found};
use crate::replay::files::Opened;
use crate::replay::until::Until;

/// A replay under way.
pub struct Recorded {
    files: VecDeque<Opened>,
    player: Player,
    /// The feeds beside the namespaces.
    feeds: Replay,
    until: Option<Until>,
    /// The file being read has begun.
    has_begun: bool,
    /// A record whose time has not come.
    held: Option<Held>,
    /// When the first record was replayed, of those that have their time.
    began: Option<Instant>,
    /// Kind and namespace of the record behind the end that was wanted.
    beyond: Option<(u16, u32)>,
}

/// How far a history is known behind the end that was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What came until then stands before it.
    Known,
    /// Events of about then were lost.
    Lost,
    /// Nothing is known from the last record on.
    Ends,
}

struct Held {
    kind: u16,
    namespace: u32,
    at_micros: u64,
    payload: Vec<u8>,
}

/// What comes next.
enum Step {
    /// A record was replayed.
    Taken,
    /// The next is not due for so long.
    Wait(Duration),
    End(End),
}

impl Recorded {
    /// At the beginning of the files, which are in their order.
    pub fn new(files: Vec<Opened>, rows: Limits, until: Option<Until>) -> Self {
        Self {
            files: files.into(),
            player: Player::new(rows),
            feeds: Replay::new(ReplayLimits { rows }),
            until,
            has_begun: false,
            held: None,
            began: None,
            beyond: None,
        }
    }

    /// How far a history is known of a namespace, behind the end that was
    /// wanted: reads until a record says that. Nothing is replayed any more.
    pub fn reaches(&mut self, inode: u64, name: &str) -> Reach {
        let number = self.player.number_of(inode, name);
        while let Some((kind, namespace)) = self.beyond.take() {
            match kind {
                kind::ALIVE => return Reach::Known,
                // A part's beginning names all, whatever was lost.
                kind::NAMESPACE => {}
                _ if Some(namespace) != number => {}
                kind::GAP | kind::OVERRUN => return Reach::Lost,
                _ => return Reach::Known,
            }
            self.beyond = self.next_beyond();
        }
        Reach::Ends
    }

    /// The next record, of this file or of one that goes on with it.
    fn next_beyond(&mut self) -> Option<(u16, u32)> {
        loop {
            let file = self.files.front_mut()?;
            let head = file.reader.head();
            if let Some(record) = file.reader.next_record().ok()? {
                return Some((record.kind, record.namespace));
            }
            self.files.pop_front();
            let next = self.files.front()?.reader.head();
            let goes_on = next.run_micros == head.run_micros && next.part == head.part + 1;
            if !goes_on {
                return None;
            }
        }
    }

    /// Goes on with a file behind the others.
    pub fn add(&mut self, file: Opened) {
        self.files.push_back(file);
    }

    /// Whether there is a file that was not read to its end.
    pub fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Leaves the rest of a file, which cannot be read.
    pub fn pass_over(&mut self) {
        self.files.pop_front();
        self.has_begun = false;
    }

    /// Replays one record, whose changes readers see by themselves then; how
    /// it ended, if it did.
    pub fn advance(&mut self) -> Option<End> {
        let step = self.step(false);
        self.publish();
        match step {
            Step::Taken | Step::Wait(_) => None,
            Step::End(end) => Some(end),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.player.progress()
    }

    /// Namespaces whose tables are not whole.
    pub fn incomplete(&self) -> usize {
        self.player.incomplete()
    }

    /// Feeds of which the recording does not say how they stood.
    pub fn incomplete_feeds(&self) -> usize {
        self.feeds.incomplete()
    }

    /// The namespaces that came since this was last called.
    pub fn take_new(&mut self) -> Vec<Found> {
        let new = self.player.take_new().into_iter();
        let found = new.map(|(name, replayed)| Found {
            name,
            inode: replayed.inode(),
            source: Arc::new(replayed),
        });
        found.collect()
    }

    /// Replays everything at once, unless `ended` says so now and then.
    pub fn finish(&mut self, ended: &mut dyn FnMut() -> bool) -> End {
        let mut taken = 0_u64;
        let end = loop {
            match self.step(false) {
                Step::Taken => {}
                Step::Wait(_) => continue,
                Step::End(end) => break end,
            }
            taken += 1;
            if taken.is_multiple_of(BETWEEN_LOOKS) && ended() {
                break End::BrokenOff;
            }
        };
        self.publish();
        end
    }

    /// Replays what is due by now; how long until the next record, or how
    /// it ended.
    pub fn due(&mut self) -> Result<Duration, End> {
        for _ in 0..BETWEEN_LOOKS {
            match self.step(true) {
                Step::Taken => {}
                Step::Wait(time) => {
                    self.pass_time();
                    self.publish();
                    return Ok(time);
                }
                Step::End(end) => {
                    self.publish();
                    return Err(end);
                }
            }
        }
        Ok(Duration::ZERO)
    }

    fn publish(&mut self) {
        self.player.publish();
        self.feeds.publish();
    }

    /// The recording's clock goes on between its records.
    fn pass_time(&mut self) {
        let Some(began) = self.began else { return };
        let passed = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let first = self.player.progress().first_micros;
        self.player.reach(first.saturating_add(passed));
    }

    fn step(&mut self, in_time: bool) -> Step {
        if let Some(held) = self.held.take() {
            let record = Record {
                kind: held.kind,
                namespace: held.namespace,
                at_micros: held.at_micros,
                payload: &held.payload,
            };
            let wait = wait(&mut self.began, self.player.progress(), record.at_micros);
            if in_time && !wait.is_zero() {
                self.held = Some(held);
                return Step::Wait(wait);
            }
            return match take(&mut self.player, &mut self.feeds, &record) {
                Ok(()) => Step::Taken,
                Err(bad) => self.damaged(&bad),
            };
        }
        let Some(file) = self.files.front_mut() else {
            return Step::End(End::Whole);
        };
        if !self.has_begun {
            self.has_begun = true;
            let goes_on = self.player.begin(file.reader.head());
            self.feeds.begin(goes_on);
        }
        let (number, offset) = (file.reader.records(), file.reader.bytes());
        let record = match file.reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => {
                self.files.pop_front();
                self.has_begun = false;
                return Step::Taken;
            }
            Err(bad) => return self.damaged(&bad.to_string()),
        };
        let progress = self.player.progress();
        if let Some(end) = self.until.map(|until| until.micros(progress))
            && record.at_micros > end
        {
            self.beyond = Some((record.kind, record.namespace));
            self.player.reach(end);
            return Step::End(End::Whole);
        }
        if in_time && !wait(&mut self.began, progress, record.at_micros).is_zero() {
            self.held = Some(Held {
                kind: record.kind,
                namespace: record.namespace,
                at_micros: record.at_micros,
                payload: record.payload.to_vec(),
            });
            return Step::Taken;
        }
        match take(&mut self.player, &mut self.feeds, &record) {
            Ok(()) => Step::Taken,
            Err(bad) => self.damaged(&format!("record {number}, at byte {offset}: {bad}")),
        }
    }

    fn damaged(&self, what: &str) -> Step {
        let file = self.files.front().map(|file| file.path.clone());
        let path: PathBuf = file.unwrap_or_default();
        Step::End(End::Damaged(format!("{}: {what}", path.display())))
    }
}

/// Feeds a record in; why it makes no sense.
fn take(player: &mut Player, feeds: &mut Replay, record: &Record<'_>) -> Result<(), String> {
    player.take(record).map_err(|bad| bad.to_string())?;
    let number = record.namespace;
    let taken = match record.input().map_err(|bad| bad.to_string())? {
        Input::Feed { beside, said } => match player.feeders(beside) {
            Some(feeders) => feeds.feed(number, feeders, said),
            // Its namespace was lost in a gap.
            None => Ok(()),
        },
        Input::FeedHeard(payload) => {
            // What goes when all was told depends on the links there are.
            player.publish();
            feeds.heard(number, record.at_micros, payload)
        }
        Input::FeedState { is_whole } => {
            player.publish();
            feeds.state(number, is_whole)
        }
        Input::Gap { .. } => {
            feeds.gap(number);
            Ok(())
        }
        Input::Ended(_) => {
            feeds.ended(number);
            Ok(())
        }
        _ => Ok(()),
    };
    taken.map_err(|bad| bad.to_string())
}

impl Until {
    /// As the recording counts.
    fn micros(self, progress: Progress) -> u64 {
        match self {
            Self::At(micros) => micros,
            Self::After(_) if progress.records == 0 => u64::MAX,
            Self::After(micros) => progress.first_micros.saturating_add(micros),
        }
    }
}

/// How long until a record's time comes, the first being due at once.
fn wait(began: &mut Option<Instant>, progress: Progress, at_micros: u64) -> Duration {
    let began = began.get_or_insert_with(Instant::now);
    if progress.records == 0 {
        return Duration::ZERO;
    }
    let after = Duration::from_micros(at_micros.saturating_sub(progress.first_micros));
    after.saturating_sub(began.elapsed())
}
