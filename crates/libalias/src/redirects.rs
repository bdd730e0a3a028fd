//! The C functions that lay down rules. See `alias.h`.

use std::ffi::{c_char, c_int, c_uchar, c_ushort};
use std::ptr;

use nat::rules::{ProxyWord, Redirect, Server, parse_proxy};
use packet::protocol;

use crate::control::string;
use crate::instance::{Place, find};
use crate::types::{AliasLink, ERROR, InAddr, LibAlias};

/// The most of a proxy rule that is read.
const MAX_COMMAND: usize = 1_024;
/// What 0 is called where it means success.
const DONE: c_int = 0;

/// `LibAliasRedirectPort`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRedirectPort(
    la: *mut LibAlias,
    src_addr: InAddr,
    src_port: c_ushort,
    dst_addr: InAddr,
    dst_port: c_ushort,
    alias_addr: InAddr,
    alias_port: c_ushort,
    proto: c_uchar,
) -> *mut AliasLink {
    if !matches!(proto, protocol::TCP | protocol::UDP) {
        return ptr::null_mut();
    }
    let remote_port = Some(u16::from_be(dst_port)).filter(|port| *port != 0);
    insert(
        la,
        Redirect {
            protocol: Some(proto),
            inside: src_addr.given(),
            inside_port: u16::from_be(src_port),
            alias: alias_addr.given(),
            alias_port: u16::from_be(alias_port),
            ports: 1,
            remote: dst_addr.given(),
            remote_port,
        },
    )
}

/// `LibAliasRedirectAddr`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRedirectAddr(
    la: *mut LibAlias,
    src_addr: InAddr,
    alias_addr: InAddr,
) -> *mut AliasLink {
    insert(
        la,
        Redirect {
            inside: src_addr.given(),
            alias: alias_addr.given(),
            ..Redirect::address(src_addr.address(), alias_addr.address())
        },
    )
}

/// `LibAliasRedirectProto`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRedirectProto(
    la: *mut LibAlias,
    src_addr: InAddr,
    dst_addr: InAddr,
    alias_addr: InAddr,
    proto: c_uchar,
) -> *mut AliasLink {
    insert(
        la,
        Redirect {
            inside: src_addr.given(),
            alias: alias_addr.given(),
            remote: dst_addr.given(),
            ..Redirect::protocol(proto, src_addr.address())
        },
    )
}

/// `LibAliasRedirectDynamic`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRedirectDynamic(la: *mut LibAlias, link: *mut AliasLink) -> c_int {
    let Some(mut instance) = find(la) else {
        return ERROR;
    };
    let Some(rule) = instance.links.get(link) else {
        return ERROR;
    };
    let until = instance.now().saturating_add(ONE_SHOT_MILLIS);
    match instance.nat.rules_mut().make_dynamic(rule, until) {
        Ok(()) => DONE,
        Err(_) => ERROR,
    }
}

/// `LibAliasRedirectDelete`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRedirectDelete(la: *mut LibAlias, link: *mut AliasLink) {
    let Some(mut instance) = find(la) else {
        return;
    };
    if let Some(rule) = instance.links.remove(link) {
        // A one-shot redirect that was used is gone already.
        let _ = instance.nat.rules_mut().remove(rule);
    }
}

/// `LibAliasAddServer`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasAddServer(
    la: *mut LibAlias,
    link: *mut AliasLink,
    addr: InAddr,
    port: c_ushort,
) -> c_int {
    let Some(mut instance) = find(la) else {
        return ERROR;
    };
    let Some(rule) = instance.links.get(link) else {
        return ERROR;
    };
    let server = Server {
        address: addr.address(),
        port: u16::from_be(port),
    };
    match instance.nat.rules_mut().add_server(rule, server) {
        Ok(()) => DONE,
        Err(_) => ERROR,
    }
}

/// `LibAliasProxyRule`.
///
/// # Safety
/// `cmd` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasProxyRule(la: *mut LibAlias, cmd: *const c_char) -> c_int {
    // SAFETY: by this function's contract.
    let command = unsafe { string(cmd, MAX_COMMAND) };
    let (Some(command), Some(mut instance)) = (command, find(la)) else {
        return ERROR;
    };
    let is_done = match parse_proxy(command) {
        Ok(ProxyWord::Add(proxy)) => instance.nat.rules_mut().add_proxy(proxy).is_ok(),
        Ok(ProxyWord::Delete(number)) => instance.nat.rules_mut().remove_proxies(number),
        Err(_) => false,
    };
    if is_done { DONE } else { ERROR }
}

/// How long a one-shot redirect waits for its use.
const ONE_SHOT_MILLIS: u64 = 300_000;

/// Lays a redirect down and gives it a name for C.
fn insert(la: *mut LibAlias, redirect: Redirect) -> *mut AliasLink {
    let Some(mut instance) = find(la) else {
        return ptr::null_mut();
    };
    match instance.nat.rules_mut().insert(redirect) {
        Ok(rule) => instance.links.insert(rule, Place::of(&redirect)),
        Err(_) => ptr::null_mut(),
    }
}
