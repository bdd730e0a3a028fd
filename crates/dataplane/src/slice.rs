//! How soon a thread runs that has slept: its slice of the scheduler.
//!
//! Since Linux 6.12 a thread of the ordinary policy may ask for a slice of
//! its own. One with a shorter slice than the thread that runs takes over
//! as soon as it wakes, where it else waits until that one's slice is used
//! up: some milliseconds, whatever their nice values are. It gets no more
//! time altogether. Older kernels accept the request and do nothing.
#![allow(
    unsafe_code,
    reason = "system calls that no safe library passes on (sched_getattr, sched_setattr)"
)]

use std::io;
use std::mem;
use std::time::Duration;

/// Gives the calling thread a slice; the kernel takes 0.1 to 100 ms. Its
/// policy and nice value stay. A thread of a real-time policy has none and
/// is left alone. Needs no privilege. Two system calls.
pub fn set(slice: Duration) -> io::Result<()> {
    let mut attributes = get()?;
    let policy = attributes.sched_policy as i32;
    if policy != libc::SCHED_OTHER && policy != libc::SCHED_BATCH {
        return Ok(());
    }
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // What else was told is of no meaning in a request.
    attributes.sched_flags &= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the kernel reads as much as `size` says, which is the size of
    // the live value behind the pointer; 0 is the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(done)
}

/// The scheduler's attributes of the calling thread.
fn get() -> io::Result<libc::sched_attr> {
    // SAFETY: a plain structure of integers: zeros are a value.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = mem::size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes, which is the size of
    // the live value behind the pointer; 0 is the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    check(done)?;
    Ok(attributes)
}

fn check(done: libc::c_long) -> io::Result<()> {
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_set_and_nothing_else() {
        // In a thread of its own: others would run with it.
        let checked = std::thread::spawn(|| {
            rustix::process::setpriority_process(None, 3).unwrap();
            let before = get().unwrap();
            set(Duration::from_micros(300)).unwrap();
            let after = get().unwrap();
            assert_eq!(after.sched_policy, before.sched_policy);
            assert_eq!(after.sched_nice, 3);
            // A kernel before 6.12 has no slices of threads, and tells 0.
            if before.sched_runtime > 0 {
                assert_eq!(after.sched_runtime, 300_000);
            }
        });
        checked.join().unwrap();
    }
}
