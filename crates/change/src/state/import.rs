//! Declared state out of what others declare: `fingerpost import`. Pure: texts
//! in, a file of declared state and a list of what it does not carry out.
//! Nothing is passed over in silence.
//!
//! - [`ifupdown`]: `/etc/network/interfaces` of ifupdown and ifupdown2.
//! - [`netplan`], [`nmstate`]: their YAML (`yaml`).
//! - [`networkd`]: `.netdev` and `.network` of systemd-networkd.
//! - `draft`: what all of them build.
//! - [`command`](mod@command): the command line, and the files.

pub mod command;
mod draft;
pub mod ifupdown;
pub mod netplan;
pub mod networkd;
pub mod nmstate;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::File;

/// What came of an import.
#[derive(Debug, Default, PartialEq)]
pub struct Imported {
    /// What is carried over.
    pub file: File,
    /// What is not.
    pub left: Vec<Left>,
}

/// What is not carried over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Where it stands.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// What it is.
    pub key: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line) = (self.path.display(), self.line);
        write!(f, "{path}:{line}: `{}`: {}", self.key, self.why)
    }
}

/// Where texts come from: files within bounds, or what a test has.
pub trait Texts {
    /// A text by its name.
    fn read(&mut self, path: &Path) -> Result<String, String>;
    /// The names that a pattern of the shell matches, in their order.
    fn matching(&mut self, pattern: &Path) -> Result<Vec<PathBuf>, String>;
}
