//! Pictures of characters, for a terminal: a bar for each of some values, or
//! lines over an axis of numbers. Axes are linear, and say where they end.

use std::fmt::Write;

use super::Series;

/// Columns of characters without which nothing is drawn.
const LEAST_WIDTH: usize = 40;
/// What stands before a bar at most.
const MOST_LABEL: usize = 40;
/// What a number takes at most.
const NUMBER: usize = 12;
/// Rows of characters that lines have.
const HEIGHT: usize = 18;
/// What lines are drawn with, one after the other.
const MARKS: [char; 8] = ['*', '+', 'o', 'x', '#', '@', '%', '='];
/// Eighths of a character.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar for each value, behind what it is of. What is below zero is drawn
/// light. `width`: characters of a line. O(values).
pub fn bars(name: &str, values: &[(String, f64)], width: usize) -> String {
    let width = width.max(LEAST_WIDTH);
    let labels = values.iter().map(|(label, _)| label.chars().count());
    let label_width = labels.max().unwrap_or(0).min(MOST_LABEL).min(width / 2);
    let most = values.iter().map(|(_, value)| value.abs());
    let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let room = width.saturating_sub(label_width + NUMBER + 3);
    let mut out = format!("{name}\n");
    for (label, value) in values {
        // What is not finite has no length.
        let has_length = most > 0.0 && value.is_finite();
        let share = if has_length { value.abs() / most } else { 0.0 };
        let bar = match *value < 0.0 {
            true => "░".repeat((share * room as f64).round() as usize),
            false => bar(share, room),
        };
        let label = fitted(label, label_width);
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{label:label_width$} {:>NUMBER$} {bar}",
            number(*value)
        );
    }
    out
}

/// A bar of a share of some characters.
fn bar(share: f64, room: usize) -> String {
    let eighths = (share * room as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    match (eighths % 8, share > 0.0) {
        // What is above zero is seen.
        (0, true) if eighths == 0 => bar.push(EIGHTHS[1]),
        (0, _) => {}
        (rest, _) => bar.extend(EIGHTHS.get(rest)),
    }
    bar
}

/// Lines over an axis, each with a mark of its own, and which is which.
/// `width`: characters of a line. O(points, and width for each).
pub fn lines(x: &str, series: &[Series], width: usize) -> String {
    let width = width.max(LEAST_WIDTH) - NUMBER - 2;
    let points = || series.iter().flat_map(|one| one.points.iter().copied());
    let across = Scale::over(points().map(|(x, _)| x), width);
    let up = Scale::over(points().map(|(_, y)| y), HEIGHT);
    let mut field = vec![vec![' '; width]; HEIGHT];
    for (number, one) in series.iter().enumerate() {
        let mark = MARKS[number % MARKS.len()];
        draw(&one.points, (&across, &up), mark, &mut field);
    }
    let mut out = String::new();
    for (row, line) in field.iter().enumerate() {
        let at = match row {
            0 => number(up.high),
            _ if row + 1 == HEIGHT => number(up.low),
            _ => String::new(),
        };
        let line: String = line.iter().collect();
        let _ = writeln!(out, "{at:>NUMBER$} │{}", line.trim_end());
    }
    let _ = writeln!(out, "{:NUMBER$} └{}", "", "─".repeat(width));
    let (low, high) = (number(across.low), number(across.high));
    let between = width.saturating_sub(low.len() + high.len());
    let shown = fitted(x, between.saturating_sub(2));
    let _ = writeln!(out, "{:NUMBER$}  {low}{shown:^between$}{high}", "");
    for (number, one) in series.iter().enumerate() {
        let _ = writeln!(out, "{} {}", MARKS[number % MARKS.len()], one.name);
    }
    out
}

/// A line through points.
fn draw(
    points: &[(f64, f64)],
    (across, up): (&Scale, &Scale),
    mark: char,
    field: &mut [Vec<char>],
) {
    let mut points: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut put = |column: usize, y: f64| {
        let row = HEIGHT - 1 - up.place(y);
        if let Some(place) = field.get_mut(row).and_then(|line| line.get_mut(column)) {
            *place = mark;
        }
    };
    for (x, y) in &points {
        put(across.place(*x), *y);
    }
    for pair in points.windows(2) {
        let [(x1, y1), (x2, y2)] = pair else { continue };
        let (first, last) = (across.place(*x1), across.place(*x2));
        for column in first + 1..last {
            let share = (column - first) as f64 / (last - first) as f64;
            put(column, y1 + share * (y2 - y1));
        }
    }
}

/// From numbers to places.
struct Scale {
    low: f64,
    high: f64,
    places: usize,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>, places: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 0.0);
        }
        Self { low, high, places }
    }

    fn place(&self, value: f64) -> usize {
        let last = self.places.saturating_sub(1);
        // Halves, for what lies between may be more than a number can be.
        let span = self.high / 2.0 - self.low / 2.0;
        match span > 0.0 {
            true => {
                (((value / 2.0 - self.low / 2.0) / span * last as f64).round() as usize).min(last)
            }
            false => 0,
        }
    }
}

/// A number in a few characters.
fn number(value: f64) -> String {
    let whole = value.to_string();
    if whole.len() <= NUMBER {
        return whole;
    }
    let short = format!("{value:.3}");
    match short.len() <= NUMBER {
        true => short,
        false => format!("{value:.4e}"),
    }
}

/// The beginning of a text, on one line and nothing that a terminal would
/// obey.
fn fitted(text: &str, width: usize) -> String {
    let shown = text
        .chars()
        .map(|one| if one.is_control() { ' ' } else { one });
    shown.take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let values = [
            ("eth0", 8.0),
            ("eth\n1", 4.0),
            ("lo", 0.0),
            ("x", 0.001),
            ("y", -8.0),
        ];
        let values = values.map(|(label, value)| (label.to_owned(), value));
        let drawn = bars("rx_bytes", &values, 40);
        assert_eq!(
            drawn,
            "rx_bytes\n\
             eth0             8 ████████████████████\n\
             eth 1            4 ██████████\n\
             lo               0 \n\
             x            0.001 ▏\n\
             y               -8 ░░░░░░░░░░░░░░░░░░░░\n"
        );
        assert_eq!(bars("n", &[], 80), "n\n");
    }

    #[test]
    fn lines_go_through_their_points() {
        let line = |name: &str, points: &[(f64, f64)]| Series {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let rising = line("up", &[(10.0, 17.0), (0.0, 0.0)]);
        let level = line("level", &[(0.0, 0.0), (10.0, 0.0)]);
        let drawn = lines("hour", &[rising, level], 46);
        let all: Vec<&str> = drawn.lines().collect();
        assert_eq!(all.len(), HEIGHT + 4);
        assert_eq!(all[0], format!("{:>12} │{:>32}", 17, "*"));
        assert_eq!(all[HEIGHT - 1], format!("{:>12} │{}", 0, "+".repeat(32)));
        assert!(
            all[..HEIGHT - 1]
                .iter()
                .all(|line| line.matches('*').count() >= 1)
        );
        assert_eq!(all[HEIGHT + 1].trim(), format!("0{:^29}10", "hour"));
        assert_eq!(&all[HEIGHT + 2..], ["* up", "+ level"]);
    }

    #[test]
    fn odd_numbers_are_drawn_as_well() {
        let odd = [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, 0.0];
        let points: Vec<(f64, f64)> = odd.iter().flat_map(|x| odd.map(|y| (*x, y))).collect();
        let series = Series {
            name: String::new(),
            points,
        };
        assert!(!lines("", &[series], 0).is_empty());
        let values = odd.map(|value| (String::new(), value));
        assert_eq!(bars("", &values, 0).lines().count(), 6);
        assert_eq!(number(123_456_789_012.0), "123456789012");
        assert_eq!(number(0.1 + 0.2), "0.300");
        assert_eq!(number(-1e300), "-1.0000e300");
    }
}
