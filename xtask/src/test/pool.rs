//! Programs side by side, so many at a time; what each wrote is said whole
//! when it has ended. Called by `test`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::counts::Counts;

/// Of those that took longest so many are named at the end.
const SLOWEST: usize = 5;

/// A program to run.
#[derive(Debug)]
pub struct Job {
    pub name: String,
    /// Whether it is to have the host for itself.
    pub alone: bool,
    pub command: Command,
}

/// What came of all so far.
#[derive(Default)]
struct Outcome {
    counts: Counts,
    took: Vec<(Duration, String)>,
    /// The first that could not be run at all.
    error: Option<anyhow::Error>,
}

/// Runs all of them, in their order, so many at a time. What they wrote goes
/// to `tell`, a whole program's at a time.
pub fn run(jobs: Vec<Job>, at_a_time: usize, tell: &(dyn Fn(&str) + Sync)) -> Result<Counts> {
    let waiting = Mutex::new(VecDeque::from(jobs));
    let outcome = Mutex::new(Outcome::default());
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let next = locked(&waiting).pop_front();
                    let Some(job) = next else { break };
                    finish(job, &outcome, tell);
                }
            });
        }
    });
    let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = outcome.error {
        return Err(error);
    }
    if !outcome.took.is_empty() {
        tell(&slowest(outcome.took));
    }
    Ok(outcome.counts)
}

/// A mutex's value: nothing that holds one leaves it half changed.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one to its end, and says what it wrote while nobody else speaks.
fn finish(mut job: Job, outcome: &Mutex<Outcome>, tell: &dyn Fn(&str)) {
    let start = Instant::now();
    let ended = output(&mut job.command).with_context(|| format!("running {}", job.name));
    let took = start.elapsed();
    let mut outcome = locked(outcome);
    match ended {
        Ok((status, text)) => {
            let counts = Counts::of(&text, status.success());
            let text = text.trim_matches('\n');
            let seconds = took.as_secs_f64();
            tell(&format!(
                "\n== {} ({seconds:.1} s, {status})\n{text}",
                job.name
            ));
            outcome.counts.and(&counts);
            outcome.took.push((took, job.name));
        }
        Err(error) => {
            outcome.error.get_or_insert(error);
        }
    }
}

/// What a program wrote, to both of its outputs in order, and how it ended.
fn output(command: &mut Command) -> Result<(ExitStatus, String)> {
    // A file, not a pipe: what a test leaves behind may hold it open.
    let mut file = tempfile::tempfile().context("a file for its output")?;
    let clone = |file: &File| file.try_clone().context("a second handle of a file");
    let status = command
        .stdin(Stdio::null())
        .stdout(clone(&file)?)
        .stderr(clone(&file)?)
        .status()
        .context("starting it")?;
    let mut bytes = Vec::new();
    file.rewind().context("going back in its output")?;
    file.read_to_end(&mut bytes).context("reading its output")?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

fn slowest(mut took: Vec<(Duration, String)>) -> String {
    took.sort_by(|one, other| other.cmp(one));
    let line = |(time, name): &(Duration, String)| format!("\n{:7.1} s {name}", time.as_secs_f64());
    let lines: String = took.iter().take(SLOWEST).map(line).collect();
    format!("\n== those that took longest{lines}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            alone: false,
            command,
        }
    }

    /// What a test program's last line looks like.
    fn result(passed: usize, failed: usize) -> String {
        format!("echo 'test result: ok. {passed} passed; {failed} failed; 0 ignored'")
    }

    #[test]
    fn all_run_and_are_counted() {
        let jobs = vec![
            job("one", &result(2, 0)),
            job("two", &format!("{}; exit 101", result(1, 3))),
            job("killed", "kill -9 $$"),
        ];
        let told = Mutex::new(String::new());
        let counts = run(jobs, 2, &|text| locked(&told).push_str(text)).unwrap();
        assert_eq!(counts.to_string(), "3 passed, 4 failed, 0 skipped");
        let told = told.into_inner().unwrap();
        assert!(told.contains("== two ("), "{told}");
        assert!(told.contains("exit status: 101"), "{told}");
        assert!(told.contains("1 passed; 3 failed"), "{told}");
    }

    /// Each waits until the other has begun: one after the other they would
    /// never end.
    #[test]
    fn two_run_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        let meet = |own: &str, other: &str| {
            let wait = format!("while [ ! -e {path}/{other} ]; do sleep 0.01; done");
            job(
                own,
                &format!("touch {path}/{own}; {wait}; {}", result(1, 0)),
            )
        };
        let jobs = vec![meet("one", "two"), meet("two", "one")];
        assert_eq!(run(jobs, 2, &|_| ()).unwrap().passed, 2);
    }

    #[test]
    fn both_outputs_are_kept_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three"]);
        let (status, text) = output(&mut command).unwrap();
        assert!(status.success());
        assert_eq!(text, "one\ntwo\nthree\n");
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let job = Job {
            name: "nothing".to_owned(),
            alone: false,
            command: Command::new("/no/such/program"),
        };
        let error = run(vec![job], 1, &|_| ()).unwrap_err();
        assert!(error.to_string().contains("running nothing"), "{error:#}");
    }
}
