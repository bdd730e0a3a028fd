//! Colours of text, as `ip -c` has them. A row's text says only where one
//! begins and ends, by bytes that UTF-8 never has: no name of a link and no
//! alias can forge them. Whoever writes to a terminal puts escapes in their
//! place ([`Palette`]), behind the escaping of what the rows themselves say.

use crate::context::View;

/// What is coloured alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Names of links.
    Link,
    /// Link-layer addresses.
    LinkLayer,
    /// IPv4 addresses.
    Inet,
    /// IPv6 addresses.
    Inet6,
    /// A link that is up.
    Up,
    /// A link that is down.
    Down,
}

/// Each with the byte that begins it, and its number among the foreground
/// colours of ECMA-48 (SGR 30 to 37).
const MARKS: [(Colour, u8, &str); 6] = [
    (Colour::Link, 0xf8, "36"),
    (Colour::LinkLayer, 0xf9, "33"),
    (Colour::Inet, 0xfa, "35"),
    (Colour::Inet6, 0xfb, "34"),
    (Colour::Up, 0xfc, "32"),
    (Colour::Down, 0xfd, "31"),
];

/// The byte that ends a colour.
const END: u8 = 0xff;

impl Colour {
    /// Of an address.
    pub(crate) fn of_address(address: std::net::IpAddr) -> Self {
        match address.is_ipv4() {
            true => Self::Inet,
            false => Self::Inet6,
        }
    }

    fn mark(self) -> u8 {
        let known = MARKS.iter().find(|(colour, ..)| *colour == self);
        known.map_or(END, |(_, mark, _)| *mark)
    }
}

/// Writes something in a colour, where colours are asked for.
#[inline]
pub(crate) fn coloured(
    view: &View<'_>,
    colour: impl Into<Option<Colour>>,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    match colour.into().filter(|_| view.colour) {
        None => write(out),
        Some(colour) => {
            out.push(colour.mark());
            write(out);
            out.push(END);
        }
    }
}

/// The escapes that a terminal takes for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// For a light background, or one that is not known.
    Light,
    /// For a dark one.
    Dark,
}

impl Palette {
    /// The palette for a value of the variable `COLORFGBG`, whose last
    /// number is the background's.
    pub fn of_background(variable: Option<&str>) -> Self {
        let last = variable.and_then(|value| value.rsplit_once(';'));
        match last {
            Some((_, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "8")) => Self::Dark,
            _ => Self::Light,
        }
    }

    /// The escape in the place of a mark; `None`: the byte is none.
    pub fn escape(self, byte: u8) -> Option<String> {
        if byte == END {
            return Some("\x1b[0m".to_owned());
        }
        let (_, _, number) = MARKS.iter().find(|(_, mark, _)| *mark == byte)?;
        let bold = match self {
            Self::Light => "",
            Self::Dark => "1;",
        };
        Some(format!("\x1b[{bold}{number}m"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_no_bytes_of_a_text() {
        for (colour, mark, _) in MARKS {
            assert!(std::str::from_utf8(&[mark]).is_err());
            assert!(std::str::from_utf8(&[mark, 0x80, 0x80, 0x80]).is_err());
            assert_eq!(colour.mark(), mark);
        }
    }

    #[test]
    fn the_last_number_of_the_variable_is_the_background() {
        for (variable, palette) in [
            (None, Palette::Light),
            (Some("0;15"), Palette::Light),
            (Some("15;0"), Palette::Dark),
            (Some("15;default;6"), Palette::Dark),
            (Some("15;7"), Palette::Light),
            (Some("0"), Palette::Light),
            (Some("15;08"), Palette::Light),
        ] {
            assert_eq!(Palette::of_background(variable), palette, "{variable:?}");
        }
        assert_eq!(Palette::Dark.escape(0xf8).as_deref(), Some("\x1b[1;36m"));
        assert_eq!(Palette::Light.escape(0xff).as_deref(), Some("\x1b[0m"));
        assert_eq!(Palette::Light.escape(b'a'), None);
    }
}
