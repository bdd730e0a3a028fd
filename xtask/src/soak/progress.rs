//! How far a soak is: a bar on a terminal, else a line now and then, and the
//! sum of all at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::lab::soak::{Outcome, Tally};

use crate::host::say;

/// Places of the bar.
const WIDTH: u64 = 40;
/// Without a terminal a line comes after so many seeds.
const LINE_EACH: u64 = 10;

/// What came of the seeds so far.
pub(super) struct Progress {
    all: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    /// Passed only when listed a second time.
    late: u64,
    resyncs: u64,
    tally: Tally,
}

impl Progress {
    pub(super) fn new(all: u64) -> Self {
        Self {
            all,
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn passed(&self, outcome: &Outcome) {
        let mut counts = self.counts();
        counts.passed += 1;
        counts.late += u64::from(outcome.looks > 1);
        counts.resyncs += outcome.resyncs;
        counts.tally.add(&outcome.tally);
        self.draw(&counts);
    }

    /// Counts a failure, and says what failed.
    pub(super) fn failed_with(&self, text: &str) {
        let mut counts = self.counts();
        counts.failed += 1;
        clear();
        say(text);
        self.draw(&counts);
    }

    pub(super) fn failed(&self) -> u64 {
        self.counts().failed
    }

    fn draw(&self, counts: &Counts) {
        let mut screen = io::stdout();
        let done = counts.passed + counts.failed;
        if !screen.is_terminal() {
            if done.is_multiple_of(LINE_EACH) {
                say(format_args!(
                    "{done} of {}, {} failed",
                    self.all, counts.failed
                ));
            }
            return;
        }
        let filled = WIDTH * done / self.all.max(1);
        let bar: String = (0..WIDTH)
            .map(|at| if at < filled { '#' } else { '.' })
            .collect();
        // A terminal that is gone is no reason to stop.
        let _ = write!(
            screen,
            "\r[{bar}] {done} of {}, {} failed ",
            self.all, counts.failed
        );
        let _ = screen.flush();
    }

    /// All: what was changed, and in the last line what came of it.
    pub(super) fn summary(&self, took: Duration) -> String {
        clear();
        let counts = self.counts();
        format!(
            "changes that the kernel took: {}\n\
             soak: {} seeds passed, {} failed, in {} s; {} were equal at the first look, \
             {} listings after a loss; kernel {}",
            counts.tally,
            counts.passed,
            counts.failed,
            took.as_secs(),
            counts.passed - counts.late,
            counts.resyncs,
            kernel(),
        )
    }
}

/// Clears the line of the bar.
fn clear() {
    let mut screen = io::stdout();
    if screen.is_terminal() {
        let _ = write!(screen, "\r\x1b[K");
    }
}

/// Which kernel runs.
fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}
