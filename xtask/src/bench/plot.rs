//! A report as a picture: cost over size, a line for each who and what.

use std::collections::BTreeMap;

use ::lab::bench::Report;
use view::plot::{Plot, Series};

/// Metrics worth a picture, the first that the report has.
const METRICS: [&str; 3] = ["wall_ms", "ns_per_row", "ns_per_op"];

/// The picture of the report's main metric.
pub fn svg(report: &Report) -> String {
    let metric = METRICS
        .into_iter()
        .find(|metric| report.rows.iter().any(|row| row.metric == *metric))
        .unwrap_or("wall_ms");
    let mut series: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for row in report.rows.iter().filter(|row| row.metric == metric) {
        let points = series.entry((&row.what, &row.who)).or_default();
        points.push((row.size as f64, row.median));
    }
    let series = series.into_iter().map(|((what, who), points)| Series {
        name: format!("{who}: {what}"),
        points,
    });
    let plot = Plot {
        title: format!("{}: {metric} by number of rows", report.case),
        x: "rows".into(),
        y: metric.into(),
        series: series.collect(),
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::lab::bench::Samples;

    #[test]
    fn the_main_metric_is_drawn() {
        let mut samples = Samples::default();
        for (size, ms) in [(1_000, 1.0), (10_000, 10.0), (100_000, 100.0)] {
            samples.add("fingerpost", "list", size, "wall_ms", ms);
            samples.add("arp -an", "list", size, "wall_ms", ms * 10.0);
            samples.add("arp -an", "list", size, "cpu_ms", ms * 10.0);
        }
        let report = Report {
            case: "arp".into(),
            machine: "x".into(),
            rows: samples.into_rows(),
        };
        let svg = svg(&report);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("arp -an: list"), "{svg}");
    }
}
