//! Values on the command line, in the spellings that `ip` takes.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

/// A name that is not empty.
pub fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("a name is expected".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Names between commas.
pub fn list(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
}

/// An address.
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "an address is expected, like 10.0.5.80 or 2001:db8::1".to_owned())
}

/// A prefix: `10.0.0.0/8`, `10/8`, an address, `default`.
pub fn prefix(text: &str) -> Result<IpNet, String> {
    let expected =
        || "a prefix is expected, like 10.0.0.0/8, 2001:db8::/32 or an address".to_owned();
    if matches!(text, "default" | "any" | "all") {
        return Ok(IpNet::V4(Ipv4Net::default()));
    }
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address, Some(len)),
        None => (text, None),
    };
    let address = IpAddr::from_str(address)
        .ok()
        .or_else(|| short_ipv4(address).filter(|_| len.is_some()))
        .ok_or_else(expected)?;
    let len = match len {
        None if address.is_ipv4() => 32,
        None => 128,
        Some(len) => length(len).ok_or_else(expected)?,
    };
    IpNet::new(address, len).map_err(|_| expected())
}

/// The length of a prefix: a number, or a mask of IPv4.
pub fn length(text: &str) -> Option<u8> {
    if let Ok(len) = text.parse() {
        return Some(len);
    }
    let mask = u32::from(Ipv4Addr::from_str(text).ok()?);
    let len = mask.leading_ones();
    let is_mask = mask == u32::MAX.checked_shl(32 - len).unwrap_or(0);
    u8::try_from(len).ok().filter(|_| is_mask)
}

/// `10` or `10.1`, the first octets of an IPv4 address.
fn short_ipv4(text: &str) -> Option<IpAddr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        match parts.next() {
            Some(part) => *octet = part.parse().ok()?,
            None => break,
        }
    }
    parts
        .next()
        .is_none()
        .then(|| Ipv4Addr::from(octets).into())
}

/// A link-layer address: hexadecimal octets with colons or dashes; given
/// back as the rows write it.
pub fn lladdr(text: &str) -> Result<String, String> {
    let octets: Option<Vec<u8>> = text
        .split([':', '-'])
        .map(|octet| match octet.len() {
            1 | 2 => u8::from_str_radix(octet, 16).ok(),
            _ => None,
        })
        .collect();
    octets
        .and_then(|octets| table::LinkLayerAddress::new(&octets))
        .map(|address| address.to_string())
        .ok_or_else(|| "a link-layer address is expected, like 00:0c:29:65:4d:48".to_owned())
}

/// A number, decimal or hexadecimal.
pub fn number(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| "a number is expected".to_owned())
}

/// A number of eight bits.
pub fn byte(text: &str) -> Result<u8, String> {
    u8::try_from(number(text)?).map_err(|_| "a number up to 255 is expected".to_owned())
}

/// Names of IP protocols (IANA), as `ip` prints them.
const IP_PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipencap", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("ospf", 89),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// An IP protocol by name or number.
pub fn ip_protocol(text: &str) -> Result<u8, String> {
    let known = IP_PROTOCOLS.iter().find(|(name, _)| *name == text);
    let number = known.map(|(_, number)| *number);
    number
        .or_else(|| byte(text).ok())
        .ok_or_else(|| "a protocol is expected, like tcp, udp or 6".to_owned())
}

/// A port.
pub fn port(text: &str) -> Result<u16, String> {
    u16::try_from(number(text)?).map_err(|_| "a port is a number up to 65535".to_owned())
}

/// A VLAN.
pub fn vlan(text: &str) -> Result<u16, String> {
    u16::try_from(number(text)?)
        .ok()
        .filter(|id| *id < 4096)
        .ok_or_else(|| "a VLAN is a number below 4096".to_owned())
}

/// A group of links.
pub fn group(text: &str) -> Result<u32, String> {
    if text == "default" {
        Ok(0)
    } else {
        number(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_in_the_spellings_of_ip() {
        for (text, prefix) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10/8", Some("10.0.0.0/8")),
            ("192.168/16", Some("192.168.0.0/16")),
            ("10.1.0.0/255.255.0.0", Some("10.1.0.0/16")),
            ("10.1.0.0/255.0.255.0", None),
            ("0.0.0.0/0.0.0.0", Some("0.0.0.0/0")),
            ("default", Some("0.0.0.0/0")),
            ("10.1.2.3", Some("10.1.2.3/32")),
            ("2001:db8::1", Some("2001:db8::1/128")),
            ("10", None),
            ("10.0.0.0/33", None),
            ("10.0.0.0.0/8", None),
            ("fish", None),
        ] {
            let parsed = super::prefix(text).ok().map(|prefix| prefix.to_string());
            assert_eq!(parsed.as_deref(), prefix, "{text}");
        }
    }

    #[test]
    fn link_layer_addresses_are_made_regular() {
        assert_eq!(lladdr("0:C:29-65:4D:48").unwrap(), "00:0c:29:65:4d:48");
        assert!(lladdr("00:0c:291").is_err());
        assert!(lladdr("").is_err());
    }
}
