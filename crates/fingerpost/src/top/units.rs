//! Numbers and foreign text for a screen.

/// A number in at most six columns: `0`, `0.4`, `37`, `1.25k`, `12.5M`.
pub fn short(number: f64) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    if !number.is_finite() || number < 0.05 {
        return "0".to_owned();
    }
    if number < 9.95 {
        return format!("{number:.1}").trim_end_matches(".0").to_owned();
    }
    let (mut scaled, mut unit) = (number, 0);
    // 999.5 would be shown as 1000.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1_000.0;
        unit += 1;
    }
    let digits = match scaled {
        _ if unit == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{}", UNITS[unit])
}

/// A whole number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span of time for people.
pub fn span(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => format!("{} h {} min", secs / 3_600, secs / 60 % 60),
        _ => format!("{} d {} h", secs / 86_400, secs / 3_600 % 24),
    }
}

/// Values as a line of bars, the highest of them full.
pub fn bars(values: impl Iterator<Item = f64> + Clone) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.clone().fold(0.0, f64::max);
    let bar = |value: f64| match value {
        ..=0.0 => ' ',
        _ => BARS[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.map(bar).collect()
}

/// A text that somebody else chose (a link's name), fit for a terminal:
/// what would move the cursor or turn the writing round is shown as `�`.
pub fn plain(text: &str) -> String {
    let is_tricky = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars()
        .map(|c| if is_tricky(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (0.04, "0"),
            (0.44, "0.4"),
            (3.0, "3"),
            (9.96, "10"),
            (37.4, "37"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (1_254.0, "1.25k"),
            (12_540.0, "12.5k"),
            (999_600.0, "1.00M"),
            (1e10, "10.0G"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(short(number), text, "{number}");
        }
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(span(59), "59 s");
        assert_eq!(span(3_700), "1 h 1 min");
        assert_eq!(span(200_000), "2 d 7 h");
    }

    #[test]
    fn bars_are_relative_to_the_highest() {
        assert_eq!(bars([0.0, 1.0, 50.0, 100.0].into_iter()), " ▁▄█");
        assert_eq!(bars([0.0, 0.0].into_iter()), "  ");
    }

    #[test]
    fn a_hostile_name_moves_no_cursor() {
        assert_eq!(plain("eth0\u{1b}[2J\u{202e}x"), "eth0\u{fffd}[2J\u{fffd}x");
    }
}
