//! Where a redirect is found: by hash, one probe for each shape in use.

use std::net::Ipv4Addr;

use hashbrown::HashMap;

use super::Tuple;

/// Our address is given (and not "the current alias address").
const OWN: u8 = 4;
/// The remote address is given.
const REMOTE: u8 = 2;
/// The remote port is given.
const REMOTE_PORT: u8 = 1;
/// Shapes there are.
const CLASSES: usize = 8;
/// Sizes of aligned blocks: one port to all of them.
const SIZES: usize = 17;
/// Stands for "all protocols": an address redirect. Not a protocol that
/// rules can name (IPv4 has no hop-by-hop header).
const EVERY_PROTOCOL: u8 = 0;

/// What of a redirect one direction is looked up by.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    class: u8,
    protocol: u8,
    own: u32,
    port: u16,
    remote: u32,
    remote_port: u16,
}

impl Shape {
    pub fn new(
        protocol: Option<u8>,
        own: Option<Ipv4Addr>,
        port: u16,
        remote: Option<Ipv4Addr>,
        remote_port: Option<u16>,
    ) -> Self {
        let bit = |given: bool, bit: u8| if given { bit } else { 0 };
        Self {
            class: bit(own.is_some(), OWN)
                | bit(remote.is_some(), REMOTE)
                | bit(remote_port.is_some(), REMOTE_PORT),
            protocol: protocol.unwrap_or(EVERY_PROTOCOL),
            own: own.map_or(0, u32::from),
            port,
            remote: remote.map_or(0, u32::from),
            remote_port: remote_port.unwrap_or(0),
        }
    }

    fn key(&self, block: u16, size: u32) -> u128 {
        key(
            self.class,
            self.protocol,
            size,
            self.own,
            block,
            self.remote,
            self.remote_port,
        )
    }
}

/// All parts in one number: hashed at once, compared at once.
fn key(
    class: u8,
    protocol: u8,
    size: u32,
    own: u32,
    port: u16,
    remote: u32,
    remote_port: u16,
) -> u128 {
    let head = u32::from(class) << 16 | u32::from(protocol) << 8 | size;
    let ports = u32::from(port) << 16 | u32::from(remote_port);
    u128::from(head) << 96 | u128::from(own) << 64 | u128::from(remote) << 32 | u128::from(ports)
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    protocol: u8,
    own: u32,
    port: u16,
    remote: u32,
    remote_port: u16,
    current: bool,
}

impl Question {
    pub fn new(tuple: &Tuple, current: bool) -> Self {
        Self {
            protocol: tuple.protocol,
            own: tuple.own.into(),
            port: tuple.own_port,
            remote: tuple.remote.into(),
            remote_port: tuple.remote_port,
            current,
        }
    }

    /// For a redirect of the address alone.
    pub fn address(own: Ipv4Addr, current: bool) -> Self {
        Self {
            protocol: EVERY_PROTOCOL,
            own: own.into(),
            port: 0,
            remote: 0,
            remote_port: 0,
            current,
        }
    }

    fn key(&self, class: u8, size: u32) -> u128 {
        let given = |bit: u8, value: u32| if class & bit == 0 { 0 } else { value };
        key(
            class,
            self.protocol,
            size,
            given(OWN, self.own),
            first_of_block(self.port, size),
            given(REMOTE, self.remote),
            given(REMOTE_PORT, u32::from(self.remote_port)) as u16,
        )
    }
}

/// The first port of the aligned block of `1 << size` ports around `port`.
fn first_of_block(port: u16, size: u32) -> u16 {
    (u32::from(port) >> size << size) as u16
}

/// A rule in a cell: when it came and where it lies.
type Entry = (u64, u32);

/// Rules of the very same shape; the latest on top.
#[derive(Debug, Clone)]
struct Cell {
    top: Entry,
    /// In the order they came. Most cells have none, and no allocation.
    below: Vec<Entry>,
}

impl Cell {
    fn latest(&self, alive: &impl Fn(u32) -> bool) -> Option<Entry> {
        let all = std::iter::once(&self.top).chain(self.below.iter().rev());
        all.copied().find(|(_, place)| alive(*place))
    }
}

/// The hashed cells of one direction.
#[derive(Debug, Clone, Default)]
pub struct Index {
    cells: HashMap<u128, Cell>,
    /// How many cells of each shape and size there are.
    counts: [[u32; SIZES]; CLASSES],
    /// Sizes in use, a bit each.
    sizes: [u32; CLASSES],
}

impl Index {
    pub fn memory_bytes(&self) -> usize {
        // A control byte beside each place; at most 7 of 8 places are used.
        self.cells.capacity() * 8 / 7 * (size_of::<(u128, Cell)>() + 1)
    }

    #[cfg(test)]
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    pub fn insert(&mut self, shape: Shape, ports: u16, sequence: u64, place: u32) {
        for (block, size) in Blocks::of(shape.port, ports) {
            let entry = (sequence, place);
            let cell = self.cells.entry(shape.key(block, size));
            let mut new = false;
            cell.and_modify(|cell| {
                let covered = std::mem::replace(&mut cell.top, entry);
                cell.below.push(covered);
            })
            .or_insert_with(|| {
                new = true;
                Cell {
                    top: entry,
                    below: Vec::new(),
                }
            });
            if new {
                self.count(shape.class, size, 1);
            }
        }
    }

    pub fn remove(&mut self, shape: Shape, ports: u16, sequence: u64) {
        for (block, size) in Blocks::of(shape.port, ports) {
            let key = shape.key(block, size);
            let Some(cell) = self.cells.get_mut(&key) else {
                continue;
            };
            if cell.top.0 != sequence {
                if let Ok(at) = cell.below.binary_search_by_key(&sequence, |entry| entry.0) {
                    cell.below.remove(at);
                }
            } else if let Some(uncovered) = cell.below.pop() {
                cell.top = uncovered;
            } else {
                self.cells.remove(&key);
                self.count(shape.class, size, -1);
            }
        }
    }

    fn count(&mut self, class: u8, size: u32, by: i32) {
        let class = usize::from(class) % CLASSES;
        let count = &mut self.counts[class][size as usize % SIZES];
        *count = count.saturating_add_signed(by);
        let bit = 1 << size;
        if *count == 0 {
            self.sizes[class] &= !bit;
        } else {
            self.sizes[class] |= bit;
        }
    }

    /// The place of the rule that speaks for a packet; rules that are over
    /// and not yet swept away speak no more.
    pub fn find(&self, question: &Question, alive: impl Fn(u32) -> bool) -> Option<u32> {
        let own = if question.current {
            &[OWN, 0][..]
        } else {
            &[OWN]
        };
        own.iter()
            .flat_map(|own| [REMOTE | REMOTE_PORT, REMOTE, REMOTE_PORT, 0].map(|rest| own | rest))
            .find_map(|class| self.latest(question, class, &alive))
    }

    /// The latest rule of a shape, over all sizes of range.
    fn latest(&self, question: &Question, class: u8, alive: &impl Fn(u32) -> bool) -> Option<u32> {
        let mut sizes = self.sizes[usize::from(class) % CLASSES];
        let mut best: Option<Entry> = None;
        while sizes != 0 {
            let size = sizes.trailing_zeros();
            sizes &= sizes - 1;
            let cell = self.cells.get(&question.key(class, size));
            best = best.max(cell.and_then(|cell| cell.latest(alive)));
        }
        best.map(|(_, place)| place)
    }

    /// Whether a rule for any remote speaks for this port.
    pub fn holds_port(&self, protocol: u8, own: Ipv4Addr, current: bool, port: u16) -> bool {
        let question = Question {
            protocol,
            port,
            ..Question::address(own, current)
        };
        let any = |class| self.latest(&question, class, &|_| true).is_some();
        any(OWN) || current && any(0)
    }
}

/// A range of ports as aligned blocks of powers of two: at most 30.
struct Blocks {
    next: u32,
    end: u32,
}

impl Blocks {
    /// No ports at all is the block of port 0 alone.
    fn of(first: u16, ports: u16) -> Self {
        let next = u32::from(first);
        Self {
            next,
            end: next + u32::from(ports.max(1)),
        }
    }
}

impl Iterator for Blocks {
    /// First port, and the size as a power of two.
    type Item = (u16, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.end.checked_sub(self.next).filter(|left| *left > 0)?;
        // Aligned to its size, and not longer than what is left.
        let size = self.next.trailing_zeros().min(left.ilog2()).min(16);
        let first = self.next as u16;
        self.next += 1 << size;
        Some((first, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_a_range_once() {
        for (first, ports) in [(0_u16, 1_u16), (80, 1), (1, 65_535), (1_000, 999), (7, 9)] {
            let blocks: Vec<_> = Blocks::of(first, ports).collect();
            assert!(blocks.len() <= 30);
            let covered: Vec<u32> = blocks
                .iter()
                .flat_map(|(first, size)| u32::from(*first)..u32::from(*first) + (1 << size))
                .collect();
            let expected = u32::from(first)..u32::from(first) + u32::from(ports);
            assert_eq!(covered, expected.collect::<Vec<_>>());
            assert!(
                blocks
                    .iter()
                    .all(|(first, size)| first_of_block(*first, *size) == *first)
            );
        }
    }
}
