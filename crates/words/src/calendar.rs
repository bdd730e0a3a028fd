//! Times as RFC 3339 writes them, and the seconds since 1970 that they
//! stand for. Called by the replay, which is told how far to go and says
//! when a recording began, and by what a NAT writes for the record.

use toml::value::{Datetime, Offset};

const DAY: i64 = 86_400;

/// Microseconds since 1970 of a time with its zone, such as
/// `2026-11-22T03:15:00Z` or `2026-11-22T04:15:00+01:00`.
pub fn parse(text: &str) -> Option<u64> {
    let Datetime { date, time, offset } = text.parse().ok()?;
    let (date, time) = (date?, time?);
    let days = days(date.year.into(), date.month.into(), date.day.into());
    let minutes = i64::from(time.hour) * 60 + i64::from(time.minute);
    let ahead = match offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let second = i64::from(time.second.unwrap_or(0));
    let seconds = days * DAY + (minutes - ahead) * 60 + second;
    let micros = u64::from(time.nanosecond.unwrap_or(0) / 1_000);
    Some(u64::try_from(seconds).ok()? * 1_000_000 + micros)
}

/// The time so many seconds after 1970, such as `2026-11-22T03:15:00Z`.
pub fn text(seconds: u64) -> String {
    let day = DAY.unsigned_abs();
    let (year, month, of_month) = date((seconds / day).cast_signed());
    let second = seconds % day;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days from 1970 to a date. Years are counted from March, so that the
/// leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March on, months have 31, 30, 31, 30, 31 days, again and again.
    year * 365 + leap + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// The date so many days after 1970: year, month, day.
fn date(days: i64) -> (i64, i64, i64) {
    // At most one year early: 146,097 days are 400 years.
    let mut year = 1969 + days * 400 / 146_097;
    while self::days(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (2..=12)
        .rev()
        .find(|&month| self::days(year, month, 1) <= days);
    let month = month.unwrap_or(1);
    (year, month, days - self::days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_317_300, "2026-11-22T03:15:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(text(seconds), written);
            assert_eq!(parse(written), Some(seconds * 1_000_000), "{written}");
        }
    }

    #[test]
    fn zones_and_parts_of_a_second() {
        let time = parse("2026-11-22T03:15:00Z").unwrap();
        assert_eq!(parse("2026-11-22T04:15:00+01:00"), Some(time));
        assert_eq!(parse("2026-11-21 22:15:00-05:00"), Some(time));
        assert_eq!(parse("2026-11-22T03:15:00.25Z"), Some(time + 250_000));
    }

    #[test]
    fn every_day_of_four_centuries_has_its_date() {
        for day in 0..146_097 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
            assert!((1..=12).contains(&month) && (1..=31).contains(&of_month));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "",
            "soon",
            "2026-11-22",
            "03:15:00",
            "2026-11-22T03:15:00",
            "2026-02-30T00:00:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
