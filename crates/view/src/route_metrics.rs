//! The metrics of a route (`RTA_METRICS`) as `ip route` shows them.

use netlink::attribute;
use table::RawAttributes;

use crate::attributes::{number, text};
use crate::fields::{Value, Visit};
use crate::format::{push_hex, push_u64};

const LOCK: u16 = 1;
const RTT: u16 = 4;
const RTTVAR: u16 = 5;
const HOPLIMIT: u16 = 10;
const FEATURES: u16 = 12;
const RTO_MIN: u16 = 13;
const CC_ALGO: u16 = 16;

/// `RTAX_…` of `linux/rtnetlink.h` by number, as text and as JSON key.
const METRICS: [(&str, &str); 18] = [
    ("", ""),
    ("lock", "lock"),
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

/// `RTAX_FEATURE_…`.
const FEATURE_NAMES: [(u64, &str); 4] = [(1, "ecn"), (2, "sack"), (4, "timestamp"), (8, "allfrag")];

enum Metric<'a> {
    Number(u64),
    Millis(u64),
    Features(u64),
    Word(&'a str),
}

/// Calls with the number, whether it is locked, and the value of each
/// metric that has a name.
fn each<'a>(raw: &'a RawAttributes, mut each: impl FnMut(u16, bool, Metric<'a>)) {
    let of = |kind| attribute::value(raw.bytes(), kind);
    let locked = of(LOCK).and_then(number).unwrap_or(0);
    for kind in LOCK + 1..METRICS.len() as u16 {
        let Some(payload) = of(kind) else {
            continue;
        };
        let value = number(payload).unwrap_or(0);
        let metric = match kind {
            CC_ALGO => Metric::Word(text(payload)),
            FEATURES => Metric::Features(value),
            // Kept as eighths and quarters of a millisecond.
            RTT => Metric::Millis(value / 8),
            RTTVAR => Metric::Millis(value / 4),
            RTO_MIN => Metric::Millis(value),
            _ => Metric::Number(value),
        };
        each(kind, locked & 1 << kind != 0, metric);
    }
}

/// All as one object in a list, as `ip -j` has it.
#[inline]
pub(crate) fn metric_fields(raw: &RawAttributes, visit: &mut impl Visit) {
    if raw.is_empty() {
        return;
    }
    visit.list("metrics");
    visit.object_item();
    each(raw, |kind, _, metric| {
        let (_, key) = METRICS[usize::from(kind)];
        match metric {
            Metric::Number(u64::MAX | 0xffff_ffff) if kind == HOPLIMIT => {
                visit.value(key, Value::Signed(-1));
            }
            Metric::Number(value) | Metric::Millis(value) => {
                visit.value(key, Value::Number(value));
            }
            Metric::Word(word) => visit.value(key, Value::Text(word)),
            Metric::Features(bits) => {
                for (bit, name) in FEATURE_NAMES {
                    if bits & bit != 0 {
                        visit.value(name, Value::Present);
                    }
                }
            }
        }
    });
    visit.end_item();
    visit.end_list();
}

/// Each as `name [lock] value `.
#[inline]
pub(crate) fn metric_text(raw: &RawAttributes, out: &mut Vec<u8>) {
    if raw.is_empty() {
        return;
    }
    each(raw, |kind, locked, metric| {
        let (name, _) = METRICS[usize::from(kind)];
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
        if locked {
            out.extend_from_slice(b"lock ");
        }
        match metric {
            Metric::Number(0xffff_ffff) if kind == HOPLIMIT => out.extend_from_slice(b"-1"),
            Metric::Number(value) => push_u64(out, value),
            Metric::Millis(value) => push_millis(out, value),
            Metric::Word(word) => out.extend_from_slice(word.as_bytes()),
            Metric::Features(bits) => return push_features(out, bits),
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

fn push_features(out: &mut Vec<u8>, bits: u64) {
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
        push_hex(out, rest);
        out.push(b' ');
    }
}
