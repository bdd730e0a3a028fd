//! The C functions that translate packets. See `alias.h`.

use std::array;
use std::ffi::{c_int, c_void};
use std::ptr;

use nat::{Direction, Packet, Verdict};
use packet::{Gre, Icmp, Ipv4, Tcp, Udp, icmp, protocol};

use crate::handlers::{self, Told};
use crate::instance::{Instance, find};
use crate::types::{
    BatchPacket, ERROR, FOUND_HEADER_FRAGMENT, IGNORED, LibAlias, OK, UNRESOLVED_FRAGMENT,
};

/// The longest an IPv4 packet can be.
const MAX_PACKET: usize = 65_535;
/// How many packets of a batch the engine gets at a time.
const BATCH: usize = 64;

/// `LibAliasIn`.
///
/// # Safety
/// `packet` is NULL or points to `maxpacketsize` bytes that are the
/// caller's alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasIn(
    la: *mut LibAlias,
    packet: *mut c_void,
    maxpacketsize: c_int,
) -> c_int {
    if handlers::are_attached() {
        // SAFETY: by this function's contract.
        return unsafe { handled(Direction::In, la, packet, maxpacketsize) };
    }
    // SAFETY: by this function's contract.
    unsafe { direct_in(la, packet, maxpacketsize) }
}

/// [`LibAliasIn`], without handlers.
///
/// # Safety
/// As there.
#[inline]
unsafe fn direct_in(la: *mut LibAlias, packet: *mut c_void, maxpacketsize: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let bytes = unsafe { memory(packet, maxpacketsize) };
    let (Some(bytes), Some(mut instance)) = (bytes, find(la)) else {
        return ERROR;
    };
    let now = instance.now();
    if !instance.fragments.is_empty() {
        instance.fragments.expire(now);
    }
    let verdict = instance.nat.translate_in(bytes, now);
    code_in(verdict, bytes, instance.is_reverse())
}

/// `LibAliasOut`.
///
/// # Safety
/// As `LibAliasIn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasOut(
    la: *mut LibAlias,
    packet: *mut c_void,
    maxpacketsize: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { LibAliasOutTry(la, packet, maxpacketsize, 1) }
}

/// `LibAliasOutTry`.
///
/// # Safety
/// As `LibAliasIn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasOutTry(
    la: *mut LibAlias,
    packet: *mut c_void,
    maxpacketsize: c_int,
    create: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    let bytes = unsafe { memory(packet, maxpacketsize) };
    let (Some(bytes), Some(mut instance)) = (bytes, find(la)) else {
        return ERROR;
    };
    if create == 0 && !has_link(&instance, bytes) {
        return IGNORED;
    }
    if handlers::are_attached() {
        drop(instance);
        // SAFETY: by this function's contract; `bytes` is used no more.
        return unsafe { handled(Direction::Out, la, packet, maxpacketsize) };
    }
    let now = instance.now();
    let verdict = instance.nat.translate_out(bytes, now);
    code_out(verdict, bytes, instance.is_reverse())
}

/// A packet that handlers may see: translated in a copy, shown, translated.
///
/// # Safety
/// As [`LibAliasIn`].
#[cold]
#[inline(never)]
unsafe fn handled(
    direction: Direction,
    la: *mut LibAlias,
    packet: *mut c_void,
    maxpacketsize: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    let came = unsafe { memory(packet, maxpacketsize) }.map(|bytes| bytes.to_vec());
    let (Some(came), Some(mut instance)) = (came, find(la)) else {
        return ERROR;
    };
    let mut copy = came.clone();
    let code = direct(&mut instance, direction, &mut copy);
    let is_reverse = instance.is_reverse();
    drop(instance);
    let way = match (direction, is_reverse) {
        (Direction::In, false) | (Direction::Out, true) => Direction::In,
        _ => Direction::Out,
    };
    let told = Told::of(way, &came, &copy).filter(|_| matches!(code, OK | FOUND_HEADER_FRAGMENT));
    let Some(told) = told else {
        // SAFETY: by this function's contract.
        if let Some(bytes) = unsafe { memory(packet, maxpacketsize) } {
            bytes.copy_from_slice(&copy);
        }
        return code;
    };
    // SAFETY: by this function's contract; the engine has found it whole.
    let said = unsafe { handlers::see(la, way, packet, maxpacketsize, told) };
    if said < 0 && way == Direction::In && told.is_udp() {
        return IGNORED;
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { memory(packet, maxpacketsize) };
    match (bytes, find(la)) {
        (Some(bytes), Some(mut instance)) => direct(&mut instance, direction, bytes),
        _ => ERROR,
    }
}

/// Translates one packet.
fn direct(instance: &mut Instance, direction: Direction, bytes: &mut [u8]) -> c_int {
    let now = instance.now();
    let is_reverse = instance.is_reverse();
    match direction {
        Direction::In => {
            instance.fragments.expire(now);
            let verdict = instance.nat.translate_in(bytes, now);
            code_in(verdict, bytes, is_reverse)
        }
        Direction::Out => {
            let verdict = instance.nat.translate_out(bytes, now);
            code_out(verdict, bytes, is_reverse)
        }
    }
}

/// `LibAliasUnaliasOut`.
///
/// # Safety
/// As `LibAliasIn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasUnaliasOut(
    la: *mut LibAlias,
    packet: *mut c_void,
    maxpacketsize: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    let bytes = unsafe { memory(packet, maxpacketsize) };
    let (Some(bytes), Some(mut instance)) = (bytes, find(la)) else {
        return ERROR;
    };
    let now = instance.now();
    code(instance.nat.untranslate_out(bytes, now))
}

/// `LibAliasInBatch`.
///
/// # Safety
/// `packets` is NULL or points to `count` packets, each as `LibAliasIn`
/// wants it, and no two in the same memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasInBatch(
    la: *mut LibAlias,
    packets: *mut BatchPacket,
    count: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { batch(Direction::In, la, packets, count) }
}

/// `LibAliasOutBatch`.
///
/// # Safety
/// As `LibAliasInBatch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasOutBatch(
    la: *mut LibAlias,
    packets: *mut BatchPacket,
    count: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { batch(Direction::Out, la, packets, count) }
}

/// `LibAliasSaveFragment`.
///
/// # Safety
/// `fragment` is NULL or points to memory of `malloc` with an IPv4 header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasSaveFragment(la: *mut LibAlias, fragment: *mut c_void) -> c_int {
    // SAFETY: by this function's contract.
    let header = unsafe { header(fragment) };
    let (Some(header), Some(mut instance)) = (header, find(la)) else {
        return ERROR;
    };
    let now = instance.now();
    if instance.fragments.save(&header, fragment, now) {
        OK
    } else {
        ERROR
    }
}

/// `LibAliasGetFragment`.
///
/// # Safety
/// `header` is NULL or points to an IPv4 header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasGetFragment(
    la: *mut LibAlias,
    header: *mut c_void,
) -> *mut c_void {
    // SAFETY: by this function's contract.
    let first = unsafe { self::header(header) };
    let (Some(first), Some(mut instance)) = (first, find(la)) else {
        return ptr::null_mut();
    };
    let now = instance.now();
    let taken = instance.fragments.take(&first, now);
    taken.unwrap_or(ptr::null_mut())
}

/// `LibAliasFragmentIn`.
///
/// # Safety
/// `header` and `fragment` are NULL or point to IPv4 headers, two
/// different ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasFragmentIn(
    la: *mut LibAlias,
    header: *mut c_void,
    fragment: *mut c_void,
) {
    // SAFETY: by this function's contract.
    let Some(destination) = unsafe { self::header(header) }.map(|first| first.destination()) else {
        return;
    };
    if find(la).is_none() {
        return;
    }
    // SAFETY: by this function's contract; `header` is borrowed no more.
    if let Some(mut later) = unsafe { self::header(fragment) } {
        later.set_destination(destination);
    }
}

/// Translates a batch in pieces of [`BATCH`].
///
/// # Safety
/// As `LibAliasInBatch`.
unsafe fn batch(
    direction: Direction,
    la: *mut LibAlias,
    packets: *mut BatchPacket,
    count: c_int,
) -> c_int {
    let (Some(mut instance), Ok(count)) = (find(la), usize::try_from(count)) else {
        return ERROR;
    };
    if packets.is_null() || count == 0 {
        return if count == 0 { 0 } else { ERROR };
    }
    // SAFETY: by this function's contract there are `count` of them.
    let packets = unsafe { std::slice::from_raw_parts_mut(packets, count) };
    if handlers::are_attached() {
        drop(instance);
        // SAFETY: by this function's contract.
        return unsafe { one_by_one(direction, la, packets) };
    }
    let now = instance.now();
    let mut translated: c_int = 0;
    for piece in packets.chunks_mut(BATCH) {
        // SAFETY: by this function's contract, for each of the packets.
        let good = unsafe { translate(direction, &mut instance, piece, now) };
        translated = translated.saturating_add(good);
    }
    translated
}

/// A batch whose packets handlers may see; gives how many go on.
///
/// # Safety
/// As `LibAliasInBatch`, for each of the packets.
unsafe fn one_by_one(
    direction: Direction,
    la: *mut LibAlias,
    packets: &mut [BatchPacket],
) -> c_int {
    let mut good: c_int = 0;
    for given in packets {
        // SAFETY: by this function's contract.
        given.result = unsafe { handled(direction, la, given.packet, given.maxpacketsize) };
        if matches!(given.result, OK | FOUND_HEADER_FRAGMENT) {
            good = good.saturating_add(1);
        }
    }
    good
}

/// Translates up to [`BATCH`] packets; gives how many go on.
///
/// # Safety
/// As `LibAliasInBatch`, for each of the packets.
unsafe fn translate(
    direction: Direction,
    instance: &mut Instance,
    piece: &mut [BatchPacket],
    now: u64,
) -> c_int {
    let mut given = piece.iter();
    let mut room: [Packet<'_>; BATCH] = array::from_fn(|_| {
        let bytes = given.next().and_then(|given| {
            // SAFETY: by this function's contract.
            unsafe { memory(given.packet, given.maxpacketsize) }
        });
        Packet::new(bytes.unwrap_or_default())
    });
    let used = room.get_mut(..piece.len()).unwrap_or_default();
    match direction {
        Direction::In => instance.nat.translate_in_batch(used, now),
        Direction::Out => instance.nat.translate_out_batch(used, now),
    }
    let is_reverse = instance.is_reverse();
    let mut good: c_int = 0;
    for (given, packet) in piece.iter_mut().zip(used) {
        given.result = match direction {
            _ if packet.bytes.is_empty() => ERROR,
            Direction::In => code_in(packet.verdict, packet.bytes, is_reverse),
            Direction::Out => code_out(packet.verdict, packet.bytes, is_reverse),
        };
        if matches!(given.result, OK | FOUND_HEADER_FRAGMENT) {
            good = good.saturating_add(1);
        }
    }
    good
}

/// What C calls a verdict.
#[inline]
fn code(verdict: Verdict) -> c_int {
    match verdict {
        Verdict::Translated | Verdict::Passed | Verdict::Hairpinned | Verdict::Answered => OK,
        Verdict::NoMapping
        | Verdict::Denied
        | Verdict::Malformed
        | Verdict::HelperRefused
        | Verdict::Unsupported => IGNORED,
        Verdict::FragmentWaiting => UNRESOLVED_FRAGMENT,
        Verdict::TableFull | Verdict::PortsExhausted | Verdict::OverQuota => ERROR,
    }
}

/// The same, for a packet that came in.
#[inline]
fn code_in(verdict: Verdict, bytes: &[u8], is_reverse: bool) -> c_int {
    let code = code(verdict);
    if code == OK && !is_reverse && is_first_fragment(bytes) {
        return FOUND_HEADER_FRAGMENT;
    }
    code
}

/// The same, for a packet that went out.
#[inline]
fn code_out(verdict: Verdict, bytes: &[u8], is_reverse: bool) -> c_int {
    if is_reverse {
        return code_in(verdict, bytes, false);
    }
    code(verdict)
}

/// Whether more of the packet follows and this is its beginning
/// (RFC 791 §3.1: flags and offset).
#[inline]
fn is_first_fragment(bytes: &[u8]) -> bool {
    matches!(bytes, [_, _, _, _, _, _, flags, offset, ..]
        if flags & 0x3F == 0x20 && *offset == 0)
}

/// Whether translating the packet would make no new link: there is one, or
/// it is of a kind that makes none (later fragments, ICMP errors).
fn has_link(instance: &Instance, bytes: &[u8]) -> bool {
    let Ok(header) = Ipv4::new(bytes) else {
        return true;
    };
    if header.fragment_offset_bytes() != 0 {
        return true;
    }
    let (source, destination) = match header.protocol() {
        protocol::UDP | protocol::UDP_LITE => match Udp::new(header.payload()) {
            Ok(udp) => (udp.source_port(), udp.destination_port()),
            Err(_) => return true,
        },
        protocol::TCP => match Tcp::new(header.payload()) {
            Ok(tcp) => (tcp.source_port(), tcp.destination_port()),
            Err(_) => return true,
        },
        protocol::ICMP => match Icmp::new(header.payload()) {
            Ok(icmp) if icmp::kind(icmp.icmp_type()) == icmp::Kind::Query => (icmp.identifier(), 0),
            _ => return true,
        },
        // A call is named by its receiver (RFC 2637 §4.1).
        protocol::GRE => match Gre::new(header.payload()) {
            Ok(gre) => (0, gre.call_id().unwrap_or(0)),
            Err(_) => return true,
        },
        _ => (0, 0),
    };
    let flow = instance.nat.lookup(
        Direction::Out,
        header.protocol(),
        (header.source().into(), source),
        (header.destination().into(), destination),
    );
    flow.is_some()
}

/// The memory of a packet, as far as it can be used.
///
/// # Safety
/// `packet` is NULL or points to `maxpacketsize` bytes that are the
/// caller's alone for as long as the slice lives.
#[inline]
unsafe fn memory<'a>(packet: *mut c_void, maxpacketsize: c_int) -> Option<&'a mut [u8]> {
    let len = usize::try_from(maxpacketsize).ok()?.min(MAX_PACKET);
    if packet.is_null() {
        return None;
    }
    // SAFETY: by this function's contract there are `len` bytes at least.
    Some(unsafe { std::slice::from_raw_parts_mut(packet.cast::<u8>(), len) })
}

/// The IPv4 header that C points to.
///
/// # Safety
/// `pointer` is NULL or points to an IPv4 header that is the caller's alone
/// for as long as the view lives.
unsafe fn header<'a>(pointer: *mut c_void) -> Option<Ipv4<&'a mut [u8]>> {
    if pointer.is_null() {
        return None;
    }
    let first = pointer.cast::<u8>();
    // SAFETY: by this function's contract a whole header is there; its
    // first byte says how long it is (RFC 791 §3.1).
    let bytes = unsafe {
        let len = usize::from(*first & 0x0F).saturating_mul(4);
        std::slice::from_raw_parts_mut(first, len.max(packet::ipv4::HEADER_LEN))
    };
    Ipv4::parse_truncated(bytes).ok()
}
