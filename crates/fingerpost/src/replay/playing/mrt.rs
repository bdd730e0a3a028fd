//! A collector's files into tables.

use std::collections::VecDeque;

use bgp::Rib;
use linux::recording::Progress;
use table::Limits;

use super::{BETWEEN_LOOKS, End, Found};
use crate::replay::files::OpenedMrt;
use crate::replay::until::Until;

/// Files being taken in.
pub struct Mrt {
    files: VecDeque<OpenedMrt>,
    rib: Rib,
    until: Option<Until>,
    /// The first thing that could not be read.
    bad: Option<String>,
    is_taken: bool,
}

/// What a record led to.
enum Step {
    Taken,
    Ended,
}

impl Mrt {
    /// At the beginning of the files, which are in their order.
    pub fn new(files: Vec<OpenedMrt>, limits: Limits, until: Option<Until>) -> Self {
        Self {
            files: files.into(),
            rib: Rib::new(limits),
            until,
            bad: None,
            is_taken: false,
        }
    }

    /// What was taken in.
    pub fn into_rib(self) -> Rib {
        self.rib
    }

    pub fn progress(&self) -> Progress {
        let counts = self.rib.counts();
        Progress {
            records: counts.records,
            messages: counts.paths + counts.withdrawn,
            first_micros: counts.first_micros,
            newest_micros: counts.newest_micros,
            ..Progress::default()
        }
    }

    /// There is one namespace, and it is there at once.
    pub fn take_new(&mut self) -> Vec<Found> {
        if std::mem::replace(&mut self.is_taken, true) {
            return Vec::new();
        }
        vec![Found {
            name: String::new(),
            inode: 0,
            source: std::sync::Arc::new(self.rib.source()),
        }]
    }

    pub fn finish(&mut self, ended: &mut dyn FnMut() -> bool) -> End {
        let mut taken = 0_u64;
        while matches!(self.step(), Step::Taken) {
            taken += 1;
            if taken.is_multiple_of(BETWEEN_LOOKS) && ended() {
                return End::BrokenOff;
            }
        }
        self.rib.publish();
        if let Some(bad) = &self.bad {
            self.rib.misses_rows(bad);
        }
        self.bad.clone().map_or(End::Whole, End::Incomplete)
    }

    /// Takes the next record in. A file that cannot be read further is left
    /// at that, and the next one begins.
    fn step(&mut self) -> Step {
        let Some(file) = self.files.front_mut() else {
            return Step::Ended;
        };
        let reader = match file.reader() {
            Ok(reader) => reader,
            Err(error) => {
                let place = format!("{}: {error}", file.path.display());
                self.bad.get_or_insert(place);
                self.files.pop_front();
                return Step::Taken;
            }
        };
        let (number, offset) = (reader.records(), reader.bytes());
        let (bad, is_over) = match reader.next_record() {
            Ok(Some((header, _))) if is_behind(self.until, &self.rib, header.at_micros) => {
                // Others may have begun later and have less.
                self.files.pop_front();
                return Step::Taken;
            }
            Ok(Some((header, body))) => (
                self.rib
                    .take(&header, body)
                    .err()
                    .map(|bad| bad.to_string()),
                false,
            ),
            Ok(None) => (None, true),
            Err(bad) => (Some(bad.to_string()), true),
        };
        if let Some(bad) = bad {
            let file = file.path.display();
            let place = format!("{file}: record {number}, at byte {offset}: {bad}");
            self.bad.get_or_insert(place);
        }
        if is_over {
            self.files.pop_front();
        }
        Step::Taken
    }
}

/// Whether a record's time is behind what is wanted.
fn is_behind(until: Option<Until>, rib: &Rib, at_micros: u64) -> bool {
    let counts = rib.counts();
    match until {
        None => false,
        Some(Until::At(micros)) => at_micros > micros,
        Some(Until::After(_)) if counts.records == 0 => false,
        Some(Until::After(micros)) => at_micros > counts.first_micros.saturating_add(micros),
    }
}
