//! The C functions that load and unload what helps protocols. All of it is
//! built in: a module is its name. See `alias.h`.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

use nat::helper::Helped;

use crate::control::string;
use crate::instance;

/// "No such file or directory".
const ENOENT: c_int = 2;
/// The most of a module's name that is read.
const MAX_NAME: usize = 256;

/// What is built in: a part of its module's name, and the helpers that it
/// stands for. FreeBSD's for streamed media is "smedia".
const MODULES: [(&str, &[&str]); 9] = [
    ("ftp", &["ftp"]),
    ("pptp", &["pptp"]),
    ("irc", &["irc"]),
    ("tftp", &["tftp"]),
    ("rtsp", &["rtsp"]),
    ("smedia", &["rtsp", "tftp"]),
    ("nbt", &["nbt"]),
    ("skinny", &["skinny"]),
    ("sip", &["sip"]),
];
/// A bit for each of [`MODULES`]: those that are loaded where nothing was
/// said, all but "sip".
const USUAL: u32 = 0xff;

/// Those that are loaded.
static LOADED: AtomicU32 = AtomicU32::new(USUAL);

/// Which helpers are on, where Skinny's call managers are at a port (0: not
/// helped).
pub fn helped(skinny_port: u16) -> Helped {
    let loaded = LOADED.load(Ordering::Relaxed);
    let is_loaded = |at: &usize| loaded.checked_shr(*at as u32).unwrap_or(0) & 1 != 0;
    let all = MODULES.iter().enumerate();
    let names = all.filter(|(at, _)| is_loaded(at)).flat_map(|(_, of)| of.1);
    let mut helped = Helped::NONE;
    let mut has_skinny = false;
    for name in names {
        has_skinny |= *name == "skinny";
        helped = helped.switched(name, true).unwrap_or(helped);
    }
    helped.skinny_at(if has_skinny { skinny_port } else { 0 })
}

/// `LibAliasLoadModule`.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasLoadModule(name: *mut c_char) -> c_int {
    // SAFETY: by this function's contract.
    match unsafe { bit_of(name) } {
        Some(bit) => load(|loaded| loaded | bit),
        None => ENOENT,
    }
}

/// `LibAliasUnLoadModule`.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LibAliasUnLoadModule(name: *mut c_char) -> c_int {
    // SAFETY: by this function's contract.
    match unsafe { bit_of(name) } {
        Some(bit) => load(|loaded| loaded & !bit),
        None => ENOENT,
    }
}

/// `LibAliasUnLoadAllModule`.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasUnLoadAllModule() -> c_int {
    load(|_| 0)
}

/// `LibAliasRefreshModules`: those are loaded that were at the start.
#[unsafe(no_mangle)]
pub extern "C" fn LibAliasRefreshModules() -> c_int {
    load(|_| USUAL)
}

fn load(change: impl Fn(u32) -> u32) -> c_int {
    let changed = |loaded| Some(change(loaded));
    // It is never refused.
    let _ = LOADED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    instance::for_each(instance::Instance::apply_modules);
    0
}

/// The bit of a module: its name, or a path that ends with it, as
/// "/lib/libalias_ftp.so". The directories of a path say nothing.
///
/// # Safety
/// As [`LibAliasLoadModule`].
unsafe fn bit_of(name: *const c_char) -> Option<u32> {
    // SAFETY: by this function's contract.
    let name = unsafe { string(name, MAX_NAME) }?;
    let file = name.rsplit('/').next()?;
    let mut parts = file.split(|c: char| !c.is_ascii_alphabetic());
    parts.find_map(|part| {
        let at = MODULES.iter().position(|(known, _)| *known == part)?;
        1_u32.checked_shl(at as u32)
    })
}

#[cfg(test)]
mod tests {
    use nat::helper::Kind;

    use super::*;

    #[test]
    fn a_module_is_told_by_its_file_s_name() {
        let bit = |name: &std::ffi::CStr| {
            // SAFETY: a string that ends with a zero byte.
            unsafe { bit_of(name.as_ptr()) }
        };
        for path in [c"irc", c"/srv/ftp/libalias_irc.so", c"./alias_irc.ko"] {
            assert_eq!(bit(path), Some(4), "{path:?}");
        }
        assert_eq!(bit(c"libalias_smedia.so"), Some(32));
        for path in [c"/srv/ftp/", c"/srv/ftp/libalias_cuseeme.so", c""] {
            assert_eq!(bit(path), None, "{path:?}");
        }
    }

    #[test]
    fn what_is_loaded_helps() {
        let usual = helped(0);
        for kind in [
            Kind::Ftp,
            Kind::Pptp,
            Kind::Irc,
            Kind::Tftp,
            Kind::Rtsp,
            Kind::Nbt,
        ] {
            assert!(usual.has(kind), "{kind:?}");
        }
        assert!(!usual.has(Kind::Sip) && !usual.has(Kind::Skinny));
        assert!(helped(2_000).has(Kind::Skinny));
        assert_eq!(MODULES.len(), USUAL.count_ones() as usize + 1);
    }
}
