//! Waiting with a deadline. Called by tests instead of a sleep.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Asks `check` every 10 ms until it gives a value, `patience` at most.
/// The error names `what` was waited for.
pub fn wait_until<T>(
    patience: Duration,
    what: &str,
    mut check: impl FnMut() -> Option<T>,
) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = check() {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("waited {} s in vain for: {what}", patience.as_secs_f32());
        }
        sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_value_and_names_what_did_not_come() {
        let mut calls = 0;
        let value = wait_until(Duration::from_secs(60), "the third call", || {
            calls += 1;
            (calls == 3).then_some(calls)
        });
        assert_eq!(value.unwrap(), 3);
        let never = wait_until(Duration::ZERO, "a miracle", || None::<()>);
        assert!(never.unwrap_err().to_string().contains("a miracle"));
    }
}
