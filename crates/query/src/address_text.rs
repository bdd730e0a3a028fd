//! Addresses and prefixes as SQL has them: text as `ip` writes it, in the
//! order of numbers. A default route is `0.0.0.0/0` or `::/0`, for it has a
//! family.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::IpNet;
use view::{push_address, push_prefix};

/// The name of the collation that addresses and prefixes have.
pub(crate) const COLLATION: &str = "ip";

/// An address or a prefix, its host bits as they are.
pub(crate) fn parse(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        None => text.parse::<IpAddr>().ok().map(IpNet::from),
        Some((address, length)) => {
            let address = address.parse().ok()?;
            let is_number = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
            IpNet::new(address, is_number.then(|| length.parse().ok())??).ok()
        }
    }
}

/// Writes a prefix as text: a host without its length.
pub(crate) fn push(out: &mut Vec<u8>, net: IpNet) {
    match net.prefix_len() == net.max_prefix_len() {
        true => push_address(out, net.addr()),
        false => push_prefix(out, net),
    }
}

/// A prefix as text.
pub(crate) fn text_of(net: IpNet) -> String {
    let mut text = Vec::new();
    push(&mut text, net);
    String::from_utf8_lossy(&text).into_owned()
}

/// The order of texts: addresses and prefixes before all others, IPv4 before
/// IPv6, by address, then by length.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => key(one).cmp(&key(other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.as_bytes().cmp(other.as_bytes()),
    }
}

fn key(net: IpNet) -> (IpAddr, u8) {
    (net.addr(), net.prefix_len())
}

/// Whether one prefix lies inside another, or is it.
pub(crate) fn is_within(inner: IpNet, outer: IpNet) -> bool {
    outer.trunc().contains(&inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes_stand_in_the_order_of_numbers() {
        let in_order = [
            "0.0.0.0/0",
            "9.0.0.0/8",
            "10.0.0.0/8",
            "10.0.0.0/16",
            "10.0.0.0",
            "10.0.0.9",
            "10.0.0.10",
            "::/0",
            "2001:db8::9",
            "2001:db8::10",
            "",
            "default",
            "x",
        ];
        assert!(in_order.is_sorted_by(|a, b| compare(a, b) == Ordering::Less));
        assert_eq!(compare("10.0.0.1", "10.0.0.1/32"), Ordering::Equal);
        assert_eq!(compare("2001:DB8::1", "2001:db8:0::1"), Ordering::Equal);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for text in ["10.0.0.0/8", "10.0.0.1", "::/0", "fe80::1"] {
            assert_eq!(parse(text).map(text_of).as_deref(), Some(text));
        }
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10/8",
            "10.0.0.0/+8",
            "default",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
