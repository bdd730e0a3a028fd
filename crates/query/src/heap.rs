//! Memory of statements: what SQLite allocates on a thread counts for the
//! statement that runs on it, and beyond its bound SQLite gets none, which
//! it takes well. Its own bound is one for the whole process, where a
//! statement that takes all would have all others fail.
//!
//! For `session` alone, and for `vtab` and `function`, which hand texts to
//! SQLite that must not fail.

#![allow(unsafe_code, reason = "the functions by which SQLite allocates")]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;

/// Before each block: its size, and room that keeps the block aligned.
const HEAD: usize = 16;

thread_local! {
    /// Octets that SQLite has of this thread.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// Octets that it may have.
    static MOST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The bound of a thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Bound(());

/// Bounds what SQLite takes on this thread from now on. The error says why
/// it cannot be bounded.
pub(crate) fn bound(octets: usize) -> Result<Bound, String> {
    static READY: OnceLock<c_int> = OnceLock::new();
    let ready = *READY.get_or_init(take_over);
    if ready != ffi::SQLITE_OK {
        return Err(format!(
            "SQLite was begun by somebody else, and its memory cannot be bounded (code {ready})"
        ));
    }
    MOST.set(TAKEN.get().saturating_add(octets));
    Ok(Bound(()))
}

impl Drop for Bound {
    fn drop(&mut self) {
        MOST.set(usize::MAX);
    }
}

/// Lets SQLite have so many octets in any case: for a text that is handed to
/// it by who cannot do without.
pub(crate) fn grant(octets: usize) {
    let least = TAKEN.get().saturating_add(octets).saturating_add(HEAD);
    MOST.set(MOST.get().max(least));
}

/// Octets that SQLite has of this thread.
#[cfg(test)]
pub(crate) fn taken() -> usize {
    TAKEN.get()
}

fn take_over() -> c_int {
    // SAFETY: the options take an int, and a pointer that is copied; nobody
    // has begun SQLite before, or it says so.
    unsafe {
        // Counted here, thread by thread, and not behind one lock.
        ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
        let code = ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const METHODS.0);
        if code != ffi::SQLITE_OK {
            return code;
        }
        ffi::sqlite3_initialize()
    }
}

/// What SQLite is given once; the pointer in it is none.
struct Methods(ffi::sqlite3_mem_methods);

// SAFETY: functions, and a pointer that nobody follows.
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods(ffi::sqlite3_mem_methods {
    xMalloc: Some(allocate),
    xFree: Some(free),
    xRealloc: Some(resize),
    xSize: Some(size),
    xRoundup: Some(rounded),
    xInit: Some(begin),
    xShutdown: Some(end),
    pAppData: ptr::null_mut(),
});

/// Whether so many octets more may be had; they count then.
fn take(octets: usize) -> bool {
    let taken = TAKEN.get().saturating_add(octets);
    if taken > MOST.get() {
        return false;
    }
    TAKEN.set(taken);
    true
}

fn give_back(octets: usize) {
    TAKEN.set(TAKEN.get().saturating_sub(octets));
}

fn layout(octets: usize) -> Option<Layout> {
    Layout::from_size_align(octets.checked_add(HEAD)?, HEAD).ok()
}

unsafe extern "C" fn allocate(octets: c_int) -> *mut c_void {
    let octets = usize::try_from(octets).unwrap_or(0);
    let Some(layout) = layout(octets) else {
        return ptr::null_mut();
    };
    if !take(octets) {
        return ptr::null_mut();
    }
    // SAFETY: the layout is never empty.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        give_back(octets);
        return ptr::null_mut();
    }
    // SAFETY: the head is aligned and inside the block, and so is what follows.
    unsafe {
        block.cast::<usize>().write(octets);
        block.add(HEAD).cast()
    }
}

/// The block below what SQLite was given, and its size without the head.
///
/// SAFETY: the pointer is one that `allocate` or `resize` gave.
unsafe fn block_of(given: *mut c_void) -> (*mut u8, usize) {
    // SAFETY: the head lies below what was given.
    unsafe {
        let block = given.cast::<u8>().sub(HEAD);
        (block, block.cast::<usize>().read())
    }
}

unsafe extern "C" fn free(given: *mut c_void) {
    if given.is_null() {
        return;
    }
    // SAFETY: SQLite gives back what it was given.
    let (block, octets) = unsafe { block_of(given) };
    give_back(octets);
    if let Some(layout) = layout(octets) {
        // SAFETY: the layout is that of the allocation.
        unsafe { dealloc(block, layout) };
    }
}

unsafe extern "C" fn resize(given: *mut c_void, octets: c_int) -> *mut c_void {
    let octets = usize::try_from(octets).unwrap_or(0);
    // SAFETY: SQLite never resizes nothing, and what it was given.
    let (block, before) = unsafe { block_of(given) };
    let (Some(layout), Some(whole)) = (layout(before), octets.checked_add(HEAD)) else {
        return ptr::null_mut();
    };
    if octets > before && !take(octets - before) {
        return ptr::null_mut();
    }
    // SAFETY: the layout is that of the allocation, and the new size is not 0.
    let block = unsafe { realloc(block, layout, whole) };
    if block.is_null() {
        give_back(octets.saturating_sub(before));
        return ptr::null_mut();
    }
    give_back(before.saturating_sub(octets));
    // SAFETY: as in `allocate`.
    unsafe {
        block.cast::<usize>().write(octets);
        block.add(HEAD).cast()
    }
}

unsafe extern "C" fn size(given: *mut c_void) -> c_int {
    if given.is_null() {
        return 0;
    }
    // SAFETY: SQLite asks about what it was given.
    let (_, octets) = unsafe { block_of(given) };
    c_int::try_from(octets).unwrap_or(c_int::MAX)
}

unsafe extern "C" fn rounded(octets: c_int) -> c_int {
    octets.saturating_add(7) & !7
}

unsafe extern "C" fn begin(_: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn end(_: *mut c_void) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_no_more_than_its_bound_and_gives_all_back() {
        let before = taken();
        {
            let _bound = bound(1 << 20).unwrap();
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            let many = "select group_concat(hex(zeroblob(10000))) from \
                        (with recursive n(i) as (select 1 union all select i + 1 from n limit 1000) \
                        select i from n)";
            let failed = connection.query_row(many, [], |row| row.get::<_, String>(0));
            let code = failed.unwrap_err().sqlite_error_code();
            assert_eq!(code, Some(rusqlite::ErrorCode::OutOfMemory));
            let one: i64 = connection
                .query_row("select 1", [], |row| row.get(0))
                .unwrap();
            assert_eq!(one, 1, "and goes on");
            assert!(taken() > before);
        }
        assert_eq!(taken(), before);
        let _bound = bound(usize::MAX).unwrap();
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let long: i64 = connection
            .query_row("select length(zeroblob(2000000))", [], |row| row.get(0))
            .unwrap();
        assert_eq!(long, 2_000_000);
    }
}
