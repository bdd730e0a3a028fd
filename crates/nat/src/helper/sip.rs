//! SIP over UDP (RFC 3261): where a message says at which end its sender is
//! (§18.1.1 Via, §20.10 Contact, §20.30 Record-Route, and what they become in
//! a request's first line), and where the media of the session that it
//! describes are to come to (SDP, RFC 4566 §5.7, §5.14; RFC 3605). Bytes only;
//! what is written there is [`super::calling`]'s.
//!
//! No more is looked at than has to be: not From, To or Call-ID, which name
//! nobody's place, no other body than SDP, no candidates of ICE.

use std::io::Write;
use std::net::Ipv4Addr;

use arrayvec::ArrayVec;

use super::Refusal;
use super::edit::MAX_EDITS;
use super::sequence::Text;

/// The port of SIP, where none is named (RFC 3261 §19.1.2).
pub const PORT: u16 = 5_060;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An address, and a port where one is named.
    End(Option<u16>),
    /// An address alone.
    Address,
    /// The first of so many ports in a row.
    Media(u16, u16),
    /// A port for what is told about media, and the media's own.
    Control(u16, u16),
    /// How long the body is, bytes.
    Length(usize),
}

/// A place in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What stands there.
    pub what: What,
}

/// The places of a message, in order.
pub type Places = ArrayVec<Place, MAX_EDITS>;

/// Where a message names the address `own`; of a message that goes out
/// (`out`) also in its description of a session. None of what is no SIP.
/// O(bytes).
pub fn read(data: &[u8], own: Ipv4Addr, out: bool) -> Result<Places, Refusal> {
    let mut reader = Reader {
        data,
        own: address_text(own),
        places: Places::new(),
    };
    let body = reader.headers(out)?;
    if let Some(body) = body.filter(|_| out) {
        reader.session(body)?;
    }
    reader.places.sort_unstable_by_key(|place| place.start);
    Ok(reader.places)
}

/// An address, with a port as well.
pub fn end_text((address, port): (Ipv4Addr, u16), with_port: bool) -> Text {
    let mut text = address_text(address);
    // 21 bytes at most.
    if with_port || port != PORT {
        let _ = write!(text, ":{port}");
    }
    text
}

/// A number.
pub fn number_text(number: usize) -> Text {
    let mut text = Text::new();
    // 20 bytes at most.
    let _ = write!(text, "{number}");
    text
}

/// An address.
pub fn address_text(address: Ipv4Addr) -> Text {
    let mut text = Text::new();
    // 15 bytes at most.
    let _ = write!(text, "{address}");
    text
}

/// What a header is looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    Ends,
    Length,
    Kind,
    Other,
}

fn header(name: &[u8]) -> Header {
    let is = |names: &[&[u8]]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    if is(&[b"via", b"v", b"contact", b"m", b"record-route", b"route"]) {
        Header::Ends
    } else if is(&[b"content-length", b"l"]) {
        Header::Length
    } else if is(&[b"content-type", b"c"]) {
        Header::Kind
    } else {
        Header::Other
    }
}

struct Reader<'a> {
    data: &'a [u8],
    own: Text,
    places: Places,
}

/// The media of a session that is being read.
#[derive(Debug, Clone, Copy)]
struct Stream {
    is_own: bool,
    media: Option<Place>,
    control: Option<Place>,
}

impl<'a> Reader<'a> {
    /// The line at a place, its end left out, and where the next one begins.
    fn line(&self, at: usize) -> Option<(&'a [u8], usize)> {
        let rest = self.data.get(at..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = rest.get(..end.unwrap_or(rest.len()))?;
        let next = at + end.map_or(rest.len(), |end| end + 1);
        Some((line.strip_suffix(b"\r").unwrap_or(line), next))
    }

    /// The first line and the headers. Where the body begins, if that is a
    /// session's description.
    fn headers(&mut self, out: bool) -> Result<Option<usize>, Refusal> {
        let Some((first, mut at)) = self.line(0) else {
            return Ok(None);
        };
        let is_request = first.ends_with(b" SIP/2.0");
        if !is_request && !first.starts_with(b"SIP/2.0 ") {
            return Ok(None);
        }
        if is_request {
            self.ends(first, 0)?;
        }
        let (mut last, mut is_session) = (Header::Other, false);
        while let Some((line, next)) = self.line(at) {
            if line.is_empty() {
                return Ok(is_session.then_some(next));
            }
            // A line that begins with a blank goes on with the one before
            // (RFC 3261 §7.3.1).
            let mut value_at = at;
            if !line
                .first()
                .is_some_and(|byte| matches!(byte, b' ' | b'\t'))
            {
                let colon = line.iter().position(|byte| *byte == b':');
                let colon = colon.unwrap_or(line.len());
                last = header(line.get(..colon).unwrap_or_default().trim_ascii());
                value_at += (colon + 1).min(line.len());
            }
            let value = line.get(value_at - at..).unwrap_or_default();
            match last {
                Header::Ends => self.ends(value, value_at)?,
                Header::Length if out => self.length(value, value_at)?,
                Header::Kind => is_session |= is_session_kind(value),
                _ => {}
            }
            at = next;
        }
        Ok(None)
    }

    fn put(&mut self, start: usize, len: usize, what: What) -> Result<(), Refusal> {
        let place = Place {
            start,
            end: start + len,
            what,
        };
        self.places.try_push(place).map_err(|_| Refusal::TooMany)
    }

    fn length(&mut self, value: &[u8], at: usize) -> Result<(), Refusal> {
        let blanks = blanks(value);
        match number(value.get(blanks..).unwrap_or_default()) {
            Some((length, digits)) => {
                self.put(at + blanks, digits, What::Length(usize::from(length)))
            }
            None => Ok(()),
        }
    }

    /// All places of our address in a piece that stands at `at`.
    fn ends(&mut self, piece: &[u8], at: usize) -> Result<(), Refusal> {
        let own = self.own.clone();
        let mut from = 0;
        while let Some(found) = find(piece, &own, from) {
            let behind = found + own.len();
            let before = found.checked_sub(1).and_then(|place| piece.get(place));
            // Not a parameter's value, such as what a server has seen.
            let is_host = matches!(before, None | Some(b'@' | b':' | b' ' | b'\t'));
            let rest = piece.get(behind..).unwrap_or_default();
            let port = rest.strip_prefix(b":").and_then(number);
            let len = own.len() + port.map_or(0, |(_, digits)| 1 + digits);
            if is_host && is_end(piece.get(found + len)) {
                let port = port.map(|(port, _)| port);
                self.put(at + found, len, What::End(port))?;
            }
            from = behind;
        }
        Ok(())
    }

    /// A session's description from a place on.
    fn session(&mut self, mut at: usize) -> Result<(), Refusal> {
        let mut is_own = false;
        let mut stream: Option<Stream> = None;
        while let Some((line, next)) = self.line(at) {
            let value = line.get(2..).unwrap_or_default();
            let value_at = at + 2;
            match line.get(..2) {
                Some(b"o=") => {
                    self.address(value, value_at, 3)?;
                }
                Some(b"c=") => {
                    let own = self.address(value, value_at, 0)?;
                    match &mut stream {
                        Some(stream) => stream.is_own = own,
                        None => is_own = own,
                    }
                }
                Some(b"m=") => {
                    self.end_stream(stream.take())?;
                    stream = Some(Stream {
                        is_own,
                        media: media(value, value_at),
                        control: None,
                    });
                }
                Some(b"a=") => {
                    if let Some(stream) = &mut stream
                        && let Some(rtcp) = value.strip_prefix(b"rtcp:")
                    {
                        stream.control = control(rtcp, value_at + 5, stream.media);
                        if let Some(blank) = rtcp.iter().position(|byte| *byte == b' ') {
                            let rest = rtcp.get(blank + 1..).unwrap_or_default();
                            self.address(rest, value_at + 5 + blank + 1, 0)?;
                        }
                    }
                }
                _ => {}
            }
            at = next;
        }
        self.end_stream(stream)
    }

    /// The ports of media are ours if their address is.
    fn end_stream(&mut self, stream: Option<Stream>) -> Result<(), Refusal> {
        let Some(stream) = stream.filter(|stream| stream.is_own) else {
            return Ok(());
        };
        for place in [stream.media, stream.control].into_iter().flatten() {
            let len = place.end - place.start;
            self.put(place.start, len, place.what)?;
        }
        Ok(())
    }

    /// `IN IP4 ADDRESS` behind so many words; whether the address is ours.
    fn address(&mut self, value: &[u8], at: usize, words: usize) -> Result<bool, Refusal> {
        let mut from = 0;
        for _ in 0..words {
            let rest = value.get(from..).unwrap_or_default();
            match rest.iter().position(|byte| *byte == b' ') {
                Some(blank) => from += blank + 1,
                None => return Ok(false),
            }
        }
        let rest = value.get(from..).unwrap_or_default();
        let Some(address) = rest.strip_prefix(b"IN IP4 ") else {
            return Ok(false);
        };
        let len = self.own.len();
        let is_own = address.starts_with(&self.own) && is_end(address.get(len));
        if is_own {
            self.put(at + from + 7, len, What::Address)?;
        }
        Ok(is_own)
    }
}

/// The port of `audio 49170 RTP/AVP 0`; several (`49170/2`), none (0), and
/// what does not go by UDP stay as they are.
fn media(value: &[u8], at: usize) -> Option<Place> {
    let blank = value.iter().position(|byte| *byte == b' ')?;
    let (port, digits) = number(value.get(blank + 1..)?)?;
    let behind = blank + 1 + digits;
    let protocol = value.get(behind..)?.strip_prefix(b" ")?;
    let ports = match protocol {
        [b'R', b'T', b'P', b'/', ..] => 2,
        _ => {
            let head = protocol.get(..3)?;
            u16::from(head.eq_ignore_ascii_case(b"udp"))
        }
    };
    (port != 0 && ports != 0).then_some(Place {
        start: at + blank + 1,
        end: at + behind,
        what: What::Media(port, ports),
    })
}

/// The port of `rtcp:53020` (RFC 3605), for media whose port is ours.
fn control(value: &[u8], at: usize, media: Option<Place>) -> Option<Place> {
    let (port, digits) = number(value)?;
    let Some(What::Media(of, _)) = media.map(|media| media.what) else {
        return None;
    };
    (port != 0).then_some(Place {
        start: at,
        end: at + digits,
        what: What::Control(port, of),
    })
}

fn is_session_kind(value: &[u8]) -> bool {
    const KIND: &[u8] = b"application/sdp";
    let kind = value.get(blanks(value)..).unwrap_or_default();
    let head = kind.get(..KIND.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(KIND))
}

fn blanks(bytes: &[u8]) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    bytes.iter().take_while(is_blank).count()
}

/// Whether no address goes on with this byte.
fn is_end(byte: Option<&u8>) -> bool {
    !byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'))
}

fn find(piece: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = piece.get(from..)?;
    let at = rest.windows(wanted.len()).position(|part| part == wanted)?;
    Some(from + at)
}

/// A number of 16 bits, and how many digits it has.
fn number(bytes: &[u8]) -> Option<(u16, usize)> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    let text = std::str::from_utf8(bytes.get(..digits)?).ok()?;
    Some((text.parse().ok()?, digits))
}

#[cfg(test)]
mod tests;
