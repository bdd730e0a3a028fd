//! Numbers and addresses as text, appended to bytes: faster than `write!`,
//! which goes through `fmt::Arguments` for each.

use std::net::Ipv4Addr;

const HEX: &[u8; 16] = b"0123456789abcdef";

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
    use super::*;

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
        assert_eq!(text(|to| lladdr(&[0, 0x0c, 0xff], to)), "00:0c:ff");
        assert_eq!(text(|to| lladdr(&[], to)), "");
    }
}
