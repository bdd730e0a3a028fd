//! What the kernel or a daemon says, on its way to a terminal: bytes that a
//! terminal would obey are shown instead. Anybody who may name a link or
//! write an alias could otherwise move the cursor or set the window's title
//! of whoever lists them.

use std::io::{self, IsTerminal, Stdout, StdoutLock, Write};

use view::colour::Palette;

/// Writes control bytes as `\x1b`, if that is switched on; line feeds and
/// tabs pass. In text it writes octets of names that are not UTF-8
/// ([`table::text`]): as they are, like `ip`, and to a terminal as `\xff`;
/// and escapes in the place of the marks of colours ([`view::colour`]).
pub struct Escaped<W> {
    out: W,
    palette: Palette,
    on: bool,
    is_text: bool,
    /// The beginning of a character that may have to be shown.
    held: Vec<u8>,
}

/// The first byte of the control characters from U+0080 on, in UTF-8.
const LEAD: u8 = 0xc2;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// What bytes are.
enum Seen {
    /// The beginning of what may have to be shown.
    Begun,
    /// Something that a terminal obeys.
    Control,
    /// A character that stands for an octet.
    Octet(u8),
    /// A colour begins or ends.
    Mark(String),
    /// The first is nothing of that.
    Plain,
}

impl<'a> Escaped<StdoutLock<'a>> {
    /// Standard output, escaped if it is a terminal; text, or something that
    /// programs read.
    pub fn stdout(out: &'a Stdout, is_text: bool) -> Self {
        Self::new(out.lock(), out.is_terminal(), is_text)
    }
}

impl<W: Write> Escaped<W> {
    fn new(out: W, on: bool, is_text: bool) -> Self {
        let background = std::env::var("COLORFGBG").ok();
        Self {
            out,
            palette: Palette::of_background(background.as_deref()),
            on,
            is_text,
            held: Vec::new(),
        }
    }

    fn escape(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len() + 16);
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.held.is_empty() {
                let (plain, other) = rest.split_at(self.plain(rest));
                shown.extend_from_slice(plain);
                rest = other;
            }
            let Some((byte, after)) = rest.split_first() else {
                break;
            };
            rest = after;
            self.held.push(*byte);
            while !self.held.is_empty() {
                match self.seen() {
                    Seen::Begun => break,
                    Seen::Control => show(&self.held, &mut shown),
                    Seen::Octet(octet) if self.on => show(&[octet], &mut shown),
                    Seen::Octet(octet) => shown.push(octet),
                    Seen::Mark(escape) => shown.extend_from_slice(escape.as_bytes()),
                    Seen::Plain => {
                        shown.push(self.held.remove(0));
                        continue;
                    }
                }
                self.held.clear();
            }
        }
        shown
    }

    /// How many bytes pass as they are, a block at a time: a listing has
    /// millions of them, and hardly any other.
    fn plain(&self, bytes: &[u8]) -> usize {
        // Whether a byte may begin what does not.
        let other = |byte: u8| {
            let is_told = self.is_text && (byte == 0xee || byte >= 0xf8);
            let is_blank = byte == b'\n' || byte == b'\t';
            let is_obeyed = self.on && (byte < 0x20 && !is_blank || byte == 0x7f || byte == LEAD);
            is_told | is_obeyed
        };
        let has_none = |block: &&[u8]| !block.iter().fold(false, |any, byte| any | other(*byte));
        let blocks = bytes.chunks(BLOCK).take_while(has_none);
        let len = blocks.map(<[u8]>::len).sum::<usize>();
        let rest = &bytes[len..];
        len + rest.iter().take_while(|byte| !other(**byte)).count()
    }

    /// What is held. The characters for octets are U+EF80 to U+EFFF.
    fn seen(&self) -> Seen {
        match self.held[..] {
            [0xee] | [0xee, 0xbe | 0xbf] if self.is_text => Seen::Begun,
            [0xee, 0xbe, last @ 0x80..=0xbf] if self.is_text => Seen::Octet(last),
            [0xee, 0xbf, last @ 0x80..=0xbf] if self.is_text => Seen::Octet(last + 0x40),
            [b'\n' | b'\t', ..] => Seen::Plain,
            [mark @ 0xf8..=0xff] if self.is_text => match self.palette.escape(mark) {
                Some(escape) => Seen::Mark(escape),
                None => Seen::Plain,
            },
            [LEAD] if self.on => Seen::Begun,
            [LEAD, 0x80..=0x9f] | [0..0x20 | 0x7f, ..] if self.on => Seen::Control,
            _ => Seen::Plain,
        }
    }
}

fn show(bytes: &[u8], shown: &mut Vec<u8>) {
    for byte in bytes {
        shown.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.on && !self.is_text {
            return self.out.write(bytes);
        }
        let shown = self.escape(bytes);
        self.out.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]], on: bool, is_text: bool) -> Vec<u8> {
        let mut out = Escaped::new(Vec::new(), on, is_text);
        for part in parts {
            out.write_all(part).unwrap();
        }
        out.out
    }

    #[test]
    fn a_terminal_is_shown_what_it_would_obey() {
        let hostile = "e\u{1b}[2Jth\u{7}\r\u{9b}1m é\tÂ\n";
        let shown = "e\\x1b[2Jth\\x07\\x0d\\xc2\\x9b1m é\tÂ\n";
        for is_text in [true, false] {
            let whole = written(&[hostile.as_bytes()], true, is_text);
            assert_eq!(whole, shown.as_bytes());
            // However it is cut.
            let bytes: Vec<&[u8]> = hostile.as_bytes().chunks(1).collect();
            assert_eq!(written(&bytes, true, is_text), shown.as_bytes());
            assert_eq!(written(&bytes, false, is_text), hostile.as_bytes());
        }
    }

    #[test]
    fn blocks_are_as_their_bytes() {
        let other = format!("\u{1b}é\u{9b}{}", table::text::of_octets(b"\xff"));
        let other = [other.as_bytes(), b"\xf8"].concat();
        for at in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let mut text = vec![b'a'; 3 * BLOCK];
            text.splice(at..at, other.iter().copied());
            for (on, is_text) in [(true, true), (true, false), (false, true)] {
                let bytes: Vec<&[u8]> = text.chunks(1).collect();
                let whole = written(&[&text], on, is_text);
                assert_eq!(whole, written(&bytes, on, is_text), "{at} {on} {is_text}");
                assert_eq!(whole == text, !on && !is_text);
            }
        }
    }

    #[test]
    fn colours_are_what_the_rows_do_not_say_themselves() {
        let name = table::text::of_octets(b"e\xf8\x1b[31m\xff");
        let marked = [b"\xf8".as_slice(), name.as_bytes(), b"\xff\n"].concat();
        let shown = String::from_utf8(written(&[&marked], true, true)).unwrap();
        assert_eq!(shown, "\u{1b}[36me\\xf8\\x1b[31m\\xff\u{1b}[0m\n");
    }

    #[test]
    fn octets_of_names_are_in_text_what_they_were_and_never_rule_a_terminal() {
        let name = table::text::of_octets(b"e\xff\x9b\x80\xee\xbe");
        let text = format!("{name}: \u{ee00} \u{ef00}x\n");
        let raw = [
            b"e\xff\x9b\x80\xee\xbe".as_slice(),
            ": \u{ee00} \u{ef00}x\n".as_bytes(),
        ]
        .concat();
        for bytes in [
            text.as_bytes().chunks(1).collect::<Vec<_>>(),
            vec![text.as_bytes()],
        ] {
            assert_eq!(written(&bytes, false, true), raw);
            assert_eq!(written(&bytes, false, false), text.as_bytes());
            let shown = written(&bytes, true, true);
            assert!(
                shown.starts_with(b"e\\xff\\x9b\\x80\\xee\\xbe: "),
                "{shown:?}"
            );
        }
    }
}
