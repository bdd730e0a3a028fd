//! The time before an event, as `ip -t` and `ip -ts` write it. Called by
//! [`super::monitor`].

use std::time::{SystemTime, UNIX_EPOCH};

use tz::{DateTime, TimeZone};

use super::options::Options;

/// How times are written.
pub struct Stamp {
    wanted: Wanted,
    zone: TimeZone,
}

enum Wanted {
    None,
    Long,
    Short,
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl Stamp {
    /// As the options say, in the time of this machine's place.
    pub fn new(options: &Options) -> Self {
        Self {
            wanted: match (options.timestamp, options.short_timestamp) {
                (false, _) => Wanted::None,
                (true, false) => Wanted::Long,
                (true, true) => Wanted::Short,
            },
            zone: TimeZone::local().unwrap_or_else(|_| TimeZone::utc()),
        }
    }

    /// Now, if it is wanted; with what stands behind it.
    pub fn now(&self) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default();
        self.text(since.as_secs().cast_signed(), since.subsec_micros())
    }

    fn text(&self, seconds: i64, micros: u32) -> String {
        let time = DateTime::from_timespec(seconds, 0, self.zone.as_ref());
        let Ok(time) = time else {
            return String::new();
        };
        let (year, month, day) = (time.year(), time.month(), time.month_day());
        let clock = format!(
            "{:02}:{:02}:{:02}",
            time.hour(),
            time.minute(),
            time.second()
        );
        match self.wanted {
            Wanted::None => String::new(),
            Wanted::Short => format!("[{year:04}-{month:02}-{day:02}T{clock}.{micros:06}] "),
            Wanted::Long => {
                let name = |names: &[&'static str], at: u8| {
                    names.get(usize::from(at)).copied().unwrap_or("???")
                };
                let week_day = name(&DAYS, time.week_day());
                let month = name(&MONTHS, month.saturating_sub(1));
                format!("Timestamp: {week_day} {month} {day:2} {clock} {year} {micros} usec\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(wanted: Wanted, hours: i32) -> Stamp {
        let zone = TimeZone::fixed(hours * 3600).unwrap();
        Stamp { wanted, zone }
    }

    #[test]
    fn times_are_written_in_the_time_of_the_place() {
        let at = 1_780_000_005;
        let long = stamp(Wanted::Long, 0).text(at, 42);
        assert_eq!(long, "Timestamp: Thu May 28 20:26:45 2026 42 usec\n");
        let early = stamp(Wanted::Long, 0).text(1_772_409_600, 7);
        assert_eq!(early, "Timestamp: Mon Mar  2 00:00:00 2026 7 usec\n");
        let short = stamp(Wanted::Short, 5).text(at, 42);
        assert_eq!(short, "[2026-05-29T01:26:45.000042] ");
        assert_eq!(stamp(Wanted::None, 0).text(at, 42), "");
    }
}
