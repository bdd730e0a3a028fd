//! What came of the tests, as the test programs say it. Called by `test`.

use std::collections::BTreeMap;
use std::fmt;

use crate::host::say;

/// Numbers of tests.
#[derive(Debug, Default, PartialEq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Counts {
    /// What a program said, and whether it ended well. One that ends badly
    /// without counting a failure died: that is a failure.
    pub fn of(output: &str, is_success: bool) -> Self {
        let mut counts = Self::default();
        for line in output.lines() {
            counts.add(line);
        }
        if !is_success && counts.failed == 0 {
            counts.failed = 1;
        }
        counts
    }

    /// The sum of both.
    pub fn and(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds up a line such as
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let (_, numbers) = result.split_once(". ").unwrap_or_default();
        for part in numbers.split("; ") {
            let (number, what) = part.split_once(' ').unwrap_or_default();
            let number: usize = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => (),
            }
        }
    }

    /// Moves the tests that said they were skipped from the passed, and
    /// lists them by reason.
    pub fn set_apart(&mut self, lines: &str) {
        let mut tests: BTreeMap<&str, &str> = BTreeMap::new();
        for line in lines.lines() {
            let (test, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
            tests.entry(test).or_insert(reason);
        }
        for (test, reason) in &tests {
            say(format_args!("SKIPPED {test}: {reason}"));
        }
        self.passed = self.passed.saturating_sub(tests.len());
        self.skipped += tests.len();
    }
}

/// The closing line.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn counts_add_up_and_the_skipped_are_not_passed() {
        let first = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\ntest something ... ok\n";
        let mut sum = Counts::of(first, true);
        let second =
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out";
        sum.and(&Counts::of(second, false));
        assert_eq!(sum, counts(5, 1, 1));
        // One test may give several reasons; it is one test.
        sum.set_apart("a::b\tno root\na::b\tno namespace\nc\tno root\n");
        assert_eq!(sum, counts(3, 1, 3));
        assert_eq!(sum.to_string(), "3 passed, 1 failed, 3 skipped");
    }

    #[test]
    fn a_program_that_dies_before_it_counts_has_failed() {
        assert_eq!(Counts::of("running 3 tests\n", false), counts(0, 1, 0));
        assert_eq!(Counts::of("", true), counts(0, 0, 0));
    }
}
