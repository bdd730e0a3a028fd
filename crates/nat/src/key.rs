//! What a flow is found by, and its hash.
//!
//! For the tables of this crate. A key's words are what stands in a packet,
//! in memory order: two loads make it.

/// Both addresses and both ports of a packet, source first, and its
/// protocol. In memory order; ports are 0 for protocols without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Source in the lower half, destination in the upper.
    pub addresses: u64,
    /// Source port, destination port (16 bits each), protocol.
    pub ports: u64,
}

impl Key {
    /// From the parts, in memory order.
    #[inline(always)]
    pub fn new(source: u32, destination: u32, ports: [u16; 2], protocol: u8) -> Self {
        let [source_port, destination_port] = ports;
        // 32 bits by themselves: where they lie side by side, one load.
        let both = u32::from(source_port) | u32::from(destination_port) << 16;
        Self {
            addresses: u64::from(source) | u64::from(destination) << 32,
            ports: u64::from(both) | u64::from(protocol) << 32,
        }
    }

    /// Source address.
    #[inline(always)]
    pub fn source(self) -> u32 {
        self.addresses as u32
    }

    /// Destination address.
    #[inline(always)]
    pub fn destination(self) -> u32 {
        (self.addresses >> 32) as u32
    }

    /// Source port.
    #[inline(always)]
    pub fn source_port(self) -> u16 {
        self.ports as u16
    }

    /// Destination port.
    #[inline(always)]
    pub fn destination_port(self) -> u16 {
        (self.ports >> 16) as u16
    }

    /// Protocol.
    #[inline(always)]
    pub fn protocol(self) -> u8 {
        (self.ports >> 32) as u8
    }

    /// The key of the opposite direction.
    pub fn turned(self) -> Self {
        let ports = [self.destination_port(), self.source_port()];
        Self::new(self.destination(), self.source(), ports, self.protocol())
    }

    /// The same with both ports 0.
    pub fn without_ports(self) -> Self {
        let ports = self.ports & !0xffff_ffff;
        Self { ports, ..self }
    }
}

/// A keyed hash: two rounds of a folded 64 by 64 bit product. Not
/// cryptography, but without the seed no two keys are known to collide
/// (CRC32's do under every seed).
#[derive(Debug, Clone, Copy)]
pub struct Hasher {
    seeds: [u64; 4],
}

impl Hasher {
    /// With some random bits.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // The last is a factor by itself: never 0.
        let seeds = [
            random.next(),
            random.next(),
            random.next(),
            random.next() | 1,
        ];
        Self { seeds }
    }

    /// The hash of a key. About 2 ns, independent ones 1 ns.
    #[inline(always)]
    pub fn hash(&self, key: Key) -> u64 {
        let [a, b, c, d] = self.seeds;
        folded(folded(key.addresses ^ a, key.ports ^ b) ^ c, d)
    }
}

/// A product of 64 by 64 bits, its halves folded.
#[inline(always)]
pub fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// A generator of numbers for port choice and seeds: fast, and its seed is
/// what nobody outside may know.
#[derive(Debug, Clone, Copy)]
pub struct Random(memory::Random);

impl Random {
    /// With some random bits.
    pub fn new(seed: u64) -> Self {
        Self(memory::Random::new(seed))
    }

    /// The seed of the rest of its numbers.
    pub fn rest(&self) -> u64 {
        self.0.rest()
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `bound`, all nearly alike likely; 0 if there is none.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}
