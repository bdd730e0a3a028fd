//! Handlers that C programs attach: functions that see packets of links, as
//! modules written for libalias do. See `alias_mod.h`.
//!
//! A call with handlers attached goes a way of its own. The packet is
//! translated in a copy first, which says where its link leads; the handlers
//! see it as it came, without the instance being locked, so that they may
//! call on it; and then it is translated itself.

use std::ffi::{c_int, c_uint, c_ushort, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use nat::Direction;
use packet::{Ipv4, protocol};

use crate::types::{AliasLink, InAddr, LibAlias};

/// Ends an array of handlers (`EOH`).
const END: c_uint = c_uint::MAX;
/// Handlers of one array, and attached at a time, at most.
const MOST: usize = 1_024;
/// Nothing was there to attach or detach.
const NOTHING: c_int = -1;
/// "No such file or directory": no handler fits, or is not attached.
const ENOENT: c_int = 2;
/// "File exists": another one has that priority.
const EEXIST: c_int = 17;
/// "Invalid argument": one without functions, or too many.
const EINVAL: c_int = 22;

/// `IN`, `OUT`.
const IN: i16 = 1;
const OUT: i16 = 2;
/// `IP`, `TCP`, `UDP`.
const IP: u8 = 1;
const TCP: u8 = 2;
const UDP: u8 = 4;

/// `struct alias_data`.
#[repr(C)]
pub struct AliasData {
    lnk: *mut AliasLink,
    oaddr: *mut InAddr,
    aaddr: *mut InAddr,
    aport: *mut u16,
    sport: *mut u16,
    dport: *mut u16,
    maxpktsize: u16,
}

type Fingerprint = unsafe extern "C" fn(*mut LibAlias, *mut AliasData) -> c_int;
type Handle = unsafe extern "C" fn(*mut LibAlias, *mut c_void, *mut AliasData) -> c_int;

/// `struct proto_handler`.
#[repr(C)]
pub struct ProtoHandler {
    pri: c_uint,
    dir: i16,
    proto: u8,
    fingerprint: Option<Fingerprint>,
    protohandler: Option<Handle>,
    entries: [*mut c_void; 2],
}

/// One that is attached; the caller's array is not looked at any more.
#[derive(Debug, Clone, Copy)]
struct Attached {
    /// Where it stands in C's memory: its name.
    address: usize,
    pri: c_uint,
    dir: i16,
    proto: u8,
    fingerprint: Fingerprint,
    protohandler: Handle,
}

impl Attached {
    fn is_in_the_way_of(&self, other: &Self) -> bool {
        (self.pri, self.dir, self.proto) == (other.pri, other.dir, other.proto)
    }
}

/// By priority.
static ATTACHED: Mutex<Vec<Attached>> = Mutex::new(Vec::new());
/// How many: looked at by each packet.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What a link is called to handlers: of no redirect, so that nothing can be
/// done to it.
const SOME_LINK: usize = 0b0110;

/// Whether any are attached.
#[inline]
pub fn are_attached() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// `LibAliasAttachHandlers`.
///
/// # Safety
/// `handlers` is NULL or an array that ends with `EOH`; its functions may be
/// called until they are detached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasAttachHandlers(handlers: *mut ProtoHandler) -> c_int {
    // SAFETY: by this function's contract.
    let Some(new) = (unsafe { array(handlers) }) else {
        return EINVAL;
    };
    if new.is_empty() {
        return NOTHING;
    }
    let mut all = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wanted = all.clone();
    for handler in new {
        if wanted.iter().any(|known| known.is_in_the_way_of(&handler)) {
            return EEXIST;
        }
        let at = wanted.partition_point(|known| known.pri <= handler.pri);
        wanted.insert(at, handler);
    }
    if wanted.len() > MOST {
        return EINVAL;
    }
    *all = wanted;
    COUNT.store(all.len(), Ordering::Relaxed);
    0
}

/// `LibAliasDetachHandlers`.
///
/// # Safety
/// `handlers` is NULL or an array that ends with `EOH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasDetachHandlers(handlers: *mut ProtoHandler) -> c_int {
    // SAFETY: by this function's contract.
    let Some(gone) = (unsafe { array(handlers) }) else {
        return EINVAL;
    };
    if gone.is_empty() {
        return NOTHING;
    }
    let mut all = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all.len();
    all.retain(|known| gone.iter().all(|gone| gone.address != known.address));
    COUNT.store(all.len(), Ordering::Relaxed);
    let detached = before.saturating_sub(all.len());
    if detached == gone.len() { 0 } else { ENOENT }
}

/// The handlers of an array; `None`: it is NULL, too long, or one of them has
/// no functions.
///
/// # Safety
/// As [`LibAliasAttachHandlers`].
unsafe fn array(handlers: *const ProtoHandler) -> Option<Vec<Attached>> {
    if handlers.is_null() {
        return None;
    }
    let mut all = Vec::new();
    for at in 0..MOST {
        // SAFETY: by this function's contract what stands before EOH is there;
        // of EOH itself only the first field has to be.
        let place = unsafe { handlers.add(at) };
        // SAFETY: as above.
        let pri = unsafe { (&raw const (*place).pri).read() };
        if pri == END {
            return Some(all);
        }
        // SAFETY: it is not the last one.
        let handler = unsafe { &*place };
        all.push(Attached {
            address: place.addr(),
            pri,
            dir: handler.dir,
            proto: handler.proto,
            fingerprint: handler.fingerprint?,
            protohandler: handler.protohandler?,
        });
    }
    None
}

/// What handlers are told of a packet of a link.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    protocol: u8,
    /// Where the upper layer begins, if it has ports.
    ports_at: Option<usize>,
    original: InAddr,
    alias: InAddr,
    alias_port: u16,
    /// The inside's port, of what comes in.
    inside_port: u16,
}

impl Told {
    /// Whether it is UDP.
    pub fn is_udp(&self) -> bool {
        self.protocol == protocol::UDP
    }

    /// Of a packet as it came and as it was translated; `None`: no handler
    /// sees such a one.
    pub fn of(direction: Direction, came: &[u8], translated: &[u8]) -> Option<Self> {
        let (before, after) = (Ipv4::new(came).ok()?, Ipv4::new(translated).ok()?);
        if before.fragment_offset_bytes() != 0 {
            return None;
        }
        let has_ports = matches!(before.protocol(), protocol::TCP | protocol::UDP);
        let ports = |ip: &Ipv4<&[u8]>| {
            let first = ip.payload().first_chunk::<4>().copied();
            first.map(|[a, b, c, d]| (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])))
        };
        let (old, new) = match has_ports {
            true => (ports(&before)?, ports(&after)?),
            false => ((0, 0), (0, 0)),
        };
        let ports_at = has_ports.then_some(before.header_len());
        Some(match direction {
            Direction::Out => Self {
                protocol: before.protocol(),
                ports_at,
                original: before.source().into(),
                alias: after.source().into(),
                alias_port: new.0,
                inside_port: old.0,
            },
            Direction::In => Self {
                protocol: before.protocol(),
                ports_at,
                original: after.destination().into(),
                alias: before.destination().into(),
                alias_port: old.1,
                inside_port: new.1,
            },
        })
    }
}

/// Lets the first handler that knows the packet have it: what it gave, or
/// ENOENT.
///
/// # Safety
/// `packet` points to a whole IPv4 packet, which is the caller's alone, and
/// to which nobody holds a reference.
pub unsafe fn see(
    la: *mut LibAlias,
    direction: Direction,
    packet: *mut c_void,
    maxpacketsize: c_int,
    mut told: Told,
) -> c_int {
    let (dir, proto) = (
        match direction {
            Direction::In => IN,
            Direction::Out => OUT,
        },
        match told.protocol {
            protocol::TCP => TCP,
            protocol::UDP => UDP,
            _ => IP,
        },
    );
    // Not held while they run: they may attach and detach.
    let all = ATTACHED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let port = |offset: usize| match told.ports_at {
        // SAFETY: the packet is whole, its ports among it.
        Some(at) => unsafe { packet.cast::<u8>().add(at).add(offset).cast::<u16>() },
        None => ptr::null_mut(),
    };
    let (sport, dport) = (port(0), port(2));
    let is_in = direction == Direction::In;
    let has_ports = told.ports_at.is_some();
    let mut data = AliasData {
        lnk: ptr::without_provenance_mut(SOME_LINK),
        oaddr: if is_in {
            &raw mut told.original
        } else {
            ptr::null_mut()
        },
        aaddr: &raw mut told.alias,
        aport: if has_ports {
            &raw mut told.alias_port
        } else {
            ptr::null_mut()
        },
        sport,
        dport: if is_in && has_ports {
            &raw mut told.inside_port
        } else {
            dport
        },
        // UDP's length stays, as there.
        maxpktsize: match proto {
            TCP => c_ushort::try_from(maxpacketsize).unwrap_or(c_ushort::MAX),
            _ => 0,
        },
    };
    for handler in all {
        if handler.dir & dir == 0 || handler.proto & proto == 0 {
            continue;
        }
        // SAFETY: C has attached it, and promised that it may be called; all
        // that it is given lives until it returns.
        let knows = unsafe { (handler.fingerprint)(la, &raw mut data) };
        if knows == 0 {
            // SAFETY: as above.
            return unsafe { (handler.protohandler)(la, packet, &raw mut data) };
        }
    }
    ENOENT
}
