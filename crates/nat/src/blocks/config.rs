//! The settings of subscribers and blocks.

use std::fmt;
use std::ops::RangeInclusive;

use crate::AddressRange;

/// Who is a subscriber, and what each may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberConfig {
    /// The subscribers' addresses, in the order in which deterministic
    /// blocks are counted. Empty: every inside address is a subscriber's.
    pub inside: Vec<AddressRange>,
    /// Leading bits of an address that tell a subscriber: with 32 each
    /// address is one, with 29 eight of them share quotas and blocks.
    pub bits: u8,
    /// What each may have.
    pub quotas: Quotas,
    /// Most subscribers at a time; a further one is refused.
    pub most: usize,
    /// Whether packets, mappings and refusals are counted for each: it costs
    /// 48 bytes of a subscriber, and a look at it for each packet.
    pub counted: bool,
}

impl SubscriberConfig {
    /// Most subscribers of one engine: a name has 24 bits.
    pub const MOST: usize = (1 << 24) - 2;
}

impl SubscriberConfig {
    /// Whether it can be.
    pub(crate) fn check(&self) -> Result<(), BlocksError> {
        let bits = self.bits;
        if !(8..=32).contains(&bits) {
            return Err(BlocksError::Bits { bits });
        }
        if self.most == 0 || self.most > Self::MOST {
            return Err(BlocksError::Subscribers { asked: self.most });
        }
        self.quotas.new_mappings.check()?;
        let mut sorted = self.inside.clone();
        sorted.sort_unstable();
        let mut before: Option<AddressRange> = None;
        for range in sorted {
            let [first, last] =
                [range.first, range.last].map(|end| AddressRange::of_prefix(end, bits));
            if first.first != range.first || last.last != range.last {
                return Err(BlocksError::Cut { range, bits });
            }
            if before.is_some_and(|before| before.last >= range.first) {
                return Err(BlocksError::Twice(range));
            }
            before = Some(range);
        }
        Ok(())
    }
}

impl Default for SubscriberConfig {
    fn default() -> Self {
        Self {
            inside: Vec::new(),
            bits: 32,
            quotas: Quotas::default(),
            most: 1 << 20,
            counted: false,
        }
    }
}

/// What a subscriber may have at most (RFC 6888 REQ-4). What is there stays
/// when a quota is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Mappings: alias ports and query identifiers. Where mapping depends on
    /// the remote, a port that serves two remotes counts as two.
    pub ports: Quota,
    /// Sessions (flows), without those that somebody outside has begun.
    pub sessions: Quota,
    /// Sessions without an answer yet: TCP's before the handshake is done,
    /// UDP's before the first answer.
    pub half_open: Quota,
    /// New mappings a second.
    pub new_mappings: Rate,
}

impl Quotas {
    /// Whether anything is limited.
    pub fn are_any(&self) -> bool {
        *self != Self::default()
    }
}

/// A limit for all protocols together and for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// All together.
    pub all: u32,
    /// TCP, UDP, and ICMP with all others.
    pub of: [u32; 3],
}

impl Default for Quota {
    /// No limit.
    fn default() -> Self {
        Self {
            all: u32::MAX,
            of: [u32::MAX; 3],
        }
    }
}

/// So many a second, for all protocols together and for each (0: no
/// limit), and so many at once after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// All together; then TCP, UDP, and ICMP with all others.
    pub of: [u32; 4],
    /// How many may come at once; 0: as many as in a second.
    pub burst: u32,
}

impl Rate {
    /// The most that can be told apart. The pace is kept in steps of a 64th
    /// of a millisecond, and never above what is said: at 1,000 it is exact,
    /// at 50,000 it is 32,000.
    pub const MOST: u32 = 50_000;
    /// A burst may be what comes in so many seconds: times are kept for
    /// hours.
    pub const MOST_BURST_SECS: u32 = 3_600;

    fn check(&self) -> Result<(), BlocksError> {
        let burst = self.burst;
        let too_slow = |per_sec: &&u32| **per_sec > 0 && burst / **per_sec > Self::MOST_BURST_SECS;
        match self.of.iter().find(too_slow) {
            Some(per_sec) => Err(BlocksError::Burst {
                burst,
                per_sec: *per_sec,
            }),
            None => Ok(()),
        }
    }
}

/// Blocks of alias ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Ports of a block.
    pub size: u16,
    /// Most blocks of a subscriber; with deterministic ones, beside its own.
    pub most: u8,
    /// For how long new ports come from the newest block, seconds, before
    /// another is taken in its place; 0: until it has no free port.
    pub active_secs: u32,
    /// How long a block without any flow stays its subscriber's, seconds,
    /// before it is given back (RFC 6888 REQ-8).
    pub hold_down_secs: u32,
    /// How often a block that is held is told again, seconds; 0: never.
    pub interim_secs: u32,
    /// Ports that are in no block: each first and last.
    pub reserved: Vec<(u16, u16)>,
    /// Every subscriber has ports that can be reckoned; blocks come on top.
    pub deterministic: Option<Deterministic>,
}

impl Blocks {
    /// Least ports of a block.
    pub const LEAST_SIZE: u16 = 8;
    /// Most blocks of a subscriber.
    pub const MOST: u8 = 64;
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            size: 128,
            most: 8,
            active_secs: 0,
            hold_down_secs: 120,
            interim_secs: 0,
            reserved: Vec::new(),
            deterministic: None,
        }
    }
}

/// Deterministic blocks (RFC 7422 §2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deterministic {
    /// Subscribers of an alias address (C); 0: as few as will do.
    pub ratio: u32,
    /// How many subscribers' ports are kept for blocks on top (D).
    pub dynamic: u32,
    /// With a key a subscriber's ports lie all over the range, so that who
    /// does not know the key cannot tell which are one's.
    pub key: Option<Key>,
}

/// A secret of 16 bytes. It is never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

/// Why blocks cannot be as they are asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlocksError {
    /// A block is too small or larger than the range.
    #[error(
        "blocks of {size} ports do not go into the ports {}-{}: {} at least, and one block at least must fit",
        ports.start(), ports.end(), Blocks::LEAST_SIZE
    )]
    Size {
        /// Ports of a block.
        size: u16,
        /// The range.
        ports: RangeInclusive<u16>,
    },
    /// No block, or too many.
    #[error("a subscriber cannot have {most} blocks: 1 to {}", Blocks::MOST)]
    Most {
        /// What was asked for.
        most: u8,
    },
    /// The length of a subscriber's prefix.
    #[error("a subscriber's prefix cannot have {bits} bits: 8 to 32")]
    Bits {
        /// What was asked for.
        bits: u8,
    },
    /// A range of inside addresses cuts a prefix.
    #[error("the subscribers {range} are no whole prefixes of {bits} bits")]
    Cut {
        /// The range.
        range: AddressRange,
        /// Bits of a prefix.
        bits: u8,
    },
    /// Two ranges have an address in common.
    #[error("the subscribers {0} are named twice")]
    Twice(AddressRange),
    /// More subscribers than can be told apart, or none.
    #[error("{asked} subscribers: 1 to {} are possible", SubscriberConfig::MOST)]
    Subscribers {
        /// What was asked for.
        asked: usize,
    },
    /// A burst that takes too long to come again.
    #[error(
        "{burst} new mappings at once, {per_sec} a second: a burst is what comes in an hour at most"
    )]
    Burst {
        /// New mappings at once.
        burst: u32,
        /// New mappings a second.
        per_sec: u32,
    },
    /// Deterministic blocks need to know the inside.
    #[error("deterministic blocks need `subscribers`: without them nothing can be reckoned")]
    NoInside,
    /// There are no alias addresses to count on.
    #[error("blocks need an alias address")]
    NoAddress,
    /// More subscribers than the addresses have blocks for.
    #[error(
        "{subscribers} subscribers, {ratio} of each of {addresses} alias addresses: give more addresses, or a greater ratio"
    )]
    Ratio {
        /// Subscribers there are.
        subscribers: u64,
        /// Of an address.
        ratio: u32,
        /// Alias addresses.
        addresses: usize,
    },
    /// So many subscribers of an address leave hardly a port.
    #[error(
        "{ratio} subscribers of an alias address, and {dynamic} times their ports on top, leave {ports} ports for each: {} at least; give more addresses",
        Blocks::LEAST_SIZE
    )]
    Thin {
        /// Of an address.
        ratio: u32,
        /// The dynamic factor.
        dynamic: u32,
        /// Ports left for one.
        ports: u32,
    },
    /// Reserved ports between deterministic ones.
    #[error("deterministic blocks have no reserved ports: choose another port_range")]
    Reserved,
    /// Address space for the tables was refused.
    #[error("{bytes} bytes of address space for blocks: {error}")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What the system said.
        error: String,
    },
}
