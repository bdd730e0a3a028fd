//! What is done with a row.

use crate::Object;

/// `ip`'s commands that change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is its word")]
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
            Object::Fdb => &[Add, Replace, Append, Delete],
            Object::Link => &[],
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
}
