//! `fingerpost import FORMAT PATH`: its command line, and the files that it
//! reads, within bounds.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use super::{Imported, Texts, ifupdown, netplan, networkd, nmstate};

/// Exit status where something was not carried over.
const INCOMPLETE: u8 = 3;
/// Files read at most, bytes of one, and of all.
const MAX_FILES: usize = 100_000;
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_BYTES: u64 = 256 << 20;

/// What is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Ifupdown,
    Networkd,
    Netplan,
    Nmstate,
}

/// What is wanted of it.
#[derive(Debug)]
pub struct Import {
    format: Format,
    path: PathBuf,
    output: Option<PathBuf>,
}

/// The command's definition.
pub fn command() -> Command {
    Command::new("import")
        .about("Convert the files of ifupdown, networkd, netplan or nmstate into a file for `apply`")
        .after_help(
            "What cannot be carried over is listed on standard error with file and line.\n\
             Exit status: 0 all was carried over, 3 not all.",
        )
        .arg(
            Arg::new("format")
                .value_name("FORMAT")
                .required(true)
                .value_parser(["ifupdown", "networkd", "netplan", "nmstate"])
                .help("Whose files they are"),
        )
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .required(true)
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf))
                .help("/etc/network/interfaces, /etc/systemd/network, /etc/netplan, a file of nmstate, or a copy"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Write it here, into a new file, instead of to standard output"),
        )
}

/// What is asked for.
pub fn wanted(matches: &ArgMatches) -> Import {
    let format = matches.get_one::<String>("format").map(String::as_str);
    Import {
        format: match format {
            Some("networkd") => Format::Networkd,
            Some("netplan") => Format::Netplan,
            Some("nmstate") => Format::Nmstate,
            _ => Format::Ifupdown,
        },
        path: matches
            .get_one::<PathBuf>("path")
            .cloned()
            .unwrap_or_default(),
        output: matches.get_one("output").cloned(),
    }
}

/// Imports, and says what is left.
pub fn run(import: &Import, out: &mut impl Write) -> Result<ExitCode> {
    let mut files = Files::default();
    let Imported { file, left } = match import.format {
        Format::Ifupdown => ifupdown::import(&mut files, &import.path),
        Format::Networkd => networkd::import(&mut files, &import.path),
        Format::Netplan => netplan::import(&mut files, &import.path),
        Format::Nmstate => nmstate::import(&mut files, &import.path),
    }
    .map_err(|why| anyhow!(why))?;
    let text = file.to_toml().context("it cannot be written as TOML")?;
    match &import.output {
        None => out.write_all(text.as_bytes())?,
        Some(path) => {
            let written = File::create_new(path).and_then(|mut to| to.write_all(text.as_bytes()));
            written.with_context(|| path.display().to_string())?;
        }
    }
    out.flush()?;
    let mut errors = io::stderr().lock();
    for left in &left {
        // Nobody to tell when standard error is closed.
        let _ = writeln!(errors, "fingerpost: not carried over: {left}");
    }
    Ok(match left.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    })
}

/// Files of this host, within bounds.
#[derive(Debug, Default)]
struct Files {
    files: usize,
    bytes: u64,
}

impl Texts for Files {
    fn read(&mut self, path: &Path) -> Result<String, String> {
        let said = |error: io::Error| format!("{}: {error}", path.display());
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(format!(
                "{}: more than {MAX_FILES} files are named",
                path.display()
            ));
        }
        let file = File::open(path).map_err(said)?;
        if !file.metadata().map_err(said)?.is_file() {
            return Err(format!("{}: it is no file", path.display()));
        }
        let mut text = String::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
        let read = read.map_err(said)? as u64;
        self.bytes += read;
        if read > MAX_FILE_BYTES || self.bytes > MAX_BYTES {
            return Err(format!(
                "{}: {MAX_FILE_BYTES} bytes of a file are read at most, {MAX_BYTES} of all",
                path.display()
            ));
        }
        Ok(text)
    }

    /// Patterns have their `*` and `?` in the last part.
    fn matching(&mut self, pattern: &Path) -> Result<Vec<PathBuf>, String> {
        let last = pattern
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let above = pattern.parent().unwrap_or(Path::new("."));
        if above.to_string_lossy().contains(['*', '?', '[']) || last.contains(['[', '{']) {
            return Err(format!(
                "{}: `*` and `?` are understood in the last part of a pattern",
                pattern.display()
            ));
        }
        if !last.contains(['*', '?']) {
            return Ok(vec![pattern.to_owned()]);
        }
        let entries = match fs::read_dir(above) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{}: {error}", above.display())),
        };
        let mut found = Vec::new();
        for entry in entries.take(MAX_FILES) {
            let entry = entry.map_err(|error| format!("{}: {error}", above.display()))?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or("");
            let is_hidden = name.starts_with('.') && !last.starts_with('.');
            if !is_hidden && entry.path().is_file() && matches(last.as_bytes(), name.as_bytes()) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Whether a pattern with `*` and `?` is a name. O(pattern × name).
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while of < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(one) if *one == b'?' || Some(one) == name.get(of) => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                Some((place, tried)) => {
                    *tried += 1;
                    (at, of) = (*place + 1, *tried);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|one| *one == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is) in [
            ("*", "a", true),
            ("*.conf", "a.conf", true),
            ("*.conf", "a.confx", false),
            ("a?c*", "abcd", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("", "", true),
            ("x", "", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                is,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn files_are_read_within_bounds() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("b.conf"), "b").unwrap();
        fs::write(at("a.conf"), "a").unwrap();
        fs::write(at(".c.conf"), "c").unwrap();
        let mut files = Files::default();
        let found = files.matching(&at("*.conf")).unwrap();
        assert_eq!(found, [at("a.conf"), at("b.conf")]);
        assert_eq!(files.read(&at("a.conf")).unwrap(), "a");
        assert!(files.matching(&directory.path().join("*/x")).is_err());
        assert!(
            files
                .read(directory.path())
                .unwrap_err()
                .contains("no file")
        );
        assert!(files.matching(&at("none/*")).unwrap().is_empty());
        let large = File::create(at("large")).unwrap();
        large.set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(files.read(&at("large")).unwrap_err().contains("at most"));
        large.set_len(MAX_FILE_BYTES).unwrap();
        assert_eq!(
            files.read(&at("large")).unwrap().len() as u64,
            MAX_FILE_BYTES
        );
    }
}
