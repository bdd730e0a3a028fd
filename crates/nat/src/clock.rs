//! The engine's own time: ticks that never go back, made from the caller's
//! clock, which may step.
//!
//! For the engine.

use crate::{State, Timeouts};

/// A tick is 2^8 milliseconds: short against the second that a timeout may
/// be late, and 32 bits of them last 34 years.
const TICK_BITS: u32 = 8;

/// Where the time of an engine begins, milliseconds: what was used before has
/// a tick as well, 24 days back.
const BEGIN: u64 = 1 << 31;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// What the caller said last.
    said: u64,
    /// Milliseconds that went forward since the start, and [`BEGIN`].
    run: u64,
    /// `run` in ticks.
    tick: u32,
    started: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            // No caller's time: the first is taken whatever it is, 0 too.
            said: u64::MAX,
            run: BEGIN,
            tick: tick_of(BEGIN),
            started: false,
        }
    }
}

impl Clock {
    /// Whether the caller's time is not the one of the last call.
    #[inline(always)]
    pub fn is_other(&self, now_millis: u64) -> bool {
        now_millis != self.said
    }

    /// Takes the caller's time. A step back counts as no
    /// time at all, a step forward as time that passed.
    pub fn set(&mut self, now_millis: u64) {
        if self.started {
            let gone = now_millis.saturating_sub(self.said);
            self.run = self.run.saturating_add(gone);
        }
        self.started = true;
        self.said = now_millis;
        self.tick = tick_of(self.run);
    }

    /// Goes on from so many milliseconds; the caller says that time now.
    pub fn restore(&mut self, run: u64, now_millis: u64) {
        *self = Self {
            run,
            ..Self::default()
        };
        self.set(now_millis);
    }

    /// The tick as of the last call.
    #[inline(always)]
    pub fn now(&self) -> u32 {
        self.tick
    }

    /// The tick of so many milliseconds ago.
    pub fn ago(&self, millis: u64) -> u32 {
        tick_of(self.run.saturating_sub(millis))
    }

    /// Milliseconds that went forward, from some time on.
    pub fn run_millis(&self) -> u64 {
        self.run
    }

    /// The same since the start.
    pub fn lived_millis(&self) -> u64 {
        self.run.saturating_sub(BEGIN)
    }

    /// What the caller said last.
    pub fn said_millis(&self) -> u64 {
        self.said
    }
}

/// The tick of a millisecond. Beyond 34 years it stands still.
fn tick_of(millis: u64) -> u32 {
    u32::try_from(millis >> TICK_BITS).unwrap_or(u32::MAX)
}

/// Ticks as milliseconds.
pub fn millis(ticks: u32) -> u64 {
    u64::from(ticks) << TICK_BITS
}

/// Seconds as ticks, rounded up.
pub fn ticks(secs: u32) -> u32 {
    let ticks = (u64::from(secs) * 1_000).div_ceil(1 << TICK_BITS);
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Timeouts in ticks by the number of a state; rounded up, so that a flow
/// lives its timeout at least and two ticks longer at most.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    classes: [u32; 16],
    /// The most of the states of TCP and UDP that live short.
    short: u32,
}

impl Ticks {
    pub fn new(timeouts: &Timeouts) -> Self {
        let mut ticks = [0; 16];
        for (state, place) in State::ALL.iter().zip(&mut ticks) {
            *place = self::ticks(timeouts.secs(*state));
        }
        let short = State::ALL.iter().zip(ticks);
        let short = short.filter(|(state, _)| state.lives_short());
        let short = short.map(|(_, ticks)| ticks).max().unwrap_or(0);
        Self {
            classes: ticks,
            short,
        }
    }

    /// The longest timeout of the states of TCP and UDP that live short.
    pub fn short(&self) -> u32 {
        self.short
    }

    /// The timeout of a class.
    #[inline(always)]
    pub fn of(&self, class: u8) -> u32 {
        self.classes
            .get(usize::from(class & 0x0f))
            .copied()
            .unwrap_or(0)
    }
}
