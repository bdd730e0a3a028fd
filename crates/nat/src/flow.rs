//! A flow as the table keeps it: one cache line.
//!
//! For the engine's modules. The first 32 bytes are what a packet of an
//! established flow needs; the addresses and ports stand so that either
//! direction's key is two loads from neighbouring fields.

use packet::checksum::Delta;
use packet::protocol;

use crate::State;
use crate::key::Key;
use crate::tcp::{MOST_SCALE, Side};

/// A flow or a free place.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Flow {
    /// Inside, remote, alias; memory order.
    pub addresses: [u32; 3],
    /// Inside, remote, alias; memory order.
    pub ports: [u16; 3],
    pub protocol: u8,
    /// Which timeout counts: a [`State`] as a number.
    pub class: u8,
    /// When its last packet came, in ticks.
    pub last_used: u32,
    /// What translation out does to a sum over the addresses.
    pub ip_delta: u16,
    /// The same and over the ports: for TCP and UDP. For ICMP queries over
    /// the identifier alone.
    pub upper_delta: u16,
    /// `flag::*`, its epoch and TCP's window scales: in one word, so that one
    /// comparison says whether there is anything special about a flow.
    pub flags: u32,
    /// TCP: how far the inside and the remote are.
    pub sides: [Side; 2],
    /// The shared mapping it belongs to, and the one that admits its remote
    /// address; for a free place, the next free one. Without a shared mapping
    /// `permit` says how its own port counts (0: not at all).
    pub mapping: u32,
    pub permit: u32,
}

const _: () = assert!(size_of::<Flow>() == 64);

/// Where in [`Flow::flags`] the epoch lies: seven bits.
const EPOCH_SHIFT: u32 = 16;
/// All of them.
const EPOCH_BITS: u32 = (MOST_EPOCH as u32) << EPOCH_SHIFT;
/// The last epoch before they begin again.
pub const MOST_EPOCH: u8 = 0x7f;
/// Where the window scales lie: four bits each.
const SCALES_SHIFT: u32 = 24;

/// Bits of [`Flow::flags`], all but the last below the epoch.
pub mod flag {
    /// The place is taken.
    pub const LIVE: u32 = 1;
    /// A packet went out.
    pub const SEEN_OUT: u32 = 1 << 1;
    /// A packet came in.
    pub const SEEN_IN: u32 = 1 << 2;
    /// TCP: the inside sent its FIN.
    pub const FIN_OUT: u32 = 1 << 3;
    /// TCP: the remote sent its FIN.
    pub const FIN_IN: u32 = 1 << 4;
    /// TCP: `sides[0].end` is known.
    pub const END_OUT: u32 = 1 << 5;
    /// TCP: `sides[1].end` is known.
    pub const END_IN: u32 = 1 << 6;
    /// TCP: `sides[0]` was acknowledged by the remote.
    pub const ACKED_OUT: u32 = 1 << 7;
    /// TCP: `sides[1]` was acknowledged by the inside.
    pub const ACKED_IN: u32 = 1 << 8;
    /// It belongs to a shared mapping.
    pub const MAPPED: u32 = 1 << 9;
    /// Its remote is one of our own alias endpoints.
    pub const HAIRPIN: u32 = 1 << 10;
    /// Others translate its further packets. What becomes of a packet here
    /// does not depend on it.
    pub const OFFLOADED: u32 = 1 << 11;
    /// A helper reads its payload or changes its sequence numbers.
    pub const HELPER: u32 = 1 << 12;
    /// Its remote is a proxy; the original one is kept beside the table.
    pub const PROXY: u32 = 1 << 13;
    /// It holds its remote's address in an address-dependent filter.
    pub const PERMIT: u32 = 1 << 14;
    /// Someone outside made it: the first to go where room is wanted.
    pub const STRANGER: u32 = 1 << 15;

    /// It counts as a session of its subscriber.
    pub const COUNTED: u32 = 1 << 23;

    /// Flags that take a packet off the short path.
    pub const SLOW: u32 = HAIRPIN | HELPER | PROXY;
}

/// The three endpoints of a flow, in memory order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    pub inside: u32,
    pub inside_port: u16,
    pub remote: u32,
    pub remote_port: u16,
    pub alias: u32,
    pub alias_port: u16,
    pub protocol: u8,
}

impl Ends {
    /// The key of a packet that goes out.
    pub fn out_key(&self) -> Key {
        let ports = [self.inside_port, self.remote_port];
        Key::new(self.inside, self.remote, ports, self.protocol)
    }

    /// The key of a packet that comes in.
    pub fn in_key(&self) -> Key {
        let ports = [self.remote_port, self.alias_port];
        Key::new(self.remote, self.alias, ports, self.protocol)
    }
}

impl Flow {
    /// A free place.
    pub const FREE: Self = Self {
        addresses: [0; 3],
        ports: [0; 3],
        protocol: 0,
        class: 0,
        last_used: 0,
        ip_delta: 0,
        upper_delta: 0,
        flags: 0,
        sides: [Side::UNKNOWN; 2],
        mapping: 0,
        permit: 0,
    };

    /// A new flow; the deltas are computed once for its life.
    #[inline(always)]
    pub fn new(ends: &Ends, class: State, now: u32, epoch: u8) -> Self {
        let ip = Delta::of32(ends.inside, ends.alias);
        let port = Delta::of16(ends.inside_port, ends.alias_port);
        let upper = match ends.protocol {
            protocol::ICMP => port,
            _ => ip.and(port),
        };
        Self {
            addresses: [ends.inside, ends.remote, ends.alias],
            ports: [ends.inside_port, ends.remote_port, ends.alias_port],
            protocol: ends.protocol,
            class: class as u8,
            last_used: now,
            ip_delta: ip.folded(),
            upper_delta: upper.folded(),
            flags: flag::LIVE
                | u32::from(epoch) << EPOCH_SHIFT
                | u32::from(MOST_SCALE << 4 | MOST_SCALE) << SCALES_SHIFT,
            ..Self::FREE
        }
    }

    /// The key of its packets that go out.
    #[inline(always)]
    pub fn out_key(&self) -> Key {
        let [inside, remote, _] = self.addresses;
        let [inside_port, remote_port, _] = self.ports;
        Key::new(inside, remote, [inside_port, remote_port], self.protocol)
    }

    /// The key of its packets that come in.
    #[inline(always)]
    pub fn in_key(&self) -> Key {
        let [_, remote, alias] = self.addresses;
        let [_, remote_port, alias_port] = self.ports;
        Key::new(remote, alias, [remote_port, alias_port], self.protocol)
    }

    /// The key of one direction.
    #[inline(always)]
    pub fn key<const OUT: bool>(&self) -> Key {
        if OUT { self.out_key() } else { self.in_key() }
    }

    /// Alias address, memory order.
    #[inline(always)]
    pub fn alias(&self) -> u32 {
        let [_, _, alias] = self.addresses;
        alias
    }

    /// Alias port, memory order.
    #[inline(always)]
    pub fn alias_port(&self) -> u16 {
        let [_, _, port] = self.ports;
        port
    }

    /// Inside address, memory order.
    #[inline(always)]
    pub fn inside(&self) -> u32 {
        let [inside, _, _] = self.addresses;
        inside
    }

    /// Inside port, memory order.
    #[inline(always)]
    pub fn inside_port(&self) -> u16 {
        let [port, _, _] = self.ports;
        port
    }

    /// As it looks to one who undoes it: inside and alias change places.
    pub fn turned(&self) -> Self {
        let [inside, remote, alias] = self.addresses;
        let [inside_port, remote_port, alias_port] = self.ports;
        Self {
            addresses: [alias, remote, inside],
            ports: [alias_port, remote_port, inside_port],
            ip_delta: !self.ip_delta,
            upper_delta: !self.upper_delta,
            ..*self
        }
    }

    /// Its endpoints.
    pub fn ends(&self) -> Ends {
        let [inside, remote, alias] = self.addresses;
        let [inside_port, remote_port, alias_port] = self.ports;
        Ends {
            inside,
            inside_port,
            remote,
            remote_port,
            alias,
            alias_port,
            protocol: self.protocol,
        }
    }

    /// Of which epoch it is: all of another have expired.
    #[inline(always)]
    pub fn epoch(&self) -> u8 {
        (self.flags >> EPOCH_SHIFT) as u8 & MOST_EPOCH
    }

    /// TCP: the window scales, the inside's in the upper half.
    #[inline(always)]
    pub fn scales(&self) -> u8 {
        (self.flags >> SCALES_SHIFT) as u8
    }

    /// Sets TCP's window scales.
    pub fn set_scales(&mut self, scales: u8) {
        let others = self.flags & !(u32::from(u8::MAX) << SCALES_SHIFT);
        self.flags = others | u32::from(scales) << SCALES_SHIFT;
    }

    /// What [`Flow::is_plain`] and [`Flow::is_ordinary`] compare with: made
    /// once for an epoch.
    pub fn plain_flags(epoch: u8) -> u32 {
        flag::LIVE | flag::SEEN_OUT | flag::SEEN_IN | u32::from(epoch) << EPOCH_SHIFT
    }

    /// The same for packets that come in; where they do not let their flow
    /// live on (`refresh`), it is what no place has: a packet that came in,
    /// but no flow.
    pub fn plain_flags_in(epoch: u8, refresh: bool) -> u32 {
        let none = if refresh { 0 } else { flag::LIVE };
        Self::plain_flags(epoch) & !none
    }

    /// Whether the place holds a flow of an epoch (`flags` is of
    /// [`Flow::plain_flags`]) that has nothing special about it.
    #[inline(always)]
    pub fn is_ordinary(&self, flags: u32) -> bool {
        let looked_at = flag::SLOW | flag::LIVE | EPOCH_BITS;
        (self.flags ^ flags) & looked_at == 0
    }

    /// The same, and neither has it a shared mapping, nor is this the first
    /// packet of its direction.
    #[inline(always)]
    pub fn is_plain<const OUT: bool>(&self, flags: u32) -> bool {
        let seen = if OUT { flag::SEEN_OUT } else { flag::SEEN_IN };
        let looked_at = flag::SLOW | flag::LIVE | flag::MAPPED | seen | EPOCH_BITS;
        (self.flags ^ flags) & looked_at == 0
    }

    /// Whether all of some flags are set.
    #[inline(always)]
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Its state.
    pub fn state(&self) -> State {
        State::of(self.class)
    }
}
