//! Programs side by side, so many at a time; what each wrote is said whole
//! when it has ended. Called by `test`.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::again::Failed;
use super::counts::Counts;

/// What the kernel counts a second in (USER_HZ, wherever Rust's Linux runs).
const TICKS: u64 = 100;

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

/// What came of all.
#[derive(Debug, Default)]
pub struct Ran {
    pub counts: Counts,
    pub failed: Vec<Failed>,
}

/// What came of all so far.
#[derive(Default)]
struct Outcome {
    ran: Ran,
    took: Vec<Took>,
    /// The first that could not be run at all.
    error: Option<anyhow::Error>,
}

/// How long a program took, and how much processor time.
struct Took {
    took: Duration,
    busy: Duration,
    name: String,
}

/// Runs all of them, in their order, so many at a time. What they wrote goes
/// to `tell`, a whole program's at a time.
pub fn run(jobs: Vec<Job>, at_a_time: usize, tell: &(dyn Fn(&str) + Sync)) -> Result<Ran> {
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
    Ok(outcome.ran)
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
        Ok(ended) => {
            let counts = Counts::of(&ended.text, ended.status.success());
            let text = ended.text.trim_matches('\n');
            let (seconds, busy) = (took.as_secs_f64(), ended.busy.as_secs_f64());
            tell(&format!(
                "\n== {} ({seconds:.1} s, {busy:.1} s of processor time, {})\n{text}",
                job.name, ended.status
            ));
            outcome.ran.counts.and(&counts);
            outcome.took.push(Took {
                took,
                busy: ended.busy,
                name: job.name.clone(),
            });
            if counts.failed > 0 {
                let failed = Failed::of(job, &ended.text, &counts);
                outcome.ran.failed.push(failed);
            }
        }
        Err(error) => {
            outcome.error.get_or_insert(error);
        }
    }
}

/// How a program ended.
struct Ended {
    status: ExitStatus,
    /// What it wrote, to both of its outputs in order.
    text: String,
    busy: Duration,
}

/// Runs a program to its end.
fn output(command: &mut Command) -> Result<Ended> {
    // A file, not a pipe: what a test leaves behind may hold it open.
    let mut file = tempfile::tempfile().context("a file for its output")?;
    let clone = |file: &File| file.try_clone().context("a second handle of a file");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(clone(&file)?)
        .stderr(clone(&file)?)
        .spawn()
        .context("starting it")?;
    // Its times can be read from its end until it is waited for.
    let pid = Pid::from_child(&child);
    let only_look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(pid), only_look)).context("waiting for its end")?;
    let busy = busy(pid)?;
    let status = child.wait().context("waiting for it")?;
    let mut bytes = Vec::new();
    file.rewind().context("going back in its output")?;
    file.read_to_end(&mut bytes).context("reading its output")?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended { status, text, busy })
}

/// The processor time of a program that has ended, its children's included
/// that it waited for (proc_pid_stat(5), fields 14 to 17).
fn busy(pid: Pid) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    // Its name stands in brackets, and may have blanks and brackets in it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |field: &str| field.parse::<u64>().ok();
    let used = fields.split_whitespace().skip(11).take(4).map(ticks);
    let used: Option<u64> = used.sum();
    let used = used.with_context(|| format!("{path} has no times: {stat}"))?;
    Ok(Duration::from_millis(used * 1_000 / TICKS))
}

/// Those that took longest, and those that reckoned longest.
fn slowest(mut programs: Vec<Took>) -> String {
    let line = |time: Duration, name: &str| format!("\n{:7.1} s {name}", time.as_secs_f64());
    programs.sort_by_key(|program| Reverse(program.took));
    let longest = programs.iter().take(SLOWEST);
    let longest: String = longest.map(|one| line(one.took, &one.name)).collect();
    programs.sort_by_key(|program| Reverse(program.busy));
    let busiest = programs.iter().take(SLOWEST);
    let busiest: String = busiest.map(|one| line(one.busy, &one.name)).collect();
    let all: Duration = programs.iter().map(|program| program.busy).sum();
    let all = line(all, "all");
    format!("\n== those that took longest{longest}\n== processor time{busiest}{all}\n")
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
        let ran = run(jobs, 2, &|text| locked(&told).push_str(text)).unwrap();
        assert_eq!(ran.counts.to_string(), "3 passed, 4 failed, 0 skipped");
        assert_eq!(ran.failed.len(), 2);
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
        assert_eq!(run(jobs, 2, &|_| ()).unwrap().counts.passed, 2);
    }

    #[test]
    fn both_outputs_are_kept_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three"]);
        let ended = output(&mut command).unwrap();
        assert!(ended.status.success());
        assert_eq!(ended.text, "one\ntwo\nthree\n");
    }

    #[test]
    fn processor_time_is_a_childs_too() {
        let mut command = Command::new("sh");
        let reckon = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        command.args(["-c", &format!("sh -c '{reckon}'")]);
        let ended = output(&mut command).unwrap();
        assert!(ended.status.success());
        assert!(ended.busy > Duration::ZERO);
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
