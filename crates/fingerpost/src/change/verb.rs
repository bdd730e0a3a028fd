//! What is done with a row.

use netlink::decode::Operation;
use netlink::message::flag;
use view::Object;

/// `ip`'s commands that change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    Add,
    Replace,
    Change,
    Append,
    Prepend,
    Delete,
}

use Verb::{Add, Append, Change, Delete, Prepend, Replace};

impl Verb {
    /// Those that an object has.
    pub fn of(object: Object) -> &'static [Self] {
        match object {
            Object::Route => &[Add, Replace, Change, Append, Prepend, Delete],
            Object::Addr | Object::Neigh => &[Add, Replace, Change, Delete],
            Object::Nexthop => &[Add, Replace, Delete],
            Object::Rule => &[Add, Delete],
            Object::Link | Object::Fdb => &[],
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Add => "add",
            Replace => "replace",
            Change => "change",
            Append => "append",
            Prepend => "prepend",
            Delete => "delete",
        }
    }

    /// The verb of an object that a word means: the whole word, or its
    /// beginning, as `ip` takes it.
    pub fn meant(object: Object, word: &str) -> Option<Self> {
        if word.is_empty() {
            return None;
        }
        Self::of(object)
            .iter()
            .copied()
            .find(|verb| verb.name().starts_with(word) || word == "chg" && *verb == Change)
    }

    pub fn operation(self) -> Operation {
        match self {
            Delete => Operation::Delete,
            _ => Operation::New,
        }
    }

    /// `NLM_F_…` of its request.
    pub fn flags(self) -> u16 {
        match self {
            Add => flag::CREATE | flag::EXCL,
            Replace => flag::CREATE | flag::REPLACE,
            Change => flag::REPLACE,
            Append => flag::CREATE | flag::APPEND,
            Prepend => flag::CREATE,
            Delete => 0,
        }
    }
}
