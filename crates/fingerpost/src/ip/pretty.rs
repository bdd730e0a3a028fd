//! JSON as `ip -p` lays it out: four blanks a level, a list of plain values
//! on one line. Called by [`super::show`].

use std::io::{self, Write};

/// Writes compact JSON with line breaks.
pub fn write(compact: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    // Of each open list: whether it is one of plain values.
    let mut open: Vec<bool> = Vec::new();
    let mut bytes = compact.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if in_string {
            text.push(byte);
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                text.push(byte);
            }
            b'{' | b'[' => {
                let is_empty = matches!(bytes.peek(), Some(b'}' | b']'));
                let is_plain = byte == b'[' && !matches!(bytes.peek(), Some(b'{' | b'['));
                text.push(byte);
                depth += 1;
                open.push(is_plain || is_empty);
                if byte == b'{' && !is_empty {
                    line(&mut text, depth);
                }
                if byte == b'[' && !is_empty {
                    text.push(b' ');
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                let is_plain = open.pop().unwrap_or_default();
                if byte == b'}' && !is_plain {
                    line(&mut text, depth);
                } else if byte == b']' {
                    text.push(b' ');
                }
                text.push(byte);
            }
            b',' => {
                text.push(byte);
                if !open.last().copied().unwrap_or_default() && !matches!(bytes.peek(), Some(b'{'))
                {
                    line(&mut text, depth);
                }
            }
            b':' => text.extend_from_slice(b": "),
            b'\n' => {}
            _ => text.push(byte),
        }
    }
    text.push(b'\n');
    out.write_all(&text)
}

fn line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.resize(text.len() + depth * 4, b' ');
}
