//! A report to be read: a table of medians, ratios and growth.

use std::fmt::Write;

use ::lab::bench::{Measured, Report};

/// Whose figures the others are compared with.
const OURS: &str = "fingerpost";

/// As text with aligned columns.
pub fn text(report: &Report) -> String {
    let table = cells(report);
    let mut widths = vec![0; HEAD.len()];
    for line in &table {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format!("\n{}: {}\n", report.case, report.machine);
    for line in &table {
        for (at, (width, cell)) in widths.iter().zip(line).enumerate() {
            // Words to the left, numbers to the right.
            let width = *width;
            let _ = match at {
                0..3 => write!(text, "{cell:<width$}  "),
                _ => write!(text, "{cell:>width$}  "),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A dated page of all reports.
pub fn markdown(date: &str, reports: &[Report]) -> String {
    let mut page = format!(
        "# Benchmarks of {date}\n\nMade by `cargo xtask bench --keep`. Medians of several \
         rounds, taken in turn. `ratio` is to Fingerpost's figure for the same job, size and \
         metric; `growth` is the exponent over the sizes (1: linear, 2: quadratic).\n"
    );
    for report in reports {
        let _ = write!(page, "\n## {}\n\n{}\n\n", report.case, report.machine);
        for (at, line) in cells(report).iter().enumerate() {
            let _ = writeln!(page, "| {} |", line.join(" | "));
            if at == 0 {
                let _ = writeln!(page, "|{}", "---|".repeat(HEAD.len()));
            }
        }
    }
    page
}

const HEAD: [&str; 10] = [
    "what", "who", "metric", "size", "median", "min", "max", "rounds", "ratio", "growth",
];

fn cells(report: &Report) -> Vec<[String; HEAD.len()]> {
    let mut rows: Vec<&Measured> = report.rows.iter().collect();
    let first_of = |row: &Measured| {
        let same = |other: &Measured| other.what == row.what && other.metric == row.metric;
        report.rows.iter().position(same)
    };
    rows.sort_by_key(|row| (first_of(row), row.size));
    let mut table = vec![HEAD.map(str::to_owned)];
    for row in rows {
        let ratio = ratio(report, row).map_or_else(String::new, number);
        let growth = growth(report, row).map_or_else(String::new, number);
        table.push([
            row.what.clone(),
            row.who.clone(),
            row.metric.clone(),
            row.size.to_string(),
            number(row.median),
            number(row.min),
            number(row.max),
            row.rounds.to_string(),
            ratio,
            growth,
        ]);
    }
    table
}

/// How many times our figure for the same thing.
fn ratio(report: &Report, row: &Measured) -> Option<f64> {
    let ours = report.rows.iter().find(|other| {
        other.who == OURS
            && (&other.what, other.size, &other.metric) == (&row.what, row.size, &row.metric)
    })?;
    (row.who != OURS && ours.median > 0.0).then(|| row.median / ours.median)
}

/// The exponent of its growth, told once: at its largest size.
fn growth(report: &Report, row: &Measured) -> Option<f64> {
    let mut same: Vec<&Measured> = report
        .rows
        .iter()
        .filter(|other| {
            (&other.who, &other.what, &other.metric) == (&row.who, &row.what, &row.metric)
        })
        .collect();
    same.sort_by_key(|other| other.size);
    let (first, last) = (same.first()?, same.last()?);
    let sizes = (last.size as f64 / first.size as f64).ln();
    let growth = (last.median / first.median).ln() / sizes;
    (last.size == row.size && first.size < last.size && growth.is_finite()).then_some(growth)
}

/// Three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 || value == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::lab::bench::Samples;

    fn report() -> Report {
        let mut samples = Samples::default();
        for (size, ours, theirs) in [(1_000, 1.0, 3.0), (100_000, 100.0, 30_000.0)] {
            samples.add(OURS, "list", size, "wall_ms", ours);
            samples.add("arp -an", "list", size, "wall_ms", theirs);
        }
        Report {
            case: "arp".into(),
            machine: "a machine".into(),
            rows: samples.into_rows(),
        }
    }

    #[test]
    fn ratios_and_growth_are_told() {
        let text = text(&report());
        let last = text.lines().last().unwrap_or_default();
        // 300 times ours, and quadratic.
        assert!(last.ends_with("300    2.00"), "{text}");
        assert!(text.contains("1.00"), "{text}");
        assert_eq!(
            markdown("2026-11-21", &[report()])
                .matches("| arp -an |")
                .count(),
            2
        );
    }

    #[test]
    fn numbers_keep_three_digits() {
        let texts = [1234.5, 12.345, 1.2345, 0.12345, 0.0].map(number);
        assert_eq!(texts, ["1234", "12.3", "1.23", "0.123", "0.00"]);
    }
}
