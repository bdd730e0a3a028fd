//! A report as a picture: cost over size, both logarithmic, a line for
//! each who and what.

use std::collections::BTreeSet;
use std::fmt::Write;

use ::lab::bench::{Report, Row};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 40.0;
/// Where the field of lines ends; the names stand right of it.
const RIGHT: f64 = 600.0;
const BOTTOM: f64 = 500.0;
const COLOURS: [&str; 10] = [
    "#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#6a4c93", "#00798c", "#8d6a4f", "#444444",
    "#c26dbc", "#7a9e00",
];
/// Metrics worth a picture, the first that the report has.
const METRICS: [&str; 2] = ["wall_ms", "ns_per_row"];

/// The picture of the report's main metric.
pub fn svg(report: &Report) -> String {
    let metric = METRICS
        .into_iter()
        .find(|metric| report.rows.iter().any(|row| row.metric == *metric))
        .unwrap_or("wall_ms");
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.metric == metric && row.median > 0.0)
        .collect();
    let x = Axis::over(rows.iter().map(|row| row.size as f64), LEFT, RIGHT);
    let y = Axis::over(rows.iter().map(|row| row.median), BOTTOM, TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let title = format!("{}: {metric} by number of rows", report.case);
    label(&mut out, LEFT, TOP - 16.0, "start", &title);
    axes(&mut out, &x, &y, metric);
    lines(&mut out, &rows, &x, &y);
    out.push_str("</svg>\n");
    out
}

/// A logarithmic axis of whole decades.
struct Axis {
    first: i32,
    last: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if high <= 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let first = low.log10().floor() as i32;
        let last = (high.log10().ceil() as i32).max(first + 1);
        Self {
            first,
            last,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let decades = f64::from(self.last - self.first);
        let share = (value.log10() - f64::from(self.first)) / decades;
        self.from + share * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|decade| 10_f64.powi(decade))
    }
}

fn axes(out: &mut String, x: &Axis, y: &Axis, metric: &str) {
    for value in x.decades() {
        let at = x.place(value);
        grid(out, [at, TOP, at, BOTTOM]);
        label(out, at, BOTTOM + 18.0, "middle", &value.to_string());
    }
    for value in y.decades() {
        let at = y.place(value);
        grid(out, [LEFT, at, RIGHT, at]);
        label(out, LEFT - 6.0, at + 4.0, "end", &value.to_string());
    }
    label(
        out,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 38.0,
        "middle",
        "rows",
    );
    label(out, 8.0, TOP - 16.0, "start", metric);
}

fn grid(out: &mut String, [x1, y1, x2, y2]: [f64; 4]) {
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
    );
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn lines(out: &mut String, rows: &[&Row], x: &Axis, y: &Axis) {
    let names: BTreeSet<(&str, &str)> = rows
        .iter()
        .map(|row| (row.what.as_str(), row.who.as_str()))
        .collect();
    let step = (BOTTOM - TOP) / names.len().max(1) as f64;
    for (number, (what, who)) in names.into_iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.what == what && row.who == who)
            .map(|row| (x.place(row.size as f64), y.place(row.median)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: String = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1} "))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.trim_end()
        );
        for (x, y) in points {
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        let at = TOP + (number as f64 + 0.5) * step.min(18.0);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            RIGHT + 12.0,
            at - 9.0
        );
        label(out, RIGHT + 28.0, at, "start", &format!("{who}: {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::lab::bench::Samples;

    #[test]
    fn a_line_for_each_on_logarithmic_axes() {
        let mut samples = Samples::default();
        for (size, ms) in [(1_000, 1.0), (10_000, 10.0), (100_000, 100.0)] {
            samples.add("fingerpost", "list <all>", size, "wall_ms", ms);
            samples.add("arp -an", "list <all>", size, "wall_ms", ms * 10.0);
        }
        let report = Report {
            case: "arp".into(),
            machine: "x".into(),
            rows: samples.into_rows(),
        };
        let svg = svg(&report);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 6);
        assert!(svg.contains("list &lt;all>") && svg.ends_with("</svg>\n"));
        // 1,000 stands at the left edge, 100,000 at the right.
        assert!(svg.contains(&format!("cx=\"{LEFT:.1}\"")));
        assert!(svg.contains(&format!("cx=\"{RIGHT:.1}\"")));
    }
}
