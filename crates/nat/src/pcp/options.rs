//! PCP's options (RFC 6887 §13, RFC 7753 §4). For the reader of requests.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrayvec::ArrayVec;

use super::message::{Opcode, ResultCode};

/// Filters that a mapping has at most.
pub const MOST_FILTERS: usize = 32;

/// Options from this number on may be left alone (RFC 6887 §7.3).
const OPTIONAL: u8 = 128;
const PREFER_FAILURE: u8 = 2;
const FILTER: u8 = 3;
const PORT_SET: u8 = 130;
/// Bits of a prefix of IPv4 before its own.
const MAPPED_BITS: u8 = 96;

/// Who may send in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// The remote's address, in host order.
    address: u32,
    bits: u8,
    /// Its port; 0: any.
    port: u16,
}

impl Filter {
    /// As a saved state keeps it: address, bits, port.
    pub(crate) fn saved(&self) -> (u32, u8, u16) {
        (self.address, self.bits, self.port)
    }

    /// What [`Filter::saved`] gave.
    pub(crate) fn restored((address, bits, port): (u32, u8, u16)) -> Option<Self> {
        (bits <= 32).then_some(Self {
            address,
            bits,
            port,
        })
    }

    /// One remote end.
    pub fn of(remote: Ipv4Addr, port: u16) -> Self {
        Self {
            address: remote.to_bits(),
            bits: 32,
            port,
        }
    }

    /// Whether it lets a remote in.
    pub fn admits(&self, remote: Ipv4Addr, port: u16) -> bool {
        let hosts = u32::MAX.checked_shr(self.bits.into()).unwrap_or(0);
        let same = (self.address ^ remote.to_bits()) & !hosts == 0;
        same && (self.port == 0 || self.port == port)
    }
}

/// A set of ports (RFC 7753 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSet {
    /// How many are wanted at most, above 0.
    pub ports: u16,
    /// Whether an even inside port is to have an even outside port.
    pub parity: bool,
}

/// The options of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The suggested outside port or none.
    pub prefer_failure: bool,
    /// Former filters go.
    pub clears_filters: bool,
    /// Filters to be added.
    pub filters: ArrayVec<Filter, MOST_FILTERS>,
    pub port_set: Option<PortSet>,
    /// The options that were taken, but the set of ports, as they came.
    echo: Vec<u8>,
}

impl Options {
    /// Writes them into an answer; so many ports in a row were given.
    pub fn write(&self, out: &mut Vec<u8>, ports: u16) {
        out.extend_from_slice(&self.echo);
        // Of a single port there is none (RFC 7753 §4.1).
        if let Some(set) = self.port_set.filter(|_| ports > 1) {
            let [high, low] = ports.to_be_bytes();
            let [first, second] = self.first_port(out).to_be_bytes();
            let parity = u8::from(set.parity);
            out.extend_from_slice(&[PORT_SET, 0, 0, 5]);
            out.extend_from_slice(&[high, low, first, second, parity, 0, 0, 0]);
        }
    }

    /// The first inside port of a set is the mapping's, which stands in the
    /// answer already.
    fn first_port(&self, answer: &[u8]) -> u16 {
        let field = answer.get(40..).and_then(|rest| rest.first_chunk::<2>());
        field.map_or(0, |field| u16::from_be_bytes(*field))
    }
}

/// Reads the options behind a request (RFC 6887 §7.3).
pub fn read(mut rest: &[u8], opcode: Opcode) -> Result<Options, ResultCode> {
    let mut options = Options::default();
    while let Some(([code, _, high, low], _)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (code, whole) = (*code, 4 + len.next_multiple_of(4));
        let Some((option, behind)) = rest.split_at_checked(whole) else {
            return Err(ResultCode::MalformedOption);
        };
        let data = option.get(4..4 + len).unwrap_or_default();
        rest = behind;
        match (code, opcode) {
            (PREFER_FAILURE, Opcode::Map) => options.prefer(data)?,
            (FILTER, Opcode::Map) => options.filter(data)?,
            (PORT_SET, Opcode::Map) => {
                options.set_of_ports(data)?;
                continue;
            }
            // RFC 6887 §12.1.
            (PREFER_FAILURE, Opcode::Peer) => return Err(ResultCode::MalformedRequest),
            (PREFER_FAILURE | FILTER, _) => return Err(ResultCode::MalformedOption),
            // A third party's mappings are not for others to ask for
            // (RFC 6887 §13.1), and what is not known cannot be done.
            (..OPTIONAL, _) => return Err(ResultCode::UnsupportedOption),
            _ => continue,
        }
        options.echo.extend_from_slice(option);
    }
    Ok(options)
}

impl Options {
    fn prefer(&mut self, data: &[u8]) -> Result<(), ResultCode> {
        if !data.is_empty() || self.prefer_failure {
            return Err(ResultCode::MalformedOption);
        }
        self.prefer_failure = true;
        Ok(())
    }

    /// RFC 6887 §13.3.
    fn filter(&mut self, data: &[u8]) -> Result<(), ResultCode> {
        let [_, bits, high, low, address @ ..] = data else {
            return Err(ResultCode::MalformedOption);
        };
        let address: [u8; 16] = address
            .try_into()
            .map_err(|_| ResultCode::MalformedOption)?;
        if *bits == 0 {
            // Those before it in the same request as well.
            self.clears_filters = true;
            self.filters.clear();
            return Ok(());
        }
        let address = Ipv6Addr::from(address).to_ipv4_mapped();
        let (Some(address), MAPPED_BITS..=128) = (address, *bits) else {
            return Err(ResultCode::MalformedOption);
        };
        let filter = Filter {
            address: address.to_bits(),
            bits: bits - MAPPED_BITS,
            port: u16::from_be_bytes([*high, *low]),
        };
        let added = self.filters.try_push(filter);
        added.map_err(|_| ResultCode::ExcessiveRemotePeers)
    }

    /// RFC 7753 §4.1.
    fn set_of_ports(&mut self, data: &[u8]) -> Result<(), ResultCode> {
        let [high, low, _, _, flags] = data else {
            return Err(ResultCode::MalformedOption);
        };
        let ports = u16::from_be_bytes([*high, *low]);
        if ports == 0 || self.port_set.is_some() {
            return Err(ResultCode::MalformedOption);
        }
        let parity = flags & 1 != 0;
        self.port_set = Some(PortSet { ports, parity });
        Ok(())
    }
}
