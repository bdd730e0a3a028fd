//! An engine and packets through it, each checked in all its fields.

use std::net::Ipv4Addr;

use fingerpost_nat::{Config, Hairpin, Mode, Nat, PortChoice, Verdict};
use packet::build::Ip;
use packet::{Ipv4, Udp, protocol};

pub const MASQ: Ipv4Addr = Ipv4Addr::new(1, 2, 3, 4);
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(1, 2, 222, 173);
pub const PRIVATES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(10, 0, 222, 173),
    Ipv4Addr::new(172, 16, 222, 173),
    Ipv4Addr::new(192, 168, 222, 173),
];
pub const PRIVATE: Ipv4Addr = PRIVATES[0];
pub const CARRIER: Ipv4Addr = Ipv4Addr::new(100, 64, 222, 173);
pub const EXT: Ipv4Addr = Ipv4Addr::new(18, 52, 86, 120);
/// A protocol without ports.
pub const RAW: u8 = 254;

pub type End = (Ipv4Addr, u16);

pub struct Trial {
    pub nat: Nat,
    pub now: u64,
}

impl Trial {
    /// As libalias's tests begin: the alias address set, no mode.
    pub fn new() -> Self {
        let mut config = Config::new(&[MASQ]);
        config.mode = Mode::default();
        config.hairpin = Hairpin::Caller;
        config.limits.initial_flows = 16;
        Self {
            nat: Nat::new(config).unwrap(),
            now: 0,
        }
    }

    pub fn mode(&mut self, change: impl FnOnce(&mut Mode)) {
        let mut mode = self.nat.config().mode;
        change(&mut mode);
        self.nat.set_mode(mode);
    }

    pub fn same_ports(&mut self, on: bool) {
        let choice = if on {
            PortChoice::Same
        } else {
            PortChoice::Random
        };
        self.nat.set_port_choice(choice);
    }

    /// The alias address goes to another and back.
    pub fn change_there_and_back(&mut self) {
        self.nat.set_addresses(&[EXT]).unwrap();
        self.nat.set_addresses(&[MASQ]).unwrap();
    }

    /// A raw packet out: its source becomes `expected`.
    pub fn raw_out(&mut self, from: Ipv4Addr, to: Ipv4Addr, expected: Ipv4Addr) {
        let mut bytes = Ip::new(from, to).packet(RAW, &[], b"raw");
        let verdict = self.nat.translate_out(&mut bytes, self.now);
        assert!(verdict.goes_on(), "{from} to {to}: {verdict:?}");
        assert_eq!(addresses(&bytes), (expected, to));
    }

    /// A raw packet in: its destination becomes `expected`, or it fails.
    pub fn raw_in(&mut self, from: Ipv4Addr, to: Ipv4Addr, expected: Option<Ipv4Addr>) {
        let mut bytes = Ip::new(from, to).packet(RAW, &[], b"raw");
        let verdict = self.nat.translate_in(&mut bytes, self.now);
        assert_eq!(
            verdict == Verdict::Translated,
            expected.is_some(),
            "{verdict:?}"
        );
        assert_eq!(addresses(&bytes), (from, expected.unwrap_or(to)));
    }

    /// UDP out from port 0x1234 (host given) towards `to`; the alias end.
    pub fn out(&mut self, from: Ipv4Addr, to: End, expected: Ipv4Addr) -> u16 {
        self.udp_out((from, 0x1234), to, expected)
    }

    /// UDP out; the alias port.
    pub fn udp_out(&mut self, from: End, to: End, expected: Ipv4Addr) -> u16 {
        let sent = self.try_out(from, to);
        let (verdict, source, destination) = sent;
        assert_eq!(verdict, Verdict::Translated, "{from:?} to {to:?}");
        assert_eq!((source.0, destination), (expected, to));
        source.1
    }

    pub fn try_out(&mut self, from: End, to: End) -> (Verdict, End, End) {
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, b"data");
        let verdict = self.nat.translate_out(&mut bytes, self.now);
        let (source, destination) = ends(&bytes);
        if !verdict.goes_on() {
            assert_eq!((source, destination), (from, to), "as it was");
        }
        (verdict, source, destination)
    }

    /// UDP in, to reach an inside end.
    pub fn udp_in(&mut self, from: End, to: End, expected: End) {
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, b"data");
        let verdict = self.nat.translate_in(&mut bytes, self.now);
        assert_eq!(verdict, Verdict::Translated, "{from:?} to {to:?}");
        assert_eq!(ends(&bytes), (from, expected));
    }

    /// UDP in, to be refused, and as it was.
    pub fn udp_in_fails(&mut self, from: End, to: End) {
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, b"data");
        let verdict = self.nat.translate_in(&mut bytes, self.now);
        assert!(!verdict.goes_on(), "{from:?} to {to:?}: {verdict:?}");
        assert_eq!(ends(&bytes), (from, to));
    }
}

fn addresses(bytes: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let ip = Ipv4::new(bytes).unwrap();
    assert!(ip.checksum_is_right());
    (ip.source(), ip.destination())
}

/// Source and destination; both checksums are right.
fn ends(bytes: &[u8]) -> (End, End) {
    let (source, destination) = addresses(bytes);
    let ip = Ipv4::new(bytes).unwrap();
    assert_eq!(ip.protocol(), protocol::UDP);
    let udp = Udp::new(ip.payload()).unwrap();
    assert!(udp.checksum_is_right(ip.pseudo_header()));
    let ports = (udp.source_port(), udp.destination_port());
    ((source, ports.0), (destination, ports.1))
}
