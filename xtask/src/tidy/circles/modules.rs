//! A crate's modules from its files, and where a path of theirs leads.

use std::collections::BTreeMap;

use super::super::finding::Finding;
use super::super::tree::Tree;
use super::graph::Arrow;
use super::text::Text;

/// Imports that lead on to imports, at most: more is a circle of them.
const MAX_IMPORTS: u32 = 8;

/// A crate: its modules by their paths from the root, and their files.
#[derive(Default)]
pub struct Crate {
    pub files: Vec<String>,
    modules: BTreeMap<Vec<String>, Module>,
}

struct Module {
    file: usize,
    text: Text,
}

/// What a path leads to.
#[derive(Clone)]
enum Place {
    Module(Vec<String>),
    /// Something in a file.
    In(usize),
}

impl Crate {
    /// Reads the file at a crate's root, and all files that it leads to.
    pub fn read(tree: &Tree, root: &str) -> Result<Self, Finding> {
        let mut read = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        read.file(tree, Vec::new(), root, folder)?;
        Ok(read)
    }

    /// Reads a module's file; those that it declares lie in `folder`.
    fn file(
        &mut self,
        tree: &Tree,
        module: Vec<String>,
        path: &str,
        folder: &str,
    ) -> Result<(), Finding> {
        let text = tree.get(path).map_or("", |file| file.text.as_str());
        let text = Text::read(text).map_err(|error| {
            let line = error.span().start().line;
            Finding::new(path, line, format!("not Rust: {error}"))
        })?;
        let file = self.files.len();
        self.files.push(path.to_owned());
        self.module(tree, module, file, text, folder)
    }

    fn module(
        &mut self,
        tree: &Tree,
        path: Vec<String>,
        file: usize,
        mut text: Text,
        folder: &str,
    ) -> Result<(), Finding> {
        for name in &text.declared {
            let below = format!("{folder}/{name}");
            let candidates = [format!("{below}.rs"), format!("{below}/mod.rs")];
            let found = candidates.iter().find(|path| tree.get(path).is_some());
            if let Some(found) = found {
                self.file(tree, child(&path, name), found, &below)?;
            }
        }
        for (name, inner) in std::mem::take(&mut text.inline) {
            let below = format!("{folder}/{name}");
            self.module(tree, child(&path, &name), file, inner, &below)?;
        }
        self.modules.insert(path, Module { file, text });
        Ok(())
    }

    /// Which file leans on which, by every path that is named.
    pub fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (path, module) in &self.modules {
            for named in &module.text.named {
                if let Some(to) = self.leads_to(path, &named.path) {
                    let (from, line) = (module.file, named.line);
                    arrows.push(Arrow { from, to, line });
                }
            }
        }
        arrows
    }

    /// The file that a path named in a module leans on, if it is of this crate.
    fn leads_to(&self, module: &[String], path: &[String]) -> Option<usize> {
        if let Some((star, path)) = path.split_last()
            && star == "*"
        {
            return match self.resolve(module, path, 0)? {
                Place::Module(path) => Some(self.modules.get(&path)?.file),
                Place::In(file) => Some(file),
            };
        }
        match self.resolve(module, path, 0)? {
            Place::Module(_) => None,
            Place::In(file) => Some(file),
        }
    }

    /// Follows a path from a module on.
    fn resolve(&self, module: &[String], path: &[String], imports: u32) -> Option<Place> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Place::Module(Vec::new()),
            "self" => Place::Module(module.to_vec()),
            "super" => Place::Module(module.split_last()?.1.to_vec()),
            name => self.member(module, name, imports)?,
        };
        while let (Place::Module(module), Some((name, behind))) = (&at, rest.split_first()) {
            at = if name == "super" {
                Place::Module(module.split_last()?.1.to_vec())
            } else {
                let file = self.modules.get(module)?.file;
                // What a macro makes is known to the compiler alone.
                let member = self.member(module, name, imports);
                member.unwrap_or(Place::In(file))
            };
            rest = behind;
        }
        Some(at)
    }

    /// What a name is in a module: a child, something that stands there, or
    /// what an import brings.
    fn member(&self, path: &[String], name: &str, imports: u32) -> Option<Place> {
        let child = child(path, name);
        if self.modules.contains_key(&child) {
            return Some(Place::Module(child));
        }
        let module = self.modules.get(path)?;
        if module.text.items.contains(name) {
            return Some(Place::In(module.file));
        }
        if imports >= MAX_IMPORTS {
            return None;
        }
        if let Some(import) = module.text.imports.get(name) {
            // `use table::table`: the first is a crate.
            if import.first().is_some_and(|first| first == name) {
                return None;
            }
            return self.resolve(path, import, imports + 1);
        }
        let globs = module.text.globs.iter();
        let mut found = globs.filter_map(|glob| match self.resolve(path, glob, imports + 1)? {
            Place::Module(glob) if glob != path => self.member(&glob, name, imports + 1),
            _ => None,
        });
        found.next()
    }
}

fn child(path: &[String], name: &str) -> Vec<String> {
    [path, &[name.to_owned()]].concat()
}
