//! How busy processors are: `/proc/stat`, and what it said before.

use std::collections::VecDeque;

use table::{Processor, ProcessorTimes};

/// A load is of so long, hundredths of a second.
const MINUTE: u64 = 60 * 100;
/// What is remembered is so far apart at least.
const STEP: u64 = 5 * 100;

/// What each processor did since the machine was started.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) all: ProcessorTimes,
    /// By the processor's number, ascending.
    pub(super) each: Vec<(u32, ProcessorTimes)>,
}

/// `/proc/stat`.
pub(super) fn times(stat: &str) -> Times {
    let mut told = Times::default();
    for line in stat.lines() {
        let Some((name, numbers)) = line.split_once(' ') else {
            continue;
        };
        match name.strip_prefix("cpu").map(str::parse::<u32>) {
            Some(Ok(number)) => told.each.push((number, of_line(numbers))),
            Some(Err(_)) if name == "cpu" => told.all = of_line(numbers),
            _ => {}
        }
    }
    told
}

fn of_line(numbers: &str) -> ProcessorTimes {
    let mut words = numbers.split_ascii_whitespace();
    let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    ProcessorTimes {
        user: next(),
        nice: next(),
        system: next(),
        idle: next(),
        iowait: next(),
        irq: next(),
        softirq: next(),
        steal: next(),
        guest: next(),
        guest_nice: next(),
    }
}

/// The first processor's name in `/proc/cpuinfo`.
pub(super) fn name(cpuinfo: &str) -> Box<str> {
    let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.trim() == "model name");
    found.map_or_else(Box::default, |(_, name)| name.trim().into())
}

/// What the processors had done at some times of the last minute or so.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By uptime, ascending.
    before: VecDeque<(u64, Vec<(u32, ProcessorTimes)>)>,
}

impl History {
    /// The load of each processor: since a minute ago, or since the last
    /// look where that was longer ago, or since the start.
    pub(super) fn loads(
        &mut self,
        uptime_centisecs: u64,
        now: Vec<(u32, ProcessorTimes)>,
    ) -> Vec<Processor> {
        let is_old = |at: u64| at + MINUTE <= uptime_centisecs;
        // Of what is a minute old, the youngest stays.
        while self.before.get(1).is_some_and(|(at, _)| is_old(*at)) {
            self.before.pop_front();
        }
        let first = self.before.front().map(|(_, times)| times.as_slice());
        let loads = now.iter().map(|(number, times)| {
            let before = first.unwrap_or_default().iter();
            let before = before.clone().find(|(of, _)| of == number);
            let before = before.map_or_else(ProcessorTimes::default, |(_, times)| *times);
            Processor {
                number: *number,
                load_percent: percent(before.busy_and_all(), times.busy_and_all()),
            }
        });
        let loads = loads.collect();
        let last = self.before.back().map(|(at, _)| *at);
        if last.is_none_or(|at| at + STEP <= uptime_centisecs) {
            self.before.push_back((uptime_centisecs, now));
        }
        loads
    }
}

fn percent(before: (u64, u64), now: (u64, u64)) -> u8 {
    let busy = now.0.saturating_sub(before.0);
    let all = now.1.saturating_sub(before.1);
    let rounded = (busy * 100 + all / 2).checked_div(all).unwrap_or(0);
    rounded.min(100) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 0 10 60 0 0 0 0 0 0\ncpu0 20 0 5 25 0 0 0 0 0 0\n\
        cpu3 10 0 5 35 0 0 0 0 0 0\nintr 5 1 2\ncpufreq 7\n";

    #[test]
    fn each_processor_is_told_by_its_number() {
        let told = times(STAT);
        assert_eq!(told.all.busy_and_all(), (40, 100));
        let numbers: Vec<_> = told.each.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 3]);
        assert_eq!(times("").each, []);
        assert_eq!(
            &*name("processor : 0\nmodel name\t: Some CPU\n"),
            "Some CPU"
        );
    }

    /// Idle until 100 s, then half of the time busy.
    fn at(uptime_centisecs: u64) -> Vec<(u32, ProcessorTimes)> {
        let busy = uptime_centisecs.saturating_sub(10_000) / 2;
        let times = ProcessorTimes {
            user: busy,
            idle: uptime_centisecs - busy,
            ..ProcessorTimes::default()
        };
        vec![(0, times)]
    }

    #[test]
    fn a_load_is_of_the_last_minute_or_since_the_look_before_it() {
        let mut history = History::default();
        let mut load = |uptime| history.loads(uptime, at(uptime))[0].load_percent;
        assert_eq!(load(10_000), 0, "since the start");
        assert_eq!(load(13_000), 50, "30 s later");
        assert_eq!(load(13_100), 50);
        assert_eq!(load(40_000), 50, "after a pause of minutes");
        for uptime in (40_000..60_000).step_by(100) {
            assert_eq!(load(uptime), 50);
        }
        assert!(history.before.len() < 15, "{}", history.before.len());
    }

    #[test]
    fn a_clock_that_stands_still_is_no_load() {
        assert_eq!(percent((0, 0), (0, 0)), 0);
        assert_eq!(percent((9, 9), (5, 5)), 0);
    }
}
