//! Tests that failed beside others, once more with the host for themselves.
//! Called by `test`. Why: docs/decisions/100-once-more-alone.md.

use super::counts::Counts;
use super::pool::{self, Job};

/// So many tests of a run are taken for a busy machine's at most. More of
/// them are a fault, whatever they do alone.
const MOST: usize = 3;

/// A program in which tests failed.
#[derive(Debug)]
pub struct Failed {
    pub job: Job,
    /// Their names; `None` where the program died before it named them.
    pub tests: Option<Vec<String>>,
}

impl Failed {
    /// What failed, as a program's output names it.
    pub fn of(job: Job, output: &str, counts: &Counts) -> Self {
        let tests: Vec<String> = output.lines().filter_map(failure).collect();
        Self {
            job,
            tests: (tests.len() == counts.failed).then_some(tests),
        }
    }
}

/// The name in a line such as `test lines::one ... FAILED`.
fn failure(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some(name.to_owned())
}

/// Runs them again, one after the other, and takes those that pass then
/// from the failed. Each of them is named.
pub fn alone(
    failed: Vec<Failed>,
    counts: &mut Counts,
    tell: &(dyn Fn(&str) + Sync),
) -> anyhow::Result<()> {
    if counts.failed > MOST || failed.iter().any(|one| one.tests.is_none()) {
        return Ok(());
    }
    for Failed { mut job, tests } in failed {
        let tests = tests.unwrap_or_default();
        let name = job.name.clone();
        job.command.args(["--test-threads", "1", "--exact"]);
        job.command.args(&tests);
        job.name = format!("{name}, once more and alone");
        let second = pool::run(vec![job], 1, tell)?.counts;
        if second.failed > 0 || second.passed + second.skipped < tests.len() {
            continue;
        }
        counts.failed -= tests.len();
        counts.passed += tests.len();
        for test in tests {
            tell(&format!(
                "FAILED BESIDE OTHERS, passed alone: {name}: {test}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Mutex;

    use super::*;

    /// A test program: it says `first`, and what `second` says when it is
    /// asked for single tests.
    fn failed(name: &str, tests: Option<&[&str]>, second: &str) -> Failed {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo \"$@\"; {second}"), "sh"]);
        let job = Job {
            name: name.to_owned(),
            alone: false,
            command,
        };
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Failed {
            job,
            tests: tests.map(own),
        }
    }

    const PASSES: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
    const FAILS: &str = "echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101";
    const NONE: &str = "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'";

    /// What is counted after, of ten that passed and so many that failed.
    fn after(failures: usize, failed: Vec<Failed>) -> (String, String) {
        let mut counts = Counts {
            passed: 10,
            failed: failures,
            skipped: 0,
        };
        let told = Mutex::new(String::new());
        let tell = |text: &str| told.lock().unwrap().push_str(text);
        alone(failed, &mut counts, &tell).unwrap();
        (counts.to_string(), told.into_inner().unwrap())
    }

    #[test]
    fn the_failed_are_named_as_a_program_names_them() {
        let output = "test a::one ... ok\ntest a::two ... FAILED\n\
                      test a::three - should panic ... FAILED\n\nfailures:\n    a::two\n";
        let counts = |failed| Counts {
            passed: 1,
            failed,
            skipped: 0,
        };
        let job = || failed("one", None, PASSES).job;
        let of = Failed::of(job(), output, &counts(2));
        assert_eq!(of.tests.unwrap(), ["a::two", "a::three"]);
        // It died, or its threads wrote into one another's lines.
        assert!(Failed::of(job(), output, &counts(3)).tests.is_none());
    }

    #[test]
    fn one_that_passes_alone_has_passed_and_is_named() {
        let (counts, told) = after(1, vec![failed("one", Some(&["a::two"]), PASSES)]);
        assert_eq!(counts, "11 passed, 0 failed, 0 skipped");
        assert!(told.contains("--test-threads 1 --exact a::two"), "{told}");
        let named = "FAILED BESIDE OTHERS, passed alone: one: a::two";
        assert!(told.contains(named), "{told}");
    }

    #[test]
    fn one_that_fails_again_or_does_not_run_has_failed() {
        for second in [FAILS, NONE, "kill -9 $$"] {
            let (counts, told) = after(1, vec![failed("one", Some(&["a"]), second)]);
            assert_eq!(counts, "10 passed, 1 failed, 0 skipped", "{second}");
            assert!(!told.contains("passed alone"), "{told}");
        }
        // Beside one that passes.
        let both = vec![
            failed("one", Some(&["a"]), PASSES),
            failed("two", Some(&["b"]), FAILS),
        ];
        assert_eq!(after(2, both).0, "11 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn many_or_a_dead_program_are_not_run_again() {
        let (most, more) = (MOST, MOST + 1);
        for (failures, expected) in [
            (most, "13 passed, 0 failed, 0 skipped"),
            (more, "10 passed, 4 failed, 0 skipped"),
        ] {
            let all = (0..failures).map(|_| failed("one", Some(&["a"]), PASSES));
            assert_eq!(after(failures, all.collect()).0, expected);
        }
        let (counts, told) = after(1, vec![failed("one", None, PASSES)]);
        assert_eq!(
            (counts.as_str(), told.as_str()),
            ("10 passed, 1 failed, 0 skipped", "")
        );
    }
}
