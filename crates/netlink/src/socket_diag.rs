//! `sock_diag` (`linux/inet_diag.h`): sockets of TCP and UDP. For the mirror
//! of the `linux` crate, on a socket of `NETLINK_SOCK_DIAG`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::{AF_INET, Endpoint, Reach, Socket};

use crate::build::Build;
use crate::decode::split;
use crate::malformed::Malformed;
use crate::message::flag;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `IPPROTO_TCP`.
pub const TCP: u8 = 6;
/// `IPPROTO_UDP`.
pub const UDP: u8 = 17;
/// `TCP_ESTABLISHED` to `TCP_NEW_SYN_RECV`, a bit each: not those that are
/// only bound.
const STATES: u32 = 0x1ffe;
/// `TCP_LISTEN`.
pub const LISTEN: u8 = 10;
/// `INET_DIAG_SKV6ONLY`.
const V6_ONLY: u16 = 11;
/// Bytes of `struct inet_diag_msg`.
const HEADER: usize = 72;

/// Asks for all sockets of a protocol and family; each answer is read by
/// [`socket`].
pub fn dump_sockets(family: u8, protocol: u8, sequence: u32, out: &mut Vec<u8>) {
    // `struct inet_diag_req_v2`, then ends that match all.
    let mut header = [0; 56];
    let states = STATES.to_ne_bytes();
    header[..4].copy_from_slice(&[family, protocol, 0, 0]);
    header[4..8].copy_from_slice(&states);
    let flags = flag::REQUEST | flag::DUMP;
    Build::start(out, BY_FAMILY, flags, sequence, &header).end_small();
}

/// A socket, from a payload that answers [`dump_sockets`]. An address of
/// IPv4 inside IPv6 is one of IPv4 (RFC 4001 §3). O(attributes).
pub fn socket(payload: &[u8]) -> Result<Socket, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, "inet_diag_msg")?;
    let mut is_v6_only = false;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == V6_ONLY {
            is_v6_only = attribute.u8()? != 0;
        }
    }
    let [family, state, ..] = *header;
    let link = u32::from_ne_bytes(octets(header, 40));
    let local = end(family, header, 8, 4);
    let remote = end(family, header, 24, 6);
    let local = match placed(local, link) {
        // Bound to no address, of IPv6 and not to it alone.
        any if any.address == Ipv6Addr::UNSPECIFIED && !is_v6_only => unbound(any.port),
        one => one,
    };
    // Nobody in particular is at the other end.
    let remote = match placed(remote, link) {
        any if any.address.is_unspecified() => unbound(any.port),
        one => one,
    };
    Ok(Socket {
        local,
        remote,
        inode: u32::from_ne_bytes(octets(header, 68)),
        state,
    })
}

fn octets<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|octet| header[at + octet])
}

/// An address and a port.
fn end(family: u8, header: &[u8; HEADER], address: usize, port: usize) -> (IpAddr, u16) {
    let port = u16::from_be_bytes(octets(header, port));
    let address = if family == AF_INET {
        Ipv4Addr::from(octets::<4>(header, address)).into()
    } else {
        let v6 = Ipv6Addr::from(octets::<16>(header, address));
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    };
    (address, port)
}

fn placed((address, port): (IpAddr, u16), link: u32) -> Endpoint {
    let is_zoned = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let (reach, zone) = match address {
        IpAddr::V4(_) => (Reach::V4, 0),
        IpAddr::V6(_) if is_zoned => (Reach::Zoned, link),
        IpAddr::V6(_) => (Reach::V6, 0),
    };
    Endpoint {
        reach,
        address,
        zone,
        port,
    }
}

fn unbound(port: u16) -> Endpoint {
    Endpoint {
        reach: Reach::Any,
        address: Ipv4Addr::UNSPECIFIED.into(),
        zone: 0,
        port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::AF_INET6;

    fn message(family: u8, local: IpAddr, v6_only: Option<u8>) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        (bytes[0], bytes[1]) = (family, LISTEN);
        bytes[4..6].copy_from_slice(&80_u16.to_be_bytes());
        match local {
            IpAddr::V4(v4) => bytes[8..12].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => bytes[8..24].copy_from_slice(&v6.octets()),
        }
        bytes[40..44].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&99_u32.to_ne_bytes());
        if let Some(only) = v6_only {
            bytes.extend([5, 0, V6_ONLY as u8, 0, only, 0, 0, 0]);
        }
        bytes
    }

    #[test]
    fn which_addresses_a_socket_takes() {
        let of = |family, local: &str, only| {
            let read = socket(&message(family, local.parse().unwrap(), only)).unwrap();
            assert_eq!((read.local.port, read.inode, read.state), (80, 99, LISTEN));
            assert_eq!(read.remote, unbound(0));
            (
                read.local.reach,
                read.local.address.to_string(),
                read.local.zone,
            )
        };
        let any = || (Reach::Any, "0.0.0.0".to_owned(), 0);
        assert_eq!(
            of(AF_INET, "0.0.0.0", None),
            (Reach::V4, "0.0.0.0".into(), 0)
        );
        assert_eq!(of(AF_INET6, "::", Some(0)), any());
        assert_eq!(of(AF_INET6, "::", Some(1)), (Reach::V6, "::".into(), 0));
        let mapped = of(AF_INET6, "::ffff:192.0.2.1", Some(0));
        assert_eq!(mapped, (Reach::V4, "192.0.2.1".into(), 0));
        assert_eq!(
            of(AF_INET6, "fe80::1", Some(0)),
            (Reach::Zoned, "fe80::1".into(), 7)
        );
    }

    #[test]
    fn no_cut_and_no_changed_byte_does_harm() {
        let whole = message(AF_INET6, "::1".parse().unwrap(), Some(1));
        for len in 0..whole.len() {
            let read = socket(&whole[..len]);
            assert!(len >= HEADER || read.is_err());
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 4, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = socket(&changed);
            }
        }
    }
}
