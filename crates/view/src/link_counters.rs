//! What a link has counted, as `ip -s link` and `ip -s -s link` show it.

use table::{Link, LinkCounters};

use crate::context::View;
use crate::fields::{Value, Visit};
use crate::format::push_u64;
use crate::link::line;
use crate::question::Units;

fn counters<'a>(link: &Link, view: &View<'a>) -> Option<&'a LinkCounters> {
    view.statistics
        .then(|| view.tables?.counters_of(link.index))?
}

fn carrier_changes(link: &Link, view: &View<'_>) -> Option<u64> {
    view.unannounced(link.index)?.carrier_changes.map(u64::from)
}

/// The counters as fields.
pub(crate) fn counter_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    let Some(c) = counters(link, view) else {
        return;
    };
    visit.object("stats64");
    visit.object("rx");
    let counted = [
        ("bytes", c.rx_bytes),
        ("packets", c.rx_packets),
        ("errors", c.rx_errors),
        ("dropped", c.rx_dropped),
        ("over_errors", c.rx_over_errors),
        ("multicast", c.multicast),
    ];
    all_fields(&counted, visit);
    unless_zero("compressed", c.rx_compressed, visit);
    if view.errors {
        let kinds = [
            ("length_errors", c.rx_length_errors),
            ("crc_errors", c.rx_crc_errors),
            ("frame_errors", c.rx_frame_errors),
            ("fifo_errors", c.rx_fifo_errors),
            ("missed_errors", c.rx_missed_errors),
        ];
        all_fields(&kinds, visit);
        unless_zero("nohandler", c.rx_nohandler, visit);
    }
    visit.end_object();
    visit.object("tx");
    let counted = [
        ("bytes", c.tx_bytes),
        ("packets", c.tx_packets),
        ("errors", c.tx_errors),
        ("dropped", c.tx_dropped),
        ("carrier_errors", c.tx_carrier_errors),
        ("collisions", c.collisions),
    ];
    all_fields(&counted, visit);
    unless_zero("compressed", c.tx_compressed, visit);
    if view.errors {
        let kinds = [
            ("aborted_errors", c.tx_aborted_errors),
            ("fifo_errors", c.tx_fifo_errors),
            ("window_errors", c.tx_window_errors),
            ("heartbeat_errors", c.tx_heartbeat_errors),
        ];
        all_fields(&kinds, visit);
        if let Some(changes) = carrier_changes(link, view) {
            visit.value("carrier_changes", Value::Number(changes));
        }
    }
    visit.end_object();
    visit.end_object();
}

fn all_fields(fields: &[(&'static str, u64)], visit: &mut impl Visit) {
    for (key, value) in fields {
        visit.value(key, Value::Number(*value));
    }
}

fn unless_zero(key: &'static str, value: u64, visit: &mut impl Visit) {
    if value != 0 {
        visit.value(key, Value::Number(value));
    }
}

/// A line of heads and one of numbers.
struct Block {
    label: &'static str,
    /// Behind the label: whether numbers stand below it too.
    heads: Vec<&'static str>,
    values: Vec<u64>,
    is_errors: bool,
}

/// The table of counters. Columns are as wide as their widest number.
pub(crate) fn counter_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    let Some(c) = counters(link, view) else {
        return;
    };
    let blocks = blocks(c, carrier_changes(link, view), view.errors);
    // Labels, heads, and `compressed`.
    let mut widths = [10, 7, 6, 7, 7, 7, 10];
    for block in &blocks {
        let from = usize::from(block.is_errors);
        for (width, value) in widths.iter_mut().skip(from).zip(&block.values) {
            *width = digits(*value).max(*width);
        }
    }
    for block in &blocks {
        block_text(block, &widths, view, out);
    }
}

fn blocks(c: &LinkCounters, carrier_changes: Option<u64>, errors: bool) -> Vec<Block> {
    let block = |label, heads: &[&'static str], values: &[u64], last: (&'static str, u64)| {
        let (mut heads, mut values) = (heads.to_vec(), values.to_vec());
        if last.1 != 0 {
            heads.push(last.0);
            values.push(last.1);
        }
        Block {
            label,
            is_errors: heads.first() != Some(&"bytes"),
            heads,
            values,
        }
    };
    let mut blocks = Vec::with_capacity(4);
    blocks.push(block(
        "RX:",
        &["bytes", "packets", "errors", "dropped", "missed", "mcast"],
        &[
            c.rx_bytes,
            c.rx_packets,
            c.rx_errors,
            c.rx_dropped,
            c.rx_missed_errors,
            c.multicast,
        ],
        ("compressed", c.rx_compressed),
    ));
    if errors {
        blocks.push(block(
            "RX errors:",
            &["length", "crc", "frame", "fifo", "overrun"],
            &[
                c.rx_length_errors,
                c.rx_crc_errors,
                c.rx_frame_errors,
                c.rx_fifo_errors,
                c.rx_over_errors,
            ],
            ("nohandler", c.rx_nohandler),
        ));
    }
    blocks.push(block(
        "TX:",
        &[
            "bytes", "packets", "errors", "dropped", "carrier", "collsns",
        ],
        &[
            c.tx_bytes,
            c.tx_packets,
            c.tx_errors,
            c.tx_dropped,
            c.tx_carrier_errors,
            c.collisions,
        ],
        ("compressed", c.tx_compressed),
    ));
    if errors {
        let mut last = block(
            "TX errors:",
            &["aborted", "fifo", "window", "heartbt"],
            &[
                c.tx_aborted_errors,
                c.tx_fifo_errors,
                c.tx_window_errors,
                c.tx_heartbeat_errors,
            ],
            ("", 0),
        );
        if let Some(changes) = carrier_changes {
            last.heads.push("transns");
            last.values.push(changes);
        }
        blocks.push(last);
    }
    blocks
}

fn digits(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

fn block_text(block: &Block, widths: &[usize; 7], view: &View<'_>, out: &mut Vec<u8>) {
    line(view, out, b"    ");
    out.extend_from_slice(block.label.as_bytes());
    let [first, rest @ ..] = widths;
    let under_label = first.saturating_sub(block.label.len());
    let mut heads = block.heads.iter();
    if block.is_errors {
        out.resize(out.len() + under_label, b' ');
    } else if let Some(head) = heads.next() {
        right(out, head, under_label);
    }
    for (head, width) in heads.zip(rest) {
        out.push(b' ');
        right(out, head, *width);
    }
    if !block.is_errors && block.heads.len() < widths.len() {
        let [.., last] = widths;
        out.resize(out.len() + 1 + last, b' ');
    }
    line(view, out, b"    ");
    let skipped = usize::from(block.is_errors);
    if block.is_errors {
        out.resize(out.len() + first + 1, b' ');
    }
    let columns = widths.iter().skip(skipped);
    for (value, width) in block.values.iter().zip(columns) {
        right(out, &written(*value, view.units), *width);
        out.push(b' ');
    }
}

fn right(out: &mut Vec<u8>, text: &str, width: usize) {
    out.resize(out.len() + width.saturating_sub(text.len()), b' ');
    out.extend_from_slice(text.as_bytes());
}

/// A number in its units: three digits of it, and what they are of.
fn written(value: u64, units: Units) -> String {
    let (base, suffix) = match units {
        Units::Exact => (u64::MAX, ""),
        Units::Decimal => (1000, ""),
        Units::Binary => (1024, "i"),
    };
    if value < base || units == Units::Exact {
        let mut digits = Vec::new();
        push_u64(&mut digits, value);
        return String::from_utf8(digits).unwrap_or_default();
    }
    let mut unit = base;
    let mut prefixes = "kMGTPE".chars();
    let mut prefix = prefixes.next().unwrap_or_default();
    while value / base >= unit {
        let Some(next) = prefixes.next() else {
            break;
        };
        prefix = next;
        unit *= base;
    }
    let precision = match value / unit {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let shown = value as f64 / unit as f64;
    format!("{shown:.precision$}{prefix}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_units() {
        for (value, decimal, binary) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1000, "1.00k", "1000"),
            (1234, "1.23k", "1.21ki"),
            (74_074_552, "74.1M", "70.6Mi"),
            (999_999, "1000k", "977ki"),
            (u64::MAX, "18.4E", "16.0Ei"),
        ] {
            assert_eq!(written(value, Units::Decimal), decimal, "{value}");
            assert_eq!(written(value, Units::Binary), binary, "{value}");
            assert_eq!(written(value, Units::Exact), value.to_string());
        }
    }
}
