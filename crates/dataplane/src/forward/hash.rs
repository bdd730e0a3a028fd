//! The hash of a flow, by which a group of next hops is divided.

use packet::{Ipv4, Ipv6, protocol};

/// Flows of one hash take one path. A packet's hash is that of its addresses,
/// protocol and ports; of a fragment that of addresses and protocol, for the
/// later ones have no ports. The upper bits are the good ones.
pub fn flow_hash(packet: &[u8], seed: u64) -> u32 {
    let parts = match packet.first().map(|byte| byte >> 4) {
        Some(4) => Ipv4::parse_truncated(packet).map(|ip| {
            let addresses = [
                u64::from(ip.source().to_bits()),
                u64::from(ip.destination().to_bits()),
            ];
            let ports = match ip.is_fragment() {
                true => 0,
                false => ports(ip.protocol(), ip.payload()),
            };
            (addresses, ip.protocol(), ports)
        }),
        _ => Ipv6::parse_truncated(packet).map(|ip| {
            let fold = |bits: u128| (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
            let addresses = [
                fold(ip.source().to_bits()),
                fold(ip.destination().to_bits()),
            ];
            let ports = ports(ip.next_header(), ip.payload());
            (addresses, ip.next_header(), ports)
        }),
    };
    let Ok(([source, destination], protocol, ports)) = parts else {
        return 0;
    };
    let mut hash = mix(seed ^ source);
    hash = mix(hash ^ destination.rotate_left(32));
    hash = mix(hash ^ u64::from(ports) << 8 ^ u64::from(protocol));
    (hash >> 32) as u32
}

fn ports(of: u8, payload: &[u8]) -> u32 {
    match payload {
        [a, b, c, d, ..] if matches!(of, protocol::TCP | protocol::UDP) => {
            u32::from_be_bytes([*a, *b, *c, *d])
        }
        _ => 0,
    }
}

/// A full multiplication folded in two.
fn mix(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::build::Ip;
    use std::net::Ipv4Addr;

    #[test]
    fn a_flow_has_one_hash_and_flows_spread() {
        let ip = |host: u8| Ip::new(Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::new(192, 0, 2, 1));
        let hash = |host, port| flow_hash(&ip(host).udp(port, 53, b"x"), 1);
        assert_eq!(hash(1, 4_000), hash(1, 4_000));
        let mut halves = [0; 2];
        for port in 0..1_000 {
            halves[(hash(1, port) >> 31) as usize] += 1;
        }
        assert!(halves.iter().all(|&half| half > 400), "{halves:?}");
        assert_ne!(hash(1, 1), hash(2, 1));
    }

    #[test]
    fn fragments_of_a_packet_take_one_path() {
        let mut ip = Ip::new([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        ip.flags_and_offset = packet::ipv4::MORE_FRAGMENTS;
        let first = ip.packet(protocol::UDP, &[], &[1, 2, 3, 4, 5, 6, 7, 8]);
        ip.flags_and_offset = 1;
        let later = ip.packet(protocol::UDP, &[], &[9; 8]);
        assert_eq!(flow_hash(&first, 5), flow_hash(&later, 5));
        assert_eq!(flow_hash(&[], 5), 0);
        assert_eq!(flow_hash(&[0x60; 7], 5), 0);
    }
}
