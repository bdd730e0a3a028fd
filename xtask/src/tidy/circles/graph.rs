//! Files and their arrows: which lean on each other, and by which way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One file names something of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    /// The line in `from` that says so.
    pub line: usize,
}

/// All arrows between the files of a crate.
pub struct Graph {
    /// For each file what it leans on, and the first line that says so.
    leans: Vec<BTreeMap<usize, usize>>,
}

impl Graph {
    pub fn of(files: usize, arrows: Vec<Arrow>) -> Self {
        let mut leans = vec![BTreeMap::new(); files];
        for Arrow { from, to, line } in arrows {
            if from != to {
                let known = leans[from].entry(to).or_insert(line);
                *known = line.min(*known);
            }
        }
        Self { leans }
    }

    /// The groups of two or more files that each lead to all others of theirs.
    pub fn groups(&self) -> Vec<BTreeSet<usize>> {
        let files = 0..self.leans.len();
        let reached: Vec<BTreeSet<usize>> = files.clone().map(|file| self.reached(file)).collect();
        let mut groups: Vec<BTreeSet<usize>> = Vec::new();
        for file in files {
            let is_seen = groups.iter().any(|group| group.contains(&file));
            if is_seen || !reached[file].contains(&file) {
                continue;
            }
            let back = |other: &usize| reached[*other].contains(&file);
            groups.push(reached[file].iter().copied().filter(back).collect());
        }
        groups
    }

    /// The files that a file leads to; itself only by a circle.
    fn reached(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(next) = open.pop() {
            open.extend(self.leans[next].keys().filter(|to| reached.insert(**to)));
        }
        reached
    }

    /// The shortest way from one file to another and back.
    pub fn circle(&self, one: usize, other: usize) -> Vec<Arrow> {
        [self.way(one, other), self.way(other, one)].concat()
    }

    /// The shortest way between two files; none if there is no way.
    fn way(&self, start: usize, end: usize) -> Vec<Arrow> {
        let mut came_by: BTreeMap<usize, Arrow> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(from) = open.pop_front() {
            for (&to, &line) in &self.leans[from] {
                if to != start && !came_by.contains_key(&to) {
                    came_by.insert(to, Arrow { from, to, line });
                    open.push_back(to);
                }
            }
        }
        let mut back = Vec::new();
        let mut at = end;
        while let Some(arrow) = came_by.get(&at) {
            back.push(*arrow);
            at = arrow.from;
        }
        back.reverse();
        back
    }
}
