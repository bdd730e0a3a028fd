//! What goes over the control socket. Questions only.
//!
//! A client connects, sends one line of JSON (a [`Request`]) and reads
//! frames until the last one: a type (one byte), the length of what
//! follows (four bytes, little endian), then that many bytes.
//!
//! | type | frame | what follows |
//! |---|---|---|
//! | 1 | [`DATA`] | a piece of the answer, to be written out as it is |
//! | 2 | [`END`] | [`End`] as JSON; the last frame |
//! | 3 | [`ERROR`] | a message for the user; the last frame |
//! | 4 | [`HELLO`] | [`Hello`] as JSON; the first frame of an answer, at once |
//! | 5 | [`BUSY`] | a message for the user: no place is free; the only frame |

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use view::arp::ArpQuestion;
use view::ifconfig::IfconfigQuestion;
use view::{Question, RouteDiffQuestion, RouteFlapsQuestion, RouteQuestion, RouteWhyQuestion};

/// The version of this protocol. Both ends are of one release: a daemon
/// refuses any other version by name.
pub const VERSION: u32 = 2;

/// Bytes of a request at most, the end of the line included.
pub const MAX_REQUEST_BYTES: usize = 64 << 10;

/// Octets that follow a frame's head at most.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// Type of a frame with a piece of the answer.
pub const DATA: u8 = 1;
/// Type of the frame that ends a whole answer.
pub const END: u8 = 2;
/// Type of the frame that ends an answer that failed.
pub const ERROR: u8 = 3;
/// Type of the frame that says that the request was read.
pub const HELLO: u8 = 4;
/// Type of the frame that refuses a client for want of a place.
pub const BUSY: u8 = 5;

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub v: u32,
    /// What it asks.
    pub ask: Ask,
}

/// What may be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The rows of a table.
    Question(Box<Question>),
    /// Which route a packet would take.
    RouteGet(Box<RouteQuestion>),
    /// How the daemon is.
    Status {
        /// As one JSON object.
        json: bool,
    },
    /// The ARP table, in the style of an arp(8).
    Arp(Box<ArpQuestion>),
    /// Links and addresses, in the style of an ifconfig(8).
    Ifconfig(Box<IfconfigQuestion>),
    /// The changes of a table as they happen, a line of JSON each, until
    /// the client goes.
    Watch(Box<Question>),
    /// Where the routes of two sources differ.
    RouteDiff(Box<RouteDiffQuestion>),
    /// The same as it changes, a line of JSON each, until the client goes.
    WatchDiff(Box<RouteDiffQuestion>),
    /// What each source knows of a prefix, and what packets do.
    RouteWhy(Box<RouteWhyQuestion>),
    /// Which routes changed how often.
    RouteFlaps(Box<RouteFlapsQuestion>),
    /// A statement of SQL.
    Sql(Box<query::Question>),
}

impl Ask {
    /// Whether its answer ends only when the client goes.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Watch(_) | Self::WatchDiff(_))
    }

    /// Whether it is about what only a daemon has: several sources.
    pub fn needs_daemon(&self) -> bool {
        matches!(
            self,
            Self::RouteDiff(_) | Self::WatchDiff(_) | Self::RouteWhy(_) | Self::RouteFlaps(_)
        )
    }
}

/// What a daemon says before it answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Why the answer may lack rows, if it may.
    pub incomplete: Option<String>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Rows of the answer.
    pub rows: u64,
    /// Time the daemon took for it, microseconds: from the request being
    /// whole to the last octet being handed over.
    pub took_micros: u64,
    /// Whether only the kernel can tell a part of it: which of several ways
    /// a packet takes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// Reads a request out of a line. The message is for the client.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let version: Version =
        serde_json::from_slice(line).map_err(|error| format!("this is no request: {error}"))?;
    if version.v != VERSION {
        return Err(format!(
            "the daemon speaks version {VERSION} of the control protocol and was asked in version {}; \
             use the fingerpost of the daemon's release, or `--direct`",
            version.v
        ));
    }
    serde_json::from_slice(line)
        .map_err(|error| format!("this request makes no sense to the daemon: {error}"))
}

/// Writes a frame, in one write. Longer payloads than a frame may have are
/// for the caller to cut.
pub fn write_frame(to: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(5 + payload.len());
    push_frame(&mut frame, kind, payload)?;
    to.write_all(&frame)
}

/// Appends a frame to others that wait to be sent.
pub fn push_frame(frames: &mut Vec<u8>, kind: u8, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    frames.push(kind);
    frames.extend_from_slice(&len.to_le_bytes());
    frames.extend_from_slice(payload);
    Ok(())
}

/// Reads a frame into `payload` and gives its type.
pub fn read_frame(from: &mut impl Read, payload: &mut Vec<u8>) -> io::Result<u8> {
    let mut head = [0; 5];
    from.read_exact(&mut head).map_err(hung_up)?;
    let [kind, len @ ..] = head;
    let len = u32::from_le_bytes(len) as usize;
    if len > MAX_FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the daemon sent a frame of {len} octets, {MAX_FRAME_BYTES} at most are legal"),
        ));
    }
    payload.resize(len, 0);
    from.read_exact(payload).map_err(hung_up)?;
    Ok(kind)
}

fn hung_up(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it hung up"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::ifconfig::Which;

    #[test]
    fn requests_survive_the_journey() {
        for ask in [
            Ask::Status { json: true },
            Ask::RouteGet(Box::new(RouteQuestion::to([10, 0, 0, 1].into()))),
            Ask::Arp(Box::new(ArpQuestion {
                style: view::arp::Style::LinuxLines,
                own: true,
                device: Some("a \"link\"".into()),
                host: None,
                hardware: Some(1),
                verbose: false,
                timers: view::arp::Timers::default(),
            })),
            Ask::Ifconfig(Box::new(IfconfigQuestion {
                style: view::ifconfig::Style::BsdNames,
                which: Which::Named("a \"link\"".into()),
            })),
        ] {
            let request = Request { v: VERSION, ask };
            let line = serde_json::to_vec(&request).unwrap();
            assert_eq!(parse_request(&line).unwrap(), request);
        }
    }

    #[test]
    fn another_version_is_refused_by_name_whatever_else_it_says() {
        let message = parse_request(br#"{"v":3,"ask":{"dance":{}},"music":1}"#).unwrap_err();
        assert!(message.contains("version 3"), "{message}");
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            &b""[..],
            b"GET / HTTP/1.1",
            b"{}",
            b"{\"v\":2}",
            b"{\"v\":2,\"ask\":\"dance\"}",
            b"{\"v\":2,\"ask\":{\"status\":{\"json\":true}},\"and\":1}",
            b"\xff\xfe",
        ] {
            assert!(parse_request(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn frames_come_back_and_a_giant_one_is_refused() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, DATA, b"rows").unwrap();
        let mut payload = Vec::new();
        assert_eq!(read_frame(&mut &bytes[..], &mut payload).unwrap(), DATA);
        assert_eq!(payload, b"rows");
        let giant = [DATA, 0xff, 0xff, 0xff, 0xff];
        assert!(read_frame(&mut &giant[..], &mut payload).is_err());
        assert!(read_frame(&mut &bytes[..6], &mut payload).is_err());
    }
}
