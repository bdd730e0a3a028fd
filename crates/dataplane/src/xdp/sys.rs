//! bpf(2): maps, programs and links by descriptor (`linux/bpf.h`). Called
//! within `xdp` only.
#![allow(
    unsafe_code,
    reason = "bpf(2), which no library passes on that would not bring a compiler or its own loader"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `BPF_…`: commands.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const MAP_DELETE_ELEM: libc::c_long = 3;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const PROG_QUERY: libc::c_long = 16;
const MAP_LOOKUP_BATCH: libc::c_long = 24;
const MAP_LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;
const LINK_CREATE: libc::c_long = 28;
const PROG_GET_FD_BY_ID: libc::c_long = 13;
const MAP_GET_FD_BY_ID: libc::c_long = 14;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;

/// `BPF_PROG_TYPE_XDP`, `BPF_XDP` as the type of an attachment.
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `XDP_FLAGS_DRV_MODE`: in the driver, or not at all.
const IN_DRIVER: u32 = 1 << 2;
/// `BPF_F_XDP_HAS_FRAGS`: frames may lie in several buffers.
const HAS_FRAGS: u32 = 1 << 5;
/// `BPF_F_XDP_DEV_BOUND_ONLY`: for one device, whose hints it may ask.
const DEVICE_BOUND: u32 = 1 << 6;
/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE_FRAMES: u32 = 1 << 1;

/// What the program is called in the kernel.
pub const PROGRAM: &str = "fingerpost_fwd";

/// Bytes of the verifier's log that are kept.
const LOG_BYTES: usize = 1 << 20;

/// Structures that the kernel reads and writes: integers without padding.
///
/// # Safety
/// Each value of its bytes is a value of the type, and none is padding.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}

/// What a map is made of.
#[derive(Debug, Clone, Copy)]
pub struct MapKind {
    /// `BPF_MAP_TYPE_…`.
    pub kind: u32,
    pub key_bytes: u32,
    pub value_bytes: u32,
    pub entries: u32,
    /// `BPF_F_…`.
    pub flags: u32,
    pub name: &'static str,
}

/// A map, and how long its keys and values are: the kernel reads and writes
/// as much, whatever it is handed.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    kind: MapKind,
}

impl Map {
    /// Its descriptor, for instructions.
    pub fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Refuses what is not as long as the map has it.
    fn check(&self, key: usize, value: Option<usize>) -> io::Result<()> {
        let is_value = value.is_none_or(|value| value == self.kind.value_bytes as usize);
        if key == self.kind.key_bytes as usize && is_value {
            return Ok(());
        }
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// One call with one of the structures of `union bpf_attr`.
fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the structure is live and its size is told; what pointers in it
    // lead to is the caller's, who lends it for the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            mem::size_of::<T>(),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(done)
}

fn owned(fd: libc::c_long) -> OwnedFd {
    // SAFETY: a descriptor that the kernel has just made, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

fn address<T>(of: &T) -> u64 {
    std::ptr::from_ref(of) as u64
}

fn name_of(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    bytes
}

/// Makes a map.
pub fn create_map(kind: &MapKind) -> io::Result<Map> {
    #[repr(C)]
    struct Attributes {
        kind: u32,
        key_bytes: u32,
        value_bytes: u32,
        entries: u32,
        flags: u32,
        inner: u32,
        node: u32,
        name: [u8; 16],
    }
    let mut attributes = Attributes {
        kind: kind.kind,
        key_bytes: kind.key_bytes,
        value_bytes: kind.value_bytes,
        entries: kind.entries,
        flags: kind.flags,
        inner: 0,
        node: 0,
        name: name_of(kind.name),
    };
    let fd = bpf(MAP_CREATE, &mut attributes).map(owned)?;
    Ok(Map { fd, kind: *kind })
}

/// The structure of the calls for one entry.
#[repr(C)]
struct Entry {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

fn entry<K>(map: &Map, key: &K, value: u64) -> Entry {
    Entry {
        map: map.fd.as_raw_fd() as u32,
        unused: 0,
        key: address(key),
        value,
        flags: 0,
    }
}

/// Puts an entry into a map of this key and this value.
pub fn update<K: Plain, V: Plain>(map: &Map, key: &K, value: &V) -> io::Result<()> {
    map.check(mem::size_of::<K>(), Some(mem::size_of::<V>()))?;
    bpf(MAP_UPDATE_ELEM, &mut entry(map, key, address(value))).map(drop)
}

/// Takes an entry out of a map of this key.
pub fn delete<K: Plain>(map: &Map, key: &K) -> io::Result<()> {
    map.check(mem::size_of::<K>(), None)?;
    bpf(MAP_DELETE_ELEM, &mut entry(map, key, 0)).map(drop)
}

/// An entry's values of a map that has one for each of so many processors
/// that there may be: as words, one after the other.
pub fn lookup_of_each(map: &Map, key: u32, processors: &Processors) -> io::Result<Vec<u64>> {
    map.check(mem::size_of::<u32>(), None)?;
    let words = (map.kind.value_bytes as usize).div_ceil(8);
    let mut value = vec![0_u64; words * processors.0];
    let at = value.as_mut_ptr() as u64;
    bpf(MAP_LOOKUP_ELEM, &mut entry(map, &key, at))?;
    Ok(value)
}

/// How many processors there may be. The kernel writes a value for each.
#[derive(Debug)]
pub struct Processors(usize);

impl Processors {
    /// As the kernel tells it: a list such as `0-3`.
    pub fn possible() -> io::Result<Self> {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let last = last_of(&list).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self(last + 1))
    }
}

/// The last number of a list such as `0-3,8`.
fn last_of(list: &str) -> Option<usize> {
    list.trim().rsplit(['-', ',']).next()?.parse().ok()
}

/// Takes entries out of a hash, at most as many as `keys` has room for: their
/// number. What `place` holds is where to go on; at first nothing.
pub fn take_entries<K: Plain, V: Plain>(
    map: &Map,
    keys: &mut [K],
    values: &mut [V],
    place: &mut Option<[u8; 32]>,
) -> io::Result<(usize, bool)> {
    entries(MAP_LOOKUP_AND_DELETE_BATCH, map, (keys, values), place)
}

/// Reads entries of a hash, as [`take_entries`] takes them.
pub fn read_entries<K: Plain, V: Plain>(
    map: &Map,
    keys: &mut [K],
    values: &mut [V],
    place: &mut Option<[u8; 32]>,
) -> io::Result<(usize, bool)> {
    entries(MAP_LOOKUP_BATCH, map, (keys, values), place)
}

fn entries<K: Plain, V: Plain>(
    command: libc::c_long,
    map: &Map,
    (keys, values): (&mut [K], &mut [V]),
    place: &mut Option<[u8; 32]>,
) -> io::Result<(usize, bool)> {
    #[repr(C)]
    struct Attributes {
        from: u64,
        next: u64,
        keys: u64,
        values: u64,
        count: u32,
        map: u32,
        element_flags: u64,
        flags: u64,
    }
    map.check(mem::size_of::<K>(), Some(mem::size_of::<V>()))?;
    let from = *place;
    let mut next = [0_u8; 32];
    let mut attributes = Attributes {
        from: from.as_ref().map_or(0, address),
        next: next.as_mut_ptr() as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
        count: keys.len().min(values.len()) as u32,
        map: map.fd.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    let done = bpf(command, &mut attributes);
    *place = Some(next);
    match done {
        Ok(_) => Ok((attributes.count as usize, false)),
        // The end of the map; what was found is told all the same.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            Ok((attributes.count as usize, true))
        }
        Err(error) => Err(error),
    }
}

/// Loads a program for XDP, bound to a device where one is named. The error
/// comes with the verifier's words.
pub fn load_program(
    instructions: &[u64],
    device: Option<u32>,
) -> Result<OwnedFd, (io::Error, String)> {
    let first = load(instructions, device, None);
    let Err(error) = first else {
        return first.map_err(|error| (error, String::new()));
    };
    // The log costs: it is asked for where there is something to tell.
    let mut log = vec![0_u8; LOG_BYTES];
    if load(instructions, device, Some(&mut log)).is_ok() {
        return load(instructions, device, None).map_err(|error| (error, String::new()));
    }
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(log.get(..end).unwrap_or_default());
    Err((error, text.into_owned()))
}

fn load(
    instructions: &[u64],
    device: Option<u32>,
    log: Option<&mut Vec<u8>>,
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        kind: u32,
        count: u32,
        instructions: u64,
        licence: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        device: u32,
        attach: u32,
    }
    // bpf_fib_lookup is for programs under the GPL, among others.
    let licence = *b"Dual MIT/GPL\0";
    let bound = if device.is_some() { DEVICE_BOUND } else { 0 };
    let mut attributes = Attributes {
        kind: PROGRAM_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel: 0,
        flags: HAS_FRAGS | bound,
        name: name_of(PROGRAM),
        device: device.unwrap_or(0),
        attach: ATTACH_XDP,
    };
    if let Some(log) = log {
        attributes.log_level = 1;
        attributes.log_bytes = log.len() as u32;
        attributes.log = log.as_mut_ptr() as u64;
    }
    bpf(PROG_LOAD, &mut attributes).map(owned)
}

/// Attaches a program to a device, in its driver, until the descriptor is
/// closed: that of a process that has ended is.
pub fn attach(program: &OwnedFd, device: u32) -> io::Result<OwnedFd> {
    let mut attributes = [program.as_raw_fd() as u32, device, ATTACH_XDP, IN_DRIVER];
    bpf(LINK_CREATE, &mut attributes).map(owned)
}

/// A program that somebody has loaded.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    /// The numbers of its maps.
    maps: Vec<u32>,
}

impl Loaded {
    /// By its number. Needs `CAP_SYS_ADMIN`.
    pub fn of(number: u32) -> io::Result<Self> {
        // struct bpf_prog_info: the count of maps, where their numbers go, its
        // name.
        const COUNT: usize = 52;
        const MAPS: usize = 56;
        const NAME: usize = 64;
        let mut attributes = [number, 0, 0];
        let program = bpf(PROG_GET_FD_BY_ID, &mut attributes).map(owned)?;
        let mut maps = [0_u32; 32];
        let mut info = [0_u8; NAME + 16];
        info[COUNT..MAPS].copy_from_slice(&(maps.len() as u32).to_ne_bytes());
        info[MAPS..NAME].copy_from_slice(&(maps.as_mut_ptr() as u64).to_ne_bytes());
        describe(&program, &mut info)?;
        let count = info[COUNT..MAPS].try_into().map_or(0, u32::from_ne_bytes);
        Ok(Self {
            name: text(&info[NAME..]),
            maps: maps.into_iter().take(count as usize).collect(),
        })
    }

    /// Its map that is called like one of ours, and is as long.
    pub fn map(&self, kind: &MapKind) -> io::Result<Option<Map>> {
        // struct bpf_map_info: type, number, lengths of key and value, room,
        // flags, name.
        const NAME: usize = 24;
        for number in &self.maps {
            let mut attributes = [*number, 0, 0];
            let fd = bpf(MAP_GET_FD_BY_ID, &mut attributes).map(owned)?;
            let mut info = [0_u8; NAME + 16];
            describe(&fd, &mut info)?;
            let word = |at: usize| info[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
            let is_it = text(&info[NAME..]) == kind.name
                && [word(0), word(8), word(12)] == [kind.kind, kind.key_bytes, kind.value_bytes];
            if is_it {
                return Ok(Some(Map { fd, kind: *kind }));
            }
        }
        Ok(None)
    }
}

/// What the kernel says of a program or a map.
fn describe(of: &OwnedFd, info: &mut [u8]) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        descriptor: u32,
        bytes: u32,
        info: u64,
    }
    let mut attributes = Attributes {
        descriptor: of.as_raw_fd() as u32,
        bytes: info.len() as u32,
        info: info.as_mut_ptr() as u64,
    };
    bpf(OBJ_GET_INFO_BY_FD, &mut attributes).map(drop)
}

/// Up to the first zero.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many programs are attached to a device in one way (`BPF_TCX_INGRESS`,
/// …).
pub fn attached(device: u32, way: u32) -> io::Result<u32> {
    #[repr(C)]
    struct Attributes {
        device: u32,
        way: u32,
        query_flags: u32,
        attach_flags: u32,
        programs: u64,
        count: u32,
        unused: u32,
        program_flags: u64,
        links: u64,
        link_flags: u64,
        revision: u64,
    }
    let mut attributes = Attributes {
        device,
        way,
        query_flags: 0,
        attach_flags: 0,
        programs: 0,
        count: 0,
        unused: 0,
        program_flags: 0,
        links: 0,
        link_flags: 0,
        revision: 0,
    };
    bpf(PROG_QUERY, &mut attributes)?;
    Ok(attributes.count)
}

/// Runs a program for XDP on copies of a frame, as if they had come in by a
/// device, `repeat` times; `batch` frames at a time. For tests and
/// measurements.
pub fn run_live(
    program: BorrowedFd<'_>,
    device: u32,
    frame: &[u8],
    repeat: u32,
    batch: u32,
) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        program: u32,
        result: u32,
        data_in_bytes: u32,
        data_out_bytes: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
        context_in_bytes: u32,
        context_out_bytes: u32,
        context_in: u64,
        context_out: u64,
        flags: u32,
        processor: u32,
        batch: u32,
        unused: u32,
    }
    // struct xdp_md: data, data_end, data_meta, link, queue, egress link.
    let context: [u32; 6] = [0, frame.len() as u32, 0, device, 0, 0];
    let mut attributes = Attributes {
        program: program.as_raw_fd() as u32,
        result: 0,
        data_in_bytes: frame.len() as u32,
        data_out_bytes: 0,
        data_in: frame.as_ptr() as u64,
        data_out: 0,
        repeat,
        duration: 0,
        context_in_bytes: mem::size_of_val(&context) as u32,
        context_out_bytes: 0,
        context_in: address(&context),
        context_out: 0,
        flags: LIVE_FRAMES,
        processor: 0,
        batch,
        unused: 0,
    };
    bpf(PROG_TEST_RUN, &mut attributes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processor_is_read_from_a_list() {
        assert_eq!(last_of("0-1\n"), Some(1));
        assert_eq!(last_of("0"), Some(0));
        assert_eq!(last_of("0-3,8-11"), Some(11));
        assert_eq!(last_of(""), None);
    }
}
