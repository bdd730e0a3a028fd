//! What the layouts of `arp` and `ifconfig` need beside
//! [`format`](crate::format).

use std::io::{self, Write};
use std::net::Ipv4Addr;

use crate::format::push_u64;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// When so much is gathered, it is written.
pub(crate) const ENOUGH_BYTES: usize = 64 * 1024;

/// Text on its way out, in pieces of about 64 KiB: system calls grow with
/// bytes, not with rows.
#[derive(Debug)]
pub(crate) struct Pieces<W: Write> {
    /// What is not yet written; append to it.
    pub(crate) text: Vec<u8>,
    out: W,
}

impl<W: Write> Pieces<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            text: Vec::with_capacity(ENOUGH_BYTES + 1024),
            out,
        }
    }

    /// Writes, if enough is gathered.
    pub(crate) fn row_done(&mut self) -> io::Result<()> {
        if self.text.len() >= ENOUGH_BYTES {
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    /// Writes what is left and flushes.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&self.text)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A string.
pub(crate) fn push_text(out: &mut Vec<u8>, string: &str) {
    out.extend_from_slice(string.as_bytes());
}

/// Names of the flags that are set, between commas and angle brackets.
pub(crate) fn push_flags(out: &mut Vec<u8>, bits: u32, names: &[(u32, &str)]) {
    out.push(b'<');
    let mut is_first = true;
    for (bit, name) in names {
        if bits & bit != 0 {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            push_text(out, name);
        }
    }
    out.push(b'>');
}

/// An octet in hexadecimal, upper case.
pub(crate) fn push_octet_upper(out: &mut Vec<u8>, octet: u8) {
    for digit in [octet >> 4, octet & 15] {
        out.push(HEX[usize::from(digit)].to_ascii_uppercase());
    }
}

/// A number in decimal, filled up with spaces on its left.
pub(crate) fn push_right(out: &mut Vec<u8>, number: u64, width: usize) {
    let len = number.checked_ilog10().unwrap_or(0) as usize + 1;
    pad_to(out, out.len() + width.saturating_sub(len));
    push_u64(out, number);
}

/// Spaces up to a length of the text; none if it is that long already.
pub(crate) fn pad_to(out: &mut Vec<u8>, len: usize) {
    if out.len() < len {
        out.resize(len, b' ');
    }
}

/// The netmask of a prefix length; all ones beyond 32.
pub(crate) fn netmask(prefix_len: u8) -> Ipv4Addr {
    let zeros = 32_u32.saturating_sub(u32::from(prefix_len));
    Ipv4Addr::from_bits(u32::MAX.checked_shl(zeros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl Fn(&mut Vec<u8>)) -> String {
        let mut text = Vec::new();
        push(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_as_the_standard_library_writes_them() {
        for number in [0, 1, 9, 10, 15, 16, 0x8843, u32::MAX] {
            let right = text(|to| push_right(to, number.into(), 6));
            assert_eq!(right, format!("{number:>6}"));
        }
        for octet in [0, 9, 0xab] {
            assert_eq!(
                text(|to| push_octet_upper(to, octet)),
                format!("{octet:02X}")
            );
        }
    }

    #[test]
    fn netmasks() {
        assert_eq!(netmask(0), Ipv4Addr::UNSPECIFIED);
        assert_eq!(netmask(30), Ipv4Addr::new(255, 255, 255, 252));
        assert_eq!(netmask(200), Ipv4Addr::BROADCAST);
    }
}
