//! Numbers and addresses as text, appended to bytes: faster than `write!`,
//! which goes through `fmt::Arguments` for each.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

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
pub(crate) fn text(string: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(string.as_bytes());
}

/// Names of the flags that are set, between commas and angle brackets.
pub(crate) fn flags(bits: u32, names: &[(u32, &str)], to: &mut Vec<u8>) {
    to.push(b'<');
    let mut comma = false;
    for (bit, name) in names {
        if bits & bit != 0 {
            if comma {
                to.push(b',');
            }
            comma = true;
            text(name, to);
        }
    }
    to.push(b'>');
}

/// A number in hexadecimal.
pub(crate) fn hex(number: u32, text: &mut Vec<u8>) {
    let digits = (35 - (number | 1).leading_zeros()) / 4;
    for digit in (0..digits).rev() {
        text.push(HEX[(number >> (4 * digit) & 15) as usize]);
    }
}

/// A number in hexadecimal with all its eight digits.
pub(crate) fn hex_padded(number: u32, text: &mut Vec<u8>) {
    for digit in (0..8).rev() {
        text.push(HEX[(number >> (4 * digit) & 15) as usize]);
    }
}

/// An octet in hexadecimal, upper case.
pub(crate) fn hex_octet_upper(octet: u8, text: &mut Vec<u8>) {
    for digit in [octet >> 4, octet & 15] {
        text.push(HEX[usize::from(digit)].to_ascii_uppercase());
    }
}

/// The netmask of a prefix length; all ones beyond 32.
pub(crate) fn netmask(prefix_len: u8) -> Ipv4Addr {
    let zeros = 32_u32.saturating_sub(u32::from(prefix_len));
    Ipv4Addr::from_bits(u32::MAX.checked_shl(zeros).unwrap_or(0))
}

/// An IPv6 address, as `inet_ntop` writes it: one compatible with IPv4
/// (`::10.2.3.4`) ends in dots, which the standard library's does not.
pub(crate) fn ipv6(address: Ipv6Addr, text: &mut Vec<u8>) {
    let segments = address.segments();
    if segments[..6] == [0; 6] && segments[6] != 0 {
        text.extend_from_slice(b"::");
        ipv4(Ipv4Addr::from_bits(address.to_bits() as u32), text);
    } else {
        // A vector takes whatever is written.
        let _ = write!(text, "{address}");
    }
}

/// A number in decimal, filled up with spaces on its left.
pub(crate) fn decimal_right(number: u64, width: usize, text: &mut Vec<u8>) {
    let len = number.checked_ilog10().unwrap_or(0) as usize + 1;
    pad(text.len() + width.saturating_sub(len), text);
    decimal(number, text);
}

/// A number in decimal.
pub(crate) fn decimal(mut number: u64, text: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// An IPv4 address.
pub(crate) fn ipv4(address: Ipv4Addr, text: &mut Vec<u8>) {
    let mut chars = [0; 15];
    let mut at = 0;
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            chars[at] = b'.';
            at += 1;
        }
        if octet >= 100 {
            chars[at] = b'0' + octet / 100;
            at += 1;
        }
        if octet >= 10 {
            chars[at] = b'0' + octet / 10 % 10;
            at += 1;
        }
        chars[at] = b'0' + octet % 10;
        at += 1;
    }
    text.extend_from_slice(&chars[..at]);
}

/// Octets in hexadecimal with colons.
pub(crate) fn lladdr(octets: &[u8], text: &mut Vec<u8>) {
    for (index, octet) in octets.iter().enumerate() {
        let digits = [
            b':',
            HEX[usize::from(octet >> 4)],
            HEX[usize::from(octet & 15)],
        ];
        text.extend_from_slice(&digits[usize::from(index == 0)..]);
    }
}

/// Spaces up to a position in the text; none if it is there already.
pub(crate) fn pad(to: usize, text: &mut Vec<u8>) {
    if text.len() < to {
        text.resize(to, b' ');
    }
}

/// A JSON string.
pub(crate) fn json_string(string: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    for byte in string.bytes() {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                text.extend_from_slice(b"\\u00");
                text.push(HEX[usize::from(byte >> 4)]);
                text.push(HEX[usize::from(byte & 15)]);
            }
            _ => text.push(byte),
        }
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::{decimal, decimal_right, hex, hex_padded, ipv4, ipv6, lladdr, netmask};
    use std::net::Ipv4Addr;

    fn text(put: impl Fn(&mut Vec<u8>)) -> String {
        let mut text = Vec::new();
        put(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn as_the_standard_library_writes_them() {
        for number in [0, 9, 10, 99, 100, 12_345, u64::MAX] {
            assert_eq!(text(|to| decimal(number, to)), number.to_string());
        }
        for octet in 0..=255 {
            let address = Ipv4Addr::new(octet, 255 - octet, 0, octet);
            assert_eq!(text(|to| ipv4(address, to)), address.to_string());
        }
        for number in [0, 1, 15, 16, 0x8843, u32::MAX] {
            assert_eq!(text(|to| hex(number, to)), format!("{number:x}"));
            assert_eq!(text(|to| hex_padded(number, to)), format!("{number:08x}"));
            let right = text(|to| decimal_right(number.into(), 6, to));
            assert_eq!(right, format!("{number:>6}"));
        }
        for address in [
            "::",
            "::1",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "2001:db8::1:0:0:1",
        ] {
            let put = text(|to| ipv6(address.parse().unwrap(), to));
            assert_eq!(put, address);
        }
        assert_eq!(netmask(0), Ipv4Addr::UNSPECIFIED);
        assert_eq!(netmask(30), Ipv4Addr::new(255, 255, 255, 252));
        assert_eq!(netmask(200), Ipv4Addr::BROADCAST);
        assert_eq!(text(|to| lladdr(&[0, 0x0c, 0xff], to)), "00:0c:ff");
        assert_eq!(text(|to| lladdr(&[], to)), "");
    }
}
