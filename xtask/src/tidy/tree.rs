//! The files of the workspace: what is committed or about to be.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// All files.
#[derive(Debug, Default)]
pub struct Tree {
    pub files: Vec<File>,
}

/// A file.
#[derive(Debug)]
pub struct File {
    /// From the workspace's directory.
    pub path: String,
    pub len_bytes: u64,
    /// Its text; empty for what is not UTF-8.
    pub text: String,
}

impl Tree {
    /// Reads what Git knows or does not ignore.
    pub fn read(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .current_dir(root)
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .output()
            .context("running git ls-files")?;
        if !output.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
        }
        let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files = Vec::new();
        for path in names.split_terminator('\0') {
            // Deleted but not yet committed so.
            let Ok(bytes) = fs::read(root.join(path)) else {
                continue;
            };
            files.push(File {
                path: path.to_owned(),
                len_bytes: bytes.len() as u64,
                text: String::from_utf8(bytes).unwrap_or_default(),
            });
        }
        Ok(Self { files })
    }

    /// A file by its path.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File::of(path, text));
        Self {
            files: files.collect(),
        }
    }
}

impl File {
    #[cfg(test)]
    pub fn of(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            len_bytes: text.len() as u64,
            text: text.to_owned(),
        }
    }
}
