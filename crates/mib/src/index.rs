//! Indexes of rows as sub-identifiers (RFC 2578 §7.7), both ways.
//!
//! Writing is exact. Reading is for seeking: any sub-identifiers give the
//! place in the table's order that is at or before the first row at or
//! behind them, and near it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use snmp::oid::Name;
use table::{Endpoint, LinkLayerAddress, Reach};

/// `InetAddressType` (RFC 4001): `unknown(0)`.
pub(crate) const UNKNOWN: u32 = 0;
/// `ipv4(1)`.
pub(crate) const IPV4: u32 = 1;
/// `ipv6(2)`.
pub(crate) const IPV6: u32 = 2;
/// `ipv6z(4)`: with the zone that a link-local address belongs to.
pub(crate) const IPV6Z: u32 = 4;

/// Appends a sub-identifier. Every index here fits a name by far.
#[inline]
pub(crate) fn put(name: &mut Name, sub_id: u32) {
    let _ = name.try_push(sub_id);
}

/// Appends octets, a sub-identifier each.
#[inline]
pub(crate) fn put_octets(name: &mut Name, octets: &[u8]) {
    name.extend(octets.iter().map(|&octet| octet.into()));
}

/// Appends an address of type `ipv4` or `ipv6`: type, length, octets.
#[inline]
pub(crate) fn put_inet(name: &mut Name, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            name.extend([IPV4, 4]);
            put_octets(name, &v4.octets());
        }
        IpAddr::V6(v6) => {
            name.extend([IPV6, 16]);
            put_octets(name, &v6.octets());
        }
    }
}

/// Appends an address as [`put_inet`], but a link-local one as `ipv6z`, its
/// zone the link (RFC 4001 §3).
#[inline]
pub(crate) fn put_zoned(name: &mut Name, address: IpAddr, link: u32) {
    match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            name.extend([IPV6Z, 20]);
            put_octets(name, &v6.octets());
            put_octets(name, &link.to_be_bytes());
        }
        _ => put_inet(name, address),
    }
}

/// Where fields of an index lead, read from its start.
pub(crate) struct Seek<'n> {
    rest: &'n [u32],
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// All so far was read as it stands.
    Exact,
    /// What came was missing or too small: the rest is the lowest.
    Lowest,
    /// What came was too large for its field: the rest is the highest.
    Highest,
}

impl<'n> Seek<'n> {
    pub(crate) fn new(index: &'n [u32]) -> Self {
        Self {
            rest: index,
            state: State::Exact,
        }
    }

    /// The next field, a number up to `highest`.
    pub(crate) fn number(&mut self, highest: u32) -> u32 {
        let next = match self.state {
            State::Exact => self.rest.split_first(),
            State::Lowest => return 0,
            State::Highest => return highest,
        };
        let Some((&number, rest)) = next else {
            self.state = State::Lowest;
            return 0;
        };
        if number > highest {
            self.state = State::Highest;
            return highest;
        }
        self.rest = rest;
        number
    }

    /// The next field is this very number in all rows.
    pub(crate) fn fixed(&mut self, number: u32) {
        match (self.state, self.rest.split_first()) {
            (State::Exact, Some((&found, rest))) if found == number => self.rest = rest,
            (State::Exact, Some((&found, _))) if found > number => self.state = State::Highest,
            (State::Exact, _) => self.state = State::Lowest,
            _ => {}
        }
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.number(0xff) as u8)
    }

    /// Four octets.
    pub(crate) fn v4(&mut self) -> Ipv4Addr {
        self.octets::<4>().into()
    }

    /// Sixteen octets.
    pub(crate) fn v6(&mut self) -> Ipv6Addr {
        self.octets::<16>().into()
    }

    /// Six octets of a link-layer address.
    pub(crate) fn mac(&mut self) -> LinkLayerAddress {
        LinkLayerAddress::new(&self.octets::<6>()).unwrap_or_default()
    }

    /// Length and octets of a link-layer address.
    pub(crate) fn address(&mut self) -> LinkLayerAddress {
        let len = self.number(32) as usize;
        let mut octets = [0; 32];
        for octet in octets.iter_mut().take(len) {
            *octet = self.number(0xff) as u8;
        }
        LinkLayerAddress::new(octets.get(..len).unwrap_or_default()).unwrap_or_default()
    }

    /// Type, length, address and port of an end of a socket.
    pub(crate) fn end(&mut self) -> Endpoint {
        let kind = self.number(IPV6Z);
        if !matches!(kind, UNKNOWN | IPV4 | IPV6 | IPV6Z) {
            self.state = State::Lowest;
        }
        let (reach, address, zone) = match kind {
            UNKNOWN => {
                self.fixed(0);
                (Reach::Any, Ipv4Addr::UNSPECIFIED.into(), 0)
            }
            IPV4 => {
                self.fixed(4);
                (Reach::V4, IpAddr::V4(self.v4()), 0)
            }
            IPV6 => {
                self.fixed(16);
                (Reach::V6, IpAddr::V6(self.v6()), 0)
            }
            _ => {
                self.fixed(20);
                let address = self.v6().into();
                (Reach::Zoned, address, u32::from_be_bytes(self.octets()))
            }
        };
        Endpoint {
            reach,
            address,
            zone,
            port: self.number(u16::MAX.into()) as u16,
        }
    }

    /// Type, length and octets of an address of type `ipv4` or `ipv6`.
    /// Where the type is neither, the nearest end of what there is.
    pub(crate) fn inet(&mut self) -> IpAddr {
        match self.number(IPV6) {
            IPV6 => {
                self.fixed(16);
                self.v6().into()
            }
            v4 => {
                if v4 < IPV4 {
                    self.state = State::Lowest;
                }
                self.fixed(4);
                self.v4().into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_identifiers_lead_to_a_place_at_or_before_them() {
        let v4 = |index: &[u32]| Seek::new(index).v4().to_string();
        assert_eq!(v4(&[10, 0, 0, 1]), "10.0.0.1");
        assert_eq!(v4(&[10, 0]), "10.0.0.0");
        assert_eq!(v4(&[10, 256, 0, 1]), "10.255.255.255");
        assert_eq!(v4(&[]), "0.0.0.0");
        let inet = |index: &[u32]| Seek::new(index).inet().to_string();
        assert_eq!(inet(&[1, 4, 10, 0, 0, 1]), "10.0.0.1");
        assert_eq!(inet(&[1, 3, 10]), "0.0.0.0");
        assert_eq!(inet(&[1, 5]), "255.255.255.255");
        assert_eq!(inet(&[0, 4, 10, 0, 0, 1]), "0.0.0.0");
        assert_eq!(inet(&[2, 15]), "::");
        assert_eq!(inet(&[2, 16, 0x20, 1]), "2001::");
        let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(inet(&[3]), all);
        assert_eq!(inet(&[2, 17]), all);
    }

    #[test]
    fn ends_of_sockets_are_led_to_in_their_order() {
        let end = |index: &[u32]| {
            let end = Seek::new(index).end();
            (end.reach, end.address.to_string(), end.zone, end.port)
        };
        let any = |port| (Reach::Any, "0.0.0.0".to_owned(), 0, port);
        assert_eq!(end(&[]), any(0));
        assert_eq!(end(&[0, 0, 80]), any(80));
        assert_eq!(end(&[0, 1]), any(u16::MAX));
        let v4 = |port| (Reach::V4, "10.0.0.1".to_owned(), 0, port);
        assert_eq!(end(&[1, 4, 10, 0, 0, 1, 80, 7]), v4(80));
        assert_eq!(end(&[1, 4, 10, 0, 0, 1, 70_000]), v4(u16::MAX));
        let zoned = |address: &str, zone| (Reach::Zoned, address.to_owned(), zone, 0);
        assert_eq!(end(&[3, 9]), zoned("::", 0));
        let link_local = [&[4, 20, 0xfe, 0x80][..], &[0; 13], &[1, 0, 0, 0, 7]].concat();
        assert_eq!(end(&link_local), zoned("fe80::1", 7));
        assert_eq!(end(&[5]).0, Reach::Zoned);
    }
}
