//! A table that changes while the kernel lists it is listed again, with
//! growing pauses and for a bounded time: after links were made their IPv6
//! addresses and routes still come for a while. Called by whoever wants a
//! table as it is at one moment.

use std::time::Duration;

use anyhow::Result;
use linux::error::Error;

use crate::complaint::complain;

/// So often it is listed again at once.
const AT_ONCE: usize = 3;
/// The first pause after that, the longest, and all of them together.
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);
const IN_ALL: Duration = Duration::from_secs(10);
/// Whoever waits so long is told why.
const TOLD_FROM: Duration = Duration::from_millis(320);

/// Reads until nothing changed meanwhile, for ten seconds of pauses at most.
pub fn patiently<T>(read: &mut dyn FnMut() -> Result<T>) -> Result<T> {
    waiting(read, &mut std::thread::sleep, &mut |why| complain(why))
}

fn waiting<T>(
    read: &mut dyn FnMut() -> Result<T>,
    sleep: &mut dyn FnMut(Duration),
    tell: &mut dyn FnMut(&str),
) -> Result<T> {
    let mut is_told = false;
    for pause in pauses() {
        let done = read();
        let Some(what) = done.as_ref().err().and_then(restless) else {
            return done;
        };
        if pause >= TOLD_FROM && !is_told {
            is_told = true;
            let most = IN_ALL.as_secs();
            tell(&format!(
                "{what} keep changing while they are read; waiting, {most} s at most"
            ));
        }
        sleep(pause);
    }
    read()
}

/// The pauses between two readings.
fn pauses() -> impl Iterator<Item = Duration> {
    let growing = std::iter::successors(Some(FIRST), |pause| Some((*pause * 2).min(LONGEST)));
    let mut left = IN_ALL;
    let growing = growing.map_while(move |pause| {
        left = left.checked_sub(pause)?;
        Some(pause)
    });
    std::iter::repeat_n(Duration::ZERO, AT_ONCE).chain(growing)
}

/// What changed, if that is why a table could not be read.
fn restless(error: &anyhow::Error) -> Option<&'static str> {
    error
        .chain()
        .find_map(|cause| match cause.downcast_ref::<Error>() {
            Some(Error::Restless { what }) => Some(*what),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    /// Reads a table that is restless so often.
    fn read(restless: usize) -> (Result<usize>, Duration, Vec<String>) {
        let (mut readings, mut slept, mut told) = (0, Duration::ZERO, Vec::new());
        let result = waiting(
            &mut || {
                readings += 1;
                match readings > restless {
                    true => Ok(readings),
                    false => Err(Error::Restless { what: "routes" }).context("reading a table"),
                }
            },
            &mut |pause| slept += pause,
            &mut |why| told.push(why.to_owned()),
        );
        (result, slept, told)
    }

    #[test]
    fn it_is_read_again_until_it_is_quiet() {
        let (result, slept, told) = read(0);
        assert_eq!((result.unwrap(), slept), (1, Duration::ZERO));
        assert!(told.is_empty());
        // At once first, and nobody is told.
        let (result, slept, told) = read(AT_ONCE);
        assert_eq!((result.unwrap(), slept), (AT_ONCE + 1, Duration::ZERO));
        assert!(told.is_empty());
        // A while later it is told, once.
        let (result, slept, told) = read(AT_ONCE + 10);
        assert_eq!(result.unwrap(), AT_ONCE + 11);
        assert!(slept > Duration::from_secs(1) && slept < IN_ALL);
        assert_eq!(
            told,
            ["routes keep changing while they are read; waiting, 10 s at most"]
        );
    }

    #[test]
    fn it_does_not_wait_for_ever() {
        let most = pauses().count();
        let (result, slept, _) = read(most);
        assert_eq!(result.unwrap(), most + 1);
        assert!(slept <= IN_ALL && slept > IN_ALL - LONGEST, "{slept:?}");
        let (result, _, told) = read(most + 1);
        let why = format!("{:#}", result.unwrap_err());
        assert!(
            why.contains("routes keep changing while they are listed"),
            "{why}"
        );
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn another_failure_is_told_at_once() {
        let mut readings = 0;
        let result: Result<()> = patiently(&mut || {
            readings += 1;
            Err(anyhow!("no"))
        });
        assert_eq!(
            (result.unwrap_err().to_string(), readings),
            ("no".to_owned(), 1)
        );
    }
}
