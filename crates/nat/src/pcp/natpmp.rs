//! The bytes of NAT-PMP's requests and answers (RFC 6886 §3). For the
//! engine.

use std::net::Ipv4Addr;

use packet::protocol;

/// Its version.
pub const VERSION: u8 = 0;
/// The bit that tells an answer.
const ANSWER: u8 = 0x80;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Which outside address the client has (RFC 6886 §3.2).
    Address,
    /// A mapping (RFC 6886 §3.3).
    Map {
        protocol: u8,
        /// 0: all, to be deleted.
        port: u16,
        /// Suggested; 0: any.
        external_port: u16,
        /// 0: no longer.
        lifetime_secs: u32,
    },
}

/// What an answer says (RFC 6886 §3.5), by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum ResultCode {
    Success,
    #[expect(dead_code, reason = "other versions are PCP's to refuse")]
    UnsupportedVersion,
    NotAuthorized,
    NetworkFailure,
    OutOfResources,
    UnsupportedOpcode,
}

/// Reads a request; an error is what the answer says, `None`: there is none.
pub fn read(bytes: &[u8]) -> Result<Request, Option<ResultCode>> {
    let [_, opcode, rest @ ..] = bytes else {
        return Err(None);
    };
    let protocol = match opcode {
        0 => return Ok(Request::Address),
        1 => protocol::UDP,
        2 => protocol::TCP,
        3..ANSWER => return Err(Some(ResultCode::UnsupportedOpcode)),
        _ => return Err(None),
    };
    let Some([_, _, i, j, e, f, a, b, c, d]) = rest.first_chunk::<10>().copied() else {
        // Too short for a mapping: RFC 6886 has no code for that.
        return Err(None);
    };
    Ok(Request::Map {
        protocol,
        port: u16::from_be_bytes([i, j]),
        external_port: u16::from_be_bytes([e, f]),
        lifetime_secs: u32::from_be_bytes([a, b, c, d]),
    })
}

fn header(out: &mut Vec<u8>, opcode: u8, code: ResultCode, epoch_secs: u32) {
    out.clear();
    out.extend_from_slice(&[VERSION, opcode | ANSWER]);
    out.extend_from_slice(&(code as u16).to_be_bytes());
    out.extend_from_slice(&epoch_secs.to_be_bytes());
}

/// Writes which outside address there is, asked or not.
pub fn address(out: &mut Vec<u8>, address: Ipv4Addr, epoch_secs: u32) {
    header(out, 0, ResultCode::Success, epoch_secs);
    out.extend_from_slice(&address.octets());
}

/// Writes what was granted: first inside and outside port, seconds.
pub fn grant(
    out: &mut Vec<u8>,
    opcode: u8,
    (inside, outside): (u16, u16),
    lifetime_secs: u32,
    epoch_secs: u32,
) {
    header(out, opcode, ResultCode::Success, epoch_secs);
    out.extend_from_slice(&inside.to_be_bytes());
    out.extend_from_slice(&outside.to_be_bytes());
    out.extend_from_slice(&lifetime_secs.to_be_bytes());
}

/// Writes the answer that refuses a request, as long as one that grants it.
pub fn refuse(out: &mut Vec<u8>, request: &[u8], code: ResultCode, epoch_secs: u32) {
    let opcode = request.get(1).copied().unwrap_or_default();
    header(out, opcode, code, epoch_secs);
    match opcode {
        0 => out.extend_from_slice(&[0; 4]),
        1 | 2 => {
            out.extend_from_slice(request.get(4..6).unwrap_or(&[0; 2]));
            out.extend_from_slice(&[0; 6]);
        }
        _ => {}
    }
}
