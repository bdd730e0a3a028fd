//! `cargo xtask test`: all tests of the workspace on a fresh machine, as
//! root or as an ordinary user, with one line of counts at the end.
//!
//! Cargo builds the test programs and says which they are; they run side by
//! side, one more than there are cores, since most of what they do is to wait
//! for the kernel and for one another. Each makes its own network namespaces.

mod again;
mod counts;
mod pool;
pub mod programs;
mod released;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Result, bail};

use crate::host::{self, say};
use counts::Counts;
use pool::Job;
use programs::Program;

/// The packages whose shared structures are modelled with loom. Their
/// feature `model` puts loom's atomics in place of the real ones.
const MODELLED: &[&str] = &["fingerpost-memory"];

/// Test programs that have the host for themselves, with their package. Those
/// of the program ask or mirror all its namespaces: with others beside them
/// they would have theirs to mirror as well, as they come and go. `memory`
/// waits for a heap that stays as it is, which takes longer than it has on a
/// busy machine.
const ALONE: &[(&str, &str)] = &[
    ("fingerpost", "daemon"),
    ("fingerpost", "questions"),
    ("serve", "memory"),
];

/// The package whose library nobody else uses: there are no examples in it,
/// and libFuzzer would be built for them.
pub const WITHOUT_EXAMPLES: &str = "fingerpost-fuzz";

/// Runs the tests.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only the tests of these packages
    #[arg(short, long)]
    package: Vec<String>,
    /// Only those that start the program, and on this build of it
    #[arg(long, value_name = "FILE", value_parser = whole, conflicts_with = "package")]
    program: Option<PathBuf>,
    /// The same, on a build that checks as little as a release does, and
    /// without those that would find nothing new there
    #[arg(long, conflicts_with_all = ["package", "program"])]
    released: bool,
    /// So many test programs at a time
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Handed to the test programs (models and examples in the
    /// documentation are left out then)
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Installs what is missing, builds, goes to namespaces of its own where
/// the user may not make them here, and tests.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    // Built out here: namespaces of our own have no network to fetch by.
    let jobs = arguments.build()?;
    if !host::may_make_namespaces() {
        if host::has_own_namespaces() {
            say("running as an ordinary user, in namespaces of our own");
            host::enter_own_namespaces()?;
        }
        say("this system gives us no network namespaces: tests that need one are skipped");
    }
    ::lab::sweep();
    ::lab::put_back_leftovers()?;
    let skipped = env::temp_dir().join(format!("fingerpost-skipped-{}", std::process::id()));
    let counts = arguments.test(jobs, &skipped);
    let _ = fs::remove_file(&skipped);
    ::lab::sweep();
    ::lab::put_back_leftovers()?;
    let counts = counts?;
    say(&counts);
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// The tests do not run where they are called from.
fn whole(path: &str) -> std::io::Result<PathBuf> {
    fs::canonicalize(path)
}

impl Arguments {
    /// Runs all, counts, and lists the slowest, those that failed only
    /// beside others, and the skipped.
    fn test(&self, mut jobs: Vec<Job>, skipped: &Path) -> Result<Counts> {
        for job in &mut jobs {
            job.command.env(::lab::skip::FILE_VARIABLE, skipped);
        }
        let (alone, together): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.alone);
        let tell = |text: &str| say(text);
        let pool::Ran {
            mut counts,
            mut failed,
        } = pool::run(together, self.at_a_time(), &tell)?;
        let by_themselves = pool::run(alone, 1, &tell)?;
        counts.and(&by_themselves.counts);
        failed.extend(by_themselves.failed);
        // Who asks for single tests sees for himself.
        if self.rest.is_empty() {
            again::alone(failed, &mut counts, &tell)?;
        }
        let reasons = fs::read_to_string(skipped).unwrap_or_default();
        counts.set_apart(&reasons);
        Ok(counts)
    }

    /// Builds what is asked for, and says what there is to run.
    fn build(&self) -> Result<Vec<Job>> {
        let mut cargo = host::cargo();
        cargo.args(["test", "--no-run"]).args(self.selection());
        let mut programs = programs::build(cargo, "the tests")?;
        if self.starts_a_program() {
            programs.retain(released::starts_it);
        }
        let program = if self.released {
            programs.retain(released::differs);
            Some(released::build()?)
        } else {
            self.program.clone()
        };
        if programs.is_empty() {
            bail!("there is no test program in what was asked for");
        }
        let mut jobs: Vec<Job> = Vec::new();
        for one in &programs {
            jobs.push(self.job(one, program.as_deref()));
        }
        if self.rest.is_empty() && program.is_none() {
            // The models first: each is one long reckoning.
            jobs.splice(0..0, self.models()?);
            if programs.iter().any(|program| program.is_library) {
                jobs.push(self.examples());
            }
        }
        Ok(jobs)
    }

    fn job(&self, program: &Program, under_test: Option<&Path>) -> Job {
        let mut command = program.command();
        command.args(&self.rest);
        if let Some(under_test) = under_test {
            command.env(::lab::program::VARIABLE, under_test);
        }
        Job {
            name: program.name.clone(),
            alone: ALONE.contains(&(program.package.as_str(), program.target.as_str())),
            command,
        }
    }

    /// The models of what threads share, in all interleavings.
    fn models(&self) -> Result<Vec<Job>> {
        let is_asked =
            |name: &&&str| self.package.is_empty() || self.package.iter().any(|one| one == **name);
        let mut jobs = Vec::new();
        for package in MODELLED.iter().filter(is_asked) {
            let mut cargo = host::cargo();
            cargo.args(["test", "--no-run", "--package", package]);
            cargo.args(["--features", "model", "--tests"]);
            for program in programs::build(cargo, "the models")? {
                let mut command = program.command();
                command.arg("models");
                jobs.push(Job {
                    name: format!("{}, models", program.name),
                    alone: false,
                    command,
                });
            }
        }
        Ok(jobs)
    }

    /// The examples in the documentation.
    fn examples(&self) -> Job {
        let mut command = host::cargo();
        command.args(["test", "--doc", "--no-fail-fast"]);
        command.args(self.selection());
        if self.package.is_empty() {
            command.args(["--exclude", WITHOUT_EXAMPLES]);
        }
        Job {
            name: "examples in the documentation".to_owned(),
            alone: false,
            command,
        }
    }

    /// Whether only those are wanted that start the program.
    fn starts_a_program(&self) -> bool {
        self.program.is_some() || self.released
    }

    /// What is asked for, in Cargo's words. A package alone asks fewer
    /// features of others' crates than all do: they would be built again.
    fn selection(&self) -> Vec<&str> {
        if self.package.is_empty() {
            return vec!["--workspace"];
        }
        let one = |name| ["--package", name];
        self.package
            .iter()
            .map(String::as_str)
            .flat_map(one)
            .collect()
    }

    /// One more than there are cores: each has as many threads, but waits
    /// more than it reckons (two at a time leave half of two cores idle).
    fn at_a_time(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(|| cores() + 1, usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(package: &[&str], program: Option<&str>) -> Arguments {
        Arguments {
            package: package.iter().map(|&name| name.to_owned()).collect(),
            program: program.map(PathBuf::from),
            released: false,
            jobs: None,
            rest: Vec::new(),
        }
    }

    #[test]
    fn what_runs_alone_is_there() {
        let crates = host::workspace().unwrap().join("crates");
        for (package, name) in ALONE {
            let test = crates.join(format!("{package}/tests/{name}.rs"));
            assert!(test.exists(), "{}", test.display());
        }
    }

    #[test]
    fn cargo_is_asked_for_what_was_asked_for() {
        let all = arguments(&[], None);
        assert_eq!(all.selection(), ["--workspace"]);
        assert!(all.at_a_time() >= 2);
        let two = arguments(&["a", "b"], None);
        assert_eq!(two.selection(), ["--package", "a", "--package", "b"]);
        assert!(two.models().unwrap().is_empty());
        let program = arguments(&[], Some("/bin/true"));
        assert_eq!(program.selection(), ["--workspace"]);
        assert!(program.starts_a_program() && !all.starts_a_program());
    }
}
