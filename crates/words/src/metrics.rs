//! The metrics of a route in `ip`'s words: `mtu lock 1400`, `rtt 12ms`,
//! `features ecn`. Called by the reader of routes.

use table::row::route_metrics::{CONGESTION, feature};
use table::{Metric, RouteMetrics};

use crate::line::{ParseError, Words, number, wrong};

/// The metrics that are plain numbers, by `ip`'s names.
const NUMBERS: &[(&str, Metric)] = &[
    ("mtu", Metric::Mtu),
    ("window", Metric::Window),
    ("ssthresh", Metric::SsThresh),
    ("cwnd", Metric::Cwnd),
    ("advmss", Metric::AdvMss),
    ("reordering", Metric::Reordering),
    ("hoplimit", Metric::HopLimit),
    ("initcwnd", Metric::InitCwnd),
    ("initrwnd", Metric::InitRwnd),
    ("quickack", Metric::QuickAck),
    ("fastopen_no_cookie", Metric::FastOpenNoCookie),
];

/// Those that are times, and in how many parts of a millisecond the kernel
/// keeps them.
const TIMES: &[(&str, Metric, u32)] = &[
    ("rtt", Metric::Rtt, 8),
    ("rttvar", Metric::RttVar, 4),
    ("rto_min", Metric::RtoMin, 1),
];

/// What a connection over the route may do, by `ip`'s names.
const FEATURES: [(&str, u32); 4] = [
    ("ecn", feature::ECN),
    ("sack", feature::SACK),
    ("timestamp", feature::TIMESTAMP),
    ("allfrag", feature::ALLFRAG),
];

/// Takes the value of a metric; `None`: the word is none.
pub fn read(
    word: &str,
    words: &mut Words<'_>,
    to: &mut RouteMetrics,
) -> Result<Option<()>, ParseError> {
    if word == "features" {
        return features(word, words, to).map(Some);
    }
    let plain = NUMBERS.iter().find(|(name, _)| *name == word);
    let time = TIMES.iter().find(|(name, ..)| *name == word);
    let metric = match (plain, time, word) {
        (Some((_, metric)), ..) | (_, Some((_, metric, _)), _) => metric.number(),
        (None, None, "congctl" | "congestion") => CONGESTION,
        _ => return Ok(None),
    };
    if words.peek() == Some("lock") {
        words.next();
        to.locked |= 1 << metric;
    }
    match (plain, time) {
        (Some((_, metric)), _) => to.set(*metric, plain_number(word, *metric, words)?),
        (None, Some((_, metric, parts))) => {
            // As `ip`: whoever sets it means it.
            if *metric == Metric::RtoMin {
                to.locked |= 1 << metric.number();
            }
            let value = time_of(word, words.value(word)?, *parts)?;
            to.set(*metric, value);
        }
        (None, None) => to.congestion = Some(words.value(word)?.into()),
    }
    Ok(Some(()))
}

/// A number; a hop limit may be -1, for none.
fn plain_number(word: &str, metric: Metric, words: &mut Words<'_>) -> Result<u32, ParseError> {
    if metric == Metric::HopLimit && words.peek() == Some("-1") {
        words.next();
        return Ok(u32::MAX);
    }
    let value = words.number(word)?;
    match metric {
        Metric::QuickAck | Metric::FastOpenNoCookie if value > 1 => {
            Err(wrong(word, value, "0 or 1"))
        }
        _ => Ok(value),
    }
}

/// `1.5s`, `250ms`, or a number as the kernel keeps it.
fn time_of(word: &str, text: &str, parts: u32) -> Result<u32, ParseError> {
    let expected = || wrong(word, text, "a time, like 250ms or 1.5s,");
    if let Some(kept) = number(text) {
        return Ok(kept);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic());
    let (digits, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let millis = match unit {
        "s" | "sec" | "secs" => 1000.0,
        "ms" | "msec" | "msecs" => 1.0,
        // Without a unit, with a point: as the kernel keeps it, rounded up.
        "" => 1.0 / f64::from(parts),
        _ => return Err(expected()),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = digits.parse().map_err(|_| expected())?;
    let value = (value * millis).ceil() * f64::from(parts);
    match is_number && (0.0..=f64::from(u32::MAX)).contains(&value) {
        true => Ok(value as u32),
        false => Err(expected()),
    }
}

/// One or more, until a word is none.
fn features(word: &str, words: &mut Words<'_>, to: &mut RouteMetrics) -> Result<(), ParseError> {
    let first = words.value(word)?;
    let bit = |name: &str| {
        let known = FEATURES.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, bit)| *bit)
            .or_else(|| name.strip_prefix("0x").and_then(|_| number(name)))
    };
    let mut bits = to.get(Metric::Features).unwrap_or(0);
    bits |= bit(first).ok_or_else(|| wrong(word, first, "ecn, sack, timestamp or allfrag"))?;
    while let Some(more) = words.peek().and_then(bit) {
        words.next();
        bits |= more;
    }
    to.set(Metric::Features, bits);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(line: &str) -> Result<RouteMetrics, ParseError> {
        let mut words = Words::new(line);
        let mut to = RouteMetrics::default();
        while let Some(word) = words.next() {
            if read(word, &mut words, &mut to)?.is_none() {
                return Err(word.to_owned());
            }
        }
        Ok(to)
    }

    #[test]
    fn times_are_kept_in_parts_of_a_millisecond() {
        for (line, metric, value) in [
            ("rtt 100", Metric::Rtt, 100),
            ("rtt 12ms", Metric::Rtt, 96),
            ("rtt 1.5s", Metric::Rtt, 12_000),
            ("rttvar 5ms", Metric::RttVar, 20),
            ("rto_min 200ms", Metric::RtoMin, 200),
            ("rto_min lock 1sec", Metric::RtoMin, 1000),
        ] {
            assert_eq!(metrics(line).unwrap().get(metric), Some(value), "{line}");
        }
        for line in [
            "rtt x",
            "rtt ms",
            "rtt 5h",
            "rtt -1ms",
            "rtt 99999999s",
            "rtt",
        ] {
            assert!(metrics(line).is_err(), "{line}");
        }
        assert!(metrics("rto_min 1ms").unwrap().is_locked(13));
    }

    #[test]
    fn features_and_congestion_control() {
        let read = metrics("features ecn sack 0x40 congctl lock reno quickack 1").unwrap();
        assert_eq!(read.get(Metric::Features), Some(0x43));
        assert_eq!(read.congestion.as_deref(), Some("reno"));
        assert!(read.is_locked(CONGESTION));
        assert!(metrics("features nope").is_err());
        assert!(metrics("quickack 2").is_err());
        assert!(metrics("nope 2").is_err());
        let none = metrics("hoplimit -1").unwrap();
        assert_eq!(none.get(Metric::HopLimit), Some(u32::MAX));
    }
}
