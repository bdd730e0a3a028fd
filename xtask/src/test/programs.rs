//! The test programs: Cargo builds them and names them. Called by `test`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::host;

/// A test program that Cargo has built.
#[derive(Debug, PartialEq)]
pub struct Program {
    /// Package and target, for people.
    pub name: String,
    /// The package's directory, its last part.
    pub package: String,
    /// The target alone.
    pub target: String,
    /// Whether it tests its package from outside: a file of `tests/`.
    pub is_outside: bool,
    /// Whether it tests a library from inside: then there may be examples
    /// in its documentation.
    pub is_library: bool,
    path: PathBuf,
    /// The package's directory: where Cargo runs its tests.
    directory: PathBuf,
}

/// What Cargo says of something it has built; of its messages, what is
/// wanted here.
#[derive(Deserialize)]
struct Message<'a> {
    reason: &'a str,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds by a command of Cargo's and gives the test programs, those that
/// test from outside first: they take longest. `what` names them in errors.
pub fn build(mut cargo: Command, what: &str) -> Result<Vec<Program>> {
    let mut running = cargo
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting cargo for {what}"))?;
    let output = running.stdout.take().context("cargo has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("reading from cargo")?;
        programs.extend(program(&line)?);
    }
    if !running.wait().context("waiting for cargo")?.success() {
        bail!("{what} do not build");
    }
    programs.sort_by_key(|program| program.is_library);
    Ok(programs)
}

/// Where a package's test is that is to be run elsewhere, built.
pub fn test_of(package: &str, test: &str) -> Result<PathBuf> {
    let mut cargo = host::cargo();
    cargo.args(["test", "--no-run", "--package", package, "--test", test]);
    let built = build(cargo, &format!("{package}'s test {test}"))?;
    let program = built.into_iter().next().context("cargo built no test")?;
    Ok(program.path)
}

/// The test program that a line of Cargo's tells of, if it does.
fn program(line: &str) -> Result<Option<Program>> {
    let read = || serde_json::from_str(line).with_context(|| format!("cargo said `{line}`"));
    let message: Message<'_> = read()?;
    if message.reason != "compiler-artifact" || !message.profile.is_some_and(|one| one.test) {
        return Ok(None);
    }
    let (Some(target), Some(path), Some(manifest)) =
        (message.target, message.executable, message.manifest_path)
    else {
        return Ok(None);
    };
    let directory = manifest.parent().unwrap_or(Path::new("/")).to_path_buf();
    let package = directory.file_name().unwrap_or_default();
    let package = package.to_string_lossy().into_owned();
    let kind = target.kind.first().map_or("", String::as_str);
    Ok(Some(Program {
        name: format!("{package}: {kind} {}", target.name),
        package,
        is_outside: kind == "test",
        is_library: target.kind.iter().any(|kind| kind.contains("lib")),
        target: target.name,
        path,
        directory,
    }))
}

impl Program {
    /// A command that runs it as Cargo does.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_all_else_that_cargo_builds() {
        let built = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/nat/Cargo.toml","target":{{"kind":["{kind}"],"crate_types":["bin"],"name":"model","src_path":"/w/x.rs","edition":"2024","doc":false,"doctest":false,"test":true}},"profile":{{"opt_level":"1","debuginfo":0,"debug_assertions":true,"overflow_checks":true,"test":{test}}},"features":[],"filenames":[],"executable":{executable},"fresh":true}}"#
            )
        };
        let found = program(&built("test", true, "\"/t/model-1\"")).unwrap();
        let expected = Program {
            name: "nat: test model".to_owned(),
            package: "nat".to_owned(),
            target: "model".to_owned(),
            is_outside: true,
            is_library: false,
            path: "/t/model-1".into(),
            directory: "/w/crates/nat".into(),
        };
        assert_eq!(found.as_ref(), Some(&expected));
        assert_eq!(
            expected.command().get_current_dir(),
            Some(Path::new("/w/crates/nat"))
        );
        let library = program(&built("lib", true, "\"/t/nat-2\"")).unwrap();
        assert!(library.is_some_and(|program| program.is_library));
        assert_eq!(program(&built("bin", false, "\"/t/x\"")).unwrap(), None);
        assert_eq!(program(&built("lib", true, "null")).unwrap(), None);
        let other = r#"{"reason":"build-finished","success":true}"#;
        assert_eq!(program(other).unwrap(), None);
        assert!(program("Compiling").is_err());
    }

    #[test]
    fn what_does_not_build_is_said() {
        let error = build(Command::new("false"), "the tests").unwrap_err();
        assert_eq!(error.to_string(), "the tests do not build");
    }
}
