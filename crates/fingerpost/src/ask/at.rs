//! The time that a question is about: `--at`.

use std::time::{SystemTime, UNIX_EPOCH};

use tz::{DateTime, TimeZone, TimeZoneRef};
use words::calendar;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// What is a time, for who wrote none.
const TIMES: &str = "14:05 or 14:05:30 (the last time that it was), `yesterday 14:05`, \
                     2026-11-22T03:15:00Z, @SECONDS since 1970, or -10m (of s, m, h, d)";

/// Microseconds since the UNIX epoch of a time, as it is written by people
/// of this machine's place.
pub fn at(text: &str) -> Result<u64, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| since.as_micros() as u64);
    let zone = TimeZone::local().unwrap_or_else(|_| TimeZone::utc());
    let at = at_of(text, now, zone.as_ref())?;
    match at > now {
        true => Err(format!("`{text}` is still to come")),
        false => Ok(at),
    }
}

fn at_of(text: &str, now: u64, zone: TimeZoneRef<'_>) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time: {TIMES}");
    let of_epoch = |seconds: &str| {
        let seconds: f64 = seconds.parse().ok()?;
        (0.0..1e12)
            .contains(&seconds)
            .then_some((seconds * 1e6) as u64)
    };
    if let Some(ago) = text.strip_prefix('-') {
        return ago_of(ago)
            .and_then(|ago| now.checked_sub(ago))
            .ok_or_else(wrong);
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return of_epoch(seconds).ok_or_else(wrong);
    }
    if text == "now" {
        return Ok(now);
    }
    let day = |text: &str| match text.split_once(' ') {
        Some(("today", clock)) => Some((Some(0), clock_of(clock.trim())?)),
        Some(("yesterday", clock)) => Some((Some(1), clock_of(clock.trim())?)),
        _ => Some((None, clock_of(text)?)),
    };
    if let Some((days_ago, clock)) = day(text) {
        let now_secs = (now / 1_000_000).cast_signed();
        return on_day(clock, days_ago, now_secs, zone).ok_or_else(wrong);
    }
    calendar::parse(text).ok_or_else(wrong)
}

/// `90`, `10m`, `1h30m`: microseconds.
fn ago_of(text: &str) -> Option<u64> {
    let (mut rest, mut seconds) = (text, 0_u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let unit = behind.chars().next().unwrap_or('s');
        let of_unit = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => DAY.unsigned_abs(),
            _ => return None,
        };
        let number: u64 = number.parse().ok()?;
        seconds = seconds.checked_add(number.checked_mul(of_unit)?)?;
        rest = behind.get(unit.len_utf8()..).unwrap_or("");
    }
    seconds.checked_mul(1_000_000)
}

/// Hour, minute, second.
fn clock_of(text: &str) -> Option<(u8, u8, u8)> {
    let mut parts = text.split(':');
    let mut part = |most: u8| {
        let text = parts.next()?;
        let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|one| one.is_ascii_digit());
        let number: u8 = is_number.then(|| text.parse().ok())??;
        (number <= most).then_some(number)
    };
    let (hour, minute) = (part(23)?, part(59)?);
    let second = match text.matches(':').count() {
        1 => 0,
        2 => part(59)?,
        _ => return None,
    };
    Some((hour, minute, second))
}

/// The last time that a clock showed this, or on a day: that of today is
/// yesterday's where it is still to come. Of two on one day, because clocks
/// were set back, the later.
fn on_day(
    clock: (u8, u8, u8),
    days_ago: Option<i64>,
    now: i64,
    zone: TimeZoneRef<'_>,
) -> Option<u64> {
    let days = match days_ago {
        Some(one) => one..=one,
        None => 0..=2,
    };
    let mut found = days.filter_map(|days| {
        // Noon is on its day, whatever the clocks of the place do.
        let today = DateTime::from_timespec(now, 0, zone).ok()?;
        let noon = now - i64::from(today.hour()) * 3_600 + DAY / 2 - days * DAY;
        let day = DateTime::from_timespec(noon, 0, zone).ok()?;
        let (hour, minute, second) = clock;
        let (year, month, of_month) = (day.year(), day.month(), day.month_day());
        let found = DateTime::find(year, month, of_month, hour, minute, second, 0, zone);
        Some(found.ok()?.latest()?.unix_time())
    });
    let at = found.find(|at| days_ago.is_some() || *at <= now)?;
    u64::try_from(at).ok()?.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-05-28T20:26:45Z.
    const NOW: u64 = 1_780_000_005;

    fn seconds(text: &str, hours_east: i32) -> Result<u64, String> {
        let zone = TimeZone::fixed(hours_east * 3_600).unwrap();
        at_of(text, NOW * 1_000_000, zone.as_ref()).map(|micros| micros / 1_000_000)
    }

    fn utc(text: &str) -> u64 {
        calendar::parse(text).unwrap() / 1_000_000
    }

    #[test]
    fn a_clock_time_is_the_last_time_that_it_was() {
        for (text, hours, is) in [
            ("20:26", 0, "2026-05-28T20:26:00Z"),
            ("20:26:45", 0, "2026-05-28T20:26:45Z"),
            ("20:26:46", 0, "2026-05-27T20:26:46Z"),
            ("9:5", 0, "2026-05-28T09:05:00Z"),
            ("yesterday 20:26", 0, "2026-05-27T20:26:00Z"),
            ("today 20:30", 0, "2026-05-28T20:30:00Z"),
            // There it is 2026-05-29T06:26:45.
            ("06:00", 10, "2026-05-28T20:00:00Z"),
            ("20:00", 10, "2026-05-28T10:00:00Z"),
            ("yesterday 20:00", 10, "2026-05-28T10:00:00Z"),
            ("23:00", -10, "2026-05-28T09:00:00Z"),
        ] {
            assert_eq!(seconds(text, hours), Ok(utc(is)), "{text}");
        }
    }

    #[test]
    fn so_long_ago_and_times_with_their_day() {
        for (text, ago) in [
            ("-0", 0),
            ("-10m", 600),
            ("-1h30m5", 5_405),
            ("-2d", 172_800),
        ] {
            assert_eq!(seconds(text, 3), Ok(NOW - ago), "{text}");
        }
        let written = "2026-05-01T02:03:04+02:00";
        assert_eq!(seconds(written, 0), Ok(utc(written)));
        assert_eq!(seconds("@1000", 0), Ok(1_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "",
            "-",
            "-m",
            "-1w",
            "-99999999999999999999s",
            "24:00",
            "12:60",
            "12",
            "1:2:3:4",
            "123:00",
            "12:+5",
            "tomorrow 12:00",
            "yesterday",
            "@",
            "@-1",
            "soon",
        ] {
            assert!(seconds(wrong, 0).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_hour_that_came_twice_is_the_later() {
        // Central Europe, 2026-10-25: from 03:00 back to 02:00 at 01:00 UTC.
        let zone = TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3");
        let Ok(zone) = zone else { panic!("{zone:?}") };
        let now = utc("2026-10-25T12:00:00Z") * 1_000_000;
        let at = at_of("02:30", now, zone.as_ref()).unwrap() / 1_000_000;
        assert_eq!(at, utc("2026-10-25T01:30:00Z"));
        let spring = utc("2026-03-29T12:00:00Z") * 1_000_000;
        let before = at_of("01:30", spring, zone.as_ref()).unwrap() / 1_000_000;
        assert_eq!(before, utc("2026-03-29T00:30:00Z"));
    }
}
