//! Files that were drawn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use lab::Random;
use lab::mrt::{self, Attributes, Entry};

/// A dump and some messages behind it. What no reader is told to make the
/// same of (a peer twice for a prefix, a family behind a message of
/// another) does not come.
///
/// With path identifiers it is a dump alone, of each prefix once.
pub fn file(random: &mut Random) -> (Vec<u8>, bool) {
    let peers: Vec<(IpAddr, u32)> = (0..1 + random.below(5))
        .map(|at| peer(at, random))
        .collect();
    let has_ids = random.below(3) == 0;
    let mut seen: Vec<IpNet> = Vec::new();
    let mut file = mrt::record(1, 13, 1, &mrt::peer_index(&peers));
    for sequence in 0..random.below(40) as u32 {
        let prefix = prefix(random);
        if has_ids && seen.contains(&prefix) {
            continue;
        }
        seen.push(prefix);
        let mut entries = Vec::new();
        for at in 0..peers.len() {
            for path in 0..if has_ids {
                random.below(4)
            } else {
                random.below(2)
            } {
                let id = has_ids.then_some(path as u32 * 7 + 1);
                entries.push((at as u16, id, attributes(prefix, random).0));
            }
        }
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|(at, id, of)| (*at, *id, &of[..]))
            .collect();
        if entries.is_empty() {
            continue;
        }
        let (subtype, body) = mrt::rib(sequence, prefix, &entries);
        file.extend(mrt::record(1, 13, subtype, &body));
    }
    for seconds in 0..random.below(40) as u32 {
        let peer = peers[random.below(peers.len())];
        let some = |random: &mut Random| -> Vec<IpNet> {
            (0..random.below(4)).map(|_| said(random)).collect()
        };
        // A prefix is withdrawn or announced, by one message.
        let withdrawn = some(random);
        let mut announced = some(random);
        announced.retain(|prefix| !withdrawn.contains(prefix));
        let attributes = match announced.is_empty() {
            true => Attributes::default(),
            false => attributes(v4(random), random),
        };
        if has_ids || (withdrawn.is_empty() && announced.is_empty()) {
            continue;
        }
        let body = mrt::update(peer, &withdrawn, &attributes, &announced);
        file.extend(mrt::record(2 + seconds, 16, 4, &body));
    }
    if file.len() < 100 {
        let (subtype, body) = mrt::rib(
            0,
            v4(random),
            &[(0, None, &attributes(v4(random), random).0)],
        );
        file.extend(mrt::record(1, 13, subtype, &body));
    }
    (file, has_ids)
}

fn peer(at: usize, random: &mut Random) -> (IpAddr, u32) {
    let asn = 1 + random.below(1 << 17) as u32;
    let address: IpAddr = match random.below(2) {
        0 => Ipv4Addr::new(192, 0, 2, at as u8).into(),
        _ => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, at as u16).into(),
    };
    (address, asn)
}

/// One that no reader takes for a path identifier: where the first of a
/// message is `0.0.0.0/0`, the other reader guesses that there are such.
fn said(random: &mut Random) -> IpNet {
    loop {
        let prefix = v4(random);
        if prefix.prefix_len() > 0 {
            return prefix;
        }
    }
}

/// Few, so that they come again.
fn v4(random: &mut Random) -> IpNet {
    let address = Ipv4Addr::new(10, random.below(3) as u8, random.below(4) as u8 * 64, 0);
    let len = random.below(33) as u8;
    ipnet::Ipv4Net::new(address, len).unwrap().trunc().into()
}

fn prefix(random: &mut Random) -> IpNet {
    if random.below(2) == 0 {
        return v4(random);
    }
    let address = Ipv6Addr::new(0x2001, 0xdb8, random.below(9) as u16, 0, 0, 0, 0, 0);
    let len = random.below(129) as u8;
    ipnet::Ipv6Net::new(address, len).unwrap().trunc().into()
}

fn attributes(prefix: IpNet, random: &mut Random) -> Attributes {
    let next_hop: IpAddr = match prefix {
        IpNet::V4(_) => Ipv4Addr::new(198, 51, 100, random.below(4) as u8).into(),
        IpNet::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, random.below(4) as u16).into(),
    };
    let numbers = |random: &mut Random, most: usize| -> Vec<u32> {
        (0..random.below(most))
            .map(|_| random.number() as u32)
            .collect()
    };
    let mut path = Vec::new();
    for _ in 0..random.below(4) {
        let kind = [2, 2, 2, 1, 3, 4][random.below(6)];
        // One in twenty has as many as a segment can.
        let most = if random.below(20) == 0 { 256 } else { 6 };
        let mut all = numbers(random, most - 1);
        all.push(random.number() as u32);
        path.push((kind, all));
    }
    let mut all = Attributes::default()
        .origin(random.below(3) as u8)
        .as_path(&path);
    if matches!(prefix, IpNet::V4(_)) || random.below(8) > 0 {
        all = all.next_hop(next_hop);
    }
    for (flags, number) in [(0x80, 4), (0x40, 5)] {
        if random.below(2) == 0 {
            all = all.numbers(flags, number, &[random.number() as u32]);
        }
    }
    if random.below(4) == 0 {
        all = all.raw(0x40, 6, &[]);
    }
    if random.below(2) == 0 {
        let most = if random.below(20) == 0 { 300 } else { 9 };
        all = all.numbers(0xc0, 8, &numbers(random, most));
    }
    for (number, words) in [(16, 2), (32, 3)] {
        if random.below(3) == 0 {
            let count = random.below(4) * words;
            let words: Vec<u32> = (0..count).map(|_| random.number() as u32).collect();
            all = all.numbers(0xc0, number, &words);
        }
    }
    all
}
