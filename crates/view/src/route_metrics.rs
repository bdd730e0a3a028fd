//! The metrics of a route as `ip route` shows them.

use table::row::route_metrics::{CONGESTION, feature};
use table::{Metric, RouteMetrics};

use crate::context::View;
use crate::fields::{Value, Visit};
use crate::format::{push_hex, push_u64};

/// The names of the metrics by their numbers, from `RTAX_MTU`: as text and
/// as JSON key.
const NAMES: [(&str, &str); 16] = [
    ("mtu", "mtu"),
    ("window", "window"),
    ("rtt", "rtt"),
    ("rttvar", "rttvar"),
    ("ssthresh", "ssthresh"),
    ("cwnd", "cwnd"),
    ("advmss", "advmss"),
    ("reordering", "reordering"),
    ("hoplimit", "hoplimit"),
    ("initcwnd", "initcwnd"),
    ("features", "features"),
    ("rto_min", "rto_min"),
    ("initrwnd", "initrwnd"),
    ("quickack", "quickack"),
    ("congctl", "congestion"),
    ("fastopen_no_cookie", "fastopen_no_cookie"),
];

const FEATURE_NAMES: [(u32, &str); 4] = [
    (feature::ECN, "ecn"),
    (feature::SACK, "sack"),
    (feature::TIMESTAMP, "timestamp"),
    (feature::ALLFRAG, "allfrag"),
];

enum Shown<'a> {
    Number(u32),
    /// A hop limit that is all ones stands for none.
    NoLimit,
    Millis(u32),
    Features(u32),
    Word(&'a str),
}

fn shown(metric: Metric, value: u32) -> Shown<'static> {
    match metric {
        // Kept as eighths and quarters of a millisecond.
        Metric::Rtt => Shown::Millis(value / 8),
        Metric::RttVar => Shown::Millis(value / 4),
        Metric::RtoMin => Shown::Millis(value),
        Metric::Features => Shown::Features(value),
        Metric::HopLimit if value == u32::MAX => Shown::NoLimit,
        _ => Shown::Number(value),
    }
}

/// Calls with names, whether it is locked, and the value of each metric
/// that is set, by their numbers.
fn each<'a>(
    metrics: &'a RouteMetrics,
    mut each: impl FnMut((&'static str, &'static str), bool, Shown<'a>),
) {
    for (number, names) in (Metric::Mtu.number()..).zip(NAMES) {
        let value = match Metric::of_number(number) {
            Some(metric) => metrics.get(metric).map(|value| shown(metric, value)),
            None if number == CONGESTION => metrics.congestion.as_deref().map(Shown::Word),
            None => None,
        };
        if let Some(value) = value {
            each(names, metrics.is_locked(number), value);
        }
    }
}

/// All as one object in a list, as `ip -j` has it; and, where it is asked
/// for, which of them path discovery may not change.
#[inline]
pub(crate) fn metric_fields(
    metrics: Option<&RouteMetrics>,
    view: &View<'_>,
    visit: &mut impl Visit,
) {
    let Some(metrics) = metrics else {
        return;
    };
    visit.list("metrics");
    visit.object_item();
    each(metrics, |(_, key), _, value| match value {
        Shown::NoLimit => visit.value(key, Value::Signed(-1)),
        Shown::Number(value) | Shown::Millis(value) => {
            visit.value(key, Value::Number(value.into()));
        }
        Shown::Word(word) => visit.value(key, Value::Text(word)),
        Shown::Features(bits) => {
            for (bit, name) in FEATURE_NAMES {
                if bits & bit != 0 {
                    visit.value(name, Value::Present);
                }
            }
        }
    });
    if view.locks && metrics.locked != 0 {
        visit.list("locked");
        each(metrics, |(_, key), is_locked, _| {
            if is_locked {
                visit.item(Value::Text(key));
            }
        });
        visit.end_list();
    }
    visit.end_item();
    visit.end_list();
}

/// Each as `name [lock] value `.
#[inline]
pub(crate) fn metric_text(metrics: Option<&RouteMetrics>, out: &mut Vec<u8>) {
    let Some(metrics) = metrics else {
        return;
    };
    each(metrics, |(name, _), locked, value| {
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
        if locked {
            out.extend_from_slice(b"lock ");
        }
        match value {
            Shown::NoLimit => out.extend_from_slice(b"-1"),
            Shown::Number(value) => push_u64(out, value.into()),
            Shown::Millis(value) => push_millis(out, value.into()),
            Shown::Word(word) => out.extend_from_slice(word.as_bytes()),
            Shown::Features(bits) => return push_features(out, bits),
        }
        out.push(b' ');
    });
}

/// `250ms`, `1.5s`.
fn push_millis(out: &mut Vec<u8>, millis: u64) {
    if millis < 1000 {
        push_u64(out, millis);
        return out.extend_from_slice(b"ms");
    }
    push_u64(out, millis / 1000);
    let fraction = (millis % 1000) as u16;
    let digits = [fraction / 100, fraction / 10 % 10, fraction % 10];
    let shown = digits.iter().rposition(|d| *d != 0).map_or(0, |at| at + 1);
    if shown > 0 {
        out.push(b'.');
        out.extend(digits[..shown].iter().map(|d| b'0' + *d as u8));
    }
    out.push(b's');
}

fn push_features(out: &mut Vec<u8>, bits: u32) {
    let mut rest = bits;
    for (bit, name) in FEATURE_NAMES {
        if bits & bit != 0 {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
            rest &= !bit;
        }
    }
    if rest != 0 {
        out.extend_from_slice(b"0x");
        push_hex(out, rest.into());
        out.push(b' ');
    }
}
