//! Numbers in words: `10.0.{}.1/30` for each of `-n 100` or `-n 5-60`.
//!
//! `{}` is the number itself; inside the braces arithmetic may follow, from
//! left to right: `10.{/256}.{%256}.1`, `{*4+1}`.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// So many numbers at most.
const MAX: u64 = 1 << 32;

/// The numbers that are put into patterns: `N` is 1 to N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(pub RangeInclusive<u64>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "a count, like 1000, or a range, like 5-60, is expected".to_owned();
        let (first, last) = text.split_once('-').unwrap_or(("1", text));
        let first: u64 = first.parse().map_err(|_| expected())?;
        let last: u64 = last.parse().map_err(|_| expected())?;
        if first > last || last > MAX {
            return Err(expected());
        }
        Ok(Self(first..=last))
    }
}

/// Whether there is anything to fill.
pub fn is_pattern(text: &str) -> bool {
    text.contains('{')
}

/// Appends a pattern with a number in the place of each pair of braces.
pub fn fill(pattern: &str, number: u64, out: &mut String) -> Result<(), String> {
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after
            .split_once('}')
            .ok_or_else(|| format!("`{pattern}`: a `}}` is missing"))?;
        out.push_str(before);
        let value = reckon(inside, number).ok_or_else(|| {
            format!(
                "`{{{inside}}}` with {number}: + - * / % and numbers are expected, within 64 bits"
            )
        })?;
        // Writing to a string does not fail.
        let _ = write!(out, "{value}");
        rest = after;
    }
    out.push_str(rest);
    Ok(())
}

/// `+1/256`: from left to right.
fn reckon(text: &str, number: u64) -> Option<u64> {
    let mut value = number;
    let mut rest = text;
    while let Some(operator) = rest.chars().next() {
        rest = rest.get(operator.len_utf8()..)?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        let operand: u64 = digits.parse().ok()?;
        value = match operator {
            '+' => value.checked_add(operand),
            '-' => value.checked_sub(operand),
            '*' => value.checked_mul(operand),
            '/' => value.checked_div(operand),
            '%' => value.checked_rem(operand),
            _ => None,
        }?;
        rest = after;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counts_and_ranges() {
        assert_eq!("3".parse(), Ok(Numbers(1..=3)));
        assert_eq!("5-60".parse(), Ok(Numbers(5..=60)));
        for text in ["", "0", "6-5", "x", "1-", "-5", "99999999999999"] {
            assert!(text.parse::<Numbers>().is_err(), "{text}");
        }
    }

    #[test]
    fn braces_are_filled_and_reckoned_from_left_to_right() {
        for (pattern, number, filled) in [
            ("10.0.{}.1/30", 7, Some("10.0.7.1/30")),
            ("10.{/256}.{%256}.1", 515, Some("10.2.3.1")),
            ("{+1*4}-{}", 2, Some("12-2")),
            ("none", 2, Some("none")),
            ("{-3}", 2, None),
            ("{/0}", 2, None),
            ("{x}", 2, None),
            ("{+}", 2, None),
            ("{", 2, None),
        ] {
            let mut out = String::new();
            let result = fill(pattern, number, &mut out);
            assert_eq!(result.ok().map(|()| out.as_str()), filled, "{pattern}");
        }
    }
}
