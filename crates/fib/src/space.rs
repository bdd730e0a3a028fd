//! Which units of the arena are free: plain bookkeeping beside the memory
//! it speaks of, for the writer alone.
//!
//! The arena is counted in units of 16 bytes, four to a cache line. What
//! takes at most a line lies in one; what takes more starts at one, and the
//! units left in its last line serve small ones. Lines that are free beside
//! one another are one run, found by its first and its last.

/// Units of a line.
const LINE: u32 = 4;
/// Lists of free runs: of 1 to 31 lines, then one for each power of two.
const RUN_LISTS: usize = 31 + 27;
/// No line.
const NONE: u32 = u32::MAX;
/// A line with all units free.
const FREE: u8 = 0xf;

/// A line as the bookkeeping sees it.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Neighbours in the list of its like.
    previous: u32,
    next: u32,
    /// At the first and last line of a free run: its lines.
    run: u32,
    /// A bit for each free unit.
    free: u8,
}

/// The free units of an arena.
#[derive(Debug)]
pub(crate) struct Space {
    lines: Vec<Line>,
    max_lines: u32,
    /// Heads: lines by their free units, 1 to 14.
    partial: [u32; 16],
    /// Heads: runs by their lines.
    runs: [u32; RUN_LISTS],
    /// Which of `runs` have any.
    has_runs: u64,
    free_units: u32,
}

impl Space {
    /// An arena of lines, all free.
    pub fn new(max_lines: u32) -> Self {
        Self {
            lines: Vec::new(),
            max_lines: max_lines.min(NONE / LINE),
            partial: [NONE; 16],
            runs: [NONE; RUN_LISTS],
            has_runs: 0,
            free_units: 0,
        }
    }

    /// Units from the first to the last that was ever taken.
    pub fn spread_units(&self) -> u32 {
        self.lines.len() as u32 * LINE
    }

    /// Units that are free among those.
    pub fn free_units(&self) -> u32 {
        self.free_units
    }

    /// Takes units beside one another; `None` where no such place is left.
    /// O(1), but for a first time of lines.
    pub fn take(&mut self, units: u32) -> Option<u32> {
        if units < LINE
            && let Some(at) = self.take_partial(units)
        {
            return Some(at);
        }
        let lines = units.div_ceil(LINE);
        let first = self.take_run(lines).or_else(|| self.extend(lines))?;
        let left = lines * LINE - units;
        self.free_units -= units;
        if left > 0 {
            let last = first + lines - 1;
            // The last units of the last line.
            self.list(last, (FREE << (LINE - left)) & FREE);
        }
        Some(first * LINE)
    }

    /// Gives back what `take` gave.
    pub fn give(&mut self, at: u32, units: u32) {
        self.free_units += units;
        let first = at / LINE;
        let (whole, rest) = (units / LINE, units % LINE);
        if rest > 0 {
            let line = first + whole;
            let bits = (((1 << rest) - 1) << (at % LINE)) as u8;
            let free = self.lines[line as usize].free;
            if free != 0 {
                self.unlist(line);
            }
            self.lines[line as usize].free = free | bits;
            match free | bits {
                FREE => self.give_run(line, 1),
                some => self.list(line, some),
            }
        }
        if whole > 0 {
            self.give_run(first, whole);
        }
    }

    fn take_partial(&mut self, units: u32) -> Option<u32> {
        // Tightest first: free units in the lists of one's own size, then
        // of larger ones.
        const ORDER: [&[(u8, u8)]; 4] = [
            &[],
            &[
                (0b0001, 0),
                (0b0010, 1),
                (0b0100, 2),
                (0b1000, 3),
                (0b0101, 0),
                (0b1001, 0),
                (0b1010, 1),
                (0b1011, 3),
                (0b1101, 0),
                (0b0011, 0),
                (0b0110, 1),
                (0b1100, 2),
                (0b0111, 0),
                (0b1110, 1),
            ],
            &[
                (0b0011, 0),
                (0b0110, 1),
                (0b1100, 2),
                (0b1011, 0),
                (0b1101, 2),
                (0b0111, 0),
                (0b1110, 1),
            ],
            &[(0b0111, 0), (0b1110, 1)],
        ];
        let order = ORDER[units as usize];
        let found = order
            .iter()
            .find(|(free, _)| self.partial[usize::from(*free)] != NONE);
        let (free, first) = *found?;
        let line = self.partial[usize::from(free)];
        self.unlist(line);
        let taken = ((1_u8 << units) - 1) << first;
        self.list(line, free & !taken);
        self.free_units -= units;
        Some(line * LINE + u32::from(first))
    }

    /// Takes a run of lines out of the free ones; they count as free units
    /// until the caller takes them.
    fn take_run(&mut self, lines: u32) -> Option<u32> {
        let first = self.find_run(lines)?;
        let run = self.lines[first as usize].run;
        self.unlist_run(first);
        if run > lines {
            self.list_run(first + lines, run - lines);
        }
        for line in first..first + lines {
            self.lines[line as usize].free = 0;
        }
        Some(first)
    }

    fn find_run(&self, lines: u32) -> Option<u32> {
        // In the list of its own power of two a run may be too short.
        let list = run_list(lines);
        let exact = list < 31;
        let above = if exact { list } else { list + 1 };
        let lists = self.has_runs & (u64::MAX.checked_shl(above as u32).unwrap_or(0));
        if lists != 0 {
            return Some(self.runs[lists.trailing_zeros() as usize]);
        }
        if exact {
            return None;
        }
        let mut at = self.runs[list];
        while at != NONE && self.lines[at as usize].run < lines {
            at = self.lines[at as usize].next;
        }
        (at != NONE).then_some(at)
    }

    /// Lines that were never used.
    fn extend(&mut self, lines: u32) -> Option<u32> {
        let first = self.lines.len() as u32;
        if self.max_lines - first < lines {
            return None;
        }
        let line = Line {
            previous: NONE,
            next: NONE,
            run: 0,
            free: 0,
        };
        self.lines.resize((first + lines) as usize, line);
        self.free_units += lines * LINE;
        Some(first)
    }

    fn give_run(&mut self, first: u32, lines: u32) {
        let (mut first, mut lines) = (first, lines);
        for line in first..first + lines {
            self.lines[line as usize].free = FREE;
        }
        let is_free = |line: Option<&Line>| line.is_some_and(|line| line.free == FREE);
        let after = first + lines;
        if is_free(self.lines.get(after as usize)) {
            lines += self.lines[after as usize].run;
            self.unlist_run(after);
        }
        if first > 0 && is_free(self.lines.get(first as usize - 1)) {
            let run = self.lines[first as usize - 1].run;
            first -= run;
            lines += run;
            self.unlist_run(first);
        }
        self.list_run(first, lines);
    }

    fn list_run(&mut self, first: u32, lines: u32) {
        let list = run_list(lines);
        self.lines[first as usize].run = lines;
        self.lines[(first + lines - 1) as usize].run = lines;
        let head = self.runs[list];
        self.link(first, head);
        self.runs[list] = first;
        self.has_runs |= 1 << list;
    }

    fn unlist_run(&mut self, first: u32) {
        let list = run_list(self.lines[first as usize].run);
        if let Some(head) = self.unlink(first) {
            self.runs[list] = head;
            if head == NONE {
                self.has_runs &= !(1 << list);
            }
        }
    }

    fn list(&mut self, line: u32, free: u8) {
        self.lines[line as usize].free = free;
        if free != 0 {
            let head = self.partial[usize::from(free)];
            self.link(line, head);
            self.partial[usize::from(free)] = line;
        }
    }

    fn unlist(&mut self, line: u32) {
        let free = self.lines[line as usize].free;
        if let Some(head) = self.unlink(line) {
            self.partial[usize::from(free)] = head;
        }
    }

    fn link(&mut self, line: u32, head: u32) {
        self.lines[line as usize].previous = NONE;
        self.lines[line as usize].next = head;
        if head != NONE {
            self.lines[head as usize].previous = line;
        }
    }

    /// Takes a line out of its list; the new head, if that has changed.
    fn unlink(&mut self, line: u32) -> Option<u32> {
        let Line { previous, next, .. } = self.lines[line as usize];
        if next != NONE {
            self.lines[next as usize].previous = previous;
        }
        if previous == NONE {
            return Some(next);
        }
        self.lines[previous as usize].next = next;
        None
    }
}

/// The list of runs of some lines, at least one.
fn run_list(lines: u32) -> usize {
    if lines < 32 {
        lines as usize - 1
    } else {
        31 + lines.ilog2() as usize - 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Random;

    #[test]
    fn what_is_taken_overlaps_nothing_and_comes_back_whole() {
        let mut random = Random::new(3);
        let mut space = Space::new(4_000);
        let mut owner = vec![false; 16_000];
        let mut taken: Vec<(u32, u32)> = Vec::new();
        for step in 0..60_000 {
            let grows = random.below(100) < if step / 10_000 % 2 == 0 { 60 } else { 40 };
            if grows {
                let units = match random.below(20) {
                    0 => 1 + random.below(400),
                    1..4 => 5 + random.below(20),
                    _ => 1 + random.below(4),
                } as u32;
                let Some(at) = space.take(units) else {
                    continue;
                };
                if units <= LINE {
                    assert_eq!(at / LINE, (at + units - 1) / LINE, "crosses a line");
                } else {
                    assert_eq!(at % LINE, 0);
                }
                for unit in at..at + units {
                    assert!(!std::mem::replace(&mut owner[unit as usize], true));
                }
                taken.push((at, units));
            } else if !taken.is_empty() {
                let (at, units) = taken.swap_remove(random.below(taken.len()));
                owner[at as usize..(at + units) as usize].fill(false);
                space.give(at, units);
            }
            let used: u32 = taken.iter().map(|(_, units)| units).sum();
            if step % 1_000 == 0 {
                assert_eq!(space.spread_units() - space.free_units(), used);
            }
        }
        for (at, units) in taken {
            space.give(at, units);
        }
        // One run again: all of it can be taken at once.
        let all = space.spread_units();
        assert_eq!(space.free_units(), all);
        assert_eq!(space.take(all), Some(0));
    }

    #[test]
    fn at_its_limit_it_says_so_and_what_is_given_is_found() {
        let mut space = Space::new(2);
        assert_eq!(space.take(8), Some(0));
        assert_eq!(space.take(1), None);
        space.give(0, 8);
        assert_eq!(space.take(9), None);
        assert_eq!(space.take(5), Some(0));
        assert_eq!(space.take(3), Some(5));
    }
}
