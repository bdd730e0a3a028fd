//! The C functions that make, set and free instances. See `alias.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ushort};
use std::ptr;

use nat::{Config, State};
use packet::checksum::Sum;

use crate::clock;
use crate::instance::{Instance, Target, find, register, unregister};
use crate::types::{ERROR, InAddr, LibAlias};

/// By `LIBALIAS_TIMEOUT_…` in `alias.h`.
const STATES: [State; 11] = [
    State::TcpOpening,
    State::TcpEstablished,
    State::TcpHalfClosed,
    State::TcpClosed,
    State::TcpReset,
    State::UdpUnreplied,
    State::Udp,
    State::Icmp,
    State::Gre,
    State::Other,
    State::Dns,
];

/// `LibAliasInit`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasInit(la: *mut LibAlias) -> *mut LibAlias {
    LibAliasInitSized(la, 0)
}

/// `LibAliasInitSized`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasInitSized(la: *mut LibAlias, max_links: c_uint) -> *mut LibAlias {
    let Some(fresh) = Instance::new(usize::try_from(max_links).unwrap_or(usize::MAX)) else {
        return ptr::null_mut();
    };
    if la.is_null() {
        return register(fresh);
    }
    match find(la) {
        Some(mut instance) => {
            *instance = fresh;
            la
        }
        None => ptr::null_mut(),
    }
}

/// `LibAliasUninit`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasUninit(la: *mut LibAlias) {
    unregister(la);
}

/// `LibAliasSetAddress`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetAddress(la: *mut LibAlias, addr: InAddr) {
    if let Some(mut instance) = find(la) {
        instance.set_address(addr.given());
    }
}

/// `LibAliasSetAliasPortRange`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetAliasPortRange(
    la: *mut LibAlias,
    port_low: c_ushort,
    port_high: c_ushort,
) {
    let ports = match port_low {
        0 => Config::PORTS,
        low => low..=port_high,
    };
    if let Some(mut instance) = find(la) {
        // An empty range changes nothing, as alias.h has it.
        let _ = instance.nat.set_ports(ports);
    }
}

/// `LibAliasSetMode`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetMode(la: *mut LibAlias, flags: c_uint, mask: c_uint) -> c_uint {
    find(la).map_or(0, |mut instance| instance.set_modes(flags, mask))
}

/// `LibAliasSetTarget`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetTarget(la: *mut LibAlias, addr: InAddr) {
    let target = match addr.given() {
        None => Target::Addressed,
        Some(address) if address.is_broadcast() => Target::Alias,
        Some(host) => Target::Host(host),
    };
    if let Some(mut instance) = find(la) {
        instance.set_target(target);
    }
}

/// `LibAliasSetFWBase`: there is no firewall to punch holes into.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetFWBase(_la: *mut LibAlias, _base: c_uint, _num: c_uint) {}

/// `LibAliasSetSkinnyPort`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetSkinnyPort(la: *mut LibAlias, port: c_uint) {
    if let (Some(mut instance), Ok(port)) = (find(la), u16::try_from(port)) {
        instance.set_skinny_port(port);
    }
}

/// `LibAliasCheckNewLink`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasCheckNewLink(la: *mut LibAlias) -> c_int {
    find(la).map_or(0, |mut instance| c_int::from(instance.take_new_link()))
}

/// `LibAliasInternetChecksum`.
///
/// # Safety
/// `data` is NULL or points to `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasInternetChecksum(
    _la: *mut LibAlias,
    data: *mut c_ushort,
    nbytes: c_int,
) -> c_ushort {
    let len = usize::try_from(nbytes).unwrap_or(0);
    let bytes = if data.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: by this function's contract there are `len` bytes.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
    };
    Sum::of(bytes).checksum()
}

/// `LibAliasSetTime`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetTime(la: *mut LibAlias, millis: u64) {
    if let Some(mut instance) = find(la) {
        instance.set_time(millis);
    }
}

/// `LibAliasShareTime`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasShareTime(millis: u64) {
    clock::share(millis);
}

/// `LibAliasSetTimeout`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasSetTimeout(la: *mut LibAlias, doing: c_int, seconds: c_uint) -> c_int {
    let state = usize::try_from(doing).ok().and_then(|at| STATES.get(at));
    let (Some(mut instance), Some(state)) = (find(la), state) else {
        return ERROR;
    };
    if seconds == 0 {
        return ERROR;
    }
    let mut timeouts = instance.nat.config().timeouts;
    timeouts.set(*state, seconds);
    instance.nat.set_timeouts(timeouts);
    0
}

/// `LibAliasMaintain`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasMaintain(la: *mut LibAlias, budget: c_int) -> c_int {
    let (Some(mut instance), Ok(budget)) = (find(la), usize::try_from(budget)) else {
        return ERROR;
    };
    let now = instance.now();
    instance.fragments.expire(now);
    let freed = instance.nat.maintain(now, budget);
    c_int::try_from(freed).unwrap_or(c_int::MAX)
}

/// A string of C, if it is UTF-8 and shorter than `limit` bytes.
///
/// # Safety
/// `text` is NULL or a string that ends with a zero byte.
pub unsafe fn string<'a>(text: *const c_char, limit: usize) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().ok().filter(|text| text.len() < limit)
}
