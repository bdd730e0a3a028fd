//! What the kernel or a daemon says, on its way to a terminal: bytes that a
//! terminal would obey are shown instead. Anybody who may name a link or
//! write an alias could otherwise move the cursor or set the window's title
//! of whoever lists them.

use std::io::{self, IsTerminal, Stdout, StdoutLock, Write};

/// Writes control bytes as `\x1b`, if that is switched on; line feeds and
/// tabs pass.
pub struct Escaped<W> {
    out: W,
    on: bool,
    /// The first byte of a character that may be a control character.
    held: bool,
}

/// The first byte of the control characters from U+0080 on, in UTF-8.
const LEAD: u8 = 0xc2;

impl<'a> Escaped<StdoutLock<'a>> {
    /// Standard output, escaped if it is a terminal.
    pub fn stdout(out: &'a Stdout) -> Self {
        Self::new(out.lock(), out.is_terminal())
    }
}

impl<W: Write> Escaped<W> {
    fn new(out: W, on: bool) -> Self {
        Self {
            out,
            on,
            held: false,
        }
    }

    fn escape(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len() + 16);
        for byte in bytes {
            let second = std::mem::take(&mut self.held);
            match byte {
                0x80..=0x9f if second => show(&[LEAD, *byte], &mut shown),
                _ => {
                    if second {
                        shown.push(LEAD);
                    }
                    match byte {
                        &LEAD => self.held = true,
                        b'\n' | b'\t' => shown.push(*byte),
                        0..0x20 | 0x7f => show(&[*byte], &mut shown),
                        _ => shown.push(*byte),
                    }
                }
            }
        }
        shown
    }
}

fn show(bytes: &[u8], shown: &mut Vec<u8>) {
    for byte in bytes {
        shown.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.on {
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

    fn written(parts: &[&[u8]], on: bool) -> String {
        let mut out = Escaped::new(Vec::new(), on);
        for part in parts {
            out.write_all(part).unwrap();
        }
        String::from_utf8(out.out).unwrap()
    }

    #[test]
    fn a_terminal_is_shown_what_it_would_obey() {
        let hostile = "e\u{1b}[2Jth\u{7}\r\u{9b}1m é\tÂ\n";
        let shown = "e\\x1b[2Jth\\x07\\x0d\\xc2\\x9b1m é\tÂ\n";
        assert_eq!(written(&[hostile.as_bytes()], true), shown);
        // However it is cut.
        let bytes: Vec<&[u8]> = hostile.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes, true), shown);
        assert_eq!(written(&bytes, false), hostile);
    }
}
