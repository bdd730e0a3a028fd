//! FTP's control connection: where its lines name an address and a port
//! (RFC 959 §4.1.2 PORT and reply 227, RFC 2428 EPRT and reply 229), and how
//! another is written there. Bytes only; the side table is `control`.

use std::net::Ipv4Addr;

use super::named::{Form, Named};

/// The port of control connections (RFC 959 §8).
pub const PORT: u16 = 21;
/// The port that servers make data connections from (RFC 959 §3.2).
pub const DATA_PORT: u16 = 20;
/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The client sends commands.
    Client,
    /// The server sends replies.
    Server,
}

/// The endpoint that a line names, its end left out. O(bytes).
pub fn read(line: &[u8], speaker: Speaker) -> Option<Named> {
    let (start, form) = match speaker {
        Speaker::Client if command(line, b"PORT") => (5, Form::Commas),
        Speaker::Client if command(line, b"EPRT") => {
            let start = 5 + spaces(line.get(5..)?);
            (start, Form::Extended(*line.get(start)?))
        }
        Speaker::Server if line.starts_with(b"227 ") => {
            // RFC 1123 §4.1.2.6: only the digits can be relied on.
            let first = line.get(4..)?.iter().position(u8::is_ascii_digit)?;
            (4 + first, Form::Commas)
        }
        Speaker::Server if line.starts_with(b"229 ") => {
            let bracket = line.iter().position(|byte| *byte == b'(')?;
            (bracket + 1, Form::PortOnly(*line.get(bracket + 1)?))
        }
        _ => return None,
    };
    let start = start + spaces(line.get(start..)?);
    let mut reader = Reader {
        bytes: line,
        at: start,
    };
    let (address, port) = reader.endpoint(form)?;
    (port != 0).then_some(Named {
        start,
        end: reader.at,
        form,
        address,
        port,
    })
}

fn command(line: &[u8], verb: &[u8]) -> bool {
    let head = line.get(..verb.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(verb)) && line.get(verb.len()) == Some(&b' ')
}

fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == b' ').count()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn endpoint(&mut self, form: Form) -> Option<(Option<Ipv4Addr>, u16)> {
        match form {
            Form::Commas => {
                let mut octets = [0; 6];
                for (place, octet) in octets.iter_mut().enumerate() {
                    if place > 0 {
                        self.expect(b',')?;
                    }
                    *octet = u8::try_from(self.number()?).ok()?;
                }
                let [a, b, c, d, high, low] = octets;
                let port = u16::from_be_bytes([high, low]);
                Some((Some(Ipv4Addr::new(a, b, c, d)), port))
            }
            Form::Extended(delimiter) => {
                self.delimiter(delimiter)?;
                // Network protocol 1: IPv4.
                self.expect(b'1')?;
                self.expect(delimiter)?;
                let mut octets = [0; 4];
                for (place, octet) in octets.iter_mut().enumerate() {
                    if place > 0 {
                        self.expect(b'.')?;
                    }
                    *octet = u8::try_from(self.number()?).ok()?;
                }
                self.expect(delimiter)?;
                let port = self.port(delimiter)?;
                Some((Some(Ipv4Addr::from(octets)), port))
            }
            Form::PortOnly(delimiter) => {
                self.delimiter(delimiter)?;
                self.expect(delimiter)?;
                self.expect(delimiter)?;
                Some((None, self.port(delimiter)?))
            }
            // No line of FTP has it.
            _ => None,
        }
    }

    fn port(&mut self, delimiter: u8) -> Option<u16> {
        let port = u16::try_from(self.number()?).ok()?;
        self.expect(delimiter)?;
        Some(port)
    }

    /// RFC 2428 §2: any of ASCII 33 to 126; a digit or a dot would make the
    /// fields ambiguous.
    fn delimiter(&mut self, delimiter: u8) -> Option<()> {
        let fit = delimiter.is_ascii_graphic() && !matches!(delimiter, b'0'..=b'9' | b'.');
        fit.then_some(()).and_then(|()| self.expect(delimiter))
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (*self.bytes.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// One to five digits.
    fn number(&mut self) -> Option<u32> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit());
        let (mut number, mut count) = (0, 0);
        for digit in digits {
            number = number * 10 + u32::from(digit - b'0');
            count += 1;
        }
        self.at += count;
        (1..=5).contains(&count).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::named::write;
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

    fn named(text: &str, speaker: Speaker) -> Option<(Option<Ipv4Addr>, u16, &str)> {
        let named = read(text.as_bytes(), speaker)?;
        Some((named.address, named.port, &text[named.start..named.end]))
    }

    #[test]
    fn each_form() {
        use Speaker::{Client, Server};
        let port = Some((Some(HOST), 5_001, "10,0,0,5,19,137"));
        assert_eq!(named("PORT 10,0,0,5,19,137\r", Client), port);
        assert_eq!(named("port  10,0,0,5,19,137\r", Client), port);
        assert_eq!(named("227 Entering (10,0,0,5,19,137).\r", Server), port);
        assert_eq!(named("227 =10,0,0,5,19,137\r", Server), port);
        let extended = Some((Some(HOST), 5_001, "|1|10.0.0.5|5001|"));
        assert_eq!(named("EPRT |1|10.0.0.5|5001|\r", Client), extended);
        let port_only = Some((None, 5_001, "|||5001|"));
        assert_eq!(named("229 Ok (|||5001|)\r", Server), port_only);
    }

    #[test]
    fn what_is_none() {
        use Speaker::{Client, Server};
        for text in [
            "",
            "USER a\r",
            "PORT 10,0,0,5,19,\r",
            "PORT 10,0,0,256,1,1\r",
            "PORT 10,0,0,5,0,0\r",
            "PORT 10,0,0,5,1\r",
            "PORTER 1,2,3,4,5,6\r",
            "EPRT |2|::1|5001|\r",
            "EPRT |1|10.0.0.5|65536|\r",
            "EPRT 111010.0.0.5150011\r",
            "EPRT \r",
            "PORT 000001,0,0,0,0,1\r",
        ] {
            assert_eq!(named(text, Client), None, "{text}");
        }
        for text in ["227 \r", "229 (\r", "229 (||5001|)\r", "PORT 1,2,3,4,5,6\r"] {
            assert_eq!(named(text, Server), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for speaker in [Speaker::Client, Speaker::Server] {
                if let Some(named) = read(&bytes, speaker) {
                    prop_assert!(named.start < named.end && named.end <= bytes.len());
                }
            }
        }

        #[test]
        fn what_is_written_is_read(a in any::<u32>(), port in 1_u16.., which in 0..3) {
            let (speaker, head, form) = match which {
                0 => (Speaker::Client, "PORT ", Form::Commas),
                1 => (Speaker::Client, "EPRT ", Form::Extended(b'!')),
                _ => (Speaker::Server, "229 (", Form::PortOnly(b'|')),
            };
            let text = write(form, Ipv4Addr::from(a), port);
            let line = [head.as_bytes(), &text, b")\r"].concat();
            let named = read(&line, speaker).unwrap();
            prop_assert_eq!((named.port, named.form, named.end - named.start), (port, form, text.len()));
        }
    }
}
