//! What this machine allows: the least that a translation can be. UDP only,
//! no state, rules, fragments, statistics, limits or sweep; an index that
//! does not grow, and a flow that finds its bucket full is left out. It has
//! the lines of the engine: packet, bucket, flow.

use memory::{Reserved, matching, prefetch_bytes};
use packet::checksum::Delta;

const NAMES_AT: usize = 16;
const BATCH: usize = 32;
/// Names a bucket, as the engine has them.
const LOAD: usize = 9;
const SEEDS: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
];
const TIMEOUT: u32 = 1 << 20;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket([u8; 64]);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Flow {
    /// Inside, remote, alias.
    addresses: [u32; 3],
    ports: [u16; 3],
    last_used: u32,
    ip_delta: u16,
    upper_delta: u16,
}

type Key = (u64, u32);

struct Index(Reserved<Bucket>);

/// See the module.
pub struct Prototype {
    out: Index,
    incoming: Index,
    flows: Reserved<Flow>,
    alias: u32,
    now: u32,
}

impl Index {
    fn new(names: usize) -> Self {
        let len = names.div_ceil(LOAD).max(1);
        let mut buckets = Reserved::new(len).unwrap();
        buckets.prepare(len);
        while buckets.push(Bucket([0; 64])) {}
        Self(buckets)
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash as u32) * self.0.len() as u128) >> 32) as usize
    }

    #[inline(always)]
    fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let Bucket(line) = &self.0[self.place(hash)];
        let mut found = matching(line.first_chunk::<16>().unwrap(), tag(hash)) & 0x7fff;
        while found != 0 {
            let name = name(line, found.trailing_zeros() as usize);
            if is_it(name) {
                return Some(name);
            }
            found &= found - 1;
        }
        None
    }

    fn insert(&mut self, hash: u64, name: u32) -> bool {
        let place = self.place(hash);
        let Bucket(line) = &mut self.0[place];
        let free = matching(line.first_chunk::<16>().unwrap(), 0) & 0x7fff;
        if free == 0 {
            return false;
        }
        let slot = free.trailing_zeros() as usize;
        line[slot] = tag(hash);
        let at = NAMES_AT + 3 * slot;
        line[at..at + 3].copy_from_slice(&name.to_le_bytes()[..3]);
        true
    }
}

#[inline(always)]
fn name(line: &[u8; 64], slot: usize) -> u32 {
    let at = NAMES_AT + 3 * slot - 1;
    let word = line
        .get(at..at + 4)
        .and_then(|word| word.first_chunk::<4>());
    u32::from_le_bytes(*word.unwrap_or(&[0; 4])) >> 8
}

#[inline(always)]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

#[inline(always)]
fn hash((addresses, ports): Key) -> u64 {
    let folded = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let [a, b, c, d] = SEEDS;
    folded(folded(addresses ^ a, u64::from(ports) ^ b) ^ c, d)
}

#[inline(always)]
fn key_of(bytes: &[u8]) -> Option<Key> {
    let header: &[u8; 28] = bytes.first_chunk()?;
    let sound = header[0] == 0x45 && header[9] == 17 && header[6] & 0x3f == 0 && header[7] == 0;
    let addresses = u64::from_ne_bytes(*header[12..].first_chunk()?);
    let ports = u32::from_ne_bytes(*header[20..].first_chunk()?);
    sound.then_some((addresses, ports))
}

impl Flow {
    #[inline(always)]
    fn key<const OUT: bool>(&self) -> Key {
        let [inside, remote, alias] = self.addresses.map(u64::from);
        let [inside_port, remote_port, alias_port] = self.ports.map(u32::from);
        if OUT {
            (inside | remote << 32, inside_port | remote_port << 16)
        } else {
            (remote | alias << 32, remote_port | alias_port << 16)
        }
    }
}

impl Prototype {
    pub fn new(flows: usize, alias: u32) -> Self {
        let mut array = Reserved::new(flows).unwrap();
        array.prepare(flows);
        Self {
            out: Index::new(flows),
            incoming: Index::new(flows),
            flows: array,
            alias,
            now: 1,
        }
    }

    #[inline(always)]
    fn index<const OUT: bool>(&self) -> &Index {
        if OUT { &self.out } else { &self.incoming }
    }

    /// Translates a packet of a flow; whether it had one.
    #[inline]
    pub fn one<const OUT: bool>(&mut self, bytes: &mut [u8]) -> bool {
        let Some(key) = key_of(bytes) else {
            return false;
        };
        let flows = &self.flows;
        let name = self.index::<OUT>().find(hash(key), |name| {
            flows
                .get(name as usize)
                .is_some_and(|flow| flow.key::<OUT>() == key)
        });
        let Some(flow) = name.and_then(|name| self.flows.get_mut(name as usize)) else {
            return false;
        };
        rewrite::<OUT>(bytes, flow, self.now)
    }

    /// The same for up to 32; how many had a flow.
    pub fn batch<const OUT: bool>(&mut self, packets: &mut [&mut [u8]]) -> usize {
        let mut staged = [((0, 0), 0, u32::MAX); BATCH];
        for bytes in packets.iter() {
            prefetch_bytes(bytes);
        }
        for (bytes, staged) in packets.iter().zip(&mut staged) {
            if let Some(key) = key_of(bytes) {
                let hash = hash(key);
                *staged = (key, hash, u32::MAX);
                let index = self.index::<OUT>();
                index.0.prefetch(index.place(hash));
            }
        }
        for (_, hash, name) in staged.iter_mut().take(packets.len()) {
            let found = self.index::<OUT>().find(*hash, |_| true);
            if let Some(found) = found {
                self.flows.prefetch(found as usize);
                *name = found;
            }
        }
        let mut done = 0;
        for (bytes, (key, hash, name)) in packets.iter_mut().zip(&staged) {
            if *name == u32::MAX {
                continue;
            }
            let flow = self.flows.get_mut(*name as usize);
            let good = match flow {
                Some(flow) if flow.key::<OUT>() == *key => rewrite::<OUT>(bytes, flow, self.now),
                _ => self.again::<OUT>(bytes, *hash),
            };
            done += usize::from(good);
        }
        done
    }

    /// The tag was another flow's.
    #[cold]
    #[inline(never)]
    fn again<const OUT: bool>(&mut self, bytes: &mut [u8], _: u64) -> bool {
        self.one::<OUT>(bytes)
    }

    /// Makes the flow of a packet and translates it: the same port.
    pub fn make(&mut self, bytes: &mut [u8]) -> bool {
        let Some(key) = key_of(bytes) else {
            return false;
        };
        self.make_of(bytes, key, hash(key), None)
    }

    #[inline(always)]
    fn foreseen(&self, (addresses, ports): Key) -> u64 {
        let key = (
            addresses >> 32 | u64::from(self.alias) << 32,
            ports.rotate_left(16),
        );
        hash(key)
    }

    #[inline(always)]
    fn make_of(&mut self, bytes: &mut [u8], key: Key, out: u64, incoming: Option<u64>) -> bool {
        let (addresses, ports) = key;
        let (inside, remote) = (addresses as u32, (addresses >> 32) as u32);
        let (port, remote_port) = (ports as u16, (ports >> 16) as u16);
        let incoming = incoming.unwrap_or_else(|| self.foreseen(key));
        let flows = &self.flows;
        let taken = self.incoming.find(incoming, |name| {
            let flow = &flows[name as usize];
            flow.addresses[1] == remote && flow.ports[1..] == [remote_port, port]
        });
        if taken.is_some() {
            return false;
        }
        let ip = Delta::of32(inside, self.alias);
        let name = self.flows.len() as u32;
        let flow = Flow {
            addresses: [inside, remote, self.alias],
            ports: [port, remote_port, port],
            last_used: self.now,
            ip_delta: ip.folded(),
            upper_delta: ip.folded(),
        };
        if !(self.out.insert(out, name) && self.incoming.insert(incoming, name)) {
            return false;
        }
        self.flows.push(flow) && self.one::<true>(bytes)
    }

    /// Makes the flows of up to 32 packets; how many.
    pub fn make_batch(&mut self, packets: &mut [&mut [u8]]) -> usize {
        let mut staged = [((0, 0), 0, 0); BATCH];
        for bytes in packets.iter() {
            prefetch_bytes(bytes);
        }
        for (bytes, staged) in packets.iter().zip(&mut staged) {
            if let Some(key) = key_of(bytes) {
                let (out, incoming) = (hash(key), self.foreseen(key));
                *staged = (key, out, incoming);
                self.out.0.prefetch(self.out.place(out));
                self.incoming.0.prefetch(self.incoming.place(incoming));
            }
        }
        let mut done = 0;
        for (bytes, (key, out, incoming)) in packets.iter_mut().zip(staged) {
            let flows = &self.flows;
            let known = self.out.find(out, |name| {
                flows
                    .get(name as usize)
                    .is_some_and(|flow| flow.key::<true>() == key)
            });
            if known.is_none() {
                done += usize::from(self.make_of(bytes, key, out, Some(incoming)));
            }
        }
        done
    }
}

#[inline(always)]
fn rewrite<const OUT: bool>(bytes: &mut [u8], flow: &mut Flow, now: u32) -> bool {
    if now.wrapping_sub(flow.last_used) > TIMEOUT {
        return false;
    }
    flow.last_used = now;
    let (ip, upper) = (
        Delta::from_folded(flow.ip_delta),
        Delta::from_folded(flow.upper_delta),
    );
    let ((ip, upper), address, port, address_at, port_at) = if OUT {
        ((ip, upper), flow.addresses[2], flow.ports[2], 12, 20)
    } else {
        let deltas = (ip.negated(), upper.negated());
        (deltas, flow.addresses[0], flow.ports[0], 16, 22)
    };
    let Some(header) = bytes.first_chunk_mut::<28>() else {
        return false;
    };
    header[address_at..address_at + 4].copy_from_slice(&address.to_ne_bytes());
    header[port_at..port_at + 2].copy_from_slice(&port.to_ne_bytes());
    let sum = ip.apply(u16::from_ne_bytes([header[10], header[11]]));
    header[10..12].copy_from_slice(&sum.to_ne_bytes());
    let sum = upper.apply_udp(u16::from_ne_bytes([header[26], header[27]]));
    header[26..28].copy_from_slice(&sum.to_ne_bytes());
    true
}
