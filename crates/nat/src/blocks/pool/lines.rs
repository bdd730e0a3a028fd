//! Lines of blocks: each block has a link for each kind of line, so that to
//! stand in one takes no memory and to join or leave it one step.

use memory::Reserved;

use super::Block;

/// Which of a block's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of the free ones of an address, or of those that rest: a block is
    /// never both.
    Free,
    /// Of those that are told again from time to time.
    Told,
}

/// The blocks behind and before one, one up; 0: none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link {
    behind: u32,
    before: u32,
}

/// The first and the last of a line, one up; 0: none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    head: u32,
    tail: u32,
}

impl Line {
    /// The first one.
    pub fn first(&self) -> Option<u32> {
        self.head.checked_sub(1)
    }

    /// The one behind a block that is in it.
    pub fn behind(&self, blocks: &Reserved<Block>, kind: Kind, block: u32) -> Option<u32> {
        let link = blocks.get(block as usize)?.links.get(kind as usize)?;
        link.behind.checked_sub(1)
    }

    /// A block stands behind all others. It must be in no line of the kind.
    pub fn push(&mut self, blocks: &mut Reserved<Block>, kind: Kind, block: u32) {
        let before = std::mem::replace(&mut self.tail, block + 1);
        match link(blocks, kind, before) {
            Some(last) => last.behind = block + 1,
            None => self.head = block + 1,
        }
        if let Some(link) = link(blocks, kind, block + 1) {
            *link = Link { behind: 0, before };
        }
    }

    /// A block that is in it leaves.
    pub fn remove(&mut self, blocks: &mut Reserved<Block>, kind: Kind, block: u32) {
        let Some(Link { behind, before }) = link(blocks, kind, block + 1).copied() else {
            return;
        };
        match link(blocks, kind, before) {
            Some(link) => link.behind = behind,
            None => self.head = behind,
        }
        match link(blocks, kind, behind) {
            Some(link) => link.before = before,
            None => self.tail = before,
        }
    }
}

/// The link of a block that is told one up.
fn link(blocks: &mut Reserved<Block>, kind: Kind, one_up: u32) -> Option<&mut Link> {
    let block = blocks.get_mut(one_up.checked_sub(1)? as usize)?;
    block.links.get_mut(kind as usize)
}
