//! A terminal's screen as a picture: text with the colours and weights that
//! its escape sequences ask for (ECMA-48 §8.3.117, SGR), as SVG.

use std::fmt::Write;

/// Pixels of a character.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
/// Around all.
const MARGIN: f64 = 12.0;
const BACK: &str = "#101418";
const TEXT: &str = "#d7dde3";
/// The eight colours, then their bright ones.
const COLOURS: [&str; 16] = [
    "#22272e", "#e06c75", "#7fbf7f", "#d7a65f", "#6fa8dc", "#c586c0", "#4fd1c0", "#c8d0d8",
    "#5b6876", "#ff8a80", "#9ddf9d", "#f0c674", "#8fc1f0", "#dda0dd", "#7fe5d8", "#ffffff",
];

/// How text is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    colour: Option<usize>,
    back: Option<usize>,
    bold: bool,
    dim: bool,
    reverse: bool,
}

impl Style {
    /// Takes the parameters of a sequence.
    fn apply(&mut self, parameters: &str) {
        for code in parameters.split(';') {
            match code.parse::<usize>().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                22 => (self.bold, self.dim) = (false, false),
                7 => self.reverse = true,
                27 => self.reverse = false,
                code @ 30..=37 => self.colour = Some(code - 30),
                39 => self.colour = None,
                code @ 40..=47 => self.back = Some(code - 40),
                49 => self.back = None,
                code @ 90..=97 => self.colour = Some(code - 82),
                code @ 100..=107 => self.back = Some(code - 92),
                _ => {}
            }
        }
    }

    fn colours(self) -> (&'static str, Option<&'static str>) {
        let of = |colour: Option<usize>| colour.and_then(|at| COLOURS.get(at).copied());
        let (text, back) = (of(self.colour).unwrap_or(TEXT), of(self.back));
        match self.reverse {
            true => (back.unwrap_or(BACK), Some(text)),
            false => (text, back),
        }
    }
}

/// A screen as a picture.
pub fn svg(screen: &str) -> String {
    let lines: Vec<Vec<(Style, String)>> = screen.trim_end().lines().map(runs).collect();
    let length =
        |line: &Vec<(Style, String)>| line.iter().map(|(_, text)| text.chars().count()).sum();
    let columns: usize = lines.iter().map(length).max().unwrap_or(0);
    let (width, height) = (
        columns as f64 * WIDTH + 2.0 * MARGIN,
        lines.len() as f64 * HEIGHT + 2.0 * MARGIN,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, DejaVu Sans Mono, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACK}\"/>\n"
    );
    for (at, line) in lines.iter().enumerate() {
        let mut column = 0;
        for (style, text) in line {
            draw(&mut out, *style, text, column, at);
            column += text.chars().count();
        }
    }
    out + "</svg>\n"
}

fn draw(out: &mut String, style: Style, text: &str, column: usize, line: usize) {
    let (colour, back) = style.colours();
    let count = text.chars().count() as f64;
    let (x, y) = (
        MARGIN + column as f64 * WIDTH,
        MARGIN + line as f64 * HEIGHT,
    );
    // Writing to a text cannot fail.
    if let Some(back) = back {
        let wide = count * WIDTH;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if style.bold {
        " font-weight=\"700\""
    } else {
        ""
    };
    let dim = if style.dim { " opacity=\"0.6\"" } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let (y, wide) = (y + 13.5, count * WIDTH);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{wide:.1}\" xml:space=\"preserve\" \
         fill=\"{colour}\"{weight}{dim}>{text}</text>"
    );
}

/// A line in pieces of one style each.
fn runs(line: &str) -> Vec<(Style, String)> {
    let mut style = Style::default();
    let mut runs = Vec::new();
    let mut pieces = line.split('\u{1b}');
    runs.push((style, pieces.next().unwrap_or_default().to_owned()));
    for piece in pieces {
        // Only `CSI … m` is drawn; others end with another letter.
        let end = piece.find(|letter: char| letter.is_ascii_alphabetic());
        let Some((sequence, text)) = end.map(|end| piece.split_at(end)) else {
            continue;
        };
        let (letter, text) = text.split_at(1);
        if letter == "m" {
            style.apply(sequence.trim_start_matches('['));
        }
        runs.push((style, text.to_owned()));
    }
    runs.retain(|(_, text)| !text.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_weights_are_drawn_where_they_stand() {
        let svg = svg("plain \u{1b}[1;32mgood\u{1b}[0m <&\n\u{1b}[7mhead\u{1b}[27m\n");
        assert!(svg.contains(&format!("fill=\"{}\" font-weight=\"700\">good", COLOURS[2])));
        assert!(svg.contains(" &lt;&amp;</text>"), "{svg}");
        let reversed = format!("fill=\"{TEXT}\"/>\n<text");
        assert!(svg.contains(&reversed), "{svg}");
        assert_eq!(svg.matches("<text").count(), 4);
    }

    #[test]
    fn other_sequences_are_passed_over() {
        assert_eq!(
            runs("a\u{1b}[2Kb"),
            [
                (Style::default(), "a".to_owned()),
                (Style::default(), "b".to_owned())
            ]
        );
    }
}
