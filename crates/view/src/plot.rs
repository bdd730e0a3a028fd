//! Costs over sizes as a picture: both axes logarithmic, a line for each
//! series, as an SVG that needs nothing from elsewhere. Called by commands
//! and chores that measure growth. `drawn`: pictures for a terminal.

mod drawn;

use std::fmt::Write;

pub use drawn::{bars, lines};

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

/// A line of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is called in the picture.
    pub name: String,
    /// (size, cost), in any order. What is not above zero has no place on
    /// a logarithmic axis and is left out.
    pub points: Vec<(f64, f64)>,
}

/// A picture. `x` and `y` say what the axes are, with their units.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// Name of the axis of sizes.
    pub x: String,
    /// Name of the axis of costs.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

impl Plot {
    /// The picture as SVG. O(points).
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(Series::drawable);
        let x = Axis::over(points().map(|(x, _)| x), LEFT, RIGHT);
        let y = Axis::over(points().map(|(_, y)| y), BOTTOM, TOP);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        label(&mut out, LEFT, TOP - 16.0, "start", &self.title);
        self.axes(&mut out, &x, &y);
        self.lines(&mut out, &x, &y);
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, x: &Axis, y: &Axis) {
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
        let middle = f64::midpoint(LEFT, RIGHT);
        label(out, middle, BOTTOM + 38.0, "middle", &self.x);
        label(out, 8.0, TOP - 16.0, "start", &self.y);
    }

    fn lines(&self, out: &mut String, x: &Axis, y: &Axis) {
        let step = (BOTTOM - TOP) / self.series.len().max(1) as f64;
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut points: Vec<(f64, f64)> = series
                .drawable()
                .map(|(size, cost)| (x.place(size), y.place(cost)))
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
            label(out, RIGHT + 28.0, at, "start", &series.name);
        }
    }
}

impl Series {
    fn drawable(&self) -> impl Iterator<Item = (f64, f64)> {
        let points = self.points.iter().copied();
        points.filter(|(x, y)| *x > 0.0 && *y > 0.0)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_on_logarithmic_axes() {
        let series = ["us: list <all>", "arp -an: list <all>"].map(|name| Series {
            name: name.into(),
            points: vec![
                (100_000.0, 100.0),
                (1_000.0, 1.0),
                (10_000.0, 10.0),
                (5.0, 0.0),
            ],
        });
        let plot = Plot {
            title: "arp".into(),
            x: "rows".into(),
            y: "wall_ms".into(),
            series: series.into(),
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 6);
        assert!(svg.contains("list &lt;all>") && svg.ends_with("</svg>\n"));
        // 1,000 stands at the left edge, 100,000 at the right.
        assert!(svg.contains(&format!("cx=\"{LEFT:.1}\"")));
        assert!(svg.contains(&format!("cx=\"{RIGHT:.1}\"")));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        let plot = Plot {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            series: Vec::new(),
        };
        assert!(plot.svg().ends_with("</svg>\n"));
    }
}
