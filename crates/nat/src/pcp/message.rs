//! The bytes of PCP's requests and answers (RFC 6887 §7, §11.1, §12.1). For
//! the engine; nothing here knows a lease.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::options::{self, Options};

/// PCP's version (RFC 6887 §7).
pub const VERSION: u8 = 2;
/// Longest message (RFC 6887 §7).
pub const MOST_BYTES: usize = 1_100;
/// Bytes of the header that all messages have.
pub const HEADER_LEN: usize = 24;
/// The bit that tells an answer.
const ANSWER: u8 = 0x80;
/// Bytes of what MAP asks (RFC 6887 §11.1).
const MAP_LEN: usize = 36;
/// The same of PEER (RFC 6887 §12.1).
const PEER_LEN: usize = 56;

/// What is asked (RFC 6887 §19.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// Whether the server has lost its state.
    Announce,
    /// A mapping for whoever wants to reach the client.
    Map,
    /// One for a remote that the client talks to.
    Peer,
}

/// What an answer says (RFC 6887 §7.4), by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultCode {
    Success,
    UnsupportedVersion,
    NotAuthorized,
    MalformedRequest,
    UnsupportedOpcode,
    UnsupportedOption,
    MalformedOption,
    /// Not said by this server: it has no network of its own that could fail.
    #[expect(dead_code, reason = "it keeps the numbers of those behind it")]
    NetworkFailure,
    NoResources,
    UnsupportedProtocol,
    UserExceededQuota,
    CannotProvideExternal,
    AddressMismatch,
    ExcessiveRemotePeers,
}

impl ResultCode {
    /// For how long the same request would get the same answer, seconds
    /// (RFC 6887 §7.4 says which are short).
    fn lifetime_secs(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::NoResources
            | Self::UserExceededQuota
            | Self::CannotProvideExternal
            | Self::NetworkFailure => 30,
            _ => 1_800,
        }
    }
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub opcode: Opcode,
    /// How long the mapping is wanted; 0: no longer.
    pub lifetime_secs: u32,
    /// Who asks, by his own account.
    pub client: Ipv6Addr,
}

/// What MAP and PEER ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Whoever knows it may change the mapping.
    pub nonce: [u8; 12],
    /// 0: all.
    pub protocol: u8,
    /// 0: all.
    pub port: u16,
    /// What is suggested; unspecified, or 0: anything.
    pub external: Ipv6Addr,
    pub external_port: u16,
    /// PEER's remote end.
    pub remote: Option<(Ipv6Addr, u16)>,
}

/// A whole request.
#[derive(Debug)]
pub struct Request {
    pub header: Header,
    /// Not with ANNOUNCE.
    pub mapping: Option<Mapping>,
    pub options: Options,
}

/// What becomes of a request that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no answer to it.
    Silence,
    /// This is the answer.
    Code(ResultCode),
}

impl From<ResultCode> for Refusal {
    fn from(code: ResultCode) -> Self {
        Self::Code(code)
    }
}

/// Reads a request that `client` has sent (RFC 6887 §8.2).
pub fn read(bytes: &[u8], client: Ipv4Addr) -> Result<Request, Refusal> {
    let [version, opcode, ..] = *bytes else {
        return Err(Refusal::Silence);
    };
    if opcode & ANSWER != 0 {
        return Err(Refusal::Silence);
    }
    if version != VERSION {
        return Err(ResultCode::UnsupportedVersion.into());
    }
    let whole = bytes.len() <= MOST_BYTES && bytes.len().is_multiple_of(4);
    let (Some(header), true) = (bytes.first_chunk::<HEADER_LEN>(), whole) else {
        return Err(ResultCode::MalformedRequest.into());
    };
    let header = Header {
        opcode: match opcode {
            0 => Opcode::Announce,
            1 => Opcode::Map,
            2 => Opcode::Peer,
            _ => return Err(ResultCode::UnsupportedOpcode.into()),
        },
        lifetime_secs: number(header, 4),
        client: address(header, 8),
    };
    if header.client != client.to_ipv6_mapped() {
        return Err(ResultCode::AddressMismatch.into());
    }
    let body = bytes.get(HEADER_LEN..).unwrap_or_default();
    let (mapping, rest) = match header.opcode {
        Opcode::Announce => (None, body),
        Opcode::Map => mapping(body, MAP_LEN)?,
        Opcode::Peer => mapping(body, PEER_LEN)?,
    };
    let options = options::read(rest, header.opcode)?;
    Ok(Request {
        header,
        mapping,
        options,
    })
}

/// A mapping, and what is behind it.
fn mapping(body: &[u8], len: usize) -> Result<(Option<Mapping>, &[u8]), ResultCode> {
    let Some((body, rest)) = body.split_at_checked(len) else {
        return Err(ResultCode::MalformedRequest);
    };
    let nonce = body.first_chunk::<12>().copied().unwrap_or_default();
    let mapping = Mapping {
        nonce,
        protocol: body.get(12).copied().unwrap_or_default(),
        port: port(body, 16),
        external_port: port(body, 18),
        external: address(body, 20),
        remote: (len == PEER_LEN).then(|| (address(body, 40), port(body, 36))),
    };
    Ok((Some(mapping), rest))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    field.map_or(0, |field| u32::from_be_bytes(*field))
}

fn port(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    field.map_or(0, |field| u16::from_be_bytes(*field))
}

fn address(bytes: &[u8], at: usize) -> Ipv6Addr {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<16>());
    field.map_or(Ipv6Addr::UNSPECIFIED, |field| Ipv6Addr::from(*field))
}

/// The header of an answer.
fn header(opcode: u8, code: ResultCode, lifetime_secs: u32, epoch_secs: u32) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    let head = [VERSION, opcode | ANSWER, 0, code as u8];
    let fields = [head, lifetime_secs.to_be_bytes(), epoch_secs.to_be_bytes()];
    for (place, byte) in header.iter_mut().zip(fields.as_flattened()) {
        *place = *byte;
    }
    header
}

/// Writes the answer that refuses a request: the request as it came, with
/// another header (RFC 6887 §8.2). `lifetime_secs`: what it is for, where that
/// is another time than the code's.
pub fn refuse(
    out: &mut Vec<u8>,
    request: &[u8],
    (code, lifetime_secs): (ResultCode, Option<u32>),
    epoch_secs: u32,
) {
    let lifetime_secs = lifetime_secs.unwrap_or(code.lifetime_secs());
    let opcode = request.get(1).copied().unwrap_or_default();
    let len = request.len().clamp(HEADER_LEN, MOST_BYTES);
    out.clear();
    out.extend_from_slice(&header(opcode, code, lifetime_secs, epoch_secs));
    out.extend_from_slice(request.get(HEADER_LEN..len).unwrap_or_default());
    out.resize(len.next_multiple_of(4), 0);
}

/// Writes that the server is there (RFC 6887 §14.1), asked or not.
pub fn announce(out: &mut Vec<u8>, epoch_secs: u32) {
    out.clear();
    out.extend_from_slice(&header(0, ResultCode::Success, 0, epoch_secs));
}

/// What was granted.
#[derive(Debug, Clone, Copy)]
pub struct Granted {
    pub lifetime_secs: u32,
    pub external: Ipv6Addr,
    pub external_port: u16,
    /// Ports in a row, where a set was asked for.
    pub ports: u16,
}

/// Writes the answer to MAP or PEER.
pub fn grant(out: &mut Vec<u8>, request: &Request, granted: &Granted, epoch_secs: u32) {
    let Some(mapping) = request.mapping else {
        return announce(out, epoch_secs);
    };
    let opcode = match request.header.opcode {
        Opcode::Peer => 2,
        _ => 1,
    };
    out.clear();
    let lifetime = granted.lifetime_secs;
    out.extend_from_slice(&header(opcode, ResultCode::Success, lifetime, epoch_secs));
    out.extend_from_slice(&mapping.nonce);
    out.extend_from_slice(&[mapping.protocol, 0, 0, 0]);
    out.extend_from_slice(&mapping.port.to_be_bytes());
    out.extend_from_slice(&granted.external_port.to_be_bytes());
    out.extend_from_slice(&granted.external.octets());
    if let Some((remote, port)) = mapping.remote {
        out.extend_from_slice(&port.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&remote.octets());
    }
    request.options.write(out, granted.ports);
}
