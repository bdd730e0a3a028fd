//! What a file's text says of modules: which it declares, what stands in
//! them, what they import, which paths they name. Tokens are enough for that;
//! they are read within macros as well.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

/// Words before the name of something that stands in a module.
const ITEMS: &[&str] = &[
    "struct", "enum", "union", "trait", "type", "fn", "const", "static",
];

/// A path as it is written, and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    pub path: Vec<String>,
    pub line: usize,
}

/// A module as its text has it.
#[derive(Debug, Default)]
pub struct Text {
    /// Modules in files of their own.
    pub declared: BTreeSet<String>,
    /// Modules within this text.
    pub inline: BTreeMap<String, Text>,
    pub items: BTreeSet<String>,
    /// Names that a `use` brings in, and what they are there.
    pub imports: BTreeMap<String, Vec<String>>,
    /// The modules of `use module::*`.
    pub globs: Vec<Vec<String>>,
    /// All paths that are named, those of imports among them.
    pub named: Vec<Named>,
}

impl Text {
    pub fn read(text: &str) -> Result<Self, LexError> {
        let mut read = Self::default();
        read.tokens(TokenStream::from_str(text)?, true);
        Ok(read)
    }

    /// Reads tokens of the module itself, or of what is nested in it.
    fn tokens(&mut self, stream: TokenStream, is_module: bool) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let Some((token, behind)) = rest.split_first() {
            rest = match (token, behind) {
                (TokenTree::Punct(hash), [TokenTree::Group(group), behind @ ..])
                    if hash.as_char() == '#' && is_test(group) =>
                {
                    behind_item(behind)
                }
                (TokenTree::Group(group), _) => {
                    self.tokens(group.stream(), false);
                    behind
                }
                (TokenTree::Ident(word), _) => self.word(&word.to_string(), rest, is_module),
                _ => behind,
            };
        }
    }

    /// Reads on from a word; what follows is given back.
    fn word<'a>(&mut self, word: &str, rest: &'a [TokenTree], is_module: bool) -> &'a [TokenTree] {
        let behind = &rest[1..];
        match (word, behind) {
            // A path there says who may see something.
            ("pub", [TokenTree::Group(group), behind @ ..])
                if group.delimiter() == Delimiter::Parenthesis =>
            {
                behind
            }
            ("use", _) => {
                let end = behind.iter().position(|token| is_punct(token, ';'));
                let (tree, behind) = behind.split_at(end.unwrap_or(behind.len()));
                self.import(&[], tree);
                behind
            }
            ("mod", [TokenTree::Ident(name), next, behind @ ..]) if is_module => {
                self.module(name.to_string(), next);
                behind
            }
            ("macro_rules", [_, TokenTree::Ident(name), behind @ ..]) => {
                self.items.insert(name.to_string());
                behind
            }
            (word, [TokenTree::Ident(name), ..]) if is_module && ITEMS.contains(&word) => {
                self.items.insert(name.to_string());
                behind
            }
            _ => {
                let (path, behind) = path(rest);
                if path.len() > 1 {
                    self.name(path, rest);
                }
                behind
            }
        }
    }

    fn module(&mut self, name: String, next: &TokenTree) {
        if let TokenTree::Group(group) = next {
            let inner = self.inline.entry(name).or_default();
            inner.tokens(group.stream(), true);
        } else {
            self.declared.insert(name);
        }
    }

    /// Reads one tree of a `use` behind a prefix.
    fn import(&mut self, prefix: &[String], tree: &[TokenTree]) {
        let tree = behind_colons(tree);
        let (path, behind) = path(tree);
        let mut full = [prefix, &path].concat();
        match behind_colons(behind) {
            [TokenTree::Group(group), ..] => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in tokens.split(|token| is_punct(token, ',')) {
                    self.import(&full, tree);
                }
            }
            [star, ..] if is_punct(star, '*') => {
                self.globs.push(full.clone());
                full.push("*".into());
                self.name(full, tree);
            }
            behind => {
                if full.len() > 1 && full.last().is_some_and(|last| last == "self") {
                    full.pop();
                }
                let name = match behind {
                    // `use path as name`
                    [_, TokenTree::Ident(name)] => Some(name.to_string()),
                    _ => full.last().cloned(),
                };
                if let (Some(name), false) = (name, path.is_empty()) {
                    self.imports.insert(name, full.clone());
                    self.name(full, tree);
                }
            }
        }
    }

    fn name(&mut self, path: Vec<String>, at: &[TokenTree]) {
        let line = at.first().map_or(0, |token| token.span().start().line);
        self.named.push(Named { path, line });
    }
}

/// The path `a::b::c` that tokens begin with, and what follows it.
fn path(mut rest: &[TokenTree]) -> (Vec<String>, &[TokenTree]) {
    let mut path = Vec::new();
    while let [TokenTree::Ident(name), behind @ ..] = rest {
        path.push(name.to_string());
        rest = behind;
        match behind_colons(behind) {
            next @ [TokenTree::Ident(_), ..] if next.len() < behind.len() => rest = next,
            _ => break,
        }
    }
    (path, rest)
}

fn behind_colons(rest: &[TokenTree]) -> &[TokenTree] {
    match rest {
        [one, two, behind @ ..] if is_punct(one, ':') && is_punct(two, ':') => behind,
        _ => rest,
    }
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

/// Whether an attribute says that what follows is for tests.
fn is_test(attribute: &Group) -> bool {
    let mut text = attribute.stream().to_string();
    text.retain(|c| !c.is_whitespace());
    text == "cfg(test)" || text.starts_with("cfg(all(test,") || text == "test"
}

/// What follows an item: its end is a `;`, or the first braces.
fn behind_item(rest: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| {
        is_punct(token, ';')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = rest.iter().position(is_end).map_or(rest.len(), |at| at + 1);
    &rest[end..]
}
