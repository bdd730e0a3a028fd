//! What happened before a time, for SQL's `events`: the segments of the
//! history one behind the other, from the last that knows how it was when it
//! begins. What changed is had as a mirror has it, by replaying; it is never
//! all held.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linux::recording::history::{self, Segment};
use query::{Earlier, EarlierBatch, EarlierEvents};
use table::{Events, Generation, Limits, Source, Tables};

use super::super::files::{self, Files, Opened};
use super::super::playing::{End, Recorded};
use super::super::until::Until;
use super::{Sought, time};

/// Records between two times that who waits may look whether it still does.
const BETWEEN_LOOKS: usize = 4_096;

/// A history up to a time.
pub struct Before {
    pub directory: PathBuf,
    pub limits: Limits,
    pub sought: Sought,
    pub at_micros: u64,
    /// What was found to be missing.
    pub lacks: Arc<Mutex<Lacks>>,
}

/// What a history does not know of what was asked for.
#[derive(Debug, Default, Clone)]
pub struct Lacks {
    /// It begins after the time from which on it is asked about,
    /// microseconds since the UNIX epoch.
    begins_micros: Option<u64>,
    /// So often nothing was kept for a while, or something was lost.
    gaps: u64,
    /// Files that cannot be read to their end.
    damaged: Option<String>,
}

impl Lacks {
    /// In words.
    pub fn in_words(&self) -> Option<String> {
        let begins = self
            .begins_micros
            .map(|at| format!("it begins at {}", time(at)));
        let times = match self.gaps {
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let gaps = (self.gaps > 0).then(|| format!("{times} nothing was kept for a while"));
        let damaged = self.damaged.as_ref();
        let damaged = damaged.map(|file| format!("a file is cut off or damaged ({file})"));
        let all: Vec<String> = [begins, gaps, damaged].into_iter().flatten().collect();
        (!all.is_empty())
            .then(|| format!("`events` may lack some of the history: {}", all.join("; ")))
    }
}

impl Earlier for Before {
    fn between(&self, from_millis: u64, until_millis: u64) -> EarlierEvents {
        let until_micros = until_millis.saturating_mul(1_000).saturating_add(999);
        let walk = Walk {
            directory: self.directory.clone(),
            limits: self.limits,
            sought: self.sought.clone(),
            from_micros: from_millis.saturating_mul(1_000),
            until_micros: until_micros.min(self.at_micros),
            lacks: Arc::clone(&self.lacks),
            replay: None,
            found: VecDeque::new(),
            is_over: from_millis > until_millis,
        };
        Box::new(walk)
    }
}

/// A way through a history.
struct Walk {
    directory: PathBuf,
    limits: Limits,
    sought: Sought,
    from_micros: u64,
    until_micros: u64,
    lacks: Arc<Mutex<Lacks>>,
    replay: Option<Replay>,
    found: VecDeque<EarlierBatch>,
    is_over: bool,
}

/// Segments that are replayed one behind the other.
struct Replay {
    playing: Recorded,
    /// Those that were not begun.
    segments: VecDeque<Segment>,
    followed: Vec<Followed>,
    /// The one before the first, where there is one.
    before: Option<Segment>,
    /// Gaps before the time from which on it is asked about.
    gaps_before: Option<u64>,
}

/// Tables of the namespace that is asked about.
struct Followed {
    source: Arc<dyn Source>,
    /// What was told of it; `None`: it is not whole yet.
    seen: Option<Generation>,
}

impl Iterator for Walk {
    type Item = Result<EarlierBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut records = 0;
        loop {
            if let Some(batch) = self.found.pop_front() {
                return Some(Ok(batch));
            }
            if self.is_over {
                return None;
            }
            records += 1;
            if records > BETWEEN_LOOKS {
                return Some(Ok(nothing()));
            }
            if let Err(error) = self.advance() {
                self.is_over = true;
                return Some(Err(format!("the history: {error:#}")));
            }
        }
    }
}

/// A batch for who looks at the time between two.
fn nothing() -> EarlierBatch {
    EarlierBatch {
        at_millis: 0,
        events: Arc::from([]),
        tables: Arc::default(),
    }
}

impl Walk {
    /// Replays one record, or begins the next segment.
    fn advance(&mut self) -> Result<()> {
        let Some(mut replay) = self.replay.take() else {
            self.replay = Some(self.begin(None)?);
            return Ok(());
        };
        let end = replay.playing.advance();
        if replay.gaps_before.is_none() && replay.newest() >= self.from_micros {
            replay.gaps_before = Some(replay.playing.progress().gaps);
        }
        replay.follow(&self.sought);
        if let Some(before) = self.is_late(&replay) {
            self.replay = Some(self.begin(Some(before))?);
            return Ok(());
        }
        self.take(&mut replay);
        match end {
            None => {}
            Some(End::Damaged(place)) => {
                self.lack(|lacks| lacks.damaged = Some(place.clone()));
                replay.playing.pass_over();
                self.is_over = !self.add_next(&mut replay)?;
            }
            // At the time, or at the end of what was opened.
            Some(_) if replay.playing.has_files() => self.is_over = true,
            Some(_) => self.is_over = !self.add_next(&mut replay)?,
        }
        if self.is_over {
            self.end(&replay);
        }
        self.replay = Some(replay);
        Ok(())
    }

    /// Begins with the last segment that was begun before the time, or with
    /// the one before that, where it did not know how it was then.
    fn begin(&self, with: Option<Segment>) -> Result<Replay> {
        let mut segments = segments(&self.directory)?;
        segments.retain(|one| one.begun_micros <= self.until_micros);
        let first = match &with {
            Some(with) => segments
                .iter()
                .position(|one| one.sequence >= with.sequence),
            None => segments
                .iter()
                .rposition(|one| one.begun_micros <= self.from_micros),
        };
        let first = first.unwrap_or(0);
        let before = first.checked_sub(1).filter(|_| with.is_none());
        let before = before.and_then(|before| segments.get(before).cloned());
        let mut replay = Replay {
            playing: Recorded::new(Vec::new(), self.limits, Some(Until::At(self.until_micros))),
            segments: segments.into_iter().skip(first).collect(),
            followed: Vec::new(),
            before,
            gaps_before: None,
        };
        self.add_next(&mut replay)?;
        Ok(replay)
    }

    /// The segment before the first, where that was not whole at the time
    /// from which on it is asked about.
    fn is_late(&self, replay: &Replay) -> Option<Segment> {
        let was_told = replay.followed.iter().any(|one| one.seen.is_some());
        let is_late = !was_told && replay.newest() > self.from_micros;
        replay.before.clone().filter(|_| is_late)
    }

    /// Opens the next segment; whether there was one.
    fn add_next(&self, replay: &mut Replay) -> Result<bool> {
        while let Some(next) = replay.segments.pop_front() {
            if let Some(opened) = open(&self.directory, &next)? {
                replay.playing.add(opened);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes what happened since, in the time that is asked about.
    fn take(&mut self, replay: &mut Replay) {
        let newest = replay.newest();
        for one in &mut replay.followed {
            let reader = one.source.reader();
            let tables = reader.snapshot();
            let Some(seen) = one.seen else {
                self.begin_following(one, &tables, newest);
                continue;
            };
            if tables.generation == seen {
                continue;
            }
            one.seen = Some(tables.generation);
            let Events::Batches(batches) = reader.events_after(seen, Duration::ZERO) else {
                self.lack(|lacks| lacks.gaps += 1);
                continue;
            };
            for batch in batches {
                let at_micros = batch.at_millis.saturating_mul(1_000);
                if (self.from_micros..=self.until_micros).contains(&at_micros) {
                    self.found.push_back(EarlierBatch {
                        at_millis: batch.at_millis,
                        events: batch.events,
                        tables: Arc::clone(&tables),
                    });
                }
            }
        }
    }

    /// Events count from where tables are whole; the rows that they have then
    /// are none.
    fn begin_following(&self, one: &mut Followed, tables: &Tables, newest: u64) {
        if one.source.incomplete().is_some() {
            return;
        }
        one.seen = Some(tables.generation);
        if self.from_micros > 0 && newest > self.from_micros {
            self.lack(|lacks| lacks.begins_micros = Some(newest));
        }
    }

    /// Notes what was missing.
    fn end(&self, replay: &Replay) {
        let before = replay.gaps_before.unwrap_or(u64::MAX);
        let gaps = replay.playing.progress().gaps.saturating_sub(before);
        let newest = replay.newest();
        let was_whole = replay.followed.iter().any(|one| one.seen.is_some());
        self.lack(|lacks| {
            lacks.gaps = lacks.gaps.max(gaps);
            if !was_whole && self.from_micros > 0 {
                lacks.begins_micros = Some(newest);
            }
        });
    }

    fn lack(&self, note: impl FnOnce(&mut Lacks)) {
        note(&mut self.lacks.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Replay {
    fn newest(&self) -> u64 {
        self.playing.progress().newest_micros
    }

    /// Follows the tables that have come and are meant.
    fn follow(&mut self, sought: &Sought) {
        for found in self.playing.take_new() {
            if sought.is(&found.name, found.inode) {
                self.followed.push(Followed {
                    source: found.source,
                    seen: None,
                });
            }
        }
    }
}

fn segments(directory: &Path) -> Result<Vec<Segment>> {
    history::segments(directory).with_context(|| directory.display().to_string())
}

/// Opens a segment, under the name that it has by now; `None`: it has gone.
fn open(directory: &Path, segment: &Segment) -> Result<Option<Opened>> {
    let is_gone = |error: &anyhow::Error| {
        let cause = error.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let opened = match files::open(std::slice::from_ref(&segment.path)) {
        Err(error) if is_gone(&error) => {
            // It was packed meanwhile, or was the oldest.
            let now = segments(directory)?;
            match now.into_iter().find(|one| one.sequence == segment.sequence) {
                Some(now) => files::open(&[now.path])?,
                None => return Ok(None),
            }
        }
        opened => opened?,
    };
    match opened {
        Files::Recorded(mut files) => Ok(files.pop()),
        Files::Mrt(_) => bail!("{}: no segment of a history", segment.path.display()),
    }
}
