//! Translation inside the program: which flows it knows, and what is shared
//! with it about them. Called by `router`, whose engine makes the flows, lends
//! them, and hears here when they were used last.

use std::io;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use packet::checksum::Delta;

use super::sys::{self, Map};
use super::{Forwarding, XdpError, lasting, layout, table};

/// Flows that the program may know.
pub const MAX_FLOWS: u32 = 1 << 20;
/// Prefixes of alias addresses.
pub const MAX_ALIASES: u32 = 4_096;
/// Bytes of keys and values of `flows`, of keys of `aliases`.
pub(super) const FLOW_KEY_BYTES: usize = 16;
pub(super) const FLOW_BYTES: usize = 24;
pub(super) const ALIAS_KEY_BYTES: usize = 8;
/// A value that says nothing.
pub(super) const NOTHING_BYTES: usize = 4;
/// A port's claims, as the kernel rounds it up.
pub(super) const CLAIM_BYTES: usize = 1;

/// Notes of the program beside a packet for the engine.
pub mod note {
    /// Its checksum is unfinished.
    pub const UNFINISHED: u16 = 1;
    /// It may end a flow that the program knows.
    pub const TAKE_BACK: u16 = 1 << 1;
}

/// How packets of IPv4 are translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// Without the engine nothing leaves that was to be translated; else the
    /// kernel forwards it as it is.
    pub is_closed: bool,
    /// Links of the TAP devices that lead to the engine: for what goes out,
    /// for what comes in.
    pub engine: [u32; 2],
    /// Ports of aliases that flows may have.
    pub ports: RangeInclusive<u16>,
}

/// A flow: its inside end has another address and port outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// TCP or UDP.
    pub protocol: u8,
    /// The end inside, and how it is seen outside.
    pub inside: (Ipv4Addr, u16),
    /// See above.
    pub alias: (Ipv4Addr, u16),
    /// The other end.
    pub remote: (Ipv4Addr, u16),
}

type Key = [u8; FLOW_KEY_BYTES];

impl Flow {
    /// The keys of its packets: those that go out, those that come in.
    fn keys(&self) -> [Key; 2] {
        [
            key(self.inside, self.remote, self.protocol, false),
            key(self.remote, self.alias, self.protocol, true),
        ]
    }

    /// What is done with them.
    fn values(&self, now: u64) -> [[u8; FLOW_BYTES]; 2] {
        [
            value(now, self.inside, self.alias),
            value(now, self.alias, self.inside),
        ]
    }

    /// Of a key of packets of either direction and what is done with them.
    fn of(key: &Key, value: &[u8; FLOW_BYTES]) -> Option<Self> {
        let (from, to) = (end(key, 0, 8)?, end(key, 4, 10)?);
        let other = end(value, 8, 12)?;
        let [.., protocol, comes_in, _, _] = *key;
        let (inside, alias, remote) = match comes_in {
            0 => (from, other, to),
            _ => (other, to, from),
        };
        Some(Self {
            protocol,
            inside,
            alias,
            remote,
        })
    }
}

/// An address and a port out of bytes.
fn end(bytes: &[u8], address: usize, port: usize) -> Option<(Ipv4Addr, u16)> {
    let address = bytes.get(address..)?.first_chunk::<4>()?;
    let port = bytes.get(port..)?.first_chunk::<2>()?;
    Some((Ipv4Addr::from(*address), u16::from_be_bytes(*port)))
}

fn key(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), protocol: u8, comes_in: bool) -> Key {
    let addresses = [from.0, to.0].into_iter().flat_map(|one| one.octets());
    let ports = [from.1, to.1].into_iter().flat_map(u16::to_be_bytes);
    let rest = [protocol, u8::from(comes_in)];
    layout::filled(addresses.chain(ports).chain(rest))
}

fn value(now: u64, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> [u8; FLOW_BYTES] {
    let word = |address: Ipv4Addr| u32::from_ne_bytes(address.octets());
    let ip = Delta::of32(word(from.0), word(to.0));
    let upper = ip.and(Delta::of16(from.1.to_be(), to.1.to_be()));
    let bytes = now.to_ne_bytes().into_iter().chain(to.0.octets());
    let deltas = [ip.folded(), upper.folded()];
    let deltas = deltas.into_iter().flat_map(u16::to_ne_bytes);
    layout::filled(bytes.chain(to.1.to_be_bytes()).chain(deltas))
}

/// Whose ports of the aliases are by the rules, whatever listens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claim {
    /// For TCP.
    pub tcp: bool,
    /// For UDP.
    pub udp: bool,
}

/// Where a walk over the flows goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place(Option<[u8; 32]>);

/// One direction of a flow, in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Which.
    pub flow: Flow,
    /// Whether it is about packets that come in.
    pub comes_in: bool,
    /// Since the last of these; up to a quarter of a second more (`FRESH` of
    /// the program).
    pub idle: Duration,
}

/// The flows that a program of ours on a link knows, which a process that is
/// gone has left there: each direction, and when it was used. Needs
/// `CAP_SYS_ADMIN`.
pub fn left_behind(link: u32) -> Result<Vec<Used>, XdpError> {
    let failed = table("looking at what was left on a link");
    let map = lasting::ours(link).and_then(|loaded| {
        let map = loaded.map(|loaded| loaded.map(&super::FLOWS));
        Ok(map.transpose()?.flatten())
    });
    let Some(map) = map.map_err(failed)? else {
        return Ok(Vec::new());
    };
    let mut flows = Vec::new();
    let mut place = Place::default();
    while !used_flows(&map, &mut place, |used| flows.push(*used))? {}
    Ok(flows)
}

/// Some of the flows of a map, as [`Forwarding::used_flows`] has them.
fn used_flows(map: &Map, place: &mut Place, mut each: impl FnMut(&Used)) -> Result<bool, XdpError> {
    let mut keys = vec![[0_u8; FLOW_KEY_BYTES]; PIECE];
    let mut values = vec![[0_u8; FLOW_BYTES]; PIECE];
    let Place(from) = place;
    let read = sys::read_entries(map, &mut keys, &mut values, from);
    let (count, is_end) = read.map_err(table("reading the flows"))?;
    let now = super::now();
    for (key, value) in keys.iter().zip(&values).take(count) {
        let used = value
            .first_chunk()
            .map_or(0, |used| u64::from_ne_bytes(*used));
        let idle = Duration::from_nanos(now.saturating_sub(used));
        let [.., comes_in, _, _] = *key;
        if let Some(flow) = Flow::of(key, value) {
            each(&Used {
                flow,
                comes_in: comes_in != 0,
                idle,
            });
        }
    }
    if is_end {
        *from = None;
    }
    Ok(is_end)
}

impl Forwarding {
    /// Says how packets are translated from now on. Nobody watches yet.
    pub fn translate(&mut self, translation: Translation) -> Result<(), XdpError> {
        for device in translation.engine {
            sys::update(&self.maps.ports, &device, &device).map_err(table("naming a device"))?;
        }
        let value = layout::settings(0, [0; 2], Some(&translation), false);
        self.translation = Some(translation);
        let done = sys::update(&self.maps.settings, &0_u32, &value);
        done.map_err(table("saying how to translate"))
    }

    /// The engine answers for so long from now: after that nothing is handed
    /// to it, unless this is called again.
    pub fn answers_for(&self, time: Duration) -> Result<(), XdpError> {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until = super::now().saturating_add(time).to_ne_bytes();
        let done = sys::update(&self.maps.answering, &0_u32, &until);
        done.map_err(table("saying that the engine answers"))
    }

    /// Has the program translate a flow, both ways. `false`: there is no room.
    pub fn enter(&self, flow: &Flow) -> Result<bool, XdpError> {
        let now = super::now();
        let values = flow.values(now);
        for (key, value) in flow.keys().iter().zip(&values) {
            match sys::update(&self.maps.flows, key, value) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::E2BIG) => {
                    self.leave(flow)?;
                    return Ok(false);
                }
                Err(error) => return Err(table("naming a flow")(error)),
            }
        }
        Ok(true)
    }

    /// Has it translate the flow no more; whether it did.
    pub fn leave(&self, flow: &Flow) -> Result<bool, XdpError> {
        let mut was_there = false;
        for key in flow.keys() {
            was_there |= gone(sys::delete(&self.maps.flows, &key))?;
        }
        Ok(was_there)
    }

    /// Has it translate none.
    pub fn leave_all(&self) -> Result<(), XdpError> {
        let mut keys = vec![[0_u8; FLOW_KEY_BYTES]; PIECE];
        let mut values = vec![[0_u8; FLOW_BYTES]; PIECE];
        let mut place = None;
        loop {
            let taken = sys::take_entries(&self.maps.flows, &mut keys, &mut values, &mut place);
            let (_, is_end) = taken.map_err(table("forgetting the flows"))?;
            if is_end {
                return Ok(());
            }
        }
    }

    /// Some of the flows that the program knows, from a place on; `true`: that
    /// was the end, and the place is the beginning again.
    pub fn used_flows(&self, place: &mut Place, each: impl FnMut(&Used)) -> Result<bool, XdpError> {
        used_flows(&self.maps.flows, place, each)
    }

    /// Names an alias prefix: `bits` of an address.
    pub fn name_alias(&self, address: Ipv4Addr, bits: u8) -> Result<(), XdpError> {
        let key = alias_key(address, bits);
        let value = [0_u8; NOTHING_BYTES];
        sys::update(&self.maps.aliases, &key, &value).map_err(table("naming an alias address"))
    }

    /// Takes one back.
    pub fn forget_alias(&self, address: Ipv4Addr, bits: u8) -> Result<(), XdpError> {
        gone(sys::delete(&self.maps.aliases, &alias_key(address, bits))).map(drop)
    }

    /// Says whose a port of the aliases is.
    pub fn claim(&self, port: u16, claim: Claim) -> Result<(), XdpError> {
        let value = [u8::from(claim.tcp) | u8::from(claim.udp) << 1];
        let done = sys::update(&self.maps.claims, &u32::from(port), &value);
        done.map_err(table("naming a port"))
    }
}

/// Entries that are read in one call.
const PIECE: usize = 4_096;

fn alias_key(address: Ipv4Addr, bits: u8) -> [u8; ALIAS_KEY_BYTES] {
    let bits = u32::from(bits).to_ne_bytes().into_iter();
    layout::filled(bits.chain(address.octets()))
}

/// Whether an entry was taken out, that may have been none.
fn gone(done: io::Result<()>) -> Result<bool, XdpError> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(table("taking an entry away")(error)),
    }
}
