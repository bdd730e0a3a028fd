//! Forwarding inside an XDP program, by the kernel's own tables
//! (`bpf_fib_lookup`): what it knows for certain leaves by another port, all
//! else goes up to the kernel, which does with it what it always did.
//!
//! The program is `xdp/forward.c`; what of it is loaded are the instructions
//! beside it. It is attached to each port by a link that lives as long as
//! [`Attached`] and this process: when it dies, by whatever signal, the
//! kernel forwards again. While nobody calls [`Forwarding::watched_for`]
//! it hands all up, too.
//!
//! For `router`, which finds out what the kernel would have done on the way
//! beside routing (filters, shaping, ...): this program does none of it.

mod btf;
mod generator;
mod instructions;
mod lasting;
mod layout;
mod program;
pub mod standing;
mod sys;
mod translation;

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

pub use generator::{Drawn, Generator, Sink};
pub use layout::{ALL as REASONS, Fate, MAX_PORTS, PortSettings, Reason, UsedHop};
pub use translation::{
    Claim, Flow, MAX_ALIASES, MAX_FLOWS, Place, Translation, Used, left_behind, note,
};

use layout::{
    COUNT_BYTES, HOP_BYTES, LINK_BYTES, MAX_HOPS, REASONS as REASON_PLACES, SETTINGS_BYTES,
};
use sys::{Map, MapKind, Processors};
use translation::{ALIAS_KEY_BYTES, CLAIM_BYTES, FLOW_BYTES, FLOW_KEY_BYTES, NOTHING_BYTES};

/// `BPF_MAP_TYPE_…`.
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PER_CPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;
const LPM_TRIE: u32 = 11;
const DEVMAP_HASH: u32 = 25;
/// `BPF_TCX_INGRESS`, `BPF_TCX_EGRESS` (Linux 6.6).
const TCX: [u32; 2] = [46, 47];

/// The maps, in the order of their numbers in the program.
const KINDS: [MapKind; 9] = [
    map(HASH, 4, LINK_BYTES, MAX_PORTS, "fp_links"),
    map(DEVMAP_HASH, 4, 4, MAX_PORTS, "fp_ports"),
    map(
        PER_CPU_ARRAY,
        4,
        COUNT_BYTES,
        MAX_PORTS * REASON_PLACES,
        "fp_counters",
    ),
    map(ARRAY, 4, SETTINGS_BYTES, 1, "fp_settings"),
    map(LRU_HASH, HOP_BYTES as u32, 4, MAX_HOPS, "fp_hops"),
    FLOWS,
    MapKind {
        flags: NO_PREALLOC,
        ..map(
            LPM_TRIE,
            ALIAS_KEY_BYTES as u32,
            NOTHING_BYTES,
            MAX_ALIASES,
            "fp_aliases",
        )
    },
    map(ARRAY, 4, CLAIM_BYTES, 1 << 16, "fp_claims"),
    map(ARRAY, 4, size_of::<u64>(), 1, "fp_answering"),
];
/// Flows that are translated, both directions of each.
const FLOWS: MapKind = MapKind {
    flags: NO_PREALLOC,
    ..map(
        HASH,
        FLOW_KEY_BYTES as u32,
        FLOW_BYTES,
        2 * MAX_FLOWS,
        "fp_flows",
    )
};
/// `BPF_F_NO_PREALLOC`: memory for entries that there are.
const NO_PREALLOC: u32 = 1;

const fn map(kind: u32, key_bytes: u32, value: usize, entries: u32, name: &'static str) -> MapKind {
    MapKind {
        kind,
        key_bytes,
        value_bytes: value as u32,
        entries,
        flags: 0,
        name,
    }
}

/// Why there is no forwarding at XDP.
#[derive(Debug, Error)]
pub enum XdpError {
    /// The kernel has no such map, or does not let this process make it.
    #[error(
        "the kernel makes no map for forwarding ({name}): {error}{}",
        advice(error)
    )]
    Map {
        /// Which.
        name: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// The kernel does not take the program.
    #[error(
        "the kernel does not take the program that forwards: {error}{}{}",
        advice(error),
        said(log)
    )]
    Load {
        /// What it said.
        error: io::Error,
        /// The end of what its verifier wrote.
        log: String,
    },
    /// A device does not take it.
    #[error("{device} takes no program for XDP: {error}{}", attach_advice(error))]
    Attach {
        /// Its name.
        device: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// There are too many ports.
    #[error("there may be {MAX_PORTS} ports at most")]
    TooMany,
    /// The program is for processors of the other byte order.
    #[error("forwarding at XDP is not there for processors with big-endian byte order")]
    ByteOrder,
    /// A map could not be read or written.
    #[error("{what}: {error}")]
    Table {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            ": it needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON of the host"
        }
        Some(libc::ENOSYS) => ": this kernel has no bpf(2) (CONFIG_BPF_SYSCALL)",
        Some(libc::EINVAL) => ": Linux 5.18 is the oldest that has all of it",
        _ => "",
    }
}

fn attach_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            ": its driver has no XDP. VLANs, macvlans, bridges and most tunnels have none: name the \
             links below them; what goes by them is the kernel's"
        }
        Some(libc::EBUSY | libc::EEXIST) => {
            ": there is another one already (`ip link` shows it; `fingerpost router release` takes off \
             what a closed translation left)"
        }
        Some(libc::ERANGE) => ": its MTU is more than its driver takes with XDP",
        Some(libc::EPERM) => ": it needs CAP_NET_ADMIN",
        Some(libc::EINVAL) => ": LRO and some settings of queues exclude it (`ethtool -k`, `-l`)",
        _ => "",
    }
}

fn said(log: &str) -> String {
    match log {
        "" => String::new(),
        log => format!("; its verifier says:\n{log}"),
    }
}

fn table(what: &'static str) -> impl FnOnce(io::Error) -> XdpError {
    move |error| XdpError::Table { what, error }
}

/// The maps of a program.
#[derive(Debug)]
struct Maps {
    links: Map,
    ports: Map,
    counters: Map,
    settings: Map,
    hops: Map,
    flows: Map,
    aliases: Map,
    claims: Map,
    answering: Map,
}

impl Maps {
    /// With room for so many flows.
    fn make(room: u32) -> Result<Self, XdpError> {
        let make = |kind: MapKind| {
            sys::create_map(&kind).map_err(|error| XdpError::Map {
                name: kind.name,
                error,
            })
        };
        let [
            links,
            ports,
            counters,
            settings,
            hops,
            flows,
            aliases,
            claims,
            answering,
        ] = KINDS;
        Ok(Self {
            links: make(links)?,
            ports: make(ports)?,
            counters: make(counters)?,
            settings: make(settings)?,
            hops: make(hops)?,
            flows: make(MapKind {
                entries: 2 * room.clamp(1, MAX_FLOWS),
                ..flows
            })?,
            aliases: make(aliases)?,
            claims: make(claims)?,
            answering: make(answering)?,
        })
    }

    /// By its number in the program.
    fn get(&self, number: i32) -> Option<&Map> {
        let all = [
            &self.links,
            &self.ports,
            &self.counters,
            &self.settings,
            &self.hops,
            &self.flows,
            &self.aliases,
            &self.claims,
            &self.answering,
        ];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// What forwards between ports. It goes, and the kernel forwards again, when
/// this and what [`Forwarding::attach`] gave are dropped.
#[derive(Debug)]
pub struct Forwarding {
    maps: Maps,
    processors: Processors,
    translation: Option<Translation>,
}

/// A port that the program is attached to, until it is dropped.
#[derive(Debug)]
pub struct Attached {
    link: u32,
    slot: u32,
    program: program::Program,
    /// None where it lasts.
    _attachment: Option<OwnedFd>,
}

impl Attached {
    /// The number of its link.
    pub fn link(&self) -> u32 {
        self.link
    }

    /// Whether VLAN tags that the device takes off are told.
    pub fn knows_tags(&self) -> bool {
        self.program.knows_tags
    }
}

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes, link headers included.
    pub bytes: u64,
}

impl Forwarding {
    /// Makes what ports share, with room for so many flows that are
    /// translated, [`MAX_FLOWS`] at most; its index takes 32 bytes for each,
    /// also while there are none. Needs `CAP_BPF` of the host.
    pub fn new(flows: u32) -> Result<Self, XdpError> {
        let maps = Maps::make(flows)?;
        let processors = Processors::possible().map_err(table("counting the processors"))?;
        Ok(Self {
            maps,
            processors,
            translation: None,
        })
    }

    /// Says what is done at a link from its first packet on. Of a translation
    /// that is closed all links are to be known before any is attached: what
    /// leaves by a stranger is not translated.
    pub fn prepare(&self, link: u32, slot: u32, first: &PortSettings) -> Result<(), XdpError> {
        if slot >= MAX_PORTS {
            return Err(XdpError::TooMany);
        }
        let value = first.bytes(slot);
        sys::update(&self.maps.links, &link, &value).map_err(table("setting a port"))
    }

    /// Attaches the program to a link, which is named for errors; `slot` is
    /// where its packets are counted, less than [`MAX_PORTS`]. Where nothing
    /// was said about the link all goes up. Where a translation is closed
    /// ([`Translation::is_closed`]) it stays there when this process is gone,
    /// until [`release`]. Needs `CAP_NET_ADMIN`, and `CAP_BPF` of the host.
    pub fn attach(&self, link: u32, name: &str, slot: u32) -> Result<Attached, XdpError> {
        if slot >= MAX_PORTS {
            return Err(XdpError::TooMany);
        }
        let program = program::load(&self.maps, link)?;
        let attachment = match self.is_closed() {
            true => lasting::attach(&program.fd, link).map(|()| None),
            false => sys::attach(&program.fd, link).map(Some),
        };
        let attachment = attachment.map_err(|error| XdpError::Attach {
            device: name.to_owned(),
            error,
        })?;
        sys::update(&self.maps.ports, &link, &link).map_err(table("naming a port"))?;
        Ok(Attached {
            link,
            slot,
            program,
            _attachment: attachment,
        })
    }

    fn is_closed(&self) -> bool {
        let translation = self.translation.as_ref();
        translation.is_some_and(|translation| translation.is_closed)
    }

    /// Says what is done at a port from now on.
    pub fn set(&self, port: &Attached, settings: &PortSettings) -> Result<(), XdpError> {
        let value = settings.bytes(port.slot);
        sys::update(&self.maps.links, &port.link, &value).map_err(table("setting a port"))
    }

    /// Takes a port away, whether its link is there still or not.
    pub fn detach(&self, port: Attached) -> Result<(), XdpError> {
        let gone = |error: &io::Error| error.raw_os_error() == Some(libc::ENOENT);
        for map in [&self.maps.links, &self.maps.ports] {
            match sys::delete(map, &port.link) {
                Err(error) if !gone(&error) => return Err(table("taking a port away")(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets packets be forwarded for so long from now: after that all go up,
    /// unless this is called again. Packets of more than `most` bytes (IPv4,
    /// IPv6) go up: the least MTU that a route sets without locking it, which
    /// the kernel's lookup does not look at and its forwarding does. `is_whole`:
    /// all links outside of a translation are known; else what leaves by a
    /// stranger may be for one of them.
    pub fn watched_for(
        &self,
        time: Duration,
        most: [u32; 2],
        is_whole: bool,
    ) -> Result<(), XdpError> {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until = now().saturating_add(time);
        let value = layout::settings(until, most, self.translation.as_ref(), is_whole);
        sys::update(&self.maps.settings, &0_u32, &value).map_err(table("saying that it is watched"))
    }

    /// Packets of a slot by reason, in the order of [`REASONS`], of all
    /// processors. A system call a reason.
    pub fn counts(&self, slot: u32) -> Result<Vec<Count>, XdpError> {
        let mut counts = Vec::with_capacity(REASONS.len());
        for reason in 0..REASONS.len() as u32 {
            let place = slot * REASON_PLACES + reason;
            let values = sys::lookup_of_each(&self.maps.counters, place, &self.processors);
            let values = values.map_err(table("reading the counters"))?;
            let mut count = Count::default();
            for pair in values.chunks_exact(2) {
                count.packets += pair[0];
                count.bytes += pair[1];
            }
            counts.push(count);
        }
        Ok(counts)
    }

    /// The next hops that packets went by since this was asked last.
    pub fn take_hops(&self) -> Result<Vec<UsedHop>, XdpError> {
        const PIECE: usize = 1_024;
        let mut keys = vec![[0_u8; HOP_BYTES]; PIECE];
        let mut values = vec![0_u32; PIECE];
        let mut place = None;
        let mut hops = Vec::new();
        // A bucket that holds more than a piece is not to be had: there is
        // none, since the hash has as many buckets as entries.
        for _ in 0..MAX_HOPS as usize / PIECE + 1 {
            let taken = sys::take_entries(&self.maps.hops, &mut keys, &mut values, &mut place);
            let (taken, is_end) = taken.map_err(table("reading the next hops in use"))?;
            let keys = keys.iter().take(taken);
            hops.extend(keys.filter_map(UsedHop::from_bytes));
            if is_end {
                break;
            }
        }
        Ok(hops)
    }
}

/// Takes a program off that a closed translation left on a link; whether there
/// was one. Needs `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
pub fn release(link: u32) -> Result<bool, XdpError> {
    lasting::detach(link).map_err(table("taking the program off"))
}

/// Nanoseconds of the clock that only goes forward.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let now = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Programs at a link's tc hooks that are attached without a qdisc (`tcx`);
/// none on a kernel that has no such thing (before 6.6).
pub fn tcx_programs(link: u32) -> Result<u32, XdpError> {
    let mut programs = 0;
    for way in TCX {
        match sys::attached(link, way) {
            Ok(count) => programs += count,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(table("asking for programs at tc")(error)),
        }
    }
    Ok(programs)
}

const _: () = assert!(mem::size_of::<u64>() * 2 == COUNT_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let error = XdpError::Load {
            error: io::Error::from_raw_os_error(libc::EPERM),
            log: "R1 invalid".into(),
        };
        let text = error.to_string();
        assert!(
            text.contains("CAP_BPF") && text.ends_with("R1 invalid"),
            "{text}"
        );
        let error = XdpError::Attach {
            device: "eth9".into(),
            error: io::Error::from_raw_os_error(libc::EOPNOTSUPP),
        };
        assert!(error.to_string().contains("eth9") && error.to_string().contains("no XDP"));
    }
}
