//! Clients and strangers around an engine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fingerpost_nat::{Config, Cursor, LeaseView, Nat, Verdict};
use packet::build::Ip;
use packet::{Ipv4, Udp};

pub const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;

pub type End = (Ipv4Addr, u16);

pub fn config() -> Config {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = 0;
    config.seed = 3;
    config.pcp.addresses = vec![SERVER];
    config
}

/// What MAP or PEER asks for; the nonce is 12 times a number.
#[derive(Debug, Clone)]
pub struct Ask {
    pub client: Ipv4Addr,
    pub nonce: u8,
    pub lifetime: u32,
    pub protocol: u8,
    pub port: u16,
    pub external: Ipv6Addr,
    pub external_port: u16,
    pub remote: Option<End>,
    pub options: Vec<u8>,
}

pub fn map(port: u16) -> Ask {
    Ask {
        client: CLIENT,
        nonce: 1,
        lifetime: 3_600,
        protocol: UDP,
        port,
        external: Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(),
        external_port: 0,
        remote: None,
        options: Vec::new(),
    }
}

impl Ask {
    pub fn bytes(&self) -> Vec<u8> {
        let opcode = if self.remote.is_some() { 2 } else { 1 };
        let mut bytes = header(opcode, self.lifetime, self.client);
        bytes.extend([self.nonce; 12]);
        bytes.extend([self.protocol, 0, 0, 0]);
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(self.external_port.to_be_bytes());
        bytes.extend(self.external.octets());
        if let Some((remote, port)) = self.remote {
            bytes.extend(port.to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(remote.to_ipv6_mapped().octets());
        }
        bytes.extend(&self.options);
        bytes
    }

    /// Sends it.
    pub fn ask(&self, nat: &mut Nat, now: u64) -> Answer {
        Answer(ask(nat, self.client, &self.bytes(), now).unwrap())
    }
}

pub fn header(opcode: u8, lifetime: u32, client: Ipv4Addr) -> Vec<u8> {
    let mut bytes = vec![2, opcode, 0, 0];
    bytes.extend(lifetime.to_be_bytes());
    bytes.extend(client.to_ipv6_mapped().octets());
    bytes
}

/// An option with its padding.
pub fn option(code: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![code, 0];
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn filter(remote: Ipv4Addr, bits: u8, port: u16) -> Vec<u8> {
    let mut data = vec![0, bits];
    data.extend(port.to_be_bytes());
    data.extend(remote.to_ipv6_mapped().octets());
    option(3, &data)
}

pub fn port_set(ports: u16, first: u16, parity: u8) -> Vec<u8> {
    let [a, b] = ports.to_be_bytes();
    let [c, d] = first.to_be_bytes();
    option(130, &[a, b, c, d, parity])
}

/// Sends a request; its answer, whose packet is looked at.
pub fn ask(nat: &mut Nat, client: Ipv4Addr, data: &[u8], now: u64) -> Option<Vec<u8>> {
    let mut bytes = Ip::new(client, SERVER).udp(5_350, 5_351, data);
    let len = bytes.len();
    bytes.resize(len + 64, 0);
    let verdict = nat.translate_out(&mut bytes, now);
    if verdict != Verdict::Answered {
        assert!(!verdict.goes_on(), "{verdict:?}");
        return None;
    }
    let ip = Ipv4::new(&bytes[..]).unwrap();
    assert!(ip.checksum_is_right());
    assert_eq!((ip.source(), ip.destination()), (SERVER, client));
    let udp = Udp::new(ip.payload()).unwrap();
    assert_ne!(udp.checksum(), 0);
    let udp = Udp::new(&bytes[20..ip.total_len()]).unwrap();
    assert!(udp.checksum_is_right(ip.pseudo_header()));
    assert_eq!((udp.source_port(), udp.destination_port()), (5_351, 5_350));
    assert_eq!(udp.length() + 20, ip.total_len());
    Some(udp.payload().to_vec())
}

/// An answer of PCP's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub Vec<u8>);

impl Answer {
    pub fn code(&self) -> u8 {
        assert_eq!(self.0[0], 2);
        assert_eq!(self.0[1] & 0x80, 0x80);
        assert!(self.0.len() >= 24 && self.0.len() <= 1_100);
        assert!(self.0.len().is_multiple_of(4));
        self.0[3]
    }

    pub fn lifetime(&self) -> u32 {
        u32::from_be_bytes(self.0[4..8].try_into().unwrap())
    }

    pub fn epoch(&self) -> u32 {
        u32::from_be_bytes(self.0[8..12].try_into().unwrap())
    }

    /// The outside end of a mapping that was granted.
    pub fn external(&self) -> End {
        assert_eq!(self.code(), 0);
        let address: [u8; 16] = self.0[44..60].try_into().unwrap();
        let address = Ipv6Addr::from(address).to_ipv4_mapped().unwrap();
        (address, u16::from_be_bytes([self.0[42], self.0[43]]))
    }

    /// How many ports of a set were granted.
    pub fn ports(&self) -> u16 {
        let at = self.0.len() - 12;
        assert_eq!(self.0[at..at + 4], [130, 0, 0, 5]);
        u16::from_be_bytes([self.0[at + 4], self.0[at + 5]])
    }
}

/// What becomes of a packet from inside: the source that it leaves with.
pub fn send(nat: &mut Nat, protocol: u8, from: End, to: End, now: u64) -> (Verdict, End) {
    let mut bytes = build(protocol, from, to);
    let verdict = nat.translate_out(&mut bytes, now);
    let ip = Ipv4::new(&bytes[..]).unwrap();
    let port = u16::from_be_bytes([bytes[20], bytes[21]]);
    (verdict, (ip.source(), port))
}

/// What becomes of one from outside: whom it reaches.
pub fn come(nat: &mut Nat, protocol: u8, from: End, to: End, now: u64) -> Option<End> {
    let mut bytes = build(protocol, from, to);
    let verdict = nat.translate_in(&mut bytes, now);
    let ip = Ipv4::new(&bytes[..]).unwrap();
    let port = u16::from_be_bytes([bytes[22], bytes[23]]);
    (verdict == Verdict::Translated).then_some((ip.destination(), port))
}

fn build(protocol: u8, from: End, to: End) -> Vec<u8> {
    if protocol == UDP {
        return Ip::new(from.0, to.0).udp(from.1, to.1, b"data");
    }
    Ip::new(from.0, to.0).tcp(&packet::build::Segment {
        source_port: from.1,
        destination_port: to.1,
        flags: packet::tcp::SYN,
        window: 60_000,
        ..packet::build::Segment::default()
    })
}

/// All leases, walked a few at a time.
pub fn leases(nat: &Nat) -> Vec<LeaseView> {
    let mut all = Vec::new();
    let mut next = Some(Cursor::default());
    while let Some(from) = next {
        next = nat.leases(from, 3, &mut |lease| all.push(*lease));
    }
    all
}

pub fn ip(address: Ipv4Addr) -> IpAddr {
    address.into()
}
