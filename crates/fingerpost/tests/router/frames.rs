//! Frames at random, of all that a router may meet: most could be forwarded,
//! the others are wrong or special in one way or two.

use lab::Random;
use packet::checksum::Sum;

const ETHER_V4: [u8; 2] = [8, 0];
const ETHER_V6: [u8; 2] = [0x86, 0xdd];

/// The router's address on a side; that of the other end.
pub fn router_mac(side: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, side]
}
/// See above.
pub fn host_mac(side: u8) -> [u8; 6] {
    [2, 0, 0, 0, 2, side]
}

/// Destinations and sources that mean something where `twin` furnishes, as
/// their last words: see there.
const TO_V4: [[u8; 4]; 26] = [
    [10, 2, 0, 2],
    [10, 2, 0, 2],
    [10, 20, 3, 3],
    [10, 20, 4, 4],
    [10, 1, 0, 2],
    [10, 2, 0, 2],
    [10, 2, 0, 2],
    [10, 1, 0, 2],
    [10, 3, 0, 2],
    [10, 2, 0, 1],
    [10, 2, 0, 255],
    [10, 20, 1, 1],
    [10, 20, 2, 2],
    [10, 21, 0, 1],
    [10, 22, 0, 1],
    [10, 23, 0, 1],
    [10, 23, 7, 9],
    [10, 30, 0, 1],
    [10, 40, 0, 1],
    [10, 41, 0, 1],
    [224, 0, 0, 5],
    [127, 0, 0, 1],
    [255, 255, 255, 255],
    [203, 0, 113, 1],
    [10, 44, 0, 2],
    [10, 45, 0, 2],
];
const FROM_V4: [[u8; 4]; 14] = [
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 77],
    [10, 20, 3, 3],
    [10, 30, 1, 1],
    [10, 2, 0, 1],
    [0, 0, 0, 0],
    [127, 0, 0, 1],
    [198, 51, 100, 1],
];
/// Of IPv6, what stands behind `2001:db8:`, and the last byte.
const TO_V6: [(u16, u8); 10] = [
    (2, 2),
    (2, 2),
    (2, 1),
    (3, 2),
    (0x20, 1),
    (0x20, 9),
    (0x21, 1),
    (0x23, 7),
    (0x40, 1),
    (0x99, 1),
];
const SPECIAL_V6: [[u8; 2]; 3] = [[0xff, 2], [0xfe, 0x80], [0, 0]];

const SIZES: [usize; 8] = [0, 1, 18, 100, 560, 1_000, 1_200, 1_400];
const PROTOCOLS: [u8; 16] = [6, 6, 6, 6, 17, 17, 17, 17, 1, 1, 58, 58, 47, 50, 132, 99];

/// One of some, at random.
fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

/// Whether, once in so many times.
fn is(random: &mut Random, once_in: usize) -> bool {
    random.below(once_in) == 0
}

/// A frame that comes in on a side; `number` is in it, so that none is as
/// another.
pub fn frame(random: &mut Random, side: u8, number: u32) -> Vec<u8> {
    let is_v6 = is(random, 3);
    let packet = if is_v6 {
        v6(random, number)
    } else {
        v4(random, number)
    };
    let to = match random.below(40) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, 5],
        2 => host_mac(9),
        _ => router_mac(side),
    };
    let mut frame = [to, host_mac(side)].concat();
    if is(random, 30) {
        // Stacked now and then.
        if is(random, 3) {
            frame.extend([0x88, 0xa8, 0, random.below(3) as u8]);
        }
        frame.extend([0x81, 0, 0, random.below(3) as u8]);
    }
    frame.extend(match (is(random, 60), is_v6) {
        (true, _) => [0x88, 0xb5],
        (_, true) => ETHER_V6,
        (_, false) => ETHER_V4,
    });
    frame.extend(packet);
    match random.below(20) {
        // Cut off, or with something behind it.
        0 => frame.truncate(14 + random.below(frame.len() - 13)),
        1 | 2 => frame.extend(vec![0xee; 1 + random.below(60)]),
        _ => {}
    }
    // What the cable takes.
    frame.truncate(1_514);
    frame
}

fn v4(random: &mut Random, number: u32) -> Vec<u8> {
    let protocol = one(random, &PROTOCOLS);
    let body = body(random, protocol, number);
    let options: &[u8] = match random.below(25) {
        0 => &[1, 1, 1, 0],
        1 => &[0x94, 4, 0, 0],
        _ => &[],
    };
    let len = 20 + options.len() + body.len();
    let mut header = vec![
        0x45 + (options.len() / 4) as u8,
        one(random, &[0, 0, 0x10, 0xb8]),
    ];
    header.extend((len as u16).to_be_bytes());
    header.extend((number as u16).to_be_bytes());
    // Don't fragment, more fragments, a later one.
    let fragment: u16 = one(
        random,
        &[
            0, 0, 0, 0, 0, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x2000, 0x2005, 0x8000,
        ],
    );
    header.extend(fragment.to_be_bytes());
    header.extend([
        one(random, &[64, 64, 64, 64, 64, 64, 64, 64, 255, 2, 1, 0]),
        protocol,
        0,
        0,
    ]);
    header.extend(one(random, &FROM_V4));
    header.extend(one(random, &TO_V4));
    header.extend(options);
    match random.below(30) {
        0 => header[0] = 0x44,
        1 => header[0] = 0x65,
        2 => header[3] ^= 1 << random.below(6),
        _ => {}
    }
    let sum = Sum::of(&header).checksum();
    header[10..12].copy_from_slice(&sum.to_ne_bytes());
    if is(random, 20) {
        header[10] ^= 1 << random.below(8);
    }
    header.extend(unfinished(random, &header[12..20], protocol, body));
    header
}

fn v6(random: &mut Random, number: u32) -> Vec<u8> {
    let mut protocol = one(random, &PROTOCOLS);
    let mut body = body(random, protocol, number);
    if is(random, 15) {
        // Options, a routing header that is through, a fragment.
        let extension = one(random, &[0_u8, 60, 43, 44]);
        let padding = if extension == 44 {
            [0; 6]
        } else {
            [1, 4, 0, 0, 0, 0]
        };
        let mut header = vec![protocol, 0];
        header.extend(padding);
        header.extend(body);
        (protocol, body) = (extension, header);
    }
    let mut packet = vec![0x60 | random.below(2) as u8, 0, 0, random.below(9) as u8];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([
        protocol,
        one(random, &[64, 64, 64, 64, 64, 64, 64, 255, 2, 1, 0]),
    ]);
    let from = match random.below(12) {
        0 => special_v6(random),
        1 => address_v6(2, 1),
        _ => address_v6(1, 2),
    };
    let (subnet, last) = one(random, &TO_V6);
    let to = match random.below(12) {
        0 => special_v6(random),
        _ => address_v6(subnet, last),
    };
    packet.extend(from);
    packet.extend(to);
    let addresses = packet[8..40].to_vec();
    packet.extend(unfinished(random, &addresses, protocol, body));
    match random.below(40) {
        0 => packet[0] = 0x40,
        1 => packet[5] ^= 1 << random.below(6),
        _ => {}
    }
    packet
}

/// `2001:db8:SUBNET::LAST`.
pub fn address_v6(subnet: u16, last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
    address[4..6].copy_from_slice(&subnet.to_be_bytes());
    address[15] = last;
    address
}

fn special_v6(random: &mut Random) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&one(random, &SPECIAL_V6));
    address[15] = 1;
    address
}

/// What is behind the header of IP.
fn body(random: &mut Random, protocol: u8, number: u32) -> Vec<u8> {
    let mut body = match protocol {
        6 => vec![
            0x40, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 4, 0, 0x12, 0x34, 0, 0,
        ],
        17 => vec![0x40, 0, 0x13, 0x88, 0, 8, 0x12, 0x34],
        1 => vec![
            one(random, &[8, 8, 0, 13, 5, 11]),
            0,
            0x12,
            0x34,
            0,
            0,
            0,
            0,
        ],
        58 => vec![
            one(random, &[128, 129, 1, 3, 135]),
            0,
            0x12,
            0x34,
            0,
            0,
            0,
            0,
        ],
        _ => vec![0; 8],
    };
    if matches!(protocol, 6 | 17) {
        // Ports at random, and those that a rule is about.
        body[1] = random.below(256) as u8;
        if is(random, 2) {
            body[2..4].copy_from_slice(&(random.below(65_536) as u16).to_be_bytes());
        }
    }
    body.extend(number.to_be_bytes());
    body.extend(vec![0x5a; one(random, &SIZES)]);
    if protocol == 17 {
        let len = body.len() as u16;
        body[4..6].copy_from_slice(&len.to_be_bytes());
    }
    if is(random, 25) {
        body.truncate(random.below(8));
    }
    body
}

/// Now and then with the checksum that a sender leaves to its device: the
/// pseudo header's.
fn unfinished(random: &mut Random, addresses: &[u8], protocol: u8, mut body: Vec<u8>) -> Vec<u8> {
    let at = match protocol {
        6 => 16,
        17 => 6,
        _ => return body,
    };
    if is(random, 6) && body.len() >= at + 2 {
        let mut pseudo = addresses.to_vec();
        pseudo.extend([0, protocol]);
        pseudo.extend((body.len() as u16).to_be_bytes());
        let sum = Sum::of(&pseudo).folded();
        body[at..at + 2].copy_from_slice(&sum.to_ne_bytes());
    }
    body
}

/// A frame that somebody made to hurt: one of [`frame`]'s with bits turned
/// over, cut off or with a tail, or nothing but noise behind a header that
/// promises IP. Up to `most` bytes.
pub fn hostile(random: &mut Random, side: u8, number: u32, most: usize) -> Vec<u8> {
    let mut frame = frame(random, side, number);
    match random.below(4) {
        0 => {
            for _ in 0..=random.below(8) {
                let at = 12 + random.below(frame.len() - 12);
                frame[at] ^= 1 << random.below(8);
            }
        }
        1 => frame.extend(noise(random, most)),
        2 => {
            let tags = random.below(20);
            let tail = frame.split_off(12);
            for _ in 0..tags {
                frame.extend([0x81, 0, random.below(256) as u8, random.below(256) as u8]);
            }
            frame.extend(tail);
        }
        _ => {
            frame.truncate(12);
            frame.extend(one(random, &[ETHER_V4, ETHER_V6]));
            frame.push(one(random, &[0x45, 0x46, 0x60, 0x4f, 0x00]));
            frame.extend(noise(random, most));
        }
    }
    frame.truncate(most);
    frame
}

/// Bytes at random, of any length.
fn noise(random: &mut Random, most: usize) -> Vec<u8> {
    let len = random.below(most);
    (0..len).map(|_| random.below(256) as u8).collect()
}
