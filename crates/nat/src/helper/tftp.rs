//! TFTP (RFC 1350): a server answers a request from a port that it chooses
//! then. Nothing of a packet is changed; who has asked is to be reached by
//! the server's address, whatever its port.

use packet::{Ipv4, Udp};

/// The port of requests (RFC 1350 §4).
pub const PORT: u16 = 69;

/// What asks for a transfer: a request to read or to write (RFC 1350 §5).
const REQUESTS: [&[u8]; 2] = [&[0, 1], &[0, 2]];

/// Whether a packet asks for a transfer.
pub fn is_request(bytes: &[u8]) -> bool {
    let Ok(ip) = Ipv4::new(bytes) else {
        return false;
    };
    let udp = Udp::new(ip.payload());
    udp.is_ok_and(|udp| {
        let opcode = udp.payload().get(..2).unwrap_or_default();
        udp.destination_port() == PORT && REQUESTS.contains(&opcode)
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use packet::build::Ip;

    use super::*;

    #[test]
    fn requests_and_what_is_none() {
        let ip = Ip::new(Ipv4Addr::new(10, 0, 0, 5), Ipv4Addr::new(18, 0, 0, 1));
        let asks = |port: u16, data: &[u8]| is_request(&ip.udp(4_000, port, data));
        assert!(asks(69, b"\0\x01file\0octet\0") && asks(69, b"\0\x02file\0octet\0"));
        assert!(!asks(70, b"\0\x01file\0octet\0"));
        assert!(!asks(69, b"\0\x03") && !asks(69, b"\0") && !asks(69, b""));
        assert!(!is_request(&[]));
    }
}
