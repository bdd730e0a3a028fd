//! IRC: where a client offers another one a connection of its own (DCC), in
//! a message that goes through the server. Nobody knows where the other one
//! will come from.

use std::net::Ipv4Addr;

use super::named::{Form, Named};

/// The port of servers (RFC 7194 §1).
pub const PORT: u16 = 6_667;

/// What begins an offer in a message.
const OFFER: &[u8] = b"\x01DCC ";
/// Offers that name an endpoint of who makes them.
const KINDS: [&[u8]; 2] = [b"SEND ", b"CHAT "];

/// The endpoint that a line offers, its end left out: `PRIVMSG nick
/// :^ADCC SEND file 3221225985 5001 …^A`. O(bytes).
pub fn read(line: &[u8]) -> Option<Named> {
    if !line.get(..8)?.eq_ignore_ascii_case(b"PRIVMSG ") {
        return None;
    }
    let offer = line.windows(OFFER.len()).position(|bytes| bytes == OFFER)?;
    let at = offer + OFFER.len();
    let kind = line.get(at..at + 5)?;
    if !KINDS.contains(&kind) {
        return None;
    }
    let name = at + kind.len();
    let start = name + name_len(line.get(name..)?)?;
    let (address, digits) = number(line.get(start..)?)?;
    let gap = start + digits;
    if line.get(gap) != Some(&b' ') {
        return None;
    }
    let (port, digits) = number(line.get(gap + 1..)?)?;
    let end = gap + 1 + digits;
    if !matches!(line.get(end), Some(b' ' | b'\x01')) {
        return None;
    }
    // Port 0 asks the other one to wait for a connection instead.
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    Some(Named {
        start,
        end,
        form: Form::Numbers,
        address: Some(Ipv4Addr::from_bits(address)),
        port,
    })
}

/// Bytes of a file's name and the blank behind it; a name with blanks stands
/// in quotes.
fn name_len(rest: &[u8]) -> Option<usize> {
    let quoted = rest.first() == Some(&b'"');
    let from = usize::from(quoted);
    let end = if quoted { b'"' } else { b' ' };
    let len = rest.get(from..)?.iter().position(|byte| *byte == end)?;
    if !quoted {
        return (len > 0).then_some(len + 1);
    }
    let behind = from + len + 1;
    (rest.get(behind) == Some(&b' ')).then_some(behind + 1)
}

/// A number of 32 bits, and how many digits it has.
fn number(rest: &[u8]) -> Option<(u32, usize)> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = std::str::from_utf8(rest.get(..digits)?).ok()?;
    Some((text.parse().ok()?, digits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::named::write;
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn named(line: &str) -> Option<(Option<Ipv4Addr>, u16, &str)> {
        let named = read(line.as_bytes())?;
        Some((named.address, named.port, &line[named.start..named.end]))
    }

    #[test]
    fn each_offer() {
        let expected = Some((Some(HOST), 5_001, "3221225985 5001"));
        for line in [
            "PRIVMSG bob :\x01DCC SEND file 3221225985 5001 77\x01\r",
            "privmsg bob :\x01DCC SEND \"my file\" 3221225985 5001 77\x01\r",
            "PRIVMSG bob :\x01DCC CHAT chat 3221225985 5001\x01\r",
        ] {
            assert_eq!(named(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_none() {
        for line in [
            "",
            "PRIVMSG bob :DCC SEND file 3221225985 5001\r",
            "NOTICE bob :\x01DCC SEND file 3221225985 5001\x01\r",
            "PRIVMSG bob :\x01DCC RESUME file 5001 4096\x01\r",
            "PRIVMSG bob :\x01DCC SEND file 3221225985 0 77 5\x01\r",
            "PRIVMSG bob :\x01DCC SEND file 3221225985 70000\x01\r",
            "PRIVMSG bob :\x01DCC SEND file 4294967296 5001\x01\r",
            "PRIVMSG bob :\x01DCC SEND \"file 3221225985 5001\x01\r",
            "PRIVMSG bob :\x01DCC SEND  3221225985 5001\x01\r",
            "PRIVMSG bob :\x01DCC SEND file 3221225985 5001",
        ] {
            assert_eq!(named(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let line = [b"PRIVMSG b :\x01DCC SEND ", bytes.as_slice()].concat();
            for line in [&bytes, &line] {
                if let Some(named) = read(line) {
                    prop_assert!(named.start < named.end && named.end <= line.len());
                }
            }
        }

        #[test]
        fn what_is_written_is_read(address in any::<u32>(), port in 1_u16..) {
            let text = write(Form::Numbers, address.into(), port);
            let line = [b"PRIVMSG b :\x01DCC CHAT c ", text.as_slice(), b"\x01\r"].concat();
            let named = read(&line).unwrap();
            prop_assert_eq!((named.address, named.port), (Some(address.into()), port));
        }
    }
}
